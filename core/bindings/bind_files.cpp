// Files of data in the Python face of the core.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"
#include "io/svmlight.hpp"

namespace {

// Memory that Python frees from now on.
template <class T>
Owned<T> own(Growing<T>& array) {
    const std::size_t size = array.size();
    T* data = array.release();
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return {data, {size}, owner};
}

// Values, columns, starts, labels, number of columns; the type of the second and third varies.
using Taken = std::tuple<Owned<double>, nb::object, nb::object, Owned<double>, std::int64_t>;
template <class Index>
Taken take(SvmlightReader& reader) {
    return {own(reader.value()), nb::cast(own(reader.column<Index>())),
            nb::cast(own(reader.start<Index>())), own(reader.label()), reader.columns()};
}

nb::bytes bytes_of(const std::string& text) {
    return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_files(nb::module_& m) {
    nb::class_<Flaw>(m, "SvmlightFlaw", "Why and where a line was refused.")
        .def_ro("part", &Flaw::part)
        .def_ro("line", &Flaw::line)
        .def_prop_ro("word", [](const Flaw& flaw) { return bytes_of(flaw.word); })
        .def_prop_ro("text", [](const Flaw& flaw) { return bytes_of(flaw.text); });

    nb::class_<SvmlightReader>(m, "SvmlightReader", "Reads svmlight text from pieces of it.")
        .def(nb::init<std::int64_t, std::optional<std::int64_t>, std::int64_t>(), "base"_a,
             "columns"_a = nb::none(), "narrow"_a = std::numeric_limits<std::int32_t>::max())
        .def(
            "feed",
            [](SvmlightReader& reader, nb::bytes piece) {
                const std::string_view text(piece.c_str(), piece.size());
                return released(1e18, [&](StopToken&) { return reader.feed(text); });
            },
            "piece"_a, "Read a piece; lines may be cut anywhere.")
        .def(
            "finish",
            [](SvmlightReader& reader) {
                return released(1e18, [&](StopToken&) { return reader.finish(); });
            },
            "Read what is left.")
        .def(
            "take",
            [](SvmlightReader& reader) {
                return reader.wide() ? take<std::int64_t>(reader) : take<std::int32_t>(reader);
            },
            "Hand over values, columns, starts, labels and the number of columns.");

    m.def(
        "write_svmlight",
        [](const GivenRows& rows, Vector<double> label, std::int64_t base, std::size_t bytes,
           std::size_t row) {
            expect(rows.n == static_cast<std::int64_t>(label.size()), "label: one entry per row");
            const std::string text = rows.sparse([&](const auto& x) {
                expect(x.start[x.n] <= static_cast<std::int64_t>(rows.values) &&
                           rows.columns == rows.values,
                       "values and columns must be as long as start says");
                return released(1e18, [&](StopToken&) {
                    return rows.with_arrays(x, [&](auto... arrays) {
                        return write_svmlight(arrays..., view(label), base, bytes, row);
                    });
                });
            });
            return std::tuple(bytes_of(text), row);
        },
        "rows"_a, "label"_a, "base"_a, "bytes"_a, "row"_a,
        "Rows from `row` on as text of about so many bytes, and the first row left.");
}
