// The losses of the core, their very text, and what it takes to compile that on a device.
namespace device {
__device__ double max(double a, double b) {
    return a < b ? b : a;
}
__device__ double min(double a, double b) {
    return b < a ? b : a;
}
__device__ double abs(double x) {
    return ::fabs(x);
}
__device__ double copysign(double x, double y) {
    return ::copysign(x, y);
}
template <class T>
struct numeric_limits {
    __device__ static T infinity() { return __longlong_as_double(0x7ff0000000000000LL); }
};
}  // namespace device

#define ADASDCA_INLINE
__device__ double fast_exp(double x) {
    return exp(x);
}
__device__ double fast_log(double x) {
    return log(x);
}
__device__ double fast_log1p(double x) {
    return log1p(x);
}
__device__ double x_log_x(double x) {
    return x > 1e-300 ? x * log(x) : 0.0;
}

#include "loss.hpp"

typedef long long Long;
constexpr double unit_roundoff = 1.1102230246251565e-16;

#define PARAMETERS double gamma, double epsilon, double lower, double upper
#if LOGISTIC
#define THE_LOSS \
    const Logistic loss {}
#else
#define THE_LOSS                             \
    const PiecewiseQuadratic loss {          \
        MARGIN, gamma, epsilon, lower, upper \
    }
#endif
#define EACH_ROW(i) \
    for (Long i = blockIdx.x * (Long)THREADS + threadIdx.x; i < n; i += (Long)gridDim.x * THREADS)

__device__ double sign_of(double y) {
    return MARGIN ? y : 1.0;
}
__device__ double target_of(double y) {
    return MARGIN ? 1.0 : y;
}
