// sum_i h_i x_i x_i^T, the matrix of a Newton step, and sums sum_i h_i f_i x_i beside it. Dense
// rows may be taken less a centre: a far one costs the digits of their differences.
//
// Columns that most sparse rows have are gathered into short dense panels, whose products run in
// registers; the few other entries of a row meet that panel by vectors, and each other one by one.
// (cov1: 54 -> 37 ns a row, ijcnn1 60 -> 35, against entry by entry and all dense.)
// Dense rows are turned over instead: see DensePart.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "rows/dense_panels.hpp"
#include "rows/turned.hpp"

namespace adasdca {

// Add sum_r z_r z_r^T, its lower tiles, for panels laid out one after the other.
inline void add_panels(const double* z, std::int64_t panels, std::int64_t width, double* out) {
    constexpr std::int64_t tile = GramColumns::tile;
    for (std::int64_t a = 0; a < width; a += tile)
        for (std::int64_t b = 0; b <= a; b += tile) {
            double sum[tile][tile] = {};
            for (std::int64_t r = 0; r < panels; ++r) {
                const double *za = z + r * width + a, *zb = z + r * width + b;
                ADASDCA_UNROLL(8)
                for (std::int64_t i = 0; i < tile; ++i)
#pragma omp simd
                    for (std::int64_t k = 0; k < tile; ++k) sum[i][k] += za[i] * zb[k];
            }
            for (std::int64_t i = 0; i < tile; ++i)
                for (std::int64_t k = 0; k < tile; ++k) out[(a + i) * width + b + k] += sum[i][k];
        }
}

// Add sum_r f_r z_r for panels laid out one after the other, in registers: sums in memory would
// wait for each other from row to row (20,640 x 8: 3.6 -> 1.8 ns a row).
inline void add_sums(const double* z, const double* f, std::int64_t panels, std::int64_t width,
                     double* out) {
    constexpr std::int64_t tile = GramColumns::tile, chains = 2;
    for (std::int64_t a = 0; a < width; a += tile) {
        double sum[chains][tile] = {};
        std::int64_t r = 0;
        for (; r + chains <= panels; r += chains)
            for (std::int64_t c = 0; c < chains; ++c)
#pragma omp simd
                for (std::int64_t k = 0; k < tile; ++k)
                    sum[c][k] += f[r + c] * z[(r + c) * width + a + k];
        if (r < panels)
#pragma omp simd
            for (std::int64_t k = 0; k < tile; ++k) sum[0][k] += f[r] * z[r * width + a + k];
        for (std::int64_t k = 0; k < tile; ++k) out[a + k] += sum[0][k] + sum[1][k];
    }
}

// What is summed: h >= 0, and `factors` vectors f, one after the other; `centre` is for dense rows
// only, null: 0.
struct GramTerms {
    const double *h, *f;
    std::int64_t n, factors;
    const double* centre = nullptr;
};

// What a part of the rows needs: panels, their products, and the entries beside them.
struct GramPart {
    struct Entry {
        std::int32_t column, number;
        double value;
    };
    static constexpr std::int64_t panels = 64;
    Buffer<double> panel, square, mixed, factor, sums;
    Buffer<Entry> others;
    std::array<std::int64_t, panels + 1> start{};

