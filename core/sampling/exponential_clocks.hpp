// The rings of clocks before a horizon: drawn clock by clock, then put in order. See planner.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "sampling/random.hpp"
#include "system/memory_pool.hpp"
#include "system/parallel.hpp"

namespace adasdca::clocks {

// As many integers as one instruction compares: GCC takes wider vectors apart badly (12 ns a ring
// more with AVX2, 6 ns with SSE).
#if defined(__AVX512F__)
constexpr std::size_t lanes = 16;
#elif defined(__AVX2__)
constexpr std::size_t lanes = 8;
#else
constexpr std::size_t lanes = 4;
#endif

// place[l] = the number of keys less than key[k + l]; `key` and `place` are aligned to the lanes.
inline void count_less(const std::int32_t* key, std::size_t size, std::size_t k,
                       std::int32_t* place) {
#if ADASDCA_GNU
    // (The loop below keeps its sums in memory with AVX2: 3 ns a ring more.)
    typedef std::int32_t Vector __attribute__((vector_size(4 * lanes), may_alias));
    const Vector mine = *reinterpret_cast<const Vector*>(key + k);
    Vector count = {};
    for (std::size_t j = 0; j < size; ++j) count -= key[j] < mine;
    *reinterpret_cast<Vector*>(place) = count;
#else
    std::fill_n(place, lanes, 0);
    for (std::size_t j = 0; j < size; ++j)
        for (std::size_t l = 0; l < lanes; ++l) place[l] += key[j] < key[k + l];
#endif
}

template <class T>
void reserve(Buffer<T>& buffer, std::size_t size) {
    if (buffer.size() < size) buffer.resize(size);
}

// Copies what rang before the horizon, of three arrays at once; returns its number. Every element
// is written, up to `lanes` too many, and those that rang stay: no branch to mispredict. The copy
// of `gap` may overlap its source if it lies before it.
template <class Real>
std::size_t keep(const Real* next, const Real* gap, const std::int32_t* clock, std::size_t size,
                 Real* kept_next, Real* kept_gap, std::int32_t* kept_clock) {
    std::size_t kept = 0, k = 0;
#ifdef __AVX512F__
    // Compressed in registers (1 ns less than the loop below), not into memory: Zen 4 is slow
    // there.
    if constexpr (std::is_same_v<Real, float>)
        for (; k + lanes <= size; k += lanes) {
            const __m512 t = _mm512_loadu_ps(next + k), g = _mm512_loadu_ps(gap + k);
            const __m512i c = _mm512_loadu_si512(clock + k);
            const __mmask16 rang = _mm512_cmp_ps_mask(t, _mm512_set1_ps(1.0f), _CMP_LT_OQ);
            _mm512_storeu_ps(kept_next + kept, _mm512_maskz_compress_ps(rang, t));
            _mm512_storeu_ps(kept_gap + kept, _mm512_maskz_compress_ps(rang, g));
            _mm512_storeu_si512(kept_clock + kept, _mm512_maskz_compress_epi32(rang, c));
            kept += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(rang)));
        }
#endif
    for (; k < size; ++k) {
        kept_next[kept] = next[k];
        kept_gap[kept] = gap[k];
        kept_clock[kept] = clock[k];
        kept += next[k] < 1;
    }
    return kept;
}

// Real is float for speed, or double for clocks that a float cannot tell apart.
template <class Real>
class ExponentialClocks {
  public:
    // All rings before `time`, level by level: all first rings, then the second rings of the clocks
    // that had a first one, and so on; returns their number. The unit of time is the horizon.
    std::size_t draw(std::span<const double> rate, double m, double time, std::uint64_t key,
                     StopToken& token) {
        constexpr std::size_t block = 512, blocks_per_check = 128;
        for (std::size_t k = all_.size(); k < rate.size(); ++k)
            all_.push_back(static_cast<std::int32_t>(k));
        reserve(gap_, rate.size() + lanes);
        size_ = 0;
        std::size_t count = rate.size();
        double slower = 1;
        for (std::uint64_t level = 0; count > 0; ++level, slower *= m) {
            const std::uint64_t stream = subkey(key, level);
            // From the level, not from the last one: for m near 1 the roundings would add up.
            const auto factor = static_cast<Real>(slower);
            reserve(time_, size_ + count + lanes);
            reserve(clock_, size_ + count + lanes);
            const std::int32_t* clock = level == 0 ? all_.data() : clock_.data() + size_ - count;
            const Real* before = level == 0 ? nullptr : time_.data() + size_ - count;
            std::size_t kept = 0;
            for (std::size_t begin = 0; begin < count; begin += block) {
                if (begin % (block * blocks_per_check) == 0 && token.stop()) return 0;
                const std::size_t length = std::min(block, count - begin);
                Real next[block], gap[block];
                exponentials(stream, clock + begin, length, next);
                if (level == 0) {
                    for (std::size_t k = 0; k < length; ++k) {
                        // A rate below 1e-30 of the horizon's does not ring.
                        gap[k] = 1 / static_cast<Real>(std::max(rate[begin + k] * time, 1e-30));
                        next[k] = std::max(next[k] * gap[k], earliest);
                    }
                } else {
                    for (std::size_t k = 0; k < length; ++k) {
                        gap[k] = gap_[begin + k];
                        next[k] = before[begin + k] + next[k] * (gap[k] * factor);
                    }
                }
                const std::size_t end = size_ + kept;
                kept += keep(next, gap, clock + begin, length, time_.data() + end,
                             gap_.data() + kept, clock_.data() + end);
            }
            size_ += kept;
            count = kept;
        }
        return size_;
    }

