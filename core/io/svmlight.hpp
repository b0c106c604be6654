// The text format of SVMlight, LIBSVM and LIBLINEAR, read from pieces and written:
//     label [qid:number] index:value index:value ... [# comment]
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/decimal.hpp"
#include "system/growing_buffer.hpp"

namespace adasdca {

// Why a line was refused: in what part of it, the word itself, and the line around that word.
struct Flaw {
    const char* part;
    std::int64_t line;
    std::string word, text;
};

class SvmlightReader {
  public:
    // Indices count from `base` (0 or 1) and stop before base + columns. Those above `narrow`, or
    // as many entries, need 64 bits.
    SvmlightReader(std::int64_t base, std::optional<std::int64_t> columns, std::int64_t narrow)
        : base_(base),
          last_(columns ? *columns - 1 + base : std::numeric_limits<std::int64_t>::max()),
          narrow_(narrow) {
        start32_.push(0);
    }

    // Read a piece of the file. Lines may be cut anywhere: what is unfinished waits for more.
    std::optional<Flaw> feed(std::string_view piece) {
        if (!tail_.empty()) {
            const std::size_t cut = piece.find('\n');
            tail_.append(piece.substr(0, cut == npos ? npos : cut + 1));
            if (cut == npos) return unfinished(piece);
            piece.remove_prefix(cut + 1);
            if (auto flaw = read_tail()) return flaw;
        }
        // In place up to a line's end that leaves as much behind it as may be looked at.
        const std::size_t cut = piece.size() > decimal::overread
                                    ? piece.rfind('\n', piece.size() - decimal::overread - 1)
                                    : npos;
        if (cut != npos) {
            if (auto flaw = read_lines(piece.data(), piece.data() + cut + 1)) return flaw;
            piece.remove_prefix(cut + 1);
        }
        tail_.assign(piece);
        return unfinished(piece);
    }

    // Read what is left; the last line needs no end.
    std::optional<Flaw> finish() {
        if (tail_.empty()) return {};
        if (tail_.back() != '\n') tail_.push_back('\n');
        return read_tail();
    }

    bool wide() const { return wide_; }
    std::int64_t columns() const { return columns_; }
    Growing<double>& label() { return label_; }
    Growing<double>& value() { return value_; }
    template <class Index>
    Growing<Index>& column() {
        if constexpr (sizeof(Index) == 4)
            return column32_;
        else
            return column64_;
    }
    template <class Index>
    Growing<Index>& start() {
        if constexpr (sizeof(Index) == 4)
            return start32_;
        else
            return start64_;
    }

  private:
    static constexpr std::size_t npos = std::string_view::npos;
    enum class Outcome { row, none, too_narrow, refused };

    // A binary file may have no line's end for long: no use in waiting for one.
    std::optional<Flaw> unfinished(std::string_view piece) const {
        const std::size_t null = tail_.size() < 4096 ? npos : piece.find('\0');
        if (null == npos) return {};
        return Flaw{"binary", lines_ + 1, {}, excerpt(piece, null)};
    }

    std::optional<Flaw> read_tail() {
        const std::size_t size = tail_.size();
        tail_.append(decimal::overread, '\n');
        auto flaw = read_lines(tail_.data(), tail_.data() + size);
        tail_.clear();
        return flaw;
    }

    // Whole lines, [p, end), with `overread` bytes behind them.
    std::optional<Flaw> read_lines(const char* p, const char* end) {
        const auto bytes = static_cast<std::size_t>(end - p);
        // An entry takes four bytes at least, " 1:1", and a row two, "1\n".
        value_.reserve(bytes / 4 + 1);
        label_.reserve(bytes / 2 + 1);
        if (!wide_ && static_cast<std::int64_t>(value_.size() + bytes / 4 + 1) > narrow_) widen();
        if (!wide_) {
            column32_.reserve(bytes / 4 + 1);
            start32_.reserve(bytes / 2 + 1);
            if (auto flaw = read_rows<std::int32_t>(p, end)) return flaw;
        }
        if (p < end) {
            column64_.reserve(static_cast<std::size_t>(end - p) / 4 + 1);
            start64_.reserve(static_cast<std::size_t>(end - p) / 2 + 1);
            return read_rows<std::int64_t>(p, end);
        }
        return {};
    }

    // Lines up to the end, or up to one with an index too large for Index; then the reader is wide.
    template <class Index>
    std::optional<Flaw> read_rows(const char*& p, const char* end) {
        if (lines_ == 0 && std::string_view(p, end - p).starts_with("\xEF\xBB\xBF")) p += 3;
        while (p < end) {
            const char* const line = p;
            switch (read_row<Index>(p, end)) {
                case Outcome::refused:
                    return flaw(line, end);
                case Outcome::too_narrow:
                    p = line;
                    widen();
                    return {};
                default:
                    ++lines_;
            }
        }
        return {};
    }

    static bool blank(char c) { return c == ' ' || c == '\t'; }
    // What may follow a word; a carriage return only as part of a line's end.
    static bool ends_word(const char* p) {
        return blank(*p) || *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n');
    }
    static const char* skip_blanks(const char* p) {
        while (blank(*p)) ++p;
        return p;
    }

    Outcome refuse(const char* part, const char* word) {
        part_ = part;
        word_ = word;
        return Outcome::refused;
    }

