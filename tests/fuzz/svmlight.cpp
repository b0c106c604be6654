// The reader of svmlight text: nothing is read beyond its memory, what it accepts is a matrix, and
// neither where the text is cut nor how wide the indices are changes anything.
#include "io/svmlight.hpp"

#include <cmath>
#include <string_view>
#include <vector>

#include "check.hpp"

namespace {

using adasdca::Flaw;
using adasdca::SvmlightReader;

struct Read {
    std::optional<Flaw> flaw;
    std::vector<std::int64_t> start, column;
    std::vector<double> value, label;
    std::int64_t columns = 0;
};

template <class Index>
void copy_indices(SvmlightReader& reader, Read& read) {
    auto& start = reader.start<Index>();
    auto& column = reader.column<Index>();
    read.start.assign(start.data(), start.end());
    read.column.assign(column.data(), column.end());
}

// Pieces of `piece` bytes, each in memory of its own size.
Read read(std::string_view text, std::size_t piece, std::int64_t base,
          std::optional<std::int64_t> columns, std::int64_t narrow) {
    SvmlightReader reader(base, columns, narrow);
    Read result;
    for (std::size_t k = 0; k < text.size() && !result.flaw; k += piece) {
        const std::string_view part = text.substr(k, piece);
        const std::vector<char> memory(part.begin(), part.end());
        result.flaw = reader.feed({memory.data(), memory.size()});
    }
    if (!result.flaw) result.flaw = reader.finish();
    if (reader.wide())
        copy_indices<std::int64_t>(reader, result);
    else
        copy_indices<std::int32_t>(reader, result);
    result.value.assign(reader.value().data(), reader.value().end());
    result.label.assign(reader.label().data(), reader.label().end());
    result.columns = reader.columns();
    return result;
}

void check_matrix(const Read& read) {
    CHECK(read.start.size() == read.label.size() + 1);
    CHECK(read.start.front() == 0);
    CHECK(read.start.back() == static_cast<std::int64_t>(read.column.size()));
    CHECK(read.column.size() == read.value.size());
    for (std::size_t i = 0; i < read.label.size(); ++i) {
        CHECK(read.start[i] <= read.start[i + 1]);
        CHECK(std::isfinite(read.label[i]));
        for (std::int64_t k = read.start[i]; k < read.start[i + 1]; ++k) {
            CHECK(read.column[k] >= 0 && read.column[k] < read.columns);
            CHECK(std::isfinite(read.value[k]));
            if (k > read.start[i]) CHECK(read.column[k - 1] < read.column[k]);
        }
    }
}

void check_same(const Read& a, const Read& b) {
    CHECK(a.flaw.has_value() == b.flaw.has_value());
    if (a.flaw) {
        CHECK(a.flaw->line == b.flaw->line);
        CHECK(std::string_view(a.flaw->part) == b.flaw->part);
        CHECK(a.flaw->word == b.flaw->word);
        CHECK(a.flaw->text == b.flaw->text);
        return;
    }
    CHECK(a.start == b.start);
    CHECK(a.column == b.column);
    CHECK(a.value == b.value);
    CHECK(a.label == b.label);
    CHECK(a.columns == b.columns);
}

void check_writing(const Read& read, std::int64_t base) {
    std::string text;
    std::size_t row = 0;
    while (row < read.label.size())
        text += adasdca::write_svmlight<double, std::int64_t>(read.value, read.column, read.start,
                                                              read.label, base, 64, row);
    const Read again = ::read(text, text.size() + 1, base, read.columns, 1 << 30);
    CHECK(!again.flaw);
    check_same(again, read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes(data, size);
    const std::int64_t base = bytes.next<std::uint8_t>() % 2;
    const std::size_t piece = bytes.next<std::uint8_t>() % 64 + 1;
    const std::int64_t narrow = bytes.next<std::uint8_t>() % 32 + 1;
    const auto most = bytes.next<std::uint8_t>();
    const std::optional<std::int64_t> columns =
        most % 2 ? std::optional<std::int64_t>(most) : std::nullopt;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());

    const Read whole = read(text, text.size() + 1, base, columns, 1 << 30);
    // A long line with a zero byte is refused where it is seen, which pieces decide.
    const bool binary = text.size() >= 4096 && text.find('\0') != text.npos;
    if (!binary) {
        check_same(read(text, piece, base, columns, 1 << 30), whole);
        check_same(read(text, piece, base, columns, narrow), whole);
    }
    if (!whole.flaw) {
        check_matrix(whole);
        check_writing(whole, base);
    }
    return 0;
}
