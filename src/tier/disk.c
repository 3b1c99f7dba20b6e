/* The disk tier: one preallocated spill file that has no name any more by the time it is used, so nothing is left
 * behind however the process ends.
 *
 * Where the filesystem allows and slots are whole disk blocks, the file is used past the page cache (O_DIRECT): then
 * file offsets, sizes and memory must be multiples of TIDE__DISK_BLOCK. Aligned data goes straight to and from the
 * arena; the rest goes through a small buffer on the stack, with a read before the write where only part of a disk
 * block changes. The same way is taken with checksums, which cover whole disk blocks.
 *
 * Zeros may be left out on the way (zeros.h): extents of a transfer are stored packed where that pays, in the room that
 * their raw bytes have, and a table in RAM says which. A save over part of such an extent has it stored as it is first; a load of a part
 * reads all of it.
 *
 * There is a lane for each direction, so saves and loads run side by side; two saves take turns. Only where slots are
 * smaller than disk blocks and share one do saves and loads that go by whole blocks take turns, too: a load would read,
 * and check, what a save of its neighbour is about to rewrite. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/size.h"
#include "tier/disk_transfer.h"
#include "tier/tier_kind.h"

#define BOUNCE_BYTES (UINT64_C(16) * TIDE__DISK_BLOCK)
#define LEAST_PACKED_BYTES (UINT64_C(32) * TIDE__DISK_BLOCK) /* less is soon written, and read in parts */

typedef struct disk_tier {
    tide__tier base;
    int fd;
    char path[PATH_MAX];     /* what the file was called; for error texts */
    tide__disk_lane lane[2]; /* in, out: read, write */
    pthread_mutex_t lock[2]; /* a lane serves one thread at a time */
    bool whole_blocks;
    bool by_turns;          /* saves and loads: slots share disk blocks that are moved whole */
    uint32_t *sums;         /* per block of the file; NULL: no checksums */
    tide__disk_form *forms; /* per block of the file; NULL: zeros are written like everything else */
    uint64_t n_blocks;      /* of the file */
    bool counted[2];        /* per lane: its staging is in staging_bytes */
} disk_tier;

/* ---- transfers ---- */

static tide_status fail_transfer(const disk_tier *disk, const char *what, uint64_t offset, int error) {
    if (error == EBADMSG)
        return tide__fail(TIDE_E_IO, "the spill file %s is damaged at %llu: what was read is not what was written",
                          disk->path, (unsigned long long)offset);
    return tide__fail_errno(TIDE_E_IO, error, "cannot %s the spill file %s at %llu", what, disk->path,
                            (unsigned long long)offset);
}

static tide_status run_lane(disk_tier *disk, bool lane, const tide__disk_transfer *t) {
    uint64_t failed_at = t->offset, before = disk->lane[lane].moved_bytes;
    int error = tide__disk_run(&disk->lane[lane], t, &failed_at);
    atomic_fetch_add_explicit(t->write ? &disk->base.written_bytes : &disk->base.read_bytes,
                              disk->lane[lane].moved_bytes - before, memory_order_relaxed);
    return error ? fail_transfer(disk, t->write ? "write" : "read", failed_at, error) : TIDE_OK;
}

/* Does a packed extent lie across where a transfer begins, or ends? Only blocks of the transfer itself are looked at: others may be
 * of slots that somebody else writes. */
static bool begins_inside(const disk_tier *disk, uint64_t offset) {
    return disk->forms && disk->forms[offset / TIDE__DISK_BLOCK].place > 1;
}

static bool ends_inside(const disk_tier *disk, uint64_t end) {
    if (!disk->forms || end == 0) return false;
    const tide__disk_form last = disk->forms[end / TIDE__DISK_BLOCK - 1];
    return last.place > 0 && last.place < last.blocks;
}

/* The packed extent that this block is of, into the lane's staging as it was before packing. */
static tide_status read_extent(disk_tier *disk, bool lane, uint64_t block, tide__disk_transfer *t) {
    const uint64_t first = block - (disk->forms[block].place - 1U);
    *t = (tide__disk_transfer){.whole_blocks = true,
                               .offset = first * TIDE__DISK_BLOCK,
                               .size_bytes = disk->forms[first].blocks * TIDE__DISK_BLOCK,
                               .sums = disk->sums,
                               .forms = disk->forms};
    if (tide__disk_lane_extent(&disk->lane[lane], &t->data) != 0) return tide__fail_memory();
    return run_lane(disk, lane, t);
}

