/* See disk_transfer.h.
 *
 *      transfer   |--piece 2--|--piece 0--|--piece 1--|....... not cut yet .......|
 *                   in flight   in flight   in flight ^ next
 *
 * Invariant: every piece in flight has a tag of its own; a failure stops the cutting, and the transfer ends only when
 * nothing is in flight, because the memory is the caller's again then. */
#include "tier/disk_transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checksum.h"
#include "base/size.h"

enum { DEPTH = 8, MAX_TRIES = 100 };
#define MIN_PIECE_BYTES (UINT64_C(256) << 10)
#define MAX_PIECE_BYTES (UINT64_C(4) << 20)

typedef struct piece {
    tide__disk_request rest; /* what is still to be moved of it */
    uint64_t offset;         /* where it began */
    uint32_t size_bytes;
    char *
        stored; /* what moves, from `offset` on: the caller's bytes; where zeros are left out, those of staging, and when
                     reading the last of the caller's */
    uint32_t stored_bytes;
    uint32_t tries; /* in a row that moved nothing */
} piece;

typedef struct state {
    tide__disk_lane *lane;
    const tide__disk_transfer *transfer;
    piece pieces[DEPTH];
    uint32_t idle[DEPTH], n_idle; /* tags */
    uint64_t next, piece_bytes;   /* bytes cut into pieces so far; of a piece */
    int error;
    uint64_t failed_at;
} state;

int tide__disk_lane_open(tide__disk_lane *lane, const tide__disk_engine *engine, int fd) {
    *lane = (tide__disk_lane){.engine = engine};
    return engine->open(fd, DEPTH, &lane->lane);
}

void tide__disk_lane_close(tide__disk_lane *lane) {
    if (lane->lane) lane->engine->close(lane->lane);
    free(lane->staging);
    *lane = (tide__disk_lane){0};
}

/* ---- checksums ---- */

/* Never 0. */
static uint32_t block_sum(const char *block) { return (uint32_t)(tide__checksum(block, TIDE__DISK_BLOCK) >> 32) | 1; }

static void remember_sums(const tide__disk_transfer *t, const piece *p) {
    for (uint64_t at = 0; at < p->stored_bytes; at += TIDE__DISK_BLOCK)
        t->sums[(p->offset + at) / TIDE__DISK_BLOCK] = block_sum(p->stored + at);
}

static void check_sums(state *s, const piece *p) {
    for (uint64_t at = 0; at < p->stored_bytes && !s->error; at += TIDE__DISK_BLOCK) {
        uint32_t sum = s->transfer->sums[(p->offset + at) / TIDE__DISK_BLOCK];
        if (sum == 0 || sum == block_sum(p->stored + at)) continue;
        s->error = EBADMSG;
        s->failed_at = p->offset + at;
    }
}

/* ---- zeros ---- */

#define BUFFER_BYTES (TIDE__DISK_STAGING_BYTES / (DEPTH + 1))
static_assert(BUFFER_BYTES >= TIDE__ZEROS_BUFFER && BUFFER_BYTES % TIDE__DISK_BLOCK == 0,
              "the worst case fits, aligned");
static_assert(TIDE__ZEROS_BLOCK == TIDE__DISK_BLOCK, "what is packed is whole blocks");

int tide__disk_lane_extent(tide__disk_lane *lane, char **extent) {
    if (!lane->staging) lane->staging = aligned_alloc(TIDE__DISK_BLOCK, TIDE__DISK_STAGING_BYTES);
    if (!lane->staging) return ENOMEM;
    *extent = lane->staging + DEPTH * BUFFER_BYTES;
    return 0;
}

static char *raw_bytes(const tide__disk_transfer *t, const piece *p) { return t->data + (p->offset - t->offset); }

static void set_forms(const tide__disk_transfer *t, const piece *p, uint64_t stored) {
    tide__disk_form *form = t->forms + p->offset / TIDE__DISK_BLOCK;
    const uint64_t n = p->size_bytes / TIDE__DISK_BLOCK;
    for (uint64_t i = 0; i < n; i++)
        form[i] = (tide__disk_form){.place = (uint8_t)(i + 1), .blocks = (uint8_t)n, .stored = (uint8_t)stored};
}

static bool worth_packing(const state *s, uint64_t at) {
    const tide__disk_transfer *t = s->transfer;
    return tide__zeros_pay(t->data + at, tide__min_u64(TIDE__DISK_EXTENT, t->size_bytes - at));
}

