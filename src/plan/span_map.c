/* See span_map.h. Spans in ascending order, in chunks of a few dozen: what shifts when one comes or goes is a chunk, or seldom
 * the list of chunks. Invariant: spans are disjoint and not empty; no chunk is empty but the only one. */
#include "plan/span_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum { MOST_SPANS = 64 };

typedef struct span {
    uint64_t lo, hi;
    uint32_t owner;
} span;

typedef struct chunk {
    uint32_t count;
    span spans[MOST_SPANS];
} chunk;

struct tide__span_map {
    TIDE_VEC(chunk *) chunks;
};

/* An empty chunk, as number `at`. */
static tide_status add_chunk(tide__span_map *m, size_t at) {
    TIDE_TRY(tide__vec_reserve(&m->chunks, 1));
    chunk *fresh = malloc(sizeof *fresh);
    if (!fresh) return tide__fail_memory();
    fresh->count = 0;
    memmove((void *)(m->chunks.data + at + 1), (void *)(m->chunks.data + at), (m->chunks.count - at) * sizeof(chunk *));
    m->chunks.data[at] = fresh;
    m->chunks.count++;
    return TIDE_OK;
}

tide_status tide__span_map_create(tide__span_map **out) {
    tide__span_map *m = calloc(1, sizeof *m);
    if (!m) return tide__fail_memory();
    tide_status status = add_chunk(m, 0);
    if (status == TIDE_OK)
        *out = m;
    else
        tide__span_map_destroy(m);
    return status;
}

void tide__span_map_destroy(tide__span_map *m) {
    if (!m) return;
    for (size_t i = 0; i < m->chunks.count; i++) free(m->chunks.data[i]);
    tide__vec_free(&m->chunks);
    free(m);
}

/* The last chunk that begins at or before `lo`, or the first. */
static size_t find_chunk(const tide__span_map *m, uint64_t lo) {
    size_t low = 0, high = m->chunks.count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (m->chunks.data[middle]->spans[0].lo <= lo)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The first span of a chunk that ends after `at`. */
static uint32_t find_span(const chunk *c, uint64_t at) {
    uint32_t low = 0, high = c->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->spans[middle].hi <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tide_status insert(tide__span_map *m, size_t at, uint32_t i, span s) {
    chunk *c = m->chunks.data[at];
    if (c->count == MOST_SPANS) {
        TIDE_TRY(add_chunk(m, at + 1));
        chunk *upper = m->chunks.data[at + 1];
        c->count = upper->count = MOST_SPANS / 2;
        memcpy(upper->spans, c->spans + c->count, upper->count * sizeof s);
        if (i > c->count) {
            i -= c->count;
            c = upper;
        }
    }
    memmove(c->spans + i + 1, c->spans + i, (c->count - i) * sizeof s);
    c->spans[i] = s;
    c->count++;
    return TIDE_OK;
}

/* From span i of a chunk on: what begins before `hi` is reported, and goes or keeps what it has from `hi` on. */
static void clear(chunk *c, uint32_t i, uint64_t hi, tide__span_fn evicted, void *context) {
    uint32_t end = i;
    for (; end < c->count && c->spans[end].lo < hi; end++) {
        if (evicted) evicted(context, c->spans[end].owner);
        if (c->spans[end].hi <= hi) continue;
        c->spans[end].lo = hi;
        break;
    }
    memmove(c->spans + i, c->spans + end, (c->count - end) * sizeof *c->spans);
    c->count -= end - i;
}

static void remove_chunk(tide__span_map *m, size_t at) {
    free(m->chunks.data[at]);
    m->chunks.count--;
    memmove((void *)(m->chunks.data + at), (void *)(m->chunks.data + at + 1), (m->chunks.count - at) * sizeof(chunk *));
}

/* Chunks behind one whose rest is covered. */
static void clear_chunks(tide__span_map *m, size_t at, uint64_t hi, tide__span_fn evicted, void *context) {
    while (at < m->chunks.count && m->chunks.data[at]->spans[0].lo < hi) {
        clear(m->chunks.data[at], 0, hi, evicted, context);
        if (m->chunks.data[at]->count) break;
        remove_chunk(m, at);
    }
}

tide_status tide__span_map_assign(tide__span_map *m, uint64_t lo, uint64_t hi, uint32_t owner, tide__span_fn evicted,
                                  void *context) {
    if (lo >= hi) return TIDE_OK;
    size_t at = find_chunk(m, lo);
    chunk *c = m->chunks.data[at];
    uint32_t i = find_span(c, lo);
    if (i < c->count && c->spans[i].lo < lo) { /* keeps what it has before `lo`; the rest is a span of its own */
        span rest = c->spans[i];
        c->spans[i].hi = rest.lo = lo;
        TIDE_TRY(insert(m, at, i + 1, rest));
        at = find_chunk(m, lo);
        c = m->chunks.data[at];
        i = find_span(c, lo);
    }
    clear(c, i, hi, evicted, context);
    if (i == c->count) clear_chunks(m, at + 1, hi, evicted, context);
    return insert(m, at, i, (span){lo, hi, owner});
}
