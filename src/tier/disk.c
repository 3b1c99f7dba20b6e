/* The disk tier: one preallocated spill file that has no name any more by the time it is used, so nothing is left
 * behind however the process ends.
 *
 * Where the filesystem allows and slots are whole disk blocks, the file is used past the page cache (O_DIRECT): then
 * file offsets, sizes and memory must be multiples of DIRECT_BYTES. Aligned data goes straight to and from the arena;
 * the rest goes through a small buffer on the stack, with a read before the write where only part of a disk block
 * changes. Slots never share a disk block, so that read and write race with nobody. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "tier/tier_kind.h"

#define DIRECT_BYTES UINT64_C(4096)
#define BOUNCE_BYTES (UINT64_C(16) * DIRECT_BYTES)

typedef struct disk_tier {
    tide__tier base;
    int fd;
    char path[PATH_MAX]; /* what the file was called; for error texts */
} disk_tier;

/* ---- whole transfers ---- */

static tide_status fail_transfer(const disk_tier *disk, const char *what, uint64_t offset, int error) {
    return tide__fail_errno(TIDE_E_IO, error, "cannot %s the spill file %s at %llu", what, disk->path,
                            (unsigned long long)offset);
}

static tide_status write_all(const disk_tier *disk, uint64_t offset, const char *data, uint64_t size) {
    while (size > 0) {
        ssize_t n = pwrite(disk->fd, data, size, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_transfer(disk, "write", offset, n < 0 ? errno : ENOSPC);
        data += n;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return TIDE_OK;
}

static tide_status read_all(const disk_tier *disk, uint64_t offset, char *data, uint64_t size) {
    while (size > 0) {
        ssize_t n = pread(disk->fd, data, size, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_transfer(disk, "read", offset, n < 0 ? errno : EIO);
        data += n;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return TIDE_OK;
}

/* ---- direct transfers of any alignment ---- */

/* The next part of [offset, offset + size): straight if it is aligned everywhere, else through the bounce buffer.
 * `first` and `bounced` are the range of whole disk blocks that the bounce buffer holds. */
typedef struct part {
    bool straight;
    uint64_t size;
    uint64_t first, bounced;
} part;

static part next_part(uint64_t offset, const char *data, uint64_t size) {
    part p = {.first = offset & ~(DIRECT_BYTES - 1)};
    p.straight = ((offset | (uintptr_t)data) & (DIRECT_BYTES - 1)) == 0 && size >= DIRECT_BYTES;
    if (p.straight) {
        p.size = size & ~(DIRECT_BYTES - 1);
        return p;
    }
    p.size = tide__min_u64(size, p.first + BOUNCE_BYTES - offset);
    p.bounced = (offset + p.size - p.first + DIRECT_BYTES - 1) & ~(DIRECT_BYTES - 1);
    return p;
}

static tide_status bounce_out(const disk_tier *disk, const part *p, uint64_t offset, const char *data) {
    _Alignas(4096) char buffer[BOUNCE_BYTES];
    if (p->size < p->bounced) TIDE_TRY(read_all(disk, p->first, buffer, p->bounced));
    memcpy(buffer + (offset - p->first), data, p->size);
    return write_all(disk, p->first, buffer, p->bounced);
}

static tide_status bounce_in(const disk_tier *disk, const part *p, uint64_t offset, char *data) {
    _Alignas(4096) char buffer[BOUNCE_BYTES];
    TIDE_TRY(read_all(disk, p->first, buffer, p->bounced));
    memcpy(data, buffer + (offset - p->first), p->size);
    return TIDE_OK;
}

static tide_status disk_save(tide__tier *tier, uint64_t offset, const char *data, uint64_t size) {
    const disk_tier *disk = (const disk_tier *)tier;
    if (!tier->direct) return write_all(disk, offset, data, size);
    while (size > 0) {
        part p = next_part(offset, data, size);
        TIDE_TRY(p.straight ? write_all(disk, offset, data, p.size) : bounce_out(disk, &p, offset, data));
        offset += p.size;
        data += p.size;
        size -= p.size;
    }
    return TIDE_OK;
}

static tide_status disk_load(tide__tier *tier, uint64_t offset, char *data, uint64_t size) {
    const disk_tier *disk = (const disk_tier *)tier;
    if (!tier->direct) return read_all(disk, offset, data, size);
    while (size > 0) {
        part p = next_part(offset, data, size);
        TIDE_TRY(p.straight ? read_all(disk, offset, data, p.size) : bounce_in(disk, &p, offset, data));
        offset += p.size;
        data += p.size;
        size -= p.size;
    }
    return TIDE_OK;
}

static void disk_destroy(tide__tier *tier) {
    disk_tier *disk = (disk_tier *)tier;
    close(disk->fd);
    free(disk);
}

static const tide__tier_vtable disk_vtable = {disk_save, disk_load, disk_destroy};

/* ---- creation ---- */

static tide_status open_file(disk_tier *disk, const char *folder) {
    if (!folder) folder = getenv("TMPDIR");
    if (!folder || !folder[0]) folder = "/tmp";
    int n = snprintf(disk->path, sizeof disk->path, "%s/tidemark-spill-XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof disk->path)
        return tide__fail(TIDE_E_ARGUMENT, "the path of a disk tier is too long");
    disk->fd = mkostemp(disk->path, O_CLOEXEC);
    if (disk->fd < 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot create the spill file %s", disk->path);
    if (unlink(disk->path) == 0) return TIDE_OK;
    tide_status status = tide__fail_errno(TIDE_E_IO, errno, "cannot unlink the spill file %s", disk->path);
    close(disk->fd);
    return status;
}

static tide_status preallocate(const disk_tier *disk, uint64_t size) {
    int error = size > INT64_MAX ? EFBIG : EINTR;
    while (error == EINTR && size > 0) error = posix_fallocate(disk->fd, 0, (off_t)size);
    if (size == 0 || error == 0) return TIDE_OK;
    return tide__fail_errno(TIDE_E_IO, error, "cannot reserve %llu bytes for the spill file %s",
                            (unsigned long long)size, disk->path);
}

/* Tries one disk block; filesystems may take the flag and still refuse the transfer. */
static bool go_direct(const disk_tier *disk, uint32_t block_bytes, uint64_t size) {
    _Alignas(4096) char block[DIRECT_BYTES];
    int flags = fcntl(disk->fd, F_GETFL);
    if (block_bytes % DIRECT_BYTES != 0 || size < DIRECT_BYTES || flags < 0) return false;
    if (fcntl(disk->fd, F_SETFL, flags | O_DIRECT) != 0) return false;
    if (pread(disk->fd, block, sizeof block, 0) == (ssize_t)sizeof block) return true;
    fcntl(disk->fd, F_SETFL, flags);
    return false;
}

tide_status tide__tier_disk_create(uint64_t capacity_bytes, uint32_t block_bytes, const char *folder,
                                   tide__tier **out) {
    tide_status status;
    uint64_t file_bytes;
    if (!tide__align_up(capacity_bytes, DIRECT_BYTES, &file_bytes))
        return tide__fail(TIDE_E_OVERFLOW, "a disk tier of %llu bytes", (unsigned long long)capacity_bytes);
    disk_tier *disk = calloc(1, sizeof *disk);
    if (!disk) return tide__fail_memory();
    disk->base.v = &disk_vtable;
    TIDE_TRY_GOTO(open_file(disk, folder), free_disk);
    TIDE_TRY_GOTO(preallocate(disk, file_bytes), close_file);
    disk->base.direct = go_direct(disk, block_bytes, file_bytes);
    *out = &disk->base;
    return TIDE_OK;
close_file:
    close(disk->fd);
free_disk:
    free(disk);
    return status;
}
