// One sequential pass over the rows gives P, D, the residues, the sampling distribution and a fresh
// u.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "duality/intercept.hpp"

namespace adasdca {

// Arrays of length n (coef: d) that a survey fills; null: not asked for.
struct SurveyArrays {
    double* score = nullptr;    // x.w, without intercept
    double* residue = nullptr;  // kappa = beta + phi'(score + bias)
    double* share = nullptr;    // phi + phi* + score beta >= 0
    double* weight = nullptr;   // the adaptive distribution, unnormalised
    double* beta = nullptr;
    double* certified = nullptr;  // the dual point of the certificate: beta, balanced if need be
    double* coef = nullptr;       // the w at which P was taken
};

struct Survey {
    Certified certificate;
    double intercept = 0;
    std::int64_t active = 0;  // rows with a positive weight
    std::int64_t moved = 0;   // rows whose dual is not 0
    double spread =
        1;  // share of the rows that the adaptive distribution visits in effect, at most 1
    bool complete = false;
};

// What the rows of a block weigh in the adaptive distribution.
struct LawSums {
    double active = 0, moved = 0, weight = 0, weight_squared = 0;
};

inline LawSums law_sums(double gamma, const RowBlock& rows, double* to) {
    double active = 0, moved = 0, weight = 0, weight_squared = 0;
#pragma omp simd reduction(+ : active, moved, weight, weight_squared)
    for (std::int64_t k = 0; k < rows.count; ++k) {
        const double w =
            adaptive_weight(gamma, rows.c[k], rows.q[k], rows.residue[k], rows.share[k]);
        to[k] = w;
        active += w > 0 ? 1.0 : 0.0;
        moved += rows.b[k] != 0 ? 1.0 : 0.0;
        weight += w;
        weight_squared += w * w;
    }
    return {active, moved, weight, weight_squared};
}

template <class LossType>
void follow_scores(const LossType loss, RowBlock& rows) {
#pragma omp simd
    for (std::int64_t k = 0; k < rows.count; ++k)
        rows.b[k] = loss.ascent(rows.z[k], rows.target[k]);
}

// P is taken at w as the ascent left it, D at beta with u summed anew: each a valid value whatever
// rounding did to u on the way, at the price of one pass. The fresh u waits for the next ascent.
// After `place_primal` beta is not there yet and becomes -phi' at w on the way.
inline Survey survey(Iterate& it, const SurveyArrays& out, int threads, StopToken& token) {
    const Problem& problem = *it.problem;
    const auto blocks = static_cast<std::size_t>((problem.n + block_rows - 1) / block_rows);
    std::vector<GapSums> sums(blocks);
    std::vector<LawSums> distributions(blocks);
    // With an intercept the scores are needed again.
    Buffer<double> own(
        static_cast<std::size_t>(problem.fit_intercept && !out.score ? problem.n : 0));
    double* scores = own.empty() ? out.score : own.data();
    // Kept from survey to survey: fresh pages for many features cost as much as their sums.
    std::vector<double>& fresh = it.spare;
    fresh.resize(static_cast<std::size_t>(problem.d));
    const double lambda_total = problem.lambda * problem.total;
    const double bias = it.bias();
    const double* w = it.primal();
    // The first survey of most solves: every score is 0, and no row need be read.
    const bool still = std::all_of(w, w + problem.d, [](double x) { return x == 0; });
    const bool follow = it.follow;
    const ScoreError error = score_error(problem, w, bias, false);
    Survey result;

    result.complete = std::visit(
        [&](const auto& rows, const auto& loss) {
            // Where it takes no exponential, -phi' is found row by row, while the row is at hand.
            constexpr bool at_once = std::is_same_v<decltype(loss), const PiecewiseQuadratic&>;
            return reduce_features(
                problem, threads, token, fresh.data(),
                [&](std::int64_t begin, std::int64_t end, double* part) {
                    RowBlock block;
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
                        if (scores) scores[i] = x_dot_w;
                        block.sign[k] = l.sign;
                        block.target[k] = l.target;
                        block.z[k] = l.sign * (x_dot_w + bias);
                        if (follow && at_once)
                            row.state.beta = l.sign * loss.ascent(block.z[k], l.target);
                        block.b[k] = l.sign * state.beta;
                        block.q[k] = state.q;
                        block.c[k] = state.scale * lambda_total;
                        block.length[k] = static_cast<double>(row.size);
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
                    double weight[block_rows];
                    sums[begin / block_rows] = gap_sums(loss, block, error, lambda_total);
                    distributions[begin / block_rows] = law_sums(loss.gamma, block, weight);
                    if (out.beta)
                        for (std::int64_t k = 0; k < block.count; ++k)
                            out.beta[begin + k] = block.sign[k] * block.b[k];
                    auto copy = [&](const double* from, double* to) {
                        if (to) std::copy(from, from + block.count, to + begin);
                    };
                    copy(block.residue, out.residue);
                    copy(block.share, out.share);
                    copy(weight, out.weight);
                });
        },
        it.rows, problem.loss);
    if (!result.complete) return result;
    it.follow = false;

    Sum constant;
    if (problem.fit_intercept)
        with_rows(it, [&](const auto& rows) {
            for (std::int64_t i = 0; i < problem.n; ++i)
                constant.add(rows[i].state.scale * rows[i].state.beta);
        });
    double weight = 0, weight_squared = 0;
    for (const LawSums& distribution : distributions) {
        result.active += static_cast<std::int64_t>(distribution.active);
        result.moved += static_cast<std::int64_t>(distribution.moved);
        weight += distribution.weight;
        weight_squared += distribution.weight_squared;
    }
    const double spread = weight / weight_squared * (weight / static_cast<double>(problem.n));
    if (spread < 1) result.spread = spread;
    if (out.coef) std::copy(w, w + problem.d, out.coef);
    if (problem.fit_intercept) {
        result.intercept = best_intercept(problem, scores, it.intercept, threads, token);
        balanced_dual(problem, scores, result.intercept, out.beta, out.certified, token);
        result.complete = !token.stopped();
        if (!result.complete) return result;
        result.certificate =
            certify(it, scores, result.intercept, w, out.certified, threads, token);
        if (it.careful) {
            const auto other = certify(it, scores, result.intercept, w, out.beta, threads, token);
            if (other.gap < result.certificate.gap) {
                result.certificate = other;
                std::copy(out.beta, out.beta + problem.n, out.certified);
            }
        }
        it.intercept = result.intercept;
        result.complete = !token.stopped();
    } else {
        result.certificate = certified(problem, total_of(sums), w, fresh.data(), false);
        if (doubtful(result.certificate)) {
            const auto finer = certify_by(it, true, nullptr, 0.0, w, out.beta, threads, token);
            if (finer.gap < result.certificate.gap) result.certificate = finer;
            result.complete = !token.stopped();
        }
    }
    it.spare_constant = problem.intercept_scale * constant.value();
    it.summed = true;
    return result;
}

}  // namespace adasdca
