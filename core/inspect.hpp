// What has to be known of a CSR matrix before a kernel may trust it, in one pass.
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

template <class T, class Index>
Inspection inspect(std::span<const T> values, std::span<const Index> columns,
                   std::span<const std::int64_t> start, std::int64_t d) {
    Inspection result;
    const auto size = static_cast<std::int64_t>(std::min(values.size(), columns.size()));
    if (start.empty() || start.front() != 0 || start.back() > size) return {false, true, true};
    for (std::size_t i = 0; i + 1 < start.size(); ++i)
        if (start[i + 1] < start[i]) return {false, true, true};
    for (std::size_t i = 0; i + 1 < start.size(); ++i) {
        std::int64_t previous = -1;
        for (std::int64_t k = start[i]; k < start[i + 1]; ++k) {
            const auto j = static_cast<std::int64_t>(columns[k]);
            result.in_range = result.in_range && j >= 0 && j < d;
            result.canonical = result.canonical && j > previous;
            result.finite = result.finite && std::isfinite(values[k]);
            previous = j;
        }
    }
    return result;
}

}  // namespace adasdca
