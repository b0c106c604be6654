// What a Newton step on the primal asks of the rows, and its model under an L1 term or bounds.
// Systems of linear equations are LAPACK's.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "passes.hpp"

namespace adasdca {

// Sums over the rows at given scores, with beta = -phi' and curvature = c phi''.
struct Assessment {
    double value = 0;      // (1/N) sum c phi
    double conjugate = 0;  // (1/N) sum c phi*(-beta); Fenchel's equality gives it for nothing
    double balance = 0;    // (1/N) sum c beta
};

// A function of its own with everything by value, and the labels in a loop of their own: only so is
// the loop over the losses vectorised (squared hinge: 11 -> 1 ns a row, logistic 20 -> 3).
template <class LossType>
Assessment assess_rows(const LossType loss, std::int64_t count, const double* scores,
                       const double* y, const double* weight, double b, double* __restrict beta,
                       double* __restrict curvature) {
    double z[block_rows], sign[block_rows], target[block_rows];
    for (std::int64_t i = 0; i < count; ++i) {
        const Label l = label(loss.margin, y[i]);
        sign[i] = l.sign;
        target[i] = l.target;
        z[i] = l.sign * (scores[i] + b);
    }
    double value = 0, conjugate = 0, balance = 0;
#pragma omp simd reduction(+ : value, conjugate, balance)
    for (std::int64_t i = 0; i < count; ++i) {
        const double ascent = loss.ascent(z[i], target[i]);
        const double phi = loss.value(z[i], target[i]);
        value += weight[i] * phi;
        conjugate -= weight[i] * (phi + z[i] * ascent);
        balance += weight[i] * sign[i] * ascent;
        beta[i] = sign[i] * ascent;
        curvature[i] = weight[i] * loss.curvature(z[i], target[i]);
    }
    return {value, conjugate, balance};
}

inline Assessment assess(const Problem& problem, const double* scores, double b, double* beta,
                         double* curvature, int threads, Pulse& pulse) {
    const std::int64_t n = problem.n, blocks = (n + block_rows - 1) / block_rows;
    std::vector<Assessment> parts(static_cast<std::size_t>(blocks));
    const std::vector<double> ones(problem.weight ? 0 : block_rows, 1.0);
    const int used = worthwhile(10.0 * static_cast<double>(n), threads);
    std::visit(
        [&](const auto& loss) {
            for_each_piece(blocks, used, pulse, [&](std::int64_t k) {
                const std::int64_t begin = k * block_rows;
                const double* weight = problem.weight ? problem.weight + begin : ones.data();
                parts[k] =
                    assess_rows(loss, std::min(n - begin, block_rows), scores + begin,
                                problem.y + begin, weight, b, beta + begin, curvature + begin);
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
