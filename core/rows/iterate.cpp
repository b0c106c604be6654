#include <algorithm>
#include <array>
#include <cmath>

#include "rows/problem.hpp"
#include "rows/turned.hpp"
#include "system/parallel.hpp"

namespace adasdca {

namespace {

template <class T>
DenseRows<T> rows_of(const DenseMatrix<T>& x, RowState* states) {
    return {x.values, x.d, states};
}

template <class T, class Index>
CsrRows<T, Index> rows_of(const CsrMatrix<T, Index>& x, RowState* states) {
    return {x.values, x.columns, x.start, states};
}

// What the entries of a matrix allow: no values at all, exact floats, or doubles.
enum class Precision { ones, single, full };

template <class T>
Precision precision_of(const T* values, std::int64_t count) {
    constexpr std::int64_t block = 4096;
    bool ones = true;
    for (std::int64_t begin = 0; begin < count; begin += block) {
        const std::int64_t end = std::min(count, begin + block);
        std::int64_t others = 0, inexact = 0;
#pragma omp simd reduction(+ : others, inexact)
        for (std::int64_t k = begin; k < end; ++k) {
            others += values[k] != T(1);
            inexact += static_cast<T>(static_cast<float>(values[k])) != values[k];
        }
        if (inexact > 0) return Precision::full;
        ones = ones && others == 0;
    }
    return ones ? Precision::ones : Precision::single;
}

constexpr std::int64_t record_alignment = 64;
constexpr std::int64_t rows_per_check = 4096;

template <class V, class T, class Index>
void pack(Iterate& it, const CsrMatrix<T, Index>& x, int threads, StopToken& token) {
    using Packed = PackedRows<V>;
    Buffer<std::uint64_t> place(static_cast<std::size_t>(x.n));
    std::int64_t offset = 0;
    for (std::int64_t k = 0; k < x.n; ++k) {
        const std::int64_t i =
            it.row_order.empty() ? k : k / block_rows * block_rows + it.row_order[k];
        const std::int64_t size = x.start[i + 1] - x.start[i];
        place[i] = static_cast<std::uint64_t>(offset) << Packed::length_bits |
                   static_cast<std::uint64_t>(size);
        offset += (Packed::record_bytes(size) + record_alignment - 1) / record_alignment *
                  record_alignment;
    }
    Buffer<std::byte> arena(static_cast<std::size_t>(offset));
    const Packed packed{arena.data(), place.data()};
    // A byte takes 0.2 ns where memory is at hand, and up to 2.4 where the system has to look for
    // it, which threads then do at the same time.
    threads = worthwhile(0.2 * static_cast<double>(offset), threads);
    for_each_piece((x.n + block_rows - 1) / block_rows, threads, token, [&](std::int64_t block) {
        const std::int64_t begin = block * block_rows;
        for_rows(it, rows_of(x, it.states.data()), begin, std::min(x.n, begin + block_rows),
                 [&](std::int64_t i) {
                     auto row = packed[i];
                     row.state = it.states[i];
                     auto* columns = const_cast<std::int32_t*>(row.columns);
                     const std::int64_t first = x.start[i];
                     for (std::int64_t k = 0; k < row.size; ++k)
                         columns[k] = static_cast<std::int32_t>(x.columns[first + k]);
                     if constexpr (!Packed::ones) {
                         auto* values = const_cast<V*>(row.values);
                         for (std::int64_t k = 0; k < row.size; ++k)
                             values[k] = static_cast<V>(x.values[first + k]);
                     }
                 });
    });
    if (token.stopped()) return;
    it.packed_bytes = offset + 8 * x.n;
    it.arena = std::move(arena);
    it.place = std::move(place);
    it.rows = Packed{it.arena.data(), it.place.data()};
    Buffer<RowState>().swap(it.states);
}

// A dense row is contiguous already.
template <class T>
void try_pack(Iterate&, const DenseMatrix<T>&, int, StopToken&) {}

template <class T, class Index>
void try_pack(Iterate& it, const CsrMatrix<T, Index>& x, int threads, StopToken& token) {
    const std::int64_t nnz = x.start[x.n];
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < x.n; ++i) longest = std::max(longest, x.start[i + 1] - x.start[i]);
    if (longest >> PackedRows<Ones>::length_bits != 0) return;
    switch (precision_of(x.values, nnz)) {
        case Precision::ones:
            return pack<Ones>(it, x, threads, token);
        case Precision::single:
            return pack<float>(it, x, threads, token);
        case Precision::full:
            return pack<double>(it, x, threads, token);
    }
}

// Longer rows need no order: they hide a wrong guess at their end.
constexpr std::int64_t most_counted = 127;

void sort_block(const std::int64_t* start, std::int64_t count, std::uint8_t* order) {
    std::array<std::uint16_t, most_counted + 2> place{};
    std::array<std::uint8_t, block_rows> length;
    for (std::int64_t k = 0; k < count; ++k) {
        length[k] = static_cast<std::uint8_t>(std::min(start[k + 1] - start[k], most_counted));
        ++place[length[k] + 1];
    }
    for (std::int64_t l = 0; l < most_counted; ++l) place[l + 1] += place[l];
    for (std::int64_t k = 0; k < count; ++k)
        order[place[length[k]]++] = static_cast<std::uint8_t>(k);
}

}  // namespace

