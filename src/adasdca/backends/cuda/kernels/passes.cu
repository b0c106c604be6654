// Passes over vectors of n numbers: losses of all rows and their sums.
//
// Sums are taken in twice the digits, in an order that depends on n alone: a run repeats bit for
// bit on the same device.
#include "losses.cuh"

// K sums in twice the digits, and a maximum. No product may be fused into an addition here.
template <int K>
struct Sums {
    double high[K], low[K], most;

    __device__ Sums() : most(0) {
#pragma unroll
        for (int k = 0; k < K; ++k) high[k] = low[k] = 0;
    }

    __device__ void add(int k, double x) {
        const double sum = __dadd_rn(high[k], x), back = __dadd_rn(sum, -high[k]);
        const double lost =
            __dadd_rn(__dadd_rn(high[k], -__dadd_rn(sum, -back)), __dadd_rn(x, -back));
        low[k] = __dadd_rn(low[k], lost);
        high[k] = sum;
    }

    __device__ void add(int k, double a, double b) {
        const double product = __dmul_rn(a, b);
        low[k] = __dadd_rn(low[k], __fma_rn(a, b, -product));
        add(k, product);
    }

    __device__ void see(double x) { most = x > most ? x : most; }

    // The block's sums become its first thread's.
    __device__ void gather() {
        __shared__ double highs[THREADS], lows[THREADS];
        const int me = threadIdx.x;
#pragma unroll
        for (int k = 0; k <= K; ++k) {
            __syncthreads();
            highs[me] = k < K ? high[k] : most;
            lows[me] = k < K ? low[k] : 0;
            for (int o = THREADS / 2; o > 0; o /= 2) {
                __syncthreads();
                if (me >= o) continue;
                if (k < K) {
                    add(k, highs[me + o]);
                    low[k] = __dadd_rn(low[k], lows[me + o]);
                    highs[me] = high[k];
                    lows[me] = low[k];
                } else {
                    see(highs[me + o]);
                    highs[me] = most;
                }
            }
        }
    }

    __device__ void store(double* out) {
        gather();
        if (threadIdx.x > 0) return;
        out += (2 * K + 1) * (Long)blockIdx.x;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            out[2 * k] = high[k];
            out[2 * k + 1] = low[k];
        }
        out[2 * K] = most;
    }
};

// Add what the blocks have stored: K sums, and the maximum.
template <int K>
__device__ void finish_sums(const double* parts, int count, double* out) {
    Sums<K> sums;
    for (int p = threadIdx.x; p < count; p += THREADS) {
        const double* part = parts + (2 * K + 1) * (Long)p;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            sums.add(k, part[2 * k]);
            sums.low[k] = __dadd_rn(sums.low[k], part[2 * k + 1]);
        }
        sums.see(part[2 * K]);
    }
    sums.gather();
    if (threadIdx.x > 0) return;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const double sum = sums.high[k];
        out[k] = isfinite(sum) ? sum + sums.low[k] : sum;  // an infinite sum has no rest
    }
    out[K] = sums.most;
}

extern "C" __global__ void finish1(const double* parts, int count, double* out) {
    finish_sums<1>(parts, count, out);
}
extern "C" __global__ void finish2(const double* parts, int count, double* out) {
    finish_sums<2>(parts, count, out);
}
extern "C" __global__ void finish3(const double* parts, int count, double* out) {
    finish_sums<3>(parts, count, out);
}
extern "C" __global__ void finish4(const double* parts, int count, double* out) {
    finish_sums<4>(parts, count, out);
}
extern "C" __global__ void finish6(const double* parts, int count, double* out) {
    finish_sums<6>(parts, count, out);
}

// Go from scores along a line, and derive the losses with kinks rounded over a length.
// Sums: c beta, c phi'', |t - z|, the rows with curvature; the largest |score|.
extern "C" __global__ void derive(const double* scores, const double* change, double step,
                                  const double* centre, double length, const double* y,
                                  const double* c, PARAMETERS, double* moved, double* beta,
                                  double* h, double* out, Long n) {
    THE_LOSS;
    Sums<4> sums;
    const double width = gamma + length;
    EACH_ROW(i) {
        const double sign = sign_of(y[i]), target = target_of(y[i]), weight = c ? c[i] : 1.0;
        const double score = change ? scores[i] + step * change[i] : scores[i];
        const double z = sign * score;
        const double own = loss.rounded_ascent(z, target, length, centre ? sign * centre[i] : 0.0);
        const double curved = width > 0 ? weight * loss.rounded_curvature(own, length) : 0.0;
        if (moved) moved[i] = score;
        beta[i] = sign * own;
        h[i] = curved;
        sums.add(0, weight, sign * own);
        sums.add(1, curved);
        sums.add(2, fabs(target - z));
        sums.add(3, curved > 0 ? 1.0 : 0.0);
        sums.see(fabs(score));
    }
    sums.store(out);
}

