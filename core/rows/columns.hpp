// The matrix by columns, for kernels that keep all scores up to date: s += change * x_j.
//
// A column with many entries is stored in full, by blocks of rows: a block's pieces of all such
// columns lie together, with zeros where the last block ends early. The update is then a few
// vectorised sums over scores that stay in the first-level cache, 0.1 ns a row and column beside
// 1 to 3 ns an entry of a list of rows, which the other columns are. Few bytes matter, since every
// step reads them: one if all entries are 1, four where floats or decimal fractions hold them
// exactly (ijcnn1: 96 -> 86 us a step), else eight. Memory: at most 32 or 64 bytes an entry.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "rows/passes.hpp"

namespace adasdca {

// Rows of a block. Larger than elsewhere: runs of a page (256 -> 512, w8a: 39 -> 32 us a step).
inline constexpr std::int64_t probability_block = 512;

// An array of zeros on cache-line boundaries.
template <class T>
class AlignedArray {
  public:
    AlignedArray() = default;
    explicit AlignedArray(std::int64_t size) : buffer_(static_cast<std::size_t>(size), T{}) {}
    T* data() const { return buffer_.data(); }
    T& operator[](std::int64_t i) const { return data()[i]; }

  private:
    mutable Buffer<T> buffer_;
};

template <class T>  // std::uint8_t: all entries are 1, and the lists need no values
struct ColumnEntries {
    static constexpr bool ones = std::is_same_v<T, std::uint8_t>;
    static constexpr std::int64_t thinnest = ones ? 32 : 8;  // in full from n / thinnest entries on
    AlignedArray<T> full;                                    // [block][column][row of the block]
    std::vector<T> values;                                   // of the lists
};

struct Columns {
    std::int64_t full_count = 0;
    std::vector<std::int32_t> place;  // number among the columns stored in full; -1: a list
    std::vector<std::int64_t> start;  // of the lists
    std::vector<std::int32_t> rows;
    double scale = 1;  // entries are stored times this: a power of ten where they are integers
    std::variant<ColumnEntries<std::uint8_t>, ColumnEntries<float>, ColumnEntries<std::int32_t>,
                 ColumnEntries<double>>
        entries;

    // Incomplete if the token stopped it.
    Columns(const Iterate& it, StopToken& token)
        : place(static_cast<std::size_t>(it.problem->d), -1),
          start(static_cast<std::size_t>(it.problem->d) + 1, 0) {
        std::vector<std::int64_t> count(place.size(), 0);
        bool ones = true, single = true;
        double largest = 0;
        for_each_nonzero(it, token, [&](std::int64_t, std::int64_t j, double x) {
            ++count[j];
            ones &= x == 1;
            single &= static_cast<double>(static_cast<float>(x)) == x;
            largest = std::max(largest, std::abs(x));
            while (scale <= 1e9 && std::nearbyint(x * scale) / scale != x) scale *= 10;
        });
        const bool decimal = scale <= 1e9 && largest * scale < 2147483647.0;
        if (single || !decimal) scale = 1;
        if (ones)
            fill<std::uint8_t>(it, count, token);
        else if (single)
            fill<float>(it, count, token);
        else if (decimal)
            fill<std::int32_t>(it, count, token);
        else
            fill<double>(it, count, token);
    }

    // The piece of a column stored in full that belongs to a block of rows.
    template <class T>
    const T* piece(const ColumnEntries<T>& from, std::int64_t block, std::int64_t number) const {
        return from.full.data() + (block * full_count + number) * probability_block;
    }

  private:
    template <class F>
    static void for_each_nonzero(const Iterate& it, StopToken& token, F&& f) {
        with_rows(it, [&](const auto& all) {
            for (std::int64_t i = 0; i < it.problem->n && !(i % 64 == 0 && token.stop()); ++i)
                for_each_entry(all[i], [&](std::int64_t j, double x) {
                    if (x != 0) f(i, j, x);
                });
        });
    }

    template <class T>
    void fill(const Iterate& it, const std::vector<std::int64_t>& count, StopToken& token) {
        auto& filled = entries.emplace<ColumnEntries<T>>();
        auto& full = filled.full;
        auto& values = filled.values;
        const std::int64_t n = it.problem->n,
                           blocks = (n + probability_block - 1) / probability_block;
        for (std::size_t j = 0; j < place.size(); ++j) {
            const bool many = count[j] * ColumnEntries<T>::thinnest > blocks * probability_block;
            if (many) place[j] = static_cast<std::int32_t>(full_count++);
            start[j + 1] = start[j] + (many ? 0 : count[j]);
        }
        full = AlignedArray<T>(blocks * full_count * probability_block);
        rows.resize(static_cast<std::size_t>(start.back()));
        if (!ColumnEntries<T>::ones) values.resize(rows.size());
        auto next = start;
        for_each_nonzero(it, token, [&](std::int64_t i, std::int64_t j, double x) {
            const T value = static_cast<T>(std::is_integral_v<T> ? std::nearbyint(x * scale) : x);
            if (place[j] >= 0) {
                const std::int64_t row = i % probability_block;
                full[(i / probability_block * full_count + place[j]) * probability_block + row] =
                    value;
            } else {
                if (!ColumnEntries<T>::ones) values[next[j]] = value;
                rows[next[j]++] = static_cast<std::int32_t>(i);
            }
        });
    }
};

}  // namespace adasdca
