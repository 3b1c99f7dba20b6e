/* Fuzzes the readers of pictures: what is accepted can be decoded, at any size, and resized; or is refused with a reason. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "nn/resample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PIXELS = 1 << 18, SIDE = 5 };

static void decode(const tide__picture_format *format, const uint8_t *data, size_t size, uint32_t shrink) {
    tide__picture picture;
    float pixels[3 * SIDE * SIDE];
    if (tide__picture_decode(format, data, size, shrink, &picture) != TIDE_OK) return;
    const tide__box box = {0, 0, picture.width, picture.height};
    if (tide__resample(&picture, &box, shrink == 2, 3, SIDE, SIDE, pixels) == TIDE_OK)
        for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++)
            if (!(fabsf(pixels[i]) < 3)) abort();
    tide__picture_free(&picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const tide__picture_format *format;
    uint32_t width, height;
    if (tide__picture_find_format(data, size, &format) != TIDE_OK) return 0;
    if (tide__picture_measure(format, data, size, &width, &height) != TIDE_OK) return 0;
    if ((uint64_t)width * height > MAX_PIXELS) return 0;
    for (uint32_t shrink = 1; shrink <= 8; shrink *= 2) decode(format, data, size, shrink);
    return 0;
}
