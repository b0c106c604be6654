// K = X_A X_A^T, the inner products of some rows: what a Newton step needs where these are fewer
// than the features. It depends on the data alone, so one computation serves all steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "rows/passes.hpp"

namespace adasdca {

// Write the lower triangle of K from line `first` on; false if the token stopped it. The rows are
// copied by columns, and an entry meets those of its column in the rows before: only pairs that
// both exist cost anything, and the sums of a line stay close.
// With factors, one for each feature, it is X_A diag(factors) X_A^T.
inline bool write_products(const Iterate& it, std::span<const std::int64_t> chosen,
                           std::int64_t first, const double* factors, double* out, int threads,
                           StopToken& token) {
    const auto m = static_cast<std::int64_t>(chosen.size());
    std::vector<std::int64_t> start(static_cast<std::size_t>(it.problem->d) + 1, 0);
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
        // The last lines are the longest: they go first, so that no thread is left with one.
        for_each_piece(m - first, threads, token, [&](std::int64_t piece) {
            const std::int64_t a = m - 1 - piece;
            double* line = out + a * m;
            std::fill(line, line + a + 1, 0.0);
            // Columns lie far apart: they are fetched some entries ahead.
            std::array<const Entry*, 32> column;
            std::array<double, 32> value;
            std::size_t count = 0;
            auto add = [&] {
                for (std::size_t e = 0; e < count; ++e)
                    // Places rise in a column, and `a` is one of them.
                    for (const Entry* entry = column[e];; ++entry) {
                        line[entry->place] += value[e] * entry->value;
                        if (entry->place == a) break;
                    }
                count = 0;
            };
            for_each_entry(rows[chosen[a]], [&](std::int64_t j, double x) {
                column[count] = entries.data() + start[j];
                ADASDCA_PREFETCH(column[count]);
                value[count++] = factors ? factors[j] * x : x;
                if (count == column.size()) add();
            });
            add();
        });
    });
    return !token.stopped();
}

}  // namespace adasdca
