// What compilers are told about functions.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define ADASDCA_PREFETCH(address) __builtin_prefetch(address, 1, 3)
// GCC takes a function that only prefetches for one without effect and drops the call unless
// inlined; and where a unit is large, it leaves calls in loops that are only vectorised without.
#define ADASDCA_INLINE [[gnu::always_inline]] inline
#else
#define ADASDCA_PREFETCH(address) ((void)(address))
#define ADASDCA_INLINE inline
#endif
