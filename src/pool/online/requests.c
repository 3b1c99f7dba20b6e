/* See requests.h. */
#include "pool/online/requests.h"

#include <stdlib.h>

#include "base/size.h"

void tide__requests_deinit(tide__requests *requests) { tide__vec_free(&requests->list); }

/* Hands over on success, cleans up on failure. */
static tide_status finish(tide_status status, tide__requests *requests, tide__requests *out) {
    if (status == TIDE_OK)
        *out = *requests;
    else
        tide__requests_deinit(requests);
    return status;
}

/* ---- from a recording ---- */

static tide_status add_event(const tide__stream *stream, const tide__event *event, tide__requests *r) {
    uint64_t size = stream->blocks.data[event->block].size_bytes;
    if (size == 0 || (event->kind != TIDE__EVENT_MALLOC && event->kind != TIDE__EVENT_FREE)) return TIDE_OK;
    tide__online_request request = {.size = event->kind == TIDE__EVENT_MALLOC ? size : 0, .block = event->block};
    return tide__vec_push(&r->list, request);
}

tide_status tide__requests_of_stream(const tide__stream *stream, tide__requests *out) {
    tide__requests r = {.n_blocks = (uint32_t)stream->blocks.count};
    tide_status status = TIDE_OK;
    for (size_t i = 0; status == TIDE_OK && i < stream->events.count; i++)
        status = add_event(stream, &stream->events.data[i], &r);
    return finish(status, &r, out);
}

/* ---- from lifetimes ---- */

/* One end of a lifetime, in one step. */
typedef struct edge {
    uint32_t time, item;
    bool begins;
} edge;

typedef struct edges {
    TIDE_VEC(edge) list;
    uint32_t horizon; /* where the step ends */
} edges;

static int by_time(const void *a, const void *b) {
    const edge *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    if (x->begins != y->begins) return x->begins ? 1 : -1;
    return (x->item > y->item) - (x->item < y->item);
}

static bool lives_twice(const tide__place_item *it) { return it->begin2 < it->end2; }

static uint32_t find_horizon(const tide__place_item *items, size_t n) {
    uint32_t horizon = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].end > horizon) horizon = items[i].end;
        if (lives_twice(&items[i]) && items[i].end2 > horizon) horizon = items[i].end2;
    }
    return horizon;
}

/* A lifetime that reaches the end of the step and whose item is alive at its start goes on there. */
static tide_status add_lifetime(edges *e, uint32_t item, uint32_t begin, uint32_t end, bool carried) {
    if (begin >= end) return TIDE_OK;
    if (!carried || begin > 0) TIDE_TRY(tide__vec_push(&e->list, ((edge){begin, item, true})));
    if (!carried || end < e->horizon) TIDE_TRY(tide__vec_push(&e->list, ((edge){end, item, false})));
    return TIDE_OK;
}

static bool is_carried(const tide__place_item *it, uint32_t horizon) {
    return it->begin == 0 && it->end > 0 && (lives_twice(it) ? it->end2 : it->end) == horizon;
}

static tide_status add_edges(edges *e, const tide__place_item *items, size_t n) {
    e->horizon = find_horizon(items, n);
    for (uint32_t i = 0; i < n; i++) {
        const tide__place_item *it = &items[i];
        bool carried = is_carried(it, e->horizon);
        if (it->size == 0) continue;
        TIDE_TRY(add_lifetime(e, i, it->begin, it->end, carried));
        TIDE_TRY(add_lifetime(e, i, it->begin2, it->end2, carried));
    }
    if (e->list.count) qsort(e->list.data, e->list.count, sizeof *e->list.data, by_time);
    return TIDE_OK;
}

static tide_status add_steps(const edges *e, const tide__place_item *items, size_t n, uint32_t steps,
                             tide__requests *r) {
    for (uint32_t i = 0; i < n; i++)
        if (items[i].size && is_carried(&items[i], e->horizon))
            TIDE_TRY(tide__vec_push(&r->list, ((tide__online_request){items[i].size, i})));
    for (uint32_t s = 0; s < steps; s++)
        for (size_t k = 0; k < e->list.count; k++) {
            const edge *at = &e->list.data[k];
            tide__online_request request = {.size = at->begins ? items[at->item].size : 0, .block = at->item};
            TIDE_TRY(tide__vec_push(&r->list, request));
        }
    return TIDE_OK;
}

tide_status tide__requests_of_items(const tide__place_item *items, size_t n, uint32_t steps, tide__requests *out) {
    tide__requests r = {.n_blocks = (uint32_t)n};
    edges e = {0};
    tide_status status = n < UINT32_MAX ? add_edges(&e, items, n) : tide__fail(TIDE_E_UNSUPPORTED, "too many items");
    if (status == TIDE_OK) status = add_steps(&e, items, n, steps, &r);
    tide__vec_free(&e.list);
    return finish(status, &r, out);
}

/* ---- running ---- */

static tide_status run(tide__online *online, const tide__requests *requests, uint32_t *handle, uint64_t *size,
                       uint64_t *peak_live) {
    uint64_t live = 0;
    *peak_live = 0;
    for (size_t i = 0; i < requests->list.count; i++) {
        const tide__online_request *r = &requests->list.data[i];
        if (r->size == 0) {
            tide__online_free(online, handle[r->block]);
            live -= size[r->block];
            continue;
        }
        TIDE_TRY(tide__online_malloc(online, r->size, &handle[r->block]));
        size[r->block] = r->size;
        live += r->size; /* below 2^63: the allocator has addresses for all of it */
        *peak_live = tide__max_u64(*peak_live, live);
    }
    return TIDE_OK;
}

tide_status tide__online_run(const tide__online_kind *kind, const tide__requests *requests, uint64_t alignment,
                             uint64_t limit_bytes, tide__online_result *result) {
    tide__online online;
    uint64_t peak_live;
    uint32_t *handle = malloc((requests->n_blocks + (size_t)1) * sizeof *handle);
    uint64_t *size = malloc((requests->n_blocks + (size_t)1) * sizeof *size);
    tide__online_init(&online, kind, alignment, limit_bytes);
    tide_status status = handle && size ? run(&online, requests, handle, size, &peak_live) : tide__fail_memory();
    if (status == TIDE_OK)
        *result = (tide__online_result){peak_live, online.heap.peak_held_bytes, online.heap.n_segments};
    tide__online_deinit(&online);
    free(handle);
    free(size);
    return status;
}