/* The packed extent of this block, across where a write begins or ends, is stored as it is from now on. */
static tide_status unfold(disk_tier *disk, uint64_t block) {
    tide__disk_transfer t;
    TIDE_TRY(read_extent(disk, true, block, &t));
    t.write = true;
    tide_status status = run_lane(disk, true, &t);
    for (uint64_t at = t.offset; status != TIDE_OK && at < t.offset + t.size_bytes; at += TIDE__DISK_BLOCK)
        disk->forms[at / TIDE__DISK_BLOCK] = TIDE__DISK_LOST;
    return status;
}

/* Of [begin, end) what lies in the packed extent of `block`, by way of staging; *moved: how many bytes. */
static tide_status load_part(disk_tier *disk, bool lane, uint64_t block, uint64_t begin, uint64_t end, char *data,
                             uint64_t *moved) {
    tide__disk_transfer t;
    TIDE_TRY(read_extent(disk, lane, block, &t));
    const uint64_t first = tide__max_u64(begin, t.offset), last = tide__min_u64(end, t.offset + t.size_bytes);
    memcpy(data + (first - begin), t.data + (first - t.offset), last - first);
    *moved = last - first;
    return TIDE_OK;
}

/* The caller holds the lane's lock. A load changes nothing in the file: extents across its borders are read whole, beside it. */
static tide_status move(disk_tier *disk, bool lane, bool write, uint64_t offset, char *data, uint64_t size_bytes) {
    const uint64_t end = offset + size_bytes;
    uint64_t head = 0, tail = 0;
    if (write) {
        if (begins_inside(disk, offset)) TIDE_TRY(unfold(disk, offset / TIDE__DISK_BLOCK));
        if (ends_inside(disk, end)) TIDE_TRY(unfold(disk, end / TIDE__DISK_BLOCK - 1));
    } else {
        if (begins_inside(disk, offset))
            TIDE_TRY(load_part(disk, lane, offset / TIDE__DISK_BLOCK, offset, end, data, &head));
        if (head < size_bytes && ends_inside(disk, end))
            TIDE_TRY(load_part(disk, lane, end / TIDE__DISK_BLOCK - 1, offset, end, data, &tail));
        if (head + tail == size_bytes) return TIDE_OK;
    }
    const tide__disk_transfer t = {.write = write,
                                   .whole_blocks = disk->whole_blocks,
                                   .data = data + head,
                                   .offset = offset + head,
                                   .size_bytes = size_bytes - head - tail,
                                   .sums = disk->sums,
                                   .forms = disk->forms,
                                   .packs = size_bytes >= LEAST_PACKED_BYTES};
    return run_lane(disk, lane, &t);
}

/* ---- whole blocks out of transfers of any alignment ---- */

/* The next part of [offset, offset + size): straight if it is aligned everywhere, else through the bounce buffer.
 * `first` and `bounced` are the range of whole disk blocks that the bounce buffer holds. */
typedef struct part {
    bool straight;
    uint64_t size;
    uint64_t first, bounced;
} part;

static part next_part(uint64_t offset, const char *data, uint64_t size) {
    part p = {.first = offset & ~(TIDE__DISK_BLOCK - 1)};
    p.straight = ((offset | (uintptr_t)data) & (TIDE__DISK_BLOCK - 1)) == 0 && size >= TIDE__DISK_BLOCK;
    if (p.straight) {
        p.size = size & ~(TIDE__DISK_BLOCK - 1);
        return p;
    }
    p.size = tide__min_u64(size, p.first + BOUNCE_BYTES - offset);
    p.bounced = (offset + p.size - p.first + TIDE__DISK_BLOCK - 1) & ~(TIDE__DISK_BLOCK - 1);
    return p;
}

static tide_status bounce(disk_tier *disk, const part *p, bool out, uint64_t offset, char *data) {
    _Alignas(4096) char buffer[BOUNCE_BYTES];
    if (!out || p->size < p->bounced) TIDE_TRY(move(disk, out, false, p->first, buffer, p->bounced));
    char *inside = buffer + (offset - p->first);
    memcpy(out ? inside : data, out ? data : inside, p->size);
    return out ? move(disk, out, true, p->first, buffer, p->bounced) : TIDE_OK;
}

