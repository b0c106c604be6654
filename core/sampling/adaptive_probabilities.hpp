// The distribution of Algorithm 1 over all rows, kept up to date while w moves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "rows/columns.hpp"
#include "sampling/step_residue.hpp"

namespace adasdca {

enum class StepRule { relaxed, optimal, step };

// What the distribution of a row is a multiple of.
enum class Measure { residue, share, step };

// Write the weights of a block of rows in the distribution, return their sum. `size` is what the
// measure is multiplied by, with the sign of the label: one array less.
// Not inlined: inside its callers GCC 12 does not vectorise it for all losses.
template <Measure kind, bool margin, class LossType>
ADASDCA_NOINLINE double weigh_block(const LossType& given, const double* score, double bias,
                                    const double* b, const double* size, const double* target,
                                    const double* q, double* out) {
    const LossType loss = given;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t r = 0; r < probability_block; ++r) {
        const double sign = margin ? std::copysign(1.0, size[r]) : 1.0;
        const double t = margin ? 1.0 : target[r];
        const double z = sign * (score[r] + bias);
        double measure = 0;
        if constexpr (kind == Measure::residue) {
            measure = std::abs(b[r] - loss.ascent(z, t));
        } else if constexpr (kind == Measure::step) {
            measure = step_measure(loss, b[r], z, t, q[r]);
        } else {
            const double share = loss.value(z, t) + loss.conjugate(b[r], t) + z * b[r];
            measure = share > 0 ? share : 0.0;
        }
        const double weight = measure * std::abs(size[r]);
        out[r] = weight;
        sum += weight;
    }
    return sum;
}

// out += sum_a change_a x_a for `many` columns at a time; bytes are counted, all changes are 1.
template <int many, class Sum, class T>
void add_pieces(Sum* out, const T* const* x, const double* change) {
#pragma omp simd
    for (std::int64_t r = 0; r < probability_block; ++r) {
        Sum sum = out[r];
        for (int a = 0; a < many; ++a) {
            if constexpr (std::is_same_v<Sum, double>)
                sum += change[a] * static_cast<double>(x[a][r]);
            else
                sum = static_cast<Sum>(sum + x[a][r]);
        }
        out[r] = sum;
    }
}

// Scores and distribution of all rows, by blocks. A sweep brings a block's scores, residues and sum
// of weights up to date in one go, while they are in the first-level cache. Rows past the last have
// weight 0. Memory: 24 to 57 bytes a row.
template <class LossType>
class AdaptiveProbabilities {
  public:
    // counted: all entries are 1, and the changes between two calls of `advance` are equal.
    // curvature: the sum of that of all rows.
    AdaptiveProbabilities(const Columns& columns, const LossType& loss, std::int64_t n,
                          StepRule rule, double curvature, bool counted)
        : columns_(columns),
          loss_(loss),
          kind_(rule == StepRule::step ? Measure::step
                : loss.gamma > 0       ? Measure::residue
                                       : Measure::share),
          gamma_(smoothness_or_mean(loss.gamma, curvature, n)),
          optimal_(rule == StepRule::optimal),
          counted_(counted),
          blocks_((n + probability_block - 1) / probability_block),
          score_(blocks_ * probability_block),
          b_(blocks_ * probability_block),
          size_(blocks_ * probability_block),
          target_(loss.margin ? 0 : blocks_ * probability_block),
          q_(kind_ == Measure::step ? blocks_ * probability_block : 0),
          weight_(optimal_ ? blocks_ * probability_block : probability_block),
          ratio_(optimal_ ? blocks_ * probability_block : 0),
          hits_(counted ? blocks_ * probability_block : 0),
          sum_(blocks_),
          part_(blocks_),
          dirty_(blocks_, 1) {}

    void set(std::int64_t i, const RowState& state, double c, double score) {
        const Label l = label(loss_.margin, state.y);
        const double gamma = loss_.gamma;
        score_[i] = score;
        b_[i] = l.sign * state.beta;
        const bool step = kind_ == Measure::step;
        size_[i] = std::copysign(
            step ? step_size(gamma_, c, state.q) : adaptive_weight(gamma, c, state.q, 1.0, 1.0),
            l.sign);
        if (step) q_[i] = state.q;
        if (!loss_.margin) target_[i] = l.target;
        if (optimal_ && gamma > 0) ratio_[i] = gamma / (state.q + gamma);
    }

