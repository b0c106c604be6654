// An epoch of AdaSDCA+ drawn before it is run.
//
// Inside an epoch of Algorithm 2 the distribution changes only with the indices: p_i <- p_i / m
// after each. Give row i a clock of rate p_i that slows m-fold at each ring. By memorylessness the
// order of the first K rings over all rows has the distribution of K draws of Algorithm 2. So: draw
// the rings before a horizon that holds a few more than K of them, put them in order, take the
// first K.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/exponential_clocks.hpp"
#include "sampling/horizon.hpp"
#include "sampling/random.hpp"
#include "system/parallel.hpp"

namespace adasdca {

// Draws plans; keeps its buffers from one to the next, because fresh pages cost as much as the
// draws.
class Planner {
  public:
    // `count` indices of Algorithm 2 from unnormalised weights; rows of weight 0 are never picked.
    // At least one weight must be positive. What a token has stopped is of no use.
    Indices plan(std::span<const double> weight, double m, std::int64_t count, std::uint64_t key,
                 StopToken& token) {
        gather(weight);
        Indices indices(static_cast<std::size_t>(count), row_[0]);
        if (active_ == 1) return indices;
        // A clock may slow by 2**24 in a stage; then all start afresh from where they are, which
        // memorylessness allows, and times stay within the range of a float.
        const auto stage = static_cast<std::size_t>(
            std::min(static_cast<double>(active_) * std::max(1.0, 24 / std::log2(m)),
                     static_cast<double>(count)));
        const clocks::Horizon horizon(m);
        for (std::size_t done = 0, stages = 0; done < indices.size(); ++stages) {
            const std::size_t wanted = std::min(stage, indices.size() - done);
            const std::span<std::int32_t> part{indices.data() + done, wanted};
            const double time = horizon({rate_.data(), active_}, static_cast<double>(wanted));
            // The fastest clock has rate 1: its first ring is near 1/time of the horizon. Floats
            // can tell that, and (unless m is almost 1) the many rings of a clock, from each other.
            if (time < 1e20 && m > 1.001)
                ring(single_, m, time, subkey(key, stages), part, token);
            else
                ring(double_, m, time, subkey(key, stages), part, token);
            if (token.stopped()) break;
            done += wanted;
            if (done < indices.size()) slow(weight, m, part, stages == 0);
            if (active_ < weight.size())
                for (std::int32_t& pick : part) pick = row_[static_cast<std::size_t>(pick)];
        }
        return indices;
    }

  private:
    // Indices as numbers of clocks, in the order of `row_`.
    template <class Real>
    void ring(clocks::ExponentialClocks<Real>& rings, double m, double time, std::uint64_t key,
              std::span<std::int32_t> indices, StopToken& token) {
        // The same clocks run on to a later horizon: the draws depend on the key, not on the time.
        while (rings.draw({rate_.data(), active_}, m, time, key, token) < indices.size()) {
            if (token.stopped()) return;
            time *= 1.5;
        }
        if (!token.stop()) rings.order(indices);
    }

    // The rows of positive weight, and their rates as multiples of the largest.
    void gather(std::span<const double> weight) {
        clocks::reserve(row_, weight.size());
        clocks::reserve(rate_, weight.size());
        double largest = 0;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < weight.size(); ++i) {
            row_[kept] = static_cast<std::int32_t>(i);
            rate_[kept] = weight[i];
            kept += weight[i] > 0;
            largest = weight[i] > largest ? weight[i] : largest;
        }
        active_ = kept;
        const double unit = 1.0 / largest;
        for (std::size_t k = 0; k < active_; ++k)
            rate_[k] = std::max(std::isinf(unit) ? rate_[k] / largest : rate_[k] * unit, 1e-300);
    }

    // Rates after the indices of a stage: divided by m at each. Stages may be many and their rows
    // few, so nothing here costs the number of all rows or of all indices.
    void slow(std::span<const double> weight, double m, std::span<const std::int32_t> indices,
              bool first) {
        log_rate_.resize(active_);
        if (first)
            for (std::size_t k = 0; k < active_; ++k) log_rate_[k] = std::log(weight[row_[k]]);
        const double log_m = std::log(m);
        for (const std::int32_t k : indices) log_rate_[static_cast<std::size_t>(k)] -= log_m;
        const double largest = *std::max_element(log_rate_.begin(), log_rate_.end());
        for (std::size_t k = 0; k < active_; ++k)
            rate_[k] = std::max(std::exp(log_rate_[k] - largest), 1e-300);
    }

    std::size_t active_ = 0;
    Buffer<std::int32_t> row_;
    Buffer<double> rate_, log_rate_;
    clocks::ExponentialClocks<float> single_;
    clocks::ExponentialClocks<double> double_;
};

}  // namespace adasdca