// Sums along a line: c beta dz, its size, c phi'' dz^2.
extern "C" __global__ void slope(const double* scores, const double* change, double step,
                                 const double* centre, double length, const double* y,
                                 const double* c, PARAMETERS, double* out, Long n) {
    THE_LOSS;
    Sums<3> sums;
    const double width = gamma + length;
    EACH_ROW(i) {
        const double sign = sign_of(y[i]), target = target_of(y[i]), weight = c ? c[i] : 1.0;
        const double dz = change[i], z = sign * (scores[i] + step * dz);
        const double own = loss.rounded_ascent(z, target, length, centre ? sign * centre[i] : 0.0);
        const double term = sign * own * dz;
        sums.add(0, weight, term);
        sums.add(1, weight * fabs(term));
        if (width > 0) sums.add(2, weight * loss.rounded_curvature(own, length) * dz * dz);
    }
    sums.store(out);
}

// Sums at scores + b: c beta, c |beta|, c phi''; and beta itself, if wanted.
extern "C" __global__ void balance(const double* scores, double b, const double* y, const double* c,
                                   PARAMETERS, double* beta, double* out, Long n) {
    THE_LOSS;
    Sums<3> sums;
    EACH_ROW(i) {
        const double sign = sign_of(y[i]), target = target_of(y[i]), weight = c ? c[i] : 1.0;
        const double z = sign * (scores[i] + b), own = loss.ascent(z, target);
        if (beta) beta[i] = sign * own;
        sums.add(0, weight, sign * own);
        sums.add(1, weight * fabs(own));
        sums.add(2, weight * loss.curvature(z, target));
    }
    sums.store(out);
}

// Of every row at scores + b: its share of the gap, c (phi + phi* + a beta), and c q times the size
// of its exact dual step.
extern "C" __global__ void shares(const double* scores, double b, const double* beta,
                                  const double* q, const double* y, const double* c, PARAMETERS,
                                  double* share, double* step, Long n) {
    THE_LOSS;
    EACH_ROW(i) {
        const double sign = sign_of(y[i]), z = sign * (scores[i] + b), own = sign * beta[i];
        const double weight = c ? c[i] : 1.0, target = target_of(y[i]);
        share[i] = weight * loss.excess(z, own, target);
        step[i] = weight * q[i] * fabs(loss.step(own, z, target, q[i]) - own);
    }
}

// The sum of c x.
extern "C" __global__ void total(const double* x, const double* c, double* out, Long n) {
    Sums<1> sums;
    EACH_ROW(i) sums.add(0, c ? c[i] : 1.0, x[i]);
    sums.store(out);
}

// Sums of duals by their sign: c max(beta, 0), c max(-beta, 0).
extern "C" __global__ void sides(const double* beta, const double* c, double* out, Long n) {
    Sums<2> sums;
    EACH_ROW(i) {
        const double weight = c ? c[i] : 1.0;
        sums.add(0, weight, device::max(beta[i], 0.0));
        sums.add(1, weight, device::max(-beta[i], 0.0));
    }
    sums.store(out);
}

// The rows' part of a certificate at scores + b: c phi, c (phi + phi* + a beta), what the rounding
// of the scores can add to the second and to the first, c |beta| |x|, c beta; the largest |t - z|.
extern "C" __global__ void certify(const double* scores, double b, const double* beta,
                                   const double* share, const double* norms, double norm_w,
                                   double outer, const double* y, const double* c, PARAMETERS,
                                   double* out, Long n) {
    THE_LOSS;
    Sums<6> sums;
    EACH_ROW(i) {
        const double sign = sign_of(y[i]), t = target_of(y[i]), weight = c ? c[i] : 1.0;
        const double z = sign * (scores[i] + b), own = sign * beta[i], s = loss.ascent(z, t);
        const double delta = norm_w * share[i] + 4.0 * unit_roundoff * (outer + fabs(z) + fabs(t));
        const double change = loss.variation(z, t, delta);
        sums.add(0, weight, loss.value(z, t));
        sums.add(1, weight, loss.excess(z, own, t));
        sums.add(2, weight, delta * (fabs(s - own) + change));
        sums.add(3, weight, delta * (fabs(s) + change));
        sums.add(4, weight, fabs(own) * norms[i]);
        sums.add(5, weight, beta[i]);
        sums.see(fabs(t - z));
    }
    sums.store(out);
}

// The same losses for themselves, as tests ask for them.
extern "C" __global__ void formulas(const double* z, const double* b, const double* t, PARAMETERS,
                                    double q, double* value, double* ascent, double* curvature,
                                    double* excess, double* rounded, Long n) {
    THE_LOSS;
    EACH_ROW(i) {
        value[i] = loss.value(z[i], t[i]);
        ascent[i] = loss.ascent(z[i], t[i]);
        curvature[i] = loss.curvature(z[i], t[i]);
        excess[i] = loss.excess(z[i], b[i], t[i]);
        rounded[i] = loss.rounded_ascent(z[i], t[i], q, b[i]);
    }
}
