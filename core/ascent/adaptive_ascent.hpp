// Algorithm 1: the residues and the distribution are those of the current point before every single
// step.
//
// A step moves u on one row's features, and a change of w_j moves the scores of the rows of column
// j by that change times x_ij: so scores are kept up to date exactly, by columns, at the cost of
// the columns touched instead of the whole matrix. Scores are summed anew at every call.
#pragma once

#include <cstdint>
#include <variant>

#include "ascent/ascent.hpp"
#include "sampling/adaptive_probabilities.hpp"
#include "sampling/random.hpp"

namespace adasdca {

// `count` steps of Algorithm 1; returns how many were done (fewer: every residue is 0, or stopped).
inline std::int64_t ascend_adaptively(Iterate& it, const Columns& columns, StepRule rule,
                                      std::int64_t count, std::uint64_t key, StopToken& token) {
    return resolve(it, [&](const auto& rows, const auto& loss, const auto& g) {
        // Where w is u and all entries are 1, every w_j of the row moves by the same amount.
        const bool counted =
            g.identity && std::holds_alternative<ColumnEntries<std::uint8_t>>(columns.entries);
        double curvature = 0;
        for (std::int64_t i = 0; i < it.problem->n; ++i) curvature += rows[i].state.q;
        AdaptiveProbabilities distribution(columns, loss, it.problem->n, rule, curvature, counted);
        const double lambda_total = it.problem->lambda * it.problem->total;
        double* u = it.u.data();
        double* w = it.primal();
        for (std::int64_t i = 0; i < it.problem->n; ++i) {
            if (i % 64 == 0 && token.stop()) return std::int64_t{0};
            const auto row = rows[i];
            distribution.set(i, row.state, row.state.scale * lambda_total, row.dot(w));
        }
        Bias bias(it);
        std::int64_t k = 0;
        for (; k < count && !token.stop(); ++k) {
            distribution.advance(bias.value);
            const std::int64_t i =
                distribution.find(uniform(key, static_cast<std::uint64_t>(k)), bias.value);
            if (i < 0) break;
            const auto row = rows[i];
            RowState& state = row.state;
            const Label l = label(loss.margin, state.y);
            const double b = l.sign * state.beta;
            const double b_new =
                loss.step(b, l.sign * (distribution.score(i) + bias.value), l.target, state.q);
            const double c = state.scale * l.sign * (b_new - b);
            state.beta = l.sign * b_new;
            distribution.set_b(i, b_new);
            for_each_entry(row, [&](std::int64_t j, double x) {
                const double before = w[j];
                u[j] += c * x;
                w[j] = g.read(u[j], j);
                const double change = counted ? c * x : w[j] - before;
                if (change != 0) distribution.move(j, change);
            });
            if (bias.square > 0 && c != 0) {
                bias.move(c, is_free(loss, b_new), k, it.problem->n);
                distribution.touch_all();
            }
        }
        bias.keep(it, count);
        return k;
    });
}

}  // namespace adasdca
