// The unpenalised intercept: its best value for given scores, and a dual point that respects it.
//
// With b free the dual gains the constraint sum_i c_i beta_i = 0. A dual point gets there by
// scaling its heavier side down. The slopes -phi' at the best b satisfy it as they are; in the
// middle of an ascent their gap is 10 to 1e5 times that of its own beta.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "duality/certificate.hpp"

namespace adasdca {

struct Balance {
    double sum = 0, slope = 0,
           mass = 0;  // sum_i c_i beta_i(b), -its derivative, sum_i c_i |beta_i|
};

// Everything by value, and the labels in a loop of their own: only so is the loop vectorised.
template <class LossType>
Balance balance_rows(const LossType loss, std::int64_t count, const double* scores, const double* y,
                     const double* weight, double b) {
    double z[block_rows], sign[block_rows], target[block_rows];
    for (std::int64_t i = 0; i < count; ++i) {
        const Label l = label(loss.margin, y[i]);
        sign[i] = l.sign;
        target[i] = l.target;
        z[i] = l.sign * (scores[i] + b);
    }
    double sum = 0, slope = 0, mass = 0;
#pragma omp simd reduction(+ : sum, slope, mass)
    for (std::int64_t i = 0; i < count; ++i) {
        const double beta = weight[i] * sign[i] * loss.ascent(z[i], target[i]);
        sum += beta;
        mass += std::abs(beta);
        slope += weight[i] * loss.curvature(z[i], target[i]);
    }
    return {sum, slope, mass};
}

inline Balance balance(const Problem& problem, const double* scores, double b, int threads,
                       StopToken& token) {
    const RowBlocks blocks(problem);
    std::vector<Balance> parts(static_cast<std::size_t>(blocks.count));
    std::visit(
        [&](const auto& loss) {
            blocks.each(worthwhile(5.0 * static_cast<double>(problem.n), threads), token,
                        [&](std::int64_t begin, std::int64_t count, const double* weight) {
                            parts[begin / block_rows] = balance_rows(loss, count, scores + begin,
                                                                     problem.y + begin, weight, b);
                        });
        },
        problem.loss);
    Balance total;
    Sum sum;
    for (const Balance& part : parts) {
        sum.add(part.sum);
        total.slope += part.slope;
        total.mass += part.mass;
    }
    total.sum = sum.value();
    return total;
}

// The root of the falling function sum_i c_i beta_i(b): Newton where it has a slope, else false
// position with its stale end halved, all inside a bracket.
template <class F>  // from b to a Balance
double root_of_balance(F&& balance_at, double guess, StopToken& token) {
    double low = -INFINITY, high = INFINITY, at_low = 0, at_high = 0, b = guess,
           reach = 1e-3 * std::max(1.0, std::abs(guess));
    for (int iteration = 0; iteration < 200 && !token.stopped(); ++iteration) {
        const Balance at = balance_at(b);
        // The sum is not known better than this, nor is b.
        if (std::abs(at.sum) <= 4.0 * unit_roundoff * (at.mass + at.slope * std::abs(b))) return b;
        if (at.sum > 0) {
            low = b;
            at_low = at.sum;
            at_high *= 0.5;
        } else {
            high = b;
            at_high = at.sum;
            at_low *= 0.5;
        }
        const bool bracketed = std::isfinite(high - low);
        if (bracketed && high - low <= 4.0 * unit_roundoff * std::max(std::abs(b), 1e-290))
            return b;
        double next = at.slope > 0 ? b + at.sum / at.slope : NAN;
        // From so near a step of Newton's leaves rounding alone, and another look is for nothing.
        if (std::abs(at.sum) <= 1e-10 * at.mass && next > low && next < high) return next;
        if (!(next > low && next < high)) {
            if (!bracketed) {
                next = at.sum > 0 ? b + reach : b - reach;
                reach *= 8;
            } else {
                const double fraction = at_low / (at_low - at_high);
                next = low + fraction * (high - low);
                if (iteration % 3 == 2 || !(next > low && next < high)) next = 0.5 * (low + high);
            }
        }
        if (next == b) return b;
        b = next;
    }
    return b;
}

inline double best_intercept(const Problem& problem, const double* scores, double guess,
                             int threads, StopToken& token) {
    return root_of_balance([&](double b) { return balance(problem, scores, b, threads, token); },
                           guess, token);
}

// The weight of the duals of either sign.
struct Sides {
    double up = 0, down = 0;  // sum_i c_i max(beta_i, 0), sum_i c_i max(-beta_i, 0)

