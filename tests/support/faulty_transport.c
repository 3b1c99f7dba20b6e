/* See faulty_transport.h. */
#include "support/faulty_transport.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

static harm_plan current;
static _Atomic uint32_t n_passed;
static _Atomic bool done, cut;

typedef struct held {
    bool full;
    uint32_t to, size_bytes;
    char bytes[TIDE__NET_FRAME_BYTES];
} held;

typedef struct wrapped {
    void *inner;
    uint32_t rank;
    held later; /* the frame that is to come after the next one */
} wrapped;

void plan_harm(const harm_plan *plan) {
    current = *plan;
    atomic_store(&n_passed, 0);
    atomic_store(&done, false);
    atomic_store(&cut, false);
}

bool harm_done(void) { return atomic_load(&done); }

uint32_t harm_rounds(uint32_t n) {
    const char *text = getenv("TIDE_TEST_FAULTS");
    return text ? (uint32_t)strtoul(text, NULL, 10) : rounds(n);
}

static int faulty_open(void *start, void **out, uint32_t *rank, uint32_t *count, char *why, size_t why_bytes) {
    wrapped *w = calloc(1, sizeof *w);
    if (!w || tide__net_local.open(start, &w->inner, rank, count, why, why_bytes)) {
        free(w);
        return 1;
    }
    w->rank = *rank;
    *out = w;
    return 0;
}

/* Is this one to be harmed? Counts those that could be. */
static bool strike(const wrapped *w, bool is_data) {
    if (w->rank != current.rank || atomic_load(&done) || (current.harm == HARM_DATA) != is_data) return false;
    if (atomic_fetch_add(&n_passed, 1) < current.after) return false;
    atomic_store(&done, true);
    return true;
}

static void flip(char *bytes, uint32_t size_bytes) {
    uint32_t bit = current.bit % (8 * size_bytes);
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
}

static int pass(wrapped *w, uint32_t to, const void *frame, uint32_t size_bytes, tide__net_request *out) {
    out->word[0] = 0; /* as a frame that has gone */
    if (atomic_load(&cut) && (w->rank == current.rank || to == current.rank)) return 0;
    return tide__net_local.send_frame(w->inner, to, frame, size_bytes, out);
}

static int harm_frame(wrapped *w, uint32_t to, const void *frame, uint32_t size_bytes, tide__net_request *out) {
    char bytes[TIDE__NET_FRAME_BYTES];
    memcpy(bytes, frame, size_bytes);
    out->word[0] = 0;
    switch (current.harm) {
    case HARM_DAMAGE: flip(bytes, size_bytes); break;
    case HARM_DOUBLE:
        if (pass(w, to, bytes, size_bytes, out)) return 1;
        break;
    case HARM_SWAP:
        w->later = (held){.full = true, .to = to, .size_bytes = size_bytes};
        memcpy(w->later.bytes, bytes, size_bytes);
        return 0;
    case HARM_CUT: atomic_store(&cut, true); return 0;
    case HARM_LOSE: return 0;
    case HARM_NONE:
    case HARM_DATA:
    case N_HARMS: break;
    }
    return pass(w, to, bytes, size_bytes, out);
}

static int faulty_send_frame(void *t, uint32_t to, const void *frame, uint32_t size_bytes, tide__net_request *out) {
    wrapped *w = t;
    if (current.harm != HARM_NONE && to != w->rank && strike(w, false))
        return harm_frame(w, to, frame, size_bytes, out);
    int failed = pass(w, to, frame, size_bytes, out);
    if (failed || !w->later.full || w->later.to != to) return failed;
    w->later.full = false;
    return pass(w, to, w->later.bytes, w->later.size_bytes, out);
}

static int faulty_poll_frame(void *t, void *frame, uint32_t *size_bytes, uint32_t *from) {
    return tide__net_local.poll_frame(((wrapped *)t)->inner, frame, size_bytes, from);
}

/* A harmed piece is sent from a copy that lives to the end of the test. */
static char *harmed_copy(const void *data, uint32_t size_bytes) {
    static char *copy;
    free(copy);
    copy = malloc(size_bytes);
    if (!copy) abort();
    memcpy(copy, data, size_bytes);
    flip(copy, size_bytes);
    return copy;
}

static int faulty_send(void *t, uint32_t to, const void *data, uint32_t size_bytes, tide__net_request *out) {
    wrapped *w = t;
    if (to != w->rank && strike(w, true)) data = harmed_copy(data, size_bytes);
    return tide__net_local.send(w->inner, to, data, size_bytes, out);
}

static int faulty_receive(void *t, uint32_t from, void *data, uint32_t size_bytes, tide__net_request *out) {
    return tide__net_local.receive(((wrapped *)t)->inner, from, data, size_bytes, out);
}

static int faulty_test(void *t, tide__net_request *request, bool *is_done) {
    return tide__net_local.test(((wrapped *)t)->inner, request, is_done);
}

static const char *faulty_error(void *t) { return tide__net_local.error(((wrapped *)t)->inner); }
static const char *faulty_library(void *t) { return tide__net_local.library(((wrapped *)t)->inner); }

static void faulty_close(void *t, bool clean) {
    wrapped *w = t;
    tide__net_local.close(w->inner, clean);
    free(w);
}

const tide__net_transport faulty_transport = {
    .version = TIDE__NET_TRANSPORT_VERSION,
    .open = faulty_open,
    .send_frame = faulty_send_frame,
    .poll_frame = faulty_poll_frame,
    .send = faulty_send,
    .receive = faulty_receive,
    .test = faulty_test,
    .error = faulty_error,
    .library = faulty_library,
    .close = faulty_close,
};
