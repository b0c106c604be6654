// A squared loss and a penalty that is separable, on a working set of features by its columns:
//
//   |r|^2 / 2 + sum_j (ridge_j w_j^2 / 2 + kink_j |w_j|),   lower <= w <= upper,   r = z - Aw,
//
// feature by feature, and now and then by conjugate gradients on those that do not rest. Unlike
// separable.hpp it needs no matrix of the features, which may be many and sparse.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "newton/separable.hpp"

namespace adasdca {

// Columns of a set in turn, dense where `start` is null. Those of sparse ones have their share of
// `root` taken out where an intercept is eliminated: A_j = values_j - sums_j / mass * root.
struct SetColumns {
    std::int64_t n, m;
    const double* values;
    const std::int64_t* start;
    const std::int32_t* rows;
    const double* root;  // of the weights; null without an intercept

    std::int64_t begin(std::int64_t j) const { return start ? start[j] : j * n; }
    std::int64_t entries() const { return begin(m); }
};

// A vector of the rows: v + shift * root.
struct Shifted {
    double* v;
    double shift;
};

class ColumnDescent {
  public:
    ColumnDescent(const SetColumns& a, const SeparablePenalty& penalty, double* w, double* residual)
        : a_(a), penalty_(penalty), w_(w), r_{residual, 0.0}, own_(a.m), sums_(a.m, 0.0) {
        if (a.start && a.root)
            for (std::int64_t i = 0; i < a.n; ++i) mass_ += a.root[i] * a.root[i];
        for (std::int64_t j = 0; j < a.m; ++j) {
            const std::int64_t begin = a.begin(j), end = a.begin(j + 1);
            for (std::int64_t k = begin; k < end; ++k) {
                own_[j] += a.values[k] * a.values[k];
                if (mass_ > 0) sums_[j] += a.values[k] * a.root[a.rows[k]];
            }
            if (mass_ > 0) own_[j] = std::max(own_[j] - sums_[j] * sums_[j] / mass_, 0.0);
        }
    }

    // Entries of columns that were read.
    double work() const { return work_; }

    // Until a sweep shows that about `enough` is left of the duality gap. False if that has taken
    // more than `most` entries.
    bool run(double enough, double most, StopToken& token) {
        double last = 0, since = 0;  // entries of the last step, and since
        int sweeps = 0;              // since that
        bool all = true;
        while (!token.stop()) {
            const double left = sweep(all), before = work_;
            if (!std::isfinite(left)) return false;
            if (left <= enough) {
                if (all) return settle();
                all = true;
                continue;
            }
            ++sweeps;
            since += visited_;
            all = sweeps % every == 0;
            if (sweeps >= every && since >= last) {
                last = step(since) ? work_ - before : 0;
                since = 0, sweeps = 0, all = true;
            }
            if (work_ > most) break;
        }
        settle();
        return false;
    }

  private:
    static constexpr int every = 8;          // sweeps before one over all, or a step
    static constexpr double small = 0.001;   // of the gain of a step: its last iteration
    static constexpr double largest = 1000;  // of a matrix, whose factorisation looks at no clock

    double dot(std::int64_t j, const Shifted& x) const {
        const std::int64_t begin = a_.begin(j), end = a_.begin(j + 1);
        double sum = 0;
        if (a_.start) {
            for (std::int64_t k = begin; k < end; ++k) sum += a_.values[k] * x.v[a_.rows[k]];
            return sum + x.shift * sums_[j];
        }
        const double* line = a_.values + begin;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < a_.n; ++i) sum += line[i] * x.v[i];
        return sum;
    }

    void add(std::int64_t j, double step, Shifted& x) const {
        const std::int64_t begin = a_.begin(j), end = a_.begin(j + 1);
        if (a_.start) {
            for (std::int64_t k = begin; k < end; ++k) x.v[a_.rows[k]] += step * a_.values[k];
            if (mass_ > 0) x.shift -= step * sums_[j] / mass_;
            return;
        }
        const double* line = a_.values + begin;
#pragma omp simd
        for (std::int64_t i = 0; i < a_.n; ++i) x.v[i] += step * line[i];
    }

