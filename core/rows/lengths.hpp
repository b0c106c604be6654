// How long rows are, and how far from a point, in squares and in one pass.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rows/problem.hpp"
#include "rows/turned.hpp"

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

// x_i.w + b for every row, and the largest |x_i - m|^2.
template <class T>
double scores_about(const DenseMatrix<T>& x, const double* centre, const double* w, double b,
                    double* scores, StopToken& token) {
    const std::int64_t d = x.d;
    double farthest = 0;
    if (d > TurnedRows::longest) {
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
    for (std::int64_t first = 0; first < x.n && !token.stop(); first += rows_a_look)
        each_turned(x.values, d, first, std::min(x.n, first + rows_a_look),
                    [&](auto& turned, std::int64_t i, std::int64_t count) {
                        double score[TurnedRows::rows], distance[TurnedRows::rows];
                        turned.sums(d, score, [=](auto j, double a) { return a * w[j]; });
                        turned.sums(d, distance, [=](auto j, double a) {
                            return (a - centre[j]) * (a - centre[j]);
                        });
                        for (std::int64_t r = 0; r < count; ++r) {
                            scores[i + r] = score[r] + b;
                            farthest = std::max(farthest, distance[r]);
                        }
                    });
    return farthest;
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
