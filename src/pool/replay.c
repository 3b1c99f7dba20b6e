/* See replay.h. */
#include "pool/replay.h"

#include <stdlib.h>

#include "base/rng.h"
#include "base/size.h"
#include "pool/history.h"

#define MAX_EXTRA_BYTES (UINT64_C(4) << 20)

typedef struct player {
    const tide__stream *stream;
    const tide_replay_options *options;
    tide_pool *pool;
    uint64_t next_address;
    void **address; /* per block of the stream */
    bool *missing;  /* per block: its malloc was left out */
    void *extra;    /* the block that was added last, NULL if it is free again */
    size_t extra_until;
    uint64_t n_drawn;
    tide_pool_stats border; /* at the last border between iterations */
    tide_replay_result *result;
} player;

/* ---- addresses without memory ---- */

static tide_status address_alloc(void *context, uint64_t size_bytes, uint64_t alignment, void **out) {
    player *p = context;
    uint64_t begin, end;
    if (!tide__align_up(p->next_address, alignment, &begin) || !tide__add(begin, size_bytes, &end) || end > INT64_MAX)
        return tide__fail(TIDE_E_OVERFLOW, "the stream's blocks need more than 2^63 addresses");
    p->next_address = end;
    *out = (void *)(uintptr_t)begin; /* NOLINT(performance-no-int-to-ptr): nobody dereferences it */
    return TIDE_OK;
}

static void address_free(void *context, void *block, uint64_t size_bytes) {
    (void)context;
    (void)block;
    (void)size_bytes;
}

/* ---- deviations ---- */

static uint64_t draw(player *p, uint64_t bound) { return tide__random_u64(p->options->seed, 0, p->n_drawn++) % bound; }

/* Asked at every malloc: once there is a plan, true about once in `deviate_every` iterations. */
static bool deviates(player *p) {
    uint64_t mallocs = p->border.period_events / 2;
    return p->options->deviate_every && mallocs && draw(p, p->options->deviate_every * mallocs) == 0;
}

static tide_status add_malloc(player *p, size_t event) {
    if (p->extra) return TIDE_OK;
    p->extra_until = event + 1 + draw(p, p->border.period_events);
    p->result->n_extra++;
    return tide_pool_malloc(p->pool, 1 + draw(p, MAX_EXTRA_BYTES), &p->extra);
}

static tide_status free_extra(player *p, size_t event) {
    if (!p->extra || event < p->extra_until) return TIDE_OK;
    TIDE_TRY(tide_pool_free(p->pool, p->extra));
    p->extra = NULL;
    return TIDE_OK;
}

/* ---- playing ---- */

static tide_status play_malloc(player *p, size_t event) {
    uint32_t block = p->stream->events.data[event].block;
    if (deviates(p)) {
        if (draw(p, 2) == 0) {
            p->missing[block] = true;
            p->result->n_missing++;
            return TIDE_OK;
        }
        TIDE_TRY(add_malloc(p, event));
    }
    uint64_t size_bytes = p->stream->blocks.data[block].size_bytes;
    if (size_bytes > TIDE__MAX_BLOCK_BYTES)
        return tide__fail(TIDE_E_OVERFLOW, "a block of %llu bytes is more than 2^60", (unsigned long long)size_bytes);
    return tide_pool_malloc(p->pool, size_bytes, &p->address[block]);
}

static tide_status play_event(player *p, size_t event) {
    const tide__event *e = &p->stream->events.data[event];
    TIDE_TRY(free_extra(p, event));
    if (e->kind == TIDE__EVENT_MALLOC) return play_malloc(p, event);
    if (e->kind != TIDE__EVENT_FREE || p->missing[e->block]) return TIDE_OK;
    return tide_pool_free(p->pool, p->address[e->block]);
}

/* ---- figures ---- */

static void begin_steady(player *p, const tide_pool_stats *now, size_t event) {
    p->result->learn_events = event + 1;
    p->result->learn_peak_held_bytes = now->peak_held_bytes;
    p->result->worst_share = 1;
    tide_pool_reset_peaks(p->pool);
}

/* A stretch between two borders that is much shorter than the plan is no iteration: the stream ended, or was elsewhere
 * and came back in the middle. */
static void add_iteration(player *p, const tide_pool_stats *now) {
    tide_replay_result *r = p->result;
    uint64_t watched = now->n_watched - p->border.n_watched, planned = now->n_planned - p->border.n_planned;
    double share = watched ? (double)planned / (double)watched : 1;
    if (4 * watched < 3 * (uint64_t)(now->period_events / 2)) return;
    r->n_iterations++;
    r->n_watched += watched;
    r->n_planned += planned;
    r->peak_live_bytes = now->peak_live_bytes;
    r->peak_held_bytes = now->peak_held_bytes;
    r->longest_off_events = now->longest_off_events;
    if (share < r->worst_share) r->worst_share = share;
}

static void measure(player *p, size_t event) {
    tide_pool_stats now;
    tide_pool_get_stats(p->pool, &now);
    bool at_border = now.n_iterations > p->border.n_iterations;
    p->border.period_events = now.period_events;
    if (!at_border) return;
    if (p->result->learn_events)
        add_iteration(p, &now);
    else if (now.n_planned)
        begin_steady(p, &now, event);
    p->border = now;
}

/* ---- the whole ---- */

static tide_status start(player *p) {
    tide_pool_options options = p->options->pool;
    size_t n = p->stream->blocks.count + 1;
    options.backing = (tide_pool_backing){.alloc = address_alloc, .free = address_free, .context = p};
    p->address = calloc(n, sizeof *p->address);
    p->missing = calloc(n, sizeof *p->missing);
    if (!p->address || !p->missing) return tide__fail_memory();
    return tide_pool_create(&options, &p->pool);
}

static tide_status play(player *p) {
    for (size_t i = 0; i < p->stream->events.count; i++) {
        tide_status status = play_event(p, i);
        if (status != TIDE_OK)
            return tide__fail_in(status, "%s:%zu", p->stream->in->name, p->stream->events.data[i].line);
        measure(p, i);
    }
    return TIDE_OK;
}

tide_status tide__pool_replay(const tide__stream *stream, const tide_replay_options *options,
                              tide_replay_result *result) {
    tide_replay_result played = {.worst_share = 1};
    player p = {.stream = stream, .options = options, .next_address = 1 << 21, .result = &played};
    tide_status status = start(&p);
    if (status == TIDE_OK) status = play(&p);
    if (status == TIDE_OK) {
        tide_pool_get_stats(p.pool, &played.stats);
        *result = played;
    }
    tide_pool_destroy(p.pool);
    free(p.address);
    free(p.missing);
    return status;
}
