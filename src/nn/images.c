/* Sets of images: blocks side by side, and bytes as floats. See images.h. */
#include "nn/images.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/size.h"

void tide__images_free(tide__images *images) {
    tide__vec_free(&images->blocks);
    *images = (tide__images){0};
}

tide_status tide__images_add(tide__images *images, const tide__image_shape *shape, const tide__image_block *block,
                             const char *name) {
    const tide__image_shape *first = &images->shape;
    if (images->blocks.count == 0) images->shape = *shape;
    if (shape->channels != first->channels || shape->height != first->height || shape->width != first->width)
        return tide__fail(TIDE_E_FORMAT, "%s: images of %ux%ux%u, those before are %ux%ux%u", name, shape->channels,
                          shape->height, shape->width, first->channels, first->height, first->width);
    TIDE_TRY(tide__vec_push(&images->blocks, *block));
    images->n += block->n; /* bytes in memory: no overflow */
    return TIDE_OK;
}

/* The block of a sample; *index becomes its place there. */
static const tide__image_block *find_block(const tide__images *images, uint64_t *index) {
    const tide__image_block *b = images->blocks.data;
    for (; *index >= b->n; b++) *index -= b->n;
    return b;
}

uint32_t tide__images_classes(const tide__images *images) {
    uint32_t most = 0;
    for (size_t k = 0; k < images->blocks.count; k++) {
        const tide__image_block *b = &images->blocks.data[k];
        for (uint64_t i = 0; i < b->n; i++) {
            if (i % TIDE__RECORDS_AT_ONCE == 0) tide__file_rest(&b->file);
            if (b->labels[i * b->label_stride] > most) most = b->labels[i * b->label_stride];
        }
    }
    return most + 1;
}

/* Sums of whole numbers, so that the result does not depend on the order. */
typedef struct sums {
    uint64_t count, sum, squares;
} sums;

static void add_plane(const unsigned char *bytes, uint64_t n, sums *s) {
    for (uint64_t i = 0; i < n; i++) {
        s->sum += bytes[i];
        s->squares += (uint64_t)bytes[i] * bytes[i];
    }
    s->count += n;
}

void tide__images_normalise(tide__images *images, uint64_t n) {
    enum { LOOKED_AT = 1000 };
    uint64_t plane = (uint64_t)images->shape.height * images->shape.width, step = n / LOOKED_AT + 1;
    sums all[TIDE__MAX_CHANNELS] = {{0, 0, 0}};
    for (uint64_t i = 0; i < n; i += step) {
        uint64_t at = i;
        const tide__image_block *b = find_block(images, &at);
        for (uint32_t c = 0; c < images->shape.channels; c++)
            add_plane(b->pixels + at * b->pixel_stride + c * plane, plane, &all[c]);
        if (i / step % TIDE__SAMPLES_AT_ONCE == 0) tide__file_rest(&b->file);
    }
    for (uint32_t c = 0; c < images->shape.channels; c++) {
        double count = (double)all[c].count, mean = (double)all[c].sum / count;
        double variance = (double)all[c].squares / count - mean * mean;
        images->mean[c] = (float)mean;
        images->scale[c] = variance > 1e-3 ? (float)(1 / sqrt(variance)) : 1;
    }
}

void tide__images_sample(const tide__images *images, uint64_t index, float *pixels, int32_t *label) {
    uint64_t plane = (uint64_t)images->shape.height * images->shape.width;
    const tide__image_block *b = find_block(images, &index);
    const unsigned char *bytes = b->pixels + index * b->pixel_stride;
    for (uint32_t c = 0; c < images->shape.channels; c++)
        for (uint64_t i = 0; i < plane; i++)
            pixels[c * plane + i] = ((float)bytes[c * plane + i] - images->mean[c]) * images->scale[c];
    *label = b->labels[index * b->label_stride];
}
