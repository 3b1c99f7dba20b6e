/* A part of a picture, resized, as the planes of floats that networks take. */
#ifndef TIDE_NN_RESAMPLE_H
#define TIDE_NN_RESAMPLE_H

#include "nn/picture.h"

/* A part of a picture, in pixels. */
typedef struct tide__box {
    double x, y, width, height;
} tide__box;

/* pixels: channels * height * width. Linear between pixels where the part is enlarged, the mean of those that fall together where it
 * is reduced. channels: 3, or 1 for the luminance. Normalised by ImageNet's means and deviations. */
tide_status tide__resample(const tide__picture *picture, const tide__box *box, bool flip, uint32_t channels,
                           uint32_t height, uint32_t width, float *pixels);

#endif
