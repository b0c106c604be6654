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

#include "math/elementary.hpp"

namespace adasdca {

// Functions of losses are inlined always: a call left in a loop over rows keeps it from being
// vectorised (surveys of w8a, logistic: 3.8 -> 1.1 ms).

// A loss as the kernels see it: scalar functions and the smoothness of the conjugate.
template <class L>
concept Loss = requires(const L& loss, double x) {
    { loss.gamma } -> std::convertible_to<double>;        // phi is 1/gamma-smooth; 0: not smooth
    { loss.margin } -> std::convertible_to<bool>;         // classification: z = y a
    { loss.value(x, x) } -> std::same_as<double>;         // phi(z; t)
    { loss.conjugate(x, x) } -> std::same_as<double>;     // phi*(-b; t)
    { loss.ascent(x, x) } -> std::same_as<double>;        // -phi'(z; t)
    { loss.step(x, x, x, x) } -> std::same_as<double>;    // new b from (b, z, t, q)
    { loss.curvature(x, x) } -> std::same_as<double>;     // phi''(z; t), 0 at kinks
    { loss.excess(x, x, x) } -> std::same_as<double>;     // phi(z) + phi*(-b) + z b, never negative
    { loss.variation(x, x, x) } -> std::same_as<double>;  // of phi' over z +- delta
    { loss.from_kink(x, x) } -> std::same_as<double>;     // |z - z'| to the next jump of phi'
    { loss.clip(x) } -> std::same_as<double>;             // nearest point of the domain of b
};

struct PiecewiseQuadratic {
    bool margin;
    double gamma, epsilon, lower, upper;

    ADASDCA_INLINE double clip(double b) const {
        b = b > lower ? b : lower;
        return b < upper ? b : upper;
    }

    ADASDCA_INLINE double best(double s, double h) const {
        const double shrunk = std::max(std::abs(s) - epsilon, 0.0);
        // h = 0 sends any s != 0 to the bound it points at, and s = 0 to 0.
        // The quotient waits for s, its divisor does not: a product is 9 cycles earlier.
        return clip(std::copysign(shrunk, s) * (1.0 / std::max(h, 1e-300)));
    }

    ADASDCA_INLINE double ascent(double z, double t) const { return best(t - z, gamma); }

    double step(double b, double z, double t, double q) const {
        return best(t - z + q * b, gamma + q);
    }

    ADASDCA_INLINE double value(double z, double t) const {
        const double b = ascent(z, t);
        return (t - z) * b - epsilon * std::abs(b) - 0.5 * gamma * b * b;
    }

    double conjugate(double b, double t) const {
        const double inside = -t * b + epsilon * std::abs(b) + 0.5 * gamma * b * b;
        return b >= lower && b <= upper ? inside : std::numeric_limits<double>::infinity();
    }

    // 1 strictly inside the domain and off the dead zone. Products instead of branches, one by the
    // loss included, or loops over rows would not be vectorised (balances: 3.0 -> 1.0 ns a row).
    ADASDCA_INLINE double inside(double b) const {
        const auto positive = [](double x) { return x > 0 ? 1.0 : 0.0; };
        const double least = epsilon > 0 ? 0.0 : -1.0;
        return positive(std::abs(b) - least) * positive(b - lower) * positive(upper - b);
    }

    ADASDCA_INLINE double curvature(double z, double t) const {
        const double inverse = 1.0 / std::max(gamma, 1e-300);  // 0 where gamma is
        return gamma * inverse * inverse * inside(ascent(z, t));
    }

    // With s = -phi'(z) and v = t - z - epsilon sgn(s) - gamma s, which is 0 inside a piece:
    // gamma (s - b)^2 / 2 + v (s - b) + epsilon (|b| - b sgn(s)), each term 0 or more.
    ADASDCA_INLINE double excess(double z, double b, double t) const {
        const double s = ascent(z, t), difference = s - b;
        const double sign = std::copysign(1.0, s != 0 ? s : b);
        const double slack = t - z - epsilon * sign - gamma * s;
        const double outward = inside(s) > 0 ? 0.0 : slack * difference;
        const double value = 0.5 * gamma * difference * difference + std::max(outward, 0.0) +
                             epsilon * (std::abs(b) - b * sign);
        return b >= lower && b <= upper ? value : std::numeric_limits<double>::infinity();
    }

    ADASDCA_INLINE double variation(double z, double t, double delta) const {
        return ascent(z - delta, t) - ascent(z + delta, t);
    }

    ADASDCA_INLINE double from_kink(double z, double t) const {
        return gamma > 0 ? std::numeric_limits<double>::infinity()
                         : std::abs(std::abs(t - z) - epsilon);
    }

    // The loss with its kinks rounded over a length: phi* gains length (b - centre)^2 / 2, and
    // -phi' becomes best(t - z + length centre, gamma + length).
    ADASDCA_INLINE double rounded_ascent(double z, double t, double length, double centre) const {
        return best(t - z + length * centre, gamma + length);
    }
    ADASDCA_INLINE double rounded_curvature(double b, double length) const {
        return inside(b) / std::max(gamma + length, 1e-300);
    }
};

struct Logistic {
    static constexpr bool margin = true;
    double gamma = 4.0;

    ADASDCA_INLINE double clip(double b) const { return std::min(std::max(b, 0.0), 1.0); }

    ADASDCA_INLINE double ascent(double z, double) const {
        const double e = fast_exp(-std::abs(z));
        return (z > 0 ? e : 1.0) * (1.0 / (1.0 + e));  // a quotient that `value` and -z share
    }

    ADASDCA_INLINE double value(double z, double) const {
        return std::max(-z, 0.0) + fast_log1p(fast_exp(-std::abs(z)));
    }

