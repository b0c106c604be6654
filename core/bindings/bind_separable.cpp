// Bindings of squared losses with a separable penalty: by the matrix of few features, by columns.
#include "bindings/bindings.hpp"
#include "newton/column_descent.hpp"

void bind_separable(nb::module_& m) {
    m.def(
        "minimise_separable",
        [](Square matrix, Vector<double> ridge, Vector<double> kink, Vector<double> lower,
           Vector<double> upper, Output w, Output slope, double enough, double seconds) {
            const auto d = static_cast<std::int64_t>(w.size());
            const auto size = w.size();
            expect(matrix.shape(0) == size && matrix.shape(1) == size && ridge.size() == size &&
                       kink.size() == size && lower.size() == size && upper.size() == size &&
                       slope.size() == size,
                   "matrix, ridge, kink, lower, upper, slope: one line per feature");
            const SeparablePenalty f{ridge.data(), kink.data(), lower.data(), upper.data()};
            return released(seconds, [&](StopToken& token) {
                minimise_separable(d, matrix.data(), f, w.data(), slope.data(), enough, token);
                return !token.stopped();
            });
        },
        "matrix"_a, "ridge"_a, "kink"_a, "lower"_a, "upper"_a, "w"_a, "slope"_a, "enough"_a,
        "seconds"_a,
        "Minimise w.Mw/2 - r.w + sum (ridge w^2/2 + kink |w|) between bounds, from w and r - Mw.");
    m.def(
        "descend_columns",
        [](Vector<double> values, std::optional<Vector<std::int64_t>> start,
           std::optional<Vector<std::int32_t>> rows, std::optional<Vector<double>> root,
           Vector<double> ridge, Vector<double> kink, Vector<double> lower, Vector<double> upper,
           Output w, Output residual, double enough, double most, double seconds) {
            const auto size = w.size(), n = residual.size();
            expect(ridge.size() == size && kink.size() == size && lower.size() == size &&
                       upper.size() == size && (!root || root->size() == n),
                   "ridge, kink, lower, upper, root: one number per feature, and per row");
            expect(start ? rows && start->size() == size + 1 && rows->size() == values.size() &&
                               (*start)(size) == static_cast<std::int64_t>(values.size())
                         : values.size() == n * size,
                   "values, start, rows: the columns of all features");
            const SetColumns columns{static_cast<std::int64_t>(n),
                                     static_cast<std::int64_t>(size),
                                     values.data(),
                                     start ? start->data() : nullptr,
                                     rows ? rows->data() : nullptr,
                                     root ? root->data() : nullptr};
            const SeparablePenalty penalty{ridge.data(), kink.data(), lower.data(), upper.data()};
            return released(seconds, [&](StopToken& token) {
                ColumnDescent descent(columns, penalty, w.data(), residual.data());
                const bool done = descent.run(enough, most, token);
                return std::make_tuple(done, descent.work());
            });
        },
        "values"_a, "start"_a.none(), "rows"_a.none(), "root"_a.none(), "ridge"_a, "kink"_a,
        "lower"_a, "upper"_a, "w"_a, "residual"_a, "enough"_a, "most"_a, "seconds"_a,
        "Minimise |r|^2/2 + sum (ridge w^2/2 + kink |w|) between bounds, by columns. "
        "Returns whether that was done, and how many entries it took.");
}
