// The regulariser g, feature by feature: g(w) = sum_j f_j (|w_j|^2 / 2 + sigma |w_j|) between
// bounds, with penalty factors f_j that are all 1 unless given. Without the first term, for the
// lasso, or where f_j = 0, g has no curvature: the conjugate g* is then a support function.
//
// What the core asks of a regulariser is `RegularizerLike`. Features are on their own: a step moves
// u on one row's features, and calls `read` for these alone. So every member takes one feature j.
//
//   identity      whether w is u itself; then no w is kept
//   ridge         1, or 0 if g has no quadratic part at all
//   read(u, j)    w_j = (grad g*(u))_j, the maximiser of u_j x - g_j(x)
//   source(w, j)  a u_j that is read as w_j, where there is one
//   value(w, j)   g_j(w_j) within the bounds
//   excess(w,u,j) g_j(w_j) + g*_j(u_j) - u_j w_j, as a sum of terms that are never negative
//   metric(j)     m_j > 0 such that g is 1-strongly convex in |w|_M = sqrt(sum_j m_j w_j^2) where
//                 it is curved. Rows are measured by the dual norm sqrt(sum_j x_j^2 / m_j): exact
//                 steps, bounds of rounding and the price of an intercept all use this pair.
//   reach(w,u,off,j)  where g_j is curved, 0; else how far from w_j a maximiser can be for u's
//                 within `off` of u_j; infinite as g* there is
//   stray(w, j)   where g_j is curved, 0; else how far from w_j its bounds allow any w_j* to be,
//                 times sqrt(m_j)
//   roundings     units of roundoff by which u_j can seem to be off: by its own rounding, that of
//                 N, lambda, sigma and its products with f_j, and that of the excess
//
// Coordinatewise by nature are identity, ridge and metric. A penalty on groups, such as
// f_G |w_G|_2, changes the others: read, value, excess, reach and stray become functions of a
// group's vectors. It enters where `read` is called: in the three epochs
// (`move` and `quartz` of ascent/ascent.hpp, ascent/adaptive_ascent.hpp), which would read the
// groups that a row touches after its u has moved, from norms |u_G| kept beside u; in `read_primal`
// (rows/problem.hpp); in `lost_in_sum` (duality/certificate.hpp); and in the sums over features
// below, which would be sums over groups. The metric stays, and with it steps, sampling and the
// form of the certificate.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>

namespace adasdca {

template <class G>
concept RegularizerLike = requires(const G& g, double x, std::int64_t j) {
    { G::identity } -> std::convertible_to<bool>;
    { G::roundings } -> std::convertible_to<double>;
    { g.ridge } -> std::convertible_to<double>;
    { g.read(x, j) } -> std::same_as<double>;
    { g.source(x, j) } -> std::same_as<double>;
    { g.value(x, j) } -> std::same_as<double>;
    { g.excess(x, x, j) } -> std::same_as<double>;
    { g.metric(j) } -> std::same_as<double>;
    { g.reach(x, x, x, j) } -> std::same_as<double>;
    { g.stray(x, j) } -> std::same_as<double>;
};

// g(w) = |w|^2 / 2: w is u itself.
struct Ridge {
    static constexpr bool identity = true;
    static constexpr double roundings = 4;
    static constexpr double ridge = 1.0;
    double read(double u, std::int64_t) const { return u; }
    double source(double w, std::int64_t) const { return w; }
    double value(double w, std::int64_t) const { return 0.5 * w * w; }
    double excess(double w, double u, std::int64_t) const { return 0.5 * (w - u) * (w - u); }
    double metric(std::int64_t) const { return 1.0; }
    double reach(double, double, double, std::int64_t) const { return 0.0; }
    double stray(double, std::int64_t) const { return 0.0; }
};

// Factors that are all 1: nothing is stored, nothing is read.
struct UnitFactors {
    constexpr double operator[](std::int64_t) const { return 1.0; }
};

// The whole family; bounds and factors are vectors of length d. Where a factor is 0, or without the
// ridge where it is not and the conjugate would be infinite, both bounds are finite.
template <class Factors>
struct SeparableBox {
    static constexpr bool identity = false;
    static constexpr bool weighted = !std::same_as<Factors, UnitFactors>;
    static constexpr double roundings = 12;
    double ridge;  // 1, or 0 without the term |w|^2 / 2
    double sigma;
    Factors factors;
    const double* lower;
    const double* upper;