/* From `next` on: bytes up to where blocks of another form begin, or are to begin, but no more than a piece. */
static uint64_t same_form(const state *s, bool packed) {
    const tide__disk_transfer *t = s->transfer;
    uint64_t left = t->size_bytes - s->next, size = tide__min_u64(packed ? TIDE__DISK_EXTENT : s->piece_bytes, left);
    if (!t->forms || (t->write && (!t->packs || packed))) return size;
    const tide__disk_form *form = t->forms + (t->offset + s->next) / TIDE__DISK_BLOCK;
    if (!t->write && packed) return form->place == 1 ? tide__min_u64(form->blocks * TIDE__DISK_BLOCK, left) : 0;
    uint64_t step = t->write ? TIDE__DISK_EXTENT : TIDE__DISK_BLOCK, at = step;
    while (at < size && !(t->write ? worth_packing(s, s->next + at) : form[at / TIDE__DISK_BLOCK].place)) at += step;
    return tide__min_u64(at, size);
}

/* Of the piece at hand: its zeros are left out, if that saves a sixteenth of its blocks. */
static void pack_piece(state *s, piece *p, uint32_t tag) {
    char *extent, *buffer;
    if (tide__disk_lane_extent(s->lane, &extent) != 0) return; /* it goes as it is */
    buffer = s->lane->staging + tag * BUFFER_BYTES;
    uint64_t stored = tide__zeros_pack(raw_bytes(s->transfer, p), p->size_bytes, buffer, tide__zeros_is_wide());
    if (stored > p->size_bytes / 16 * UINT64_C(15)) return;
    p->stored = buffer;
    p->stored_bytes = (uint32_t)stored;
}

static bool is_packed(const tide__disk_transfer *t, const piece *p) { return p->stored != raw_bytes(t, p); }

/* EBADMSG: what was read is no packed extent. */
static int unpack_piece(const tide__disk_transfer *t, const piece *p) {
    bool wide = tide__zeros_is_wide();
    return tide__zeros_unpack(p->stored, p->stored_bytes, raw_bytes(t, p), p->size_bytes, wide) ? 0 : EBADMSG;
}

/* ---- pieces ---- */

static void set_error(state *s, int error, uint64_t at) {
    if (s->error) return;
    s->error = error;
    s->failed_at = at;
}

static void push(state *s, uint32_t tag) {
    int error = s->lane->engine->push(s->lane->lane, &s->pieces[tag].rest, tag);
    if (!error) return;
    set_error(s, error, s->pieces[tag].rest.offset);
    s->idle[s->n_idle++] = tag;
}

/* A piece that is read packed comes to the end of its room, to be unpacked in place. False: this is no extent. */
static bool read_packed(const tide__disk_transfer *t, piece *p) {
    p->stored_bytes = (uint32_t)(t->forms[p->offset / TIDE__DISK_BLOCK].stored * TIDE__DISK_BLOCK);
    if (p->size_bytes == 0 || p->stored_bytes > p->size_bytes) return false;
    p->stored += p->size_bytes - p->stored_bytes;
    return true;
}

static void cut_piece(state *s) {
    const tide__disk_transfer *t = s->transfer;
    uint32_t tag = s->idle[--s->n_idle];
    piece *p = &s->pieces[tag];
    uint64_t offset = t->offset + s->next;
    bool packed =
        t->forms && (t->write ? t->packs && worth_packing(s, s->next) : t->forms[offset / TIDE__DISK_BLOCK].place);
    *p = (piece){.offset = offset, .size_bytes = (uint32_t)same_form(s, packed), .stored = t->data + s->next};
    p->stored_bytes = p->size_bytes;
    if (packed && t->write) pack_piece(s, p, tag);
    if (packed && !t->write && !read_packed(t, p)) {
        set_error(s, EBADMSG, offset);
        s->idle[s->n_idle++] = tag;
        return;
    }
    s->next += p->size_bytes;
    p->rest =
        (tide__disk_request){.data = p->stored, .offset = p->offset, .size_bytes = p->stored_bytes, .write = t->write};
    push(s, tag);
}

