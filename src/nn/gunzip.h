/* Files that were packed by gzip, unpacked into a file without a name in $TMPDIR, else /tmp. */
#ifndef TIDE_NN_GUNZIP_H
#define TIDE_NN_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/file.h"

#define TIDE__GUNZIP_MAX_BYTES ((size_t)1 << 30) /* unpacked */

static inline bool tide__is_gzip(const void *file, size_t size) {
    const unsigned char *b = file;
    return size >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

/* *out is closed with tide__file_close. */
#if TIDE_HAVE_ZLIB
tide_status tide__gunzip(const void *file, size_t size, tide__file *out);
#else
static inline tide_status tide__gunzip(const void *file, size_t size, tide__file *out) {
    (void)file, (void)size, (void)out;
    return tide__fail(TIDE_E_UNSUPPORTED, "byte 0: this build of Tidemark does not read gzip; unpack it first");
}
#endif

#endif
