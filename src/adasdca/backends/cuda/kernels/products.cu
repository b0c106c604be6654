// Products with rows. Entries are read as they are stored, and all sums are of doubles, in an order
// that depends on the shape alone.
typedef VALUE_TYPE Real;
typedef long long Long;

// `width` neighbouring threads, a power of two up to 32, add their sums; the first one has it.
__device__ double together(double sum, int width) {
    const unsigned group =
        width == 32 ? 0xffffffffu : ((1u << width) - 1u) << ((threadIdx.x % 32) / width * width);
    for (int o = width / 2; o > 0; o /= 2) sum += __shfl_down_sync(group, sum, o, width);
    return sum;
}

__device__ double entry(Real value, int squared) {
    const double v = value;
    return squared ? v * v : v;
}

// out[s] = shift + sum of values[k] x[index[k]] over start[s] <= k < start[s + 1]; out[slot[s]] if
// there are slots. It takes little longer than the look-ups x[index[k]] alone (on an H200 0.60 ms
// of 0.52 and 0.76 of 0.69 for 88 million entries and vectors of 200,000 and 4 million numbers).
// Where x is long, entries, which are read once, are not to push it out of the cache.
extern "C" __global__ void segment_dot(const Long* __restrict__ start,
                                       const int* __restrict__ index,
                                       const Real* __restrict__ values,
                                       const double* __restrict__ x, double shift,
                                       double* __restrict__ out, const int* __restrict__ slot,
                                       Long count, int width, int squared, int is_long) {
    const Long s = (blockIdx.x * (Long)blockDim.x + threadIdx.x) / width;
    const int lane = threadIdx.x % width;
    if (s >= count) return;
    double sum = 0;
    const Long last = start[s + 1];
    if (is_long) {
#pragma unroll 4
        for (Long k = start[s] + lane; k < last; k += width)
            sum += entry(__ldcs(values + k), squared) * x[__ldcs(index + k)];
    } else {
#pragma unroll 4
        for (Long k = start[s] + lane; k < last; k += width)
            sum += entry(values[k], squared) * x[index[k]];
    }
    sum = together(sum, width);
    if (lane == 0) out[slot ? slot[s] : s] = sum + shift;
}

// out[c, s] = sum of values[k] x[index[k], c] over start[s] <= k < start[s + 1], of `classes`
// columns of x: `width` threads have a segment, and a column each at a time.
extern "C" __global__ void segment_dots(const Long* __restrict__ start,
                                        const int* __restrict__ index,
                                        const Real* __restrict__ values,
                                        const double* __restrict__ x, double* __restrict__ out,
                                        Long count, int classes, int width, int squared) {
    const Long s = (blockIdx.x * (Long)blockDim.x + threadIdx.x) / width;
    if (s >= count) return;
    const Long first = start[s], last = start[s + 1];
    for (int c = threadIdx.x % width; c < classes; c += width) {
        double sum = 0;
#pragma unroll 4
        for (Long k = first; k < last; ++k)
            sum += entry(values[k], squared) * x[index[k] * (Long)classes + c];
        out[c * count + s] = sum;
    }
}

