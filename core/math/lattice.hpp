// A basis of a lattice, reduced pair by pair: each vector is shortened by the multiple of another
// one that shortens it most, until no vector is shortened much.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace adasdca {

inline constexpr int reduction_sweeps = 100;
inline constexpr double least_gain = 0.01;  // relative to the square of a vector

// `basis` holds vectors of `width` numbers in rows, `made` the integer combinations of the first
// ones that these are.
inline void reduce_pairs(double* basis, double* made, std::int64_t count, std::int64_t width) {
    const auto dot = [&](std::int64_t i, std::int64_t j) {
        return std::inner_product(basis + i * width, basis + (i + 1) * width, basis + j * width,
                                  0.0);
    };
    const auto subtract = [](double* from, double times, const double* what, std::int64_t size) {
        for (std::int64_t k = 0; k < size; ++k) from[k] -= times * what[k];
    };
    std::vector<double> squares(count);
    std::vector<std::int64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t i = 0; i < count; ++i) squares[i] = dot(i, i);
    for (int sweep = 0; sweep < reduction_sweeps; ++sweep) {
        bool done = true;
        // The longest first, as they are at the beginning of the sweep.
        std::stable_sort(order.begin(), order.end(),
                         [&](std::int64_t i, std::int64_t j) { return squares[i] > squares[j]; });
        for (const std::int64_t i : order) {
            std::int64_t best = i;
            double most = least_gain * squares[i], times = 0.0;
            for (std::int64_t j = 0; j < count; ++j) {
                if (j == i) continue;
                const double along = dot(i, j), each = std::nearbyint(along / squares[j]);
                const double gain = each * (2.0 * along - each * squares[j]);
                if (gain > most) best = j, most = gain, times = each;
            }
            if (best == i) continue;
            subtract(basis + i * width, times, basis + best * width, width);
            subtract(made + i * count, times, made + best * count, count);
            squares[i] = dot(i, i);
            done = false;
        }
        if (done) return;
    }
}

}  // namespace adasdca
