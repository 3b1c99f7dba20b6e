/* Kernels that NVIDIA's compiler turns into PTX for the stand-in, and an OpenCL driver into its own code: the same source,
 * so the results can be compared. All take (x, y, n, width): y from x. */
#define EACH(i, n) for (int i = GROUP * LANES + LANE; i < (n); i += LANES * 4) /* grids have 4 groups */

/* An optimizer's step: products, a quotient, a root. x: weights, means, squares, gradients. */
KERNEL void adam(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    const int q = n / 4;
    EACH(i, q) {
        const float g = x[3 * q + i] + 0.01f * x[i];
        const float mean = 0.9f * x[q + i] + (1 - 0.9f) * g, square = 0.999f * x[2 * q + i] * x[2 * q + i] + (1 - 0.999f) * (g * g);
        y[q + i] = mean;
        y[2 * q + i] = square;
        y[i] = x[i] - 0.001f * (mean * 1.5f) / (sqrt(square * 1.25f) + 1e-8f);
    }
}

/* Blocks of 8 x 8 of x times its own transpose, width columns, through shared memory. */
KERNEL void product(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    SHARED float a[64];
    SHARED float b[64];
    const int rows = n / width, blocks = rows / 8, i = LANE / 8, j = LANE % 8;
    for (int block = GROUP; block < blocks * blocks; block += 4) {
        const int i0 = block / blocks * 8, j0 = block % blocks * 8;
        float sum = 0;
        for (int k = 0; k < width; k += 8) {
            MEET;
            a[LANE] = k + j < width ? x[(i0 + i) * width + k + j] : 0;
            b[LANE] = k + i < width ? x[(j0 + j) * width + k + i] : 0;
            MEET;
            for (int d = 0; d < 8; d++) sum = fma(a[i * 8 + d], b[d * 8 + j], sum);
        }
        y[(i0 + i) * rows + j0 + j] = sum;
    }
}

HELPER double group_sum(double v, SHARED_POINTER double *scratch) {
    scratch[LANE] = v;
    for (int step = LANES / 2; step > 0; step /= 2) {
        MEET;
        if (LANE < step) scratch[LANE] += scratch[LANE + step];
    }
    MEET;
    v = scratch[0];
    MEET;
    return v;
}

/* Rows to mean 0 and variance 1. */
KERNEL void normalise(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    SHARED double scratch[LANES];
    for (int row = GROUP; row < n / width; row += 4) {
        double sum = 0, squares = 0;
        for (int i = LANE; i < width; i += LANES) sum += (double)x[row * width + i];
        const double mean = group_sum(sum, scratch) / width;
        for (int i = LANE; i < width; i += LANES) {
            const double d = (double)x[row * width + i] - mean;
            squares += d * d;
        }
        const float scale = (float)(1 / sqrt(group_sum(squares, scratch) / width + 1e-5));
        for (int i = LANE; i < width; i += LANES) y[row * width + i] = (x[row * width + i] - (float)mean) * scale;
    }
}

HELPER ulong mix(ulong v) {
    v ^= v >> 30;
    v *= 0xbf58476d1ce4e5b9UL;
    v ^= v >> 27;
    v *= 0x94d049bb133111ebUL;
    return v ^ (v >> 31);
}

/* Bytes and 64-bit integers: a mask in the first n bytes of y, and what it keeps behind them. */
KERNEL void drop(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    GLOBAL uchar *mask = (GLOBAL uchar *)y;
    EACH(i, n / 2) {
        const int keep = (float)(mix((ulong)i * 0x9e3779b97f4a7c15UL + (ulong)width) >> 40) * 0x1p-24f >= 0.4f;
        mask[i] = (uchar)keep;
        y[n / 2 + i] = keep ? x[i] * 1.25f : 0;
    }
}

/* The largest of windows of 3, and where: signed divisions, minima, comparisons. NaN wins. */
KERNEL void pool(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    GLOBAL int *place = (GLOBAL int *)y;
    const int q = n / 2;
    EACH(i, q) {
        const int row = i / width, column = i % width, from = max(column - 1, 0), to = min(column + 2, min(width, q - row * width));
        int best = from;
        for (int k = from; k < to; k++)
            if (!(x[row * width + k] <= x[row * width + best])) best = k;
        y[i] = x[row * width + best];
        place[q + i] = best;
    }
}

/* Rounding to whole numbers, and conversions that saturate. */
KERNEL void whole(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    GLOBAL int *as_int = (GLOBAL int *)y;
    const int q = n / 4;
    EACH(i, q) {
        y[i] = floor(x[i] * 9.5f);
        y[q + i] = rint(x[i] * 9.5f) + trunc(x[i] * 3);
        as_int[2 * q + i] = (int)(x[i] * 1000) % 17;
        y[3 * q + i] = (float)((unsigned)i * 2654435761u) + (float)((long)i * -77777777777L);
    }
}

/* How many are above the mean of their row, by an atomic. */
KERNEL void count(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    EACH(i, n) if (x[i] > 0.25f) COUNT_UP((GLOBAL int *)y + i % 5);
}

/* ---- with functions that are approximated ---- */

KERNEL void softmax(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    SHARED double scratch[LANES];
    for (int row = GROUP; row < n / width; row += 4) {
        double sum = 0;
        for (int i = LANE; i < width; i += LANES) {
            y[row * width + i] = exp(x[row * width + i] - 2);
            sum += (double)y[row * width + i];
        }
        const float share = (float)(1 / group_sum(sum, scratch));
        for (int i = LANE; i < width; i += LANES) y[row * width + i] *= share;
    }
}

KERNEL void gelu(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    EACH(i, n) y[i] = x[i] / (1 + exp(-1.5957691216f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

KERNEL void gate(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    EACH(i, n) y[i] = tanh(x[i]) / (1 + exp(-x[i]));
}

KERNEL void log_loss(GLOBAL const float *x, GLOBAL float *y, int n, int width) {
    EACH(i, n) y[i] = (float)log(1 + (double)x[i] * (double)x[i]);
}
