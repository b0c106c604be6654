// Bindings of the workspace: a problem, an iterate on it, and the kernels that work on them.
#include <string_view>

#include "bindings/workspace.hpp"
#include "duality/intercept.hpp"
#include "duality/survey.hpp"
#include "newton/line.hpp"

namespace {

StepRule step_rule(std::string_view name) {
    if (name == "step") return StepRule::step;
    if (name == "optimal") return StepRule::optimal;
    expect(name == "relaxed", "rule must be relaxed, optimal or step");
    return StepRule::relaxed;
}

std::unique_ptr<Workspace> make_workspace(const GivenRows& rows, const Vector<double>& y,
                                          const std::optional<Vector<double>>& weight,
                                          const LossHandle& loss, double lam, double ridge,
                                          double sigma, const std::optional<Vector<double>>& lower,
                                          const std::optional<Vector<double>>& upper,
                                          bool fit_intercept, bool packed,
                                          const std::optional<Vector<double>>& factors,
                                          std::optional<double> whole) {
    const std::int64_t n = rows.n, d = rows.d;
    expect(static_cast<std::int64_t>(y.size()) == n, "y must have one entry per row");
    expect(!weight || static_cast<std::int64_t>(weight->size()) == n, "weight: one entry per row");
    AnyRegularizer regularizer = Ridge{};
    if (lower && upper) {
        expect(static_cast<std::int64_t>(lower->size()) == d &&
                   static_cast<std::int64_t>(upper->size()) == d,
               "bounds must have one entry per feature");
        regularizer = ElasticBox{ridge, sigma, {}, lower->data(), upper->data()};
        if (factors) {
            expect(static_cast<std::int64_t>(factors->size()) == d,
                   "factors must have one entry per feature");
            regularizer = WeightedBox{ridge, sigma, factors->data(), lower->data(), upper->data()};
        }
    }
    double total = static_cast<double>(n);
    if (weight) {
        const nb::gil_scoped_release release;
        Sum sum;
        for (std::int64_t i = 0; i < n; ++i) sum.add(weight->data()[i]);
        total = sum.value();
    }
    if (whole) total = *whole;
    const std::int64_t nnz = std::visit(
        [&](const auto& x) {
            if constexpr (is_csr<decltype(x)>)
                return x.start[n];
            else
                return n * d;
        },
        rows.matrix);
    auto ws = std::make_unique<Workspace>(Problem{.matrix = rows.matrix,
                                                  .n = n,
                                                  .d = d,
                                                  .nnz = nnz,
                                                  .y = y.data(),
                                                  .weight = weight ? weight->data() : nullptr,
                                                  .loss = loss.loss,
                                                  .regularizer = regularizer,
                                                  .lambda = lam,
                                                  .total = total,
                                                  .fit_intercept = fit_intercept});
    ws->keep = keep_alive(rows.keep, y, weight, lower, upper, factors);
    released(1e18,
             [&](StopToken& token) { ws->iterate = make_iterate(ws->problem, packed, token); });
    return ws;
}

// Everything of an iterate that changes, field by field: f(the iterate's, the array's) copies one
// way or the other.
inline constexpr std::int64_t saved_numbers = 18;

template <class F>
void exchange(Workspace& ws, double* beta, double* features, double* numbers, F&& f) {
    Iterate& it = ws.iterate;
    const std::int64_t n = ws.problem.n, d = ws.problem.d;
    with_rows(it, [&](const auto& rows) {
        for (std::int64_t i = 0; i < n; ++i) f(rows[i].state.beta, beta[i]);
    });
    std::vector<double>* vectors[] = {&it.u, &it.w, &it.spare, &ws.average.lag};
    auto flag = [&](bool& own, double& number) {
        double told = own ? 1.0 : 0.0;
        f(told, number);
        own = told != 0;
    };
    bool summed = !it.spare.empty(), averaged = !ws.average.lag.empty();
    f(it.spare_constant, numbers[0]);
    f(it.multiplier, numbers[1]);
    f(it.constant, numbers[2]);
    f(ws.average.factor, numbers[3]);
    flag(it.summed, numbers[4]);
    flag(it.packing, numbers[5]);
    flag(it.follow, numbers[6]);
    flag(it.placed, numbers[7]);
    flag(summed, numbers[8]);
    flag(averaged, numbers[9]);
    Swings& swings = it.swings;
    double* followed[] = {&swings.pace, &swings.peak,  &swings.highest, &swings.visits,
                          &swings.seen, &swings.moved, &swings.turned,  &swings.widest};
    for (int k = 0; k < 8; ++k) f(*followed[k], numbers[10 + k]);
    it.spare.resize(static_cast<std::size_t>(summed ? d : 0));
    ws.average.lag.resize(static_cast<std::size_t>(averaged ? d : 0));
    for (int k = 0; k < 4; ++k)
        for (std::size_t j = 0; j < vectors[k]->size(); ++j)
            f((*vectors[k])[j], features[k * d + static_cast<std::int64_t>(j)]);
}

}  // namespace

