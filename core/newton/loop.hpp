// Semismooth Newton's method with a line search: when its steps end, and why. Every objective is
// minimised by this loop, those of Python (src/adasdca/newton/newton.py) and those of the core.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>

#include "newton/line.hpp"

namespace adasdca {

// What an objective is: a convex function at a point that it remembers.
//
//   lost()     a bound on how far the value is above the least one
//   enough()   how much may be left to gain
//   keep()     remember this point as the best so far
//   recall()   go back to it
//   stopped()  whether whoever looks on has seen enough
//   aim()      choose the next line; its slope at the beginning, nothing if time ran out
//   search()   the length of the step along it; nothing if time ran out
//   move(x)    go along the line
template <class F>
concept NewtonObjective = requires(F& f, double x) {
    { f.lost() } -> std::same_as<double>;
    { f.enough() } -> std::same_as<double>;
    { f.keep() };
    { f.recall() };
    { f.stopped() } -> std::same_as<bool>;
    { f.aim() } -> std::same_as<std::optional<double>>;
    { f.search() } -> std::same_as<std::optional<StepLength>>;
    { f.move(x) };
};

// In the order of `Ending` in Python.
enum class NewtonEnding { reached, exhausted, steps, stopped, time };

struct NewtonCourse {
    NewtonEnding ending;
    std::int64_t steps;
};

// The objective is left at its best point.
template <NewtonObjective F>
NewtonCourse minimise(F& f, std::int64_t most) {
    constexpr int most_idle = 3;  // steps in a row, lost in rounding, that bring the bound nothing
    double best = INFINITY;
    int idle = 0;
    bool sharp = true;
    for (std::int64_t steps = 0;; ++steps) {
        const double lost = f.lost();
        // In the noise half a digit is progress, and nothing less.
        idle = sharp || lost < 0.5 * best ? 0 : idle + 1;
        if (sharp || lost < best) {
            // A step above rounding has lowered the function, whatever the bound says.
            best = lost;
            f.keep();
        }
        if (f.stopped()) return {NewtonEnding::stopped, steps};
        if (lost <= f.enough()) return {NewtonEnding::reached, steps};
        const auto end = [&](NewtonEnding ending) {
            f.recall();
            return NewtonCourse{ending, steps};
        };
        if (idle >= most_idle) return end(NewtonEnding::exhausted);
        if (steps >= most) return end(NewtonEnding::steps);
        const std::optional<double> slope = f.aim();
        if (!slope) return end(NewtonEnding::time);
        if (!(*slope < 0)) return end(NewtonEnding::exhausted);
        const std::optional<StepLength> found = f.search();
        if (!found) return end(NewtonEnding::time);
        f.move(found->length);
        sharp = found->sharp;
    }
}

}  // namespace adasdca
