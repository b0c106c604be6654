// Rows and the few verbs on them: dot, norm, each, prefetch. The kernels know no other storage.
// In `each` the visitor may write only to places of its own feature.
//
// A row carries its changing state beside its features: {beta, y, q, scale}, one half of a cache
// line. Packed rows go further: state, columns and values of a row are one record in one arena, so
// that a random visit costs one run of consecutive cache lines (cov1: 111 -> 38 ns an update).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "system/compiler.hpp"

namespace adasdca {

struct RowState {
    double beta;   // dual variable per unit of weight
    double y;      // label or target
    double q;      // c |x|^2 / (lambda N), the curvature of the row's own step, in the dual norm
    double scale;  // c / (lambda N): u moves by scale * (change of beta) * x
};

// From so many entries on, the products of a row are summed in several chains.
inline constexpr std::int64_t long_row = 128;

// The values of a row whose entries are all 1: nothing is stored, nothing is read.
struct Ones {
    constexpr double operator[](std::int64_t) const { return 1.0; }
};

template <class Index, class Values>
struct SparseRow {
    RowState& state;
    const Index* columns;
    Values values;
    std::int64_t size;

    ADASDCA_INLINE double dot(const double* w) const {
        // Four sums in flight: one chain of additions would wait 4 cycles an entry.
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        std::int64_t k = 0;
        for (; k + 4 <= size; k += 4) {
            s0 += static_cast<double>(values[k]) * w[columns[k]];
            s1 += static_cast<double>(values[k + 1]) * w[columns[k + 1]];
            s2 += static_cast<double>(values[k + 2]) * w[columns[k + 2]];
            s3 += static_cast<double>(values[k + 3]) * w[columns[k + 3]];
        }
        for (; k < size; ++k) s0 += static_cast<double>(values[k]) * w[columns[k]];
        return (s0 + s1) + (s2 + s3);
    }

    double squared_norm() const {
        // A vector of sums pays on long rows only (short: 10 -> 6 ns, of 900 entries: 510 -> 120).
        constexpr std::int64_t few = 64;
        const Values x = values;
        auto square = [&](std::int64_t k) {
            const auto value = static_cast<double>(x[k]);
            return value * value;
        };
        double sum = 0;
        if (size < few) {
            double other = 0;
            for (std::int64_t k = 1; k < size; k += 2) {
                sum += square(k - 1);
                other += square(k);
            }
            return sum + other + (size % 2 ? square(size - 1) : 0.0);
        }
#pragma omp simd reduction(+ : sum)
        for (std::int64_t k = 0; k < size; ++k) sum += square(k);
        return sum;
    }

    template <class F>
    ADASDCA_INLINE void each(F&& f) const {
        // (mushrooms' sums: 11 -> 9.7 ns a row)
        ADASDCA_UNROLL(4)
        for (std::int64_t k = 0; k < size; ++k)
            f(static_cast<std::int64_t>(columns[k]), static_cast<double>(values[k]));
    }
};

template <class T>
struct DenseRow {
    RowState& state;
    const T* values;
    std::int64_t size;

    ADASDCA_INLINE double dot(const double* w) const {
        // On long rows several vectors of sums are in flight: one would wait for each addition
        // (500 features: 144 -> 90 ns; below 100 adding them up takes as long).
        constexpr std::int64_t wide = 16;
        const T* x = values;
        const std::int64_t d = size;
        double sum = 0;
        std::int64_t first = 0;
        if (d >= long_row) {
            double sums[wide] = {};
            for (; first + wide <= d; first += wide)
#pragma omp simd
                for (std::int64_t k = 0; k < wide; ++k)
                    sums[k] += static_cast<double>(x[first + k]) * w[first + k];
#pragma omp simd reduction(+ : sum)
            for (std::int64_t k = 0; k < wide; ++k) sum += sums[k];
        }
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = first; j < d; ++j) sum += static_cast<double>(x[j]) * w[j];
        return sum;
    }

    double squared_norm() const {
        double sum = 0;
        const T* x = values;
        const std::int64_t d = size;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = 0; j < d; ++j)
            sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
        return sum;
    }

    template <class F>
    ADASDCA_INLINE void each(F&& f) const {
        const T* x = values;
        const std::int64_t d = size;
#pragma omp simd
        for (std::int64_t j = 0; j < d; ++j) f(j, static_cast<double>(x[j]));
    }
};

// Entry by entry, in order, with a visitor that may do as it likes.
template <class Index, class Values, class F>
void for_each_entry(const SparseRow<Index, Values>& row, F&& f) {
    row.each(f);
}
template <class T, class F>
void for_each_entry(const DenseRow<T>& row, F&& f) {
    for (std::int64_t j = 0; j < row.size; ++j) f(j, static_cast<double>(row.values[j]));
}

