// What a Newton step on the primal asks of the rows, and its model under an L1 term or bounds.
// Systems of linear equations are LAPACK's.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "passes.hpp"

namespace adasdca {

// Sums over the rows at given scores, with beta = -phi' and curvature = c phi''.
struct Assessment {
    double value = 0;      // (1/N) sum c phi
    double conjugate = 0;  // (1/N) sum c phi*(-beta); Fenchel's equality gives it for nothing
    double balance = 0;    // (1/N) sum c beta
};

inline Assessment assess(const Problem& problem, const double* scores, double b, double* beta,
                         double* curvature, int threads, Pulse& pulse) {
    const std::int64_t n = problem.n, blocks = (n + block_rows - 1) / block_rows;
    std::vector<Assessment> parts(static_cast<std::size_t>(blocks));
    std::visit(
        [&](const auto& loss) {
            for_each_piece(blocks, threads, pulse, [&](std::int64_t k) {
                const std::int64_t begin = k * block_rows, end = std::min(n, begin + block_rows);
                double value = 0, conjugate = 0, balance = 0;
#pragma omp simd reduction(+ : value, conjugate, balance)
                for (std::int64_t i = begin; i < end; ++i) {
                    const Label l = label(loss.margin, problem.y[i]);
                    const double c = problem.weight_of(i), z = l.sign * (scores[i] + b);
                    const double ascent = loss.ascent(z, l.target);
                    const double phi = loss.value(z, l.target);
                    value += c * phi;
                    conjugate -= c * (phi + z * ascent);
                    balance += c * l.sign * ascent;
                    beta[i] = l.sign * ascent;
                    curvature[i] = c * loss.curvature(z, l.target);
                }
                parts[k] = {value, conjugate, balance};
            });
        },
        problem.loss);
    Sum value, conjugate, balance;
    for (const auto& part : parts) {
        value.add(part.value);
        conjugate.add(part.conjugate);
        balance.add(part.balance);
    }
    const double unit = 1.0 / problem.total;
    return {unit * value.value(), unit * conjugate.value(), unit * balance.value()};
}

// Add the lower triangle of h x x^T to a d x d matrix, entry by entry. Columns of a row rise.
template <class Index, class Values>
void add_outer(const SparseRow<Index, Values>& row, double h, double* out, std::int64_t d) {
    for (std::int64_t a = 0; a < row.size; ++a) {
        double* line = out + static_cast<std::int64_t>(row.columns[a]) * d;
        const double c = h * static_cast<double>(row.values[a]);
        for (std::int64_t b = 0; b <= a; ++b)
            line[row.columns[b]] += c * static_cast<double>(row.values[b]);
    }
}

// Add sum_r z_r z_r^T, its lower triangle at least, for a few rows of `width` laid out one after
// the other; width is a multiple of 8, so that no vector is cut.
inline void add_block(const double* z, std::int64_t rows, std::int64_t width, double* out) {
    for (std::int64_t a = 0; a < width; ++a) {
        double* line = out + a * width;
        const std::int64_t length = (a + 8) / 8 * 8;
        for (std::int64_t r = 0; r + 4 <= rows; r += 4) {
            // Four rows to one load and store of the result.
            const double *z0 = z + r * width, *z1 = z0 + width, *z2 = z1 + width, *z3 = z2 + width;
            const double c0 = z0[a], c1 = z1[a], c2 = z2[a], c3 = z3[a];
            for (std::int64_t b = 0; b < length; b += 8)
#pragma omp simd
                for (std::int64_t k = b; k < b + 8; ++k)
                    line[k] += (c0 * z0[k] + c1 * z1[k]) + (c2 * z2[k] + c3 * z3[k]);
        }
    }
}

// The lower triangle of sum_i h_i x_i x_i^T: by the entries of sparse rows, by blocks of dense
// ones. A block's product is about ten times as cheap as an entry's.
inline bool gram(const Iterate& it, const double* h, double* out, Pulse& pulse) {
    const std::int64_t n = it.problem->n, d = it.problem->d;
    const double per_row = static_cast<double>(it.problem->nnz) / static_cast<double>(n);
    const bool by_blocks = static_cast<double>(d * d) < 10 * per_row * per_row;
    constexpr std::int64_t block = 64;
    const std::int64_t width = (d + 7) / 8 * 8;
    std::vector<double> dense(by_blocks ? static_cast<std::size_t>(block * width) : 0);
    std::vector<double> square(by_blocks ? static_cast<std::size_t>(width * width) : 0);
    std::fill(out, out + d * d, 0.0);
    with_rows(it, [&](const auto& rows) {
        std::int64_t filled = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            if (i % 1024 == 0 && pulse.stop()) return;
            if (h[i] == 0) continue;
            if constexpr (requires { rows[i].columns; })
                if (!by_blocks) {
                    add_outer(rows[i], h[i], out, d);
                    continue;
                }
            double* line = dense.data() + filled * width;
            const double root = std::sqrt(h[i]);
            rows[i].each([&](std::int64_t j, double x) { line[j] = root * x; });
            if (++filled == block) {
                add_block(dense.data(), block, width, square.data());
                std::fill(dense.begin(), dense.end(), 0.0);
                filled = 0;
            }
        }
        if (by_blocks) add_block(dense.data(), block, width, square.data());
    });
    if (by_blocks)
        for (std::int64_t a = 0; a < d; ++a)
            std::copy_n(square.data() + a * width, a + 1, out + a * d);
    return !pulse.stopped();
}

// Minimise the Newton model (x - w)^T G (x - w) / 2 - r.(x - w) + mu g(x) over x by cyclic
// coordinate descent, from x = w; G is m x m and symmetric. For the penalties that no factorisation
// knows.
template <class Regularizer>
void descend_model(const double* gram, const double* r, const double* w, std::int64_t m, double mu,
                   const Regularizer& g, double* x) {
    std::vector<double> slope(r, r + m);  // r - G (x - w)
    std::copy(w, w + m, x);
    double largest = 0;
    for (int sweep = 0; sweep < 500; ++sweep) {
        double moved = 0;
        for (std::int64_t j = 0; j < m; ++j) {
            const double* line = gram + j * m;
            const double stiffness = line[j] + mu;
            // argmin of stiffness x^2 / 2 - (slope + G_jj x_j) x + mu (sigma |x| + box)
            const double next = g.best(slope[j] + line[j] * x[j], mu, stiffness, j);
            const double change = next - x[j];
            if (change == 0) continue;
            x[j] = next;
            for (std::int64_t k = 0; k < m; ++k) slope[k] -= change * line[k];
            moved = std::max(moved, stiffness * change * change);
        }
        largest = std::max(largest, moved);
        // The model is worth no more than a few digits of the step it proposes.
        if (moved <= 1e-12 * largest) break;
    }
}

}  // namespace adasdca
