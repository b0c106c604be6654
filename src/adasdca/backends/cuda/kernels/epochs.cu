// Mini-batches of dual coordinate ascent on sparse rows, many of them in one launch, whose blocks
// wait for each other.
//
// u is kept in integers, units of `unit`: these add up to the same number in any order, so that a
// solve repeats bit for bit. Each block finds the intercept of a batch by itself, from the same
// numbers in the same order.
#include "losses.cuh"

typedef VALUE_TYPE Real;
typedef unsigned long long Word;

// Newton steps on a piecewise linear function end at its root; in a bracket, halved if need be.
constexpr int MOST_EVALUATIONS = 60;

// Sums of three numbers of all threads, for all of them.
__device__ void block_sums(double (&x)[3]) {
    constexpr int WARPS = THREADS / 32;
    __shared__ double parts[WARPS][3];
    for (double& each : x)
        for (int o = 16; o > 0; o /= 2) each += __shfl_xor_sync(0xffffffffu, each, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        for (int k = 0; k < 3; ++k) parts[threadIdx.x / 32][k] = x[k];
    __syncthreads();
    for (int k = 0; k < 3; ++k) {
        x[k] = 0;
        for (int warp = 0; warp < WARPS; ++warp) x[k] += parts[warp][k];
    }
}

// Wait until all blocks have come here for the turn-th time.
__device__ void meet(unsigned* arrived, unsigned turn) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < turn * gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
}

// state: the intercept, and what is left of sum c beta.
extern "C" __global__ void __launch_bounds__(THREADS)
    ascend(const Long* __restrict__ start, const int* __restrict__ index,
           const Real* __restrict__ values, const double* __restrict__ y,
           const double* __restrict__ c, PARAMETERS, const double* __restrict__ curvature,
           const Long* __restrict__ order, Long count, int height, double mu, double unit, int free,
           int width, double* state, double* beta, Word* u, double* scores, unsigned* arrived) {
    THE_LOSS;
    __shared__ double own[HEIGHT], at[HEIGHT], q[HEIGHT], target[HEIGHT], weight[HEIGHT];
    const int lane = threadIdx.x % width, groups = gridDim.x * (THREADS / width);
    const int group = blockIdx.x * (THREADS / width) + threadIdx.x / width;
    const unsigned mask =
        width == 32 ? 0xffffffffu : ((1u << width) - 1u) << ((threadIdx.x % 32) / width * width);
    double b = state[0], balance = state[1];
    unsigned turn = 0;
    for (Long first = 0; first < count; first += height) {
        const int rows = count - first < height ? (int)(count - first) : height;
        // (No block writes to beta before all have read it here.)
        for (int r = threadIdx.x; r < rows; r += THREADS) {
            const Long i = order[first + r];
            own[r] = sign_of(y[i]) * __ldcg(beta + i);
            q[r] = curvature[i];
            target[r] = y[i];
            weight[r] = c ? c[i] : 1.0;
        }
        for (int r = group; r < rows; r += groups) {
            const Long i = order[first + r], last = start[i + 1];
            double sum = 0;
            for (Long k = start[i] + lane; k < last; k += width)
                sum += (double)values[k] * (unit * (double)(Long)__ldcg(u + index[k]));
            for (int o = width / 2; o > 0; o /= 2) sum += __shfl_xor_sync(mask, sum, o, width);
            if (lane == 0) __stcg(scores + r, sum);
        }
        meet(arrived, ++turn);
        for (int r = threadIdx.x; r < rows; r += THREADS) at[r] = __ldcg(scores + r);
        __syncthreads();
        const auto moved = [&](int r, double shift) {
            const double sign = sign_of(target[r]);
            return loss.step(own[r], sign * (at[r] + shift), target_of(target[r]), q[r]);
        };
        bool mended = true;
        if (free) {
            // The root of the falling function balance + sum c (new beta - beta) of the shift.
            const double before = b;
            double low = -1e300, high = 1e300, reach = 1e-3, left = 0;
            mended = false;
            for (int evaluation = 0; evaluation < MOST_EVALUATIONS; ++evaluation) {
                double sums[3] = {};  // of changes, of their sizes, and of what bends them
                for (int r = threadIdx.x; r < rows; r += THREADS) {
                    const double b_new = moved(r, b), change = b_new - own[r];
                    sums[0] += weight[r] * sign_of(target[r]) * change;
                    sums[1] += weight[r] * fabs(change);
                    sums[2] += weight[r] * loss.inside(b_new) / (loss.gamma + q[r]);
                }
                block_sums(sums);
                left = balance + sums[0];
                const double size = sums[1] + fabs(balance), curvature = sums[2];
                mended = fabs(left) <= 1e-13 * size;
                if (mended) break;
                (left > 0 ? low : high) = b;
                double next = curvature > 0 ? b + left / curvature : 2e300;
                if (!(next > low && next < high)) {
                    const bool inside = low > -1e300 && high < 1e300;
                    next = inside ? 0.5 * (low + high) : left > 0 ? b + reach : b - reach;
                    reach *= 8;
                }
                mended = next == b;
                if (mended) break;
                b = next;
            }
            // What is left cannot be mended by rows that are all at their bounds.
            if (mended)
                balance = left;
            else
                b = before;
        }
        for (int r = group; mended && r < rows; r += groups) {
            const Long i = order[first + r], last = start[i + 1];
            const double sign = sign_of(target[r]), b_new = moved(r, b);
            const double change = sign * weight[r] * (b_new - own[r]) / (mu * unit);
            if (lane == 0) __stcg(beta + i, sign * b_new);
            if (change == 0) continue;
            for (Long k = start[i] + lane; k < last; k += width)
                atomicAdd(u + index[k], (Word)__double2ll_rn(change * values[k]));
        }
        meet(arrived, ++turn);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        state[0] = b;
        state[1] = balance;
    }
}
