// The Python face of the core: types, spans, calls. No mathematics here.
#include "bindings/bindings.hpp"

#include "duality/intercept.hpp"
#include "math/lattice.hpp"
#include "rows/dense_panels.hpp"
#include "sampling/draws.hpp"
#include "sampling/planner.hpp"
#include "sampling/step_residue.hpp"
#include "sampling/tree.hpp"

namespace {

// A function of a loss and a row, f(loss, label, k), over all rows.
template <class F>
void map(const LossHandle& h, const Vector<double>& y, const Output& out, F&& f) {
    std::visit(
        [&](const auto& loss) {
            released(1e18, [&](StopToken&) {
                for (std::size_t k = 0; k < out.size(); ++k)
                    out.data()[k] = f(loss, label(loss.margin, y.data()[k]), k);
            });
        },
        h.loss);
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
                map(h, y, out, [&](const auto& loss, Label l, std::size_t k) {
                    return loss.value(l.sign * score.data()[k], l.target);
                });
            },
            "score"_a, "y"_a, "out"_a)
        .def(
            "conjugate",
            [](const LossHandle& h, Vector<double> beta, Vector<double> y, Output out) {
                map(h, y, out, [&](const auto& loss, Label l, std::size_t k) {
                    return loss.conjugate(l.sign * beta.data()[k], l.target);
                });
            },
            "beta"_a, "y"_a, "out"_a)
        .def(
            "slope",
            [](const LossHandle& h, Vector<double> score, Vector<double> y, Output out) {
                map(h, y, out, [&](const auto& loss, Label l, std::size_t k) {
                    return -l.sign * loss.ascent(l.sign * score.data()[k], l.target);
                });
            },
            "score"_a, "y"_a, "out"_a)
        .def(
            "curvature",
            [](const LossHandle& h, Vector<double> score, Vector<double> y, Output out) {
                map(h, y, out, [&](const auto& loss, Label l, std::size_t k) {
                    return loss.curvature(l.sign * score.data()[k], l.target);
                });
            },
            "score"_a, "y"_a, "out"_a)
        .def(
            "excess",
            [](const LossHandle& h, Vector<double> beta, Vector<double> score, Vector<double> y,
               Output out) {
                map(h, y, out, [&](const auto& loss, Label l, std::size_t k) {
                    return loss.excess(l.sign * score.data()[k], l.sign * beta.data()[k], l.target);
                });
            },
            "beta"_a, "score"_a, "y"_a, "out"_a)
        .def(
            "step",
            [](const LossHandle& h, Vector<double> beta, Vector<double> score, Vector<double> y,
               Vector<double> q, Output out) {
                map(h, y, out, [&](const auto& loss, Label l, std::size_t k) {
                    return l.sign * loss.step(l.sign * beta.data()[k], l.sign * score.data()[k],
                                              l.target, q.data()[k]);
                });
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

    bind_rows(m);
    bind_classes(m);
    bind_separable(m);
    bind_files(m);
    bind_workspace(m);

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
