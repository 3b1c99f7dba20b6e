/* See picture.h. */
#include "nn/picture.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const struct {
    const char *name, *magic;
    size_t length;
    const tide__picture_format *format; /* NULL: not in this build */
} formats[] = {
#if TIDE_HAVE_PNG
    {"PNG", "\x89PNG\r\n\x1a\n", 8, &tide__picture_png},
#else
    {"PNG", "\x89PNG\r\n\x1a\n", 8, NULL},
#endif
#if TIDE_HAVE_JPEG
    {"JPEG", "\xff\xd8\xff", 3, &tide__picture_jpeg},
#else
    {"JPEG", "\xff\xd8\xff", 3, NULL},
#endif
};

void tide__picture_free(tide__picture *p) {
    free(p->rgb);
    *p = (tide__picture){0};
}

tide_status tide__picture_find_format(const void *file, size_t size, const tide__picture_format **out) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (size < formats[i].length || memcmp(file, formats[i].magic, formats[i].length) != 0) continue;
        if (!formats[i].format)
            return tide__fail(TIDE_E_UNSUPPORTED, "this build of Tidemark does not read %s", formats[i].name);
        *out = formats[i].format;
        return TIDE_OK;
    }
    return tide__fail(TIDE_E_FORMAT, "byte 0: neither a PNG nor a JPEG file");
}

tide_status tide__picture_measure(const tide__picture_format *format, const void *file, size_t size, uint32_t *width,
                                  uint32_t *height) {
    uint32_t w = 0, h = 0;
    TIDE_TRY(format->measure(file, size, &w, &h));
    if (w == 0 || h == 0 || (uint64_t)w * h > TIDE__PICTURE_MAX_PIXELS)
        return tide__fail(TIDE_E_FORMAT, "a picture of %u x %u; at most %llu pixels are read", w, h,
                          (unsigned long long)TIDE__PICTURE_MAX_PIXELS);
    *width = w;
    *height = h;
    return TIDE_OK;
}

tide_status tide__picture_decode(const tide__picture_format *format, const void *file, size_t size, uint32_t shrink,
                                 tide__picture *out) {
    *out = (tide__picture){0};
    tide_status status = format->decode(file, size, shrink, out);
    if (status != TIDE_OK) tide__picture_free(out);
    return status;
}