void bind_workspace(nb::module_& m) {
    nb::class_<Certified>(m, "Certified", "A certificate: the value of P, and bounds.")
        .def_ro("primal", &Certified::primal)
        .def_ro("gap", &Certified::gap)
        .def_ro("rounding", &Certified::rounding)
        .def_ro("blur", &Certified::blur);
    nb::class_<Survey>(m, "Survey", "What a pass over all rows shows.")
        .def_ro("certificate", &Survey::certificate)
        .def_ro("intercept", &Survey::intercept)
        .def_ro("active", &Survey::active)
        .def_ro("moved", &Survey::moved)
        .def_ro("effective_share", &Survey::effective_share)
        .def_ro("complete", &Survey::complete);
    nb::class_<Workspace> workspace(m, "Workspace", "A problem and an iterate on it.");
    workspace
        .def_static("of", &make_workspace, "rows"_a, "y"_a, "weight"_a.none(), "loss"_a, "lam"_a,
                    "ridge"_a, "sigma"_a, "lower"_a.none(), "upper"_a.none(), "fit_intercept"_a,
                    "packed"_a = false, "factors"_a = nb::none(), "total"_a = nb::none())
        .def_prop_ro("n", [](const Workspace& ws) { return ws.problem.n; })
        .def_prop_ro("d", [](const Workspace& ws) { return ws.problem.d; })
        .def_prop_ro("packed_bytes", [](const Workspace& ws) { return ws.iterate.packed_bytes; })
        .def_prop_rw(
            "multiplier", [](const Workspace& ws) { return ws.iterate.multiplier; },
            [](Workspace& ws, double b) {
                ws.iterate.multiplier = b;
                ws.iterate.fresh = false;
            })
        .def_prop_rw(
            "constant", [](const Workspace& ws) { return ws.problem.constant; },
            [](Workspace& ws, double value) { ws.problem.constant = value; },
            "The last column, if it stands for an intercept, which is rounded when it is told.")
        .def_prop_ro("bias", [](const Workspace& ws) { return ws.iterate.bias(); })
        .def(
            "curvature",
            [](const Workspace& ws, Output out) {
                double* q = pointer(out, ws.problem.n);
                released(1e18, [&](StopToken& token) {
                    with_rows(ws.iterate, [&](const auto& rows) {
                        for (std::int64_t i = 0; i < ws.problem.n; ++i) {
                            if (i % (1 << 16) == 0 && token.stop()) return;
                            q[i] = rows[i].state.q;
                        }
                    });
                });
            },
            "out"_a,
            "Write q_i = c_i |x_i|^2 / (lambda N) in the dual norm, the constant feature included.")
        .def(
            "coef",
            [](Workspace& ws, Output out) {
                double* w = pointer(out, ws.problem.d);
                std::copy_n(ws.iterate.primal(), ws.problem.d, w);
            },
            "out"_a)
        .def(
            "set_beta",
            [](Workspace& ws, Vector<double> beta, int threads) {
                expect(static_cast<std::int64_t>(beta.size()) == ws.problem.n,
                       "beta: one entry per row");
                released(1e18, [&](StopToken& token) {
                    return set_beta(ws.iterate, beta.data(), threads, token);
                });
            },
            "beta"_a, "threads"_a)
        .def(
            "survey",
            [](Workspace& ws, std::optional<Output> score, std::optional<Output> residue,
               std::optional<Output> share, std::optional<Output> weight, Output beta,
               Output certified, Output coef, double enough, int threads, double seconds) {
                const std::int64_t n = ws.problem.n;
                const SurveyArrays out{pointer(score, n),          pointer(residue, n),
                                       pointer(share, n),          pointer(weight, n),
                                       pointer(beta, n),           pointer(certified, n),
                                       pointer(coef, ws.problem.d)};
                return released(seconds, [&](StopToken& token) {
                    return survey(ws.iterate, out, enough, threads, token);
                });
            },
            "score"_a.none(), "residue"_a.none(), "share"_a.none(), "weight"_a.none(), "beta"_a,
            "certified"_a, "coef"_a, "enough"_a, "threads"_a, "seconds"_a,
            "One pass: the certificate, and the arrays asked for; changes nothing.")
        .def(
            "certify",
            [](Workspace& ws, Vector<double> w, double intercept, Vector<double> beta,
               int threads) {
                expect(static_cast<std::int64_t>(w.size()) == ws.problem.d,
                       "w: one entry per feature");
                expect(static_cast<std::int64_t>(beta.size()) == ws.problem.n,
                       "beta: one entry per row");
                return released(1e18, [&](StopToken& token) {
                    Buffer<double> scores(static_cast<std::size_t>(ws.problem.n));
                    score(ws.iterate, w.data(), scores.data(), threads, token);
                    return certify(ws.iterate, scores.data(), intercept, w.data(), beta.data(),
                                   threads, token);
                });
            },
            "w"_a, "intercept"_a, "beta"_a, "threads"_a,
            "The certificate of a primal and a dual point.")
        .def(
            "save",
            [](Workspace& ws, Output beta, Output features, Output numbers) {
                const std::int64_t n = ws.problem.n, d = ws.problem.d;
                double *rows = pointer(beta, n), *columns = pointer(features, 4 * d),
                       *rest = pointer(numbers, saved_numbers);
                released(1e18, [&](StopToken&) {
                    exchange(ws, rows, columns, rest, [](auto& from, auto& to) { to = from; });
                });
            },
            "beta"_a, "features"_a, "numbers"_a,
            "Write all that changes during a solve, bit by bit: n, 4 d and 10 numbers.")
        .def(
            "load",
            [](Workspace& ws, Output beta, Output features, Output numbers) {
                const std::int64_t n = ws.problem.n, d = ws.problem.d;
                double *rows = pointer(beta, n), *columns = pointer(features, 4 * d),
                       *rest = pointer(numbers, saved_numbers);
                released(1e18, [&](StopToken&) {
                    exchange(ws, rows, columns, rest, [](auto& to, auto& from) { to = from; });
                    ws.iterate.fresh = false;
                });
            },
            "beta"_a, "features"_a, "numbers"_a, "Take over what `save` has written.")
        .def_prop_ro(
            "chain", [](const Workspace& ws) { return Chunks(ws.problem).chain(); },
            "The longest chain of additions in `combine`.")
        .def(
            "evidence",
            [](Workspace& ws, Vector<double> scores, Vector<double> w, double intercept,
               Vector<double> beta, int threads) {
                expect(static_cast<std::int64_t>(w.size()) == ws.problem.d,
                       "w: one entry per feature");
                expect(static_cast<std::int64_t>(scores.size()) == ws.problem.n &&
                           static_cast<std::int64_t>(beta.size()) == ws.problem.n,
                       "scores, beta: one entry per row");
                const Evidence found = released(1e18, [&](StopToken& token) {
                    const auto error = score_error(ws.problem, w.data(), intercept, false);
                    return evidence_of(ws.iterate, scores.data(), intercept, false, error,
                                       beta.data(), threads, token);
                });
                const GapSums& s = found.sums;
                const Skew& k = found.skew;
                return std::tuple(s.value, s.excess, s.slip, s.blur, s.mass, k.imbalance,
                                  k.positive, k.extent.far, k.extent.square);
            },
            "scores"_a, "w"_a, "intercept"_a, "beta"_a, "threads"_a,
            "What these rows say of a primal point, with its scores x_i.w, and a dual one: seven "
            "numbers that parts add, and two of which they take the largest.")
        .def(
            "certify_by",
            [](Workspace& ws, Vector<double> evidence, Vector<double> w, Vector<double> u,
               std::int64_t links) {
                expect(evidence.size() == 9, "evidence: nine numbers");
                expect(static_cast<std::int64_t>(w.size()) == ws.problem.d &&
                           static_cast<std::int64_t>(u.size()) == ws.problem.d,
                       "w, u: one entry per feature");
                const double* e = evidence.data();
                const GapSums sums{e[0], e[1], e[2], e[3], e[4]};
                Certified found = certified(ws.problem, sums, w.data(), u.data(), links, false);
                charge_imbalance(ws.problem, w.data(), {e[5], e[6], {e[7], e[8]}}, found);
                return found;
            },
            "evidence"_a, "w"_a, "u"_a, "links"_a,
            "The certificate of a primal and a dual point, from what all rows say of it and u, "
            "summed in chains of so many links.")
        .def(
            "pack",
            [](Workspace& ws, int threads) {
                released(1e18,
                         [&](StopToken& token) { pack_if_wanted(ws.iterate, threads, token); });
            },
            "threads"_a = 1,
            "Copy the rows into records now, if that was asked for; otherwise the first ascent "
            "does it.")
        .def(
            "ascend",
            [](Workspace& ws, Vector<std::int32_t> indices, double seconds, int threads) {
                expect(!ws.iterate.follow, "beta follows at a survey: take that first");
                return released(seconds, [&](StopToken& token) {
                    settle(ws.iterate);
                    pack_if_wanted(ws.iterate, threads, token);
                    return ascend(ws.iterate, view(indices), token);
                });
            },
            "indices"_a, "seconds"_a, "threads"_a = 1,
            "Exact coordinate steps on the rows given; returns how many. Only the copy of the "
            "rows, before the first of them, has more than one thread.")
        .def(
            "quartz",
            [](Workspace& ws, Vector<std::int32_t> indices, Vector<double> probability,
               double theta, double seconds, bool exact, int threads) {
                ws.average.lag.resize(ws.problem.d, 0.0);
                return released(seconds, [&](StopToken& token) {
                    settle(ws.iterate);
                    pack_if_wanted(ws.iterate, threads, token);
                    return quartz(ws.iterate, ws.average, view(indices), view(probability), theta,
                                  exact, token);
                });
            },
            "indices"_a, "probability"_a, "theta"_a, "seconds"_a, "exact"_a = false,
            "threads"_a = 1)
        .def(
            "show_average", [](Workspace& ws) { show_average(ws.iterate, ws.average); },
            "Let the next survey take P at QUARTZ's average.")
        .def(
            "ascend_adaptively",
            [](Workspace& ws, const char* name, std::int64_t count, std::uint64_t key,
               double seconds) {
                expect(!ws.iterate.follow, "beta follows at a survey: take that first");
                const StepRule rule = step_rule(name);
                return released(seconds, [&](StopToken& token) {
                    settle(ws.iterate);
                    if (!ws.columns) ws.columns.emplace(ws.iterate, token);
                    if (token.stopped()) {
                        ws.columns.reset();
                        return std::int64_t{0};
                    }
                    return ascend_adaptively(ws.iterate, *ws.columns, rule, count, key, token);
                });
            },
            "rule"_a, "count"_a, "key"_a, "seconds"_a)
        .def(
            "best_intercept",
            [](Workspace& ws, Vector<double> scores, double guess, int threads) {
                expect(static_cast<std::int64_t>(scores.size()) == ws.problem.n,
                       "scores: one entry per row");
                return released(1e18, [&](StopToken& token) {
                    return best_intercept(ws.problem, scores.data(), guess, threads, token);
                });
            },
            "scores"_a, "guess"_a, "threads"_a);
    bind_newton(m, workspace);
    m.def(
        "root_of_balance",
        [](const nb::object& balance, double guess) {
            return released(1e18, [&](StopToken& token) {
                auto at = [&](double b) {
                    const nb::gil_scoped_acquire gil;
                    const auto [sum, slope, mass] =
                        nb::cast<std::tuple<double, double, double>>(balance(b));
                    return Balance{sum, slope, mass};
                };
                return root_of_balance(at, guess, token);
            });
        },
        "balance"_a, "guess"_a,
        "The best intercept, from a function of it: sum c beta, minus its slope, and sum "
        "c |beta|.");
    m.def(
        "step_length",
        [](const nb::object& slope, double start, double full, double found, double before) {
            const StepLength step = step_length(
                [&](double length) {
                    const auto [value, curvature, size] =
                        nb::cast<std::tuple<double, double, double>>(slope(length));
                    return LineSlope{value, curvature, size};
                },
                start, {full, found, before});
            return std::tuple(step.length, step.sharp);
        },
        "slope"_a, "start"_a, "full"_a = Left{}.full, "found"_a = Left{}.found,
        "before"_a = Left{}.before,
        "A length at which the slope along a line is about 0, and whether it was above rounding; "
        "from a function of the length: the slope, its own, and its size.");
}
