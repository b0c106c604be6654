// A counter-based generator: number k of stream `key` is a function of (key, k) alone, so that
// draws can be made in any order, in parallel, and again. SplitMix64 (Steele, Lea and Flood, 2014).
#pragma once

#include <bit>
#include <cstdint>

#include "elementary.hpp"

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
    return static_cast<std::uint64_t>(
        (static_cast<unsigned __int128>(random_bits(key, counter)) * n) >> 64);
}

}  // namespace adasdca
