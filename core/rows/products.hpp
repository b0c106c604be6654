// K = X_A X_A^T, the inner products of some rows: what a Newton step needs where these are fewer
// than the features. It depends on the data alone, so one computation serves all steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "rows/passes.hpp"

namespace adasdca {

// Numbers of K that stay close to a core while its lines are summed.
constexpr std::int64_t close_products = 1 << 17;

// Write the lower triangle of K from line `first` on; false if the token stopped it. The rows are
// copied by columns, and an entry meets those of its column in the rows before: only pairs that
// both exist cost anything. A few lines at a time go through all columns, so that both stay close
// (dorothea, 800 x 100,000: 120 -> 42 ms).
// With factors, one for each feature, it is X_A diag(factors) X_A^T.
inline bool write_products(const Iterate& it, std::span<const std::int64_t> chosen,
                           std::int64_t first, const double* factors, double* out, int threads,
                           StopToken& token) {
    const auto m = static_cast<std::int64_t>(chosen.size());
    const std::int64_t d = it.problem->d;
    std::vector<std::int64_t> start(static_cast<std::size_t>(d) + 1, 0);
    struct Entry {
        double value;
        std::int32_t place;  // of its row among those chosen
    };
    std::vector<Entry> entries;
    with_rows(it, [&](const auto& rows) {
        for (std::int64_t a = 0; a < m && !(a % 64 == 0 && token.stop()); ++a)
            for_each_entry(rows[chosen[a]], [&](std::int64_t j, double) { ++start[j + 1]; });
        for (std::size_t j = 1; j < start.size(); ++j) start[j] += start[j - 1];
        if (token.stopped()) return;
        entries.resize(static_cast<std::size_t>(start.back()));
        auto next = start;
        for (std::int64_t a = 0; a < m && !(a % 64 == 0 && token.stop()); ++a)
            for_each_entry(rows[chosen[a]], [&](std::int64_t j, double x) {
                entries[next[j]++] = {x, static_cast<std::int32_t>(a)};
            });
    });
    if (token.stopped()) return false;
    std::vector<std::int64_t> columns;  // those that have any
    for (std::int64_t j = 0; j < d; ++j)
        if (start[j + 1] > start[j]) columns.push_back(j);
    const std::int64_t lines =
        std::max(close_products / std::max(m, std::int64_t{1}), std::int64_t{1});
    const std::int64_t pieces = (m - first + lines - 1) / lines;
    // The last lines are the longest: they go first, so that no thread is left with one.
    for_each_piece(pieces, threads, token, [&](std::int64_t piece) {
        const std::int64_t end = m - piece * lines, begin = std::max(end - lines, first);
        for (std::int64_t a = begin; a < end; ++a) std::fill(out + a * m, out + a * m + a + 1, 0.0);
        for (const std::int64_t j : columns) {
            const Entry* column = entries.data() + start[j];
            const Entry* last = entries.data() + start[j + 1];
            if ((last - 1)->place < begin || column->place >= end) continue;
            const double factor = factors ? factors[j] : 1.0;
            const Entry* entry =
                std::partition_point(column, last, [&](const Entry& e) { return e.place < begin; });
            for (; entry != last && entry->place < end; ++entry) {
                double* line = out + entry->place * m;
                const double value = factor * entry->value;
                for (const Entry* other = column; other <= entry; ++other)
                    line[other->place] += value * other->value;
            }
        }
    });
    return !token.stopped();
}

}  // namespace adasdca
