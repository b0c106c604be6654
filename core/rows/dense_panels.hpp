// Rows as short dense panels of the commonest columns.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "rows/passes.hpp"

namespace adasdca {

// How many of the commonest columns are gathered, and the nanoseconds of a row that it takes.
struct PanelChoice {
    static constexpr std::int64_t tile = 8, narrow = 64;
    static constexpr double pair = 0.55;  // half of 1.1 for a pair of other entries
    std::int64_t columns = 0;
    double time = std::numeric_limits<double>::infinity();

    // That of least cost, as measured: 2.2 for a tile of the panel's product, 0.7 for a vector of
    // the panel met by another entry (2 where those sums outgrow the first-level cache), 2 to sort
    // an entry into its place (0.5 where all of a few columns are gathered, 0 where none is).
    // Given are the shares of the rows that have a column, falling and 0 after their end, and the
    // mean square of the number of entries of a row.
    PanelChoice(std::span<const double> shares, double squares, std::int64_t d) {
        const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
        double left = all;
        for (std::int64_t k = 0;; k = std::min(d, k + tile)) {
            const double tiles = static_cast<double>((k + tile - 1) / tile);
            const double share = all > 0 ? left / all : 0;
            const double vector =
                (static_cast<double>(d) - 8 * tiles) * tiles * 64 < 24e3 ? 0.7 : 2.0;
            const double sorting = k == 0 ? 0.0 : k == d && d <= narrow ? 0.5 : 2.0;
            const double cost = 2.2 * tiles * (tiles + 1) / 2 + vector * left * tiles +
                                pair * squares * share * share + sorting * all;
            if (cost < time) {
                time = cost;
                columns = k;
            }
            if (k == d || 2.2 * tiles * tiles / 2 > time) return;
            const auto end = std::min<std::int64_t>({d, k + tile, std::ssize(shares)});
            for (std::int64_t j = k; j < end; ++j) left -= shares[j];
        }
    }
};

// Which columns are gathered: panel[slot[j]] for those, slot[j] = -1 - (number among the others).
struct GramColumns {
    static constexpr std::int64_t tile = PanelChoice::tile, narrow = PanelChoice::narrow;
    std::vector<std::int32_t> slot, dense, others;
    std::int64_t width = 0;  // length of a panel, a multiple of `tile`
    double time = 0;         // nanoseconds of a row's part of the matrix, roughly

    explicit GramColumns(const Iterate& it) {
        const std::int64_t d = it.problem->d, n = it.problem->n;
        slot.resize(static_cast<std::size_t>(d));
        if (is_dense(it)) {
            width = (d + tile - 1) / tile * tile;
            const auto tiles = static_cast<double>(width / tile);
            time = 2.2 * tiles * (tiles + 1) / 2 + 0.5 * static_cast<double>(d);
            std::iota(slot.begin(), slot.end(), 0);
            dense = slot;
            return;
        }
        std::vector<std::int64_t> count(static_cast<std::size_t>(d), 0);
        double squares = 0;
        with_rows(it, [&](const auto& rows) {
            // Every 16th row tells enough.
            for (std::int64_t i = 0; i < n; i += n < 4096 ? 1 : 16) {
                std::int64_t size = 0;
                for_each_entry(rows[i], [&](std::int64_t j, double x) {
                    count[j] += x != 0;
                    ++size;
                });
                squares += static_cast<double>(size) * static_cast<double>(size);
            }
        });
        std::vector<std::int32_t> order(static_cast<std::size_t>(d));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::int32_t a, std::int32_t b) { return count[a] > count[b]; });
        const double unit =
            1.0 / static_cast<double>(n < 4096 ? std::max<std::int64_t>(n, 1) : (n + 15) / 16);
        std::vector<double> shares(static_cast<std::size_t>(d));
        for (std::int64_t j = 0; j < d; ++j)
            shares[j] = static_cast<double>(count[order[j]]) * unit;
        const PanelChoice choice(shares, squares * unit, d);
        const std::int64_t chosen = choice.columns;
        time = choice.time;
        width = (chosen + tile - 1) / tile * tile;
        dense.assign(order.begin(), order.begin() + chosen);
        std::sort(dense.begin(), dense.end());
        others.assign(order.begin() + chosen, order.end());
        for (std::size_t k = 0; k < dense.size(); ++k)
            slot[dense[k]] = static_cast<std::int32_t>(k);
        for (std::size_t k = 0; k < others.size(); ++k)
            slot[others[k]] = -1 - static_cast<std::int32_t>(k);
    }
};

#ifdef __AVX512F__
// The next values of a row, each to the place of a bit of the mask.
inline __m512d scatter(__mmask8 mask, const double* values) {
    return _mm512_maskz_expandloadu_pd(mask, values);
}
inline __m512d scatter(__mmask8 mask, const float* values) {
    return _mm512_cvtps_pd(_mm256_maskz_expandloadu_ps(mask, values));
}
inline __m512d scatter(__mmask8 mask, Ones) {
    return _mm512_maskz_mov_pd(mask, _mm512_set1_pd(1.0));
}

// By a mask of the columns, without a loop to mispredict (ijcnn1's matrix: 35 -> 28 ns a row).
template <class Values>
ADASDCA_INLINE void scatter_panel(const SparseRow<std::int32_t, Values>& row, std::int64_t width,
                                  double root, double* panel) {
    std::uint64_t mask = 0;
    for (std::int64_t k = 0; k < row.size; k += 8) {
        const auto some =
            static_cast<__mmask8>((1u << std::min<std::int64_t>(row.size - k, 8)) - 1);
        const __m512i column =
            _mm512_cvtepi32_epi64(_mm256_maskz_loadu_epi32(some, row.columns + k));
        mask |= static_cast<std::uint64_t>(
            _mm512_reduce_or_epi64(_mm512_maskz_sllv_epi64(some, _mm512_set1_epi64(1), column)));
    }
    Values values = row.values;
    for (std::int64_t k = 0; k < width; k += 8) {
        const auto some = static_cast<__mmask8>(mask >> k);
        _mm512_storeu_pd(panel + k, _mm512_mul_pd(_mm512_set1_pd(root), scatter(some, values)));
        if constexpr (!std::is_same_v<Values, Ones>)
            values += std::popcount(static_cast<unsigned>(some));
    }
}
#endif

// Write a sparse row that is all in the panel, where slots are columns, times `root`.
template <class Row>
ADASDCA_INLINE void write_panel(const Row& row, std::int64_t width, double root, double* panel) {
#ifdef __AVX512F__
    if constexpr (requires { scatter_panel(row, width, root, panel); })
        if (width <= GramColumns::narrow) return scatter_panel(row, width, root, panel);
#endif
    std::fill_n(panel, width, 0.0);
    for_each_entry(row, [&](std::int64_t j, double x) { panel[j] = root * x; });
}

}  // namespace adasdca