template <class T>
struct DenseRows {
    const T* values;
    std::int64_t d;
    RowState* states;

    DenseRow<T> operator[](std::int64_t i) const { return {states[i], values + i * d, d}; }
    ADASDCA_INLINE void prefetch_place(std::int64_t) const {}
    ADASDCA_INLINE void prefetch_block(std::int64_t) const {}  // passes read one row after another
    ADASDCA_INLINE void prefetch(std::int64_t i) const {
        ADASDCA_PREFETCH(states + i);
        const auto* row = reinterpret_cast<const char*>(values + i * d);
        const std::int64_t bytes = d * static_cast<std::int64_t>(sizeof(T));
        for (std::int64_t b = 0; b < bytes && b < 512; b += 64) ADASDCA_PREFETCH(row + b);
    }
};

template <class T, class Index>
struct CsrRows {
    const T* values;
    const Index* columns;
    const std::int64_t* start;
    RowState* states;

    SparseRow<Index, const T*> operator[](std::int64_t i) const {
        return {states[i], columns + start[i], values + start[i], start[i + 1] - start[i]};
    }
    ADASDCA_INLINE void prefetch_place(std::int64_t i) const { ADASDCA_PREFETCH(start + i); }
    ADASDCA_INLINE void prefetch(std::int64_t i) const {
        ADASDCA_PREFETCH(states + i);
        const auto* column = reinterpret_cast<const char*>(columns + start[i]);
        const auto* value = reinterpret_cast<const char*>(values + start[i]);
        const std::int64_t size = start[i + 1] - start[i];
        constexpr std::int64_t line = 64, most = 4 * line;
        for (std::int64_t b = 0; b < size * std::int64_t{sizeof(Index)} && b < most; b += line)
            ADASDCA_PREFETCH(column + b);
        for (std::int64_t b = 0; b < size * std::int64_t{sizeof(T)} && b < most; b += line)
            ADASDCA_PREFETCH(value + b);
    }
    ADASDCA_INLINE void prefetch_block(std::int64_t i) const { prefetch(i); }
};

// place[i] holds the offset of record i in the arena (40 bits) and its number of entries (24 bits).
template <class T>  // float, double, or Ones for no values at all
struct PackedRows {
    std::byte* arena;
    const std::uint64_t* place;

    static constexpr int length_bits = 24;
    static constexpr bool ones = std::is_same_v<T, Ones>;
    static constexpr std::int64_t entry_bytes =
        sizeof(std::int32_t) + (ones ? 0 : static_cast<std::int64_t>(sizeof(T)));

    // State, then columns, then values at their natural alignment.
    static constexpr std::int64_t values_offset(std::int64_t size) {
        const std::int64_t raw = sizeof(RowState) + size * sizeof(std::int32_t);
        return sizeof(T) == 8 ? (raw + 7) / 8 * 8 : raw;
    }
    static constexpr std::int64_t record_bytes(std::int64_t size) {
        return ones ? static_cast<std::int64_t>(sizeof(RowState) + size * sizeof(std::int32_t))
                    : values_offset(size) + size * static_cast<std::int64_t>(sizeof(T));
    }

    auto operator[](std::int64_t i) const {
        std::byte* record = arena + (place[i] >> length_bits);
        const auto size = static_cast<std::int64_t>(place[i] & ((1u << length_bits) - 1));
        auto& state = *reinterpret_cast<RowState*>(record);
        const auto* columns = reinterpret_cast<const std::int32_t*>(record + sizeof(RowState));
        if constexpr (ones)
            return SparseRow<std::int32_t, Ones>{state, columns, Ones{}, size};
        else
            return SparseRow<std::int32_t, const T*>{
                state, columns, reinterpret_cast<const T*>(record + values_offset(size)), size};
    }
    ADASDCA_INLINE void prefetch_place(std::int64_t i) const { ADASDCA_PREFETCH(place + i); }
    ADASDCA_INLINE void prefetch_block(std::int64_t) const {}  // records lie as passes read them
    ADASDCA_INLINE void prefetch(std::int64_t i) const {
        const std::byte* record = arena + (place[i] >> length_bits);
        const auto size = static_cast<std::int64_t>(place[i] & ((1u << length_bits) - 1));
        const std::int64_t bytes = record_bytes(size);
        // Past eight lines the hardware's own stream prefetch has caught on.
        for (std::int64_t b = 0; b < bytes && b < 512; b += 64) ADASDCA_PREFETCH(record + b);
    }
};

}  // namespace adasdca
