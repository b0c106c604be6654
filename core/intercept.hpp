// The unpenalised intercept: its best value for given scores, and a dual point that respects it.
//
// With b free the dual gains the constraint sum_i c_i beta_i = 0. For given scores, b* = argmin_b
// P(w, b) makes beta_i = -phi'(score_i + b*) satisfy it. Where phi is not smooth that point is a
// poor one, and the ascent's own beta is used instead, its heavier side scaled down.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "certificate.hpp"

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
                       Pulse& pulse) {
    const RowBlocks blocks(problem);
    std::vector<Balance> parts(static_cast<std::size_t>(blocks.count));
    std::visit(
        [&](const auto& loss) {
            blocks.each(worthwhile(5.0 * static_cast<double>(problem.n), threads), pulse,
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
inline double best_intercept(const Problem& problem, const double* scores, double guess,
                             int threads, Pulse& pulse) {
    double low = -INFINITY, high = INFINITY, at_low = 0, at_high = 0, b = guess,
           reach = 1e-3 * std::max(1.0, std::abs(guess));
    for (int iteration = 0; iteration < 200 && !pulse.stopped(); ++iteration) {
        const Balance at = balance(problem, scores, b, threads, pulse);
        // The sum is not known better than this.
        if (std::abs(at.sum) <= 4.0 * unit_roundoff * at.mass) return b;
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

// Write a dual point with sum_i c_i beta_i = 0, but for rounding, from the scores (smooth losses)
// or from beta itself.
inline void balanced_dual(const Problem& problem, const double* scores, double b,
                          const double* beta, double* out) {
    std::visit(
        [&](const auto& loss) {
            Sum positive, negative;
            for (std::int64_t i = 0; i < problem.n; ++i) {
                const Label l = label(loss.margin, problem.y[i]);
                out[i] = loss.gamma > 0 ? l.sign * loss.ascent(l.sign * (scores[i] + b), l.target)
                                        : beta[i];
                (out[i] > 0 ? positive : negative).add(problem.weight_of(i) * out[i]);
            }
            const double up = positive.value(), down = -negative.value();
            const double heavier = std::max(up, down), lighter = std::min(up, down);
            if (heavier > lighter)
                for (std::int64_t i = 0; i < problem.n; ++i)
                    if ((out[i] > 0) == (up > down)) out[i] *= lighter / heavier;
        },
        problem.loss);
}

// What an imbalance of the duals adds to the gap T. P(w', b') >= D + (b'/N) sum_i c_i beta_i for
// all (w', b'), so it adds (b - b*) times its mean at most. The best b* for the best w* is between
// the residuals of the rows there (of the logistic loss: but for the logarithm of what one class
// outweighs the other by), and these are within |x||w - w*| <= |x| sqrt(2 G / lambda) of those
// here. So G <= T + mean (far + |x| sqrt(2 G / lambda)), a quadratic in sqrt(G). Without the ridge
// lambda |w*|_1 <= P(w*, b*) <= P(w, b), and |x||w - w*| <= |x| (|w|_1 + P / lambda).
inline double price_of_imbalance(const Problem& problem, const Certified& found, const double* w,
                                 double imbalance, double far, double longest) {
    if (imbalance == 0) return 0;
    if (std::holds_alternative<Logistic>(problem.loss)) {
        double positive = 0;
        for (std::int64_t i = 0; i < problem.n; ++i)
            if (problem.y[i] > 0) positive += problem.weight_of(i);
        const double lighter = std::min(positive, problem.total - positive);
        far += 1.0 + std::log(2.0 * problem.total / std::max(lighter, 1e-300));
    } else {
        far += std::get<PiecewiseQuadratic>(problem.loss).epsilon;
    }
    const double mean = 1.001 * std::abs(imbalance) / problem.total, gap = found.gap;
    const auto* box = std::get_if<ElasticBox>(&problem.regularizer);
    if (box && box->ridge == 0) {
        double size = (found.primal + found.blur) / problem.lambda;
        for (std::int64_t j = 0; j < problem.d; ++j) size += std::abs(w[j]);
        return 1.001 * mean * (far + longest * size);
    }
    const double half = 0.5 * mean * longest * std::sqrt(2.0 / problem.lambda);
    const double plus = half * half + mean * far;  // root^2 = gap + plus
    return 1.001 * (half * half + mean * far + 2.0 * half * std::sqrt(gap + plus) + half * half);
}

// Certify (w, b) with a dual point, given the scores x_i.w; sums in twice the digits need no
// scores.
inline Certified certify_by(const Iterate& it, bool exact, const double* scores, double b,
                            const double* w, const double* beta, int threads, Pulse& pulse) {
    const Problem& problem = *it.problem;
    const double lambda_total = problem.lambda * problem.total;
    std::vector<double> u(static_cast<std::size_t>(problem.d));
    Buffer<double> own;
    ScoreError error = score_error(problem, w, b, exact);
    double shift = b;
    // All but the logistic loss are functions of z - t = sign (score - y): where targets and scores
    // cancel, that has digits which neither has.
    const bool residuals = exact && !std::holds_alternative<Logistic>(problem.loss);
    if (exact) {
        combine_exactly(it, beta, u.data(), threads, pulse);
        own.resize(static_cast<std::size_t>(problem.n));
        if (residuals)
            for (std::int64_t i = 0; i < problem.n; ++i)
                error.inner = std::max(error.inner, std::abs(b) + std::abs(problem.y[i]));
        score_exactly(it, w, b, own.data(), threads, pulse, residuals ? problem.y : nullptr);
        scores = own.data();
        shift = 0;
    } else {
        combine(it, beta, u.data(), threads, pulse);
    }
    const RowBlocks blocks(problem);
    std::vector<GapSums> parts(static_cast<std::size_t>(blocks.count));
    std::vector<double> far(static_cast<std::size_t>(blocks.count)), square(far);
    std::visit(
        [&](const auto& rows, const auto& loss) {
            blocks.each(
                worthwhile(10.0 * static_cast<double>(problem.n), threads), pulse,
                [&](std::int64_t begin, std::int64_t count, const double* weight) {
                    RowBlock block;
                    block.count = count;
                    double farthest = 0, longest = 0;
                    for (std::int64_t k = 0; k < count; ++k) {
                        const std::int64_t i = begin + k;
                        const auto row = rows[i];
                        const Label l = label(loss.margin, problem.y[i]);
                        block.sign[k] = l.sign;
                        block.target[k] = residuals ? 0.0 : l.target;
                        block.z[k] = l.sign * (scores[i] + shift);
                        block.b[k] = l.sign * beta[i];
                        block.q[k] = row.state.q;
                        block.c[k] = weight[k];
                        block.length[k] = static_cast<double>(row.size);
                        farthest = std::max(farthest, std::abs(block.target[k] - block.z[k]));
                        longest = std::max(longest, row.state.q / std::max(weight[k], 1e-300));
                    }
                    parts[begin / block_rows] = gap_sums(loss, block, error, lambda_total);
                    far[begin / block_rows] = farthest;
                    square[begin / block_rows] = longest * lambda_total;
                });
        },
        it.rows, problem.loss);
    Certified result = certified(problem, total_of(parts), w, u.data(), exact);
    if (problem.fit_intercept) {
        const double price = price_of_imbalance(
            problem, result, w, imbalance(problem, beta), *std::max_element(far.begin(), far.end()),
            std::sqrt(*std::max_element(square.begin(), square.end())));
        result.rounding += price;
        result.gap += price;
    }
    return result;
}

// The same by plain sums, and where these hide the gap by others.
inline Certified certify(const Iterate& it, const double* scores, double b, const double* w,
                         const double* beta, int threads, Pulse& pulse) {
    const auto found = certify_by(it, false, scores, b, w, beta, threads, pulse);
    if (!doubtful(found)) return found;
    const auto finer = certify_by(it, true, nullptr, b, w, beta, threads, pulse);
    return finer.gap < found.gap ? finer : found;
}

}  // namespace adasdca
