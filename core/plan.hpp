// An epoch of AdaSDCA+ drawn before it is run.
//
// Inside an epoch of Algorithm 2 the law changes only with the picks: p_i <- p_i / m after each.
// Give row i a clock of rate p_i that slows m-fold at each ring. By memorylessness the order of the
// first K rings over all rows has the law of K draws of Algorithm 2. So: draw the rings before a
// horizon that holds a few more than K of them, put them in order, take the first K.
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

// The number of rings expected before time 1 of a clock of rate x that slows m-fold, for large m:
// the rings are far apart and each is nearly exponential with its own mean.
inline double expected(double x, double m) {
    double sum = 0, mean = 1, gap = 1;
    for (int ring = 0; ring < 400 && x / mean > 1e-3; ++ring) {
        sum += -std::expm1(-x / mean);
        gap *= m;
        mean += gap;
    }
    return sum;
}

// The horizon before which about `count` rings of the given rates are expected, from a sample of
// rows. For small m the rate follows x' = -log(m) x N' closely, so N(t) = log(1 + x t log m) / log
// m. Either estimate only sets the horizon; it never touches the law.
inline double horizon(std::span<const double> rate, double m, double count) {
    constexpr std::size_t most = 1024;
    const std::size_t stride = (rate.size() + most - 1) / most;
    std::vector<double> sample;
    for (std::size_t k = 0; k < rate.size(); k += stride) sample.push_back(rate[k]);
    const double share = static_cast<double>(sample.size()) / static_cast<double>(rate.size());
    // The sample's own error, four deviations: a horizon too short costs a second drawing.
    const double target = share * (count + 3 * std::sqrt(count) + 8) *
                          (stride > 1 ? 1 + 2 / std::sqrt(static_cast<double>(sample.size())) : 1);
    const double log_m = std::log(m);
    auto rings = [&](double log_time) {
        const double time = std::exp(log_time);
        double sum = 0;
        const double* r = sample.data();
        const std::size_t size = sample.size();
        if (m < 6) {
#pragma omp simd reduction(+ : sum)
            for (std::size_t k = 0; k < size; ++k) sum += fast_log(1.0 + r[k] * time * log_m);
            return sum / log_m;
        }
        for (std::size_t k = 0; k < size; ++k) sum += expected(r[k] * time, m);
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
    return static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(time)))
               << 32 |
           row;
}

// The same for clocks so different that times leave the range of a float: the logarithm of the time
// in fixed point, as fine (1.7e-7) all the way down to 1e-308.
inline std::uint64_t wide_ring(double time, std::uint32_t row) {
    const double log_time = std::max(fast_log(std::max(time, 1e-307)), -708.0);
    return static_cast<std::uint64_t>((708.0 + std::min(log_time, 0.0)) * 6.0e6) << 32 | row;
}

// The coarse time of a ring before 1: five bits of exponent, seventeen of mantissa.
inline std::uint32_t coarse(std::uint64_t ring) {
    constexpr std::uint32_t first = 0x3F800000u - (32u << 23);  // 2**-32
    const auto bits = static_cast<std::uint32_t>(ring >> 32);
    // A time just below 1 rounds to 1 as a float, one code too far.
    return std::min((bits > first ? bits - first : 0u) >> 6, (1u << 22) - 1);
}

}  // namespace rings

// Draws plans; keeps its buffers from one to the next, because fresh pages cost as much as the
// draws.
class Planner {
  public:
    // `count` picks of Algorithm 2 from unnormalised weights; rows of weight 0 are never picked.
    // At least one weight must be positive.
    std::vector<std::int32_t> plan(std::span<const double> weight, double m, std::int64_t count,
                                   std::uint64_t key) {
        gather(weight);
        std::vector<std::int32_t> picks(static_cast<std::size_t>(count), row_[0]);
        if (active_ == 1) return picks;
        // A clock may slow by 2**24 in a stage; then all start afresh from where they are, which
        // memorylessness allows, and times stay within the range of a float.
        const auto stage = static_cast<std::size_t>(
            std::min(static_cast<double>(active_) * std::max(1.0, 24 / std::log2(m)),
                     static_cast<double>(count)));
        for (std::size_t done = 0, stages = 0; done < picks.size(); ++stages) {
            if (stages > 0) slow(weight, m, {picks.data() + done - stage, stage}, stages == 1);
            const std::size_t wanted = std::min(stage, picks.size() - done);
            double time = rings::horizon({rate_.data(), active_}, m, static_cast<double>(wanted));
            // The fastest clock has rate 1: its first ring is near 1/time of the horizon.
            wide_ = time > 1e20;
            // The same clocks run on to a later horizon: the draws depend on the key, not on the
            // time.
            while (draw(m, time, subkey(key, stages)) < wanted) time *= 1.5;
            sort();
            for (std::size_t k = 0; k < wanted; ++k)
                picks[done + k] = static_cast<std::int32_t>(ring_[k] & 0xFFFFFFFFu);
            done += wanted;
        }
        return picks;
    }

  private:
    static constexpr std::uint32_t radix = 1u << 11, mask = radix - 1;

    template <class T>
    static void reserve(std::vector<T>& buffer, std::size_t size) {
        if (buffer.size() < size) buffer.resize(size);
    }