    // Best coordinates in turn. Returns what is left of the gap, about: slopes beyond a kink cost
    // their square over twice the ridge, or the share by which the duals have to shrink.
    double sweep(bool all) {
        double gain = 0, size = 0, beyond = 0, steep = 0;
        visited_ = 0;
        for (std::int64_t j = 0; j < a_.m; ++j) {
            if (!all && penalty_.rests(j, w_[j], own_[j])) continue;
            visited_ += static_cast<double>(a_.begin(j + 1) - a_.begin(j));
            const double to = penalty_.best(j, own_[j], w_[j], dot(j, r_)), step = to - w_[j];
            if (step != 0) {
                add(j, -step, r_);
                w_[j] = to;
                const double stiff = own_[j] + penalty_.ridge[j], force = stiff * std::abs(step);
                gain += force * std::abs(step);
                if (penalty_.ridge[j] > 0) steep += 0.5 * force * force / penalty_.ridge[j];
                if (penalty_.ridge[j] == 0 && penalty_.kink[j] > 0)
                    beyond = std::max(beyond, force / penalty_.kink[j]);
            }
            size += penalty_.kink[j] * std::abs(to);
        }
        work_ += visited_;
        return gain + size * beyond + steep;
    }

    double value(const Shifted& r, const std::vector<double>& w) const {
        double sum = 0, rest = 0;
        for (std::int64_t i = 0; i < a_.n; ++i) {
            const double each = mass_ > 0 ? r.v[i] + r.shift * a_.root[i] : r.v[i];
            sum += each * each;
        }
        for (std::int64_t j = 0; j < a_.m; ++j)
            rest += 0.5 * penalty_.ridge[j] * w[j] * w[j] + penalty_.kink[j] * std::abs(w[j]);
        return 0.5 * sum + rest;
    }

    // Towards the minimum over the features that do not rest: by their matrix where all before has
    // cost as much, else by conjugate gradients of so many entries at most. Whether by these.
    bool step(double most) {
        const double entries = choose();
        const auto size = static_cast<double>(free_.size());
        const double price = size * entries / 4.0 + size * size * size / 6.0;
        if (size == 0) return false;
        if (size <= largest && work_ - solved_ >= price) {
            solve(entries);
            solved_ = work_ += price;
            return false;
        }
        iterate(entries, most);
        if (!go(1.0, true)) go(room(), false);
        return true;
    }

    // The features that do not rest, and the entries of a product with their matrix.
    double choose() {
        free_.clear();
        double entries = 0;
        for (std::int64_t j = 0; j < a_.m; ++j)
            if (!penalty_.rests(j, w_[j], own_[j])) {
                free_.push_back(j);
                entries += 2.0 * static_cast<double>(a_.begin(j + 1) - a_.begin(j));
            }
        other_.resize(a_.n);
        x_.assign(free_.size(), 0.0);
        return entries;
    }

    // What is left of the slope where feature j does not rest.
    double force(std::int64_t j) const {
        const double sign = w_[j] != 0 ? std::copysign(1.0, w_[j]) : 0.0;
        return dot(j, r_) - penalty_.ridge[j] * w_[j] - penalty_.kink[j] * sign;
    }

    // How far all can go along the step.
    double room() const {
        double least = 1;
        for (std::size_t a = 0; a < free_.size(); ++a)
            if (x_[a] != 0) least = std::min(least, penalty_.room(w_[free_[a]], x_[a], free_[a]));
        return least;
    }

