// An epoch of AdaSDCA+ drawn before it is run.
//
// Inside an epoch of Algorithm 2 the law changes only with the picks: p_i <- p_i / m after each. Give
// row i a clock of rate p_i that slows m-fold at each ring. By memorylessness the order of the first K
// rings over all rows has the law of K draws of Algorithm 2. So: draw the rings before a horizon that
// holds a few more than K of them, put them in order, take the first K.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "random.hpp"

namespace adasdca {

namespace rings {

// The number of rings expected before time 1 of a clock of rate x that slows m-fold. For small m the
// differential equation x' = -log(m) x N' is close; for large m the rings are far apart and each is
// nearly exponential with its own mean. Either only sets the horizon; it never touches the law.
inline double expected(double x, double m) {
    const double log_m = std::log(m);
    if (m < 6) return std::log1p(x * log_m) / log_m;
    double sum = 0, mean = 1, gap = 1;
    for (int ring = 0; ring < 400 && x / mean > 1e-3; ++ring) {
        sum += -std::expm1(-x / mean);
        gap *= m;
        mean += gap;
    }
    return sum;
}

// The horizon before which about `count` rings of the given rates are expected, from a sample of rows.
inline double horizon(std::span<const double> rate, double m, double count) {
    constexpr std::size_t most = 1024;
    const std::size_t stride = (rate.size() + most - 1) / most;
    std::vector<double> sample;
    for (std::size_t k = 0; k < rate.size(); k += stride) sample.push_back(rate[k]);
    const double share = static_cast<double>(sample.size()) / static_cast<double>(rate.size());
    // The sample's own error, four deviations: a horizon too short costs a second drawing.
    const double target = share * (count + 3 * std::sqrt(count) + 8) *
                          (stride > 1 ? 1 + 2 / std::sqrt(static_cast<double>(sample.size())) : 1);
    auto rings = [&](double log_time) {
        const double time = std::exp(log_time);
        double sum = 0;
        for (const double r : sample) sum += expected(r * time, m);
        return sum;
    };
    double low = -700, high = 700;
    // From the mean rate; secant-like steps in log time, kept inside the bracket.
    double x = std::log(count / std::accumulate(rate.begin(), rate.end(), 0.0));
    for (int iteration = 0; iteration < 60; ++iteration) {
        x = std::clamp(x, low, high);
        const double found = rings(x);
        (found < target ? low : high) = x;
        if (found >= target && found < target * 1.02) break;
        const double ahead = rings(x + 0.1);
        const double step = (1.01 * target - found) / std::max((ahead - found) / 0.1, 1e-12);
        x = x + step > low && x + step < high ? x + step : 0.5 * (low + high);
    }
    return std::exp(std::min(x, 700.0));
}

// A ring: its time as the bits of a float (positive floats sort like integers) above its row.
inline std::uint64_t ring(double time, std::uint32_t row) {
    return static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(time))) << 32 |
           row;
}

// The coarse time of a ring before 1: five bits of exponent, seventeen of mantissa.
inline std::uint32_t coarse(std::uint64_t ring) {
    constexpr std::uint32_t first = 0x3F800000u - (32u << 23);  // 2**-32
    const auto bits = static_cast<std::uint32_t>(ring >> 32);
    return (bits > first ? bits - first : 0u) >> 6;
}

// Sort rings: two counting passes of 11 bits on the coarse time, then insertion, which finds every
// ring within a place or two of its own. What is older than 2**-32 of the horizon is sorted apart.
inline void sort(std::vector<std::uint64_t>& rings, std::vector<std::uint64_t>& scratch) {
    constexpr std::uint32_t radix = 1u << 11, mask = radix - 1;
    if (rings.size() < 256) return std::sort(rings.begin(), rings.end());
    std::array<std::uint32_t, radix> low{}, high{};
    for (const auto r : rings) {
        const std::uint32_t c = coarse(r);
        ++low[c & mask];
        ++high[c >> 11];
    }
    std::uint32_t low_sum = 0, high_sum = 0;
    for (std::uint32_t k = 0; k < radix; ++k) {
        low_sum += std::exchange(low[k], low_sum);
        high_sum += std::exchange(high[k], high_sum);
    }
    scratch.resize(rings.size());
    for (const auto r : rings) scratch[low[coarse(r) & mask]++] = r;
    for (const auto r : scratch) rings[high[coarse(r) >> 11]++] = r;
    std::size_t ancient = 0;
    while (ancient < rings.size() && coarse(rings[ancient]) == 0) ++ancient;
    std::sort(rings.begin(), rings.begin() + static_cast<std::ptrdiff_t>(ancient));
    for (std::size_t k = ancient + 1; k < rings.size(); ++k) {
        const std::uint64_t r = rings[k];
        std::size_t slot = k;
        for (; slot > ancient && rings[slot - 1] > r; --slot) rings[slot] = rings[slot - 1];
        rings[slot] = r;
    }
}

