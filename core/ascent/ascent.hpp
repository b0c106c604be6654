// The dual ascent over a given sequence of rows, and QUARTZ's averaged variant of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "rows/problem.hpp"
#include "system/parallel.hpp"

namespace adasdca {

// Rows this far ahead of the one at work are on their way into the cache; their places twice as
// far.
inline constexpr std::int64_t look_ahead = 16;
// Entries between two looks at the clock: well under a millisecond of work.
inline constexpr std::int64_t entries_per_check = 1 << 17;

// Add c x to u and keep w = grad g*(u) on the row's own features.
template <class Row, class Regularizer>
ADASDCA_INLINE void move(const Row& row, double c, double* u, double* w, const Regularizer& g) {
    if constexpr (Regularizer::identity)
        row.each([&](std::int64_t j, double x) { u[j] += c * x; });
    else
        row.each([&](std::int64_t j, double x) {
            u[j] += c * x;
            w[j] = g.read(u[j], j);
        });
}

template <class Rows>
ADASDCA_INLINE void look(const Rows& rows, std::span<const std::int32_t> indices, std::int64_t k) {
    const auto count = static_cast<std::int64_t>(indices.size());
    if (k + 2 * look_ahead < count) rows.prefetch_place(indices[k + 2 * look_ahead]);
    if (k + look_ahead < count) rows.prefetch(indices[k + look_ahead]);
}

// Whether a dual is inside of its domain.
template <class LossType>
ADASDCA_INLINE bool is_free(const LossType& loss, double b) {
    if constexpr (requires { loss.lower; })
        return b > loss.lower && b < loss.upper;
    else
        return b > 0 && b < 1;
}

// The intercept during an ascent: the multiplier follows the imbalance of the duals update by
// update. (From survey to survey it would take one and a half times as many epochs, and as many
// again as permutations lie between surveys.)
struct Bias {
    double square;          // s^2
    double value, penalty;  // b_k + s u_b, and s u_b
    Swings swings;
    std::int64_t next;  // the visit of this ascent at which the multiplier is looked at
    bool rests = true;  // no dual has changed

    explicit Bias(const Iterate& it)
        : square(it.problem->intercept_scale * it.problem->intercept_scale),
          value(it.bias()),
          penalty(it.problem->intercept_scale * it.constant),
          swings(it.swings),
          next(it.problem->n - static_cast<std::int64_t>(swings.visits)) {}

    // A dual has changed by c lambda N / weight at a visit. If it is free now, the multiplier moves
    // by its share of the imbalance before that. (One at a bound does not answer: while duals go
    // from one end to the other, the multiplier would run away.)
    ADASDCA_INLINE void move(double c, bool free, std::int64_t visit, std::int64_t n) {
        const double before = penalty;
        penalty += square * c;
        value += (free ? swings.pace * before : 0.0) + square * c;
        swings.peak = std::max(swings.peak, std::abs(penalty));
        if (before * penalty < 0) turn();
        if (visit >= next) {
            swings.look(value - penalty);
            next = visit + n;
        }
        rests = false;
    }

    // The imbalance has changed its sign. A swing twice as high as any before it shows a multiplier
    // that is too fast for these rows: short ones among long ones answer more than the mean row
    // does, and swings grow without end where duals have no bounds.
    void turn() {
        if (swings.highest > 0 && swings.peak > 2.0 * swings.highest) swings.pace *= 0.25;
        swings.highest = std::max(swings.highest, swings.peak);
        swings.peak = std::abs(penalty);
    }

