/* See source.h. Files are read by pread, through the page cache and a small buffer where values are widened: a mapping
 * would count as memory of the process. */
#include <tidemark/source.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/size.h"
#include "base/vec.h"

enum { CHUNK_VALUES = 32 << 10 }; /* of half precision: stays in the cache between reading and widening */

typedef struct source_file {
    char *path;
    int fd;
    uint64_t size_bytes;
} source_file;

typedef struct source_range {
    size_t file;
    uint64_t offset_bytes, stored_bytes;
    tide_stored stored;
    bool known;
} source_range;

struct tide_source {
    TIDE_VEC(source_file) files;
    TIDE_VEC(source_range) ranges; /* by the numbers of values */
};

tide_status tide_source_create(tide_source **out) {
    TIDE_NEED(out);
    tide_source *source = calloc(1, sizeof *source);
    if (!source) return tide__fail_memory();
    *out = source;
    return TIDE_OK;
}

void tide_source_destroy(tide_source *source) {
    if (!source) return;
    for (size_t i = 0; i < source->files.count; i++) {
        close(source->files.data[i].fd);
        free(source->files.data[i].path);
    }
    tide__vec_free(&source->files);
    tide__vec_free(&source->ranges);
    free(source);
}

/* ---- what there is ---- */

static tide_status fail_file(const char *path, const char *what) {
    return tide__fail(TIDE_E_IO, "%s: %s: %s", path, what, strerror(errno));
}

static tide_status open_file(const char *path, source_file *out) {
    struct stat found;
    source_file file = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (file.fd < 0) return fail_file(path, "cannot be opened");
    tide_status status = fstat(file.fd, &found) ? fail_file(path, "cannot be read") : TIDE_OK;
    if (status == TIDE_OK && !S_ISREG(found.st_mode)) status = tide__fail(TIDE_E_IO, "%s: not a file", path);
    if (status == TIDE_OK && !(file.path = strdup(path))) status = tide__fail_memory();
    if (status != TIDE_OK) {
        close(file.fd);
        return status;
    }
    file.size_bytes = (uint64_t)found.st_size;
    *out = file;
    return TIDE_OK;
}

static tide_status find_file(tide_source *source, const char *path, size_t *out) {
    source_file file;
    for (size_t i = 0; i < source->files.count; i++) {
        if (strcmp(source->files.data[i].path, path) != 0) continue;
        *out = i;
        return TIDE_OK;
    }
    TIDE_TRY(open_file(path, &file));
    tide_status status = tide__vec_push(&source->files, file);
    if (status != TIDE_OK) {
        close(file.fd);
        free(file.path);
        return status;
    }
    *out = source->files.count - 1;
    return TIDE_OK;
}

static tide_status check_range(const source_file *file, const source_range *r) {
    uint64_t end;
    if (r->stored != TIDE_STORED_AS_IS && r->stored_bytes % 2)
        return tide__fail(TIDE_E_ARGUMENT, "%s: %llu bytes are no values of half precision", file->path,
                          (unsigned long long)r->stored_bytes);
    if (!tide__add(r->offset_bytes, r->stored_bytes, &end) || end > file->size_bytes)
        return tide__fail(TIDE_E_IO, "%s: %llu bytes at %llu are beyond its end", file->path,
                          (unsigned long long)r->stored_bytes, (unsigned long long)r->offset_bytes);
    return TIDE_OK;
}

tide_status tide_source_add(tide_source *source, tide_id value, const char *path, uint64_t offset_bytes,
                            uint64_t stored_bytes, tide_stored stored) {
    TIDE_NEED(source, path);
    source_range range = {.offset_bytes = offset_bytes, .stored_bytes = stored_bytes, .stored = stored, .known = true};
    if ((uint32_t)stored > TIDE_STORED_F16)
        return tide__fail(TIDE_E_ARGUMENT, "values are not stored by way %d", (int)stored);
    if (value < source->ranges.count && source->ranges.data[value].known)
        return tide__fail(TIDE_E_ARGUMENT, "value %u of the source is there already", value);
    TIDE_TRY(find_file(source, path, &range.file));
    TIDE_TRY(check_range(&source->files.data[range.file], &range));
    while (source->ranges.count <= value) TIDE_TRY(tide__vec_push(&source->ranges, (source_range){0}));
    source->ranges.data[value] = range;
    return TIDE_OK;
}

/* ---- reading ---- */

static tide_status read_file(const source_file *file, uint64_t offset, void *data, uint64_t size_bytes) {
    char *at = data;
    while (size_bytes > 0) {
        ssize_t n = pread(file->fd, at, size_bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_file(file->path, "cannot be read");
        if (n == 0) return tide__fail(TIDE_E_IO, "%s: has become shorter", file->path);
        at += n;
        offset += (uint64_t)n;
        size_bytes -= (uint64_t)n;
    }
    return TIDE_OK;
}

static void widen_bf16(const uint16_t *from, uint32_t *to, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = (uint32_t)from[i] << 16;
}

/* The bits of the exponent and below, where float32 has them, are the number times 2^-112: subnormal ones too. */
static void widen_f16(const uint16_t *from, uint32_t *to, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t sign = (from[i] & UINT32_C(0x8000)) << 16, rest = from[i] & UINT32_C(0x7fff), bits;
        uint32_t shifted = rest << 13;
        float scaled;
        memcpy(&scaled, &shifted, sizeof scaled);
        scaled *= 0x1p112F;
        memcpy(&bits, &scaled, sizeof bits);
        if (rest >= 0x7c00) bits = shifted | UINT32_C(0x7f800000); /* infinities and what is no number */
        to[i] = sign | bits;
    }
}

static tide_status read_widened(const source_file *file, const source_range *r, uint64_t position, char *data,
                                uint64_t size_bytes) {
    uint16_t half[CHUNK_VALUES];
    if (position % 4 || size_bytes % 4)
        return tide__fail(TIDE_E_ARGUMENT, "%s: %llu bytes at %llu are no whole numbers", file->path,
                          (unsigned long long)size_bytes, (unsigned long long)position);
    for (uint64_t done = 0; done < size_bytes; done += sizeof half * 2) {
        uint64_t n = tide__min_u64((size_bytes - done) / 4, CHUNK_VALUES);
        TIDE_TRY(read_file(file, r->offset_bytes + (position + done) / 2, half, n * 2));
        (r->stored == TIDE_STORED_BF16 ? widen_bf16 : widen_f16)(half, (uint32_t *)(void *)(data + done), n);
    }
    return TIDE_OK;
}

tide_status tide_source_read(void *context, tide_id value, uint64_t position, void *data, uint64_t size_bytes) {
    TIDE_NEED(context, data);
    const tide_source *source = context;
    if (value >= source->ranges.count || !source->ranges.data[value].known)
        return tide__fail(TIDE_E_ARGUMENT, "the source has no value %u", value);
    const source_range *r = &source->ranges.data[value];
    const source_file *file = &source->files.data[r->file];
    uint64_t end, factor = r->stored == TIDE_STORED_AS_IS ? 1 : 2;
    if (!tide__add(position, size_bytes, &end) || end / factor + end % factor > r->stored_bytes)
        return tide__fail(TIDE_E_ARGUMENT, "value %u of the source ends before byte %llu", value,
                          (unsigned long long)end);
    if (factor == 2) return read_widened(file, r, position, data, size_bytes);
    return read_file(file, r->offset_bytes + position, data, size_bytes);
}