std::vector<std::uint8_t> rows_by_length(const Problem& problem) {
    const std::int64_t n = problem.n;
    std::vector<std::uint8_t> row_order;
    if (problem.nnz > most_counted * n) return row_order;
    auto sort = [&](const std::int64_t* start) {
        std::int64_t changes = 0;
        for (std::int64_t i = 1; i < n; ++i)
            changes += start[i + 1] - start[i] != start[i] - start[i - 1];
        if (changes < n / 8) return;
        row_order.resize(static_cast<std::size_t>(n));
        for (std::int64_t begin = 0; begin < n; begin += block_rows)
            sort_block(start + begin, std::min(block_rows, n - begin), row_order.data() + begin);
    };
    std::visit(
        [&](const auto& x) {
            if constexpr (requires { x.start; }) sort(x.start);
        },
        problem.matrix);
    return row_order;
}

namespace {

// A block's rows are alike if no square |x|^2 is more than so many times their mean: one bound for
// all is then at most four times that of a row for itself.
constexpr double most_alike = 16;

// |x|^2 in the norm that is dual to the regulariser's.
template <class Row>
double squared_length(const Row& row, const AnyRegularizer& regularizer) {
    const auto* g = std::get_if<WeightedBox>(&regularizer);
    if (!g) return row.squared_norm();
    double sum = 0;
    for_each_entry(row, [&](std::int64_t j, double x) { sum += x * x / g->metric(j); });
    return sum;
}

// The same of neighbouring dense rows.
template <class T>
void squared_lengths(const DenseRows<T>& rows, std::int64_t begin, std::int64_t end,
                     const AnyRegularizer& regularizer, double* out) {
    if (rows.d > TurnedRows::longest) {
        for (std::int64_t i = begin; i < end; ++i)
            out[i - begin] = squared_length(rows[i], regularizer);
        return;
    }
    const auto* g = std::get_if<WeightedBox>(&regularizer);
    each_turned(rows.values, rows.d, begin, end, [&](auto& turned, auto i, auto count) {
        double squares[TurnedRows::rows];
        if (g)
            turned.sums(rows.d, squares, [=](auto j, double x) { return x * x / g->metric(j); });
        else
            turned.sums(rows.d, squares, [](auto, double x) { return x * x; });
        std::copy_n(squares, count, out + (i - begin));
    });
}

// What the duals of a loss cost to move: gamma, or where they are bounded, and moved from end to
// end by residuals like those of the beginning, as much as those bounds make of it.
double stiffness(const Problem& problem) {
    if (std::holds_alternative<Logistic>(problem.loss))
        return std::get<Logistic>(problem.loss).gamma;
    const auto& loss = std::get<PiecewiseQuadratic>(problem.loss);
    double far = 1.0;
    if (!loss.margin) {
        far = 0;
        for (std::int64_t i = 0; i < problem.n; ++i) far += std::abs(problem.y[i]);
        far /= static_cast<double>(problem.n);
    }
    return std::max(loss.gamma, far / (loss.upper - loss.lower));
}

// An intercept settles in so many parts of an epoch; rows' steps are shorter by a quarter at most;
// so much of the pace that does not swing is taken, half; rows that are looked at.
constexpr double settling = 16, shorter = 0.25, calm = 0.125;
constexpr std::int64_t sampled = 256, asked_at_most = 4096;
// The least |x|^2 of a row here, in units of the mean: one of zeros answers at once.
constexpr double least_square = 1.0 / 64;
// Its least where the loss has kinks, for the length of steps (1/64: three times as many epochs on
// counts with short rows).
constexpr double next_to_none = 1e-4;

// The square of the mean row, rows weighed by how they answer; of a sample, its own squares left
// out.
template <class F>
double square_of_mean(const Problem& problem, const Iterate& it, F&& answer) {
    Buffer<double> sum(static_cast<std::size_t>(problem.d), 0.0);
    double mass = 0, masses = 0, pairs = 0;
    const std::int64_t stride = (problem.n + sampled - 1) / sampled;
    with_rows(it, [&](const auto& rows) {
        for (std::int64_t i = 0; i < problem.n; i += stride) {
            const auto row = rows[i];
            const double share = answer(row.state);
            if (share == 0) continue;
            for_each_entry(row, [&](std::int64_t j, double x) { sum[j] += share * x; });
            mass += share;
            masses += share * share;
            pairs -= share * share * row.state.q / row.state.scale;
        }
    });
    for (const double x : sum) pairs += x * x;
    return mass * mass > masses ? std::max(pairs / (mass * mass - masses), 0.0) : 0.0;
}

// The constant feature, and the pace of the multiplier. A visit to a row that is off by e moves
// t = sum_i c_i beta_i / (lambda N) by -e / r, with 1 / r the mean of scale / (gamma + q), and the
// scores of others answer by p^2 t, where p^2 = |x~|^2 + s^2 and x~ is the mean row by what rows
// move t. So an imbalance decays at the rate a = p^2 / r a visit. A multiplier that moves by
// a p^2 t / 4 at each makes the two decay together, as fast as they can without swinging. Where w
// is not u, the mean row may not answer, and s is for all of it.
void give_constant(Problem& problem, Iterate& it, double mean_square) {
    const double gamma = stiffness(problem), least = least_square * mean_square;
    double answers = 0;
    std::int64_t asked = 0;
    auto answer = [&](const RowState& state) {
        return state.scale > 0 ? state.scale / (gamma + state.q + least * state.scale) : 0.0;
    };
    // A quotient for every row would take as long as all their lengths.
    const std::int64_t stride = (problem.n + asked_at_most - 1) / asked_at_most;
    for (std::int64_t i = 0; i < problem.n; i += stride, ++asked) answers += answer(it.states[i]);
    const auto count = static_cast<double>(problem.n);
    answers = answers > 0 ? answers / static_cast<double>(asked) : 1.0;
    const bool linear = it.w.empty();
    const double square = (linear ? std::min(settling / count, shorter) : shorter) / answers;
    double reach = square;
    if (linear)
        reach += square_of_mean(problem, it, [&](auto& state) { return answer(state) / answers; });
    problem.intercept_scale = std::sqrt(square);
    problem.intercept_reach = reach / square;
    it.swings.pace = calm * std::min(reach * answers, 1.0) * problem.intercept_reach;
    it.swings.fastest = it.swings.pace;
    // Nothing else limits the steps of rows next to 0 where the loss has kinks. Their duals would
    // go from end to end, and take the multiplier along (eleven empty texts of 9000, hinge).
    const double floor = is_smooth(problem.loss) ? 0.0 : next_to_none * mean_square;
    for (RowState& state : it.states)
        state.q = std::max(state.q, state.scale * floor) + state.scale * square;
}

}  // namespace

