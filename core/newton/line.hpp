// The step length: the root of the slope along a line, which never falls.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace adasdca {

// The derivative of a convex function along a line.
struct LineSlope {
    double slope = 0;
    double curvature = 0;  // its own derivative, to one side where it has two
    double size = 0;       // the sum of the sizes of its terms, of which rounding is a multiple
};

struct StepLength {
    double length;
    bool sharp;  // whether the slope was above rounding
};

// The slope that may be left, as a share of the first one: at the full step, after a search, and
// at a full step that ends before the root. A longer one than the last would overshoot in the
// directions that the step's equations have solved; most of what there is has been gained.
struct Left {
    double full = 0.1, found = 0.01, before = 0.75;
};

// A length at which the slope is about 0: Newton's method inside a bracket. On a slope of straight
// pieces it ends at the very root.
template <class F>  // from a length to a LineSlope
StepLength step_length(F&& slope_at, double start, const Left& left = {}) {
    constexpr double rounding = 1e-13;  // a slope below this share of its terms is that
    constexpr double tiny = 1e-6;       // a bracket that begins at 0 is cut to this share's root
    constexpr int most = 120;           // a bracket is found and halved in far fewer evaluations
    constexpr double half = 0.51;       // and a little: rounding is not to decide
    constexpr int patience = 2;    // evaluations that do not halve the bracket, before it is halved
    constexpr int most_falls = 3;  // that halve it towards 0, before it is cut by their digits

    double length = 1.0;
    LineSlope at = slope_at(1.0);
    // (The terms of the other end of a line over kinks may be far larger than those of this one.)
    if (-start <= rounding * at.size && -start <= rounding * slope_at(0.0).size)
        return {1.0, false};
    if (0 >= at.slope && at.slope >= left.before * start) return {1.0, true};
    double low = 0, f_low = start, high = INFINITY, f_high = INFINITY, near = left.full * -start;
    int slow = 0, falls = 0;
    for (int evaluation = 0; evaluation < most; ++evaluation) {
        if (std::abs(at.slope) <= std::max(near, rounding * at.size)) {
            if (at.slope <= rounding * at.size) return {length, true};
            // The slope may have risen at once and be flat since, the function above its start.
            const double middle = 0.5 * (low + length), between = slope_at(middle).slope;
            if (f_low * low + between * (middle - low) + at.slope * (length - middle) <= 0)
                return {length, true};
        }
        near = left.found * -start;
        const double width = high - low;
        if (at.slope < 0) {
            low = length;
            f_low = at.slope;
        } else {
            high = length;
            f_high = at.slope;
        }
        const double guess = at.curvature > 0 ? length - at.slope / at.curvature : INFINITY;
        if (std::isinf(high)) {
            length = std::min(std::max(guess, 2.0 * low), 64.0 * low);
        } else {
            if (high - low <= 4e-16 * high) break;
            const bool halved = high - low <= half * width;
            slow = halved ? std::max(slow - 1, 0) : slow + 1;
            falls = halved && at.slope >= 0 && high > 8.0 * low ? falls + 1 : 0;
            length =
                low < guess && guess < high ? guess : low - f_low * (high - low) / (f_high - f_low);
            if (slow >= patience || falls > most_falls || !(low < length && length < high)) {
                // In the middle of their digits where there are orders of magnitude between them.
                length = high > 8.0 * low ? std::sqrt(std::max(low, tiny * high) * high)
                                          : 0.5 * (low + high);
            }
        }
        at = slope_at(length);
    }
    return {low, low > 0};
}

}  // namespace adasdca
