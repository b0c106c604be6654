// One sequential pass over the rows gives P, D, the residues, the sampling distribution and a fresh
// u.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
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

// What some rows weigh in the adaptive distribution.
struct DistributionSums {
    double active = 0, moved = 0, weight = 0, weight_squared = 0;
};

struct Survey {
    Certified certificate;
    double intercept = 0;
    std::int64_t active = 0;  // rows with a positive weight
    std::int64_t moved = 0;   // rows whose dual is not 0
    double effective_share =
        1;  // share of the rows that the adaptive distribution visits in effect
    bool complete = false;

    void take(const DistributionSums& all, std::int64_t n) {
        active = static_cast<std::int64_t>(all.active);
        moved = static_cast<std::int64_t>(all.moved);
        const double share =
            all.weight / all.weight_squared * (all.weight / static_cast<double>(n));
        if (share < 1) effective_share = share;
    }
};

inline DistributionSums total_of(const std::vector<DistributionSums>& parts) {
    DistributionSums all;
    for (const DistributionSums& part : parts) {
        all.active += part.active;
        all.moved += part.moved;
        all.weight += part.weight;
        all.weight_squared += part.weight_squared;
    }
    return all;
}

inline DistributionSums distribution_sums(double gamma, const RowBlock& rows, double* to) {
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

// Where nobody asks for the distribution: how many rows it would visit, without its roots.
inline DistributionSums distribution_counts(double gamma, const RowBlock& rows) {
    double active = 0, moved = 0;
#pragma omp simd reduction(+ : active, moved)
    for (std::int64_t k = 0; k < rows.count; ++k) {
        const double weight = rows.c[k] * (gamma > 0 ? std::abs(rows.residue[k]) : rows.share[k]);
        active += weight > 0 ? 1.0 : 0.0;
        moved += rows.b[k] != 0 ? 1.0 : 0.0;
    }
    return {active, moved, 0, 0};
}

// Residues, and shares if they are asked for, of other duals than those of the gap.
template <class LossType>
void measure(const LossType loss, RowBlock& rows, const double* b, bool shares) {
#pragma omp simd
    for (std::int64_t k = 0; k < rows.count; ++k)
        rows.residue[k] += rows.sign[k] * (b[k] - rows.b[k]);
    if (!shares) return;
#pragma omp simd
    for (std::int64_t k = 0; k < rows.count; ++k)
        rows.share[k] = loss.excess(rows.z[k], b[k], rows.target[k]);
}

template <class LossType>
void follow_scores(const LossType loss, RowBlock& rows) {
#pragma omp simd
    for (std::int64_t k = 0; k < rows.count; ++k)
        rows.b[k] = loss.ascent(rows.z[k], rows.target[k]);
}

// Sums of rows whose scores and duals are all 0: phi* is 0 there, and of a row only q matters. With
// margins all targets are 1, and the loss is taken once. (With `excess`, which is the same here,
// the loop is not vectorised: 45,730 rows, 0.5 ms.) `single` is that of their `ScoreError`.
template <bool margins, bool weighed, class LossType>
GapSums sums_at_zero(const LossType loss, std::int64_t count, const double* targets,
                     const double* weight, const double* q, double single, double* to,
                     DistributionSums& all) {
    double value = 0, slip = 0, active = 0, sum = 0, squares = 0;
#pragma omp simd reduction(+ : value, slip, active, sum, squares)
    for (std::int64_t k = 0; k < count; ++k) {
        const double t = margins ? 1.0 : targets[k], c = weight[k];
        const double s = loss.ascent(0.0, t), v = loss.value(0.0, t), delta = single * std::abs(t);
        value += c * v;
        slip += c * delta * (std::abs(s) + loss.variation(0.0, t, delta));
        if constexpr (weighed) {
            const double w = adaptive_weight(loss.gamma, c, q[k], s, v);
            to[k] = w;
            active += w > 0 ? 1.0 : 0.0;
            sum += w;
            squares += w * w;
        } else {
            active += c * (loss.gamma > 0 ? std::abs(s) : v) > 0 ? 1.0 : 0.0;
        }
    }
    all.active += active;
    all.weight += sum;
    all.weight_squared += squares;
    return {value, value, slip, slip, 0};
}

// The first survey of most solves, where w = 0, b = 0 and beta = 0: no entry of a row is read.
inline Survey survey_at_zero(Iterate& it, const SurveyArrays& out, StopToken& token) {
    const Problem& problem = *it.problem;
    const RowBlocks blocks(problem);
    std::vector<GapSums> sums(static_cast<std::size_t>(blocks.count));
    DistributionSums all;
    const double *w = it.primal(), single = score_error(problem, w, 0.0, false).single;
    double q[block_rows];
    blocks.each(1, token, [&](std::int64_t begin, std::int64_t count, const double* c) {
        double* to = out.weight ? out.weight + begin : nullptr;
        if (to)
            with_rows(it, [&](const auto& rows) {
                for (std::int64_t k = 0; k < count; ++k) q[k] = rows[begin + k].state.q;
            });
        const double* y = problem.y + begin;
        sums[begin / block_rows] = std::visit(
            [&](const auto& loss) {
                auto sum = [&](auto margins, auto weighed) {
                    return sums_at_zero<margins.value, weighed.value>(loss, count, y, c, q, single,
                                                                      to, all);
                };
                const std::true_type yes;
                const std::false_type no;
                if (to) return loss.margin ? sum(yes, yes) : sum(no, yes);
                return loss.margin ? sum(yes, no) : sum(no, no);
            },
            problem.loss);
    });
    Survey result;
    result.certificate = certified(problem, total_of(sums), w, it.u.data(), 0, false);
    if (out.weight)
        result.take(all, problem.n);
    else
        result.active = static_cast<std::int64_t>(all.active);
    std::fill_n(out.coef, problem.d, 0.0);
    std::fill_n(out.beta, problem.n, 0.0);
    if (out.certified != out.beta) std::fill_n(out.certified, problem.n, 0.0);
    result.complete = !token.stopped();
    return result;
}

// Without an L2 term duals have to be scaled before they certify anything: sums in twice the digits
// of those that are not are for nothing (20,000 x 100, lasso: 2.2 of 2.8 ms).
inline bool is_curved(const Problem& problem) {
    return std::visit([](const auto& g) { return g.ridge > 0; }, problem.regularizer);
}

// Whether a survey of slopes has all scores and duals at hand before rows are read for their sum.
// Without an intercept, dense rows of few features are quickly read twice.
inline bool surveyed_at_once(const Iterate& it) {
    const Problem& problem = *it.problem;
    if (!it.placed || !it.follow || !is_smooth(problem.loss)) return false;
    return problem.fit_intercept || (problem.d <= TurnedRows::longest && is_dense(it));
}

// After `place_primal` of a smooth problem: beta becomes -phi' at w and its best intercept. Scores
// and duals of all rows are at hand then, and rows are read for their sum alone (45,730 x 9,
// squared, with an intercept: 2.3 -> 1.2 ms).
inline Survey survey_slopes(Iterate& it, const SurveyArrays& out, double enough, int threads,
                            StopToken& token) {
    const Problem& problem = *it.problem;
    const double* w = it.primal();
    Survey result;
    Buffer<double> own(static_cast<std::size_t>(out.score ? 0 : problem.n));
    double *scores = out.score ? out.score : own.data(), *beta = out.certified;
    if (!score(it, w, scores, threads, token)) return result;
    const bool intercept = problem.fit_intercept;
    const double b =
        intercept ? best_intercept(problem, scores, it.multiplier, threads, token) : 0.0;
    if (token.stop()) return result;
    slopes_at(problem, scores, b, beta);
    if (intercept) balance_sides(problem, sides_of(problem, beta), beta, beta);
    std::vector<double>& u = it.spare;
    u.resize(static_cast<std::size_t>(problem.d));
    if (!combine(it, beta, u.data(), threads, token)) return result;
    std::vector<DistributionSums> distributions(
        static_cast<std::size_t>((problem.n + block_rows - 1) / block_rows));
    const Evidence evidence = evidence_of(
        it, scores, b, false, score_error(problem, w, b, false), beta, threads, token,
        [&](double gamma, const RowBlock& block, std::int64_t begin) {
            distributions[begin / block_rows] =
                out.weight ? distribution_sums(gamma, block, out.weight + begin)
                           : distribution_counts(gamma, block);
            if (out.residue) std::copy_n(block.residue, block.count, out.residue + begin);
            if (out.share) std::copy_n(block.share, block.count, out.share + begin);
        },
        true, out.weight != nullptr);
    if (token.stopped()) return result;
    with_rows(it, [&](const auto& rows) {
        for (std::int64_t i = 0; i < problem.n; ++i) {
            const auto row = rows[i];
            row.state.beta = beta[i];
        }
    });
    it.multiplier = b;
    it.spare_constant =
        problem.intercept_scale * evidence.skew.imbalance / (problem.lambda * problem.total);
    it.follow = false;
    it.summed = true;
    result.take(total_of(distributions), problem.n);
    result.intercept = b;
    if (out.beta != beta) std::copy_n(beta, problem.n, out.beta);
    if (out.coef) std::copy_n(w, problem.d, out.coef);
    Certified& best = result.certificate;
    best = certified(problem, evidence.sums, w, u.data(), Chunks(problem).chain(), false);
    charge_imbalance(problem, w, evidence.skew, best);
    if (is_curved(problem) && doubtful(problem, best, enough)) {
        const auto finer = certify_by(it, true, nullptr, b, w, beta, threads, token);
        if (finer.gap < best.gap) best = finer;
    }
    result.complete = !token.stopped();
    return result;
}

// P is taken at w as the ascent left it, D at beta with u summed anew: each a valid value whatever
// rounding did to u on the way, at the price of one pass. The fresh u waits for the next ascent.
// After `place_primal` beta is not there yet and becomes -phi' at w on the way. A relative gap that
// is `enough` need not be known better.
inline Survey survey(Iterate& it, const SurveyArrays& out, double enough, int threads,
                     StopToken& token) {
    const Problem& problem = *it.problem;
    const double* w = it.primal();
    // The first survey of most solves: every score is 0.
    const bool at_zero = std::all_of(w, w + problem.d, [](double x) { return x == 0; });
    const bool by_row = out.score || out.residue || out.share;
    if (it.fresh && at_zero && !by_row) return survey_at_zero(it, out, token);
    const bool slopes = problem.fit_intercept && it.placed && is_smooth(problem.loss);
    if (surveyed_at_once(it)) return survey_slopes(it, out, enough, threads, token);
    const auto blocks = static_cast<std::size_t>((problem.n + block_rows - 1) / block_rows);
    std::vector<GapSums> sums(blocks);
    std::vector<DistributionSums> distributions(blocks);
    // With an intercept the scores are needed again.
    Buffer<double> own(
        static_cast<std::size_t>(problem.fit_intercept && !out.score ? problem.n : 0));
    double* scores = own.empty() ? out.score : own.data();
    // Kept from survey to survey: fresh pages for many features cost as much as their sums.
    std::vector<double>& fresh = it.spare;
    fresh.resize(static_cast<std::size_t>(problem.d));
    // With an intercept the certificate is that of the duals with their heavier side scaled down.
    // The rows of either side have a sum each, of which those of all duals, scaled or not, are
    // made. After Newton steps the duals are the slopes at the best intercept instead.
    const bool sided = problem.fit_intercept && !slopes;
    const Sides sides = sided ? sides_of(it) : Sides{};
    const double up = sides.share_of(1.0), down = sides.share_of(-1.0);
    Buffer<double> side_sums(static_cast<std::size_t>(sided ? 2 * problem.d : 0));
    std::vector<Extent> extents(problem.fit_intercept ? blocks : 0);
    const double lambda_total = problem.lambda * problem.total;
    const double bias = it.placed ? it.multiplier : it.bias();
    const bool follow = it.follow;
    Survey result;
    const ScoreError error = score_error(problem, w, bias, false);

    result.complete = std::visit(
        [&](const auto& rows, const auto& loss) {
            // Where it takes no exponential, -phi' is found row by row, while the row is at hand.
            constexpr bool at_once = std::is_same_v<decltype(loss), const PiecewiseQuadratic&>;
            return reduce_features(
                problem, threads, token, sided ? side_sums.data() : fresh.data(),
                [&](std::int64_t begin, std::int64_t end, double* parts) {
                    RowBlock block;
                    const BlockBounds& bounds = it.bounds[begin / block_rows];
                    double own_b[block_rows];
                    block.count = end - begin;
                    auto add = [&](const auto& row) ADASDCA_INLINED {
                        const double coefficient = row.state.scale * row.state.beta;
                        double* part = parts + (sided && coefficient > 0 ? problem.d : 0);
                        if (coefficient != 0)
                            row.each([&](std::int64_t j, double x) { part[j] += coefficient * x; });
                    };
                    // A call for every row would be a third of the survey (ijcnn1: 1.2 -> 0.8 ms).
                    auto visit = [&](std::int64_t i) ADASDCA_INLINED {
                        const auto row = rows[i];
                        const RowState& state = row.state;
                        const std::int64_t k = i - begin;
                        const Label l = label(loss.margin, state.y);
                        const double x_dot_w = at_zero ? 0.0 : row.dot(w);
                        if (scores) scores[i] = x_dot_w;
                        block.sign[k] = l.sign;
                        block.target[k] = l.target;
                        block.z[k] = l.sign * (x_dot_w + bias);
                        if (follow && at_once)
                            row.state.beta = l.sign * loss.ascent(block.z[k], l.target);
                        block.b[k] = l.sign * state.beta;
                        if (sided) {
                            out.beta[i] = state.beta;
                            own_b[k] = block.b[k];
                            block.b[k] *= state.beta > 0 ? up : down;
                        }
                        block.q[k] = state.q;
                        block.c[k] = state.scale * lambda_total;
                        if (!bounds.alike) block.length[k] = static_cast<double>(row.size);
                        if (!follow || at_once) add(row);
                    };
                    for_rows(it, rows, begin, end, visit, at_zero);
                    if (follow && !at_once) {
                        follow_scores(loss, block);
                        for_rows(it, rows, begin, end, [&](std::int64_t i) ADASDCA_INLINED {
                            const auto row = rows[i];
                            row.state.beta = block.sign[i - begin] * block.b[i - begin];
                            add(row);
                        });
                    }
                    const double delta = error.of(bounds, loss.margin ? 1.0 : bounds.target);
                    sums[begin / block_rows] =
                        bounds.alike ? gap_sums(loss, block, delta, bounds.norm)
                                     : gap_sums_by_rows(loss, block, error, lambda_total);
                    if (sided) measure(loss, block, own_b, loss.gamma == 0 || out.share);
                    distributions[begin / block_rows] =
                        out.weight ? distribution_sums(loss.gamma, block, out.weight + begin)
                                   : distribution_counts(loss.gamma, block);
                    if (problem.fit_intercept) extents[begin / block_rows] = extent_of(block);
                    if (double* beta = sided ? out.certified : out.beta)
                        for (std::int64_t k = 0; k < block.count; ++k)
                            beta[begin + k] = block.sign[k] * block.b[k];
                    auto copy = [&](const double* from, double* to) {
                        if (to) std::copy(from, from + block.count, to + begin);
                    };
                    copy(block.residue, out.residue);
                    copy(block.share, out.share);
                },
                sided ? 2 : 1);
        },
        it.rows, problem.loss);
    if (!result.complete) return result;
    it.follow = false;

    result.take(total_of(distributions), problem.n);
    if (out.coef) std::copy(w, w + problem.d, out.coef);
    result.intercept = bias;
    auto& best = result.certificate;
    if (sided) {
        const double *negative = side_sums.data(), *positive = negative + problem.d;
        Buffer<double> u(static_cast<std::size_t>(problem.d));
        for (std::int64_t j = 0; j < problem.d; ++j) {
            fresh[j] = positive[j] + negative[j];
            u[j] = up * positive[j] + down * negative[j];
        }
        it.spare_constant = problem.intercept_scale * (sides.up - sides.down);
        best = certified(problem, total_of(sums), w, u.data(), Chunks(problem).chain(), false);
        charge_imbalance(problem, w, skew_of(problem, out.certified, extents), best);
        if (best.rounding > 0.1 * best.gap && best.gap > enough * best.primal) {
            // What the scaling has left of the imbalance may be what is left of the gap.
            balance_sides(problem, sides_of(problem, out.beta), out.beta, out.certified);
            best = certify(it, scores, bias, w, out.certified, threads, token, enough);
        }
    } else if (slopes) {
        it.spare_constant = problem.intercept_scale * imbalance(problem, out.beta) / lambda_total;
        result.intercept = best_intercept(problem, scores, bias, threads, token);
        if (token.stop()) return {};
        slopes_at(problem, scores, result.intercept, out.certified);
        balance_sides(problem, sides_of(problem, out.certified), out.certified, out.certified);
        best = certify(it, scores, result.intercept, w, out.certified, threads, token, enough);
    } else {
        best = certified(problem, total_of(sums), w, fresh.data(), Chunks(problem).chain(), false);
        charge_imbalance(problem, w, skew_of(problem, out.beta, extents), best);
        if (is_curved(problem) && doubtful(problem, best, enough)) {
            const auto finer = certify_by(it, true, nullptr, bias, w, out.beta, threads, token);
            if (finer.gap < best.gap) best = finer;
        }
    }
    result.complete = !token.stopped();
    it.summed = true;
    return result;
}

}  // namespace adasdca
