// Bindings of the passes that Newton steps are made of.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "bindings/workspace.hpp"
#include "newton/steps.hpp"
#include "rows/products.hpp"

namespace {

void expect_rows(const Workspace& ws, const Vector<double>& x, const char* name) {
    if (static_cast<std::int64_t>(x.size()) != ws.problem.n)
        throw std::invalid_argument(std::string(name) + ": one entry per row");
}

bool truth(const nb::object& x) {  // of NumPy as well
    const int found = PyObject_IsTrue(x.ptr());
    if (found < 0) throw nb::python_error();
    return found != 0;
}

// An objective of Python, and the two functions that a caller gives beside it.
struct PythonObjective {
    nb::object self, aims, allows, looks;

    double lost() { return nb::cast<double>(self.attr("lost")()); }
    double enough() { return nb::cast<double>(allows()); }
    void keep() { self.attr("keep")(); }
    void recall() { self.attr("recall")(); }
    bool stopped() { return !looks.is_none() && truth(looks()); }
    std::optional<double> aim() { return nb::cast<std::optional<double>>(aims()); }
    std::optional<StepLength> search() {
        const auto [length, sharp] = nb::cast<std::pair<double, nb::object>>(self.attr("search")());
        return StepLength{length, truth(sharp)};
    }
    void move(double length) { self.attr("move")(length); }
};

}  // namespace

