// One sequential pass over the rows gives P, D, the residues, the sampling law and a fresh u.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "passes.hpp"

namespace adasdca {

// The weight of a row in the adaptive law, eq. (optipsdf) with sample weights:
// |kappa| sqrt(c (q + gamma)); where gamma = 0 the residue need not vanish and the row's share of
// the gap, c G, takes its place.
inline double adaptive_weight(double gamma, double c, double q, double residue, double share) {
    return gamma > 0 ? std::abs(residue) * std::sqrt(c * (q + gamma)) : c * share;
}

// Arrays of length n (coef: d) that a survey fills; null: not asked for.
struct SurveyArrays {
    double* score = nullptr;    // x.w, without intercept
    double* residue = nullptr;  // kappa = beta + phi'(score + bias)
    double* share = nullptr;    // G = phi + phi* + score beta >= 0
    double* weight = nullptr;   // the adaptive law, unnormalised
    double* beta = nullptr;
    double* coef = nullptr;  // the w at which P was taken
};

struct Survey {
    double primal = 0, dual = 0;
    double magnitude = 0;     // size of the terms that P and D are sums of: the scale of rounding
    std::int64_t active = 0;  // rows with a positive weight
    bool complete = false;
};

// P is taken at w as the ascent left it, D at beta with u summed anew: each a valid value whatever
// rounding did to u on the way, at the price of one pass. The fresh u then replaces the old one.
inline Survey survey(Iterate& it, const SurveyArrays& out, int threads, Pulse& pulse) {
    struct Sums {
        double value = 0, conjugate = 0, balance = 0;
        std::int64_t active = 0;
    };
    const Problem& problem = *it.problem;
    std::vector<Sums> sums(static_cast<std::size_t>((problem.n + block_rows - 1) / block_rows));
    std::vector<double> fresh(static_cast<std::size_t>(problem.d));
    const double lambda_total = problem.lambda * problem.total;
    const double bias = it.bias();
    const double* w = it.primal();
    // The first survey of most solves: every score is 0, and no row need be read.
    const bool still = std::all_of(w, w + problem.d, [](double x) { return x == 0; });
    Survey result;

    result.complete = std::visit(
        [&](const auto& rows, const auto& loss) {
            return reduce_features(
                problem, threads, pulse, fresh.data(),
                [&](std::int64_t begin, std::int64_t end, double* part) {
                    double z[block_rows], b[block_rows], sign[block_rows], target[block_rows];
                    double q[block_rows], c[block_rows];
                    const std::int64_t count = end - begin;
                    for (std::int64_t k = 0; k < count; ++k) {
                        const auto row = rows[begin + k];
                        const RowState state = row.state;
                        const Label l = label(loss.margin, state.y);
                        const double x_dot_w = still ? 0.0 : row.dot(w);
                        if (out.score) out.score[begin + k] = x_dot_w;
                        if (out.beta) out.beta[begin + k] = state.beta;
                        sign[k] = l.sign;
                        target[k] = l.target;
                        z[k] = l.sign * (x_dot_w + bias);
                        b[k] = l.sign * state.beta;
                        q[k] = state.q;
                        c[k] = state.scale * lambda_total;
                        const double coefficient = state.scale * state.beta;
                        if (coefficient != 0)
                            row.each([&](std::int64_t j, double x) { part[j] += coefficient * x; });
                    }
                    double value = 0, conjugate = 0, balance = 0;
                    double residue[block_rows], share[block_rows], weight[block_rows];
                    double active = 0;
#pragma omp simd reduction(+ : value, conjugate, balance, active)
                    for (std::int64_t k = 0; k < count; ++k) {
                        const double phi = loss.value(z[k], target[k]);
                        const double star = loss.conjugate(b[k], target[k]);
                        value += c[k] * phi;
                        conjugate += c[k] * star;
                        balance += c[k] * sign[k] * b[k];
                        const double gap = phi + star + z[k] * b[k];
                        share[k] = gap > 0 ? gap : 0;
                        residue[k] = sign[k] * (b[k] - loss.ascent(z[k], target[k]));
                        weight[k] = adaptive_weight(loss.gamma, c[k], q[k], residue[k], share[k]);
                        active += weight[k] > 0 ? 1.0 : 0.0;
                    }
                    auto copy = [&](const double* from, double* to) {
                        if (to) std::copy(from, from + count, to + begin);
                    };
                    copy(residue, out.residue);
                    copy(share, out.share);
                    copy(weight, out.weight);
                    sums[begin / block_rows] = {value, conjugate, balance,
                                                static_cast<std::int64_t>(active)};
                });
        },
        it.rows, problem.loss);
    if (!result.complete) return result;

    Sum value, conjugate, balance;
    for (const Sums& s : sums) {
        value.add(s.value);
        conjugate.add(s.conjugate);
        balance.add(s.balance);
        result.active += s.active;
    }
    if (out.coef) std::copy(w, w + problem.d, out.coef);
    std::visit(
        [&](const auto& g) {
            const double risk = value.value() / problem.total;
            const double penalty = problem.lambda * regularizer_value(g, w, problem.d);
            const double star = conjugate.value() / problem.total;
            const double g_star =
                problem.lambda * regularizer_conjugate(g, fresh.data(), problem.d);
            result.primal = risk + penalty;
            result.dual = -star - g_star;
            result.magnitude = risk + penalty + std::abs(star) + std::abs(g_star);
        },
        problem.regularizer);
    it.u.swap(fresh);
    it.constant = problem.intercept_scale * balance.value() / lambda_total;
    read_primal(it);
    return result;
}

}  // namespace adasdca
