// The exact solution of the paper's constrained program (eq:optp) for the distribution of one step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace adasdca {

// Given s_i = |kappa_i| sqrt(v_i + n lambda gamma) and numerator H = n lambda gamma sum kappa_i^2,
// find p maximising theta = H / sum s_i^2 / p_i subject to sum p = 1 and theta <= min p over s_i >
// 0. The answer is p_i = max(t, mu s_i): a floor t under the k smallest. Without a floor theta is H
// / S^2; with one, theta = t gives t = (H - Q_k) / (S_k^2 + k (H - Q_k)), Q_k the floored squares,
// S_k the rest's sum; the right k is the first whose floor does not reach the next s. Returns
// theta.
inline double water_fill(std::span<const double> s, double numerator, std::span<double> p) {
    std::vector<double> sorted;
    for (const double x : s)
        if (x > 0) sorted.push_back(x);
    std::sort(sorted.begin(), sorted.end());
    const std::size_t count = sorted.size();
    // Sums from the largest down, so that the smallest do not drown.
    std::vector<double> rest(count + 1, 0.0);
    for (std::size_t k = count; k-- > 0;) rest[k] = rest[k + 1] + sorted[k];

    double mu = 1.0 / rest[0], floor = 0.0, theta = numerator * mu * mu;
    if (theta > mu * sorted[0]) {
        double squares = 0;
        for (std::size_t k = 1;; ++k) {
            squares += sorted[k - 1] * sorted[k - 1];
            if (k == count) {
                floor = theta = 1.0 / static_cast<double>(count);
                mu = 0;
                break;
            }
            const double excess = numerator - squares, floored = static_cast<double>(k);
            floor = theta = excess / (rest[k] * rest[k] + floored * excess);
            mu = (1.0 - floored * floor) / rest[k];
            if (floor <= mu * sorted[k]) break;
        }
    }
    for (std::size_t i = 0; i < s.size(); ++i) p[i] = s[i] > 0 ? std::max(floor, mu * s[i]) : 0.0;
    return theta;
}

}  // namespace adasdca
