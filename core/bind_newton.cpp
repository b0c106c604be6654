// Bindings of the passes that Newton steps are made of.
#include "newton.hpp"
#include "products.hpp"
#include "workspace.hpp"

void bind_newton(nb::class_<Workspace>& workspace) {
    workspace
        .def(
            "scores",
            [](Workspace& ws, Vector<double> w, Output out, int threads) {
                expect(static_cast<std::int64_t>(w.size()) == ws.problem.d,
                       "w: one entry per feature");
                double* to = pointer(out, ws.problem.n);
                released(1e18, [&](Pulse& pulse) {
                    return score(ws.iterate, w.data(), to, threads, pulse);
                });
            },
            "w"_a, "out"_a, "threads"_a, "Write x_i.w.")
        .def(
            "assess",
            [](Workspace& ws, Vector<double> scores, double intercept, Output beta,
               Output curvature, int threads) {
                expect(static_cast<std::int64_t>(scores.size()) == ws.problem.n,
                       "scores: one entry per row");
                double* to_beta = pointer(beta, ws.problem.n);
                double* to_curvature = pointer(curvature, ws.problem.n);
                const Assessment a = released(1e18, [&](Pulse& pulse) {
                    return assess(ws.problem, scores.data(), intercept, to_beta, to_curvature,
                                  threads, pulse);
                });
                return std::tuple(a.value, a.conjugate, a.balance);
            },
            "scores"_a, "intercept"_a, "beta"_a, "curvature"_a, "threads"_a,
            "Write -phi' and c phi'' at the scores; return the means of phi, phi* and c beta.")
        .def(
            "combine",
            [](Workspace& ws, Vector<double> beta, Output u, int threads) {
                expect(static_cast<std::int64_t>(beta.size()) == ws.problem.n,
                       "beta: one entry per row");
                double* to = pointer(u, ws.problem.d);
                released(1e18, [&](Pulse& pulse) {
                    return combine(ws.iterate, beta.data(), to, threads, pulse);
                });
            },
            "beta"_a, "u"_a, "threads"_a, "Write u = sum_i scale_i beta_i x_i.")
        .def(
            "gram",
            [](Workspace& ws, Vector<double> h, Grid<double> f, Square out, Square side,
               int threads, double seconds) {
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
                return released(seconds, [&](Pulse& pulse) {
                    if (!ws.gram_columns) ws.gram_columns.emplace(ws.iterate);
                    return gram(ws.iterate, *ws.gram_columns, {h.data(), f.data(), n, factors},
                                out.data(), side.data(), threads, pulse);
                });
            },
            "h"_a, "f"_a, "out"_a, "side"_a, "threads"_a, "seconds"_a,
            "Write the lower triangle of sum_i h_i x_i x_i^T, and sum_i h_i f_i x_i for lines f.")
        .def(
            "products",
            [](Workspace& ws, Vector<std::int64_t> rows, std::int64_t first, Square out,
               int threads, double seconds) {
                expect(out.shape(0) == rows.size() && out.shape(0) == out.shape(1),
                       "out: one line and column per row chosen");
                expect(first >= 0 && first <= static_cast<std::int64_t>(rows.size()),
                       "first must be a line of out");
                for (const auto i : view(rows))
                    expect(i >= 0 && i < ws.problem.n, "rows must lie in [0, n)");
                return released(seconds, [&](Pulse& pulse) {
                    return write_products(ws.iterate, view(rows), first, out.data(), threads,
                                          pulse);
                });
            },
            "rows"_a, "first"_a, "out"_a, "threads"_a, "seconds"_a,
            "Write the inner products of rows, the lower triangle from line `first` on.")
        .def(
            "descend_model",
            [](Workspace& ws, Square gram, Vector<double> r, Vector<double> w, double mu,
               Output x) {
                const std::int64_t d = ws.problem.d;
                expect(static_cast<std::int64_t>(gram.shape(0)) == d &&
                           gram.shape(0) == gram.shape(1) &&
                           static_cast<std::int64_t>(r.size()) == d &&
                           static_cast<std::int64_t>(w.size()) == d,
                       "gram, r and w must be of size d");
                double* to = pointer(x, d);
                std::visit(
                    [&](const auto& g) {
                        descend_model(gram.data(), r.data(), w.data(), d, mu, g, to);
                    },
                    ws.problem.regularizer);
            },
            "gram"_a, "r"_a, "w"_a, "mu"_a, "x"_a,
            "Minimise the Newton model under the regulariser.")
        .def(
            "penalty",
            [](Workspace& ws, Vector<double> w) {
                expect(static_cast<std::int64_t>(w.size()) == ws.problem.d,
                       "w: one entry per feature");
                return ws.problem.lambda *
                       std::visit(
                           [&](const auto& g) {
                               return regularizer_value(g, w.data(), ws.problem.d);
                           },
                           ws.problem.regularizer);
            },
            "w"_a, "lambda g(w)")
        .def(
            "penalty_conjugate",
            [](Workspace& ws, Vector<double> u) {
                expect(static_cast<std::int64_t>(u.size()) == ws.problem.d,
                       "u: one entry per feature");
                return ws.problem.lambda *
                       std::visit(
                           [&](const auto& g) {
                               return regularizer_conjugate(g, u.data(), ws.problem.d);
                           },
                           ws.problem.regularizer);
            },
            "u"_a, "lambda g*(u)")
        .def(
            "place",
            [](Workspace& ws, Vector<double> beta, Vector<double> u, double multiplier) {
                expect(static_cast<std::int64_t>(beta.size()) == ws.problem.n,
                       "beta: one entry per row");
                expect(static_cast<std::int64_t>(u.size()) == ws.problem.d,
                       "u: one entry per feature");
                place(ws.iterate, beta.data(), u.data(), multiplier);
            },
            "beta"_a, "u"_a, "multiplier"_a,
            "Take over beta, and for the next survey's primal any u at all.")
        .def(
            "place_primal",
            [](Workspace& ws, Vector<double> u, double multiplier) {
                expect(static_cast<std::int64_t>(u.size()) == ws.problem.d,
                       "u: one entry per feature");
                place_primal(ws.iterate, u.data(), multiplier);
            },
            "u"_a, "multiplier"_a,
            "Take over a w as any u that maps to it; beta follows at the next survey.");
}
