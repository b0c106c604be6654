// Passes over all rows, in a fixed order of summation: the result does not depend on the threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "math/exact.hpp"
#include "rows/problem.hpp"
#include "rows/turned.hpp"
#include "system/parallel.hpp"

namespace adasdca {

// Neumaier's compensated sum.
class Sum {
  public:
    void add(double x) {
        const double t = sum_ + x;
        rest_ += std::abs(sum_) >= std::abs(x) ? (sum_ - t) + x : (x - t) + sum_;
        sum_ = t;
    }
    double value() const { return sum_ + rest_; }

  private:
    double sum_ = 0, rest_ = 0;
};

// The weight of a row in the adaptive distribution, eq. (optipsdf) with sample weights:
// |kappa| sqrt(c (q + gamma)); where gamma = 0 the residue need not vanish and the row's share of
// the gap, c G, takes its place.
inline double adaptive_weight(double gamma, double c, double q, double residue, double share) {
    return gamma > 0 ? std::abs(residue) * std::sqrt(c * (q + gamma)) : c * share;
}

// The blocks of rows of a problem, with their sample weights.
class RowBlocks {
  public:
    std::int64_t count;

    explicit RowBlocks(const Problem& problem)
        : count((problem.n + block_rows - 1) / block_rows), problem_(problem) {}

    // f(begin, rows, weights) for every block.
    template <class F>
    void each(int threads, StopToken& token, F&& f) const {
        for_each_piece(count, threads, token, [&](std::int64_t k) {
            const std::int64_t begin = k * block_rows;
            f(begin, std::min(problem_.n - begin, block_rows),
              problem_.weight ? problem_.weight + begin : ones.data());
        });
    }

  private:
    static constexpr std::array<double, block_rows> ones = [] {
        std::array<double, block_rows> all{};
        all.fill(1.0);
        return all;
    }();
    const Problem& problem_;
};

// Nanoseconds of a pass over the rows, roughly.
inline double pass_time(const Problem& problem) {
    return 0.5 * static_cast<double>(problem.nnz) + 5.0 * static_cast<double>(problem.n);
}

// f(begin, end, part) over chunks of rows; `part` is the chunk's own vector of d features, and
// `out` becomes the sum of the parts in the order of the chunks. The number of chunks depends on
// the problem alone: enough to share out and to keep the sums short, few enough that the parts cost
// little.
struct Chunks {
    std::int64_t rows, count;

