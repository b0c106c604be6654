// Sums and products whose rounding is kept: about twice the digits of a double.
//
// The transformations are Knuth's and Dekker's; sums of n terms by them leave one rounding of the
// result and (n eps)^2 of the sum of sizes (T. Ogita, S. M. Rump and S. Oishi, "Accurate sum and
// dot product", SIAM Journal on Scientific Computing 26, 2005).
#pragma once

#include <cmath>

#include "system/compiler.hpp"

namespace adasdca {

// A product as it is rounded: contracted with the addition after it, it would be another number
// there than the one whose rounding is kept.
inline double rounded(double x) {
#if ADASDCA_GNU && defined(__x86_64__)
    __asm__("" : "+x"(x));
    return x;
#elif ADASDCA_GNU && defined(__aarch64__)
    __asm__("" : "+w"(x));
    return x;
#else
    volatile double fixed = x;
    return fixed;
#endif
}

struct Twofold {
    double sum = 0, rest = 0;

    void add(double x) {
        const double total = sum + x, back = total - sum;
        rest += (sum - (total - back)) + (x - back);
        sum = total;
    }
    void add_product(double a, double b) {
        const double product = rounded(a * b);
        add(product);
        rest += std::fma(a, b, -product);
    }
    Twofold& operator+=(const Twofold& other) {
        add(other.sum);
        rest += other.rest;
        return *this;
    }
    double value() const { return sum + rest; }
    double lost() const { return rest - (value() - sum); }  // by rounding to the value
};

}  // namespace adasdca
