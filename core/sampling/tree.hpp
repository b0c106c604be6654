// Random Counters (Nesterov, 2010, section 6.2): a tree of sums, O(log n) to draw and to change.
// The paper's own way of drawing Algorithm 2; here the oracle for the plan and the row to beat.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/random.hpp"
#include "system/memory_pool.hpp"
#include "system/parallel.hpp"

namespace adasdca {

class SumTree {
  public:
    explicit SumTree(std::span<const double> weight)
        : leaves_(std::bit_ceil(std::max<std::size_t>(weight.size(), 1))), sum_(2 * leaves_, 0.0) {
        std::copy(weight.begin(), weight.end(),
                  sum_.begin() + static_cast<std::ptrdiff_t>(leaves_));
        for (std::size_t k = leaves_ - 1; k > 0; --k) sum_[k] = sum_[2 * k] + sum_[2 * k + 1];
    }

    double total() const { return sum_[1]; }

    // The row at `u` of the total, 0 < u < 1. A branch of sum 0 is never entered, whatever rounding
    // does.
    std::size_t find(double u) const {
        double rest = u * sum_[1];
        std::size_t k = 1;
        while (k < leaves_) {
            const double left = sum_[2 * k];
            const bool right = (rest >= left && sum_[2 * k + 1] > 0) || left <= 0;
            if (right) rest -= left;
            k = 2 * k + (right ? 1 : 0);
        }
        return k - leaves_;
    }

    void divide(std::size_t row, double m) {
        std::size_t k = row + leaves_;
        sum_[k] /= m;
        // Sums are taken anew, not corrected: no drift.
        while (k >>= 1) sum_[k] = sum_[2 * k] + sum_[2 * k + 1];
    }

    void scale(double factor) {
        for (double& s : sum_) s *= factor;
    }

  private:
    std::size_t leaves_;
    std::vector<double> sum_;
};

// `count` indices of Algorithm 2, drawn one by one; fewer if the token stops.
inline Indices draw_tree(std::span<const double> weight, double m, std::int64_t count,
                         std::uint64_t key, StopToken& token) {
    SumTree tree(weight);
    Indices indices(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < indices.size(); ++k) {
        if (k % 1024 == 0 && token.stop()) {
            indices.resize(k);
            break;
        }
        if (tree.total() < 1e-200) tree.scale(1e200);
        const std::size_t row = tree.find(uniform(key, k));
        indices[k] = static_cast<std::int32_t>(row);
        tree.divide(row, m);
    }
    return indices;
}

}  // namespace adasdca