static tide_status move_parts(disk_tier *disk, bool out, uint64_t offset, char *data, uint64_t size) {
    while (size > 0) {
        part p = next_part(offset, data, size);
        TIDE_TRY(p.straight ? move(disk, out, out, offset, data, p.size) : bounce(disk, &p, out, offset, data));
        offset += p.size;
        data += p.size;
        size -= p.size;
    }
    return TIDE_OK;
}

static tide_status transfer(disk_tier *disk, bool out, uint64_t offset, char *data, uint64_t size) {
    pthread_mutex_t *lock = &disk->lock[out && !disk->by_turns];
    pthread_mutex_lock(lock);
    tide_status status =
        disk->whole_blocks ? move_parts(disk, out, offset, data, size) : move(disk, out, out, offset, data, size);
    if (disk->lane[out].staging && !disk->counted[out]) {
        disk->counted[out] = true;
        atomic_fetch_add(&disk->base.staging_bytes, TIDE__DISK_STAGING_BYTES);
    }
    pthread_mutex_unlock(lock);
    return status;
}

static tide_status disk_save(tide__tier *tier, uint64_t offset, const char *data, uint64_t size) {
    char *source;
    memcpy(&source, &data, sizeof source); /* drops the const: a write only reads it */
    return transfer((disk_tier *)tier, true, offset, source, size);
}

static tide_status disk_load(tide__tier *tier, uint64_t offset, char *data, uint64_t size) {
    return transfer((disk_tier *)tier, false, offset, data, size);
}

static void disk_destroy(tide__tier *tier) {
    disk_tier *disk = (disk_tier *)tier;
    for (int i = 0; i < 2; i++) tide__disk_lane_close(&disk->lane[i]);
    for (int i = 0; i < 2; i++) pthread_mutex_destroy(&disk->lock[i]);
    if (disk->fd >= 0) close(disk->fd);
    free(disk->sums);
    free(disk->forms);
    free(disk);
}

/* ---- creation ---- */

static tide_status open_lanes(disk_tier *disk, const tide__disk_engine *engine) {
    int error = tide__disk_lane_open(&disk->lane[0], engine, disk->fd);
    if (!error) error = tide__disk_lane_open(&disk->lane[1], engine, disk->fd);
    disk->base.engine = engine->name;
    if (!error) return TIDE_OK;
    tide__disk_lane_close(&disk->lane[0]);
    if (error == ENOMEM) return tide__fail_memory();
    return tide__fail_errno(TIDE_E_IO, error, "%s for the spill file %s", engine->name, disk->path);
}

/* The first engine that this system has. */
static tide_status choose_engine(disk_tier *disk, const tide__disk_engine *const *engines) {
    tide_status status = tide__fail(TIDE_E_ARGUMENT, "a disk tier without an engine");
    for (; *engines && status != TIDE_OK; engines++) status = open_lanes(disk, *engines);
    return status;
}

static tide_status reserve(const disk_tier *disk, uint64_t size) {
    int error = size > INT64_MAX ? EFBIG : EINTR;
    while (error == EINTR && size > 0) error = disk->lane[0].engine->reserve(disk->fd, size);
    if (size == 0 || error == 0) return TIDE_OK;
    return tide__fail_errno(TIDE_E_IO, error, "cannot reserve %llu bytes for the spill file %s",
                            (unsigned long long)size, disk->path);
}

/* The tables of a file that becomes larger; of what is new nothing is known. */
static tide_status grow_tables(disk_tier *disk, uint64_t n_blocks) {
    size_t before = disk->n_blocks, more = n_blocks - disk->n_blocks;
    uint32_t *sums = disk->sums ? realloc(disk->sums, (n_blocks + 1) * sizeof *sums) : NULL;
    if (sums) disk->sums = sums;
    tide__disk_form *forms = disk->forms ? realloc(disk->forms, (n_blocks + 1) * sizeof *forms) : NULL;
    if (forms) disk->forms = forms;
    if ((disk->sums && !sums) || (disk->forms && !forms)) return tide__fail_memory();
    if (sums) memset(sums + before, 0, (more + 1) * sizeof *sums);
    if (forms) memset(forms + before, 0, (more + 1) * sizeof *forms);
    return TIDE_OK;
}

