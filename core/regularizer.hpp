// g(w) = |w|^2 / 2 + sigma |w|_1 + [lower <= w <= upper], its conjugate and the map w = grad g*(u).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace adasdca {

// g(w) = |w|^2 / 2: w is u itself.
struct Ridge {
    static constexpr bool identity = true;
    double read(double u, std::int64_t) const { return u; }
    double best(double s, double, double h, std::int64_t) const { return s / h; }
    double value(double w) const { return 0.5 * w * w; }
};

// The whole family; the bounds are vectors of length d.
struct ElasticBox {
    static constexpr bool identity = false;
    double sigma;
    const double* lower;
    const double* upper;

    double read(double u, std::int64_t j) const { return best(u, 1.0, 1.0, j); }

    // argmin of h x^2 / 2 - s x + mu sigma |x| on the bounds.
    double best(double s, double mu, double h, std::int64_t j) const {
        const double shrunk = std::copysign(std::max(std::abs(s) - mu * sigma, 0.0), s);
        return std::min(std::max(shrunk / h, lower[j]), upper[j]);
    }
    double value(double w) const { return 0.5 * w * w + sigma * std::abs(w); }
};

template <class Regularizer>
double regularizer_value(const Regularizer& g, const double* w, std::int64_t d) {
    double sum = 0;
    // One chain of additions would be a sixth of the survey of wide data.
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < d; ++j) sum += g.value(w[j]);
    return sum;
}

// g*(u) = sum_j u_j w_j - g(w_j) at w = grad g*(u).
template <class Regularizer>
double regularizer_conjugate(const Regularizer& g, const double* u, std::int64_t d) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < d; ++j) {
        const double w = g.read(u[j], j);
        sum += u[j] * w - g.value(w);
    }
    return sum;
}

}  // namespace adasdca
