/* gzip by zlib, in pieces: a data set counts against no budget. See gunzip.h. Invariant: a file that is cut off or damaged is refused as
 * a whole. */
#include "nn/gunzip.h"

#define ZLIB_CONST /* it only reads what it unpacks */
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include <zlib.h>

#include "base/size.h"

enum { GZIP_WINDOW = 15 + 16, PIECE_BYTES = 1 << 16 }; /* the largest window, with gzip's header */

typedef struct unpacking {
    z_stream z;
    int fd;
    char path[4096]; /* of the file that takes it, which has no name any more */
    size_t given, taken;
    Bytef piece[PIECE_BYTES];
} unpacking;

static tide_status write_piece(unpacking *u, size_t size) {
    u->taken += size;
    if (u->taken > TIDE__GUNZIP_MAX_BYTES)
        return tide__fail(TIDE_E_FORMAT, "it unpacks to more than %zu bytes", TIDE__GUNZIP_MAX_BYTES);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(u->fd, u->piece + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot unpack it to %s", u->path);
        done += (size_t)n;
    }
    return TIDE_OK;
}

/* A file may have several members, one after the other, as bgzip and cat leave them. */
static tide_status begin_next_member(unpacking *u, size_t packed) {
    if (!tide__is_gzip(u->z.next_in, packed - u->given))
        return tide__fail(TIDE_E_FORMAT, "byte %zu: gzip: something else follows", u->given);
    return inflateReset(&u->z) == Z_OK ? TIDE_OK : tide__fail(TIDE_E_INTERNAL, "zlib cannot begin again");
}

/* Up to the end of the last member. */
static tide_status inflate_all(unpacking *u, size_t packed) {
    z_stream *z = &u->z;
    for (;;) {
        uInt part = (uInt)tide__min_u64(packed - u->given, INT_MAX);
        z->avail_in = part;
        z->next_out = u->piece;
        z->avail_out = PIECE_BYTES;
        int code = inflate(z, Z_NO_FLUSH);
        u->given += part - z->avail_in;
        if (code == Z_MEM_ERROR) return tide__fail_memory();
        if ((code != Z_OK && code != Z_STREAM_END) || (code == Z_OK && u->given == packed && z->avail_out))
            return tide__fail(TIDE_E_FORMAT, "byte %zu: gzip: %s", u->given, z->msg ? z->msg : "the file is cut off");
        TIDE_TRY(write_piece(u, PIECE_BYTES - z->avail_out));
        if (code == Z_STREAM_END && u->given == packed) return TIDE_OK;
        if (code == Z_STREAM_END) TIDE_TRY(begin_next_member(u, packed));
    }
}

static tide_status unpack(unpacking *u, size_t size, tide__file *out) {
    TIDE_TRY(tide__scratch_open(NULL, "gunzip", u->path, sizeof u->path, &u->fd));
    tide_status status = inflate_all(u, size);
    if (status == TIDE_OK) status = tide__file_open_descriptor(u->fd, u->path, out);
    close(u->fd);
    return status;
}

tide_status tide__gunzip(const void *file, size_t size, tide__file *out) {
    unpacking u = {.z = {.next_in = file}};
    if (inflateInit2(&u.z, GZIP_WINDOW) != Z_OK) return tide__fail_memory();
    tide_status status = unpack(&u, size, out);
    inflateEnd(&u.z);
    return status;
}
