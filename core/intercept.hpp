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
    double sum = 0, slope = 0, mass = 0;  // sum_i c_i beta_i(b), -its derivative, sum_i c_i |beta_i|
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
                            parts[begin / block_rows] =
                                balance_rows(loss, count, scores + begin, problem.y + begin,
                                             weight, b);
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
        if (bracketed && high - low <= 4.0 * unit_roundoff * std::max(std::abs(b), 1e-290)) return b;
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

// Certify (w, b) with a dual point that is balanced but for rounding, given the scores x_i.w.
inline Certified certify(const Iterate& it, const double* scores, double b, const double* w,
                         const double* beta, int threads, Pulse& pulse) {
    const Problem& problem = *it.problem;
    const double lambda_total = problem.lambda * problem.total;
    std::vector<double> u(static_cast<std::size_t>(problem.d));
    combine(it, beta, u.data(), threads, pulse);
    const RowBlocks blocks(problem);
    std::vector<GapSums> parts(static_cast<std::size_t>(blocks.count));
    std::vector<double> far(static_cast<std::size_t>(blocks.count));
    const ScoreError error = score_error(problem, w, b);
    std::visit(
        [&](const auto& rows, const auto& loss) {
            blocks.each(worthwhile(10.0 * static_cast<double>(problem.n), threads), pulse,
                        [&](std::int64_t begin, std::int64_t count, const double* weight) {
                            RowBlock block;
                            block.count = count;
                            double farthest = 0;
                            for (std::int64_t k = 0; k < count; ++k) {
                                const std::int64_t i = begin + k;
                                const auto row = rows[i];
                                const Label l = label(loss.margin, problem.y[i]);
                                block.sign[k] = l.sign;
                                block.target[k] = l.target;
                                block.z[k] = l.sign * (scores[i] + b);
                                block.b[k] = l.sign * beta[i];
                                block.q[k] = row.state.q;
                                block.c[k] = weight[k];
                                block.length[k] = static_cast<double>(row.size);
                                farthest = std::max(farthest, std::abs(l.target - block.z[k]));
                            }
                            parts[begin / block_rows] = gap_sums(loss, block, error, lambda_total);
                            far[begin / block_rows] = farthest;
                        });
        },
        it.rows, problem.loss);
    const GapSums sums = total_of(parts);
    Certified result = certified(problem, sums, w, u.data(), Chunks(problem).chain());
    if (problem.fit_intercept) {
        // What rounding leaves of sum_i c_i beta_i could be taken out of the farthest row's dual.
        Sum left;
        double mass = 0;
        for (std::int64_t i = 0; i < problem.n; ++i) {
            left.add(problem.weight_of(i) * beta[i]);
            mass += problem.weight_of(i) * std::abs(beta[i]);
        }
        const double imbalance = std::abs(left.value()) + 4.0 * unit_roundoff * mass;
        const double price = imbalance / problem.total *
                             (*std::max_element(far.begin(), far.end()) + std::abs(b));
        result.rounding += price;
        result.gap += price;
    }
    return result;
}

}  // namespace adasdca
