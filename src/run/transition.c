/* See transition.h.
 *
 * Value v waits for value u while u lies where v will. Who waits for nobody moves, which may free others. If all that
 * are left wait in a circle, one is put aside, to room that is neither held nor wanted. Sites of one map do not overlap,
 * so n values have at most 2n such pairs, and the whole is O(n log n) besides the bytes that move. */
#include "run/transition.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "run/ranges.h"

enum { N_SPACES = 1 + TIDE_MACHINE_MAX_TIERS, CHUNK_BYTES = 64 << 10 };

/* ---- bytes ---- */

static tide_status move_by_tier(tide_run *run, tide__site arena, tide__site tier, uint64_t size, bool out) {
    tide__tier_slot slot = {.tier = run->tier[tier.space - 1], .offset = tier.offset};
    tide_io io = {.fn = out ? tide__tier_save : tide__tier_load, .context = &slot, .channel = TIDE_NONE};
    TIDE_TRY(out ? tide_copy_out(run->queue[0], run->arena, arena.offset, size, io)
                 : tide_copy_in(run->queue[0], run->arena, arena.offset, size, io));
    return tide_queue_sync(run->queue[0]);
}

static tide_status to_chunk(void *chunk, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy((char *)chunk + position, data, size_bytes);
    return TIDE_OK;
}

static tide_status from_chunk(void *chunk, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy(data, (char *)chunk + position, size_bytes);
    return TIDE_OK;
}

static tide_status access_piece(tide_run *run, tide__site site, uint64_t at, char *chunk, uint64_t piece, bool write) {
    if (site.space) {
        tide__tier_slot slot = {.tier = run->tier[site.space - 1], .offset = site.offset};
        return write ? tide__tier_save(&slot, at, chunk, piece) : tide__tier_load(&slot, at, chunk, piece);
    }
    tide_io io = {.fn = write ? from_chunk : to_chunk, .context = chunk, .channel = TIDE_NONE};
    TIDE_TRY(write ? tide_copy_in(run->queue[0], run->arena, site.offset + at, piece, io)
                   : tide_copy_out(run->queue[0], run->arena, site.offset + at, piece, io));
    return tide_queue_sync(run->queue[0]);
}

/* From the end that is not overwritten first. */
static tide_status move_in_pieces(tide_run *run, tide__site from, tide__site to, uint64_t size) {
    _Alignas(4096) char chunk[CHUNK_BYTES];
    bool backwards = from.space == to.space && to.offset > from.offset;
    for (uint64_t done = 0; done < size;) {
        uint64_t piece = tide__min_u64(size - done, CHUNK_BYTES), at = backwards ? size - done - piece : done;
        TIDE_TRY(access_piece(run, from, at, chunk, piece, false));
        TIDE_TRY(access_piece(run, to, at, chunk, piece, true));
        done += piece;
    }
    return TIDE_OK;
}

/* Where the host cannot see the arena its bytes take the way through host memory. */
static tide_status move_in_arena(tide_run *run, tide__site from, tide__site to, uint64_t size) {
    char *host = tide_arena_host(run->arena);
    if (!host) return move_in_pieces(run, from, to, size);
    memmove(host + to.offset, host + from.offset, size);
    return TIDE_OK;
}

tide_status tide__transition_copy(tide_run *run, tide__site from, tide__site to, uint64_t size) {
    if (size == 0) return TIDE_OK;
    run->hauled_bytes += size;
    if (from.space == 0 && to.space == 0) return move_in_arena(run, from, to, size);
    if (from.space == 0) return move_by_tier(run, from, to, size, true);
    if (to.space == 0) return move_by_tier(run, to, from, size, false);
    return move_in_pieces(run, from, to, size);
}

/* ---- who waits for whom ---- */

typedef struct edge {
    uint32_t waiter, next;
} edge;

