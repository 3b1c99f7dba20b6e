/* See faulty_disk.h. Lanes belong to different threads: what they share is atomic. */
#include "support/faulty_disk.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

enum { MAX_DEPTH = 64, BLOCK = 4096 };

static const tide__disk_engine *inner;
static fault_kind armed;
static long fails_at;
static atomic_long requests, reservations;
static atomic_bool fired;

const char *fault_name(fault_kind kind) {
#define FAULT_NAME(name, benign) #name,
    static const char *const names[] = {FAULT_TABLE(FAULT_NAME)};
#undef FAULT_NAME
    return names[kind];
}

bool fault_is_benign(fault_kind kind) {
#define FAULT_BENIGN(name, benign) benign,
    static const bool list[] = {FAULT_TABLE(FAULT_BENIGN)};
#undef FAULT_BENIGN
    return list[kind];
}

void faulty_disk_arm(const tide__disk_engine *engine, fault_kind kind, long n) {
    inner = engine;
    armed = kind;
    fails_at = n;
    atomic_store(&requests, 0);
    atomic_store(&reservations, 0);
    atomic_store(&fired, false);
}

bool faulty_disk_fired(void) { return atomic_load(&fired); }
long faulty_disk_requests(void) { return atomic_load(&requests); }

/* ---- a lane ---- */

typedef struct made_up {
    uint32_t tag;
    int64_t result;
} made_up;

typedef struct faulty_lane {
    void *inner;
    made_up results[MAX_DEPTH]; /* of requests that never reached the disk */
    uint32_t n_results;
    uint32_t n_wait_faults; /* to come */
    /* What happens to one request when it is complete, if `tampers`: its result, or a bit of its data, changes. */
    bool tampers;
    uint32_t tampered_tag;
    int64_t tampered_result; /* 0: stays */
    char *flipped;           /* NULL: stays */
    bool stuck;
} faulty_lane;

static int faulty_open(int fd, uint32_t depth, void **out) {
    faulty_lane *lane = calloc(1, sizeof *lane);
    if (!lane) return ENOMEM;
    int error = inner->open(fd, depth, &lane->inner);
    if (error)
        free(lane);
    else
        *out = lane;
    return error;
}

static int make_up(faulty_lane *lane, uint32_t tag, int64_t result) {
    lane->results[lane->n_results++] = (made_up){tag, result};
    return 0;
}

static int tamper(faulty_lane *lane, const tide__disk_request *r, uint32_t tag, int64_t result, char *flipped) {
    lane->tampers = true;
    lane->tampered_tag = tag;
    lane->tampered_result = result;
    lane->flipped = flipped;
    return inner->push(lane->inner, r, tag);
}

/* Half of the blocks really are not moved; half of a single block is only claimed, since not every disk can. */
static int push_half(faulty_lane *lane, const tide__disk_request *r, uint32_t tag) {
    tide__disk_request less = *r;
    if (r->size_bytes < 2 * BLOCK) return tamper(lane, r, tag, (r->size_bytes + 1) / 2, NULL);
    less.size_bytes = r->size_bytes / 2 / BLOCK * BLOCK;
    return inner->push(lane->inner, &less, tag);
}

static int push_fault(faulty_lane *lane, const tide__disk_request *r, uint32_t tag) {
    switch (armed) {
    case FAULT_SHORT: return push_half(lane, r, tag);
    case FAULT_ODD: return tamper(lane, r, tag, r->size_bytes > 1 ? r->size_bytes - 1 : 1, NULL);
    case FAULT_EINTR: return make_up(lane, tag, -EINTR);
    case FAULT_EAGAIN: return make_up(lane, tag, -EAGAIN);
    case FAULT_STUCK: lane->stuck = true; return make_up(lane, tag, -EAGAIN);
    case FAULT_ENOSPC: return make_up(lane, tag, -ENOSPC);
    case FAULT_EIO: return make_up(lane, tag, -EIO);
    case FAULT_ZERO: return make_up(lane, tag, 0);
    case FAULT_PUSH: return EIO;
    case FAULT_WAIT_EINTR: lane->n_wait_faults = 2; break;
    case FAULT_WAIT: lane->n_wait_faults = 1; break;
    case FAULT_LOST: lane->n_wait_faults = UINT32_MAX; break;
    case FAULT_FLIP: return tamper(lane, r, tag, 0, r->data + r->size_bytes / 2);
    case FAULT_NONE:
    case FAULT_RESERVE:
    case FAULT_COUNT: break;
    }
    return inner->push(lane->inner, r, tag);
}

/* Only reads can be made to lie without touching the client's memory. */
static bool applies(const tide__disk_request *r) {
    return armed != FAULT_NONE && armed != FAULT_RESERVE && !(armed == FAULT_FLIP && r->write);
}

static int faulty_push(void *context, const tide__disk_request *r, uint32_t tag) {
    faulty_lane *lane = context;
    bool now = atomic_fetch_add(&requests, 1) == fails_at && applies(r);
    if (lane->stuck) return make_up(lane, tag, -EAGAIN);
    if (!now) return inner->push(lane->inner, r, tag);
    atomic_store(&fired, true);
    return push_fault(lane, r, tag);
}

static int wait_fault(faulty_lane *lane) {
    lane->n_wait_faults--;
    if (armed == FAULT_WAIT || armed == FAULT_LOST) return EIO;
    return lane->n_wait_faults ? EINTR : EBUSY;
}

static int faulty_wait(void *context, uint32_t *tag, int64_t *result) {
    faulty_lane *lane = context;
    if (lane->n_wait_faults) return wait_fault(lane);
    if (lane->n_results) {
        made_up m = lane->results[--lane->n_results];
        *tag = m.tag;
        *result = m.result;
        return 0;
    }
    int error = inner->wait(lane->inner, tag, result);
    if (error || !lane->tampers || lane->tampered_tag != *tag) return error;
    lane->tampers = false;
    if (lane->tampered_result) *result = lane->tampered_result;
    if (lane->flipped) *lane->flipped = (char)(*lane->flipped ^ 4);
    return 0;
}

static void faulty_close(void *context) {
    faulty_lane *lane = context;
    inner->close(lane->inner);
    free(lane);
}

static int faulty_reserve(int fd, uint64_t size_bytes) {
    if (atomic_fetch_add(&reservations, 1) != fails_at || armed != FAULT_RESERVE) return inner->reserve(fd, size_bytes);
    atomic_store(&fired, true);
    return ENOSPC;
}

const tide__disk_engine *const *faulty_disk_engines(void) {
    static const tide__disk_engine engine = {
        .name = "faulty",
        .open = faulty_open,
        .push = faulty_push,
        .wait = faulty_wait,
        .close = faulty_close,
        .reserve = faulty_reserve,
    };
    static const tide__disk_engine *const engines[] = {&engine, NULL};
    return engines;
}
