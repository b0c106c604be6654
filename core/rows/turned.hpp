// Dense rows turned over: entry j of row r goes to panel[j * stride + r]. A column of many rows is
// a vector then, and sums over the entries of short rows need not be added up row by row.
#pragma once

#include <algorithm>
#include <cstdint>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "rows/rows.hpp"

namespace adasdca {

#ifdef __AVX512F__
inline __m512d load_some(__mmask8 mask, const double* x) {
    return _mm512_maskz_loadu_pd(mask, x);
}
inline __m512d load_some(__mmask8 mask, const float* x) {
    return _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, x));
}

// Eight rows of at most eight entries, in registers (scores of 59,535 x 8: 4.2 -> 2.3 ns a row
// against row by row, of 150,000 x 8 in single precision 8.6 -> 2.0).
template <class Row>
ADASDCA_INLINE void turn_eight(Row&& row, std::int64_t j, std::int64_t columns, double* to,
                               std::int64_t stride) {
    const auto mask = static_cast<__mmask8>((1u << columns) - 1);
    __m512d pair[8], even[4], odd[4];
    for (std::int64_t k = 0; k < 8; k += 2) {
        const __m512d a = load_some(mask, row(k) + j), b = load_some(mask, row(k + 1) + j);
        pair[k] = _mm512_unpacklo_pd(a, b);
        pair[k + 1] = _mm512_unpackhi_pd(a, b);
    }
    for (std::int64_t c = 0; c < 2; ++c) {
        for (std::int64_t k = 0; k < 2; ++k) {
            const __m512d a = pair[4 * k + c], b = pair[4 * k + 2 + c];
            even[2 * c + k] = _mm512_shuffle_f64x2(a, b, 0x88);
            odd[2 * c + k] = _mm512_shuffle_f64x2(a, b, 0xdd);
        }
        auto store = [&](std::int64_t column, __m512d x) ADASDCA_INLINED {
            if (column < columns) _mm512_storeu_pd(to + column * stride, x);
        };
        store(c, _mm512_shuffle_f64x2(even[2 * c], even[2 * c + 1], 0x88));
        store(c + 2, _mm512_shuffle_f64x2(odd[2 * c], odd[2 * c + 1], 0x88));
        store(c + 4, _mm512_shuffle_f64x2(even[2 * c], even[2 * c + 1], 0xdd));
        store(c + 6, _mm512_shuffle_f64x2(odd[2 * c], odd[2 * c + 1], 0xdd));
    }
}
#endif

// row(r) is where row r begins.
template <class Row>
ADASDCA_INLINE void turn_over(Row&& row, std::int64_t count, std::int64_t d, double* panel,
                              std::int64_t stride) {
    std::int64_t r = 0;
#ifdef __AVX512F__
    for (; r + 8 <= count; r += 8)
        for (std::int64_t j = 0; j < d; j += 8)
            turn_eight([&](std::int64_t k) { return row(r + k); }, j,
                       std::min<std::int64_t>(d - j, 8), panel + j * stride + r, stride);
#endif
    for (; r < count; ++r) {
        const auto* x = row(r);
        for (std::int64_t j = 0; j < d; ++j) panel[j * stride + r] = static_cast<double>(x[j]);
    }
}

// Neighbouring rows of few entries, some at a time.
struct TurnedRows {
    // Of longer rows the entries are read side by side (20,000 x 100 in single precision: 1.9 ->
    // 0.5 ms).
    static constexpr std::int64_t longest = 32, rows = 64, lanes = 8;
    double panel[longest * rows];

    // Rows that are not there are 0.
    template <class T>
    ADASDCA_INLINE void fill(const T* values, std::int64_t d, std::int64_t count) {
        if (count < rows) std::fill(panel, panel + d * rows, 0.0);
        turn_over([=](std::int64_t r) { return values + r * d; }, count, d, panel, rows);
    }

    // The sum over j of f(j, x_rj) for all rows, in two chains.
    template <class F>
    ADASDCA_INLINE void sums(std::int64_t d, double* out, F&& f) const {
        for (std::int64_t r = 0; r < rows; r += lanes) {
            double even[lanes] = {}, odd[lanes] = {};
            const double* column = panel + r;
            std::int64_t j = 0;
            for (; j + 2 <= d; j += 2, column += 2 * rows) {
#pragma omp simd
                for (std::int64_t l = 0; l < lanes; ++l) {
                    even[l] += f(j, column[l]);
                    odd[l] += f(j + 1, column[rows + l]);
                }
            }
#pragma omp simd
            for (std::int64_t l = 0; l < lanes; ++l)
                out[r + l] = even[l] + odd[l] + (j < d ? f(j, column[l]) : 0.0);
        }
    }
};

// f(turned, first row, rows) for rows from `begin` to `end`.
template <class T, class F>
ADASDCA_INLINE void each_turned(const T* values, std::int64_t d, std::int64_t begin,
                                std::int64_t end, F&& f) {
    TurnedRows turned;
    for (std::int64_t i = begin; i < end; i += TurnedRows::rows) {
        const std::int64_t count = std::min(end - i, TurnedRows::rows);
        turned.fill(values + i * d, d, count);
        f(turned, i, count);
    }
}

}  // namespace adasdca