// out[s] = sum of parts[k] over start[s] <= k < start[s + 1]; out[slot[s]] if there are slots.
extern "C" __global__ void segment_sum(const Long* __restrict__ start,
                                       const double* __restrict__ parts, double* __restrict__ out,
                                       const int* __restrict__ slot, Long count) {
    const Long s = (blockIdx.x * (Long)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (s >= count) return;
    double sum = 0;
    for (Long k = start[s] + lane; k < start[s + 1]; k += 32) sum += parts[k];
    sum = together(sum, 32);
    if (lane == 0) out[slot ? slot[s] : s] = sum;
}

// out[i] = shift + sum of X[i, j] x[j] over j; a group of threads has ROWS rows, so that many loads
// are under way.
extern "C" __global__ void dense_dot(const Real* __restrict__ X, const double* __restrict__ x,
                                     double shift, double* __restrict__ out, Long n, int d,
                                     int width, int squared) {
    const Long first = (blockIdx.x * (Long)blockDim.x + threadIdx.x) / width * ROWS;
    const int lane = threadIdx.x % width;
    if (first >= n) return;
    double sum[ROWS] = {};
    const Real* row[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) row[r] = X + (first + r < n ? first + r : n - 1) * d;
#pragma unroll 4
    for (int j = lane; j < d; j += width) {
        const double v = x[j];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sum[r] += entry(row[r][j], squared) * v;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        sum[r] = together(sum[r], width);
        if (lane == 0 && first + r < n) out[first + r] = sum[r] + shift;
    }
}

// out[p, j] = sum of r[i] X[i, j] over the rows of part p.
extern "C" __global__ void dense_combine(const Real* __restrict__ X, const double* __restrict__ r,
                                         double* __restrict__ out, Long n, int d, int height,
                                         int squared) {
    __shared__ double lines[LINES][32];
    const int j = blockIdx.y * 32 + threadIdx.x;
    const Long first = blockIdx.x * (Long)height;
    const Long last = first + height < n ? first + height : n;
    double sum = 0;
    if (j < d) {
#pragma unroll 8
        for (Long i = first + threadIdx.y; i < last; i += LINES)
            sum += entry(X[i * d + j], squared) * r[i];
    }
    lines[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || j >= d) return;
    for (int line = 1; line < LINES; ++line) sum += lines[line][threadIdx.x];
    out[blockIdx.x * (Long)d + j] = sum;
}

// out[j] = sum of parts[p, j] over p: 32 lines of each column, which halve.
extern "C" __global__ void sum_parts(const double* __restrict__ parts, double* __restrict__ out,
                                     int count, int d) {
    __shared__ double lines[32][33];
    const int j = blockIdx.x * 32 + threadIdx.x;
    double sum = 0;
    if (j < d) {
        for (int p = threadIdx.y; p < count; p += 32) sum += parts[p * (Long)d + j];
    }
    lines[threadIdx.y][threadIdx.x] = sum;
    for (int o = 16; o > 0; o /= 2) {
        __syncthreads();
        if (threadIdx.y < o) lines[threadIdx.y][threadIdx.x] += lines[threadIdx.y + o][threadIdx.x];
    }
    if (threadIdx.y == 0 && j < d) out[j] = lines[0][threadIdx.x];
}

// The r-th row of a part: of an index, of a sample drawn one from each of `count` strata of equal
// size, or first + r.
__device__ Long chosen(const Long* index, Long count, unsigned long long key, Long first, Long r,
                       Long n) {
    if (index) return index[first + r];
    if (!count) return first + r;
    const Long s = first + r;
    const Long low = (Long)((double)n / count * s), high = (Long)((double)n / count * (s + 1));
    unsigned long long x = (s + 1) * 0x9e3779b97f4a7c15ull + key;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    const Long i = low + (Long)(x % (unsigned long long)(high > low ? high - low : 1));
    return i < n ? i : n - 1;
}

// out[r, k] = sqrt(h) (x - m)_j of the r-th row for the columns j = column + k, and sqrt(h) for
// j = d: the weighted rows about a centre, with a feature that is 1.
extern "C" __global__ void centred_dense(const Real* __restrict__ X, const double* __restrict__ h,
                                         const double* __restrict__ m, const Long* index,
                                         Long count, unsigned long long key, Long first, Long rows,
                                         Long n, int d, int column, int width,
                                         double* __restrict__ out) {
    for (Long r = blockIdx.x * (Long)blockDim.y + threadIdx.y; r < rows;
         r += (Long)gridDim.x * blockDim.y) {
        const Long i = chosen(index, count, key, first, r, n);
        const double root = sqrt(h[i]);
        for (int k = threadIdx.x; k < width; k += 32) {
            const int j = column + k;
            out[r * width + k] = j < d ? root * (X[i * d + j] - (m ? m[j] : 0.0)) : root;
        }
    }
}

// The same of sparse rows; `out` holds zeros.
extern "C" __global__ void centred_sparse(
    const Long* __restrict__ start, const int* __restrict__ columns,
    const Real* __restrict__ values, const double* __restrict__ h, const double* __restrict__ m,
    const Long* index, Long count, unsigned long long key, Long first, Long rows, Long n, int d,
    int column, int width, double* __restrict__ out) {
    for (Long r = blockIdx.x * (Long)blockDim.y + threadIdx.y; r < rows;
         r += (Long)gridDim.x * blockDim.y) {
        const Long i = chosen(index, count, key, first, r, n);
        const double root = sqrt(h[i]);
        double* line = out + r * width;
        for (int k = threadIdx.x; k < width; k += 32) {
            const int j = column + k;
            line[k] = j < d ? (m ? -root * m[j] : 0.0) : root;
        }
        __syncwarp();
        for (Long e = start[i] + threadIdx.x; e < start[i + 1]; e += 32) {
            const int k = columns[e] - column;
            if (k >= 0 && k < width) line[k] += root * values[e];
        }
        __syncwarp();
    }
}
