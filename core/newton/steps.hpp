// The objective of a linear model on few features, with a ridge penalty and equations by features,
// where all Newton steps are one call: what src/adasdca/newton/linear.py is for any rows. There the
// interpreter would take many times as long as a step does (100 x 10: 45 -> 4 us).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "duality/intercept.hpp"
#include "newton/loop.hpp"
#include "newton/newton.hpp"
#include "rows/gram.hpp"

namespace adasdca {

// A Cholesky factorisation in place, of the lower triangle; false if the matrix is not positive
// definite in doubles.
inline bool factorise(double* matrix, std::int64_t d) {
    for (std::int64_t i = 0; i < d; ++i) {
        double* row = matrix + i * d;
        for (std::int64_t j = 0; j <= i; ++j) {
            const double* other = matrix + j * d;
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (std::int64_t k = 0; k < j; ++k) sum += row[k] * other[k];
            if (j < i)
                row[j] = (row[j] - sum) / other[j];
            else if (row[i] > sum)
                row[i] = std::sqrt(row[i] - sum);
            else
                return false;
        }
    }
    return true;
}

// Solve with such a factor, in place.
inline void solve_factorised(const double* factor, std::int64_t d, double* x) {
    for (std::int64_t i = 0; i < d; ++i) {
        for (std::int64_t k = 0; k < i; ++k) x[i] -= factor[i * d + k] * x[k];
        x[i] /= factor[i * d + i];
    }
    for (std::int64_t i = d; i-- > 0;) {
        x[i] /= factor[i * d + i];
        for (std::int64_t k = 0; k < i; ++k) x[k] -= factor[i * d + k] * x[i];
    }
}

// Solve with diag(diagonal) and the lower triangle; a matrix that is singular to rounding gets a
// share of its own diagonal more, then 100 times it, and at last only that is left.
inline void damped_solve(const std::vector<double>& matrix, const double* diagonal,
                         const std::vector<double>& right, std::vector<double>& factor, double* x) {
    constexpr double least = 1e-14;
    const auto d = static_cast<std::int64_t>(right.size());
    auto own = [&](std::int64_t j) { return matrix[j * d + j] + diagonal[j]; };
    for (double damping = 0; damping < 1; damping = std::max(100 * damping, least)) {
        factor = matrix;
        for (std::int64_t j = 0; j < d; ++j) factor[j * d + j] += diagonal[j] + damping * own(j);
        if (!factorise(factor.data(), d)) continue;
        std::copy(right.begin(), right.end(), x);
        solve_factorised(factor.data(), d, x);
        if (std::all_of(x, x + d, [](double value) { return std::isfinite(value); })) return;
    }
    for (std::int64_t j = 0; j < d; ++j) x[j] = right[j] / (own(j) > 0 ? own(j) : 1.0);
}

// What f has beside its rows here.
struct NewtonTerms {
    Rounding rounding;
    const double* stiff;   // mu e_j, the curvature of the penalty
    const double* fixed;   // what rows that are not here add to u; null: nothing
    double held;           // and to sum c beta
    const double* middle;  // a centre of dense rows, null: 0
    double mu;
    bool intercept;
    bool rounded;     // the kinks of the loss are rounded
    double straight;  // a mass below this is none
};

// How rounds of the method of multipliers follow each other, as in
// src/adasdca/newton/multipliers.py.
struct RoundRule {
    double gap = 0;     // that of the centre
    double target = 0;  // the relative gap to reach
    double share = 0;   // of the gap, which a round may leave to gain
    double floor = 0;   // the least length
    std::vector<std::pair<std::int64_t, double>> factors;  // of the length, by steps at most
};

// A point, and what its rows have there. The pointers are to n numbers, or to d: u and v.
struct NewtonPoint {
    double *v, *scores, *beta, *curvature, *u;
    double b, value;
    Derivatives sums{};  // balance is with what is held
    double lost = INFINITY;
};

class NewtonSteps {
  public:
    NewtonSteps(const Iterate& it, const GramColumns& columns, const NewtonTerms& terms,
                NewtonPoint& point, int threads, StopToken& token)
        : it_(it),
          columns_(columns),
          terms_(terms),
          at_(point),
          threads_(threads),
          token_(token),
          n_(it.problem->n),
          d_(it.problem->d),
          rounding_(terms.rounding) {
        const auto n = static_cast<std::size_t>(n_), d = static_cast<std::size_t>(d_);
        right_.resize(d);
        shifted_.resize(d);
        step_.resize(d);
        matrix_.resize(d * d);
        best_v_.resize(d);
        change_.resize(n);
        ones_.assign(terms.intercept ? n : 0, 1.0);
        column_.resize(d);
    }

