// A counter-based generator: number k of stream `key` is a function of (key, k) alone, so that
// draws can be made in any order, in parallel, and again. SplitMix64 (Steele, Lea and Flood, 2014).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "math/elementary.hpp"
#include "system/compiler.hpp"

namespace adasdca {

inline std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

inline std::uint64_t random_bits(std::uint64_t key, std::uint64_t counter) {
    return mix(key + (counter + 1) * 0x9E3779B97F4A7C15ULL);
}

// The key of a sub-stream, e.g. of one epoch of one seed.
inline std::uint64_t subkey(std::uint64_t key, std::uint64_t index) {
    return mix(random_bits(key, index) ^ 0xD6E8FEB86659FD93ULL);
}

// In (0, 1), never 0 or 1; 52 random bits, put together without an integer conversion.
inline double uniform(std::uint64_t key, std::uint64_t counter) {
    const std::uint64_t bits = (random_bits(key, counter) >> 12) | 0x3FF0000000000000ULL;
    return std::bit_cast<double>(bits) - (1.0 - 0x1p-53);
}

inline double exponential(std::uint64_t key, std::uint64_t counter) {
    return -fast_log(uniform(key, counter));
}

// Below n, by the high half of a product (Lemire, 2019); the bias is n / 2**64.
inline std::uint64_t uniform_below(std::uint64_t n, std::uint64_t key, std::uint64_t counter) {
    return high_product(random_bits(key, counter), n);
}

// 31 random bits, for loops in single precision: they are twice as wide as those above. The rounds
// of triple32 (Wellons, 2018), with half a key before each of the first two: keys must differ in
// many bits, as those of `subkey` do.
inline std::int32_t random_bits31(std::uint64_t key, std::uint32_t counter) {
    std::uint32_t x = counter + static_cast<std::uint32_t>(key);
    x = (x ^ (x >> 17)) * 0xED5AD4BBu;
    x ^= static_cast<std::uint32_t>(key >> 32);
    x = (x ^ (x >> 11)) * 0xAC4C1B51u;
    x = (x ^ (x >> 15)) * 0x31848BABu;
    return static_cast<std::int32_t>((x ^ (x >> 14)) >> 1);
}

// -log(1 - v) of v = (bits + 1/2) / 2**31 in single precision, to three units in the last place at
// both ends: a small v is never subtracted from 1, and 1 - v comes from integers.
inline float exponential_of(std::int32_t bits) {
    const float v = (static_cast<float>(bits) + 0.5f) * 0x1p-31f;
    const float u = (static_cast<float>(0x7FFFFFFF - bits) + 0.5f) * 0x1p-31f;
    // u = 2**exponent * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); f = -v where the exponent is 0.
    const std::int32_t of_u = std::bit_cast<std::int32_t>(u);
    const std::int32_t exponent = (of_u - 0x3F3504F3) >> 23;
    const float scaled = std::bit_cast<float>(of_u - exponent * (1 << 23)) - 1.0f;
    const float f = exponent == 0 ? -v : scaled;
    float r = 7.0376836292e-2f;  // Cephes' logf
    r = r * f - 1.1514610310e-1f;
    r = r * f + 1.1676998740e-1f;
    r = r * f - 1.2420140846e-1f;
    r = r * f + 1.4249322787e-1f;
    r = r * f - 1.6668057665e-1f;
    r = r * f + 2.0000714765e-1f;
    r = r * f - 2.4999993993e-1f;
    r = r * f + 3.3333331174e-1f;
    const float square = f * f;
    const float log_u = f + square * (f * r - 0.5f);
    return -0.693147181f * static_cast<float>(exponent) - log_u;
}

// Exponentials of the given counters.
inline void exponentials(std::uint64_t key, const std::int32_t* counter, std::size_t size,
                         double* out) {
    for (std::size_t k = 0; k < size; ++k)
        out[k] = exponential(key, static_cast<std::uint32_t>(counter[k]));
}

inline void exponentials(std::uint64_t key, const std::int32_t* counter, std::size_t size,
                         float* out) {
    constexpr std::int32_t few = 1 << 12;
    std::int32_t least = few;
#pragma omp simd reduction(min : least)
    for (std::size_t k = 0; k < size; ++k) {
        const std::int32_t bits = random_bits31(key, static_cast<std::uint32_t>(counter[k]));
        least = bits < least ? bits : least;
        out[k] = exponential_of(bits);
    }
    if (least == few) return;
    // Two in a million are so small that 31 bits tell them badly from each other: they get more.
    for (std::size_t k = 0; k < size; ++k) {
        const auto i = static_cast<std::uint32_t>(counter[k]);
        const std::int32_t bits = random_bits31(key, i);
        if (bits < few) out[k] = static_cast<float>((bits + uniform(key, i)) * 0x1p-31);
    }
}

}  // namespace adasdca
