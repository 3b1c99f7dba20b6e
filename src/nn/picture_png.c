/* PNG by libpng: any colour type and depth becomes three bytes per pixel. What is transparent keeps its colour, as in Pillow's
 * conversion. See picture.h. */
#include <png.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/picture.h"

static tide_status begin(const void *file, size_t size, png_image *image) {
    *image = (png_image){.version = PNG_IMAGE_VERSION};
    if (png_image_begin_read_from_memory(image, file, size)) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "PNG: %s", image->message);
}

static tide_status measure(const void *file, size_t size, uint32_t *width, uint32_t *height) {
    png_image image;
    TIDE_TRY(begin(file, size, &image));
    *width = image.width;
    *height = image.height;
    png_image_free(&image);
    return TIDE_OK;
}

static void drop_alpha(unsigned char *pixels, size_t n) {
    for (size_t i = 0; i < n; i++) memmove(pixels + 3 * i, pixels + 4 * i, 3);
}

static tide_status decode(const void *file, size_t size, uint32_t shrink, tide__picture *out) {
    png_image image;
    (void)shrink;
    TIDE_TRY(begin(file, size, &image));
    bool alpha = image.format & PNG_FORMAT_FLAG_ALPHA;
    size_t n = (size_t)image.width * image.height;
    image.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
    *out = (tide__picture){.width = image.width, .height = image.height, .rgb = malloc(n * (alpha ? 4 : 3))};
    if (!out->rgb) {
        png_image_free(&image);
        return tide__fail_memory();
    }
    if (!png_image_finish_read(&image, NULL, out->rgb, 0, NULL)) /* frees the image in any case */
        return tide__fail(TIDE_E_FORMAT, "PNG: %s", image.message);
    if (alpha) drop_alpha(out->rgb, n);
    return TIDE_OK;
}

const tide__picture_format tide__picture_png = {"PNG", measure, decode};