    // Step until no more than `enough`, or that share of the value, is left to gain.
    NewtonCourse run(double enough, double share, std::int64_t most) {
        enough_ = enough;
        share_ = share;
        settle();
        return minimise(*this, most);
    }

    // The same round by round: the duals of one are the centre of the next, whose length is
    // shorter, down to the least one. Only while each halves the gap that they certify: what else
    // there is to do is the caller's to say. Told of the last round; `taken` are the steps of all.
    NewtonCourse run_rounds(double enough, std::int64_t most, const RoundRule& rule,
                            std::int64_t& taken) {
        const Problem& problem = *it_.problem;
        double gap = rule.gap, b = 0;
        std::vector<double> v;  // and b, and the centre: where the round before has ended
        Buffer<double> duals;
        taken = 0;
        while (true) {
            const NewtonCourse course = run(enough, 0.0, most);
            taken += course.steps;
            const auto next =
                std::find_if(rule.factors.begin(), rule.factors.end(),
                             [&](const auto& pair) { return course.steps <= pair.first; });
            duals.assign(at_.beta, at_.beta + n_);
            if (terms_.intercept)
                balance_sides(problem, sides_of(problem, at_.beta), at_.beta, duals.data());
            score(it_, at_.v, change_.data(), threads_, calm_);
            const Certified found =
                certify(it_, change_.data(), at_.b, at_.v, duals.data(), threads_, calm_);
            if (!v.empty() && !(found.gap < gap)) {  // what is not finite is not less
                std::copy(v.begin(), v.end(), at_.v);
                std::copy(centre_.begin(), centre_.end(), at_.beta);
                at_.b = b;
            }
            const double goal = rule.target * found.primal;
            if (course.ending != NewtonEnding::reached || next == rule.factors.end() ||
                !(found.gap < 0.5 * gap) || found.gap <= std::max(goal, 2.0 * found.rounding) ||
                rounding_.length <= rule.floor)
                return course;
            gap = found.gap;
            enough = problem.total * std::max({rule.share * gap, 0.1 * goal, 0.1 * found.rounding});
            at_.value = problem.total * found.primal;
            v.assign(at_.v, at_.v + d_);
            b = at_.b;
            std::copy_n(at_.beta, n_, duals.data());
            centre_.swap(duals);
            rounding_ = {std::max(next->second * rounding_.length, rule.floor), centre_.data()};
        }
    }

    double length() const { return rounding_.length; }

    // What the loop asks of an objective.
    double lost() const { return at_.lost; }
    double enough() const { return enough_ + share_ * at_.value; }
    bool stopped() const { return false; }

    void keep() {
        best_b_ = at_.b;
        std::copy_n(at_.v, d_, best_v_.begin());
    }

    void recall() {
        if (best_b_ == at_.b && std::equal(best_v_.begin(), best_v_.end(), at_.v)) return;
        std::copy(best_v_.begin(), best_v_.end(), at_.v);
        at_.b = best_b_;
        score(it_, at_.v, at_.scores, threads_, calm_, at_.b);
        settle();
    }

    std::optional<double> aim() {
        if (token_.stop() || !choose_line()) return {};
        return slope_;
    }

    std::optional<StepLength> search() {
        constexpr double hidden = 1e-13;  // a gain below this share of the value is rounding
        StepLength found =
            search_along(*it_.problem, rounding_, at_.scores, change_.data(), at_.sums.reach,
                         at_.sums.mass, rest(), slope_, threads_, token_);
        if (token_.stopped()) return {};
        found.sharp = found.sharp && -found.length * slope_ > hidden * at_.value;
        return found;
    }

    void move(double length) {
        // The slope rises from its first value to about 0; f is positive.
        at_.value = std::max(at_.value + 0.5 * length * slope_, 0.1 * at_.value);
        for (std::int64_t j = 0; j < d_; ++j) at_.v[j] += length * step_[j];
        at_.b += length * db_;
        for (std::int64_t i = 0; i < n_; ++i) at_.scores[i] += length * change_[i];
        settle();
    }