/* The file becomes smaller; its tables keep their room. What lies across the new end is lost. */
static tide_status cut(disk_tier *disk, uint64_t n_blocks) {
    if (ftruncate(disk->fd, (off_t)(n_blocks * TIDE__DISK_BLOCK)) != 0)
        return tide__fail_errno(TIDE_E_IO, errno, "cannot shrink the spill file %s", disk->path);
    uint64_t lost = disk->forms && disk->forms[n_blocks].place > 1 ? disk->forms[n_blocks].place - 1U : 0;
    if (lost) memset(disk->forms + n_blocks - lost, 0, lost * sizeof *disk->forms);
    disk->n_blocks = n_blocks;
    return TIDE_OK;
}

static tide_status disk_resize(tide__tier *tier, uint64_t capacity_bytes) {
    disk_tier *disk = (disk_tier *)tier;
    uint64_t file_bytes;
    if (!tide__align_up(capacity_bytes, TIDE__DISK_BLOCK, &file_bytes))
        return tide__fail(TIDE_E_OVERFLOW, "a disk tier of %llu bytes", (unsigned long long)capacity_bytes);
    uint64_t n_blocks = file_bytes / TIDE__DISK_BLOCK;
    if (n_blocks < disk->n_blocks) return cut(disk, n_blocks);
    TIDE_TRY(grow_tables(disk, n_blocks));
    TIDE_TRY(reserve(disk, file_bytes));
    disk->n_blocks = n_blocks;
    return TIDE_OK;
}

static const tide__tier_vtable disk_vtable = {disk_save, disk_load, disk_resize, disk_destroy};

/* Tries one disk block; filesystems may take the flag and still refuse the transfer. */
static bool go_direct(disk_tier *disk, uint32_t block_bytes, uint64_t size) {
    _Alignas(4096) char block[TIDE__DISK_BLOCK];
    int flags = fcntl(disk->fd, F_GETFL);
    if (block_bytes % TIDE__DISK_BLOCK != 0 || size < TIDE__DISK_BLOCK || flags < 0) return false;
    if (fcntl(disk->fd, F_SETFL, flags | O_DIRECT) != 0) return false;
    if (pread(disk->fd, block, sizeof block, 0) == (ssize_t)sizeof block) return true;
    fcntl(disk->fd, F_SETFL, flags);
    return false;
}

static tide_status prepare(disk_tier *disk, const tide__tier_options *o, uint64_t file_bytes) {
    TIDE_TRY(tide__scratch_open(o->path, "spill", disk->path, sizeof disk->path, &disk->fd));
    TIDE_TRY(choose_engine(disk, o->engines ? o->engines : tide__disk_engines()));
    TIDE_TRY(reserve(disk, file_bytes));
    disk->base.direct = go_direct(disk, o->block_bytes, file_bytes);
    const bool whole_slots = o->block_bytes % TIDE__DISK_BLOCK == 0, packs = o->packs && whole_slots;
    disk->whole_blocks = disk->base.direct || o->checksums || packs;
    disk->by_turns = disk->whole_blocks && !whole_slots;
    disk->n_blocks = file_bytes / TIDE__DISK_BLOCK;
    if (o->checksums) disk->sums = calloc(disk->n_blocks + 1, sizeof *disk->sums);
    if (packs) disk->forms = calloc(disk->n_blocks + 1, sizeof *disk->forms);
    return (o->checksums && !disk->sums) || (packs && !disk->forms) ? tide__fail_memory() : TIDE_OK;
}

tide_status tide__tier_disk_create(const tide__tier_options *o, tide__tier **out) {
    uint64_t file_bytes;
    if (!tide__align_up(o->capacity_bytes, TIDE__DISK_BLOCK, &file_bytes))
        return tide__fail(TIDE_E_OVERFLOW, "a disk tier of %llu bytes", (unsigned long long)o->capacity_bytes);
    disk_tier *disk = calloc(1, sizeof *disk);
    if (!disk) return tide__fail_memory();
    disk->base.v = &disk_vtable;
    disk->fd = -1;
    for (int i = 0; i < 2; i++) pthread_mutex_init(&disk->lock[i], NULL); /* cannot fail on Linux */
    tide_status status = prepare(disk, o, file_bytes);
    if (status != TIDE_OK) {
        disk_destroy(&disk->base);
        return status;
    }
    *out = &disk->base;
    return TIDE_OK;
}