    double score(std::int64_t i) const { return score_[i]; }

    void set_b(std::int64_t i, double b) {
        b_[i] = b;
        dirty_[i / probability_block] = 1;
    }
    void move(std::int64_t j, double change) {
        moves_.push_back({static_cast<std::int32_t>(j), change / columns_.scale});
    }
    void touch_all() { std::fill(dirty_.begin(), dirty_.end(), 1); }

    // Take the moves in, and bring the distribution up to date.
    void advance(double bias) {
        std::visit(
            [&](const auto& entries) {
                std::size_t begin = 0;
                do {  // a byte counts to 255
                    const std::size_t end =
                        counted_ ? std::min(moves_.size(), begin + 255) : moves_.size();
                    sweep(entries, begin, end, bias);
                    begin = end;
                } while (begin < moves_.size());
            },
            columns_.entries);
        moves_.clear();
    }

    // The row at u of the distribution; -1: every residue is 0.
    std::int64_t find(double u, double bias) {
        if (!(total(sum_) > 0)) return -1;
        double distribution[probability_block];
        if (!optimal_) {
            const auto [k, rest] = find_block(sum_, u);
            weigh(k, bias, distribution);
            return scan(distribution, k, rest);
        }
        fill();
        const auto [k, rest] = find_block(filled_, u);
        for (std::int64_t r = 0; r < probability_block; ++r)
            distribution[r] = filled(weight_[k * probability_block + r]);
        return scan(distribution, k, rest);
    }

  private:
    struct Move {
        std::int32_t column;
        double change;
    };
    struct Place {
        std::int64_t block;
        double rest;
    };

    static double total(const std::vector<double>& sums) {
        double sum = 0;
        for (const double s : sums) sum += s;
        return sum;
    }

    static Place find_block(const std::vector<double>& sums, double u) {
        double rest = u * total(sums);
        std::size_t k = 0;
        while (k + 1 < sums.size() && rest >= sums[k]) rest -= sums[k++];
        while (k > 0 && sums[k] <= 0) --k;  // rounding carried past the last block in use
        return {static_cast<std::int64_t>(k), rest};
    }

    static std::int64_t scan(const double* distribution, std::int64_t k, double rest) {
        std::int64_t last = 0;
        for (std::int64_t r = 0; r < probability_block; ++r) {
            if (distribution[r] <= 0) continue;
            last = r;
            if (rest < distribution[r]) break;
            rest -= distribution[r];
        }
        return k * probability_block + last;
    }

    double weigh(std::int64_t k, double bias, double* out) const {
        const std::int64_t i = k * probability_block;
        auto call = [&](auto kind, auto margin) {
            return weigh_block<kind, margin>(loss_, &score_[i], bias, &b_[i], &size_[i],
                                             margin ? nullptr : &target_[i],
                                             kind == Measure::step ? &q_[i] : nullptr, out);
        };
        auto by_label = [&](auto kind) {
            return loss_.margin ? call(kind, std::true_type{}) : call(kind, std::false_type{});
        };
        if (kind_ == Measure::residue)
            return by_label(std::integral_constant<Measure, Measure::residue>{});
        if (kind_ == Measure::share)
            return by_label(std::integral_constant<Measure, Measure::share>{});
        return by_label(std::integral_constant<Measure, Measure::step>{});
    }

    void refresh(std::int64_t k, double bias) {
        dirty_[k] = 0;
        double* weight = optimal_ ? &weight_[k * probability_block] : weight_.data();
        sum_[k] = weigh(k, bias, weight);
        if (!optimal_) return;
        const double* ratio = &ratio_[k * probability_block];
        double part = 0;
#pragma omp simd reduction(+ : part)
        for (std::int64_t r = 0; r < probability_block; ++r)
            part += weight[r] * weight[r] * ratio[r];
        part_[k] = part;  // gamma times the sum of c kappa^2
    }

