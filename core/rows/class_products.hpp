// Products of the rows with a vector for every class, and a multinomial model's curvature between.
//
// A block has a line for every feature or row, with a place for every class, some more to fill
// vectors up: an entry of a row meets all classes in a few operations. (20 classes, 1.4 million
// entries: there and back in 17 ms in single precision and 24 in double, against SciPy's 33 without
// the curvature; 15,000 x 784 dense, 10 classes: 15 and 23 ms, against 42 by BLAS.)
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include "math/exact.hpp"
#include "rows/problem.hpp"
#include "system/parallel.hpp"

namespace adasdca {

inline constexpr std::int64_t class_lanes = 8;  // lines are multiples of these

// c_i (diag p_i - p_i p_i^T) for every row; `own` is its class, from whose score on differences
// keep their digits.
template <class Real>
struct ClassCurvature {
    const Real* p;
    const std::int64_t* own;
    const double* weight;  // null: all ones

    // Turn scores into what their curvature makes of them, and add that to the sums.
    template <class Lanes>
    ADASDCA_INLINE void operator()(std::int64_t i, Real* s, double* sums, Lanes lanes) const {
        const Real* pi = p + i * lanes;
        const Real at = s[own[i]], c = weight ? static_cast<Real>(weight[i]) : Real(1);
        Real mean = 0;
#pragma omp simd reduction(+ : mean)
        for (std::int64_t l = 0; l < lanes; ++l) {
            s[l] -= at;
            mean += pi[l] * s[l];
        }
#pragma omp simd
        for (std::int64_t l = 0; l < lanes; ++l) {
            s[l] = c * pi[l] * (s[l] - mean);
            sums[l] += static_cast<double>(s[l]);
        }
    }
};

// What rows meet: scores s_i = shift + x_i V go through `between`, and out gets sum_i x_i^T s_i.
// Without V they begin at the line of a row in `scores`; without `out` they are left there.
template <class Real>
struct ClassBlocks {
    const Real *v, *shift;
    Real *scores, *out;
    double* sums;
    bool squared = false;  // x_i is what its entries squared are
};

// A number of lanes is known when compiled, and sums then run in registers, or it is not.
template <class Lanes>
inline constexpr bool fixed_lanes = !std::is_same_v<Lanes, std::int64_t>;

template <class Real, class Lanes, std::int64_t lines>
auto class_lines(Lanes lanes) {
    if constexpr (fixed_lanes<Lanes>)
        return std::array<Real, static_cast<std::size_t>(lines * Lanes::value)>{};
    else
        return std::vector<Real>(static_cast<std::size_t>(lines * lanes));
}

// Some rows of a sparse matrix.
template <class Real, class T, class Index, class Lanes, class Between>
void some_products(const CsrMatrix<T, Index>& x, const double*, const ClassBlocks<Real>& b,
                   Lanes lanes, Between&& between, std::int64_t from_row, std::int64_t to_row,
                   StopToken& token) {
    constexpr std::int64_t ahead = 8;
    auto line = class_lines<Real, Lanes, 1>(lanes);
    Real* s = line.data();
    const std::int64_t last = x.start[x.n];
    for (std::int64_t i = from_row; i < to_row; ++i) {
        if (i % 1024 == 0 && token.stop()) return;
        const std::int64_t begin = x.start[i], end = x.start[i + 1];
        const Real* from = b.v ? b.shift : b.scores + i * lanes;
        for (std::int64_t l = 0; l < lanes; ++l) s[l] = from ? from[l] : Real(0);
        if (b.v)
            for (std::int64_t e = begin; e < end; ++e) {
                ADASDCA_PREFETCH(b.v + x.columns[std::min(e + ahead, last - 1)] * lanes);
                const Real* v = b.v + x.columns[e] * lanes;
                const Real value = static_cast<Real>(x.values[e]);
#pragma omp simd
                for (std::int64_t l = 0; l < lanes; ++l) s[l] += value * v[l];
            }
        between(i, s, b.sums, lanes);
        if (b.out)
            for (std::int64_t e = begin; e < end; ++e) {
                ADASDCA_PREFETCH(b.out + x.columns[std::min(e + ahead, last - 1)] * lanes);
                Real* out = b.out + x.columns[e] * lanes;
                const Real entry = static_cast<Real>(x.values[e]);
                const Real value = b.squared ? entry * entry : entry;
#pragma omp simd
                for (std::int64_t l = 0; l < lanes; ++l) out[l] += value * s[l];
            }
        else
            for (std::int64_t l = 0; l < lanes; ++l) b.scores[i * lanes + l] = s[l];
    }
}

// Add z V to s for some dense rows z: as many at a time as registers hold sums of.
template <std::int64_t many, class Real, class Lanes>
ADASDCA_INLINE void multiply(const Real* z, std::int64_t d, const Real* v, Real* s, Lanes lanes) {
    if constexpr (fixed_lanes<Lanes>) {
#ifdef __AVX512F__
        constexpr std::int64_t bytes = 24 * 64;
#else
        constexpr std::int64_t bytes = 10 * 32;
#endif
        constexpr auto line = static_cast<std::int64_t>(Lanes::value * sizeof(Real));
        constexpr std::int64_t part = line * 8 <= bytes ? 8 : line * 4 <= bytes ? 4 : 2;
        for (std::int64_t first = 0; first < many; first += part) {
            Real sum[part][Lanes::value] = {};
            for (std::int64_t j = 0; j < d; ++j) {
                ADASDCA_UNROLL(8)
                for (std::int64_t r = 0; r < part; ++r)
#pragma omp simd
                    for (std::int64_t l = 0; l < Lanes::value; ++l)
                        sum[r][l] += z[(first + r) * d + j] * v[j * Lanes::value + l];
            }
            for (std::int64_t r = 0; r < part; ++r)
                for (std::int64_t l = 0; l < lanes; ++l) s[(first + r) * lanes + l] += sum[r][l];
        }
    } else {
        for (std::int64_t j = 0; j < d; ++j)
            for (std::int64_t r = 0; r < many; ++r)
#pragma omp simd
                for (std::int64_t l = 0; l < lanes; ++l)
                    s[r * lanes + l] += z[r * d + j] * v[j * lanes + l];
    }
}

// Add z^T s to out.
template <std::int64_t many, class Real, class Lanes>
ADASDCA_INLINE void scatter_rows(const Real* z, std::int64_t d, const Real* s, Real* out,
                                 Lanes lanes) {
    for (std::int64_t j = 0; j < d; ++j) {
        Real* line = out + j * lanes;
        if constexpr (fixed_lanes<Lanes>) {
            Real sum[Lanes::value] = {};
            ADASDCA_UNROLL(8)
            for (std::int64_t r = 0; r < many; ++r)
#pragma omp simd
                for (std::int64_t l = 0; l < Lanes::value; ++l)
                    sum[l] += z[r * d + j] * s[r * Lanes::value + l];
#pragma omp simd
            for (std::int64_t l = 0; l < Lanes::value; ++l) line[l] += sum[l];
        } else {
            for (std::int64_t r = 0; r < many; ++r)
#pragma omp simd
                for (std::int64_t l = 0; l < lanes; ++l) line[l] += z[r * d + j] * s[r * lanes + l];
        }
    }
}

// Some rows of a dense one, less `centre`; a few at a time, for one load of a line serves them all.
template <class Real, class T, class Lanes, class Between>
void some_products(const DenseMatrix<T>& x, const double* centre, const ClassBlocks<Real>& b,
                   Lanes lanes, Between&& between, std::int64_t from_row, std::int64_t to_row,
                   StopToken& token) {
    constexpr std::int64_t many = 8;
    const std::int64_t d = x.d;
    std::vector<Real> z(static_cast<std::size_t>(many * d), Real(0));
    auto lines = class_lines<Real, Lanes, many>(lanes);
    Real* s = lines.data();
    for (std::int64_t first = from_row; first < to_row; first += many) {
        if ((first - from_row) % 256 == 0 && token.stop()) return;
        const std::int64_t rows = std::min(many, to_row - first);
        for (std::int64_t r = 0; r < many; ++r) {
            // Rows beyond the last one are 0, and add nothing.
            const T* xi = x.values + (first + std::min(r, rows - 1)) * d;
            Real* zr = z.data() + r * d;
            const double there = r < rows ? 1.0 : 0.0;
            if (centre)
#pragma omp simd
                for (std::int64_t j = 0; j < d; ++j)
                    zr[j] = static_cast<Real>(there * (static_cast<double>(xi[j]) - centre[j]));
            else
#pragma omp simd
                for (std::int64_t j = 0; j < d; ++j)
                    zr[j] = static_cast<Real>(there) * static_cast<Real>(xi[j]);
            if (b.squared)
#pragma omp simd
                for (std::int64_t j = 0; j < d; ++j) zr[j] *= zr[j];
            const Real* from = b.v ? b.shift : b.scores + (first + std::min(r, rows - 1)) * lanes;
            for (std::int64_t l = 0; l < lanes; ++l)
                s[r * lanes + l] = from && r < rows ? from[l] : Real(0);
        }
        if (b.v) multiply<many>(z.data(), d, b.v, s, lanes);
        for (std::int64_t r = 0; r < rows; ++r) between(first + r, s + r * lanes, b.sums, lanes);
        if (b.out)
            scatter_rows<many>(z.data(), d, s, b.out, lanes);
        else
            std::copy(s, s + rows * lanes, b.scores + first * lanes);
    }
}

// Rows are taken in so many parts, with sums of their own: whatever the threads, the same bits. To
// add these up takes a sixteenth of the products at most, and a part is worth a thread.
inline std::int64_t class_parts(std::int64_t n, std::int64_t d, std::int64_t stored,
                                std::int64_t lanes) {
    constexpr std::int64_t most = 16, least_rows = 256, least_products = 1 << 23;
    const std::int64_t lines = stored / (8 * d), work = stored * lanes / least_products;
    return std::clamp<std::int64_t>(std::min({lines, work, n / least_rows}), 1, most);
}

// Where parts but the first have their sums, kept from one call to the next: fresh memory takes as
// long as to add them up.
struct ClassSpace {
    std::tuple<std::vector<float>, std::vector<double>> outs;
    std::vector<double> sums;
};

// All rows.
template <class Matrix, class Real, class Lanes, class Between>
void class_products(const Matrix& x, std::int64_t stored, const double* centre,
                    const ClassBlocks<Real>& b, Lanes lanes, Between&& between, int threads,
                    ClassSpace& space, StopToken& token) {
    const std::int64_t parts = class_parts(x.n, x.d, stored, lanes);
    const std::int64_t size = b.out ? x.d * lanes : 0, few = b.sums ? std::int64_t{lanes} : 0;
    auto& outs = std::get<std::vector<Real>>(space.outs);
    outs.resize(std::max(outs.size(), static_cast<std::size_t>((parts - 1) * size)));
    space.sums.resize(std::max(space.sums.size(), static_cast<std::size_t>((parts - 1) * few)));
    // To meet a class takes an entry 0.1 ns, about.
    threads = worthwhile(0.1 * static_cast<double>(stored * lanes), threads);
    for_each_piece(parts, threads, token, [&](std::int64_t part) {
        ClassBlocks<Real> own = b;
        if (part > 0) {
            own.out = size ? outs.data() + (part - 1) * size : b.out;
            own.sums = few ? space.sums.data() + (part - 1) * few : b.sums;
            std::fill(own.out, own.out + size, Real(0));
            std::fill(own.sums, own.sums + few, 0.0);
        }
        some_products(x, centre, own, lanes, between, x.n * part / parts, x.n * (part + 1) / parts,
                      token);
    });
    for (std::int64_t part = 0; part + 1 < parts; ++part) {
#pragma omp simd
        for (std::int64_t k = 0; k < size; ++k) b.out[k] += outs[part * size + k];
        for (std::int64_t l = 0; l < few; ++l) b.sums[l] += space.sums[part * few + l];
    }
}

template <class T, class F>
void for_each_entry_of(const DenseMatrix<T>& x, std::int64_t i, F&& f) {
    for (std::int64_t j = 0; j < x.d; ++j) f(j, static_cast<double>(x.values[i * x.d + j]));
}
template <class T, class Index, class F>
void for_each_entry_of(const CsrMatrix<T, Index>& x, std::int64_t i, F&& f) {
    for (std::int64_t e = x.start[i]; e < x.start[i + 1]; ++e)
        f(static_cast<std::int64_t>(x.columns[e]), static_cast<double>(x.values[e]));
}

// sum_i x_i^T r_i and sum_i r_i in twice the digits: as doubles, and behind them all that these
// lose. Every r_i adds up to 0 without any rounding: what is in the place `spare` of it is taken to
// be what the others leave.
template <class Matrix>
void gather_exactly(const Matrix& x, const double* r, const std::int64_t* spare, std::int64_t lanes,
                    double* out, double* sums, StopToken& token) {
    const auto size = static_cast<std::size_t>(lanes);
    std::vector<Twofold> lines(static_cast<std::size_t>(x.d) * size), total(size), line(size);
    for (std::int64_t i = 0; i < x.n; ++i) {
        if (i % 256 == 0 && token.stop()) return;
        Twofold left;
        for (std::int64_t l = 0; l < lanes; ++l) {
            line[l] = {r[i * lanes + l], 0.0};
            if (l != spare[i]) left.add(-line[l].sum);
        }
        line[spare[i]] = left;
        for (std::int64_t l = 0; l < lanes; ++l) total[l] += line[l];
        for_each_entry_of(x, i, [&](std::int64_t j, double value) {
            Twofold* to = lines.data() + j * lanes;
            for (std::int64_t l = 0; l < lanes; ++l) {
                to[l].add_product(line[l].sum, value);
                to[l].rest += line[l].rest * value;
            }
        });
    }
    const auto write = [](const std::vector<Twofold>& from, double* to) {
        for (const Twofold& each : from) *to++ = each.value();
        for (const Twofold& each : from) *to++ = each.lost();
    };
    write(lines, out);
    write(total, sums);
}

// Call f with the number of lanes, as a constant if it is small.
template <class F>
void with_lanes(std::int64_t lanes, F&& f) {
    switch (lanes) {
        case 8:
            return f(std::integral_constant<std::int64_t, 8>{});
        case 16:
            return f(std::integral_constant<std::int64_t, 16>{});
        case 24:
            return f(std::integral_constant<std::int64_t, 24>{});
        case 32:
            return f(std::integral_constant<std::int64_t, 32>{});
        default:
            return f(lanes);
    }
}

}  // namespace adasdca
