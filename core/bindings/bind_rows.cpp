// Bindings of rows in the arrays of Python, and of looks at them before there is a problem.
#include "bindings/bindings.hpp"
#include "rows/dense_panels.hpp"
#include "rows/inspection.hpp"
#include "rows/lengths.hpp"

namespace {

template <class T>
void bind_dense(nb::class_<GivenRows>& cls) {
    cls.def_static(
        "dense",
        [](Grid<T> x) {
            const auto n = static_cast<std::int64_t>(x.shape(0)),
                       d = static_cast<std::int64_t>(x.shape(1));
            return GivenRows{DenseMatrix<T>{x.data(), n, d}, n, d, x.size(), 0, keep_alive(x)};
        },
        "x"_a.noconvert());
}

template <class T, class Index>
void bind_csr(nb::class_<GivenRows>& cls) {
    cls.def_static(
        "csr",
        [](Vector<T> values, Vector<Index> columns, Vector<std::int64_t> start, std::int64_t d) {
            expect(start.size() > 0, "start: one entry more than rows");
            const auto n = static_cast<std::int64_t>(start.size()) - 1;
            const CsrMatrix<T, Index> matrix{values.data(), columns.data(), start.data(), n, d};
            auto keep = keep_alive(values, columns, start);
            return GivenRows{matrix, n, d, values.size(), columns.size(), keep};
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "start"_a, "d"_a);
}

Inspection look(const GivenRows& rows) {
    return std::visit(
        [&](const auto& x) {
            if constexpr (is_csr<decltype(x)>)
                return rows.with_arrays(x, [&](auto... arrays) { return inspect(arrays..., x.d); });
            else
                return Inspection{.finite = inspect(std::span{x.values, rows.values})};
        },
        rows.matrix);
}

}  // namespace

void bind_rows(nb::module_& m) {
    nb::class_<GivenRows> cls(m, "Rows", "Rows in the arrays of Python.");
    bind_dense<float>(cls);
    bind_dense<double>(cls);
    bind_csr<float, std::int32_t>(cls);
    bind_csr<float, std::int64_t>(cls);
    bind_csr<double, std::int32_t>(cls);
    bind_csr<double, std::int64_t>(cls);
    cls.def(
        "inspect",
        [](const GivenRows& rows) {
            const Inspection r = released(1e18, [&](StopToken&) { return look(rows); });
            return std::tuple(r.in_range, r.finite, r.canonical);
        },
        "Whether they are in range, finite, and if sparse sorted without duplicates.");
    cls.def(
        "sort",
        [](const GivenRows& rows) {
            return rows.sparse([&](const auto& x) {
                const auto count = static_cast<std::size_t>(x.start[x.n]);
                expect(count <= rows.values && count <= rows.columns, "start: too many entries");
                Buffer<std::remove_cvref_t<decltype(*x.values)>> sorted(count);
                Buffer<std::remove_cvref_t<decltype(*x.columns)>> order(count);
                released(1e18, [&](StopToken&) {
                    rows.with_arrays(x, [&](auto... arrays) {
                        sort_rows(arrays..., x.d, sorted.data(), order.data());
                    });
                });
                // Of any kind to type checkers, for whom arrays of all kinds are alike.
                return nb::typed<nb::tuple, nb::any, nb::any>(
                    nb::make_tuple(own(std::move(sorted)), own(std::move(order))));
            });
        },
        "The values and columns of sparse rows that are in range, the columns of a row sorted.");
    cls.def(
        "squares_about",
        [](const GivenRows& rows, Vector<double> centre, Output squares, Output apart) {
            expect(static_cast<std::int64_t>(centre.size()) == rows.d,
                   "centre: one entry per feature");
            double *to = pointer(squares, rows.n), *away = pointer(apart, rows.n);
            released(1e18, [&](StopToken& token) {
                std::visit([&](const auto& x) { squares_about(x, centre.data(), to, away, token); },
                           rows.matrix);
            });
        },
        "centre"_a, "squares"_a, "apart"_a,
        "Write |x|^2 and |x - m|^2 for every row, m the centre.");
    cls.def(
        "scores_about",
        [](const GivenRows& rows, Vector<double> centre, Vector<double> w, double b,
           Output scores) {
            expect(static_cast<std::int64_t>(centre.size()) == rows.d,
                   "centre: one entry per feature");
            expect(static_cast<std::int64_t>(w.size()) == rows.d, "w: one entry per feature");
            double* to = pointer(scores, rows.n);
            return released(1e18, [&](StopToken& token) {
                return rows.dense([&](const auto& x) {
                    return scores_about(x, centre.data(), w.data(), b, to, token);
                });
            });
        },
        "centre"_a, "w"_a, "b"_a, "scores"_a,
        "Write x_i.w + b of dense rows; return the largest |x_i - centre|^2.");
}