typedef struct transition {
    tide_run *run;
    const uint64_t *room_bytes;
    tide__haul *hauls;
    uint32_t n;
    uint32_t *waits;    /* per haul: for how many others */
    uint32_t *first;    /* per haul: the first edge to who waits for it */
    bool *done, *aside; /* per haul */
    TIDE_VEC(edge) edges;
    TIDE_VEC(uint32_t) free; /* hauls that wait for nobody */
    uint64_t unit;
    tide__ranges spare[N_SPACES];
    bool knows_spare;
} transition;

static bool is_same(tide__site a, tide__site b) { return a.space == b.space && a.offset == b.offset; }

typedef struct sorted_haul {
    tide__site site;
    uint32_t haul;
} sorted_haul;

static int by_site(const void *a, const void *b) {
    const sorted_haul *x = a, *y = b;
    if (x->site.space != y->site.space) return x->site.space < y->site.space ? -1 : 1;
    return x->site.offset < y->site.offset ? -1 : x->site.offset > y->site.offset;
}

/* Empty values lie nowhere. */
static size_t sort_sites(const transition *t, sorted_haul *sorted) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->hauls[i].size_bytes) sorted[n++] = (sorted_haul){t->hauls[i].from, i};
    if (n) qsort(sorted, n, sizeof *sorted, by_site);
    return n;
}

/* The first of them that ends behind `site` begins. */
static size_t find_first(const transition *t, const sorted_haul *sorted, size_t n, tide__site site) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        const sorted_haul *s = &sorted[middle];
        bool before = s->site.space != site.space ? s->site.space < site.space
                                                  : s->site.offset + t->hauls[s->haul].size_bytes <= site.offset;
        if (before)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static tide_status add_edges(transition *t, const sorted_haul *sorted, size_t n, uint32_t v) {
    const tide__haul *h = &t->hauls[v];
    for (size_t i = find_first(t, sorted, n, h->to); i < n; i++) {
        const sorted_haul *s = &sorted[i];
        if (s->site.space != h->to.space || s->site.offset >= h->to.offset + h->size_bytes) break;
        if (s->haul == v) continue;
        edge e = {.waiter = v, .next = t->first[s->haul]};
        t->first[s->haul] = (uint32_t)t->edges.count;
        TIDE_TRY(tide__vec_push(&t->edges, e));
        t->waits[v]++;
    }
    return TIDE_OK;
}

static tide_status find_edges(transition *t) {
    sorted_haul *sorted = malloc(((size_t)t->n + 1) * sizeof *sorted);
    if (!sorted) return tide__fail_memory();
    size_t n = sort_sites(t, sorted);
    tide_status status = TIDE_OK;
    for (uint32_t v = 0; v < t->n && status == TIDE_OK; v++) {
        t->done[v] = t->hauls[v].size_bytes == 0 || is_same(t->hauls[v].from, t->hauls[v].to);
        if (t->done[v]) t->hauls[v].from = t->hauls[v].to;
        if (!t->done[v]) status = add_edges(t, sorted, n, v);
        if (status == TIDE_OK && !t->done[v] && t->waits[v] == 0) status = tide__vec_push(&t->free, v);
    }
    free(sorted);
    return status;
}

/* ---- moving ---- */

static tide_status leave(transition *t, uint32_t v, tide__site to) {
    tide__haul *h = &t->hauls[v];
    if (to.space > 0 && !t->run->tier[to.space - 1]) {
        tide_status status = tide__run_open_tier(t->run, to.space - 1, t->room_bytes[to.space]);
        if (status != TIDE_OK) return tide__run_tier_is_refused(status) ? TIDE_E_FIT : status; /* no room for it */
    }
    TIDE_TRY(tide__transition_copy(t->run, h->from, to, h->size_bytes));
    h->from = to;
    for (uint32_t e = t->first[v]; e != TIDE_NONE; e = t->edges.data[e].next) {
        uint32_t w = t->edges.data[e].waiter;
        if (--t->waits[w] == 0) TIDE_TRY(tide__vec_push(&t->free, w));
    }
    t->first[v] = TIDE_NONE;
    return TIDE_OK;
}