    // A panel has one place more at the end of all, for what is no part of it.
    GramPart(const GramColumns& columns, std::int64_t factors)
        : panel(static_cast<std::size_t>(panels * columns.width + 1)),
          square(static_cast<std::size_t>(columns.width * columns.width), 0.0),
          mixed(columns.others.size() * static_cast<std::size_t>(columns.width), 0.0),
          factor(static_cast<std::size_t>(panels * factors)),
          sums(static_cast<std::size_t>(columns.width * factors), 0.0),
          others(static_cast<std::size_t>(panels) * columns.slot.size() + 1) {}
};

// Add the lower triangle of h x x^T, pair by pair. Columns of a row rise.
template <class Index, class Values>
void add_pairs(const SparseRow<Index, Values>& row, double h, double* out, std::int64_t d) {
    for (std::int64_t a = 0; a < row.size; ++a) {
        double* below = out + static_cast<std::int64_t>(row.columns[a]) * d;
        const double value = h * static_cast<double>(row.values[a]);
        for (std::int64_t b = 0; b <= a; ++b)
            below[row.columns[b]] += value * static_cast<double>(row.values[b]);
    }
}

// The lower triangle of sum_i h_i x_i x_i^T over some sparse rows; `out` is d x d, and `side` has
// d sums for every factor.
template <class Rows>
void write_gram(const Rows& rows, const GramColumns& columns, const GramTerms& terms,
                std::int64_t begin, std::int64_t end, GramPart& part, double* out, double* side,
                StopToken& token) {
    using Entry = GramPart::Entry;
    constexpr std::int64_t panels = GramPart::panels;
    auto &panel = part.panel, &square = part.square, &mixed = part.mixed, &factor = part.factor,
         &sums = part.sums;
    auto& others = part.others;
    auto& start = part.start;
    const auto d = static_cast<std::int64_t>(columns.slot.size());
    const std::int64_t width = columns.width, spare = panels * width, factors = terms.factors;
    const bool whole = columns.others.empty();
    std::fill(out, out + d * d, 0.0);
    std::fill(side, side + d * factors, 0.0);
    auto add = [&](std::int64_t filled) {
        add_panels(panel.data(), filled, width, square.data());
        for (std::int64_t m = 0; m < factors; ++m)
            add_sums(panel.data(), factor.data() + m * panels, filled, width,
                     sums.data() + m * width);
        if (whole) return;
        for (std::int64_t r = 0; r < filled; ++r) {
            const double* z = panel.data() + r * width;
            for (std::int64_t m = 0; m < factors; ++m)
                for (std::int64_t a = start[r]; a < start[r + 1]; ++a)
                    side[m * d + others[a].column] += factor[m * panels + r] * others[a].value;
            for (std::int64_t a = start[r]; a < start[r + 1]; ++a) {
                const Entry entry = others[a];
                double* to = mixed.data() + entry.number * width;
#pragma omp simd
                for (std::int64_t k = 0; k < width; ++k) to[k] += entry.value * z[k];
                // Columns of a row rise, so this is the lower triangle.
                double* below = out + entry.column * d;
                for (std::int64_t b = start[r]; b <= a; ++b)
                    below[others[b].column] += entry.value * others[b].value;
            }
        }
    };
    const std::int32_t* slot = columns.slot.data();
    std::int64_t filled = 0;
    double last = 1, root = 1;  // many losses have the same h in all rows
    for (std::int64_t i = begin; i < end; ++i) {
        if (i % 1024 == 0 && token.stop()) return;
        const double h = terms.h[i];
        if (h == 0) continue;
        if (width == 0) {
            add_pairs(rows[i], h, out, d);
            for (std::int64_t m = 0; m < factors; ++m) {
                const double f = h * terms.f[m * terms.n + i];
                for_each_entry(rows[i],
                               [&](std::int64_t j, double x) { side[m * d + j] += f * x; });
            }
            continue;
        }
        const std::int64_t first = filled * width;
        if (h != last) root = std::sqrt(last = h);
        for (std::int64_t m = 0; m < factors; ++m)
            factor[m * panels + filled] = root * terms.f[m * terms.n + i];
        double* z = panel.data();
        Entry* next = others.data() + start[filled];
        if (whole) {
            write_panel(rows[i], width, root, z + first);
        } else {
            std::fill_n(z + first, width, 0.0);
            // Every entry is written to both places, one of them a spare: no branch to mispredict.
            for_each_entry(rows[i], [&](std::int64_t j, double x) {
                const std::int64_t s = slot[j];
                const double value = root * x;
                z[s >= 0 ? first + s : spare] = value;
                *next = {static_cast<std::int32_t>(j), static_cast<std::int32_t>(-1 - s), value};
                next += s < 0;
            });
        }
        start[++filled] = next - others.data();
        // A panel is read as vectors long after it was written entry by entry: a vector's load
        // would wait for the entries' stores.
        if (filled == panels) add(std::exchange(filled, 0));
    }
    add(filled);
    auto put = [&](std::int64_t a, std::int64_t b, double value) {
        out[std::max(a, b) * d + std::min(a, b)] = value;
    };
    for (std::size_t a = 0; a < columns.dense.size(); ++a) {
        for (std::size_t b = 0; b <= a; ++b)
            put(columns.dense[a], columns.dense[b], square[a * width + b]);
        for (std::int64_t m = 0; m < factors; ++m)
            side[m * d + columns.dense[a]] = sums[m * width + a];
    }
    for (std::size_t a = 0; a < columns.others.size(); ++a)
        for (std::size_t b = 0; b < columns.dense.size(); ++b)
            put(columns.others[a], columns.dense[b], mixed[a * width + b]);
}

// Dense rows, turned over: a column of many rows is a vector, and so are the factors. Products of
// columns waste nothing where their number is no multiple of a vector's length, and all sums are
// vectors until the end. (n x 9: 17 -> 8 ns a row, n x 64: 216 -> 164, against panels of rows.)
struct DensePart {
#ifdef __AVX512F__
    static constexpr std::int64_t lanes = 8;
#else
    static constexpr std::int64_t lanes = 4;
#endif
    // Rows at a time, and the distance of columns: one that is no power of 2 spreads over the
    // cache.
    static constexpr std::int64_t rows = 128, stride = rows + 8;
    // Sums of so many columns with so many others stay in registers. With 32 of these, sums of
    // twice as many columns read a panel that the cache closest by does not hold half as often; of
    // few columns, larger blocks waste more at their ends.
    static constexpr std::int64_t wide = 4, highest = lanes == 8 ? 4 : 2, few = 16;