void bind_newton(nb::module_& m, nb::class_<Workspace>& workspace) {
    m.def(
        "minimise",
        [](nb::object objective, nb::object aim, nb::object enough, std::int64_t most,
           nb::object look) {
            PythonObjective f{objective, aim, enough, look};
            const NewtonCourse course = minimise(f, most);
            return std::tuple(static_cast<int>(course.ending), course.steps);
        },
        "objective"_a, "aim"_a, "enough"_a, "most"_a, "look"_a.none(),
        "Take Newton steps; return why they ended, and how many. `aim` chooses the next line and "
        "returns its slope, None if time ran out; `enough` what may be left; `look` whether to "
        "stop.");
    workspace
        .def(
            "scores",
            [](Workspace& ws, Vector<double> w, Output out, int threads, double b) {
                expect(static_cast<std::int64_t>(w.size()) == ws.problem.d,
                       "w: one entry per feature");
                double* to = pointer(out, ws.problem.n);
                released(1e18, [&](StopToken& token) {
                    return score(ws.iterate, w.data(), to, threads, token, b);
                });
            },
            "w"_a, "out"_a, "threads"_a, "b"_a = 0.0, "Write x_i.w + b.")
        .def(
            "exact_scores",
            [](Workspace& ws, Vector<double> w, double b, Output out, int threads, bool residuals) {
                expect(static_cast<std::int64_t>(w.size()) == ws.problem.d,
                       "w: one entry per feature");
                double* to = pointer(out, ws.problem.n);
                released(1e18, [&](StopToken& token) {
                    return score_exactly(ws.iterate, w.data(), b, to, threads, token,
                                         residuals ? ws.problem.y : nullptr);
                });
            },
            "w"_a, "b"_a, "out"_a, "threads"_a, "residuals"_a = false,
            "Write x_i.w + b, less y_i if residuals are asked for, summed in twice the digits.")
        .def(
            "derive",
            [](Workspace& ws, Vector<double> scores, double length,
               std::optional<Vector<double>> centre, Output beta, Output curvature,
               std::optional<Output> u, int threads, bool residuals) {
                const std::int64_t n = ws.problem.n;
                expect_rows(ws, scores, "scores");
                if (centre) expect_rows(ws, *centre, "centre");
                double *to_beta = pointer(beta, n), *to_curvature = pointer(curvature, n),
                       *to_u = pointer(u, ws.problem.d);
                const Derivatives sums = released(1e18, [&](StopToken& token) {
                    const Derivatives found =
                        derive(ws.problem, {length, centre ? centre->data() : nullptr, residuals},
                               scores.data(), to_beta, to_curvature, threads, token);
                    if (to_u) combine(ws.iterate, to_beta, to_u, threads, token);
                    return found;
                });
                return std::tuple(sums.balance, sums.mass, sums.away, sums.reach,
                                  static_cast<std::int64_t>(sums.curved));
            },
            "scores"_a, "length"_a, "centre"_a.none(), "beta"_a, "curvature"_a, "u"_a.none(),
            "threads"_a, "residuals"_a = false,
            "Write -phi' and c phi'' at the scores, or at scores less y, kinks rounded over a "
            "length about a centre, and the u of these duals if it is asked for; return the sums "
            "of c beta, of c phi'' and of |t - z|, the largest |score|, and the number of rows "
            "with curvature.")
        .def(
            "slope_along",
            [](Workspace& ws, Vector<double> scores, Vector<double> change, double step,
               double length, std::optional<Vector<double>> centre, int threads, bool residuals) {
                expect_rows(ws, scores, "scores");
                expect_rows(ws, change, "change");
                if (centre) expect_rows(ws, *centre, "centre");
                const LineSlope sums = released(1e18, [&](StopToken& token) {
                    return slope_along(ws.problem,
                                       {length, centre ? centre->data() : nullptr, residuals},
                                       scores.data(), change.data(), step, threads, token);
                });
                return std::tuple(sums.slope, sums.curvature, sums.size);
            },
            "scores"_a, "change"_a, "step"_a, "length"_a, "centre"_a.none(), "threads"_a,
            "residuals"_a = false,
            "The derivative of sum c phi along scores + step change, its own, and its size.")
        .def(
            "search_along",
            [](Workspace& ws, Vector<double> scores, Vector<double> change, double length,
               std::optional<Vector<double>> centre, double reach, double mass,
               std::tuple<double, double, double> rest, double start, int threads, bool residuals) {
                expect_rows(ws, scores, "scores");
                expect_rows(ws, change, "change");
                if (centre) expect_rows(ws, *centre, "centre");
                const StraightSlope more{std::get<0>(rest), std::get<1>(rest), std::get<2>(rest)};
                const StepLength found = released(1e18, [&](StopToken& token) {
                    return search_along(
                        ws.problem, {length, centre ? centre->data() : nullptr, residuals},
                        scores.data(), change.data(), reach, mass, more, start, threads, token);
                });
                return std::tuple(found.length, found.sharp);
            },
            "scores"_a, "change"_a, "length"_a, "centre"_a.none(), "reach"_a, "mass"_a, "rest"_a,
            "start"_a, "threads"_a, "residuals"_a = false,
            "The length of a step along scores + length change, and whether its slope was above "
            "rounding; `rest` is the slope at 0 of what is not the rows', its own, and its size.")
        .def(
            "newton_steps",
            [](Workspace& ws, std::tuple<Output, Output, Output, Output, Output> arrays, double b,
               double value, double length, std::optional<Vector<double>> centre,
               Vector<double> stiff, std::optional<Vector<double>> fixed, double held,
               std::optional<Vector<double>> middle, std::tuple<double, double, bool, bool> more,
               std::tuple<double, double, std::int64_t> goal,
               std::optional<std::tuple<double, double, double, double,
                                        std::vector<std::pair<std::int64_t, double>>>>
                   rounds,
               int threads, double seconds) {
                const std::int64_t n = ws.problem.n, d = ws.problem.d;
                auto per_feature = [&](const auto& x) {
                    return static_cast<std::int64_t>(x.size()) == d;
                };
                if (centre) expect_rows(ws, *centre, "centre");
                expect(per_feature(stiff), "stiff: one entry per feature");
                expect(!fixed || per_feature(*fixed), "fixed: one entry per feature");
                expect(!middle || per_feature(*middle), "middle: one entry per feature");
                const auto& [v, u, scores, beta, curvature] = arrays;
                NewtonPoint point{pointer(v, d),
                                  pointer(scores, n),
                                  pointer(beta, n),
                                  pointer(curvature, n),
                                  pointer(u, d),
                                  b,
                                  value};
                const NewtonTerms terms{{length, centre ? centre->data() : nullptr},
                                        stiff.data(),
                                        fixed ? fixed->data() : nullptr,
                                        held,
                                        middle ? middle->data() : nullptr,
                                        std::get<0>(more),
                                        std::get<2>(more),
                                        std::get<3>(more),
                                        std::get<1>(more)};
                std::int64_t taken = 0;
                const NewtonCourse course = released(seconds, [&](StopToken& token) {
                    if (!ws.gram_columns) ws.gram_columns.emplace(ws.iterate);
                    NewtonSteps newton(ws.iterate, *ws.gram_columns, terms, point, threads, token);
                    const auto [enough, share, most] = goal;
                    NewtonCourse found;
                    if (rounds) {
                        const RoundRule rule{std::get<0>(*rounds), std::get<1>(*rounds),
                                             std::get<2>(*rounds), std::get<3>(*rounds),
                                             std::get<4>(*rounds)};
                        found = newton.run_rounds(enough, most, rule, taken);
                    } else {
                        found = newton.run(enough, share, most);
                        taken = found.steps;
                    }
                    length = newton.length();
                    return found;
                });
                const Derivatives& sums = point.sums;
                return std::tuple(static_cast<int>(course.ending), std::tuple(course.steps, taken),
                                  length, point.b, point.value,
                                  std::tuple(sums.balance, sums.mass, sums.away, sums.reach,
                                             static_cast<std::int64_t>(sums.curved)));
            },
            "arrays"_a, "b"_a, "value"_a, "length"_a, "centre"_a.none(), "stiff"_a,
            "fixed"_a.none(), "held"_a, "middle"_a.none(), "more"_a, "goal"_a, "rounds"_a.none(),
            "threads"_a, "seconds"_a,
            "Take Newton steps from a point with its u, scores, duals and curvature, which they "
            "write; return why they ended, how many in the last round and in all, the length that "
            "kinks are rounded over there, b, the value, and sums as `derive` does. "
            "`more`: mu, the mass that is none, intercept, rounded; `goal`: what may be left, the "
            "share of the value, and the most steps; `rounds`, where rounds are to follow each "
            "other: the gap, the relative one to reach, the share of it that a round may leave, "
            "the least length, and factors of it by the steps of a round.")
        .def(
            "combine",
            [](Workspace& ws, Vector<double> beta, Output u, int threads) {
                expect_rows(ws, beta, "beta");
                double* to = pointer(u, ws.problem.d);
                released(1e18, [&](StopToken& token) {
                    return combine(ws.iterate, beta.data(), to, threads, token);
                });
            },
            "beta"_a, "u"_a, "threads"_a, "Write u = sum_i scale_i beta_i x_i.")
        .def(
            "curve",
            [](Workspace& ws, Vector<double> h, Vector<double> p, double q, Output out,
               int threads) {
                expect_rows(ws, h, "h");
                expect(static_cast<std::int64_t>(p.size()) == ws.problem.d,
                       "p: one entry per feature");
                double* to = pointer(out, ws.problem.d);
                return released(1e18, [&](StopToken& token) {
                    return curve(ws.iterate, h.data(), p.data(), q, to, threads, token);
                });
            },
            "h"_a, "p"_a, "q"_a, "out"_a, "threads"_a,
            "Write sum_i h_i (x_i.p + q) x_i, and return the sum of the coefficients.")
        .def(
            "squares",
            [](Workspace& ws, Vector<double> h, Output out, int threads) {
                expect_rows(ws, h, "h");
                double* to = pointer(out, ws.problem.d);
                released(1e18, [&](StopToken& token) {
                    return sum_squares(ws.iterate, h.data(), to, threads, token);
                });
            },
            "h"_a, "out"_a, "threads"_a, "Write sum_i h_i x_ij^2 for every feature.")
        .def(
            "combine_exactly",
            [](Workspace& ws, Vector<double> beta, Output u, int threads) {
                expect_rows(ws, beta, "beta");
                double* to = pointer(u, ws.problem.d);
                return released(1e18, [&](StopToken& token) {
                    combine_exactly(ws.iterate, beta.data(), to, threads, token);
                    return imbalance(ws.problem, beta.data());
                });
            },
            "beta"_a, "u"_a, "threads"_a,
            "Write u, summed in twice the digits; return sum_i c_i beta_i.")
        .def(
            "gram",
            [](Workspace& ws, Vector<double> h, Grid<double> f,
               std::optional<Vector<double>> centre, Square out, Square side, int threads,
               double seconds) {
                const std::int64_t n = ws.problem.n, d = ws.problem.d;
                auto shaped = [](const auto& a, std::int64_t lines, std::int64_t columns) {
                    return static_cast<std::int64_t>(a.shape(0)) == lines &&
                           static_cast<std::int64_t>(a.shape(1)) == columns;
                };
                const auto factors = static_cast<std::int64_t>(f.shape(0));
                expect(static_cast<std::int64_t>(h.size()) == n, "h: one entry per row");
                expect(shaped(f, factors, n), "f: one column per row");
                expect(shaped(out, d, d), "out must be d x d");
                expect(shaped(side, factors, d), "side: d sums for every line of f");
                expect(!centre || static_cast<std::int64_t>(centre->size()) == d,
                       "centre: one entry per feature");
                expect(!centre || is_dense(ws.iterate), "centre: for dense rows only");
                return released(seconds, [&](StopToken& token) {
                    if (!ws.gram_columns) ws.gram_columns.emplace(ws.iterate);
                    const GramTerms terms{h.data(), f.data(), n, factors,
                                          centre ? centre->data() : nullptr};
                    return gram(ws.iterate, *ws.gram_columns, terms, out.data(), side.data(),
                                threads, token);
                });
            },
            "h"_a, "f"_a, "centre"_a.none(), "out"_a, "side"_a, "threads"_a, "seconds"_a,
            "Write the lower triangle of sum_i h_i x_i x_i^T, and sum_i h_i f_i x_i for lines f; "
            "of dense rows less a centre, if one is given.")
        .def(
            "products",
            [](Workspace& ws, Vector<std::int64_t> rows, std::int64_t first,
               std::optional<Vector<double>> factors, Square out, int threads, double seconds) {
                expect(out.shape(0) == rows.size() && out.shape(0) == out.shape(1),
                       "out: one line and column per row chosen");
                expect(first >= 0 && first <= static_cast<std::int64_t>(rows.size()),
                       "first must be a line of out");
                expect(!factors || static_cast<std::int64_t>(factors->size()) == ws.problem.d,
                       "factors: one entry per feature");
                for (const auto i : view(rows))
                    expect(i >= 0 && i < ws.problem.n, "rows must lie in [0, n)");
                return released(seconds, [&](StopToken& token) {
                    return write_products(ws.iterate, view(rows), first,
                                          factors ? factors->data() : nullptr, out.data(), threads,
                                          token);
                });
            },
            "rows"_a, "first"_a, "factors"_a.none(), "out"_a, "threads"_a, "seconds"_a,
            "Write the inner products of rows, features weighted by factors if given, the lower "
            "triangle from line `first` on.")
        .def(
            "place",
            [](Workspace& ws, Vector<double> beta, Vector<double> w, double multiplier) {
                expect_rows(ws, beta, "beta");
                expect(static_cast<std::int64_t>(w.size()) == ws.problem.d,
                       "w: one entry per feature");
                released(1e18,
                         [&](StopToken&) { place(ws.iterate, beta.data(), w.data(), multiplier); });
            },
            "beta"_a, "w"_a, "multiplier"_a,
            "Take over beta, and for the next survey any w and intercept at all.")
        .def(
            "place_primal",
            [](Workspace& ws, Vector<double> w, double multiplier) {
                expect(static_cast<std::int64_t>(w.size()) == ws.problem.d,
                       "w: one entry per feature");
                place_primal(ws.iterate, w.data(), multiplier);
            },
            "w"_a, "multiplier"_a, "Take over w and b; beta follows at the next survey.");
}
