// The unpenalised intercept: its best value for given scores, and a dual point that respects it.
//
// With b free the dual gains the constraint sum_i c_i beta_i = 0. For given scores, b* = argmin_b
// P(w, b) makes beta_i = -phi'(score_i + b*) satisfy it. Where phi is not smooth that point is a
// poor one, and the ascent's own beta is used instead, its heavier side scaled down.
#pragma once

#include <cmath>
#include <cstdint>

#include "passes.hpp"

namespace adasdca {

struct Balance {
    double sum, slope, mass;  // sum_i c_i beta_i(b), its derivative, sum_i c_i |beta_i|
};

inline Balance balance(const Problem& problem, const double* scores, double b) {
    double sum = 0, slope = 0, mass = 0;
    std::visit(
        [&](const auto& loss) {
            for (std::int64_t i = 0; i < problem.n; ++i) {
                const Label l = label(loss.margin, problem.y[i]);
                const double c = problem.weight_of(i), z = l.sign * (scores[i] + b);
                const double beta = c * l.sign * loss.ascent(z, l.target);
                sum += beta;
                mass += std::abs(beta);
                slope -= c * loss.curvature(z, l.target);
            }
        },
        problem.loss);
    return {sum, slope, mass};
}

// The root of the falling function sum_i c_i beta_i(b): Newton where it has a slope, inside a
// bracket.
inline double best_intercept(const Problem& problem, const double* scores, double guess) {
    double low = -INFINITY, high = INFINITY, b = guess,
           reach = 1e-3 * std::max(1.0, std::abs(guess));
    for (int iteration = 0; iteration < 200; ++iteration) {
        const Balance at = balance(problem, scores, b);
        // A sum of n terms is not known better than this.
        if (std::abs(at.sum) <= 2e-16 * std::sqrt(static_cast<double>(problem.n)) * at.mass)
            return b;
        (at.sum > 0 ? low : high) = b;
        double next = at.slope < 0 ? b - at.sum / at.slope : NAN;
        if (!(next > low && next < high)) {
            if (std::isinf(low) || std::isinf(high)) {
                next = at.sum > 0 ? b + reach : b - reach;
                reach *= 8;
            } else {
                next = 0.5 * (low + high);
            }
        }
        const bool bracketed = std::isfinite(high - low);
        if (next == b || (bracketed && high - low <= 4e-16 * std::abs(b))) return b;
        b = next;
    }
    return b;
}

// A dual point with sum_i c_i beta_i = 0, from the scores (smooth losses) or from beta itself.
inline void balanced_dual(const Problem& problem, const double* scores, double b,
                          const double* beta, double* out) {
    std::visit(
        [&](const auto& loss) {
            double positive = 0, negative = 0;
            for (std::int64_t i = 0; i < problem.n; ++i) {
                const Label l = label(loss.margin, problem.y[i]);
                out[i] = loss.gamma > 0 ? l.sign * loss.ascent(l.sign * (scores[i] + b), l.target)
                                        : beta[i];
                (out[i] > 0 ? positive : negative) += problem.weight_of(i) * out[i];
            }
            // For smooth losses this only takes away the rounding of the root.
            const double heavier = std::max(positive, -negative),
                         lighter = std::min(positive, -negative);
            if (heavier > lighter)
                for (std::int64_t i = 0; i < problem.n; ++i)
                    if ((out[i] > 0) == (positive > -negative)) out[i] *= lighter / heavier;
        },
        problem.loss);
}

}  // namespace adasdca
