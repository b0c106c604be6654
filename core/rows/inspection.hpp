// What has to be known of a matrix before a kernel may trust it, in one pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace adasdca {

struct Inspection {
    bool in_range = true;   // starts never fall and stay inside; 0 <= column < d
    bool finite = true;     // no NaN, no infinity
    bool canonical = true;  // columns of a row rise: sorted, no duplicates
};

// Whether all of these are finite, in blocks: x - x is 0 for a finite x and NaN for all else.
template <class T>
bool inspect(std::span<const T> values) {
    constexpr std::size_t block = 4096;
    T remainder = 0;
    for (std::size_t begin = 0; begin < values.size(); begin += block) {
        const std::span<const T> part =
            values.subspan(begin, std::min(block, values.size() - begin));
        const T* x = part.data();
        const auto count = static_cast<std::int64_t>(part.size());
        T rest = 0;
#pragma omp simd reduction(+ : rest)
        for (std::int64_t k = 0; k < count; ++k) rest += x[k] - x[k];
        remainder += rest;
    }
    return remainder == 0;
}

// A block at a time, and each question a loop of its own over one array, so that it vectorises.
template <class T, class Index>
Inspection inspect(std::span<const T> values, std::span<const Index> columns,
                   std::span<const std::int64_t> start, std::int64_t d) {
    const auto size = static_cast<std::int64_t>(std::min(values.size(), columns.size()));
    if (start.empty() || start.front() != 0 || start.back() > size) return {false, true, true};
    for (std::size_t i = 0; i + 1 < start.size(); ++i)
        if (start[i + 1] < start[i]) return {false, true, true};
    const std::int64_t count = start.back();

    constexpr std::int64_t block = 4096;
    std::int64_t outside = 0, falls = 0;
    T remainder = 0;
    for (std::int64_t begin = 0; begin < count; begin += block) {
        const std::int64_t length = std::min(block, count - begin);
        const Index* c = columns.data() + begin;
        const T* x = values.data() + begin;
        // As wide as an index, so that there is nothing to convert.
        const auto width = static_cast<Index>(d);
        Index beyond = 0, down = begin > 0 && c[0] <= c[-1];
#pragma omp simd reduction(+ : beyond)
        for (std::int64_t k = 0; k < length; ++k) beyond += c[k] < 0 || c[k] >= width;
#pragma omp simd reduction(+ : down)
        for (std::int64_t k = 1; k < length; ++k) down += c[k] <= c[k - 1];
        outside += beyond;
        falls += down;
        // x - x is 0 for a finite x and NaN for all else.
#pragma omp simd reduction(+ : remainder)
        for (std::int64_t k = 0; k < length; ++k) remainder += x[k] - x[k];
    }
    // From one row to the next a column may fall.
    for (std::size_t i = 1; i + 1 < start.size(); ++i) {
        const std::int64_t first = start[i];
        if (first > 0 && start[i + 1] > first)
            falls -= columns[static_cast<std::size_t>(first)] <=
                     columns[static_cast<std::size_t>(first) - 1];
    }
    return {outside == 0, remainder == 0, falls == 0};
}

}  // namespace adasdca
