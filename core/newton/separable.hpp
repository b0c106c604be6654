// The minimum of a quadratic function of few features and a penalty that is separable:
//
//   w.Mw / 2 - r.w + sum_j (ridge_j w_j^2 / 2 + kink_j |w_j|),   lower <= w <= upper.
//
// It is all that is left of a squared loss once M is summed. Feature by feature, which finds those
// that rest at 0 or at a bound, and then by steps to the minimum over the others, as far as the
// function falls on the way, and no farther than the first bound. Where steps end at the first
// feature that comes to 0, they are cut by those that are next to it (w8a, squared hinge, lam =
// 1e-6: 1000 sets were not enough, three are).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "newton/steps.hpp"

namespace adasdca {

struct SeparablePenalty {
    const double *ridge, *kink, *lower, *upper;

    // The best w_j, where its own curvature is `own` and the slope of the rest c.
    double best(std::int64_t j, double own, double w, double c) const {
        const double stiff = own + ridge[j];
        const double s = c + own * w, shrunk = std::max(std::abs(s) - kink[j], 0.0);
        const double free = stiff > 0 ? std::copysign(shrunk, s) / stiff : 0.0;
        return std::min(std::max(free, lower[j]), upper[j]);
    }
    // Whether w_j is at a kink or a bound, or nothing depends on it.
    bool rests(std::int64_t j, double w, double own) const {
        return w == lower[j] || w == upper[j] || (w == 0 && kink[j] > 0) || !(own + ridge[j] > 0);
    }
    // Where along a step w_j comes to its kink, if it does.
    double kink_at(double w, double step, std::int64_t j) const {
        return kink[j] > 0 && w * step < 0 ? -w / step : INFINITY;
    }
    // Where w_j is after so much of a step, at its kink or bound where that is its end.
    double across(double w, double step, double length, std::int64_t j) const {
        if (kink_at(w, step, j) == length) return 0.0;
        return std::min(std::max(w + length * step, lower[j]), upper[j]);
    }
    // How far along a step w_j can go before it comes to a kink or a bound, at most 1.
    double room(double w, double step, std::int64_t j) const {
        double end = step > 0 ? upper[j] : lower[j];
        if (kink[j] > 0 && w * step < 0) end = step > 0 ? std::min(end, 0.0) : std::max(end, 0.0);
        return (end - w) / step < 1.0 ? (end - w) / step : 1.0;
    }
    // Where w_j is after so much of a step, no farther than a kink or a bound.
    double along(double w, double step, double length, std::int64_t j) const {
        const double most = room(w, step, j);
        if (most >= 1.0 || most > length) return w + length * step;
        const double bound = step > 0 ? upper[j] : lower[j];
        return kink[j] > 0 && w * step < 0 && bound * step >= 0 ? 0.0 : bound;
    }
};

struct KinkOnLine {
    double at, rise;  // where on the line, and by how much the slope rises there
};

// Where a step to the minimum of a quadratic function of the free features leads lowest: beyond
// kinks at 0 as long as the function falls, and no farther than the first bound. 1 where it crosses
// none. The slope at its beginning is that of the quadratic function, right . step.
inline double lowest(const SeparablePenalty& f, const double* w,
                     const std::vector<std::int64_t>& free, const std::vector<double>& step,
                     const std::vector<double>& right, std::vector<KinkOnLine>& kinks) {
    double most = 1, curve = 0;
    kinks.clear();
    for (std::size_t a = 0; a < free.size(); ++a) {
        const std::int64_t j = free[a];
        if (step[a] == 0) continue;
        curve += right[a] * step[a];
        most = std::min(most, ((step[a] > 0 ? f.upper[j] : f.lower[j]) - w[j]) / step[a]);
        if (const double at = f.kink_at(w[j], step[a], j); at < 1)
            kinks.push_back({at, 2 * f.kink[j] * std::abs(step[a])});
    }
    std::sort(kinks.begin(), kinks.end(), [](auto& a, auto& b) { return a.at < b.at; });
    double slope = -curve;  // where the line begins, were the kinks behind a point everywhere
    for (const KinkOnLine& each : kinks) {
        if (each.at >= most || slope + each.at * curve >= 0) break;
        slope += each.rise;
        if (slope + each.at * curve >= 0) return each.at;
    }
    return curve > 0 ? std::min(most, -slope / curve) : most;
}

// Sets at most, of which no problem has been seen to need a tenth, and steps from one to the next.
// Where columns add up to others, features come to rest one by one (a9a, lasso: with 3 steps 158
// ms, with 10 or 30 3.5).
inline constexpr int most_sets = 1000, most_drops = 10;

// Minimise from w, with the slope r - Mw; both are kept up to date. It ends where a sweep over all
// features gains no more than `enough` at the minimum over those that are free.
inline void minimise_separable(std::int64_t d, const double* matrix, const SeparablePenalty& f,
                               double* w, double* slope, double enough, StopToken& token) {
    auto rests = [&](std::int64_t j) { return f.rests(j, w[j], matrix[j * d + j]); };
    auto move = [&](std::int64_t j, double to) {
        const double step = to - w[j], *line = matrix + j * d;
        w[j] = to;
#pragma omp simd
        for (std::int64_t k = 0; k < d; ++k) slope[k] -= step * line[k];
        return (line[j] + f.ridge[j]) * step * step;
    };
    auto sweep = [&](bool all) {
        double gain = 0;
        for (std::int64_t j = 0; j < d; ++j) {
            if (!all && rests(j)) continue;
            const double to = f.best(j, matrix[j * d + j], w[j], slope[j]);
            if (to != w[j]) gain += move(j, to);
        }
        return gain;
    };
    std::vector<std::int64_t> free;
    std::vector<double> part, factor, right, stiff, step;
    std::vector<KinkOnLine> kinks;
    bool whole = false;
    for (int set = 0; set < most_sets && !token.stop(); ++set) {
        const double swept = sweep(true);
        if ((swept <= enough && whole) || !std::isfinite(swept)) return;
        std::int64_t m = 0;
        for (std::int64_t j = 0; j < d; ++j) m += rests(j) ? 0 : 1;
        // Sweeps that take as long as a factorisation show which features come to rest.
        double gain = enough + 1;
        for (std::int64_t k = 0; k < 2 + m * m / (6 * d) && gain > enough; ++k) gain = sweep(false);
        whole = false;
        for (int drop = 0; drop < most_drops && !whole && !token.stop(); ++drop) {
            free.clear();
            for (std::int64_t j = 0; j < d; ++j)
                if (!rests(j)) free.push_back(j);
            const std::size_t size = free.size();
            if (size == 0) {
                whole = true;
                break;
            }
            part.resize(size * size);
            right.resize(size);
            stiff.resize(size);
            step.resize(size);
            for (std::size_t a = 0; a < size; ++a) {
                const std::int64_t j = free[a];
                for (std::size_t b = 0; b <= a; ++b) part[a * size + b] = matrix[j * d + free[b]];
                const double sign = w[j] != 0 ? std::copysign(1.0, w[j]) : 0.0;
                right[a] = slope[j] - f.ridge[j] * w[j] - f.kink[j] * sign;
                stiff[a] = f.ridge[j];
            }
            damped_solve(part, stiff.data(), right, factor, step.data());
            const double length = lowest(f, w, free, step, right, kinks);
            whole = length == 1.0;
            for (std::size_t a = 0; a < size; ++a) {
                const std::int64_t j = free[a];
                const double to = step[a] != 0 ? f.across(w[j], step[a], length, j) : w[j];
                if (to != w[j]) move(j, to);
            }
        }
    }
}

}  // namespace adasdca
