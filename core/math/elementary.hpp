// exp, log and log1p in double, without branches, so that loops over rows vectorise.
// Accuracy is about one unit in the last place on the ranges stated; the tests hold them to it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "system/compiler.hpp"

namespace adasdca {

// 2**-1022 < exp(x) < inf; arguments beyond +-708 are clamped, which the losses cannot tell from
// the truth.
ADASDCA_INLINE double fast_exp(double x) {
    constexpr double log2e = 1.44269504088896340736;
    constexpr double ln2_high =
        6.93147180369123816490e-01;  // 33 bits, so that k * ln2_high is exact
    constexpr double ln2_low = 1.90821492927058770002e-10;
    constexpr double shifter =
        6755399441055744.0;  // 1.5 * 2**52: adding it rounds to the nearest integer
    x = x < -708.0 ? -708.0 : x;
    x = x > 708.0 ? 708.0 : x;
    const double shifted = x * log2e + shifter;
    const double k = shifted - shifter;
    const double r = (x - k * ln2_high) - k * ln2_low;
    // Taylor to degree 13: |r| <= ln(2)/2, the remainder is below 5e-18. Summed in pairs (Estrin):
    // one chain of 13 fused steps would be most of the latency of a scalar call.
    const double r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    const double p01 = 1.0 + r;
    const double p23 = 1.0 / 2 + r * (1.0 / 6);
    const double p45 = 1.0 / 24 + r * (1.0 / 120);
    const double p67 = 1.0 / 720 + r * (1.0 / 5040);
    const double p89 = 1.0 / 40320 + r * (1.0 / 362880);
    const double pab = 1.0 / 3628800 + r * (1.0 / 39916800);
    const double pcd = 1.0 / 479001600 + r * (1.0 / 6227020800.0);
    const double low = p01 + (r2 * p23 + r4 * (p45 + r2 * p67));
    const double p = low + r8 * ((p89 + r2 * pab) + r4 * pcd);
    const std::uint64_t power =
        (std::bit_cast<std::uint64_t>(shifted) << 52) + 0x3FF0000000000000ULL;
    return p * std::bit_cast<double>(power);
}

// Natural logarithm of a positive, normal number (fdlibm's e_log.c, straightened).
ADASDCA_INLINE double fast_log(double x) {
    constexpr double ln2_high = 6.93147180369123816490e-01;
    constexpr double ln2_low = 1.90821492927058770002e-10;
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    // Shift so that the mantissa lies in [sqrt(1/2), sqrt(2)).
    const std::uint64_t offset = bits - 0x3FE6A09E667F3BCDULL;
    const std::int64_t exponent = static_cast<std::int64_t>(offset) >> 52;
    const double f =
        std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52)) - 1.0;
    // int64 -> double by the same shifter, because AVX2 has no such conversion.
    const double k =
        std::bit_cast<double>(static_cast<std::uint64_t>(exponent) + 0x4338000000000000ULL) -
        6755399441055744.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    double r = 1.479819860511658591e-01;
    r = r * z + 1.531383769920937332e-01;
    r = r * z + 1.818357216161805012e-01;
    r = r * z + 2.222219843214978396e-01;
    r = r * z + 2.857142874366239149e-01;
    r = r * z + 3.999999999940941908e-01;
    r = r * z + 6.666666666666735130e-01;
    r = r * z;
    const double half_square = 0.5 * f * f;
    return k * ln2_high - ((half_square - (s * (half_square + r) + k * ln2_low)) - f);
}

// log(1 + x) for 0 <= x <= 1: the rounding of 1 + x is put back to first order.
ADASDCA_INLINE double fast_log1p(double x) {
    const double u = 1.0 + x;
    return fast_log(u) + (x - (u - 1.0)) * (1.0 / u);
}

// x log x, continuous at 0.
ADASDCA_INLINE double x_log_x(double x) {
    const double safe = x > 1e-300 ? x : 1e-300;
    return x * fast_log(safe);
}

}  // namespace adasdca
