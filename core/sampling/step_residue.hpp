// The step residue: the residue of a quadratic row whose exact step would gain as much.
//
// The exact step of a row moves b by a change d and its score by q d. It raises N/c times the dual
// by  gain = q d^2 / 2 + excess(z + q d, b),  a sum without cancellation: at the new score the new
// b has no excess. A quadratic row of residue kappa gains gamma^2 kappa^2 / (2 (q + gamma)), and
// so the step residue is  sqrt(2 (q + gamma) gain) / gamma.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "rows/problem.hpp"

namespace adasdca {

// What `step_measure` is multiplied by, so that the product is the weight |step residue|
// sqrt(c (q + gamma)) of a row. Where gamma = 0 the mean curvature takes its place.
inline double step_size(double gamma, double c, double q) {
    return (1.0 + q / gamma) * std::sqrt(2.0 * c);
}

// The square root of the gain; 0 where the step would not move the row.
template <class LossType>
ADASDCA_INLINE double step_measure(const LossType& loss, double b, double z, double t, double q) {
    const double change = loss.step(b, z, t, q) - b;
    const double gain = 0.5 * q * change * change + loss.excess(z + q * change, b, t);
    return change != 0 ? std::sqrt(gain) : 0.0;
}

// The smoothness, or what stands for it: the mean curvature of the rows, 1 if that is 0.
inline double smoothness_or_mean(double gamma, double curvature, std::int64_t n) {
    if (gamma > 0) return gamma;
    return curvature > 0 ? curvature / static_cast<double>(n) : 1.0;
}

struct StepRows {
    std::span<const double> beta, score, y, q, c;  // c may be empty: all ones
    double bias = 0;
};

// The weights of all rows at the start of an epoch.
inline void step_weights(const AnyLoss& any, const StepRows& rows, double* out) {
    std::visit(
        [&](const auto& given) {
            const auto loss = given;
            const auto n = static_cast<std::int64_t>(rows.beta.size());
            double curvature = 0;
            for (const double q : rows.q) curvature += q;
            const double gamma = smoothness_or_mean(loss.gamma, curvature, n);
            const bool weighted = !rows.c.empty();
#pragma omp simd
            for (std::int64_t i = 0; i < n; ++i) {
                const Label l = label(loss.margin, rows.y[i]);
                const double z = l.sign * (rows.score[i] + rows.bias), q = rows.q[i];
                const double c = weighted ? rows.c[i] : 1.0;
                out[i] = step_measure(loss, l.sign * rows.beta[i], z, l.target, q) *
                         step_size(gamma, c, q);
            }
        },
        any);
}

}  // namespace adasdca