    std::int64_t d, all;   // features, and with factors
    std::int64_t high;     // those that meet `wide` others
    std::int64_t columns;  // in whole blocks
    Buffer<double> panel, sums;

    DensePart(std::int64_t features, std::int64_t factors)
        : d(features),
          all(features + factors),
          high(all > few ? highest : 2),
          columns((all + wide - 1) / wide * wide),
          panel(static_cast<std::size_t>(columns * stride)) {
        // The others are written.
        std::fill(panel.begin() + all * stride, panel.end(), 0.0);
        std::int64_t blocks = 0;
        each_block([&](std::int64_t, std::int64_t) { ++blocks; });
        sums.assign(static_cast<std::size_t>(blocks * high * wide * lanes), 0.0);
    }

    // f(first of the columns, first of the others) for the blocks of the lower triangle; factors
    // meet features alone.
    template <class F>
    void each_block(F&& f) const {
        for (std::int64_t a = 0; a < all; a += high)
            for (std::int64_t b = 0; b <= std::min(a, d - 1); b += wide) f(a, b);
    }

    template <std::int64_t lines>
    static void add_products(const double* a, const double* b, std::int64_t count, double* out) {
        constexpr std::int64_t block = lines * wide * lanes;
        double sum[lines][wide][lanes];
        std::copy_n(out, block, &sum[0][0][0]);
        for (std::int64_t r = 0; r < count; r += lanes) {
            ADASDCA_UNROLL(8)
            for (std::int64_t i = 0; i < lines; ++i) ADASDCA_UNROLL(8)
            for (std::int64_t k = 0; k < wide; ++k)
#pragma omp simd
                for (std::int64_t l = 0; l < lanes; ++l)
                    sum[i][k][l] += a[i * stride + r + l] * b[k * stride + r + l];
        }
        std::copy_n(&sum[0][0][0], block, out);
    }

    // Add what the first rows of the panel come to.
    void add(std::int64_t filled) {
        const std::int64_t whole = (filled + lanes - 1) / lanes * lanes;
        for (std::int64_t j = 0; j < columns; ++j)
            std::fill(panel.data() + j * stride + filled, panel.data() + j * stride + whole, 0.0);
        double* to = sums.data();
        auto add_all = [&](auto lines) {
            each_block([&](std::int64_t a, std::int64_t b) {
                add_products<decltype(lines)::value>(panel.data() + a * stride,
                                                     panel.data() + b * stride, whole, to);
                to += high * wide * lanes;
            });
        };
        if (high == 2)
            add_all(std::integral_constant<std::int64_t, 2>{});
        else
            add_all(std::integral_constant<std::int64_t, highest>{});
    }

