// Bindings of the minimum of a quadratic function of few features and a separable penalty.
#include "bindings/bindings.hpp"
#include "newton/separable.hpp"

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
            const SeparableQuadratic f{d,           matrix.data(), ridge.data(),
                                       kink.data(), lower.data(),  upper.data()};
            return released(seconds, [&](StopToken& token) {
                minimise_separable(f, w.data(), slope.data(), enough, token);
                return !token.stopped();
            });
        },
        "matrix"_a, "ridge"_a, "kink"_a, "lower"_a, "upper"_a, "w"_a, "slope"_a, "enough"_a,
        "seconds"_a,
        "Minimise w.Mw/2 - r.w + sum (ridge w^2/2 + kink |w|) between bounds, from w and r - Mw.");
}
