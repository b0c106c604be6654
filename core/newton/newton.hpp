// What a second-order step asks of the losses: derivatives at scores, and the slope along a line.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "newton/line.hpp"
#include "rows/passes.hpp"

namespace adasdca {

// Kinks rounded over a length about a dual point: phi* gains length (beta - centre)^2 / 2. Length 0
// is the loss itself, and needs no centre. Scores may be given less their targets, if the loss
// depends on the difference only: beside a large target a score has no digits for a small dual.
struct Rounding {
    double length = 0;
    const double* centre = nullptr;
    bool residuals = false;
};

// Sums over rows of the derivatives at some scores.
struct Derivatives {
    double balance = 0;  // sum c beta, with beta = -phi'
    double mass = 0;     // sum c phi''
    double away = 0;     // sum |t - z|
    double reach = 0;    // the largest |score|
    double curved = 0;   // rows with c phi'' > 0
};

// Labels and centres of a block in the coordinates of its rows.
struct NewtonBlock {
    double z[block_rows], sign[block_rows], target[block_rows], centre[block_rows];

    NewtonBlock(bool margin, std::int64_t begin, std::int64_t count, const double* y,
                const Rounding& rounding) {
        for (std::int64_t i = 0; i < count; ++i) {
            const Label l = label(margin, y[begin + i]);
            sign[i] = l.sign;
            target[i] = rounding.residuals ? 0.0 : l.target;
            centre[i] = rounding.centre ? l.sign * rounding.centre[begin + i] : 0.0;
        }
    }
};

// Functions of their own with everything by value, and the labels in a loop of their own: only so
// are the loops over the losses vectorised (squared hinge: 11 -> 1 ns a row, logistic 20 -> 3).
template <class LossType>
Derivatives derive_rows(const LossType loss, std::int64_t count, NewtonBlock& rows, double length,
                        const double* scores, const double* weight, double* __restrict beta,
                        double* __restrict curvature) {
    double balance = 0, mass = 0, away = 0, reach = 0, curved = 0;
#pragma omp simd reduction(+ : balance, mass, away, curved) reduction(max : reach)
    for (std::int64_t i = 0; i < count; ++i) {
        const double z = rows.sign[i] * scores[i];
        const double b = loss.rounded_ascent(z, rows.target[i], length, rows.centre[i]);
        const double h = weight[i] * loss.rounded_curvature(b, length);
        beta[i] = rows.sign[i] * b;
        curvature[i] = h;
        balance += weight[i] * beta[i];
        mass += h;
        away += std::abs(rows.target[i] - z);
        reach = std::max(reach, std::abs(z));
        curved += h != 0 ? 1.0 : 0.0;
    }
    return {balance, mass, away, reach, curved};
}

template <class LossType>
LineSlope slope_rows(const LossType loss, std::int64_t count, NewtonBlock& rows, double length,
                     const double* scores, const double* change, double step,
                     const double* weight) {
    double slope = 0, curvature = 0, size = 0;
#pragma omp simd reduction(+ : slope, curvature, size)
    for (std::int64_t i = 0; i < count; ++i) {
        const double z = rows.sign[i] * (scores[i] + step * change[i]);
        const double b = loss.rounded_ascent(z, rows.target[i], length, rows.centre[i]);
        const double term = weight[i] * rows.sign[i] * b * change[i];
        slope -= term;
        size += std::abs(term);
        curvature += weight[i] * loss.rounded_curvature(b, length) * change[i] * change[i];
    }
    return {slope, curvature, size};
}

// beta = -phi' and curvature = c phi'' at given scores, the intercept included.
inline Derivatives derive(const Problem& problem, Rounding rounding, const double* scores,
                          double* beta, double* curvature, int threads, StopToken& token) {
    const RowBlocks blocks(problem);
    std::vector<Derivatives> parts(static_cast<std::size_t>(blocks.count));
    std::visit(
        [&](const auto& loss) {
            blocks.each(worthwhile(10.0 * static_cast<double>(problem.n), threads), token,
                        [&](std::int64_t begin, std::int64_t count, const double* weight) {
                            NewtonBlock rows(loss.margin, begin, count, problem.y, rounding);
                            parts[begin / block_rows] =
                                derive_rows(loss, count, rows, rounding.length, scores + begin,
                                            weight, beta + begin, curvature + begin);
                        });
        },
        problem.loss);
    Sum balance, mass;
    Derivatives total;
    for (const auto& part : parts) {
        balance.add(part.balance);
        mass.add(part.mass);
        total.away += part.away;
        total.reach = std::max(total.reach, part.reach);
        total.curved += part.curved;
    }
    total.balance = balance.value();
    total.mass = mass.value();
    return total;
}

// The slope of sum_i c_i phi_i at scores + step * change: sum c phi' change and so on.
inline LineSlope slope_along(const Problem& problem, Rounding rounding, const double* scores,
                             const double* change, double step, int threads, StopToken& token) {
    const RowBlocks blocks(problem);
    std::vector<LineSlope> parts(static_cast<std::size_t>(blocks.count));
    std::visit(
        [&](const auto& loss) {
            blocks.each(worthwhile(10.0 * static_cast<double>(problem.n), threads), token,
                        [&](std::int64_t begin, std::int64_t count, const double* weight) {
                            NewtonBlock rows(loss.margin, begin, count, problem.y, rounding);
                            parts[begin / block_rows] =
                                slope_rows(loss, count, rows, rounding.length, scores + begin,
                                           change + begin, step, weight);
                        });
        },
        problem.loss);
    Sum slope, curvature;
    LineSlope total;
    for (const auto& part : parts) {
        slope.add(part.slope);
        curvature.add(part.curvature);
        total.size += part.size;
    }
    total.slope = slope.value();
    total.curvature = curvature.value();
    return total;
}

// What else a function has along a line than its rows: a slope that is straight.
struct StraightSlope {
    double slope, curvature, size;  // at length 0

    LineSlope at(double length) const {
        return {slope + length * curvature, curvature, size + length * curvature};
    }
};

// The length of a step along a line of scores. The rounding of a score of a steep row is many times
// that of its dual: `reach` is the largest score, and `mass` the curvature of all.
inline StepLength search_along(const Problem& problem, Rounding rounding, const double* scores,
                               const double* change, double reach, double mass,
                               const StraightSlope& rest, double start, int threads,
                               StopToken& token) {
    return step_length(
        [&](double length) {
            LineSlope at = slope_along(problem, rounding, scores, change, length, threads, token);
            const LineSlope more = rest.at(length);
            at.size += reach * std::sqrt(mass * at.curvature) + more.size;
            at.slope += more.slope;
            at.curvature += more.curvature;
            return at;
        },
        start);
}

}  // namespace adasdca
