/* Fuzzes the readers of image files. The first byte chooses: an idx file of images, with labels of the right number, of
 * labels, or CIFAR-10's records. Every sample of what is accepted can be read. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "nn/images.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PIXELS = 1 << 20, MAX_SAMPLES = 64 };

static void read_samples(const tide__image_shape *shape, const tide__image_block *block) {
    uint64_t pixels = (uint64_t)shape->channels * shape->height * shape->width;
    tide__images images = {{0}};
    if (tide__images_add(&images, shape, block, "fuzz") != TIDE_OK) abort();
    tide__images_normalise(&images, images.n);
    uint32_t classes = tide__images_classes(&images);
    float *sample = pixels <= MAX_PIXELS ? malloc(pixels * sizeof *sample) : NULL;
    for (uint64_t i = 0; sample && i < images.n; i += images.n / MAX_SAMPLES + 1) {
        int32_t label;
        tide__images_sample(&images, i, sample, &label);
        if (label < 0 || (uint32_t)label >= classes) abort();
    }
    free(sample);
    tide__images_free(&images);
}

static void read_idx(const uint8_t *data, size_t size) {
    tide__image_shape shape;
    tide__image_block block;
    if (tide__idx_images(data, size, "fuzz", &shape, &block) != TIDE_OK) return;
    if (block.n * block.pixel_stride > size) abort();
    unsigned char *labels = calloc(block.n, 1);
    if (!labels) return;
    block.labels = labels;
    block.label_stride = 1;
    read_samples(&shape, &block);
    free(labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const tide__image_shape cifar = {3, TIDE__CIFAR_SIDE, TIDE__CIFAR_SIDE};
    tide__image_block block = {.n = 4};
    if (size == 0) return 0;
    const tide__file file = {.text = (const char *)data + 1, .size = size - 1};
    switch (data[0] % 3) {
    case 0: read_idx(data + 1, size - 1); break;
    case 1:
        if (tide__idx_labels(data + 1, size - 1, "fuzz", &block) == TIDE_OK && size != 1 + 8 + block.n) abort();
        break;
    default:
        if (tide__cifar_records(&tide__cifar_10, &file, "fuzz", &block) == TIDE_OK) read_samples(&cifar, &block);
    }
    return 0;
}
