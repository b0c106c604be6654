// The certificate of a primal and a dual point: P(w, b), and a bound on P(w, b) - min P.
//
//   P - D = (1/N) sum_i c_i (phi_i(a_i) + phi_i*(-beta_i) + a_i beta_i)
//           + lambda (g(w) + g*(u) - u.w) - (b/N) sum_i c_i beta_i
//
// is a sum of terms that are never negative, the last one 0: no digits are lost in a difference of
// nearly equal numbers. What rounding can do to scores, to u and to the sums is bounded beforehand
// and added, so that the bound holds for the data as given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "math/exact.hpp"
#include "rows/passes.hpp"

namespace adasdca {

inline constexpr double unit_roundoff = std::numeric_limits<double>::epsilon() / 2;

struct Certified {
    double primal = 0;
    double gap = 0;       // P - min P is at most this, the rounding included
    double rounding = 0;  // the part of the gap that is a bound of rounding
    double blur = 0;      // how far the value of P itself can be from the truth
};

// Sums over some rows, by which they are certified.
struct GapSums {
    double value = 0;   // c phi
    double excess = 0;  // c (phi + phi* + a beta)
    double slip = 0;    // what rounding of the scores can add to the excess
    double blur = 0;    // and to the value
    double mass = 0;    // c |beta| |x|
};

// A block of rows as the losses see it.
struct RowBlock {
    std::int64_t count = 0;
    double z[block_rows], b[block_rows], sign[block_rows], target[block_rows];
    double q[block_rows], c[block_rows], length[block_rows];
    double residue[block_rows], share[block_rows];  // kappa, and phi + phi* + a beta
};

// How far the scores of a pass can be from the truth: a multiple of |x||w|, in the regulariser's
// norm and its dual, and of single numbers.
// A sum of `size` products is one chain on short rows, which compilers need not vectorise, and two
// at least on others. One in twice the digits is rounded once, and to the square of what its chain
// could lose. (Numbers, no flags: loops are vectorised.)
struct ScoreError {
    double norm_w, inner, outer;  // the intercept inside the sum, or added to it
    double linear, square;        // of the size
    double single;                // of single numbers; 0 where there is no loss