    // Turn the first of the chosen rows over, and add what they come to.
    template <class Rows>
    ADASDCA_NOINLINE void add(const Rows& given, const GramTerms& terms, const std::int64_t* chosen,
                              std::int64_t filled) {
        filled = std::min(filled, rows);  // never more: or GCC warns of what such a loop might do
        turn_over([&](std::int64_t r) { return given[chosen[r]].values; }, filled, d, panel.data(),
                  stride);
        double root[rows];
        for (std::int64_t r = 0; r < filled; ++r) root[r] = terms.h[chosen[r]];
        // Many losses have the same h in all rows.
        const double first = root[0];
        std::int64_t others = 0;
#pragma omp simd reduction(+ : others)
        for (std::int64_t r = 0; r < filled; ++r) others += root[r] != first;
        const bool plain = !terms.centre && others == 0 && first == 1.0;
        if (others == 0)
            std::fill_n(root, filled, std::sqrt(first));
        else
            for (std::int64_t r = 0; r < filled; ++r) root[r] = std::sqrt(root[r]);
        for (std::int64_t j = 0; j < d && !plain; ++j) {
            double* column = panel.data() + j * stride;
            const double middle = terms.centre ? terms.centre[j] : 0.0;
#pragma omp simd
            for (std::int64_t r = 0; r < filled; ++r) column[r] = root[r] * (column[r] - middle);
        }
        for (std::int64_t m = 0; m < terms.factors; ++m)
            for (std::int64_t r = 0; r < filled; ++r)
                panel[(d + m) * stride + r] = root[r] * terms.f[m * terms.n + chosen[r]];
        add(filled);
    }

    template <class Rows>
    void run(const Rows& given, const GramTerms& terms, std::int64_t begin, std::int64_t end,
             double* out, double* side, StopToken& token) {
        std::fill(out, out + d * d, 0.0);
        std::fill(side, side + d * terms.factors, 0.0);
        std::int64_t filled = 0, chosen[rows];
        for (std::int64_t i = begin; i < end; ++i) {
            if (i % 1024 == 0 && token.stop()) return;
            if (terms.h[i] == 0) continue;
            chosen[filled] = i;
            if (++filled == rows) add(given, terms, chosen, std::exchange(filled, 0));
        }
        if (filled > 0) add(given, terms, chosen, filled);
        const double* from = sums.data();
        each_block([&](std::int64_t a, std::int64_t b) {
            for (std::int64_t i = a; i < a + high; ++i)
                for (std::int64_t k = b; k < b + wide; ++k, from += lanes) {
                    double sum = 0;
                    for (std::int64_t l = 0; l < lanes; ++l) sum += from[l];
                    if (i < d && k <= i)
                        out[i * d + k] = sum;
                    else if (i >= d && i < all && k < d)
                        side[(i - d) * d + k] = sum;
                }
        });
    }
};

// The same over all rows. Many rows of few features are summed in four parts, whatever the threads:
// the result must not depend on their number.
inline bool gram(const Iterate& it, const GramColumns& columns, const GramTerms& terms, double* out,
                 double* side, int threads, StopToken& token) {
    const std::int64_t n = it.problem->n, d = it.problem->d;
    const std::int64_t parts = n >= 1 << 14 && d * d <= 1 << 17 ? 4 : 1;
    const std::int64_t matrix = d * d, size = matrix + d * terms.factors;
    Buffer<double> rest(static_cast<std::size_t>((parts - 1) * size));
    const int used = worthwhile(columns.time * static_cast<double>(n), threads);
    with_rows(it, [&]<class Rows>(const Rows& rows) {
        constexpr bool dense = !requires { rows[0].columns; };
        using Part = std::conditional_t<dense, DensePart, GramPart>;
        // Not on the threads, where want of memory would end the process.
        std::vector<Part> part;  // made in place: a copy takes as long as the sums of 100 rows
        part.reserve(static_cast<std::size_t>(parts));
        for (std::int64_t k = 0; k < parts; ++k)
            if constexpr (dense)
                part.emplace_back(d, terms.factors);
            else
                part.emplace_back(columns, terms.factors);
        for_each_piece(parts, used, token, [&](std::int64_t k) {
            double* to = k == 0 ? out : rest.data() + (k - 1) * size;
            double* sums = k == 0 ? side : to + matrix;
            const std::int64_t begin = k * n / parts, end = (k + 1) * n / parts;
            if constexpr (dense)
                part[k].run(rows, terms, begin, end, to, sums, token);
            else
                write_gram(rows, columns, terms, begin, end, part[k], to, sums, token);
        });
    });
    for (std::int64_t k = 1; k < parts; ++k) {
        const double* more = rest.data() + (k - 1) * size;
        for (std::int64_t j = 0; j < matrix; ++j) out[j] += more[j];
        for (std::int64_t j = 0; j < d * terms.factors; ++j) side[j] += more[matrix + j];
    }
    return !token.stopped();
}

}  // namespace adasdca
