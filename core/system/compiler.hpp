// What compilers are told beside the language, in one place. GCC and clang know all of it; others,
// MSVC among them, get the same results from the language alone. Compiled with -DADASDCA_GNU=0, the
// spellings for others can be tried with any compiler. The `omp simd` pragmas are ignored there.
#pragma once

#include <cstdint>

#ifndef ADASDCA_GNU
#if defined(__GNUC__) || defined(__clang__)
#define ADASDCA_GNU 1
#else
#define ADASDCA_GNU 0
#endif
#endif

#if ADASDCA_GNU
#define ADASDCA_PREFETCH(address) __builtin_prefetch(address, 1, 3)
// GCC takes a function that only prefetches for one without effect and drops the call unless
// inlined; and where a unit is large, it leaves calls in loops that are only vectorised without.
// ADASDCA_INLINED is for lambdas, after their parameters.
#define ADASDCA_INLINE [[gnu::always_inline]] inline
#define ADASDCA_INLINED __attribute__((always_inline))
#define ADASDCA_NOINLINE [[gnu::noinline]]
#elif defined(_MSC_VER)
#include <intrin.h>
#define ADASDCA_PREFETCH(address) ((void)(address))
#define ADASDCA_INLINE __forceinline
#define ADASDCA_INLINED [[msvc::forceinline]]
#define ADASDCA_NOINLINE __declspec(noinline)
#else
#define ADASDCA_PREFETCH(address) ((void)(address))
#define ADASDCA_INLINE inline
#define ADASDCA_INLINED
#define ADASDCA_NOINLINE
#endif

// Before a loop: unroll it so many times.
#if ADASDCA_GNU && defined(__clang__)
#define ADASDCA_UNROLL(times) _Pragma("unroll")
#elif ADASDCA_GNU
#define ADASDCA_UNROLL_TEXT(text) _Pragma(#text)
#define ADASDCA_UNROLL(times) ADASDCA_UNROLL_TEXT(GCC unroll times)
#else
#define ADASDCA_UNROLL(times)
#endif

namespace adasdca {

// The upper 64 bits of a product.
inline std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#if ADASDCA_GNU && defined(__SIZEOF_INT128__)
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    return __umulh(a, b);
#else
    const std::uint64_t low = 0xFFFFFFFFu;
    const std::uint64_t cross = (a >> 32) * (b & low), other = (a & low) * (b >> 32);
    const std::uint64_t carry = ((a & low) * (b & low) >> 32) + (cross & low) + (other & low);
    return (a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32) + (carry >> 32);
#endif
}

}  // namespace adasdca
