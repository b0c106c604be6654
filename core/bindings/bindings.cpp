// The Python face of the core: types, spans, calls. No mathematics here.
#include "bindings/bindings.hpp"

#include "duality/intercept.hpp"
#include "math/lattice.hpp"
#include "rows/dense_panels.hpp"
#include "rows/inspection.hpp"
#include "rows/lengths.hpp"
#include "sampling/draws.hpp"
#include "sampling/planner.hpp"
#include "sampling/step_residue.hpp"
#include "sampling/tree.hpp"

namespace {

// One of a loss's scalar functions over arrays.
template <class F>
void map(const Output& out, F&& f) {
    released(1e18, [&](StopToken&) {
        for (std::size_t k = 0; k < out.size(); ++k) out.data()[k] = f(k);
    });
}

template <class T, class Index>
void bind_inspect(nb::module_& m) {
    m.def(
        "inspect_csr",
        [](Vector<T> values, Vector<Index> columns, Vector<std::int64_t> start, std::int64_t d) {
            return released(1e18, [&](StopToken&) {
                const auto r = inspect(view(values), view(columns), view(start), d);
                return std::tuple(r.in_range, r.finite, r.canonical);
            });
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "start"_a, "d"_a,
        "Whether a CSR matrix is in range, finite, and sorted without duplicates.");
    m.def(
        "sort_csr",
        [](Vector<T> values, Vector<Index> columns, Vector<std::int64_t> start, std::int64_t d) {
            const auto count = static_cast<std::size_t>(start.data()[start.size() - 1]);
            expect(count <= values.size() && count <= columns.size(), "start: too many entries");
            Buffer<T> sorted(count);
            Buffer<Index> order(count);
            released(1e18, [&](StopToken&) {
                sort_rows(view(values), view(columns), view(start), d, sorted.data(), order.data());
            });
            // Of any kind to type checkers, for whom arrays of all kinds are alike.
            return nb::typed<nb::tuple, nb::any, nb::any>(
                nb::make_tuple(own(std::move(sorted)), own(std::move(order))));
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "start"_a, "d"_a,
        "The values and columns of a CSR matrix that is in range, the columns of a row sorted.");
}

constexpr const char* squares_doc = "Write |x|^2 and |x - m|^2 for every row, m the centre.";

template <class T>
void bind_dense_looks(nb::module_& m) {
    m.def(
        "inspect_dense",
        [](Grid<T> x) {
            return released(
                1e18, [&](StopToken&) { return inspect(std::span<const T>{x.data(), x.size()}); });
        },
        "x"_a.noconvert(), "Whether all entries are finite.");
    m.def(
        "squares_about",
        [](Grid<T> x, Vector<double> centre, Output squares, Output apart) {
            const auto n = static_cast<std::int64_t>(x.shape(0)),
                       d = static_cast<std::int64_t>(x.shape(1));
            expect(static_cast<std::int64_t>(centre.size()) == d, "centre: one entry per feature");
            double *to = pointer(squares, n), *away = pointer(apart, n);
            released(1e18, [&](StopToken& token) {
                return squares_about(DenseMatrix<T>{x.data(), n, d}, centre.data(), to, away,
                                     token);
            });
        },
        "x"_a.noconvert(), "centre"_a, "squares"_a, "apart"_a, squares_doc);
    m.def(
        "scores_about",
        [](Grid<T> x, Vector<double> centre, Vector<double> w, double b, Output scores) {
            const auto n = static_cast<std::int64_t>(x.shape(0)),
                       d = static_cast<std::int64_t>(x.shape(1));
            expect(static_cast<std::int64_t>(centre.size()) == d, "centre: one entry per feature");
            expect(static_cast<std::int64_t>(w.size()) == d, "w: one entry per feature");
            double* to = pointer(scores, n);
            return released(1e18, [&](StopToken& token) {
                return scores_about(DenseMatrix<T>{x.data(), n, d}, centre.data(), w.data(), b, to,
                                    token);
            });
        },
        "x"_a.noconvert(), "centre"_a, "w"_a, "b"_a, "scores"_a,
        "Write x_i.w + b; return the largest |x_i - centre|^2.");
}

template <class T, class Index>
void bind_squares(nb::module_& m) {
    m.def(
        "squares_about",
        [](Vector<T> values, Vector<Index> columns, Vector<std::int64_t> start,
           Vector<double> centre, Output squares, Output apart) {
            const auto n = static_cast<std::int64_t>(start.size()) - 1,
                       d = static_cast<std::int64_t>(centre.size());
            double *to = pointer(squares, n), *away = pointer(apart, n);
            const CsrMatrix<T, Index> x{values.data(), columns.data(), start.data(), n, d};
            released(1e18, [&](StopToken& token) {
                return squares_about(x, centre.data(), to, away, token);
            });
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "start"_a, "centre"_a, "squares"_a,
        "apart"_a, squares_doc);
}

}  // namespace

NB_MODULE(ADASDCA_MODULE, m) {
    m.doc() = "Kernels of adasdca.";
#ifndef ADASDCA_WATCHED
    // A daemon thread outlives the interpreter, and all that it sees with it: users who have one
    // would be told of lost references, of which there are none.
    nb::set_leak_warnings(false);
#endif
    m.attr("_interface") = interface_digest();

    nb::class_<LossHandle>(m, "Loss", "A loss as the kernels know it.")
        .def_static(
            "piecewise_quadratic",
            [](bool margin, double gamma, double epsilon, double lower, double upper) {
                return LossHandle{PiecewiseQuadratic{margin, gamma, epsilon, lower, upper}};
            },
            "margin"_a, "gamma"_a, "epsilon"_a, "lower"_a, "upper"_a)
        .def_static("logistic", [] { return LossHandle{Logistic{}}; })
        .def(
            "value",
            [](const LossHandle& h, Vector<double> score, Vector<double> y, Output out) {
                std::visit(
                    [&](const auto& loss) {
                        map(out, [&](std::size_t k) {
                            const Label l = label(loss.margin, y.data()[k]);
                            return loss.value(l.sign * score.data()[k], l.target);
                        });
                    },
                    h.loss);
            },
            "score"_a, "y"_a, "out"_a)
        .def(
            "conjugate",
            [](const LossHandle& h, Vector<double> beta, Vector<double> y, Output out) {
                std::visit(
                    [&](const auto& loss) {
                        map(out, [&](std::size_t k) {
                            const Label l = label(loss.margin, y.data()[k]);
                            return loss.conjugate(l.sign * beta.data()[k], l.target);
                        });
                    },
                    h.loss);
            },
            "beta"_a, "y"_a, "out"_a)
        .def(
            "slope",
            [](const LossHandle& h, Vector<double> score, Vector<double> y, Output out) {
                std::visit(
                    [&](const auto& loss) {
                        map(out, [&](std::size_t k) {
                            const Label l = label(loss.margin, y.data()[k]);
                            return -l.sign * loss.ascent(l.sign * score.data()[k], l.target);
                        });
                    },
                    h.loss);
            },
            "score"_a, "y"_a, "out"_a)
        .def(
            "curvature",
            [](const LossHandle& h, Vector<double> score, Vector<double> y, Output out) {
                std::visit(
                    [&](const auto& loss) {
                        map(out, [&](std::size_t k) {
                            const Label l = label(loss.margin, y.data()[k]);
                            return loss.curvature(l.sign * score.data()[k], l.target);
                        });
                    },
                    h.loss);
            },
            "score"_a, "y"_a, "out"_a)
        .def(
            "excess",
            [](const LossHandle& h, Vector<double> beta, Vector<double> score, Vector<double> y,
               Output out) {
                std::visit(
                    [&](const auto& loss) {
                        map(out, [&](std::size_t k) {
                            const Label l = label(loss.margin, y.data()[k]);
                            return loss.excess(l.sign * score.data()[k], l.sign * beta.data()[k],
                                               l.target);
                        });
                    },
                    h.loss);
            },
            "beta"_a, "score"_a, "y"_a, "out"_a)
        .def(
            "step",
            [](const LossHandle& h, Vector<double> beta, Vector<double> score, Vector<double> y,
               Vector<double> q, Output out) {
                std::visit(
                    [&](const auto& loss) {
                        map(out, [&](std::size_t k) {
                            const Label l = label(loss.margin, y.data()[k]);
                            return l.sign * loss.step(l.sign * beta.data()[k],
                                                      l.sign * score.data()[k], l.target,
                                                      q.data()[k]);
                        });
                    },
                    h.loss);
            },
            "beta"_a, "score"_a, "y"_a, "q"_a, "out"_a)
        .def(
            "step_weights",
            [](const LossHandle& h, Vector<double> beta, Vector<double> score, double bias,
               Vector<double> y, Vector<double> q, std::optional<Vector<double>> weight,
               Output out) {
                const StepRows rows{view(beta),
                                    view(score),
                                    view(y),
                                    view(q),
                                    weight ? view(*weight) : std::span<const double>{},
                                    bias};
                released(1e18, [&](StopToken&) { step_weights(h.loss, rows, out.data()); });
            },
            "beta"_a, "score"_a, "bias"_a, "y"_a, "q"_a, "weight"_a.none(), "out"_a,
            "Weights of the rows by the gains of their exact steps.")
        .def(
            "balance",
            [](const LossHandle& h, Vector<double> scores, Vector<double> y,
               std::optional<Vector<double>> weight, double b) {
                expect(scores.size() == y.size() && (!weight || weight->size() == y.size()),
                       "scores, y, weight: one entry per row");
                const Problem rows{.n = static_cast<std::int64_t>(y.size()),
                                   .y = y.data(),
                                   .weight = weight ? weight->data() : nullptr,
                                   .loss = h.loss};
                const Balance found = released(1e18, [&](StopToken& token) {
                    return balance(rows, scores.data(), b, 1, token);
                });
                return std::tuple(found.sum, found.slope, found.mass);
            },
            "scores"_a, "y"_a, "weight"_a.none(), "b"_a,
            "The sums of c beta, of c phi'' and of c |beta|, beta = -phi' at the scores plus b.");

    bind_classes(m);
    bind_separable(m);
    bind_files(m);
    bind_workspace(m);
    bind_inspect<float, std::int32_t>(m);
    bind_inspect<float, std::int64_t>(m);
    bind_inspect<double, std::int32_t>(m);
    bind_inspect<double, std::int64_t>(m);
    bind_dense_looks<float>(m);
    bind_dense_looks<double>(m);
    bind_squares<float, std::int32_t>(m);
    bind_squares<float, std::int64_t>(m);
    bind_squares<double, std::int32_t>(m);
    bind_squares<double, std::int64_t>(m);

    m.def(
        "vector", [](std::int64_t n) { return own(Buffer<double>(static_cast<std::size_t>(n))); },
        "n"_a, "An array of n doubles, not initialised, in memory that earlier ones have left.");
    m.def(
        "set_thread_work", [](double nanoseconds) { thread_work = nanoseconds; }, "nanoseconds"_a,
        "Start a thread for so much work; 1e6 unless told.");
    nb::exception<Expired>(m, "Expired", PyExc_BaseException);
    nb::class_<Wish>(m, "Wish", "A wish to stop, for the kernels of those threads that heed it.")
        .def(nb::init<>())
        .def("make", [](Wish& wish) { *wish.made = true; })
        .def_prop_ro("made", [](const Wish& wish) { return wish.made->load(); });
    m.def(
        "heed",
        [](const Wish* wish, double seconds) {
            heeded = {};
            if (wish) heeded.wish = wish->made;
            if (seconds < 1e9)
                heeded.deadline = StopToken::Clock::now() +
                                  std::chrono::duration_cast<StopToken::Clock::duration>(
                                      std::chrono::duration<double>(seconds));
        },
        "wish"_a.none(), "seconds"_a = 1e18,
        "From now on every kernel of this thread is left by KeyboardInterrupt once the wish is "
        "made, and by Expired after so many seconds; None: by neither.");
    m.def("check", &raise_if_stopped, "Stop here if a kernel would.");
    m.def(
        "reduce_pairs",
        [](Square basis, Square made) {
            const auto count = static_cast<std::int64_t>(basis.shape(0));
            expect(made.shape(0) == basis.shape(0) && made.shape(1) == basis.shape(0),
                   "made: a row and a column per vector");
            released(1e18, [&](StopToken&) {
                reduce_pairs(basis.data(), made.data(), count,
                             static_cast<std::int64_t>(basis.shape(1)));
            });
        },
        "basis"_a, "made"_a,
        "Shorten the rows of a basis by each other; `made` follows, combinations of the given "
        "ones.");
    m.def(
        "gram_pairs",
        [](Vector<double> shares, double squares, std::int64_t d) {
            return PanelChoice(view(shares), squares, d).time / PanelChoice::pair;
        },
        "shares"_a, "squares"_a, "d"_a,
        "What a sparse row of a Gram matrix costs, in pairs of entries: of the shares of the rows "
        "that have a column, falling, and the mean square of a row's number of entries.");
    m.def("subkey", &subkey, "key"_a, "index"_a, "The key of a sub-stream of random numbers.");
    nb::class_<Planner>(m, "Planner", "Draws plans, and keeps its buffers from one to the next.")
        .def(nb::init<>())
        .def(
            "plan",
            [](Planner& planner, Vector<double> weight, double m, std::int64_t count,
               std::uint64_t key) {
                return own(released(1e18, [&](StopToken& token) {
                    return planner.plan(view(weight), m, count, key, token);
                }));
            },
            "weight"_a, "m"_a, "count"_a, "key"_a,
            "Draw Algorithm 2's indices as an ordered set of rings.");
    m.def(
        "draw_tree",
        [](Vector<double> weight, double m, std::int64_t count, std::uint64_t key, double seconds) {
            return own(released(seconds, [&](StopToken& token) {
                return draw_tree(view(weight), m, count, key, token);
            }));
        },
        "weight"_a, "m"_a, "count"_a, "key"_a, "seconds"_a = 1e18,
        "Draw Algorithm 2's indices one by one from a tree of sums; fewer if time runs out.");
    m.def(
        "draw_uniform",
        [](std::int64_t n, std::int64_t count, std::uint64_t key) {
            return own(released(1e18, [&](StopToken&) { return draw_uniform(n, count, key); }));
        },
        "n"_a, "count"_a, "key"_a);
    m.def(
        "draw_permutation",
        [](std::int64_t n, std::uint64_t key) {
            return own(released(1e18, [&](StopToken&) { return draw_permutation(n, key); }));
        },
        "n"_a, "key"_a);
    nb::class_<AliasTable>(m, "AliasTable", "Draws from a fixed distribution, O(1) each.")
        .def(
            "__init__",
            [](AliasTable* t, Vector<double> weight) {
                // Only what is whole is left to Python.
                new (t) AliasTable(
                    released(1e18, [&](StopToken&) { return AliasTable(view(weight)); }));
            },
            "weight"_a)
        .def(
            "draw",
            [](const AliasTable& table, std::int64_t count, std::uint64_t key) {
                return own(released(1e18, [&](StopToken&) { return table.draw(count, key); }));
            },
            "count"_a, "key"_a);
}
