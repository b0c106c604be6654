// Two products with dense rows in one read: x_i.v + shift, then the sum of r_i x_i, where r_i is
//   LINE:    c times -phi' at score_i + (x_i.v + shift), the end of a Newton step,
//   CURVE:   h_i (x_i.v + shift), a product with the matrix of a step,
//   COMBINE: given, and there is no first product,
//   SCORES:  of no interest, and there is no second product,
//   SQUARES: given, and the first product is with the squares of x_i.
// WIDTH threads have a row, PER columns each; the next row is loaded while one is worked on.
#include "losses.cuh"

typedef VALUE_TYPE Real;

extern "C" __global__ void __launch_bounds__(THREADS)
    fused(const Real* __restrict__ X, const double* __restrict__ v, double shift,
          const double* __restrict__ given, const double* __restrict__ centre, double length,
          const double* __restrict__ y, const double* __restrict__ c, PARAMETERS,
          double* __restrict__ image, double* __restrict__ out, Long n, int d) {
    constexpr int GROUPS = THREADS / WIDTH;
    __shared__ double at[WIDTH * PER];
    const int lane = threadIdx.x % WIDTH, group = threadIdx.x / WIDTH;
    const unsigned mask =
        WIDTH == 32 ? 0xffffffffu : ((1u << WIDTH) - 1u) << ((threadIdx.x % 32) / WIDTH * WIDTH);
#if LINE
    THE_LOSS;
#endif
#if !COMBINE
    for (int j = threadIdx.x; j < WIDTH * PER; j += THREADS) at[j] = j < d ? v[j] : 0.0;
    __syncthreads();
#endif
    double sum[PER] = {};
    Real next[PER];
    const auto load = [&](Long i) {
        const Real* row = X + (i < n ? i : n - 1) * d;
#pragma unroll
        for (int k = 0; k < PER; ++k)
            next[k] = lane + k * WIDTH < d ? row[lane + k * WIDTH] : Real(0);
    };
    const Long stride = (Long)gridDim.x * GROUPS;
    Long i = blockIdx.x * (Long)GROUPS + group;
    load(i);
    for (; i < n; i += stride) {
        double x[PER];
#pragma unroll
        for (int k = 0; k < PER; ++k) x[k] = next[k];
        load(i + stride);
#if COMBINE
        const double r = given[i];
#else
        double dot = 0;
#pragma unroll
        for (int k = 0; k < PER; ++k) dot += (SQUARES ? x[k] * x[k] : x[k]) * at[lane + k * WIDTH];
#pragma unroll
        for (int o = WIDTH / 2; o > 0; o /= 2) dot += __shfl_xor_sync(mask, dot, o, WIDTH);
        dot += shift;
#if LINE
        const double sign = sign_of(y[i]), target = target_of(y[i]), weight = c ? c[i] : 1.0;
        const double own = loss.rounded_ascent(sign * (given[i] + dot), target, length,
                                               centre ? sign * centre[i] : 0.0);
        const double r = weight * sign * own;
        if (lane == 0) image[i] = dot;
#elif SCORES
        if (lane == 0) image[i] = dot;
#elif SQUARES
        const double r = given[i];
        if (lane == 0) image[i] = dot;
#else
        const double r = given[i] * dot;
        if (lane == 0) image[i] = r;
#endif
#endif
#if !SCORES
#pragma unroll
        for (int k = 0; k < PER; ++k) sum[k] += r * x[k];
#endif
    }
#if !SCORES
    // The groups of a warp add up, then the warps of a block in turn, and the blocks afterwards.
    const int warp = threadIdx.x / 32;
    for (int turn = 0; turn < THREADS / 32; ++turn) {
        __syncthreads();
        if (warp != turn) continue;
#pragma unroll
        for (int k = 0; k < PER; ++k) {
#pragma unroll
            for (int o = WIDTH; o < 32; o *= 2) sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], o);
            double& total = at[lane + k * WIDTH];
            if (threadIdx.x % 32 < WIDTH) total = turn ? total + sum[k] : sum[k];
        }
    }
    __syncthreads();
    for (int j = threadIdx.x; j < d; j += THREADS) out[blockIdx.x * (Long)d + j] = at[j];
#endif
}