  private:
    // Take note of the derivatives at the scores, and of what is left to gain.
    void settle() {
        const Problem& problem = *it_.problem;
        at_.sums = derive(problem, rounding_, at_.scores, at_.beta, at_.curvature, threads_, calm_);
        combine(it_, at_.beta, at_.u, threads_, calm_);
        if (at_.sums.mass < terms_.straight) {
            // Nearly straight everywhere: a step would leave the range of doubles.
            std::fill_n(at_.curvature, n_, 0.0);
            at_.sums.mass = at_.sums.curved = 0;
        }
        at_.sums.balance += terms_.held;
        at_.sums.away /= static_cast<double>(std::max<std::int64_t>(n_, 1));
        double lost = 0;
        for (std::int64_t j = 0; j < d_; ++j) {
            if (terms_.fixed) at_.u[j] += terms_.fixed[j];
            right_[j] = terms_.mu * at_.u[j] - terms_.stiff[j] * at_.v[j];
            lost += 0.5 * right_[j] * right_[j] / terms_.stiff[j];
        }
        if (const double t = at_.sums.balance; terms_.intercept && t != 0) {
            const double steep = std::abs(t) * at_.sums.away;
            const double flat = at_.sums.mass > 0 ? 0.5 * t * t / at_.sums.mass : INFINITY;
            lost += terms_.rounded ? steep : std::min(steep, flat);
        }
        at_.lost = std::isfinite(lost) ? lost : INFINITY;
    }

    // Choose the line of the Newton step; false if time ran out.
    bool choose_line() {
        constexpr double farthest = 1e12;  // of the intercept, in units of the mean residual
        const double balance = terms_.intercept ? at_.sums.balance : 0.0;
        const double mass = terms_.intercept ? at_.sums.mass : 0.0;
        const bool free = mass > 0;
        const GramTerms sums{at_.curvature, ones_.data(), n_, free ? 1 : 0,
                             free ? terms_.middle : nullptr};
        if (!gram(it_, columns_, sums, matrix_.data(), column_.data(), threads_, token_))
            return false;
        shifted_ = right_;
        if (free)
            for (std::int64_t i = 0; i < d_; ++i) {
                for (std::int64_t j = 0; j <= i; ++j)
                    matrix_[i * d_ + j] -= column_[i] * (column_[j] / mass);
            }
        if (free)
            for (std::int64_t j = 0; j < d_; ++j) {
                if (sums.centre) column_[j] += mass * sums.centre[j];
                shifted_[j] -= column_[j] * (balance / mass);
            }
        damped_solve(matrix_, terms_.stiff, shifted_, factor_, step_.data());
        db_ = 0;
        if (free) {
            db_ = balance;
            for (std::int64_t j = 0; j < d_; ++j) db_ -= column_[j] * step_[j];
            db_ /= mass;
        } else if (terms_.intercept && balance != 0) {
            // Every row is on a straight piece: any length will do, the line search mends it.
            db_ = std::copysign(at_.sums.away, balance);
        }
        slope_ = 0;
        if (!std::isfinite(db_)) return true;
        const double most = farthest * at_.sums.away;
        if (terms_.intercept && std::abs(db_) > most && most > 0) {
            // Next to no curvature is left: a shorter step on the same line.
            const double part = most / std::abs(db_);
            for (double& x : step_) x *= part;
            db_ *= part;
        }
        for (std::int64_t j = 0; j < d_; ++j) slope_ -= right_[j] * step_[j];
        slope_ -= balance * db_;
        return score(it_, step_.data(), change_.data(), threads_, token_, db_);
    }

    // The slope of what is not the rows': the penalty, and duals that are fixed.
    StraightSlope rest() const {
        StraightSlope line{0, 0, 0};
        double fixed = -terms_.held * db_;
        for (std::int64_t j = 0; j < d_; ++j) {
            const double pull = terms_.stiff[j] * step_[j];
            line.slope += at_.v[j] * pull;
            line.curvature += step_[j] * pull;
            line.size += std::abs(at_.v[j] * pull);
            if (terms_.fixed) fixed -= terms_.mu * terms_.fixed[j] * step_[j];
        }
        line.slope += fixed;
        line.size += std::abs(fixed);
        return line;
    }

    const Iterate& it_;
    const GramColumns& columns_;
    const NewtonTerms& terms_;
    NewtonPoint& at_;
    int threads_;
    StopToken& token_;
    StopToken calm_{1e18};  // a point is left whole, whatever the time
    std::int64_t n_, d_;
    std::vector<double> right_, shifted_, step_, matrix_, factor_, best_v_, column_;
    Rounding rounding_;  // that of the terms, and of later rounds
    Buffer<double> change_, ones_, centre_;
    double db_ = 0, slope_ = 0, enough_ = 0, share_ = 0, best_b_ = 0;
};

}  // namespace adasdca
