// Iterations of conjugate gradients whose numbers stay on the device: nobody waits for them.
//
// The preconditioner is 1/scale. A state is an array of the numbers below; an iteration reads one
// and writes the next. Sums are of parts that every block adds in the same order.
typedef long long Long;
enum { ENERGY, GOAL, STOPPED, TAKEN, GAINED, STATE };
// What a step has found: its length, and whether there is none.
enum { LENGTH, NONE };

#define EACH(j, d) \
    for (Long j = blockIdx.x * (Long)THREADS + threadIdx.x; j < d; j += (Long)gridDim.x * THREADS)

// The sum of all threads' numbers, for all of them.
__device__ double block_sum(double x) {
    __shared__ double all[THREADS];
    __syncthreads();
    all[threadIdx.x] = x;
    for (int o = THREADS / 2; o > 0; o /= 2) {
        __syncthreads();
        if (threadIdx.x < o) all[threadIdx.x] += all[threadIdx.x + o];
    }
    __syncthreads();
    return all[0];
}

// Up to THREADS parts.
__device__ double sum_of(const double* parts, int count) {
    return block_sum(threadIdx.x < count ? parts[threadIdx.x] : 0.0);
}

// image = h (image - mean.p), of which there are the parts.
extern "C" __global__ void weigh(double* image, const double* h, const double* shifts, int count,
                                Long n) {
    const double shift = sum_of(shifts, count);
    EACH(i, n) image[i] = h[i] * (image[i] - shift);
}

// q += own p, and the parts of p.q.
extern "C" __global__ void meet(double* q, const double* own, const double* p, double* parts,
                                Long d) {
    double sum = 0;
    EACH(j, d) {
        q[j] += own[j] * p[j];
        sum += p[j] * q[j];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// x += length p, r -= length q, and the parts of r.r/scale.
extern "C" __global__ void move(double* x, double* r, const double* p, const double* q,
                                const double* scale, const double* state, const double* bends,
                                int count, double* found, double* parts, Long d) {
    const double curvature = sum_of(bends, count);
    const bool none = state[STOPPED] != 0 || state[ENERGY] <= state[GOAL] || !(curvature > 0);
    const double length = none ? 0.0 : state[ENERGY] / curvature;
    double sum = 0;
    EACH(j, d) {
        if (!none) {
            x[j] += length * p[j];
            r[j] -= length * q[j];
        }
        sum += r[j] * r[j] / scale[j];
    }
    sum = block_sum(sum);
    if (threadIdx.x > 0) return;
    parts[blockIdx.x] = sum;
    if (blockIdx.x > 0) return;
    found[LENGTH] = length;
    found[NONE] = none;
}

// p = r/scale + ratio p, the parts of mean.p, and the next state.
extern "C" __global__ void turn(double* p, const double* r, const double* scale, const double* mean,
                                double share, const double* state, const double* found,
                                const double* parts, int count, double* next, double* shifts,
                                Long d) {
    const double energy = sum_of(parts, count), ratio = energy / state[ENERGY];
    const bool first = blockIdx.x == 0 && threadIdx.x == 0;
    if (found[NONE] != 0) {
        if (first) {
            for (int k = 0; k < STATE; ++k) next[k] = state[k];
            next[STOPPED] = 1;
        }
        return;
    }
    double shift = 0;
    EACH(j, d) {
        p[j] = r[j] / scale[j] + ratio * p[j];
        if (mean) shift += mean[j] * p[j];
    }
    shift = block_sum(shift);
    if (threadIdx.x == 0) shifts[blockIdx.x] = shift;
    if (!first) return;
    const double gain = 0.5 * found[LENGTH] * state[ENERGY], taken = state[TAKEN] + 1;
    const double gained = state[GAINED] + gain;
    next[ENERGY] = energy;
    next[GOAL] = taken > 2 && taken * gain <= share * gained ? energy : state[GOAL];
    next[STOPPED] = 0;
    next[TAKEN] = taken;
    next[GAINED] = gained;
}
