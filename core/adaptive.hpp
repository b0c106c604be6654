// Algorithm 1: the residues and the law are those of the current point before every single step.
//
// A step moves u on one row's features, and a change of w_j moves the scores of the rows of column
// j by that change times x_ij: so scores are kept up to date exactly, by columns, at the cost of
// the columns touched instead of the whole matrix. Scores are summed anew at every call.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "passes.hpp"
#include "probabilities.hpp"
#include "random.hpp"
#include "survey.hpp"

namespace adasdca {

struct Columns {
    std::vector<std::int64_t> start;
    std::vector<std::int32_t> rows;
    std::vector<double> values;

    // Incomplete if the pulse stopped it.
    Columns(const Iterate& it, Pulse& pulse)
        : start(static_cast<std::size_t>(it.problem->d) + 1, 0) {
        const std::int64_t n = it.problem->n;
        with_rows(it, [&](const auto& all) {
            for (std::int64_t i = 0; i < n && !(i % 64 == 0 && pulse.stop()); ++i)
                for_each_entry(all[i], [&](std::int64_t j, double x) { start[j + 1] += x != 0; });
            for (std::int64_t j = 0; j < it.problem->d; ++j) start[j + 1] += start[j];
            rows.resize(static_cast<std::size_t>(start.back()));
            values.resize(rows.size());
            auto next = start;
            for (std::int64_t i = 0; i < n && !(i % 64 == 0 && pulse.stop()); ++i)
                for_each_entry(all[i], [&](std::int64_t j, double x) {
                    if (x == 0) return;
                    rows[next[j]] = static_cast<std::int32_t>(i);
                    values[next[j]++] = x;
                });
        });
    }
};

enum class StepRule { relaxed, optimal };

// The law over the rows, by blocks: sums of blocks are refreshed where a score has moved.
template <class Rows, class LossType>
class ResidueLaw {
  public:
    ResidueLaw(const Iterate& it, const Rows& rows, const LossType& loss)
        : rows_(rows),
          loss_(loss),
          n_(it.problem->n),
          lambda_total_(it.problem->lambda * it.problem->total),
          score(n_),
          weight(n_),
          numerator_(n_),
          sum_((n_ + block_rows - 1) / block_rows),
          dirty_(sum_.size(), 1) {}

    void touch(std::int64_t row) { dirty_[row / block_rows] = 1; }
    void touch_all() { std::fill(dirty_.begin(), dirty_.end(), 1); }

    void refresh(double bias) {
        for (std::int64_t k = 0; k < static_cast<std::int64_t>(sum_.size()); ++k) {
            if (!dirty_[k]) continue;
            dirty_[k] = 0;
            sum_[k] = 0;
            const std::int64_t end = std::min(n_, (k + 1) * block_rows);
            for (std::int64_t i = k * block_rows; i < end; ++i) {
                const RowState& state = rows_[i].state;
                const Label l = label(loss_.margin, state.y);
                const double z = l.sign * (score[i] + bias), b = l.sign * state.beta;
                const double residue = b - loss_.ascent(z, l.target);
                const double c = state.scale * lambda_total_;
                double share = 0;
                if (loss_.gamma == 0)
                    share = std::max(
                        0.0, loss_.value(z, l.target) + loss_.conjugate(b, l.target) + z * b);
                weight[i] = adaptive_weight(loss_.gamma, c, state.q, residue, share);
                numerator_[i] = c * loss_.gamma * residue * residue;
                sum_[k] += weight[i];
            }
        }
    }

    double total() const {
        double sum = 0;
        for (const double s : sum_) sum += s;
        return sum;
    }

    // The row at u of the total of `weight`.
    std::int64_t find(double u) const {
        double rest = u * total();
        std::size_t k = 0;
        while (k + 1 < sum_.size() && rest >= sum_[k]) rest -= sum_[k++];
        while (k > 0 && sum_[k] <= 0) --k;  // rounding carried past the last block in use
        return scan(weight.data(), static_cast<std::int64_t>(k) * block_rows,
                    std::min(n_, static_cast<std::int64_t>(k + 1) * block_rows), rest);
    }

    // The row at u under the constrained-optimal law.
    std::int64_t find_optimal(double u) {
        law_.resize(weight.size());
        double numerator = 0;
        for (const double x : numerator_) numerator += x;
        water_fill(weight, numerator, law_);
        return scan(law_.data(), 0, n_, u);
    }

  private:
    static std::int64_t scan(const double* p, std::int64_t begin, std::int64_t end, double rest) {
        std::int64_t last = begin;
        for (std::int64_t i = begin; i < end; ++i) {
            if (p[i] <= 0) continue;
            last = i;
            if (rest < p[i]) return i;
            rest -= p[i];
        }
        return last;
    }

    const Rows& rows_;
    const LossType& loss_;
    std::int64_t n_;
    double lambda_total_;

  public:
    std::vector<double> score, weight;

  private:
    std::vector<double> numerator_, sum_, law_;
    std::vector<char> dirty_;
};

// `count` steps of Algorithm 1; returns how many were done (fewer: every residue is 0, or stopped).
inline std::int64_t ascend_adaptively(Iterate& it, const Columns& columns, StepRule rule,
                                      std::int64_t count, std::uint64_t key, Pulse& pulse) {
    return resolve(it, [&](const auto& rows, const auto& loss, const auto& g) {
        ResidueLaw law(it, rows, loss);
        double* u = it.u.data();
        double* w = it.primal();
        for (std::int64_t i = 0; i < it.problem->n; ++i) {
            if (i % 64 == 0 && pulse.stop()) return std::int64_t{0};
            law.score[i] = rows[i].dot(w);
        }
        const double s2 = it.problem->intercept_scale * it.problem->intercept_scale;
        const double start = it.bias();
        double bias = start;
        std::int64_t k = 0;
        for (; k < count && !pulse.stop(); ++k) {
            law.refresh(bias);
            if (!(law.total() > 0)) break;
            const double at = uniform(key, static_cast<std::uint64_t>(k));
            const std::int64_t i = rule == StepRule::relaxed ? law.find(at) : law.find_optimal(at);
            const auto row = rows[i];
            RowState& state = row.state;
            const Label l = label(loss.margin, state.y);
            const double b = l.sign * state.beta;
            const double b_new = loss.step(b, l.sign * (law.score[i] + bias), l.target, state.q);
            const double c = state.scale * l.sign * (b_new - b);
            state.beta = l.sign * b_new;
            law.touch(i);
            for_each_entry(row, [&](std::int64_t j, double x) {
                const double before = w[j];
                u[j] += c * x;
                w[j] = g.read(u[j], j);
                const double change = w[j] - before;
                if (change == 0) return;
                for (std::int64_t e = columns.start[j]; e < columns.start[j + 1]; ++e) {
                    law.score[columns.rows[e]] += change * columns.values[e];
                    law.touch(columns.rows[e]);
                }
            });
            if (s2 > 0 && c != 0) {
                bias += s2 * c;
                law.touch_all();
            }
        }
        if (s2 > 0) it.constant += (bias - start) / it.problem->intercept_scale;
        return k;
    });
}

}  // namespace adasdca