    double share_of(double beta) const {
        const double own = beta > 0 ? up : down;
        return own > 0 ? std::min(std::min(up, down) / own, 1.0) : 1.0;
    }
};

inline Sides total_of(const std::vector<Sides>& parts) {
    Sum up, down;
    for (const Sides& part : parts) {
        up.add(part.up);
        down.add(part.down);
    }
    return {up.value(), down.value()};
}

// Of the iterate: a look at the head of every row, a tenth of a survey.
inline Sides sides_of(const Iterate& it) {
    const Problem& problem = *it.problem;
    std::vector<Sides> parts(static_cast<std::size_t>((problem.n + block_rows - 1) / block_rows));
    with_rows(it, [&](const auto& rows) {
        for (std::int64_t i = 0; i < problem.n; ++i) {
            const double x = rows[i].state.scale * rows[i].state.beta;
            Sides& part = parts[static_cast<std::size_t>(i / block_rows)];
            part.up += std::max(x, 0.0);
            part.down += std::max(-x, 0.0);
        }
    });
    return total_of(parts);
}

inline Sides sides_of(const Problem& problem, const double* beta) {
    const double* c = problem.weight;
    auto side = [=, n = problem.n](double sign) {
        if (c)
            return sum_twofold(
                n, [=](std::int64_t i) { return std::max(sign * (c[i] * beta[i]), 0.0); });
        return sum_twofold(n, [=](std::int64_t i) { return std::max(sign * beta[i], 0.0); });
    };
    return {side(1.0), side(-1.0)};
}

// Scale the heavier side down: sum_i c_i beta_i = 0, but for rounding.
inline void balance_sides(const Problem& problem, const Sides& sides, const double* beta,
                          double* out) {
    const double up = sides.share_of(1.0), down = sides.share_of(-1.0);
    for (std::int64_t i = 0; i < problem.n; ++i) out[i] = beta[i] * (beta[i] > 0 ? up : down);
}

// beta_i = -phi'(score_i + b).
inline void slopes_at(const Problem& problem, const double* scores, double b, double* beta) {
    std::visit(
        [&](const auto& given) {
            const auto loss = given;
#pragma omp simd
            for (std::int64_t i = 0; i < problem.n; ++i) {
                const Label l = label(loss.margin, problem.y[i]);
                beta[i] = l.sign * loss.ascent(l.sign * (scores[i] + b), l.target);
            }
        },
        problem.loss);
}

// What an imbalance of the duals adds to the gap T. P(w', b') >= D + (b'/N) sum_i c_i beta_i for
// all (w', b'), so it adds (b - b*) times its mean at most. The best b* for the best w* is between
// the residuals of the rows there (of the logistic loss: but for the logarithm of what one class
// outweighs the other by), and these are within |x||w - w*| <= |x| sqrt(2 G / lambda) of those
// here. So G <= T + mean (far + |x| sqrt(2 G / lambda)), a quadratic in sqrt(G). Norms are the
// regulariser's and its dual; `stray` is what |w - w*| can be where g is not curved.
inline double price_of_imbalance(const Problem& problem, double gap, double imbalance,
                                 double positive, double far, double longest, double stray) {
    if (imbalance == 0) return 0;
    if (std::holds_alternative<Logistic>(problem.loss)) {
        const double lighter = std::min(positive, problem.total - positive);
        far += 1.0 + std::log(2.0 * problem.total / std::max(lighter, 1e-300));
    } else {
        far += std::get<PiecewiseQuadratic>(problem.loss).epsilon;
    }
    far += longest * stray;
    const double mean = 1.001 * std::abs(imbalance) / problem.total;
    const double half = 0.5 * mean * longest * std::sqrt(2.0 / problem.lambda);
    const double plus = half * half + mean * far;  // root^2 = gap + plus
    return 1.001 * (half * half + mean * far + 2.0 * half * std::sqrt(gap + plus) + half * half);
}

// How far scores are from their targets, and |x|^2 / (lambda N), at most.
struct Extent {
    double far = 0, square = 0;
};

inline double farthest(const RowBlock& rows) {
    double far = 0;
#pragma omp simd reduction(max : far)
    for (std::int64_t k = 0; k < rows.count; ++k)
        far = std::max(far, std::abs(rows.target[k] - rows.z[k]));
    return far;
}

inline Extent extent_of(const RowBlock& rows) {
    double square = 0;
#pragma omp simd reduction(max : square)
    for (std::int64_t k = 0; k < rows.count; ++k)
        square = std::max(square, rows.q[k] / std::max(rows.c[k], 1e-300));
    return {farthest(rows), square};
}

// What rows say of the imbalance of their duals.
struct Skew {
    double imbalance = 0;  // sum_i c_i beta_i
    double positive = 0;   // the weight of the positive class, for the logistic loss
    Extent extent;
};

inline Skew skew_of(const Problem& problem, const double* beta,
                    const std::vector<Extent>& extents) {
    Skew skew;
    if (!problem.fit_intercept) return skew;
    for (const Extent& extent : extents) {
        skew.extent.far = std::max(skew.extent.far, extent.far);
        skew.extent.square = std::max(skew.extent.square, extent.square);
    }
    skew.imbalance = imbalance(problem, beta);
    if (std::holds_alternative<Logistic>(problem.loss))
        for (std::int64_t i = 0; i < problem.n; ++i)
            if (problem.y[i] > 0) skew.positive += problem.weight_of(i);
    return skew;
}

// Add what the imbalance of the duals costs, if there is an intercept.
inline void charge_imbalance(const Problem& problem, const double* w, const Skew& skew,
                             Certified& result) {
    if (!problem.fit_intercept) return;
    const double longest = std::sqrt(skew.extent.square * problem.lambda * problem.total);
    const double stray = std::visit(
        [&](const auto& g) {
            return regularizer_stray(g, w, problem.d,
                                     (result.primal + result.blur) / problem.lambda);
        },
        problem.regularizer);
    const double price = price_of_imbalance(problem, result.gap, skew.imbalance, skew.positive,
                                            skew.extent.far, longest, stray);
    result.rounding += price;
    result.gap += price;
}

// What rows say of a primal and a dual point; the sums of parts can be added.
struct Evidence {
    GapSums sums;
    Skew skew;
};

// What is known of a block of rows without a look at their heads.
inline void fill_block(const Problem& problem, std::int64_t begin, const double* scores,
                       double shift, bool residuals, const double* beta, const double* weight,
                       RowBlock& block) {
    const double* y = problem.y + begin;
    const bool margin =
        std::visit([](const auto& loss) { return bool(loss.margin); }, problem.loss);
#pragma omp simd
    for (std::int64_t k = 0; k < block.count; ++k) {
        const Label l = label(margin, y[k]);
        block.sign[k] = l.sign;
        block.target[k] = residuals ? 0.0 : l.target;
        block.z[k] = l.sign * (scores[begin + k] + shift);
        block.b[k] = l.sign * beta[begin + k];
        block.c[k] = weight[k];
    }
}

// From the scores x_i.w, or where `residuals` x_i.w - y_i, with the bound of their rounding.
// look(gamma, block, begin) is shown the blocks of rows, with their residues and shares. Where
// `roughly`, rounding is bounded for all rows of a block at once, if these are alike; `look` is
// shown their q only if it asks for them then.
template <class F>
Evidence evidence_of(const Iterate& it, const double* scores, double shift, bool residuals,
                     const ScoreError& error, const double* beta, int threads, StopToken& token,
                     F&& look, bool roughly = false, bool asks = true) {
    const Problem& problem = *it.problem;
    const double lambda_total = problem.lambda * problem.total;
    const RowBlocks blocks(problem);
    std::vector<GapSums> parts(static_cast<std::size_t>(blocks.count));
    std::vector<Extent> extents(static_cast<std::size_t>(blocks.count));
    std::visit(
        [&](const auto& rows, const auto& loss) {
            blocks.each(
                worthwhile(10.0 * static_cast<double>(problem.n), threads), token,
                [&](std::int64_t begin, std::int64_t count, const double* weight) {
                    const std::int64_t number = begin / block_rows;
                    const BlockBounds& all = it.bounds[number];
                    const bool together = roughly && all.alike;
                    RowBlock block;
                    block.count = count;
                    fill_block(problem, begin, scores, shift, residuals, beta, weight, block);
                    // (Heads are a line of the cache for two rows: 300,000 x 3, 5 -> 1.6 ns a row.)
                    for (std::int64_t k = 0; k < count && (asks || !together); ++k) {
                        const auto row = rows[begin + k];
                        block.q[k] = row.state.q;
                        block.length[k] = static_cast<double>(row.size);
                    }
                    if (together) {
                        const double delta = error.of(all, loss.margin ? 1.0 : all.target);
                        parts[number] = gap_sums(loss, block, delta, all.norm);
                        extents[number] = {farthest(block), all.norm * all.norm / lambda_total};
                    } else {
                        parts[number] = gap_sums_by_rows(loss, block, error, lambda_total);
                        extents[number] = extent_of(block);
                    }
                    look(loss.gamma, block, begin);
                });
        },
        it.rows, problem.loss);
    return {total_of(parts), skew_of(problem, beta, extents)};
}

inline Evidence evidence_of(const Iterate& it, const double* scores, double shift, bool residuals,
                            const ScoreError& error, const double* beta, int threads,
                            StopToken& token) {
    return evidence_of(it, scores, shift, residuals, error, beta, threads, token,
                       [](double, const RowBlock&, std::int64_t) {});
}

// Certify (w, b) with a dual point, given the scores x_i.w; sums in twice the digits need no
// scores.
inline Certified certify_by(const Iterate& it, bool exact, const double* scores, double b,
                            const double* w, const double* beta, int threads, StopToken& token) {
    const Problem& problem = *it.problem;
    std::vector<double> u(static_cast<std::size_t>(problem.d));
    Buffer<double> own;
    ScoreError error = score_error(problem, w, b, exact);
    double shift = b;
    // All but the logistic loss are functions of z - t = sign (score - y): where targets and scores
    // cancel, that has digits which neither has.
    const bool residuals = exact && !std::holds_alternative<Logistic>(problem.loss);
    if (exact) {
        combine_exactly(it, beta, u.data(), threads, token);
        own.resize(static_cast<std::size_t>(problem.n));
        if (residuals)
            for (std::int64_t i = 0; i < problem.n; ++i)
                error.inner = std::max(error.inner, std::abs(b) + std::abs(problem.y[i]));
        score_exactly(it, w, b, own.data(), threads, token, residuals ? problem.y : nullptr);
        scores = own.data();
        shift = 0;
    } else {
        combine(it, beta, u.data(), threads, token);
    }
    const Evidence evidence =
        evidence_of(it, scores, shift, residuals, error, beta, threads, token);
    Certified result =
        certified(problem, evidence.sums, w, u.data(), Chunks(problem).chain(), exact);
    charge_imbalance(problem, w, evidence.skew, result);
    return result;
}

// The same by plain sums, and where these hide the gap, or leave the domain of g*, by others.
inline Certified certify(const Iterate& it, const double* scores, double b, const double* w,
                         const double* beta, int threads, StopToken& token, double enough = 0) {
    const Problem& problem = *it.problem;
    const auto found = certify_by(it, false, scores, b, w, beta, threads, token);
    if (!doubtful(problem, found, enough)) return found;
    const auto finer = certify_by(it, true, nullptr, b, w, beta, threads, token);
    return finer.gap < found.gap ? finer : found;
}

}  // namespace adasdca
