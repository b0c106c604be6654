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

// Rows of fewer entries are read side by side, for their sums need not be added up row by row then
// (45,730 x 9: 0.63 -> 0.2 ms, against lengths and scores on their own); of longer ones the entries
// are (20,000 x 100 in single precision: 1.9 -> 0.5 ms).
inline constexpr std::int64_t side_by_side = 32;

// x_i.w + b for every row, and the largest |x_i - m|^2.
template <class T>
double scores_about(const DenseMatrix<T>& x, const double* centre, const double* w, double b,
                    double* scores, StopToken& token) {
    constexpr std::int64_t lanes = 8;
    const std::int64_t d = x.d;
    if (d >= side_by_side) {
        double farthest = 0;
        for (std::int64_t i = 0; i < x.n; ++i) {
            if (i % rows_a_look == 0 && token.stop()) break;
            const T* row = x.values + i * d;
            double score = 0, distance = 0;
#pragma omp simd reduction(+ : score, distance)
            for (std::int64_t j = 0; j < d; ++j) {
                const auto value = static_cast<double>(row[j]);
                const double away = value - centre[j];
                score += value * w[j];
                distance += away * away;
            }
            scores[i] = score + b;
            farthest = std::max(farthest, distance);
        }
        return farthest;
    }
    double farthest[lanes] = {};
    for (std::int64_t first = 0; first < x.n; first += lanes) {
        if (first % rows_a_look == 0 && token.stop()) break;
        const std::int64_t count = std::min(lanes, x.n - first);
        const T* rows = x.values + first * d;
        // The last rows of all are fewer: the first of them stands for those that are not there.
        std::int64_t place[lanes];
        for (std::int64_t l = 0; l < lanes; ++l) place[l] = l < count ? l * d : 0;
        double score[lanes], distance[lanes] = {};
        std::fill(score, score + lanes, b);
        for (std::int64_t j = 0; j < d; ++j)
#pragma omp simd
            for (std::int64_t l = 0; l < lanes; ++l) {
                const auto value = static_cast<double>(rows[place[l] + j]);
                const double away = value - centre[j];
                score[l] += value * w[j];
                distance[l] += away * away;
            }
        for (std::int64_t l = 0; l < lanes; ++l) farthest[l] = std::max(farthest[l], distance[l]);
        std::copy(score, score + count, scores + first);
    }
    return *std::max_element(farthest, farthest + lanes);
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