    // Lists of rows one by one, columns stored in full block by block.
    template <class T>
    void sweep(const ColumnEntries<T>& entries, std::size_t begin, std::size_t end, double bias) {
        full_.clear();
        for (std::size_t m = begin; m < end; ++m) {
            const auto [j, change] = moves_[m];
            if (columns_.place[j] >= 0) {
                full_.push_back({columns_.place[j], change});
                continue;
            }
            for (std::int64_t e = columns_.start[j]; e < columns_.start[j + 1]; ++e) {
                const std::int64_t i = columns_.rows[e];
                dirty_[i / probability_block] = 1;
                if constexpr (std::decay_t<decltype(entries)>::ones)
                    counted_ ? void(++hits_[i]) : void(score_[i] += change);
                else
                    score_[i] += change * static_cast<double>(entries.values[e]);
            }
        }
        for (std::int64_t k = 0; k < blocks_; ++k) {
            if (!dirty_[k] && full_.empty()) continue;
            double* score = &score_[k * probability_block];
            if (counted_) {
                std::uint8_t* hits = &hits_[k * probability_block];
                add_full(entries, k, hits);
                const double change = begin < end ? moves_[begin].change : 0.0;
#pragma omp simd
                for (std::int64_t r = 0; r < probability_block; ++r) {
                    score[r] += change * static_cast<double>(hits[r]);
                    hits[r] = 0;
                }
            } else {
                add_full(entries, k, score);
            }
            refresh(k, bias);
        }
    }

    // Four columns at a time: a sum is read and written once for them.
    template <class T, class Sum>
    void add_full(const ColumnEntries<T>& entries, std::int64_t k, Sum* out) const {
        std::size_t m = 0;
        auto add = [&](auto many) {
            const T* x[many];
            double change[many];
            for (int a = 0; a < many; ++a) {
                x[a] = columns_.piece(entries, k, full_[m + a].column);
                change[a] = full_[m + a].change;
            }
            add_pieces<many>(out, x, change);
            m += many;
        };
        while (m + 4 <= full_.size()) add(std::integral_constant<int, 4>{});
        while (m < full_.size()) add(std::integral_constant<int, 1>{});
    }

    double filled(double s) const { return s > 0 ? std::max(level_, s) : 0.0; }

    // The constrained-optimal distribution is max(level, s) over the rows of weight s > 0 (see
    // water_fill), where sum s min(s, level) = H. That sum is concave in the level, so Newton's
    // method rises to the root from its second step on and ends when no row changes sides. It
    // starts at the level of the step before: no sorting, a few passes.
    void fill() {
        const double numerator = total(part_);
        const std::int64_t rows = blocks_ * probability_block;
        const double* weight = weight_.data();
        for (bool first = true;; first = false) {
            double squares = 0, rest = 0;
            const double level = level_;
#pragma omp simd reduction(+ : squares, rest)
            for (std::int64_t i = 0; i < rows; ++i) {
                const double s = weight[i];
                squares += s <= level ? s * s : 0.0;
                rest += s <= level ? 0.0 : s;
            }
            const double next = rest > 0 ? std::max(0.0, (numerator - squares) / rest) : 0.0;
            if (!first && !(next > level)) break;
            level_ = next;
        }
        filled_.resize(sum_.size());
        for (std::int64_t k = 0; k < blocks_; ++k) {
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (std::int64_t r = 0; r < probability_block; ++r)
                sum += filled(weight[k * probability_block + r]);
            filled_[k] = sum;
        }
    }

    const Columns& columns_;
    const LossType loss_;
    Measure kind_;
    double gamma_;  // of the loss, or what stands for it
    bool optimal_, counted_;
    std::int64_t blocks_;
    AlignedArray<double> score_, b_, size_, target_, q_;
    AlignedArray<double> weight_;  // optimal distribution: of all rows; else of the block at hand
    AlignedArray<double> ratio_;   // gamma / (q + gamma), for the optimal distribution
    AlignedArray<std::uint8_t> hits_;  // columns that a row shares with the moves
    std::vector<double> sum_, part_, filled_;
    std::vector<char> dirty_;
    std::vector<Move> moves_, full_;  // full_: the places of columns stored in full
    double level_ = 0;
};

}  // namespace adasdca