/* A disk that is busy now may not be in a moment. */
static void pause_a_moment(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

/* What the result means for the piece: 0 to go on with it, else an errno. */
static int settle(state *s, piece *p, int64_t result) {
    const tide__disk_transfer *t = s->transfer;
    if (result == 0) return t->write ? ENOSPC : EIO;
    if (result < 0 && result != -EINTR && result != -EAGAIN) return (int)-result;
    if (result > (int64_t)p->rest.size_bytes) return EIO;
    uint32_t moved = result < 0 ? 0 : (uint32_t)result;
    if (t->whole_blocks) moved &= ~(uint32_t)(TIDE__DISK_BLOCK - 1);
    p->tries = moved ? 0 : p->tries + 1;
    if (p->tries == MAX_TRIES) return result < 0 ? (int)-result : EIO;
    if (result == -EAGAIN) pause_a_moment();
    s->lane->moved_bytes += moved;
    p->rest.data += moved;
    p->rest.offset += moved;
    p->rest.size_bytes -= moved;
    return 0;
}

/* All of it has moved. */
static void finish_piece(state *s, const piece *p) {
    const tide__disk_transfer *t = s->transfer;
    if (t->write) {
        if (t->sums) remember_sums(t, p);
        if (is_packed(t, p)) set_forms(t, p, p->stored_bytes / TIDE__DISK_BLOCK);
        return;
    }
    if (t->sums) check_sums(s, p);
    int error = !s->error && is_packed(t, p) ? unpack_piece(t, p) : 0;
    if (error) set_error(s, error, p->offset);
}

static void complete(state *s, uint32_t tag, int64_t result) {
    piece *p = &s->pieces[tag];
    int error = settle(s, p, result);
    if (error) set_error(s, error, p->rest.offset);
    if (!s->error && p->rest.size_bytes > 0) {
        push(s, tag);
        return;
    }
    if (!s->error) finish_piece(s, p);
    s->idle[s->n_idle++] = tag;
}

static bool is_passing(int error) { return error == EINTR || error == EAGAIN || error == EBUSY; }

/* Waiting may be interrupted, or the kernel short of memory for a moment. Any other failure fails the transfer, but what
 * is in flight is still waited for; only when that goes on failing the lane is lost. The kernel keeps the pages of
 * requests that nobody waits for, so even then only this transfer's memory is at stake. */
static bool wait_for_one(state *s) {
    uint32_t tag;
    int64_t result;
    for (int tries = 0; tries < MAX_TRIES;) {
        int error = s->lane->engine->wait(s->lane->lane, &tag, &result);
        if (!error && tag < DEPTH) {
            complete(s, tag, result);
            return true;
        }
        if (error == EINTR) continue;
        if (!is_passing(error)) set_error(s, error ? error : EIO, s->transfer->offset);
        pause_a_moment();
        tries++;
    }
    set_error(s, EIO, s->transfer->offset);
    s->lane->lost = true;
    return false;
}

/* Small transfers too are to keep the disk's queue filled. */
static uint64_t choose_piece(uint64_t size_bytes) {
    uint64_t share = size_bytes / DEPTH & ~(TIDE__DISK_BLOCK - 1);
    return tide__min_u64(MAX_PIECE_BYTES, tide__max_u64(MIN_PIECE_BYTES, share));
}

/* Before a write nothing is known of any of its blocks any more, after it everything: one that fails leaves no false claim. */
static void forget(const tide__disk_transfer *t) {
    const uint64_t first = t->offset / TIDE__DISK_BLOCK, n = t->size_bytes / TIDE__DISK_BLOCK;
    if (t->sums) memset(t->sums + first, 0, n * sizeof *t->sums);
    if (t->forms) memset(t->forms + first, 0, n * sizeof *t->forms);
}

int tide__disk_run(tide__disk_lane *lane, const tide__disk_transfer *transfer, uint64_t *failed_at) {
    state s = {.lane = lane, .transfer = transfer, .n_idle = DEPTH, .piece_bytes = choose_piece(transfer->size_bytes)};
    for (uint32_t i = 0; i < DEPTH; i++) s.idle[i] = DEPTH - 1 - i;
    if (lane->lost) set_error(&s, EIO, transfer->offset);
    if (transfer->write && !s.error) forget(transfer);
    do {
        while (!s.error && s.n_idle > 0 && s.next < transfer->size_bytes) cut_piece(&s);
    } while (s.n_idle < DEPTH && wait_for_one(&s));
    if (s.error) *failed_at = s.failed_at;
    return s.error;
}