    // The clocks of the first rings, in the order of time.
    void order(std::span<std::int32_t> indices) {
        reserve(ring_, size_);
        if constexpr (std::is_same_v<Real, float>) {
            divide();
            scatter();
            for (std::size_t cell = 0, begin = 0; begin < indices.size(); begin = end_[cell++])
                order_cell(begin, end_[cell], indices);
        } else {
            for (std::size_t k = 0; k < size_; ++k) ring_[k] = {time_[k], clock_[k]};
            std::sort(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(size_));
            for (std::size_t k = 0; k < indices.size(); ++k) indices[k] = ring_[k].second;
        }
    }

  private:
    // A float's time as its bits, which sort like the number, above the clock.
    using Ring = std::conditional_t<std::is_same_v<Real, float>, std::uint64_t,
                                    std::pair<Real, std::int32_t>>;

    // Times are sorted into cells. An octave of time has 2**(23 - shift) of them, by the upper bits
    // of the mantissa; `cell` is where they start, less the bits of the exponent.
    struct Octave {
        std::uint32_t cell, shift;
    };
    static constexpr std::uint32_t octaves = 120, first = 127 - octaves;
    static constexpr Real earliest = std::is_same_v<Real, float> ? Real(0x1p-120) : Real(0);
    // Measured from 8 to 32: small cells cost loop ends, large ones comparisons.
    static constexpr std::uint32_t in_cell = lanes == 16 ? 32 : 16, most_in_cell = 256;

    static std::uint32_t bits(float time) { return std::bit_cast<std::uint32_t>(time); }

    std::uint32_t cell(std::uint32_t bits) const {
        const Octave octave = octave_[(bits >> 23) - first];
        return octave.cell + (bits >> octave.shift);
    }

    // So many cells that each holds about `in_cell` rings at most, judged by a sample of them.
    void divide() {
        std::array<std::uint32_t, octaves> seen{};
        const std::size_t stride = 1 + size_ / 1024;
        for (std::size_t k = 0; k < size_; k += stride) ++seen[(bits(time_[k]) >> 23) - first];
        std::uint32_t cells = 0;
        for (std::uint32_t o = 0; o < octaves; ++o) {
            const auto upper = std::bit_width((seen[o] + 1) * stride / in_cell);
            const std::uint32_t shift = 23 - std::min(static_cast<std::uint32_t>(upper), 23u);
            octave_[o] = {cells - ((first + o) << (23 - shift)), shift};
            cells += 1u << (23 - shift);
        }
        end_.assign(cells, 0);
    }

    // A counting sort by cells. (Two scatters, into few large cells and then within them, are no
    // faster on half a million rings.)
    void scatter() {
        for (std::size_t k = 0; k < size_; ++k) ++end_[cell(bits(time_[k]))];
        std::uint32_t sum = 0;
        for (std::uint32_t& end : end_) sum += std::exchange(end, sum);
        for (std::size_t k = 0; k < size_; ++k) {
            const std::uint32_t at = bits(time_[k]);
            ring_[end_[cell(at)]++] =
                static_cast<std::uint64_t>(at) << 32 | static_cast<std::uint32_t>(clock_[k]);
        }
    }

    // A ring's place is the number of rings before it. Insertion would do with fewer comparisons,
    // but takes 5 ns a ring more, even in smaller cells, because it branches by chance.
    void order_cell(std::size_t begin, std::size_t end, std::span<std::int32_t> indices) {
        Ring* ring = ring_.data() + begin;
        const std::size_t size = end - begin;
        if (size > most_in_cell || end > indices.size()) {
            std::sort(ring, ring + size);
            const std::size_t wanted = std::min(size, indices.size() - begin);
            for (std::size_t k = 0; k < wanted; ++k)
                indices[begin + k] = static_cast<std::int32_t>(ring[k] & 0xFFFFFFFFu);
            return;
        }
        // The mantissa, above a number that makes equal ones differ.
        alignas(4 * lanes) std::int32_t key[most_in_cell + lanes], place[lanes];
        for (std::size_t k = 0; k < size; ++k)
            key[k] = static_cast<std::int32_t>((ring[k] >> 32 << 8 & 0x7FFFFFFFu) | k);
        std::fill_n(key + size, lanes, 0);
        for (std::size_t k = 0; k < size; k += lanes) {
            count_less(key, size, k, place);
            const std::size_t length = std::min(lanes, size - k);
            for (std::size_t l = 0; l < length; ++l)
                indices[begin + static_cast<std::size_t>(place[l])] =
                    static_cast<std::int32_t>(ring[k + l] & 0xFFFFFFFFu);
        }
    }

    std::size_t size_ = 0;
    Buffer<Real> time_, gap_;  // of all rings; of the clocks of a level
    Buffer<std::int32_t> all_, clock_;
    Buffer<Ring> ring_;
    std::array<Octave, octaves> octave_{};
    Buffer<std::uint32_t> end_;
};

}  // namespace adasdca::clocks
