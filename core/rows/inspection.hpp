// What has to be known of a matrix before a kernel may trust it, in one pass; and rows whose
// columns do not rise, sorted.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

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

// Copy the entries of rows that are in range, those of a row in the order of their columns; entries
// of the same column keep their order. By digits, since texts come from vectorisers in any order
// (4000 texts of 65 words: 5.2 -> 1.5 ms, against comparisons of pairs).
template <class T, class Index>
void sort_rows(std::span<const T> values, std::span<const Index> columns,
               std::span<const std::int64_t> start, std::int64_t d, T* sorted_values,
               Index* sorted_columns) {
    constexpr int most_bits = 8;
    // Of fewer entries each finds its place from the end.
    constexpr std::int64_t few = 32;
    const int bits =
        std::max(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(d - 1))), 1);
    const int passes = (bits + most_bits - 1) / most_bits, digit = (bits + passes - 1) / passes;
    const std::uint64_t mask = (std::uint64_t{1} << digit) - 1;
    // A column above the place of its entry in the row: both are below 2^31.
    std::vector<std::uint64_t> keys, other;
    for (std::size_t i = 0; i + 1 < start.size(); ++i) {
        const std::int64_t begin = start[i], size = start[i + 1] - begin;
        const Index* from = columns.data() + begin;
        keys.resize(static_cast<std::size_t>(size));
        other.resize(static_cast<std::size_t>(size));
        auto key = [&](std::int64_t k) {
            return static_cast<std::uint64_t>(from[k]) << 32 | static_cast<std::uint64_t>(k);
        };
        if (size <= few) {
            for (std::int64_t k = 0; k < size; ++k) {
                const std::uint64_t own = key(k);
                std::int64_t to = k;
                for (; to > 0 && keys[to - 1] > own; --to) keys[to] = keys[to - 1];
                keys[to] = own;
            }
        } else {
            for (std::int64_t k = 0; k < size; ++k) keys[k] = key(k);
            for (int pass = 0; pass < passes; ++pass) {
                const int shift = 32 + pass * digit;
                std::array<std::int64_t, (1 << most_bits) + 1> place{};
                for (const std::uint64_t each : keys) ++place[(each >> shift & mask) + 1];
                for (std::uint64_t v = 0; v < mask; ++v) place[v + 1] += place[v];
                for (const std::uint64_t each : keys) other[place[each >> shift & mask]++] = each;
                keys.swap(other);
            }
        }
        for (std::int64_t k = 0; k < size; ++k) {
            sorted_columns[begin + k] = static_cast<Index>(keys[k] >> 32);
            sorted_values[begin + k] =
                values[static_cast<std::size_t>(begin) + (keys[k] & 0xffffffff)];
        }
    }
}

}  // namespace adasdca
