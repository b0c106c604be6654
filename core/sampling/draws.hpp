// Draws from distributions that do not change: uniform, a permutation, and any fixed distribution
// by the alias method.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sampling/random.hpp"
#include "system/memory_pool.hpp"

namespace adasdca {

inline Indices draw_uniform(std::int64_t n, std::int64_t count, std::uint64_t key) {
    Indices indices(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < indices.size(); ++k)
        indices[k] =
            static_cast<std::int32_t>(uniform_below(static_cast<std::uint64_t>(n), key, k));
    return indices;
}

// Fisher and Yates.
inline Indices draw_permutation(std::int64_t n, std::uint64_t key) {
    Indices rows(static_cast<std::size_t>(n));
    std::iota(rows.begin(), rows.end(), 0);
    for (std::size_t k = rows.size(); k > 1; --k)
        std::swap(rows[k - 1], rows[uniform_below(k, key, k)]);
    return rows;
}

// Walker's alias method in Vose's form: O(n) to build, O(1) a draw.
class AliasTable {
  public:
    explicit AliasTable(std::span<const double> weight)
        : keep_(weight.size()), other_(weight.size()) {
        const double mean =
            std::accumulate(weight.begin(), weight.end(), 0.0) / static_cast<double>(weight.size());
        std::vector<std::int32_t> small, large;
        for (std::size_t i = 0; i < weight.size(); ++i) {
            keep_[i] = weight[i] / mean;
            other_[i] = static_cast<std::int32_t>(i);
            (keep_[i] < 1 ? small : large).push_back(static_cast<std::int32_t>(i));
        }
        while (!small.empty() && !large.empty()) {
            const std::int32_t s = small.back(), l = large.back();
            small.pop_back();
            other_[s] = l;
            keep_[l] -= 1 - keep_[s];
            if (keep_[l] < 1) {
                large.pop_back();
                small.push_back(l);
            }
        }
        // What is left is 1 up to rounding; a weight of 0 always found its other.
        for (const std::int32_t i : small) keep_[i] = weight[i] > 0 ? 1 : keep_[i];
        for (const std::int32_t i : large) keep_[i] = 1;
        heaviest_ = static_cast<std::int32_t>(std::max_element(weight.begin(), weight.end()) -
                                              weight.begin());
        for (const std::int32_t i : small)
            if (weight[i] <= 0) other_[i] = heaviest_;
    }

    Indices draw(std::int64_t count, std::uint64_t key) const {
        Indices indices(static_cast<std::size_t>(count));
        for (std::size_t k = 0; k < indices.size(); ++k) {
            const auto i = uniform_below(keep_.size(), key, 2 * k);
            indices[k] =
                uniform(key, 2 * k + 1) < keep_[i] ? static_cast<std::int32_t>(i) : other_[i];
        }
        return indices;
    }

  private:
    std::vector<double> keep_;
    std::vector<std::int32_t> other_;
    std::int32_t heaviest_ = 0;
};

}  // namespace adasdca
