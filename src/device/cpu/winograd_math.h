/* The arithmetic of Winograd's convolution F(4 x 4, 3 x 3) (Lavin and Gray 2016), 8 channels side by side: a tile of
 * 4 x 4 outputs from a patch of 6 x 6 inputs by 36 products per pair of channels, in place of 144.
 *
 *     y = A' [(G g G') . (B' d B)] A         d: patch, g: window, y: tile, `.` element by element
 *     dg = G' [sum over tiles of (B' d B) . (A dy A')] G
 *
 * A *plane* is 8 channels of one image, [h][w][8]. The 36 numbers of a patch lie `apart` floats from each other, 8
 * channels side by side in each place. Needs AVX2 and FMA; results do not depend on who computes what. */
#ifndef TIDE_DEVICE_CPU_WINOGRAD_MATH_H
#define TIDE_DEVICE_CPU_WINOGRAD_MATH_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cpu/bf16.h"

#define TIDE__WINOGRAD_TILE 4
#define TIDE__WINOGRAD_PLACES 36
#define TIDE__WINOGRAD_ROWS 6     /* of a product */
#define TIDE__WINOGRAD_COLUMNS 16 /* of a product */

/* The machine can. */
bool tide__winograd_works(void);

/* A tile of a plane, by its first pixel; what lies outside the image counts as zero and is not written. */
typedef struct tide__tile {
    int64_t h, w, top, left; /* of the image; of the tile */
} tide__tile;

void tide__winograd_patch(tide__values plane, tide__tile t, float *to, int64_t apart);    /* B' d B */
void tide__winograd_gradient(tide__values plane, tide__tile t, float *to, int64_t apart); /* A dy A' */
/* A' m A, plus 8 biases unless that is NULL. */
void tide__winograd_tile(const float *from, int64_t apart, const float *bias, tide__tile t, tide__values plane);

/* A window's 9 places are 64 floats apart, 8 channels in each. `turned`: by 180 degrees. */
void tide__winograd_window(const float *window, bool turned, float *to, int64_t apart); /* G g G' */
void tide__winograd_window_gradient(const float *from, int64_t apart, float *window);   /* G' s G */

/* c (6 x 16, rows `stride` apart) = (`more`: +=) the sum over k < depth of row[i][k * step] * b[k * 16 + j]; only the first
 * n_rows rows are written. b begins on 32 bytes. */
typedef struct tide__strip {
    const float *row[TIDE__WINOGRAD_ROWS];
    int64_t step, depth, n_rows;
    const float *b;
} tide__strip;
void tide__winograd_multiply(const tide__strip *s, bool more, float *c, int64_t stride);

#endif
