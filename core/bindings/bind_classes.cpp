// Bindings of the products of rows with a vector for every class.
#include <string>

#include "bindings/bindings.hpp"
#include "rows/class_products.hpp"

namespace {

// Rows as they are given, less their mean if they are dense.
struct ClassRows {
    Matrix matrix;
    std::int64_t n, d, stored;
    const double* centre;
    int threads;
    std::shared_ptr<void> keep;
    mutable ClassSpace space{};
};

template <class T>
using Lines = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
std::int64_t lanes_of(const Array& block, std::int64_t lines, const char* name) {
    const auto lanes = static_cast<std::int64_t>(block.shape(1));
    if (static_cast<std::int64_t>(block.shape(0)) != lines || lanes % class_lanes != 0)
        throw std::invalid_argument(std::string(name) + ": wrong shape");
    return lanes;
}

template <class Real, class Between>
void run(const ClassRows& rows, const ClassBlocks<Real>& blocks, std::int64_t lanes,
         Between&& between) {
    released(1e18, [&](StopToken& token) {
        std::visit(
            [&](const auto& x) {
                with_lanes(lanes, [&](auto fixed) {
                    class_products(x, rows.stored, rows.centre, blocks, fixed, between,
                                   rows.threads, rows.space, token);
                });
            },
            rows.matrix);
    });
}

template <class Real>
void bind_products(nb::class_<ClassRows>& cls) {
    cls.def(
        "curve",
        [](const ClassRows& rows, Grid<Real> v, Vector<Real> shift, Grid<Real> p,
           Vector<std::int64_t> own, std::optional<Vector<double>> weight, Lines<Real> out,
           Output sums) {
            const std::int64_t lanes = lanes_of(v, rows.d, "v");
            expect(lanes_of(p, rows.n, "p") == lanes && lanes_of(out, rows.d, "out") == lanes &&
                       static_cast<std::int64_t>(shift.size()) == lanes &&
                       static_cast<std::int64_t>(sums.size()) == lanes,
                   "blocks must be equally wide");
            expect(static_cast<std::int64_t>(own.size()) == rows.n, "own: one entry per row");
            expect(!weight || static_cast<std::int64_t>(weight->size()) == rows.n,
                   "weight: one entry per row");
            for (const auto k : view(own)) expect(k >= 0 && k < lanes, "own: no such class");
            std::fill(out.data(), out.data() + out.size(), Real(0));
            std::fill(sums.data(), sums.data() + lanes, 0.0);
            run(rows, ClassBlocks<Real>{v.data(), shift.data(), nullptr, out.data(), sums.data()},
                lanes,
                ClassCurvature<Real>{p.data(), own.data(), weight ? weight->data() : nullptr});
        },
        "v"_a.noconvert(), "shift"_a.noconvert(), "p"_a.noconvert(), "own"_a, "weight"_a.none(),
        "out"_a.noconvert(), "sums"_a.noconvert(),
        "Write sum_i x_i^T A_i (x_i v + shift), and the sums of its last factors, for A_i = c_i "
        "(diag p_i - p_i p_i^T).");
    const auto as_is = [](std::int64_t, Real*, double*, auto) {};
    cls.def(
        "times",
        [as_is](const ClassRows& rows, Grid<Real> v, Lines<Real> out) {
            const std::int64_t lanes = lanes_of(v, rows.d, "v");
            expect(lanes_of(out, rows.n, "out") == lanes, "blocks must be equally wide");
            run(rows, ClassBlocks<Real>{v.data(), nullptr, out.data(), nullptr, nullptr}, lanes,
                as_is);
        },
        "v"_a.noconvert(), "out"_a.noconvert(), "Write x_i v for every row.");
    cls.def(
        "gather",
        [as_is](const ClassRows& rows, Lines<Real> r, Lines<Real> out, bool squared) {
            const std::int64_t lanes = lanes_of(r, rows.n, "r");
            expect(lanes_of(out, rows.d, "out") == lanes, "blocks must be equally wide");
            std::fill(out.data(), out.data() + out.size(), Real(0));
            run(rows, ClassBlocks<Real>{nullptr, nullptr, r.data(), out.data(), nullptr, squared},
                lanes, as_is);
        },
        "r"_a.noconvert(), "out"_a.noconvert(), "squared"_a = false,
        "Write sum_i x_i^T r_i, or that of the squares of x_i.");
}

}  // namespace

void bind_classes(nb::module_& m) {
    nb::class_<ClassRows> cls(m, "ClassRows", "Rows to be multiplied by a vector for every class.");
    cls.def(
        "__init__",
        [](ClassRows* self, const GivenRows& rows, std::optional<Vector<double>> centre,
           int threads) {
            expect(!centre || static_cast<std::int64_t>(centre->size()) == rows.d,
                   "centre: one entry per feature");
            const std::int64_t stored = std::visit(
                [](const auto& x) {
                    if constexpr (is_csr<decltype(x)>)
                        return x.start[x.n];
                    else
                        return x.n * x.d;
                },
                rows.matrix);
            new (self) ClassRows{rows.matrix,
                                 rows.n,
                                 rows.d,
                                 stored,
                                 centre ? centre->data() : nullptr,
                                 threads,
                                 keep_alive(rows.keep, centre)};
        },
        "rows"_a, "centre"_a = nb::none(), "threads"_a = 1);
    bind_products<float>(cls);
    bind_products<double>(cls);
    cls.def(
        "gather_exactly",
        [](const ClassRows& rows, Grid<double> r, Vector<std::int64_t> spare, Lines<double> out,
           Output sums) {
            const std::int64_t lanes = lanes_of(r, rows.n, "r");
            expect(lanes_of(out, 2 * rows.d, "out") == lanes &&
                       static_cast<std::int64_t>(sums.size()) == 2 * lanes,
                   "blocks must be equally wide");
            expect(static_cast<std::int64_t>(spare.size()) == rows.n, "spare: one entry per row");
            for (const auto k : view(spare)) expect(k >= 0 && k < lanes, "spare: no such class");
            released(1e18, [&](StopToken& token) {
                std::visit(
                    [&](const auto& x) {
                        gather_exactly(x, r.data(), spare.data(), lanes, out.data(), sums.data(),
                                       token);
                    },
                    rows.matrix);
            });
        },
        "r"_a.noconvert(), "spare"_a, "out"_a.noconvert(), "sums"_a.noconvert(),
        "Write sum_i x_i^T r_i and sum_i r_i in twice the digits, as doubles and behind them what "
        "these lose, rows without their centre; the place `spare` of r_i is what the others leave "
        "of 0.");
}