    // One line from p, which then is at the next one. Everything ends at '\n' at the latest.
    template <class Index>
    Outcome read_row(const char*& p, const char* end) {
        const char* q = skip_blanks(p);
        const auto leave = [&] {
            if (*q != '\n') q = static_cast<const char*>(std::memchr(q, '\n', end - q));
            p = q + 1;
        };
        if (ends_word(q)) {
            leave();
            return Outcome::none;
        }
        double label;
        const char* word = q;
        if (!decimal::read(q, label) || !ends_word(q) || !std::isfinite(label))
            return refuse("label", word);
        q = skip_blanks(q);
        if (q[0] == 'q' && q[1] == 'i' && q[2] == 'd' && q[3] == ':') {
            word = q;
            q += 4;
            std::uint64_t ignored = 0;
            if (decimal::run_of_digits(q, ignored) == 0 || !ends_word(q))
                return refuse("qid", word);
        }

        double* value = value_.end();
        Index* const first = column<Index>().end();
        Index* column = first;
        const std::int64_t most =
            std::min<std::int64_t>(last_, sizeof(Index) == 4 ? narrow_ : last_);
        std::int64_t before = base_ - 1;
        bool rising = true;
        for (;;) {
            q = skip_blanks(q);
            if (ends_word(q)) break;
            word = q;
            std::uint64_t number = 0;
            const std::int64_t count = decimal::run_of_digits(q, number);
            if (count == 0 || count > 18 || *q != ':') return refuse("entry", word);
            const auto index = static_cast<std::int64_t>(number);
            if (index > most) return index > last_ ? refuse("beyond", word) : Outcome::too_narrow;
            if (index < base_) return refuse("zero", word);
            ++q;
            if (!decimal::read(q, *value) || !ends_word(q) || !std::isfinite(*value))
                return refuse("value", word);
            ++value;
            *column++ = static_cast<Index>(index - base_);
            rising &= index > before;
            before = index;
        }
        const auto entries = static_cast<std::size_t>(column - first);
        if (!rising && !sort_row(first, value_.end(), entries)) return refuse("twice", p);
        if (entries > 0) columns_ = std::max(columns_, static_cast<std::int64_t>(column[-1]) + 1);
        value_.extend(entries);
        this->column<Index>().extend(entries);
        start<Index>().push(static_cast<Index>(value_.size()));
        label_.push(label);
        leave();
        return Outcome::row;
    }

    // Sort a row by its columns; false if one comes twice.
    template <class Index>
    bool sort_row(Index* column, double* value, std::size_t count) {
        std::vector<std::pair<Index, double>> row(count);
        for (std::size_t k = 0; k < count; ++k) row[k] = {column[k], value[k]};
        std::sort(row.begin(), row.end(), [](auto& a, auto& b) { return a.first < b.first; });
        for (std::size_t k = 0; k < count; ++k) {
            if (k > 0 && row[k].first == row[k - 1].first) {
                twice_ = row[k].first + base_;
                return false;
            }
            column[k] = row[k].first;
            value[k] = row[k].second;
        }
        return true;
    }

    void widen() {
        column64_ = std::move(column32_).widened<std::int64_t>();
        start64_ = std::move(start32_).widened<std::int64_t>();
        wide_ = true;
    }

    static std::string excerpt(std::string_view line, std::size_t place) {
        constexpr std::size_t around = 50;
        const std::size_t first = place > around ? place - around : 0;
        const std::size_t last = std::min(line.size(), place + around);
        return (first > 0 ? "..." : "") + std::string(line.substr(first, last - first)) +
               (last < line.size() ? "..." : "");
    }

    Flaw flaw(const char* begin, const char* end) const {
        std::string_view line(begin, end - begin);
        line = line.substr(0, line.find('\n'));
        if (line.ends_with('\r')) line.remove_suffix(1);
        const auto place = static_cast<std::size_t>(word_ - begin);
        std::string_view word = line.substr(place, 40);
        word = word.substr(0, word.find_first_of(" \t#"));
        return {part_, lines_ + 1, twice_ < 0 ? std::string(word) : std::to_string(twice_),
                excerpt(line, place)};
    }

    const std::int64_t base_, last_, narrow_;
    std::string tail_;
    std::int64_t lines_ = 0, columns_ = 0;
    bool wide_ = false;
    Growing<double> label_, value_;
    Growing<std::int32_t> column32_, start32_;
    Growing<std::int64_t> column64_, start64_;
    // Of the line that was refused.
    const char* part_ = "";
    const char* word_ = nullptr;
    std::int64_t twice_ = -1;
};

// Rows from `row` on as text, until about `bytes` of it; `row` is then the first one left.
template <class T, class Index>
std::string write_svmlight(std::span<const T> value, std::span<const Index> column,
                           std::span<const std::int64_t> start, std::span<const double> label,
                           std::int64_t base, std::size_t bytes, std::size_t& row) {
    std::string text;
    text.reserve(bytes + bytes / 8);
    for (; row < label.size() && text.size() < bytes; ++row) {
        decimal::append(text, label[row]);
        for (auto k = static_cast<std::size_t>(start[row]);
             k < static_cast<std::size_t>(start[row + 1]); ++k) {
            text.push_back(' ');
            decimal::append(text, static_cast<std::int64_t>(column[k]) + base);
            text.push_back(':');
            decimal::append(text, static_cast<double>(value[k]));
        }
        text.push_back('\n');
    }
    return text;
}

}  // namespace adasdca
