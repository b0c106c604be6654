// What Python holds: a problem, an iterate on it, and what kernels keep between calls.
#pragma once

#include "ascent/adaptive_ascent.hpp"
#include "ascent/ascent.hpp"
#include "bindings/bindings.hpp"
#include "rows/gram.hpp"

// A problem and an iterate on it, with the arrays they point into kept alive.
struct Workspace {
    Problem problem;
    Iterate iterate;
    std::optional<Columns> columns;
    std::optional<GramColumns> gram_columns;
    Average average;
    std::shared_ptr<void> keep;

    Workspace(const Workspace&) = delete;
    explicit Workspace(Problem p) : problem(std::move(p)) {}
};

// The passes that Newton steps are made of.
void bind_newton(nb::module_& m, nb::class_<Workspace>& workspace);
