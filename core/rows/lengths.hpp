// How long rows are, and how far from a point, in squares and in one pass.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rows/problem.hpp"

namespace adasdca {

// Rows between two looks at the clock.
inline constexpr std::int64_t rows_a_look = 4096;

// |x_i|^2 and |x_i - m|^2 for every row.
template <class T>
bool squares_about(const DenseMatrix<T>& x, const double* centre, double* squares, double* apart,
                   StopToken& token) {
    const std::int64_t d = x.d;
    for (std::int64_t i = 0; i < x.n; ++i) {
        if (i % rows_a_look == 0 && token.stop()) return false;
        const T* row = x.values + i * d;
        double square = 0, distance = 0;
#pragma omp simd reduction(+ : square, distance)
        for (std::int64_t j = 0; j < d; ++j) {
            const auto value = static_cast<double>(row[j]);
            const double away = value - centre[j];
            square += value * value;
            distance += away * away;
        }
        squares[i] = square;
        apart[i] = distance;
    }
    return true;
}

// Of sparse rows |x|^2 - 2 x.m + |m|^2, which has the rounding of its terms.
template <class T, class Index>
bool squares_about(const CsrMatrix<T, Index>& x, const double* centre, double* squares,
                   double* apart, StopToken& token) {
    double own = 0;
    for (std::int64_t j = 0; j < x.d; ++j) own += centre[j] * centre[j];
    for (std::int64_t i = 0; i < x.n; ++i) {
        if (i % rows_a_look == 0 && token.stop()) return false;
        double square = 0, toward = 0;
        for (std::int64_t k = x.start[i]; k < x.start[i + 1]; ++k) {
            const auto value = static_cast<double>(x.values[k]);
            square += value * value;
            toward += value * centre[x.columns[k]];
        }
        squares[i] = square;
        apart[i] = std::max(square - 2.0 * toward + own, 0.0);
    }
    return true;
}

}  // namespace adasdca
