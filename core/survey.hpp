// One sequential pass over the rows gives P, D, the residues, the sampling law and a fresh u.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "passes.hpp"

namespace adasdca {

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
    double spread = 1;        // share of the rows that the adaptive law visits in effect, at most 1
    bool complete = false;
};

// Sums over some rows.
struct SurveySums {
    double value = 0, conjugate = 0, balance = 0;
    double active = 0, weight = 0, weight_squared = 0;
};

// A block of rows as the losses see it.
struct SurveyBlock {
    std::int64_t count = 0;
    double z[block_rows], b[block_rows], sign[block_rows], target[block_rows];
    double q[block_rows], c[block_rows];
    double residue[block_rows], share[block_rows], weight[block_rows];
};

// A function of its own with the loss by value: only so is the loop vectorised.
template <class LossType>
SurveySums sum_block(const LossType loss, SurveyBlock& rows) {
    double value = 0, conjugate = 0, balance = 0, active = 0, weight = 0, weight_squared = 0;
    const std::int64_t count = rows.count;
#pragma omp simd reduction(+ : value, conjugate, balance)
    for (std::int64_t k = 0; k < count; ++k) {
        const double z = rows.z[k], b = rows.b[k], t = rows.target[k];
        const double phi = loss.value(z, t), star = loss.conjugate(b, t), gap = phi + star + z * b;
        value += rows.c[k] * phi;
        conjugate += rows.c[k] * star;
        balance += rows.c[k] * rows.sign[k] * b;
        rows.share[k] = gap > 0 ? gap : 0;
        rows.residue[k] = rows.sign[k] * (b - loss.ascent(z, t));
    }
    const double gamma = loss.gamma;
#pragma omp simd reduction(+ : active, weight, weight_squared)
    for (std::int64_t k = 0; k < count; ++k) {
        const double w =
            adaptive_weight(gamma, rows.c[k], rows.q[k], rows.residue[k], rows.share[k]);
        rows.weight[k] = w;
        active += w > 0 ? 1.0 : 0.0;
        weight += w;
        weight_squared += w * w;
    }
    return {value, conjugate, balance, active, weight, weight_squared};
}

template <class LossType>
void follow_scores(const LossType loss, SurveyBlock& rows) {
#pragma omp simd
    for (std::int64_t k = 0; k < rows.count; ++k)
        rows.b[k] = loss.ascent(rows.z[k], rows.target[k]);
}

// P is taken at w as the ascent left it, D at beta with u summed anew: each a valid value whatever
// rounding did to u on the way, at the price of one pass. The fresh u then replaces the old one.
// After `place_primal` beta is not there yet and becomes -phi' at w on the way.
inline Survey survey(Iterate& it, const SurveyArrays& out, int threads, Pulse& pulse) {
    const Problem& problem = *it.problem;
    std::vector<SurveySums> sums(
        static_cast<std::size_t>((problem.n + block_rows - 1) / block_rows));
    // Kept from survey to survey: fresh pages for many features cost as much as their sums.
    std::vector<double>& fresh = it.spare;
    fresh.resize(static_cast<std::size_t>(problem.d));
    const double lambda_total = problem.lambda * problem.total;
    const double bias = it.bias();
    const double* w = it.primal();
    // The first survey of most solves: every score is 0, and no row need be read.
    const bool still = std::all_of(w, w + problem.d, [](double x) { return x == 0; });
    const bool follow = it.follow;
    Survey result;

    result.complete = std::visit(
        [&](const auto& rows, const auto& loss) {
            // Where it takes no exponential, -phi' is found row by row, while the row is at hand.
            constexpr bool at_once = std::is_same_v<decltype(loss), const PiecewiseQuadratic&>;
            return reduce_features(
                problem, threads, pulse, fresh.data(),
                [&](std::int64_t begin, std::int64_t end, double* part) {
                    SurveyBlock block;
                    block.count = end - begin;
                    auto add = [&](const auto& row) {
                        const double coefficient = row.state.scale * row.state.beta;
                        if (coefficient != 0)
                            row.each([&](std::int64_t j, double x) { part[j] += coefficient * x; });
                    };
                    for_rows(it, rows, begin, end, [&](std::int64_t i) {
                        const auto row = rows[i];
                        const RowState& state = row.state;
                        const std::int64_t k = i - begin;
                        const Label l = label(loss.margin, state.y);
                        const double x_dot_w = still ? 0.0 : row.dot(w);
                        if (out.score) out.score[i] = x_dot_w;
                        block.sign[k] = l.sign;
                        block.target[k] = l.target;
                        block.z[k] = l.sign * (x_dot_w + bias);
                        if (follow && at_once)
                            row.state.beta = l.sign * loss.ascent(block.z[k], l.target);
                        block.b[k] = l.sign * state.beta;
                        block.q[k] = state.q;
                        block.c[k] = state.scale * lambda_total;
                        if (!follow || at_once) add(row);
                    });
                    if (follow && !at_once) {
                        follow_scores(loss, block);
                        for_rows(it, rows, begin, end, [&](std::int64_t i) {
                            const auto row = rows[i];
                            row.state.beta = block.sign[i - begin] * block.b[i - begin];
                            add(row);
                        });
                    }
                    sums[begin / block_rows] = sum_block(loss, block);
                    if (out.beta)
                        for (std::int64_t k = 0; k < block.count; ++k)
                            out.beta[begin + k] = block.sign[k] * block.b[k];
                    auto copy = [&](const double* from, double* to) {
                        if (to) std::copy(from, from + block.count, to + begin);
                    };
                    copy(block.residue, out.residue);
                    copy(block.share, out.share);
                    copy(block.weight, out.weight);
                });
        },
        it.rows, problem.loss);
    if (!result.complete) return result;
    it.follow = false;

    Sum value, conjugate, balance;
    double weight = 0, weight_squared = 0;
    for (const SurveySums& s : sums) {
        value.add(s.value);
        conjugate.add(s.conjugate);
        balance.add(s.balance);
        result.active += static_cast<std::int64_t>(s.active);
        weight += s.weight;
        weight_squared += s.weight_squared;
    }
    const double spread = weight / weight_squared * (weight / static_cast<double>(problem.n));
    if (spread < 1) result.spread = spread;
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