    double of(double norm_x, double size, double z, double target) const {
        const double chain = std::max(0.5 * size + 8.0, std::min<double>(size, long_row));
        const double share = linear * chain + square * (size + 4.0) * (size + 4.0);
        return share * (norm_x * norm_w + inner) +
               single * (outer + std::abs(z) + std::abs(target));
    }
    // Of all rows of a block. No score is larger than |x||w| and the intercept, but for rounding.
    double of(const BlockBounds& rows, double target) const {
        return of(rows.norm, rows.size, 1.01 * (rows.norm * norm_w + inner + outer), target);
    }
};

// Whether w = 0, no difference of a target and the intercept is rounded, and no row has a loss:
// those at the very edge of a zone without loss have none. Nothing is less than an objective of 0.
inline bool costs_nothing(const Problem& problem, const double* w, double bias) {
    if (!std::all_of(w, w + problem.d, [](double x) { return x == 0; })) return false;
    return std::visit(
        [&](const auto& loss) {
            return std::all_of(problem.y, problem.y + problem.n, [&](double t) {
                Twofold difference{t};
                difference.add(-bias);
                if (difference.rest != 0) return false;
                return (loss.margin ? loss.value(t * bias, 1.0) : loss.value(bias, t)) == 0;
            });
        },
        problem.loss);
}

inline ScoreError score_error(const Problem& problem, const double* w, double bias, bool exact) {
    constexpr double eps = unit_roundoff;
    const double norm = std::visit([&](const auto& g) { return regularizer_norm(g, w, problem.d); },
                                   problem.regularizer);
    const double shift = std::abs(bias);
    // A penalised intercept is told as the product of its coefficient and the constant, rounded.
    const double told = problem.constant != 0 ? std::abs(problem.constant * w[problem.d - 1]) : 0;
    const double single = costs_nothing(problem, w, bias) ? 0.0 : 4.0 * eps;
    return exact ? ScoreError{norm, shift, told, 0, 4 * eps * eps, single}
                 : ScoreError{norm, 0, shift + told, eps, 0, single};
}

// Sums over a block, its residues and shares; what rounding can do to scores that are off by
// `delta`, and to the sum of rows no longer than `norm`, is bounded for all rows at once.
// A function of its own with the loss by value: only so is the loop vectorised.
template <class LossType>
GapSums gap_sums(const LossType loss, RowBlock& rows, double delta, double norm) {
    double value = 0, excess = 0, difference = 0, slopes = 0, duals = 0, weight = 0, variation = 0;
    double kink = INFINITY;
    const std::int64_t count = rows.count;
#pragma omp simd reduction(+ : value, excess, difference, slopes, duals, weight) \
    reduction(min : kink)
    for (std::int64_t k = 0; k < count; ++k) {
        const double z = rows.z[k], b = rows.b[k], t = rows.target[k], c = rows.c[k];
        const double s = loss.ascent(z, t);
        rows.share[k] = loss.excess(z, b, t);
        rows.residue[k] = rows.sign[k] * (b - s);
        value += c * loss.value(z, t);
        excess += c * rows.share[k];
        difference += c * std::abs(s - b);
        slopes += c * std::abs(s);
        duals += c * std::abs(b);
        weight += c;
        kink = std::min(kink, loss.from_kink(z, t));
    }
    if (loss.gamma > 0) {
        variation = 2.0 * delta * weight / loss.gamma;  // phi' is 1/gamma-Lipschitz
    } else if (!(kink > 2.0 * delta)) {
#pragma omp simd reduction(+ : variation)
        for (std::int64_t k = 0; k < count; ++k)
            variation += rows.c[k] * loss.variation(rows.z[k], rows.target[k], delta);
    }
    return {value, excess, delta * (difference + variation), delta * (slopes + variation),
            norm * duals};
}

// The same with a bound for each row, which is closer where some are far longer than others.
template <class LossType>
GapSums gap_sums_by_rows(const LossType loss, RowBlock& rows, const ScoreError error,
                         double lambda_total) {
    GapSums sums = gap_sums(loss, rows, 0.0, 0.0);
    double slip = 0, blur = 0, mass = 0;
    const std::int64_t count = rows.count;
#pragma omp simd reduction(+ : slip, blur, mass)
    for (std::int64_t k = 0; k < count; ++k) {
        const double z = rows.z[k], b = rows.b[k], t = rows.target[k], c = rows.c[k];
        const double norm = std::sqrt(rows.q[k] * lambda_total / std::max(c, 1e-300));
        const double delta = error.of(norm, rows.length[k], z, t);
        const double s = loss.ascent(z, t), variation = loss.variation(z, t, delta);
        slip += c * delta * (std::abs(s - b) + variation);
        blur += c * delta * (std::abs(s) + variation);
        mass += c * std::abs(b) * norm;
    }
    sums.slip = slip;
    sums.blur = blur;
    sums.mass = mass;
    return sums;
}

inline GapSums total_of(const std::vector<GapSums>& parts) {
    Sum value, excess;
    GapSums total;
    for (const GapSums& part : parts) {
        value.add(part.value);
        excess.add(part.excess);
        total.slip += part.slip;
        total.blur += part.blur;
        total.mass += part.mass;
    }
    total.value = value.value();
    total.excess = excess.value();
    return total;
}

// How far rounding of u can raise g(w) + g*(u) - u.w, whose slope in u is read(u) - w and whose
// value is `difference`. A u that `combine` summed is off by a multiple of the mass, at most, in
// its norm. One by `combine_exactly` is rounded in every feature (d), and off by a square in its
// norm: its m rows leave rests of eps M each, M the sum of sizes (sum_i c_i |beta_i x_ij|, whose
// norm over the features is at most the mass), in all m eps M, and adding these loses another m eps
// of it. Norms are the regulariser's, and of u its dual.
template <RegularizerLike G>
double lost_in_sum(const Problem& problem, const G& g, double mass, const double* w,
                   const double* u, double difference, std::int64_t links, bool exact) {
    const double chain = 2.0 * unit_roundoff * static_cast<double>(links + 12);
    const double sizes = mass / (problem.lambda * problem.total);
    if (!exact) {
        // Where g is not curved g* is a support function: it moves by |w - x| a unit of u.
        const double reach = regularizer_reach(g, w, u, problem.d, chain * sizes);
        // Where it is, read(u) is a 1-Lipschitz function of u, and so difference at least half a
        // square of the slope.
        const double slope = g.ridge > 0 ? std::sqrt(2.0 * difference) + 0.5 * chain * sizes : 0.0;
        return (slope + reach) * chain * sizes;
    }
    double rounded = 0, square = 0;
    const double lost = chain * chain * sizes;
    for (std::int64_t j = 0; j < problem.d; ++j) {
        const double d = g.roundings * unit_roundoff * std::abs(u[j]);
        double slope = g.reach(w[j], u[j], d + std::sqrt(g.metric(j)) * lost, j);
        if (g.ridge > 0)
            slope = std::max({slope, std::abs(g.read(u[j] - d, j) - w[j]),
                              std::abs(g.read(u[j] + d, j) - w[j])});
        if (std::isinf(slope)) return slope;
        rounded += d * slope;
        square += g.metric(j) * slope * slope;
    }
    return rounded + (std::sqrt(square) + 0.5 * lost) * lost;
}

// How far g(w) + g*(u) - u.w, which is convex, can rise if the last of w is rounded.
template <RegularizerLike G>
double lost_in_telling(const G& g, const double* w, const double* u, std::int64_t d) {
    const double last = w[d - 1], off = 2.0 * unit_roundoff * std::abs(last);
    const double most =
        std::max(g.excess(last - off, u[d - 1], d - 1), g.excess(last + off, u[d - 1], d - 1));
    const double here = g.excess(last, u[d - 1], d - 1);
    return std::isinf(here) ? 0.0 : std::max(most - here, 0.0);
}

inline bool has_dead_zone(const AnyLoss& loss) {
    const auto* family = std::get_if<PiecewiseQuadratic>(&loss);
    return family && family->epsilon > 0;
}

// `u` is the sum of the rows by their duals, in chains of so many links.
inline Certified certified(const Problem& problem, const GapSums& sums, const double* w,
                           const double* u, std::int64_t links, bool exact) {
    const double n = problem.total, lambda = problem.lambda;
    Certified result;
    double penalty = 0, difference = 0, off = 0, told = 0;
    std::visit(
        [&](const auto& g) {
            const double excess = regularizer_excess(g, w, u, problem.d);
            penalty = lambda * regularizer_value(g, w, problem.d);
            difference = lambda * excess;
            off = lambda * lost_in_sum(problem, g, sums.mass, w, u, excess, links, exact);
            if (problem.constant != 0) told = lambda * lost_in_telling(g, w, u, problem.d);
        },
        problem.regularizer);
    const double terms = 256.0 + 0.5 * static_cast<double>(problem.d);  // in one chain of a sum
    const double relative = 4.0 * unit_roundoff * terms;
    // What may have underflowed on the way, unless all terms are 0: far more than is lost by it.
    const bool nothing = sums.value == 0 && sums.mass == 0 &&
                         std::all_of(w, w + problem.d, [](double x) { return x == 0; });
    const double tiny = nothing ? 0.0 : 1e-300;
    // Scores of w = 0 are the intercept as it is: a loss of 0 is none, unless rounding has taken a
    // row into the zone without loss.
    const bool exactly = nothing && !has_dead_zone(problem.loss);
    result.primal = sums.value / n + penalty;
    const double gap = sums.excess / n + difference;
    result.rounding =
        1.001 * ((exactly ? 0.0 : sums.slip) / n + off + told + relative * gap) + tiny;
    result.gap = gap + result.rounding;
    result.blur = 1.001 * ((exactly ? 0.0 : sums.blur) / n + relative * result.primal) + tiny;
    return result;
}

// Entries whose sums in twice the digits take some tens of microseconds.
inline constexpr std::int64_t few_entries = 1 << 14;

// Whether sums in twice the digits would certify far less; below 1e-12 nobody would see it, and
// ordinary data are there before they are here. Nor do they matter below the relative gap that is
// `enough`, unless they cost next to nothing (cadata, squared: 3.8 -> 0.8 ms for two surveys).
inline bool doubtful(const Problem& problem, const Certified& found, double enough = 0) {
    if (!std::isfinite(found.gap) || std::isinf(found.rounding)) return true;
    if (found.gap <= enough * found.primal && problem.nnz > few_entries) return false;
    return found.rounding > 0.1 * found.gap && found.gap > 1e-12 * found.primal;
}

}  // namespace adasdca