    // The rows of positive weight, and their rates as multiples of the largest.
    void gather(std::span<const double> weight) {
        reserve(row_, weight.size());
        reserve(rate_, weight.size());
        double largest = 0;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < weight.size(); ++i) {
            row_[kept] = static_cast<std::int32_t>(i);
            rate_[kept] = weight[i];
            kept += weight[i] > 0;
            largest = weight[i] > largest ? weight[i] : largest;
        }
        active_ = kept;
        normalise(largest);
    }

    void normalise(double largest) {
        const double unit = 1.0 / largest;
        for (std::size_t k = 0; k < active_; ++k)
            rate_[k] = std::max(std::isinf(unit) ? rate_[k] / largest : rate_[k] * unit, 1e-300);
    }

    // Rates after the picks of a stage: divided by m at each. Stages may be many and their rows
    // few, so nothing here costs the number of all rows or of all picks.
    void slow(std::span<const double> weight, double m, std::span<const std::int32_t> picks,
              bool first) {
        log_rate_.resize(active_);
        if (first)
            for (std::size_t k = 0; k < active_; ++k) log_rate_[k] = std::log(weight[row_[k]]);
        const auto begin = row_.begin(), end = begin + static_cast<std::ptrdiff_t>(active_);
        const double log_m = std::log(m);
        for (const std::int32_t i : picks)
            log_rate_[std::lower_bound(begin, end, i) - begin] -= log_m;
        const double largest = *std::max_element(log_rate_.begin(), log_rate_.end());
        for (std::size_t k = 0; k < active_; ++k)
            rate_[k] = std::max(std::exp(log_rate_[k] - largest), 1e-300);
    }

    // All rings before `time`, level by level: all first rings, then the second rings of the rows
    // that had a first one, and so on; returns their number.
    std::size_t draw(double m, double time, std::uint64_t key) {
        constexpr std::size_t block = 512;
        low_.fill(0);
        high_.fill(0);
        std::size_t size = 0, count = active_;
        const std::int32_t* row = row_.data();
        const double* rate = rate_.data();
        double factor = time;
        for (std::uint64_t level = 0; count > 0; ++level, factor = 1.0 / m) {
            const std::uint64_t stream = subkey(key, level);
            reserve(ring_, size + count);
            reserve(late_, count);
            reserve(late_rate_, count);
            reserve(late_row_, count);
            std::size_t kept = 0;
            for (std::size_t begin = 0; begin < count; begin += block) {
                const std::size_t length = std::min(block, count - begin);
                double next[block], slower[block];
                const double* before = late_.data() + begin;
                for (std::size_t k = 0; k < length; ++k) {
                    slower[k] = rate[begin + k] * factor;
                    next[k] =
                        exponential(stream, static_cast<std::uint32_t>(row[begin + k])) / slower[k];
                }
                if (level > 0)
                    for (std::size_t k = 0; k < length; ++k) next[k] += before[k];
                for (std::size_t k = 0; k < length; ++k) {
                    // Written always, kept when it rang in time: no branch to mispredict.
                    const double t = next[k];
                    const std::int32_t i = row[begin + k];
                    ring_[size] = rings::ring(t, static_cast<std::uint32_t>(i));
                    late_[kept] = t;
                    late_rate_[kept] = slower[k];
                    late_row_[kept] = i;
                    const bool rang = t < 1.0;
                    size += rang;
                    kept += rang;
                }
            }
            if (wide_)
                for (std::size_t k = 0; k < kept; ++k)
                    ring_[size - kept + k] =
                        rings::wide_ring(late_[k], static_cast<std::uint32_t>(late_row_[k]));
            count = kept;
            row = late_row_.data();
            rate = late_rate_.data();
        }
        return size_ = size;
    }

    // Two counting passes of 11 bits on the coarse time, then insertion, which finds every ring
    // within a place or two of its own. What is older than 2**-32 of the horizon is sorted apart.
    void sort() {
        const auto begin = ring_.begin();
        if (size_ < 256 || wide_)
            return std::sort(begin, begin + static_cast<std::ptrdiff_t>(size_));
        reserve(scratch_, size_);
        for (std::size_t k = 0; k < size_; ++k) {
            const std::uint32_t c = rings::coarse(ring_[k]);
            ++low_[c & mask];
            ++high_[c >> 11];
        }
        std::uint32_t low_sum = 0, high_sum = 0;
        for (std::uint32_t k = 0; k < radix; ++k) {
            low_sum += std::exchange(low_[k], low_sum);
            high_sum += std::exchange(high_[k], high_sum);
        }
        for (std::size_t k = 0; k < size_; ++k)
            scratch_[low_[rings::coarse(ring_[k]) & mask]++] = ring_[k];
        for (std::size_t k = 0; k < size_; ++k)
            ring_[high_[rings::coarse(scratch_[k]) >> 11]++] = scratch_[k];
        std::size_t ancient = 0;
        while (ancient < size_ && rings::coarse(ring_[ancient]) == 0) ++ancient;
        std::sort(begin, begin + static_cast<std::ptrdiff_t>(ancient));
        for (std::size_t k = ancient + 1; k < size_; ++k) {
            const std::uint64_t r = ring_[k];
            std::size_t slot = k;
            for (; slot > ancient && ring_[slot - 1] > r; --slot) ring_[slot] = ring_[slot - 1];
            ring_[slot] = r;
        }
    }

    std::size_t active_ = 0, size_ = 0;
    bool wide_ = false;  // times differ by more than a float can tell
    std::vector<std::int32_t> row_, late_row_;
    std::vector<double> rate_, log_rate_, late_, late_rate_;
    std::vector<std::uint64_t> ring_, scratch_;
    std::array<std::uint32_t, radix> low_{}, high_{};
};

}  // namespace adasdca
