// The instruction-set level of the processor that runs this.
#pragma once

namespace adasdca {

inline int supported_level() {
#ifdef ADASDCA_X86_LEVELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return 4;
    if (__builtin_cpu_supports("x86-64-v3")) return 3;
    if (__builtin_cpu_supports("x86-64-v2")) return 2;
#endif
    return 0;
}

}  // namespace adasdca
