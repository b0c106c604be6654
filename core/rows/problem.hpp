// The frozen problem and the changing iterate.
//
//   P(w) = (1/N) sum_i c_i phi(x_i.w + b; y_i) + lambda g(w)
//   D(beta) = -(1/N) sum_i c_i phi*(-beta_i) - lambda g*(u),   u = (1/(lambda N)) sum_i c_i beta_i
//   x_i
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "math/loss.hpp"
#include "math/regularizer.hpp"
#include "rows/rows.hpp"
#include "system/memory_pool.hpp"
#include "system/parallel.hpp"

namespace adasdca {

template <class T>
struct DenseMatrix {
    const T* values;
    std::int64_t n, d;
};

template <class T, class Index>
struct CsrMatrix {
    const T* values;
    const Index* columns;
    const std::int64_t* start;
    std::int64_t n, d;
};

using Matrix = std::variant<DenseMatrix<float>, DenseMatrix<double>, CsrMatrix<float, std::int32_t>,
                            CsrMatrix<float, std::int64_t>, CsrMatrix<double, std::int32_t>,
                            CsrMatrix<double, std::int64_t>>;
using AnyLoss = std::variant<PiecewiseQuadratic, Logistic>;
inline bool is_smooth(const AnyLoss& loss) {
    return std::visit([](const auto& each) { return each.gamma > 0; }, loss);
}
using AnyRegularizer = std::variant<Ridge, ElasticBox, WeightedBox>;
using AnyRows = std::variant<DenseRows<float>, DenseRows<double>, CsrRows<float, std::int32_t>,
                             CsrRows<float, std::int64_t>, CsrRows<double, std::int32_t>,
                             CsrRows<double, std::int64_t>, PackedRows<Ones>, PackedRows<float>,
                             PackedRows<double>>;

// The label of a row as the loss sees it: z = sign * score, b = sign * beta.
struct Label {
    double sign, target;
};
inline Label label(bool margin, double y) {
    return margin ? Label{y, 1.0} : Label{1.0, y};
}

struct Problem {
    Matrix matrix;
    std::int64_t n, d, nnz;
    const double* y;
    const double* weight;  // null: all ones
    AnyLoss loss;
    AnyRegularizer regularizer;
    double lambda;
    double total;  // N, the sum of the weights
    bool fit_intercept;
    double intercept_scale = 0;  // s of the constant feature, 0 without an intercept
    double intercept_reach = 0;  // what scores answer to an imbalance of the duals, in units of s^2
    double constant = 0;         // the last column, if it stands for a penalised intercept

    double weight_of(std::int64_t i) const { return weight ? weight[i] : 1.0; }
};

// Passes go through the rows block by block.
inline constexpr std::int64_t block_rows = 256;

// The rows of every block, shortest first, as offsets in their block: a loop over a row's entries
// then ends where the last one ended, as the processor predicted (w8a's survey: 24 -> 15 ns a row).
// Empty where most rows are as long as the one before, or long.
std::vector<std::uint8_t> rows_by_length(const Problem& problem);

// What bounds the rows of a block, those of weight 0 left out.
struct BlockBounds {
    double norm = 0, size = 0, target = 0;  // the largest |x|, number of entries, and |y|
    bool alike = true;                      // no row is far longer than the others
};

// How the imbalance of the duals swings about 0, and the multiplier that follows it about its end.
struct Swings {
    double pace = 0;     // the share of s u_b that the multiplier moves by at an update
    double fastest = 0;  // that of the beginning
    double peak = 0;     // the largest |s u_b| since its sign changed last
    double highest = 0;  // the largest one before that
    double visits = 0;   // since the multiplier was looked at
    double seen = 0;     // where it was then
    double moved = 0;    // how it had moved before that
    double turned = 0;   // where it turned round last
    double widest = 0;   // its widest swing at this pace

