// The losses: scalar functions that know no data and no weights.
//
// All but the logistic belong to one family, written in the coordinates of a row:
//   classification: z = y a, b = y beta, target t = 1;    regression: z = a, b = beta, t = y
//   phi*(-b) = -t b + epsilon |b| + gamma b^2 / 2   on   lower <= b <= upper
// so that everything follows from a single maximiser
//   best(s, h) = argmax_b  s b - epsilon |b| - h b^2 / 2   on [lower, upper]:
//   -phi'(z) = best(t - z, gamma)           (the slope)
//   step     = best(t - z + q b, gamma + q) (the exact coordinate step; q = 0 gives the slope back)
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>

#include "elementary.hpp"

namespace adasdca {

// A loss as the kernels see it: five scalar functions and the smoothness of the conjugate.
template <class L>
concept Loss = requires(const L& loss, double x) {
    { loss.gamma } -> std::convertible_to<double>;      // phi is 1/gamma-smooth; 0: not smooth
    { loss.margin } -> std::convertible_to<bool>;       // classification: z = y a
    { loss.value(x, x) } -> std::same_as<double>;       // phi(z; t)
    { loss.conjugate(x, x) } -> std::same_as<double>;   // phi*(-b; t)
    { loss.ascent(x, x) } -> std::same_as<double>;      // -phi'(z; t)
    { loss.step(x, x, x, x) } -> std::same_as<double>;  // new b from (b, z, t, q)
    { loss.curvature(x, x) } -> std::same_as<double>;   // phi''(z; t), 0 at kinks
    { loss.clip(x) } -> std::same_as<double>;           // nearest point of the domain of b
};

struct PiecewiseQuadratic {
    bool margin;
    double gamma, epsilon, lower, upper;

    double clip(double b) const {
        b = b > lower ? b : lower;
        return b < upper ? b : upper;
    }

    double best(double s, double h) const {
        const double shrunk = std::max(std::abs(s) - epsilon, 0.0);
        // h = 0 sends any s != 0 to the bound it points at, and s = 0 to 0.
        // The quotient waits for s, its divisor does not: a product is 9 cycles earlier.
        return clip(std::copysign(shrunk, s) * (1.0 / std::max(h, 1e-300)));
    }

    double ascent(double z, double t) const { return best(t - z, gamma); }

    double step(double b, double z, double t, double q) const {
        return best(t - z + q * b, gamma + q);
    }

    double value(double z, double t) const {
        const double b = ascent(z, t);
        return (t - z) * b - epsilon * std::abs(b) - 0.5 * gamma * b * b;
    }

    double conjugate(double b, double t) const {
        const double inside = -t * b + epsilon * std::abs(b) + 0.5 * gamma * b * b;
        return b >= lower && b <= upper ? inside : std::numeric_limits<double>::infinity();
    }

    double curvature(double z, double t) const {
        // 1/gamma (0 where gamma is) strictly inside the domain and off the kink at 0. Products
        // instead of branches, or loops over rows would not be vectorised.
        const double b = ascent(z, t), inverse = 1.0 / std::max(gamma, 1e-300);
        const auto positive = [](double x) { return x > 0 ? 1.0 : 0.0; };
        return gamma * inverse * inverse * positive(std::abs(b)) * positive(b - lower) *
               positive(upper - b);
    }
};

struct Logistic {
    static constexpr bool margin = true;
    double gamma = 4.0;

    double clip(double b) const { return std::min(std::max(b, 0.0), 1.0); }

    double ascent(double z, double) const {
        const double e = fast_exp(-std::abs(z));
        return (z > 0 ? e : 1.0) / (1.0 + e);
    }

    double value(double z, double) const {
        return std::max(-z, 0.0) + fast_log1p(fast_exp(-std::abs(z)));
    }

    double conjugate(double b, double) const {
        // What 1 - b loses to rounding is put back to first order: it is all there is of a tiny b.
        const double rest = 1.0 - b, lost = -b - (rest - 1.0);
        const double log_rest = fast_log(std::max(rest, 1e-300));
        const double inside = x_log_x(b) + rest * log_rest + lost * (1.0 + log_rest);
        return b >= 0 && b <= 1 ? inside : std::numeric_limits<double>::infinity();
    }

    double curvature(double z, double t) const {
        const double b = ascent(z, t);
        return b * (1.0 - b);
    }

    // The root of f(x) = x + z + q (s(x) - b) with s(x) = 1/(1 + exp(-x)) and new b = s(x): in x
    // the domain cannot be left and no digit of a small b is lost. f rises, is convex left of 0 and
    // concave right of it, and its root lies in [-z - q (1 - b), -z + q b]. Near the solution of
    // the whole problem -z is nearly the root, so Newton starts there; held on the root's side of 0
    // and inside the bracket, it oversteps at most once and then closes in from one side.
    double step(double b, double z, double, double q) const {
        const bool left = z + q * (0.5 - b) > 0;  // f(0) > 0
        const double cap = left ? std::min(0.0, q * b - z) : std::max(0.0, -z - q * (1.0 - b));
        double x = left ? std::min(cap, -z) : std::max(cap, -z);
        for (int iteration = 0; iteration < 100; ++iteration) {
            // f and f' times (1 + e)^2, so that the move waits for one division only.
            const double e = fast_exp(-std::abs(x));
            const double one = 1.0 + e, square = one * one;
            const double share = x > 0 ? 1.0 : e;  // s = share / (1 + e)
            const double move = -((x + z - q * b) * square + q * share * one) / (square + q * e);
            // Quadratic convergence: a move of 1e-7 leaves less than 1e-14, and the second order
            // takes s there.
            if (std::abs(move) <= 1e-7 * std::max(1.0, 1e-8 * std::abs(x))) {
                const double s = share / one, slope = e / square;
                return clip(s + slope * move * (1.0 + (0.5 - s) * move));
            }
            x = left ? std::min(cap, x + move) : std::max(cap, x + move);
        }
        return ascent(-x, 1.0);
    }
};

static_assert(Loss<PiecewiseQuadratic> && Loss<Logistic>);

}  // namespace adasdca