    double conjugate(double b, double) const {
        // What 1 - b loses to rounding is put back to first order: it is all there is of a tiny b.
        const double rest = 1.0 - b, lost = -b - (rest - 1.0);
        const double log_rest = fast_log(std::max(rest, 1e-300));
        const double inside = x_log_x(b) + rest * log_rest + lost * (1.0 + log_rest);
        return b >= 0 && b <= 1 ? inside : std::numeric_limits<double>::infinity();
    }

    ADASDCA_INLINE double curvature(double z, double t) const {
        return ascent(z, t) * ascent(-z, t);
    }

    // The Kullback-Leibler divergence of b from s = -phi'(z), as s f((b - s)/s) + (1 - s) f((s -
    // b)/(1 - s)) with f(x) = (1 + x) log(1 + x) - x >= 0.
    ADASDCA_INLINE double excess(double z, double b, double t) const {
        constexpr double tiny = 1e-300, far = 690.7755278982137;  // -log(tiny)
        const double s = std::max(ascent(z, t), tiny), rest = std::max(ascent(-z, t), tiny);
        // Beyond the range of exp the logarithms of s and 1 - s go on as -|z|.
        const double beyond = b * std::max(z - far, 0.0) + (1.0 - b) * std::max(-z - far, 0.0);
        const double difference = s <= 0.5 ? b - s : rest - (1.0 - b);
        const double value =
            s * entropy(difference / s) + rest * entropy(-difference / rest) + beyond;
        return b >= 0 && b <= 1 ? value : std::numeric_limits<double>::infinity();
    }

    // |phi'''| <= phi'': this grows by exp(delta) at most, which is below 1 + 2 delta up to 1.
    ADASDCA_INLINE double variation(double z, double t, double delta) const {
        const double steepest = delta < 1.0 ? curvature(z, t) * (1.0 + 2.0 * delta) : 0.25;
        return 2.0 * delta * std::min(steepest, 0.25);
    }

    ADASDCA_INLINE double from_kink(double, double) const {
        return std::numeric_limits<double>::infinity();
    }

    // It has no kinks to round.
    ADASDCA_INLINE double rounded_ascent(double z, double t, double, double) const {
        return ascent(z, t);
    }
    ADASDCA_INLINE double rounded_curvature(double b, double) const { return b * (1.0 - b); }

    // The root of f(x) = x + z + q (s(x) - b) with s(x) = 1/(1 + exp(-x)) and new b = s(x): in x
    // the domain cannot be left and no digit of a small b is lost. s(-x) = 1 - s(x), so the root
    // may be taken to be at most 0, where f is convex and rising; it lies below c = q b - z. Near
    // the solution of the whole problem -z is nearly the root, so Newton starts there; held below 0
    // and c, it oversteps at most once and then closes in from one side.
    // (Inlined: a call for every update would load its constants anew.)
    ADASDCA_INLINE double step(double b, double z, double, double q) const {
        const bool above = z + q * (0.5 - b) < 0;  // f(0) < 0
        z = above ? -z : z;
        b = above ? 1.0 - b : b;
        const double c = q * b - z, cap = std::min(0.0, c);
        double x = std::min(cap, -z);
        for (int iteration = 0; iteration < 100; ++iteration) {
            // f and f' times (1 + e)^2, so that the move waits for one division only.
            const double e = fast_exp(x), one = 1.0 + e, square = one * one;
            const double inverse = 1.0 / (square + q * e);
            const double move = ((c - x) * square - q * e * one) * inverse;
            if (std::abs(move) <= 4e-3) {
                const double s = finish(e, move, square * inverse, q * e * inverse);
                return above ? 1.0 - s : s;
            }
            x = std::min(cap, x + move);
        }
        return above ? ascent(x, 1.0) : ascent(-x, 1.0);
    }

  private:
    // (1 + x) log(1 + x) - x for x >= -1; near 0 its series, where the difference would lose
    // digits: it loses 4e-14 of the value where the series begins, and that leaves out as much.
    ADASDCA_INLINE static double entropy(double x) {
        const double one = std::max(1.0 + x, 1e-300);
        const double lost = x - (one - 1.0);  // what the rounding of 1 + x took
        const double direct = one * fast_log(one) + lost * fast_log(one) - (x - lost);
        const double series =
            x * x *
            (1.0 / 2 -
             x * (1.0 / 6 -
                  x * (1.0 / 12 -
                       x * (1.0 / 20 - x * (1.0 / 30 - x * (1.0 / 42 - x * (1.0 / 56)))))));
        return std::abs(x) < 0.02 ? series : std::max(direct, 0.0);
    }

    // s at the root from the last Newton move m, by the series of s(x(m)) to fourth order: what it
    // leaves is below m^5. (One exponential less a step: 49 -> 42 ns on w8a, 55 -> 42 on ijcnn1.)
    // steady = 1/f', bent = 1 - 1/f'.
    ADASDCA_INLINE static double finish(double e, double m, double steady, double bent) {
        const double inverse = 1.0 / (1.0 + e);
        const double s = e * inverse, slope = s * inverse, t = (1.0 - e) * inverse;  // t = 1 - 2 s
        const double u = 1.0 / 6 - slope, g = bent * t;
        const double third = u - 0.5 * g * t;
        const double fourth = t * (1.0 / 24 - 0.5 * slope) + g * (0.625 * g * t - 2.5 * u);
        return s + slope * m * (1.0 + steady * m * (0.5 * t + m * (third + m * fourth)));
    }
};

static_assert(Loss<PiecewiseQuadratic> && Loss<Logistic>);

}  // namespace adasdca