static tide_status move_free(transition *t) {
    while (t->free.count) {
        uint32_t v = t->free.data[--t->free.count];
        TIDE_TRY(leave(t, v, t->hauls[v].to));
        t->done[v] = true;
    }
    return TIDE_OK;
}

/* Spare room is counted in units that suit the arena and every tier. */
static uint64_t find_unit(const tide_machine *m) {
    uint64_t unit = m->align_bytes;
    for (uint32_t i = 0; i < m->n_tiers; i++) unit = tide__max_u64(unit, m->tier[i].block_bytes);
    return unit;
}

static tide__range whole_units(const transition *t, uint64_t offset, uint64_t size) {
    uint64_t begin = offset & ~(t->unit - 1), end = (offset + size + t->unit - 1) & ~(t->unit - 1);
    return (tide__range){begin, size ? end - begin : 0};
}

/* What is neither held nor wanted. */
static tide_status find_spare(transition *t) {
    tide__range *taken = malloc((2 * (size_t)t->n + 1) * sizeof *taken);
    if (!taken) return tide__fail_memory();
    tide_status status = TIDE_OK;
    for (uint32_t space = 0; space < N_SPACES && status == TIDE_OK; space++) {
        size_t n = 0;
        for (uint32_t i = 0; i < t->n; i++) {
            const tide__haul *h = &t->hauls[i];
            if (h->from.space == space) taken[n++] = whole_units(t, h->from.offset, h->size_bytes);
            if (h->to.space == space) taken[n++] = whole_units(t, h->to.offset, h->size_bytes);
        }
        status = tide__ranges_init_except(&t->spare[space], t->room_bytes[space] & ~(t->unit - 1), taken, n);
    }
    free(taken);
    t->knows_spare = status == TIDE_OK;
    return status;
}

/* Puts one value aside that is in the way; in the arena if that has room, because that is quickest. */
static tide_status break_circle(transition *t, bool *broken) {
    *broken = false;
    if (!t->knows_spare) TIDE_TRY(find_spare(t));
    for (uint32_t v = 0; v < t->n; v++) {
        if (t->done[v] || t->aside[v]) continue;
        for (uint32_t space = 0; space < N_SPACES; space++) {
            tide__site site = {.space = space};
            if (!tide__ranges_take(&t->spare[space], whole_units(t, 0, t->hauls[v].size_bytes).size, &site.offset))
                continue;
            t->aside[v] = *broken = true;
            return leave(t, v, site);
        }
    }
    return TIDE_OK;
}

static tide_status move_all(transition *t) {
    for (;;) {
        bool broken;
        TIDE_TRY(move_free(t));
        uint32_t left = 0;
        while (left < t->n && t->done[left]) left++;
        if (left == t->n) return TIDE_OK;
        TIDE_TRY(break_circle(t, &broken));
        if (!broken)
            return tide__fail(TIDE_E_FIT, "values stand in each other's way between two steps, and no room is left");
    }
}

tide_status tide__transition(tide_run *run, const uint64_t *room_bytes, tide__haul *hauls, size_t n) {
    transition t = {.run = run, .room_bytes = room_bytes, .hauls = hauls, .n = (uint32_t)n};
    t.unit = find_unit(run->options.machine);
    t.waits = calloc(n + 1, sizeof *t.waits);
    t.first = malloc((n + 1) * sizeof *t.first);
    t.done = calloc(n + 1, sizeof *t.done);
    t.aside = calloc(n + 1, sizeof *t.aside);
    tide_status status = t.waits && t.first && t.done && t.aside ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) {
        memset(t.first, 0xff, (n + 1) * sizeof *t.first);
        status = find_edges(&t);
    }
    if (status == TIDE_OK) status = move_all(&t);
    for (uint32_t s = 0; s < N_SPACES; s++) tide__ranges_deinit(&t.spare[s]);
    tide__vec_free(&t.edges);
    tide__vec_free(&t.free);
    free(t.waits);
    free(t.first);
    free(t.done);
    free(t.aside);
    return status;
}
