// How long clocks must run for a number of rings. See planner.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "math/elementary.hpp"

namespace adasdca::clocks {

// An estimate: it says when to stop drawing, and never touches the distribution.
class Horizon {
  public:
    // N(x), the number of rings expected before time x of a clock of rate 1 that slows m-fold,
    // at the half octaves from 2**-30 to 2**50. After the first ring a slower clock starts, so
    // N'(x) = 1 + N(x/m) - N(x); solved step by step, N(x/m) held at what it is in the middle.
    explicit Horizon(double m) : log_m_(std::log(m)) {
        double x = 0x1p-30, before = 0;
        for (int k = 0; k < nodes; ++k, x *= 1.4142135623730951) {
            const double step = x - before;
            if (x < 0.05)
                rings_[k] = x - 0.5 * (1 - 1 / m) * x * x;
            else if (m < 1.25)  // almost a steady fall of the rate, by log(m) per ring
                rings_[k] = std::log1p(x * log_m_) / log_m_;
            else {
                const double stay = step < 40 ? fast_exp(-step) : 0.0;
                // The middle, but never more than a mean gap ago; its logarithm to second order.
                const double back = std::min(0.5 * step, 1.0) / x;
                const double node = std::max(k - (back * (1 + 0.5 * back) + log_m_) / width, 0.0);
                const int below = std::min(static_cast<int>(node), k - 2);
                const double slower =
                    rings_[below] + (node - below) * (rings_[below + 1] - rings_[below]);
                rings_[k] = rings_[k - 1] * stay + (1 - stay) * (1 + slower);
            }
            before = x;
        }
    }

    // The time before which about `count` rings of clocks are expected, whose rates are at most 1
    // and at least 1e-300; from a sample of them.
    double operator()(std::span<const double> rate, double count) const {
        // A sample twice or half as large costs as much as it saves, in rings beyond the last
        // wanted.
        const std::size_t most = std::max<std::size_t>(1024, rate.size() / 32);
        const std::size_t stride = (rate.size() + most - 1) / most;
        const double size = static_cast<double>((rate.size() + stride - 1) / stride);
        // How many have which rate, each shared between the two half octaves next to it.
        constexpr std::size_t bins = 2048, block = 256;
        std::array<double, bins> sample{};
        std::size_t slowest = 0;
        double sum = 0;
        for (std::size_t begin = 0; begin < rate.size(); begin += block * stride) {
            double below[block];
            const std::size_t length = std::min(block, (rate.size() - begin + stride - 1) / stride);
            for (std::size_t k = 0; k < length; ++k)
                below[k] = std::max(fast_log(rate[begin + k * stride]) * (-1 / width), 0.0);
            for (std::size_t k = 0; k < length; ++k) {
                const auto bin = static_cast<std::size_t>(below[k]);
                const double part = below[k] - static_cast<double>(bin);
                sample[bin] += 1 - part;
                sample[bin + 1] += part;
                slowest = std::max(slowest, bin + 1);
                sum += rate[begin + k * stride];
            }
        }
        // The noise of the rings, three deviations, and of the sample, four: a horizon too short
        // costs a second drawing.
        const double noise = stride > 1 ? 1 + 2 / std::sqrt(size) : 1;
        const double target =
            (count + 3 * std::sqrt(count) + 8) * noise * size / static_cast<double>(rate.size());
        // From the mean rate; secants in log time, kept inside a bracket.
        double low = -700, high = 700, t = std::log(target / sum);
        for (int iteration = 0; iteration < 60; ++iteration) {
            t = std::clamp(t, low, high);
            const double node = t / width + origin;
            double found[2] = {};  // at the nodes next to it
            const double floor = std::floor(node);
            for (std::size_t k = 0; k <= slowest; ++k)
                for (int side = 0; side < 2; ++side)
                    found[side] +=
                        sample[k] * at(static_cast<int>(floor) + side - static_cast<int>(k));
            const double rise = found[1] - found[0], here = found[0] + (node - floor) * rise;
            (here < target ? low : high) = t;
            if (here >= target && here < target * 1.02) break;
            const double next = t + (1.01 * target - here) / std::max(rise, 1e-12) * width;
            t = next > low && next < high ? next : 0.5 * (low + high);
        }
        return std::exp(std::min(t, 700.0));
    }

  private:
    static constexpr int nodes = 161, origin = 60;
    static constexpr double width = 0.34657359027997265;  // half an octave

    // Beyond the last node the rings are evenly spaced.
    double at(int node) const {
        const int last = nodes - 1;
        return node < 0 ? 0.0
                        : rings_[std::min(node, last)] + std::max(node - last, 0) * width / log_m_;
    }

    double log_m_;
    std::array<double, nodes> rings_;
};

}  // namespace adasdca::clocks
