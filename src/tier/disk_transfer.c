/* See disk_transfer.h.
 *
 *      transfer   |--piece 2--|--piece 0--|--piece 1--|....... not cut yet .......|
 *                   in flight   in flight   in flight ^ next
 *
 * Invariant: every piece in flight has a tag of its own; a failure stops the cutting, and the transfer ends only when
 * nothing is in flight, because the memory is the caller's again then. */
#include "tier/disk_transfer.h"

#include <errno.h>
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
    *lane = (tide__disk_lane){0};
}

/* ---- checksums ---- */

/* Never 0. */
static uint32_t block_sum(const char *block) { return (uint32_t)(tide__checksum(block, TIDE__DISK_BLOCK) >> 32) | 1; }

/* Before a write nothing is known of its blocks any more, after it everything: one that fails leaves no false claim. */
static void forget_sums(const tide__disk_transfer *t, const piece *p) {
    memset(t->sums + p->offset / TIDE__DISK_BLOCK, 0, p->size_bytes / TIDE__DISK_BLOCK * sizeof *t->sums);
}

static void remember_sums(const tide__disk_transfer *t, const piece *p) {
    const char *data = t->data + (p->offset - t->offset);
    for (uint64_t at = 0; at < p->size_bytes; at += TIDE__DISK_BLOCK)
        t->sums[(p->offset + at) / TIDE__DISK_BLOCK] = block_sum(data + at);
}

static void check_sums(state *s, const piece *p) {
    const tide__disk_transfer *t = s->transfer;
    const char *data = t->data + (p->offset - t->offset);
    for (uint64_t at = 0; at < p->size_bytes && !s->error; at += TIDE__DISK_BLOCK) {
        uint32_t sum = t->sums[(p->offset + at) / TIDE__DISK_BLOCK];
        if (sum == 0 || sum == block_sum(data + at)) continue;
        s->error = EBADMSG;
        s->failed_at = p->offset + at;
    }
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

static void cut_piece(state *s) {
    const tide__disk_transfer *t = s->transfer;
    uint32_t tag = s->idle[--s->n_idle];
    piece *p = &s->pieces[tag];
    *p = (piece){.offset = t->offset + s->next,
                 .size_bytes = (uint32_t)tide__min_u64(s->piece_bytes, t->size_bytes - s->next)};
    p->rest = (tide__disk_request){
        .data = t->data + s->next, .offset = p->offset, .size_bytes = p->size_bytes, .write = t->write};
    if (t->write && t->sums) forget_sums(t, p);
    s->next += p->size_bytes;
    push(s, tag);
}

/* A disk that is busy now may not be in a moment. */
static void pause_a_moment(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

/* What the result means for the piece: 0 to go on with it, else an errno. */
static int settle(const tide__disk_transfer *t, piece *p, int64_t result) {
    if (result == 0) return t->write ? ENOSPC : EIO;
    if (result < 0 && result != -EINTR && result != -EAGAIN) return (int)-result;
    if (result > (int64_t)p->rest.size_bytes) return EIO;
    uint32_t moved = result < 0 ? 0 : (uint32_t)result;
    if (t->whole_blocks) moved &= ~(uint32_t)(TIDE__DISK_BLOCK - 1);
    p->tries = moved ? 0 : p->tries + 1;
    if (p->tries == MAX_TRIES) return result < 0 ? (int)-result : EIO;
    if (result == -EAGAIN) pause_a_moment();
    p->rest.data += moved;
    p->rest.offset += moved;
    p->rest.size_bytes -= moved;
    return 0;
}

static void complete(state *s, uint32_t tag, int64_t result) {
    const tide__disk_transfer *t = s->transfer;
    piece *p = &s->pieces[tag];
    int error = settle(t, p, result);
    if (error) set_error(s, error, p->rest.offset);
    if (!s->error && p->rest.size_bytes > 0) {
        push(s, tag);
        return;
    }
    if (!s->error && t->sums && t->write) remember_sums(t, p);
    if (!s->error && t->sums && !t->write) check_sums(s, p);
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

int tide__disk_run(tide__disk_lane *lane, const tide__disk_transfer *transfer, uint64_t *failed_at) {
    state s = {.lane = lane, .transfer = transfer, .n_idle = DEPTH, .piece_bytes = choose_piece(transfer->size_bytes)};
    for (uint32_t i = 0; i < DEPTH; i++) s.idle[i] = DEPTH - 1 - i;
    if (lane->lost) set_error(&s, EIO, transfer->offset);
    do {
        while (!s.error && s.n_idle > 0 && s.next < transfer->size_bytes) cut_piece(&s);
    } while (s.n_idle < DEPTH && wait_for_one(&s));
    if (s.error) *failed_at = s.failed_at;
    return s.error;
}
