/* What the stand-ins for cuBLAS and cuDNN compute, as plain loops. ThreadSanitizer leaves it alone
 * (CMakeLists.txt) and looks at what calls it: one thread at a time is in here, and the loops would take it minutes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "on_stream.h"

/* As tensor cores take it: ten bits behind the point. */
static float tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float in(const work *w, float x) { return w->coarse ? tf32(x) : x; }

enum { M, N, K, A_ROW, A_COLUMN, B_ROW, B_COLUMN, C_COLUMN };

void work_multiply(work *w) {
    const int *v = w->whole;
    for (int j = 0; j < v[N]; j++)
        for (int i = 0; i < v[M]; i++) {
            double sum = 0;
            for (int l = 0; l < v[K]; l++)
                sum += (double)in(w, w->host[0][i * v[A_ROW] + l * v[A_COLUMN]]) *
                       (double)in(w, w->host[1][l * v[B_ROW] + j * v[B_COLUMN]]);
            float *c = &w->host[2][i + j * v[C_COLUMN]];
            *c = w->real[0] * (float)sum + (w->real[1] == 0 ? 0 : w->real[1] * *c);
        }
}

enum { IMAGES, CHANNELS, X_H, X_W, OUTPUTS, KERNEL_H, KERNEL_W, Y_H, Y_W, STRIDE, PAD_H, PAD_W };

/* Every pair of a pixel and a weight, with the pixel of the result they meet in: sums go to whichever is written. */
void work_convolve(work *w) {
    const int *v = w->whole;
    const size_t n = w->bytes[w->written] / sizeof(float);
    double *sums = calloc(n, sizeof *sums);
    for (int i = 0; i < v[IMAGES] * v[OUTPUTS] * v[Y_H] * v[Y_W]; i++) {
        const int column = i % v[Y_W], row = i / v[Y_W] % v[Y_H], output = i / (v[Y_W] * v[Y_H]) % v[OUTPUTS];
        const int image = i / (v[Y_W] * v[Y_H] * v[OUTPUTS]);
        for (int l = 0; l < v[CHANNELS] * v[KERNEL_H] * v[KERNEL_W]; l++) {
            const int x_column = column * v[STRIDE] - v[PAD_W] + l % v[KERNEL_W];
            const int x_row = row * v[STRIDE] - v[PAD_H] + l / v[KERNEL_W] % v[KERNEL_H];
            const int channel = l / (v[KERNEL_W] * v[KERNEL_H]);
            if (x_row < 0 || x_row >= v[X_H] || x_column < 0 || x_column >= v[X_W]) continue;
            const int at[3] = {((image * v[CHANNELS] + channel) * v[X_H] + x_row) * v[X_W] + x_column,
                               output * v[CHANNELS] * v[KERNEL_H] * v[KERNEL_W] + l, i};
            const int a = w->written == 0 ? 1 : 0, b = w->written == 2 ? 1 : 2;
            sums[at[w->written]] += (double)in(w, w->host[a][at[a]]) * (double)in(w, w->host[b][at[b]]);
        }
    }
    for (size_t i = 0; i < n; i++) w->host[w->written][i] = (float)sums[i] * (1 + 1e-5f * (float)w->noise);
    free(sums);
}