    double inside(double w, std::int64_t j) const {
        return std::min(std::max(w, lower[j]), upper[j]);
    }
    // Without the ridge and with f_j > 0 this is no maximiser, but moves where that one jumps.
    double read(double u, std::int64_t j) const {
        double shrunk = std::max(std::abs(u) - factors[j] * sigma, 0.0);
        // Where f_j = 0 this is infinite, and w_j a bound; at u_j = 0 it may rest.
        if constexpr (weighted) shrunk = shrunk > 0 ? shrunk / factors[j] : 0.0;
        return inside(std::copysign(shrunk, u), j);
    }
    double source(double w, std::int64_t j) const {
        return w != 0 ? factors[j] * (w + std::copysign(sigma, w)) : 0.0;
    }
    double value(double w, std::int64_t j) const {
        return factors[j] * (0.5 * ridge * w * w + sigma * std::abs(w));
    }
    bool curved(std::int64_t j) const { return ridge * factors[j] > 0; }
    // Without the ridge sum_j f_j |w_j| bounds the norm of squares f_j^2.
    double metric(std::int64_t j) const {
        const double f = factors[j];
        return f > 0 ? (ridge > 0 ? f : f * f) : 1.0;
    }

    // Where g_j is not curved: where u x - f sigma |x| is largest; infinite at an infinite bound.
    double corner(double u, std::int64_t j) const {
        const double slope = factors[j] * sigma;
        return u > slope ? upper[j] : u < -slope ? lower[j] : inside(0.0, j);
    }
    double width(double w, std::int64_t j) const { return std::max(upper[j] - w, w - lower[j]); }
    double reach(double w, double u, double off, std::int64_t j) const {
        if (curved(j)) return 0.0;
        return std::max(std::abs(w - corner(u - off, j)), std::abs(w - corner(u + off, j)));
    }
    double stray(double w, std::int64_t j) const {
        return curved(j) ? 0.0 : std::sqrt(metric(j)) * width(w, j);
    }

    // With x = grad g*(u) and s = u - f x, which the L1 term and the bounds balance,
    // f (w - x)^2 / 2 + f sigma (|w| - |x| - t (w - x)) + (f sigma t - s) (w - x), where t is the
    // slope of |.| at x next to s / (f sigma). Each term is 0 or more.
    double excess(double w, double u, std::int64_t j) const {
        const double f = factors[j], slope = f * sigma;
        if (!curved(j)) {
            const double x = corner(u, j);
            return std::isinf(x) ? INFINITY : u * (x - w) - slope * (std::abs(x) - std::abs(w));
        }
        const double x = read(u, j), difference = w - x, s = u - f * x;
        double t = std::copysign(1.0, x);
        if (x == 0) t = slope > 0 ? std::min(std::max(s / slope, -1.0), 1.0) : 0.0;
        const double kink = std::abs(w) - t * w;  // |w| - |x| - t (w - x), for |x| = t x
        const bool free = x > lower[j] && x < upper[j];
        const double wall = free ? 0.0 : std::max((slope * t - s) * difference, 0.0);
        return 0.5 * f * difference * difference + slope * std::max(kink, 0.0) + wall;
    }
};

using ElasticBox = SeparableBox<UnitFactors>;
using WeightedBox = SeparableBox<const double*>;

static_assert(RegularizerLike<Ridge> && RegularizerLike<ElasticBox> &&
              RegularizerLike<WeightedBox>);

template <RegularizerLike G>
double regularizer_value(const G& g, const double* w, std::int64_t d) {
    double sum = 0;
    // One chain of additions would be a sixth of the survey of wide data.
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < d; ++j) sum += g.value(w[j], j);
    return sum;
}

template <RegularizerLike G>
double regularizer_excess(const G& g, const double* w, const double* u, std::int64_t d) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < d; ++j) sum += g.excess(w[j], u[j], j);
    return sum;
}

// |w| in the metric.
template <RegularizerLike G>
double regularizer_norm(const G& g, const double* w, std::int64_t d) {
    double square = 0;
#pragma omp simd reduction(+ : square)
    for (std::int64_t j = 0; j < d; ++j) square += g.metric(j) * w[j] * w[j];
    return std::sqrt(square);
}

// The norm of reach, in the metric, for u's that are off by a norm; infinite as g* there is.
template <RegularizerLike G>
double regularizer_reach(const G& g, const double* w, const double* u, std::int64_t d, double off) {
    double sum = 0;
    if constexpr (!G::identity)
        for (std::int64_t j = 0; j < d; ++j) {
            const double difference = g.reach(w[j], u[j], std::sqrt(g.metric(j)) * off, j);
            sum += g.metric(j) * difference * difference;
        }
    return std::sqrt(sum);
}

// A bound of |w - w*| in the metric over the features where strong convexity gives none: their
// bounds, or without the ridge that g(w*) <= level where there is a penalty.
template <RegularizerLike G>
double regularizer_stray(const G& g, const double* w, std::int64_t d, double level) {
    if constexpr (G::identity) return 0.0;
    double all = 0, free = 0;
    for (std::int64_t j = 0; j < d; ++j) {
        const double stray = g.stray(w[j], j);
        all += stray * stray;
        if (g.value(1.0, j) == 0) free += stray * stray;
    }
    if (g.ridge > 0) return std::sqrt(all);
    return std::min(std::sqrt(all), std::sqrt(free) + level + regularizer_value(g, w, d));
}

}  // namespace adasdca