    // To the minimum, or as far as the first feature that comes to rest, and from there on without.
    void solve(double entries) {
        const std::size_t size = free_.size();
        matrix_.resize(size * size);
        Shifted line{other_.data(), 0.0};
        for (std::size_t a = 0; a < size; ++a) {
            std::fill(other_.begin(), other_.end(), 0.0);
            line.shift = 0.0;
            add(free_[a], 1.0, line);
            for (std::size_t b = 0; b <= a; ++b) matrix_[a * size + b] = dot(free_[b], line);
        }
        std::vector<std::size_t> at;
        for (int drop = 0; drop < most_drops; ++drop) {
            at.clear();
            for (std::size_t a = 0; a < size; ++a)
                if (!penalty_.rests(free_[a], w_[free_[a]], own_[free_[a]])) at.push_back(a);
            const std::size_t m = at.size();
            part_.resize(m * m), left_.resize(m), stiff_.resize(m), image_.resize(m);
            for (std::size_t a = 0; a < m; ++a) {
                for (std::size_t b = 0; b <= a; ++b)
                    part_[a * m + b] = matrix_[at[a] * size + at[b]];
                left_[a] = force(free_[at[a]]);
                stiff_[a] = penalty_.ridge[free_[at[a]]];
            }
            damped_solve(part_, stiff_.data(), left_, factor_, image_.data());
            x_.assign(size, 0.0);
            for (std::size_t a = 0; a < m; ++a) x_[at[a]] = image_[a];
            work_ += entries;
            if (m == 0 || go(1.0, true)) return;
            go(room(), false);
        }
    }

    void iterate(double entries, double most) {
        const std::size_t size = free_.size();
        p_.assign(size, 0.0);
        left_.resize(size);
        image_.resize(size);
        for (std::size_t a = 0; a < size; ++a) left_[a] = force(free_[a]);
        double before = 0, gained = 0;
        const double limit = work_ + std::max(most, 4.0 * entries);
        do {
            double product = 0, curve = 0;
            for (std::size_t a = 0; a < size; ++a) product += left_[a] * left_[a] / stiff(free_[a]);
            if (!(product > 0)) break;
            Shifted t{other_.data(), 0.0};
            std::fill(other_.begin(), other_.end(), 0.0);
            for (std::size_t a = 0; a < size; ++a) {
                p_[a] = left_[a] / stiff(free_[a]) + (before > 0 ? product / before * p_[a] : 0.0);
                add(free_[a], p_[a], t);
            }
            for (std::size_t a = 0; a < size; ++a) {
                image_[a] = dot(free_[a], t) + penalty_.ridge[free_[a]] * p_[a];
                curve += p_[a] * image_[a];
            }
            work_ += entries;
            if (!(curve > 0)) break;
            const double length = product / curve;
            for (std::size_t a = 0; a < size; ++a) {
                x_[a] += length * p_[a];
                left_[a] -= length * image_[a];
            }
            before = product;
            gained += length * product;
            if (length * product <= small * gained) break;
        } while (work_ < limit);
    }

    double stiff(std::int64_t j) const { return own_[j] + penalty_.ridge[j]; }

    // Goes so far, no feature beyond a kink or a bound; false, and nowhere, if that gains nothing.
    bool go(double length, bool checked) {
        const double before = checked ? value(r_, std::vector<double>(w_, w_ + a_.m)) : 0.0;
        std::copy(r_.v, r_.v + a_.n, other_.begin());
        Shifted to{other_.data(), r_.shift};
        std::vector<double> w(w_, w_ + a_.m);
        for (std::size_t a = 0; a < free_.size(); ++a) {
            const std::int64_t j = free_[a];
            if (x_[a] == 0) continue;
            w[j] = penalty_.along(w_[j], x_[a], length, j);
            add(j, w_[j] - w[j], to);
            work_ += static_cast<double>(a_.begin(j + 1) - a_.begin(j));
        }
        if (checked && !(value(to, w) < before)) return false;
        std::copy(w.begin(), w.end(), w_);
        std::copy(other_.begin(), other_.end(), r_.v);
        r_.shift = to.shift;
        return true;
    }

    // The residual is in one vector again.
    bool settle() {
        if (mass_ > 0)
            for (std::int64_t i = 0; i < a_.n; ++i) r_.v[i] += r_.shift * a_.root[i];
        r_.shift = 0;
        return true;
    }

    const SetColumns& a_;
    const SeparablePenalty& penalty_;
    double* w_;
    Shifted r_;
    std::vector<double> own_, sums_, x_, p_, left_, image_, other_, matrix_, part_, stiff_, factor_;
    std::vector<std::int64_t> free_;
    double mass_ = 0, work_ = 0, visited_ = 0, solved_ = 0;
};

}  // namespace adasdca