    // After so many visits that changed no dual the multiplier moves by what scores would answer to
    // the imbalance: all duals rest at their bounds, and the intercept has far to go.
    void keep(Iterate& it, std::int64_t visits) {
        if (square == 0) return;
        it.constant = penalty / it.problem->intercept_scale;
        it.multiplier = value - penalty;
        swings.visits = static_cast<double>(it.problem->n - next + visits);
        it.swings = swings;
        const double epochs = static_cast<double>(visits) / static_cast<double>(it.problem->n);
        if (rests) it.multiplier += std::min(epochs, 1.0) * it.problem->intercept_reach * penalty;
    }
};

// beta_i <- argmax of the dual in coordinate i, for i in indices; returns how many were done.
inline std::int64_t ascend(Iterate& it, std::span<const std::int32_t> indices, StopToken& token) {
    return resolve(it, [&](const auto& rows, const auto& loss, const auto& g) {
        double* u = it.u.data();
        double* w = it.primal();
        Bias bias(it);
        const std::int64_t n = it.problem->n;
        const auto count = static_cast<std::int64_t>(indices.size());
        std::int64_t k = 0, work = 0;
        for (; k < count; ++k) {
            if (work <= 0 && token.stop()) break;
            if (work <= 0) work = entries_per_check;
            look(rows, indices, k);
            const auto row = rows[indices[k]];
            RowState& state = row.state;
            work -= 16 + row.size;
            const Label l = label(loss.margin, state.y);
            const double b = l.sign * state.beta;
            const double z = l.sign * (row.dot(w) + bias.value);
            const double b_new = loss.step(b, z, l.target, state.q);
            const double change = l.sign * (b_new - b);
            if (change == 0) continue;
            state.beta = l.sign * b_new;
            move(row, state.scale * change, u, w, g);
            if (bias.square != 0) bias.move(state.scale * change, is_free(loss, b_new), k, n);
        }
        bias.keep(it, k);
        return k;
    });
}

// QUARTZ (Qu, Richtarik and Zhang): w <- (1 - theta) w + theta grad g*(u), then
// beta_i <- (1 - theta/p_i) beta_i - (theta/p_i) phi_i'(x_i.w)  (their option II), or, `exact`,
// beta_i <- the maximiser of -phi_i*(-beta) - x_i.w (beta - beta_i) - q_i (beta - beta_i)^2 / 2.
//
// The average w is kept as grad g*(u) + factor * lag, so that the decay of all d features is one
// multiplication of `factor` and a step costs the row's own features.
struct Average {
    std::vector<double> lag;
    double factor = 1.0;
};

// Let the next survey take P at the average; it then sums u anew from beta.
inline void show_average(Iterate& it, const Average& average) {
    double* w = it.primal();
    for (std::size_t j = 0; j < average.lag.size(); ++j) w[j] += average.factor * average.lag[j];
}

inline std::int64_t quartz(Iterate& it, Average& average, std::span<const std::int32_t> indices,
                           std::span<const double> probability, double theta, bool exact,
                           StopToken& token) {
    return resolve(it, [&](const auto& rows, const auto& loss, const auto& g) {
        double* u = it.u.data();
        double* w = it.primal();
        double* lag = average.lag.data();
        const double bias = it.bias();
        const auto count = static_cast<std::int64_t>(indices.size());
        std::int64_t k = 0, work = 0;
        for (; k < count; ++k) {
            if (work <= 0 && token.stop()) break;
            if (work <= 0) work = entries_per_check;
            look(rows, indices, k);
            average.factor *= 1.0 - theta;
            if (average.factor < 1e-100) {
                for (double& x : average.lag) x *= average.factor;
                average.factor = 1.0;
            }
            const auto row = rows[indices[k]];
            RowState& state = row.state;
            work -= 16 + row.size;
            const Label l = label(loss.margin, state.y);
            const double z = l.sign * (row.dot(w) + average.factor * row.dot(lag) + bias);
            const double pace = theta / probability[indices[k]];
            const double b = l.sign * state.beta;
            const double b_new = exact ? loss.step(b, z, l.target, state.q)
                                       : loss.clip(b + pace * (loss.ascent(z, l.target) - b));
            const double change = l.sign * (b_new - b);
            if (change == 0) continue;
            state.beta = l.sign * b_new;
            const double c = state.scale * change, inverse = 1.0 / average.factor;
            row.each([&](std::int64_t j, double x) {
                const double before = w[j];
                u[j] += c * x;
                w[j] = g.read(u[j], j);
                lag[j] -= (w[j] - before) * inverse;
            });
        }
        return k;
    });
}

}  // namespace adasdca