Iterate make_iterate(Problem& problem, bool packing, StopToken& token) {
    Iterate it;
    it.problem = &problem;
    it.packing = packing;
    it.u.assign(problem.d, 0.0);
    if (!std::holds_alternative<Ridge>(problem.regularizer)) it.w.assign(problem.d, 0.0);
    it.row_order = rows_by_length(problem);
    it.states.resize(problem.n);
    std::visit([&](const auto& x) { it.rows = rows_of(x, it.states.data()); }, problem.matrix);
    double squares = 0;
    const double whole = problem.lambda * problem.total, even = 1.0 / whole;
    it.bounds.reserve(static_cast<std::size_t>((problem.n + block_rows - 1) / block_rows));
    std::visit(
        [&](const auto& rows) {
            for (std::int64_t begin = 0; begin < problem.n; begin += block_rows) {
                if (begin % rows_per_check == 0 && token.stop()) return;
                const std::int64_t end = std::min(problem.n, begin + block_rows);
                const std::int64_t count = end - begin;
                double length[block_rows];
                if constexpr (requires { rows.values + rows.d; })
                    squared_lengths(rows, begin, end, problem.regularizer, length);
                else
                    for_rows(it, rows, begin, end, [&](std::int64_t i) {
                        length[i - begin] = squared_length(rows[i], problem.regularizer);
                    });
                const double *y = problem.y + begin,
                             *weight = problem.weight ? problem.weight + begin : nullptr;
                double longest = 0, all = 0, size = 0, target = 0;
#pragma omp simd reduction(max : longest, target) reduction(+ : all)
                for (std::int64_t k = 0; k < count; ++k) {
                    const bool counts = !weight || weight[k] != 0;
                    all += length[k];
                    longest = std::max(longest, counts ? length[k] : 0.0);
                    target = std::max(target, counts ? std::abs(y[k]) : 0.0);
                }
                for (std::int64_t k = 0; k < count; ++k) {
                    const auto row = rows[begin + k];
                    const double scale = weight ? weight[k] / whole : even;
                    row.state = {0.0, y[k], scale * length[k], scale};
                    if (!weight || weight[k] != 0)
                        size = std::max(size, static_cast<double>(row.size));
                }
                const bool alike = longest * static_cast<double>(count) <= most_alike * all;
                it.bounds.push_back({std::sqrt(longest), size, target, alike});
                squares += all;
            }
        },
        it.rows);
    if (token.stopped()) return it;
    if (problem.fit_intercept) give_constant(problem, it, squares / static_cast<double>(problem.n));
    read_primal(it);
    return it;
}

void pack_if_wanted(Iterate& it, int threads, StopToken& token) {
    if (!it.packing) return;
    std::visit([&](const auto& x) { try_pack(it, x, threads, token); }, it.problem->matrix);
    // A token that stopped it on the way left everything as it was.
    it.packing = token.stopped();
}

}  // namespace adasdca
