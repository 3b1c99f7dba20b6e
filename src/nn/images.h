/* Images with labels, as bytes in memory: what the readers of image files produce. Files are hostile input: a reader gets
 * the whole file, checks it and says what is where; nothing is copied.
 *
 * Invariant of a block: n samples, all of whose bytes are inside the file. */
#ifndef TIDE_NN_IMAGES_H
#define TIDE_NN_IMAGES_H

#include <tidemark/train.h>

#include "base/file.h"
#include "base/vec.h"

/* After so many a mapped file rests: a sample may bring a huge page into memory, of 2 MiB; records are read one after the other. */
enum { TIDE__SAMPLES_AT_ONCE = 2, TIDE__RECORDS_AT_ONCE = 1024 };

typedef struct tide__image_shape {
    uint32_t channels, height, width;
} tide__image_shape;

/* Samples at equal distances. */
typedef struct tide__image_block {
    const unsigned char *pixels, *labels; /* of the first; NULL: not known yet */
    uint64_t pixel_stride, label_stride;  /* bytes from one to the next */
    uint64_t n;
    tide__file file; /* which they lie in, and which may rest; not owned. {0}: memory that stays */
} tide__image_block;

/* An idx file of images: n x height x width or n x channels x height x width unsigned bytes. Errors begin with `name`
 * and the place in the file. */
tide_status tide__idx_images(const void *file, size_t size, const char *name, tide__image_shape *shape,
                             tide__image_block *out);
/* An idx file of labels, one unsigned byte each, for the images of `block`. */
tide_status tide__idx_labels(const void *file, size_t size, const char *name, tide__image_block *block);
bool tide__is_idx(const void *file, size_t size); /* it begins as one */

enum { TIDE__CIFAR_SIDE = 32, TIDE__CIFAR_PIXELS = 3 * 32 * 32 };
/* CIFAR's binary records: labels of a byte each, of which the last counts, then 3 x 32 x 32 bytes. */
typedef struct tide__cifar {
    const char *name;
    uint32_t labels, classes; /* CIFAR-100 has a coarse label before its fine one */
} tide__cifar;
extern const tide__cifar tide__cifar_10, tide__cifar_100;
tide_status tide__cifar_records(const tide__cifar *format, const tide__file *file, const char *name,
                                tide__image_block *out);

/* A set of blocks of one shape, as floats of about zero mean and unit variance. */
enum { TIDE__MAX_CHANNELS = 4 };
typedef struct tide__images {
    tide__image_shape shape;
    TIDE_VEC(tide__image_block) blocks;
    uint64_t n; /* samples of all blocks */
    float mean[TIDE__MAX_CHANNELS], scale[TIDE__MAX_CHANNELS];
} tide__images;
void tide__images_free(tide__images *images);
/* All blocks of a set have the same shape; `name` is for the error. */
tide_status tide__images_add(tide__images *images, const tide__image_shape *shape, const tide__image_block *block,
                             const char *name);
/* Mean and scale, from at most a thousand samples of the first n. */
void tide__images_normalise(tide__images *images, uint64_t n);
uint32_t tide__images_classes(const tide__images *images); /* one more than the largest label */
void tide__images_sample(const tide__images *images, uint64_t index, float *pixels, int32_t *label);

#endif
