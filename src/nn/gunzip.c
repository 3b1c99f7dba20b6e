/* gzip by zlib. See gunzip.h. Invariant: a file that is cut off or damaged is refused as a whole. */
#include "nn/gunzip.h"

#define ZLIB_CONST /* it only reads what it unpacks */
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/size.h"

enum { GZIP_WINDOW = 15 + 16 }; /* the largest window, with gzip's header */

/* Twice as much room, at least 64 KiB. */
static tide_status grow(char **data, size_t *room) {
    size_t more = *room ? 2 * *room : (size_t)1 << 16;
    if (more > TIDE__GUNZIP_MAX_BYTES)
        return tide__fail(TIDE_E_FORMAT, "it unpacks to more than %zu bytes", TIDE__GUNZIP_MAX_BYTES);
    char *grown = realloc(*data, more);
    if (!grown) return tide__fail_memory();
    *data = grown;
    *room = more;
    return TIDE_OK;
}

/* Up to the end of the stream; *size: how much there is. */
static tide_status inflate_all(z_stream *z, size_t packed, char **data, size_t *size) {
    size_t room = 0, given = 0;
    for (;;) {
        if (*size == room) TIDE_TRY(grow(data, &room));
        uInt part = (uInt)tide__min_u64(packed - given, INT_MAX), space = (uInt)tide__min_u64(room - *size, INT_MAX);
        z->avail_in = part;
        z->next_out = (Bytef *)*data + *size;
        z->avail_out = space;
        int code = inflate(z, Z_NO_FLUSH);
        given += part - z->avail_in;
        *size += space - z->avail_out;
        if (code == Z_STREAM_END) return TIDE_OK;
        if (code == Z_MEM_ERROR) return tide__fail_memory();
        if (code != Z_OK || (given == packed && z->avail_out))
            return tide__fail(TIDE_E_FORMAT, "byte %zu: gzip: %s", given, z->msg ? z->msg : "the file is cut off");
    }
}

tide_status tide__gunzip(const void *file, size_t size, void **out, size_t *out_size) {
    z_stream z = {.next_in = file};
    char *data = NULL;
    size_t unpacked = 0;
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) return tide__fail_memory();
    tide_status status = inflate_all(&z, size, &data, &unpacked);
    inflateEnd(&z);
    if (status != TIDE_OK) {
        free(data);
        return status;
    }
    *out = data;
    *out_size = unpacked;
    return TIDE_OK;
}