    explicit Chunks(const Problem& problem) {
        const std::int64_t wanted = std::clamp<std::int64_t>(
            problem.nnz / (8 * std::max<std::int64_t>(problem.d, 1)), 1, 64);
        const std::int64_t blocks = (problem.n + block_rows - 1) / block_rows;
        rows = std::max<std::int64_t>((blocks + wanted - 1) / wanted, 1) * block_rows;
        count = (problem.n + rows - 1) / rows;
    }
    // The longest chain of additions to a feature.
    std::int64_t chain() const { return rows + count; }
};

// With more than one vector of features to a chunk, `sides` says how many.
template <class T, class F>  // T: double or Twofold
bool reduce_features(const Problem& problem, int threads, StopToken& token, T* out, F&& f,
                     int sides = 1) {
    const std::int64_t n = problem.n, d = sides * problem.d;
    const Chunks chunks(problem);
    Buffer<T> parts(static_cast<std::size_t>(std::max<std::int64_t>(chunks.count - 1, 0) * d));
    // Blocks between two looks at the clock: at most a few hundred thousand entries.
    const std::int64_t stride =
        std::clamp<std::int64_t>((n << 10) / std::max<std::int64_t>(problem.nnz, 1), 1, 64);
    threads = worthwhile(pass_time(problem), threads);
    auto add = [&](std::int64_t k) {
        T* part = k == 0 ? out : parts.data() + (k - 1) * d;
        std::fill(part, part + d, T{});
        const std::int64_t end = std::min(n, (k + 1) * chunks.rows);
        for (std::int64_t begin = k * chunks.rows; begin < end; begin += block_rows) {
            if (begin / block_rows % stride == 0 && token.stop()) return;
            f(begin, std::min(end, begin + block_rows), part);
        }
    };
    // Parts are cleared by the threads that add to them, and added up by all threads, some features
    // each: 64 parts of 200,000 features are 100 MB, which one thread would pass through alone.
    constexpr std::int64_t slice = 1 << 10;
    auto merge = [&](std::int64_t piece) {
        const std::int64_t begin = piece * slice, end = std::min(d, begin + slice);
        for (std::int64_t k = 1; k < chunks.count; ++k) {
            const T* part = parts.data() + (k - 1) * d;
            for (std::int64_t j = begin; j < end; ++j) out[j] += part[j];
        }
    };
    const std::int64_t slices = chunks.count > 1 ? (d + slice - 1) / slice : 0;
    for_each_piece(chunks.count, slices, threads, token, add, merge);
    return !token.stopped();
}

template <class Rows>
inline constexpr bool are_dense = !requires(const Rows& rows) { rows[0].columns; };

// Add sum_i c_i x_i over dense rows, c_i = f(i), four at a time: sums in memory wait for each other
// from row to row (59,535 x 8: 3.4 -> 0.95 ns a row). f is asked for a few rows before any is
// added.
template <class T, class F>
ADASDCA_INLINE void add_rows(const DenseRows<T>& rows, std::int64_t begin, std::int64_t end,
                             double* part, F&& f) {
    constexpr std::int64_t few = 4;
    const std::int64_t d = rows.d;
    std::int64_t i = begin;
    for (; i + few <= end; i += few) {
        const T *x0 = rows.values + i * d, *x1 = x0 + d, *x2 = x1 + d, *x3 = x2 + d;
        const double c0 = f(i), c1 = f(i + 1), c2 = f(i + 2), c3 = f(i + 3);
        if (c0 == 0 && c1 == 0 && c2 == 0 && c3 == 0) continue;
#pragma omp simd
        for (std::int64_t j = 0; j < d; ++j)
            part[j] += (c0 * static_cast<double>(x0[j]) + c1 * static_cast<double>(x1[j])) +
                       (c2 * static_cast<double>(x2[j]) + c3 * static_cast<double>(x3[j]));
    }
    for (; i < end; ++i) {
        const double c = f(i);
        if (c != 0) rows[i].each([&](std::int64_t j, double x) { part[j] += c * x; });
    }
}

// u = sum_i scale_i beta_i x_i for any dual vector.
inline bool combine(const Iterate& it, const double* beta, double* u, int threads,
                    StopToken& token) {
    return with_rows(it, [&](const auto& rows) {
        return reduce_features(
            *it.problem, threads, token, u,
            [&](std::int64_t begin, std::int64_t end, double* part) {
                if constexpr (are_dense<std::decay_t<decltype(rows)>>) {
                    // Without weights all scales are alike, and no state is read for them.
                    const double alike = rows[begin].state.scale;
                    const bool weighed = it.problem->weight != nullptr;
                    add_rows(rows, begin, end, part, [&](std::int64_t i) {
                        return (weighed ? rows[i].state.scale : alike) * beta[i];
                    });
                } else {
                    for_rows(it, rows, begin, end, [&](std::int64_t i) {
                        const auto row = rows[i];
                        const double c = row.state.scale * beta[i];
                        if (c != 0) row.each([&](std::int64_t j, double x) { part[j] += c * x; });
                    });
                }
            });
    });
}

// sum_i h_i (x_i.p + q) x_i, and the sum of these coefficients. One read of the rows with curvature
// does it (100,000 x 100: 6.9 -> 4.6 ms, against all scores first).
inline double curve(const Iterate& it, const double* h, const double* p, double q, double* out,
                    int threads, StopToken& token) {
    const Problem& problem = *it.problem;
    std::vector<double> sums(static_cast<std::size_t>((problem.n + block_rows - 1) / block_rows));
    with_rows(it, [&](const auto& rows) {
        return reduce_features(
            problem, threads, token, out, [&](std::int64_t begin, std::int64_t end, double* part) {
                double sum = 0;
                auto coefficient = [&](std::int64_t i) {
                    const double c = h[i] == 0 ? 0.0 : h[i] * (rows[i].dot(p) + q);
                    sum += c;
                    return c;
                };
                if constexpr (are_dense<std::decay_t<decltype(rows)>>) {
                    add_rows(rows, begin, end, part, coefficient);
                } else {
                    for_rows(it, rows, begin, end, [&](std::int64_t i) {
                        const double c = coefficient(i);
                        if (c != 0)
                            rows[i].each([&](std::int64_t j, double x) { part[j] += c * x; });
                    });
                }
                sums[static_cast<std::size_t>(begin / block_rows)] = sum;
            });
    });
    Sum total;
    for (const double sum : sums) total.add(sum);
    return total.value();
}

// sum_i h_i x_ij^2 for every feature.
inline bool sum_squares(const Iterate& it, const double* h, double* out, int threads,
                        StopToken& token) {
    return with_rows(it, [&](const auto& rows) {
        return reduce_features(
            *it.problem, threads, token, out,
            [&](std::int64_t begin, std::int64_t end, double* part) {
                for_rows(it, rows, begin, end, [&](std::int64_t i) {
                    const double c = h[i];
                    if (c != 0)
                        rows[i].each([&](std::int64_t j, double x) { part[j] += c * x * x; });
                });
            });
    });
}

// The same in twice the digits, for sums that cancel: of features far larger than the others the
// duals leave 1e-16 and less.
inline bool combine_exactly(const Iterate& it, const double* beta, double* u, int threads,
                            StopToken& token) {
    const Problem& problem = *it.problem;
    Buffer<Twofold> sums(static_cast<std::size_t>(problem.d));
    const bool complete = with_rows(it, [&](const auto& rows) {
        return reduce_features(problem, threads, token, sums.data(),
                               [&](std::int64_t begin, std::int64_t end, Twofold* part) {
                                   for_rows(it, rows, begin, end, [&](std::int64_t i) {
                                       const double weight = problem.weight_of(i),
                                                    c = rounded(weight * beta[i]);
                                       const double lost = std::fma(weight, beta[i], -c);
                                       if (c == 0) return;
                                       for_each_entry(rows[i], [&](std::int64_t j, double x) {
                                           part[j].add_product(c, x);
                                           part[j].rest += lost * x;
                                       });
                                   });
                               });
    });
    for (std::int64_t j = 0; j < problem.d; ++j)
        u[j] = sums[j].value() / (problem.lambda * problem.total);
    return complete;
}

// The sum of f(i), i < n, in twice the digits: in chains that do not wait for each other, side by
// side (w8a's survey with an intercept: 1.7 -> 1.5 ms).
template <class F>
double sum_twofold(std::int64_t n, F&& f) {
    constexpr std::int64_t chains = 8;
    double sum[chains] = {}, rest[chains] = {};
    const std::int64_t whole = n / chains * chains;
    for (std::int64_t i = 0; i < whole; i += chains)
#pragma omp simd
        for (std::int64_t k = 0; k < chains; ++k) {
            const double x = f(i + k), total = sum[k] + x, back = total - sum[k];
            rest[k] += (sum[k] - (total - back)) + (x - back);
            sum[k] = total;
        }
    Twofold all;
    for (std::int64_t k = 0; k < chains; ++k) all += Twofold{sum[k], rest[k]};
    for (std::int64_t i = whole; i < n; ++i) all.add(f(i));
    return all.value();
}

// sum_i c_i beta_i, in twice the digits, those of the products included.
inline double imbalance(const Problem& problem, const double* beta) {
    if (!problem.weight) return sum_twofold(problem.n, [=](std::int64_t i) { return beta[i]; });
    constexpr std::int64_t chains = 8;
    Twofold sums[chains];
    const std::int64_t whole = problem.n / chains * chains;
    for (std::int64_t i = 0; i < whole; i += chains)
        for (std::int64_t k = 0; k < chains; ++k)
            sums[k].add_product(problem.weight_of(i + k), beta[i + k]);
    for (std::int64_t i = whole; i < problem.n; ++i)
        sums[0].add_product(problem.weight_of(i), beta[i]);
    for (std::int64_t k = 1; k < chains; ++k) sums[0] += sums[k];
    return sums[0].value();
}

// f(begin, end) for all blocks of rows.
template <class F>
bool for_all_blocks(const Iterate& it, int threads, StopToken& token, F&& f) {
    const std::int64_t n = it.problem->n, blocks = (n + block_rows - 1) / block_rows;
    for_each_piece(blocks, worthwhile(pass_time(*it.problem), threads), token,
                   [&](std::int64_t k) { f(k * block_rows, std::min(n, (k + 1) * block_rows)); });
    return !token.stopped();
}

template <class F>
bool for_all_rows(const Iterate& it, int threads, StopToken& token, F&& f) {
    return with_rows(it, [&](const auto& rows) {
        return for_all_blocks(it, threads, token, [&](std::int64_t begin, std::int64_t end) {
            for_rows(it, rows, begin, end, [&](std::int64_t i) { f(i, rows[i]); });
        });
    });
}

// score_i = x_i.w + b for any w.
inline bool score(const Iterate& it, const double* w, double* out, int threads, StopToken& token,
                  double b = 0) {
    const std::int64_t d = it.problem->d;
    if (is_dense(it) && d <= TurnedRows::longest)
        return with_rows(it, [&](const auto& rows) {
            return for_all_blocks(it, threads, token, [&](std::int64_t begin, std::int64_t end) {
                if constexpr (are_dense<std::decay_t<decltype(rows)>>)
                    each_turned(rows.values, d, begin, end, [&](auto& turned, auto i, auto count) {
                        double sum[TurnedRows::rows];
                        turned.sums(d, sum, [=](std::int64_t j, double x) { return x * w[j]; });
                        for (std::int64_t r = 0; r < count; ++r) out[i + r] = sum[r] + b;
                    });
            });
        });
    return for_all_rows(it, threads, token,
                        [&](std::int64_t i, const auto& row) { out[i] = row.dot(w) + b; });
}

// score_i = x_i.w + b in twice the digits, rounded once: features far from 0 and the intercept that
// takes them back cancel. With targets, less these: so do scores and targets.
inline bool score_exactly(const Iterate& it, const double* w, double b, double* out, int threads,
                          StopToken& token, const double* targets = nullptr) {
    return for_all_rows(it, threads, token, [&](std::int64_t i, const auto& row) {
        Twofold sum{b};
        if (targets) sum.add(-targets[i]);
        for_each_entry(row, [&](std::int64_t j, double x) { sum.add_product(x, w[j]); });
        out[i] = sum.value();
    });
}

// Take over a dual vector (clipped to the domain) in the states and the constant feature; u is not
// touched. Returns the vector as it was taken over.
inline Buffer<double> set_states(Iterate& it, const double* beta) {
    Buffer<double> taken(static_cast<std::size_t>(it.problem->n));
    Sum total;
    std::visit(
        [&](const auto& rows, const auto& loss) {
            for (std::int64_t i = 0; i < it.problem->n; ++i) {
                auto row = rows[i];
                const double sign = label(loss.margin, row.state.y).sign;
                row.state.beta = taken[i] = sign * loss.clip(sign * beta[i]);
                total.add(row.state.scale * taken[i]);
            }
        },
        it.rows, it.problem->loss);
    it.constant = it.problem->intercept_scale * total.value();
    it.follow = it.summed = it.placed = it.fresh = false;
    return taken;
}

// Take over a dual vector, and u and w with it.
inline bool set_beta(Iterate& it, const double* beta, int threads, StopToken& token) {
    const auto taken = set_states(it, beta);
    const bool complete = combine(it, taken.data(), it.u.data(), threads, token);
    read_primal(it);
    return complete;
}

// What an ascent begins with: u as the last survey summed it.
inline void settle(Iterate& it) {
    it.fresh = false;
    if (!it.summed) return;
    it.u.swap(it.spare);
    it.constant = it.spare_constant;
    it.summed = it.placed = false;
    read_primal(it);
}

// Take over a w: the next survey takes P there.
inline void set_primal(Iterate& it, const double* w, double multiplier) {
    std::visit(
        [&](const auto& g) {
            for (std::int64_t j = 0; j < it.problem->d; ++j) it.u[j] = g.source(w[j], j);
        },
        it.problem->regularizer);
    if (!it.w.empty()) std::copy(w, w + it.problem->d, it.w.begin());
    it.multiplier = multiplier;
    it.summed = it.fresh = false;
    it.placed = true;
}

// Take over a dual vector and a w that need not belong together.
inline void place(Iterate& it, const double* beta, const double* w, double multiplier) {
    set_states(it, beta);
    set_primal(it, w, multiplier);
}

// Take over a w; the next survey lets beta follow.
inline void place_primal(Iterate& it, const double* w, double multiplier) {
    it.constant = 0;
    it.follow = true;
    set_primal(it, w, multiplier);
}

}  // namespace adasdca
