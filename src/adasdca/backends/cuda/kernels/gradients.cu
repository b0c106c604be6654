// Iterations of conjugate gradients whose numbers stay on the device: nobody waits for them.
//
// Unknowns are a vector x of d numbers and one number y, with the preconditioner (1/scale, 1/mass).
// A state is an array of the numbers below; an iteration reads one and writes the next. Sums are
// of parts that every block adds in the same order.
typedef long long Long;
enum { ENERGY, GOAL, STOPPED, TAKEN, P_Y, R_Y, Y, STATE };
// What a step has found: its length, whether there is none, and the second part of A p.
enum { LENGTH, NONE, Q_Y };

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

// image = h (image + p_y), and the parts of its sum.
extern "C" __global__ void weigh(double* image, const double* h, const double* state, double* parts,
                                Long n) {
    const double shift = state[P_Y];
    double sum = 0;
    EACH(i, n) {
        image[i] = h[i] * (image[i] + shift);
        sum += image[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
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
                                int n_bends, const double* images, int n_images, int free,
                                double* found, double* parts, Long d) {
    const double q_y = free ? sum_of(images, n_images) : 0.0;
    const double curvature = sum_of(bends, n_bends) + state[P_Y] * q_y;
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
    found[Q_Y] = q_y;
}

// p = r/scale + ratio p, and the next state.
extern "C" __global__ void turn(double* p, const double* r, const double* scale, double mass,
                                const double* state, const double* found, const double* parts,
                                int count, double* next, Long d) {
    const double sum = sum_of(parts, count);
    const bool first = blockIdx.x == 0 && threadIdx.x == 0;
    if (found[NONE] != 0) {
        if (first) {
            for (int k = 0; k < STATE; ++k) next[k] = state[k];
            next[STOPPED] = 1;
        }
        return;
    }
    const double r_y = state[R_Y] - found[LENGTH] * found[Q_Y], z_y = r_y / mass;
    const double energy = sum + r_y * z_y, ratio = energy / state[ENERGY];
    EACH(j, d) p[j] = r[j] / scale[j] + ratio * p[j];
    if (!first) return;
    next[ENERGY] = energy;
    next[GOAL] = state[GOAL];
    next[STOPPED] = 0;
    next[TAKEN] = state[TAKEN] + 1;
    next[P_Y] = z_y + ratio * state[P_Y];
    next[R_Y] = r_y;
    next[Y] = state[Y] + found[LENGTH] * state[P_Y];
}
