// sum of h (x - m)(x - m)^T of dense rows with one more feature that is 1, up to 64 features in
// all, in one read of X, by the tensor cores' products of doubles.
typedef VALUE_TYPE Real;
typedef long long Long;
constexpr int PAIRS = TILES * (TILES + 1) / 2;

// c += a b for tiles of 8 x 4 and 4 x 8. Lane l holds a[l / 4][l % 4] and b[l % 4][l / 4], which is
// the same entry of X where both are tiles of the same rows, and c[l / 4][2 (l % 4) + 0, 1].
__device__ void multiply_add(double (&c)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
}

extern "C" __global__ void __launch_bounds__(128)
    narrow_gram(const Real* __restrict__ X, const double* __restrict__ h,
                const double* __restrict__ m, double* __restrict__ out, Long n, int d) {
    __shared__ double all[PAIRS][64];
    const int lane = threadIdx.x % 32, k = lane % 4, f = lane / 4, warp = threadIdx.x / 32;
    const Long stride = (Long)gridDim.x * (blockDim.x / 32) * 4 * GROUPS;
    double sum[PAIRS][2] = {};
    double centre[TILES];
#pragma unroll
    for (int t = 0; t < TILES; ++t) centre[t] = m && 8 * t + f < d ? m[8 * t + f] : 0.0;

    Real next[GROUPS][TILES];
    double weight[GROUPS];
    const auto load = [&](Long first) {
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            const Long i = first + 4 * g + k;
            weight[g] = i < n ? h[i] : 0.0;
            const Real* row = X + (i < n ? i : n - 1) * d;
#pragma unroll
            for (int t = 0; t < TILES; ++t)
                next[g][t] = 8 * t + f < d ? row[8 * t + f] : Real(8 * t + f == d);
        }
    };
    Long first = (blockIdx.x * (Long)(blockDim.x / 32) + warp) * 4 * GROUPS;
    load(first);
    for (; first < n; first += stride) {
        double x[GROUPS][TILES], now[GROUPS];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            now[g] = weight[g];
#pragma unroll
            for (int t = 0; t < TILES; ++t) x[g][t] = next[g][t] - centre[t];
        }
        load(first + stride);
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            int pair = 0;
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                const double scaled = now[g] * x[g][t];
#pragma unroll
                for (int s = 0; s <= t; ++s) multiply_add(sum[pair++], scaled, x[g][s]);
            }
        }
    }
    // The warps of a block add up in turn, and the blocks afterwards.
    for (int turn = 0; turn < blockDim.x / 32; ++turn) {
        __syncthreads();
        if (warp != turn) continue;
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                double& at = all[p][8 * f + 2 * k + e];
                at = turn ? at + sum[p][e] : sum[p][e];
            }
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < PAIRS * 64; e += blockDim.x)
        out[blockIdx.x * (Long)(PAIRS * 64) + e] = all[e / 64][e % 64];
}