// All rings before time 1 of clocks with the given rates, level by level: all first rings, then the
// second rings of the rows that had a first one, and so on.
inline void draw(std::span<const double> rate, std::span<const std::int32_t> rows, double m,
                 std::uint64_t key, std::vector<std::uint64_t>& out) {
    constexpr std::size_t block = 512;
    std::vector<double> time(rate.size(), 0.0);
    std::vector<double> slow(rate.begin(), rate.end());
    std::vector<std::uint32_t> row(rows.begin(), rows.end());
    std::size_t count = rate.size();
    out.clear();
    const double slower = 1.0 / m;
    for (std::uint64_t level = 0; count > 0; ++level) {
        const std::uint64_t stream = subkey(key, level);
        if (out.capacity() < out.size() + count) out.reserve(std::max(2 * out.capacity(), out.size() + count));
        std::size_t kept = 0, size = out.size();
        out.resize(size + count);
        for (std::size_t begin = 0; begin < count; begin += block) {
            const std::size_t end = std::min(count, begin + block);
            double next[block];
            for (std::size_t k = begin; k < end; ++k)
                next[k - begin] = time[k] + exponential(stream, row[k]) / slow[k];
            for (std::size_t k = begin; k < end; ++k) {
                // Written always, kept when it rang in time: no branch to mispredict.
                const double t = next[k - begin];
                out[size] = ring(t, row[k]);
                time[kept] = t;
                slow[kept] = slow[k] * slower;
                row[kept] = row[k];
                const bool rang = t < 1.0;
                size += rang;
                kept += rang;
            }
        }
        out.resize(size);
        count = kept;
    }
}

}  // namespace rings

// `count` picks of Algorithm 2 from unnormalised weights; rows of weight 0 are never picked.
// At least one weight must be positive.
inline std::vector<std::int32_t> plan(std::span<const double> weight, double m, std::int64_t count,
                                      std::uint64_t key) {
    std::vector<std::int32_t> rows;
    std::vector<double> rate;
    for (std::size_t i = 0; i < weight.size(); ++i)
        if (weight[i] > 0) {
            rows.push_back(static_cast<std::int32_t>(i));
            rate.push_back(weight[i]);
        }
    std::vector<std::int32_t> picks;
    picks.reserve(static_cast<std::size_t>(count));
    if (rows.size() == 1) picks.assign(static_cast<std::size_t>(count), rows[0]);
    // A clock may slow by 2**24 in a stage; then all start afresh from where they are, which
    // memorylessness allows, and times stay within the range of a float.
    const auto stage = static_cast<std::int64_t>(
        static_cast<double>(rows.size()) * std::max(1.0, 24 / std::log2(m)));
    std::vector<std::uint64_t> ringing, scratch;
    for (std::uint64_t stages = 0; static_cast<std::int64_t>(picks.size()) < count; ++stages) {
        const auto wanted = static_cast<std::size_t>(
            std::min<std::int64_t>(stage, count - static_cast<std::int64_t>(picks.size())));
        const double largest = *std::max_element(rate.begin(), rate.end());
        for (double& r : rate) r = std::max(r / largest, 1e-300);
        double time = rings::horizon(rate, m, static_cast<double>(wanted));
        std::vector<double> scaled(rate.size());
        // The same clocks run on to a later horizon: the draws depend on the key, not on the time.
        for (;; time *= 1.5) {
            for (std::size_t k = 0; k < rate.size(); ++k) scaled[k] = rate[k] * time;
            rings::draw(scaled, rows, m, subkey(key, stages), ringing);
            if (ringing.size() >= wanted) break;
        }
        rings::sort(ringing, scratch);
        for (std::size_t k = 0; k < wanted; ++k)
            picks.push_back(static_cast<std::int32_t>(ringing[k] & 0xFFFFFFFFu));
        if (static_cast<std::int64_t>(picks.size()) < count) {
            std::vector<double> slowed(weight.size(), 1.0);
            for (std::size_t k = 0; k < wanted; ++k) slowed[ringing[k] & 0xFFFFFFFFu] /= m;
            for (std::size_t k = 0; k < rows.size(); ++k) rate[k] *= slowed[rows[k]];
        }
    }
    return picks;
}

}  // namespace adasdca