    // A swing that is more than half as wide as one before it will not end: rows that pull at the
    // same features follow the multiplier late. (Eleven data sets, three losses, three C, 30
    // epochs: an intercept loses 0.24 digits of the gap, without this 0.32.) While it goes one way
    // it may go faster again.
    void look(double multiplier) {
        const double move = multiplier - seen;
        if (move * moved < 0) {
            const double width = std::abs(seen - turned);
            if (2.0 * width > widest && widest > 0) {
                pace *= 0.25;
                widest = width;
            }
            widest = std::max(widest, width);
            turned = seen;
        } else {
            pace = std::min(1.2 * pace, fastest);
        }
        moved = move;
        seen = multiplier;
    }
};

// (beta, u, w, bias): all that changes during a solve.
struct Iterate {
    const Problem* problem = nullptr;
    std::vector<BlockBounds> bounds;      // of each block
    std::vector<std::uint8_t> row_order;  // of the rows of each block; empty: as they come
    Buffer<RowState> states;              // where rows are not packed
    Buffer<std::uint64_t> place;          // where they are
    Buffer<std::byte> arena;
    std::int64_t packed_bytes = 0;
    AnyRows rows;
    std::vector<double> u;
    std::vector<double> w;      // grad g*(u); empty when that is u itself
    std::vector<double> spare;  // u as the last survey summed it from beta
    double spare_constant = 0;  // and its constant
    bool summed = false;        // these are to take over when the next ascent begins
    double multiplier = 0.0;    // b_k of the method of multipliers
    Swings swings;              // of the imbalance that it follows
    double constant = 0.0;      // u of the constant feature: (s / (lambda N)) sum_i c_i beta_i
    bool packing = false;       // to be packed before the first ascent
    bool follow = false;        // beta is to be -phi' at w, from the next survey on
    bool placed = false;        // w and b were put here, by no ascent
    bool fresh = true;          // nothing has moved yet: beta = 0

    // Scores are x.w + bias().
    double bias() const { return multiplier + problem->intercept_scale * constant; }
    double* primal() { return w.empty() ? u.data() : w.data(); }
};

// Whether every entry of a row is stored, in order.
inline bool is_dense(const Iterate& it) {
    return std::visit([](const auto& rows) { return !requires { rows[0].columns; }; }, it.rows);
}

// Call f(rows, loss, regularizer) with their types resolved, once per kernel call.
template <class F>
decltype(auto) resolve(Iterate& it, F&& f) {
    return std::visit(std::forward<F>(f), it.rows, it.problem->loss, it.problem->regularizer);
}

template <class F>
decltype(auto) with_rows(const Iterate& it, F&& f) {
    return std::visit(std::forward<F>(f), it.rows);
}

// f(i) for the rows of a block, in the order of `row_order`; the next block is on its way into the
// cache meanwhile, because the hardware predicts no such order (w8a's survey: 60 -> 16 ns a row).
// Where only `heads` are looked at, no order is needed.
template <class Rows, class F>
ADASDCA_INLINE void for_rows(const Iterate& it, const Rows& rows, std::int64_t begin,
                             std::int64_t end, F&& f, bool heads = false) {
    const std::uint8_t* order = it.row_order.empty() || heads ? nullptr : it.row_order.data();
    const std::int64_t last = it.problem->n - 1;
    for (std::int64_t k = begin; k < end; ++k) {
        std::int64_t i = k;
        if (order) {
            rows.prefetch_block(std::min(k + block_rows, last));
            i = begin + order[k];
        }
        f(i);
    }
}

// w = grad g*(u) for all features.
inline void read_primal(Iterate& it) {
    if (it.w.empty()) return;
    std::visit(
        [&](const auto& g) {
            for (std::int64_t j = 0; j < it.problem->d; ++j) it.w[j] = g.read(it.u[j], j);
        },
        it.problem->regularizer);
}

// Start at beta = 0 (u = 0), on the rows as they are given.
// The problem gets its constant feature. What a token has stopped is of no use.
Iterate make_iterate(Problem& problem, bool packing, StopToken& token);

// Copy the rows into records if that was asked for and is possible. It costs as much as a survey
// or two and only visits in random order are the faster for it, so it waits for the first of them:
// a solve that is done by Newton steps never packs.
void pack_if_wanted(Iterate& it, int threads, StopToken& token);

}  // namespace adasdca
