// g(w) = |w|^2 / 2 + sigma |w|_1 + [lower <= w <= upper], the map w = grad g*(u), and the excess of
// Fenchel's inequality. Without the first term, for the lasso, there is no such map.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace adasdca {

// g(w) = |w|^2 / 2: w is u itself.
struct Ridge {
    static constexpr bool identity = true;
    static constexpr double ridge = 1.0;
    double read(double u, std::int64_t) const { return u; }
    double source(double w) const { return w; }
    double value(double w) const { return 0.5 * w * w; }
    // g(w) + g*(u) - u w, never negative.
    double excess(double w, double u, std::int64_t) const { return 0.5 * (w - u) * (w - u); }
};

// The whole family; the bounds are vectors of length d.
struct ElasticBox {
    static constexpr bool identity = false;
    double ridge;  // 1, or 0 without the term |w|^2 / 2
    double sigma;
    const double* lower;
    const double* upper;

    double read(double u, std::int64_t j) const {
        const double shrunk = std::copysign(std::max(std::abs(u) - sigma, 0.0), u);
        return std::min(std::max(shrunk, lower[j]), upper[j]);
    }
    // A u that is read as w.
    double source(double w) const { return w != 0 ? w + std::copysign(sigma, w) : 0.0; }
    double value(double w) const { return 0.5 * ridge * w * w + sigma * std::abs(w); }

    // Without the ridge: where u x - sigma |x| is largest; infinite at an infinite bound.
    double corner(double u, std::int64_t j) const {
        return u > sigma    ? upper[j]
               : u < -sigma ? lower[j]
                            : std::min(std::max(0.0, lower[j]), upper[j]);
    }

    // g(w) + g*(u) - u w: with x = grad g*(u) and s = u - x, which the L1 term and the bounds
    // balance, (w - x)^2 / 2 + sigma (|w| - |x| - t (w - x)) + (sigma t - s) (w - x), where t is
    // the slope of |.| at x next to s / sigma. Each term is 0 or more.
    double excess(double w, double u, std::int64_t j) const {
        if (ridge == 0) {
            const double x = corner(u, j);
            return std::isinf(x) ? INFINITY : u * (x - w) - sigma * (std::abs(x) - std::abs(w));
        }
        const double x = read(u, j), apart = w - x, s = u - x;
        double t = std::copysign(1.0, x);
        if (x == 0) t = sigma > 0 ? std::min(std::max(s / sigma, -1.0), 1.0) : 0.0;
        const double slope = std::abs(w) - t * w;  // |w| - |x| - t (w - x), for |x| = t x
        const bool free = x > lower[j] && x < upper[j];
        const double wall = free ? 0.0 : std::max((sigma * t - s) * apart, 0.0);
        return 0.5 * apart * apart + sigma * std::max(slope, 0.0) + wall;
    }
};

template <class Regularizer>
double regularizer_value(const Regularizer& g, const double* w, std::int64_t d) {
    double sum = 0;
    // One chain of additions would be a sixth of the survey of wide data.
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < d; ++j) sum += g.value(w[j]);
    return sum;
}

template <class Regularizer>
double regularizer_excess(const Regularizer& g, const double* w, const double* u, std::int64_t d) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < d; ++j) sum += g.excess(w[j], u[j], j);
    return sum;
}

// How far g(w) + g*(u) - u.w can rise without the ridge if every u is off by a share of itself and
// |u| by `norm` besides: as the corners are away from w. Infinite, as g* is, if one of them can be.
template <class Regularizer>
double regularizer_reach(const Regularizer& g, const double* w, const double* u, std::int64_t d,
                         double share, double norm) {
    double sum = 0, square = 0;
    if constexpr (!Regularizer::identity)
        for (std::int64_t j = 0; j < d; ++j) {
            const double own = share * std::abs(u[j]), off = own + norm;
            const double apart = std::max(std::abs(w[j] - g.corner(u[j] - off, j)),
                                          std::abs(w[j] - g.corner(u[j] + off, j)));
            if (std::isinf(apart)) return INFINITY;
            sum += own * apart;
            square += apart * apart;
        }
    return sum + std::sqrt(square) * norm;
}

}  // namespace adasdca
