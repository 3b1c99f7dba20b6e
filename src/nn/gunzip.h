/* Files that were packed by gzip, unpacked into memory. */
#ifndef TIDE_NN_GUNZIP_H
#define TIDE_NN_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define TIDE__GUNZIP_MAX_BYTES ((size_t)1 << 30) /* unpacked */

static inline bool tide__is_gzip(const void *file, size_t size) {
    const unsigned char *b = file;
    return size >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

/* *out is freed with free(). */
#if TIDE_HAVE_ZLIB
tide_status tide__gunzip(const void *file, size_t size, void **out, size_t *out_size);
#else
static inline tide_status tide__gunzip(const void *file, size_t size, void **out, size_t *out_size) {
    (void)file, (void)size, (void)out, (void)out_size;
    return tide__fail(TIDE_E_UNSUPPORTED, "byte 0: this build of Tidemark does not read gzip; unpack it first");
}
#endif

#endif
