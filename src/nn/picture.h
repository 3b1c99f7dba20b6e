/* Pictures as bytes in memory. Files are hostile input: what is decoded has the size that its header said, and at most
 * TIDE__PICTURE_MAX_PIXELS. One file per format, which alone knows its library; a build without that library has no such file. */
#ifndef TIDE_NN_PICTURE_H
#define TIDE_NN_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tidemark/status.h>

#define TIDE__PICTURE_MAX_PIXELS (UINT64_C(1) << 26)

typedef struct tide__picture {
    uint32_t width, height;
    unsigned char *rgb; /* owned; three bytes per pixel, row-major */
} tide__picture;
void tide__picture_free(tide__picture *picture);

typedef struct tide__picture_format {
    const char *name;
    /* The header alone: how large the picture is. */
    tide_status (*measure)(const void *file, size_t size, uint32_t *width, uint32_t *height);
    /* shrink: 1, 2, 4 or 8: each side may be that much smaller, rounded up; or not, as the format likes it. `out` is all zeros and may
     * be filled in part on failure. */
    tide_status (*decode)(const void *file, size_t size, uint32_t shrink, tide__picture *out);
} tide__picture_format;
extern const tide__picture_format tide__picture_png, tide__picture_jpeg;

/* By the first bytes. TIDE_E_UNSUPPORTED: this build has no reader for it. */
tide_status tide__picture_find_format(const void *file, size_t size, const tide__picture_format **out);
/* `measure` of a format, with the size checked. */
tide_status tide__picture_measure(const tide__picture_format *format, const void *file, size_t size, uint32_t *width,
                                  uint32_t *height);
/* On failure *out is empty. */
tide_status tide__picture_decode(const tide__picture_format *format, const void *file, size_t size, uint32_t shrink,
                                 tide__picture *out);

#endif
