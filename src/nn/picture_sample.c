/* See picture_sample.h. */
#include "nn/picture_sample.h"

#include <tidemark/pictures.h>

#include <math.h>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "nn/resample.h"

tide_status tide__picture_check_rule(const tide__picture_rule *r) {
    if (r->channels != 1 && r->channels != 3)
        return tide__fail(TIDE_E_ARGUMENT, "pictures have 3 channels, or 1, not %u", r->channels);
    if (r->height == 0 || r->width == 0 || (uint64_t)r->height * r->width > TIDE__PICTURE_MAX_PIXELS)
        return tide__fail(TIDE_E_ARGUMENT, "pictures of %u x %u make no sense", r->width, r->height);
    if (r->least_area > 0 && r->least_area <= 1) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "a part of a picture is a share above 0 and up to 1");
}

/* ---- which part ---- */

/* Seven eighths: 224 of 256 pixels, as published weights are judged. */
static tide__box middle(const tide__picture_rule *r, uint32_t width, uint32_t height) {
    double fit = fmin((double)width / r->width, (double)height / r->height);
    if (width != r->width || height != r->height) fit *= 0.875;
    tide__box b = {.width = r->width * fit, .height = r->height * fit};
    b.x = (width - b.width) / 2;
    b.y = (height - b.height) / 2;
    return b;
}

/* The nth random number of a sample. */
static double random_unit(const tide__picture_rule *r, uint64_t draw, uint64_t nth) {
    return (double)tide__random_unit(r->seed, draw, nth);
}

/* Parts that do not fit are drawn again, a few times. */
static tide__box random_part(const tide__picture_rule *r, uint32_t width, uint32_t height, uint64_t draw) {
    enum { ATTEMPTS = 10, NUMBERS = 4 };
    const double widest = log(4.0 / 3);
    for (uint64_t i = 0; i < ATTEMPTS; i++) {
        double share = r->least_area + (1 - (double)r->least_area) * random_unit(r, draw, NUMBERS * i + 1);
        double ratio = exp(widest * (2 * random_unit(r, draw, NUMBERS * i + 2) - 1));
        double area = share * width * height;
        tide__box b = {.width = sqrt(area * ratio), .height = sqrt(area / ratio)};
        if (b.width > width || b.height > height) continue;
        b.x = (width - b.width) * random_unit(r, draw, NUMBERS * i + 3);
        b.y = (height - b.height) * random_unit(r, draw, NUMBERS * i + 4);
        return b;
    }
    return middle(r, width, height);
}

/* ---- one file ---- */

/* As small as the part can be decoded without being enlarged afterwards. */
static uint32_t find_shrink(const tide__box *b, const tide__picture_rule *r) {
    uint32_t shrink = 8;
    while (shrink > 1 && (b->width < (double)r->width * shrink || b->height < (double)r->height * shrink)) shrink /= 2;
    return shrink;
}

/* draw: NULL to look at. */
static tide_status sample(const tide__file *file, const tide__picture_rule *r, const uint64_t *draw, float *pixels) {
    const tide__picture_format *format;
    uint32_t width, height;
    tide__picture picture;
    TIDE_TRY(tide__picture_find_format(file->text, file->size, &format));
    TIDE_TRY(tide__picture_measure(format, file->text, file->size, &width, &height));
    tide__box box = draw ? random_part(r, width, height, *draw) : middle(r, width, height);
    bool flip = draw && random_unit(r, *draw, 0) < 0.5;
    TIDE_TRY(tide__picture_decode(format, file->text, file->size, find_shrink(&box, r), &picture));
    double scale_x = (double)picture.width / width, scale_y = (double)picture.height / height;
    box = (tide__box){box.x * scale_x, box.y * scale_y, box.width * scale_x, box.height * scale_y};
    tide_status status = tide__resample(&picture, &box, flip, r->channels, r->height, r->width, pixels);
    tide__picture_free(&picture);
    return status;
}

static tide_status sample_file(const char *path, const tide__picture_rule *r, const uint64_t *draw, float *pixels) {
    tide__file file;
    TIDE_TRY(tide__file_open_regular(path, &file));
    tide_status status = sample(&file, r, draw, pixels);
    tide__file_close(&file);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "%s", path);
}

tide_status tide__picture_look(const char *path, const tide__picture_rule *rule, float *pixels) {
    return sample_file(path, rule, NULL, pixels);
}

tide_status tide__picture_learn(const char *path, const tide__picture_rule *rule, uint64_t draw, float *pixels) {
    return sample_file(path, rule, &draw, pixels);
}

tide_status tide_picture_read(const char *path, uint32_t channels, uint32_t height, uint32_t width, float *pixels) {
    TIDE_NEED(path, pixels);
    const tide__picture_rule rule = {.channels = channels, .height = height, .width = width, .least_area = 1};
    TIDE_TRY(tide__picture_check_rule(&rule));
    return tide__picture_look(path, &rule, pixels);
}
