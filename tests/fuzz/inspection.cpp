// What is found out about a CSR matrix before kernels may trust it, against the obvious loops.
#include "rows/inspection.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"

namespace {

template <class T, class Index>
adasdca::Inspection obvious(const std::vector<T>& values, const std::vector<Index>& columns,
                            const std::vector<std::int64_t>& start, std::int64_t d) {
    const auto size = static_cast<std::int64_t>(columns.size());
    adasdca::Inspection found;
    found.in_range = !start.empty() && start[0] == 0;
    for (std::size_t i = 0; found.in_range && i + 1 < start.size(); ++i)
        found.in_range = start[i] <= start[i + 1] && start[i + 1] <= size;
    if (!found.in_range) return found;
    for (std::size_t i = 0; i + 1 < start.size(); ++i)
        for (std::int64_t k = start[i]; k < start[i + 1]; ++k) {
            if (columns[k] < 0 || columns[k] >= d) found.in_range = false;
            if (!std::isfinite(values[k])) found.finite = false;
            if (k > start[i] && columns[k - 1] >= columns[k]) found.canonical = false;
        }
    return found;
}

template <class T, class Index>
void check(Bytes bytes) {
    const std::int64_t d = bytes.next<std::uint16_t>();
    const std::size_t rows = bytes.next<std::uint8_t>();
    // More entries than a block of the pass, some of the time: what there is, again and again.
    const std::size_t repeats =
        bytes.next<std::uint8_t>() % 4 == 0 ? 1 + 8192 / (bytes.size() + 1) : 1;
    std::vector<std::int64_t> start{bytes.next<std::int8_t>() / 127};
    for (std::size_t i = 0; i < rows; ++i)
        start.push_back(start.back() + bytes.next<std::int8_t>());
    std::vector<Index> columns;
    std::vector<T> values;
    const Bytes entries = bytes;
    for (std::size_t k = 0; k < repeats; ++k) {
        bytes = entries;
        while (bytes.size() >= 4) {
            columns.push_back(static_cast<Index>(bytes.next<std::int16_t>()));
            const auto kind = bytes.next<std::uint16_t>();
            values.push_back(kind == 0xFFFF   ? static_cast<T>(NAN)
                             : kind == 0xFFFE ? static_cast<T>(-INFINITY)
                                              : static_cast<T>(kind));
        }
    }
    if (repeats > 1) start.push_back(static_cast<std::int64_t>(columns.size()));
    const auto found = adasdca::inspect<T, Index>(values, columns, start, d);
    const auto expected = obvious(values, columns, start, d);
    CHECK(found.in_range == expected.in_range);
    if (!found.in_range) return;  // the other answers are not asked for
    CHECK(found.finite == expected.finite);
    CHECK(found.canonical == expected.canonical);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes(data, size);
    switch (bytes.next<std::uint8_t>() % 4) {
        case 0:
            check<float, std::int32_t>(bytes);
            break;
        case 1:
            check<float, std::int64_t>(bytes);
            break;
        case 2:
            check<double, std::int32_t>(bytes);
            break;
        default:
            check<double, std::int64_t>(bytes);
    }
    return 0;
}
