/* A small set of disjoint byte ranges, sorted. It holds the blocks that are where the plan does not expect them: few,
 * so an array that moves up on every insertion is the fastest set there is. A set that is full says "hit" to every
 * question until it has drained: safe, never slow. */
#ifndef TIDE_POOL_SPANS_H
#define TIDE_POOL_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tide__pool_span {
    uint64_t begin, end; /* half-open, begin < end */
} tide__pool_span;

typedef struct tide__spans {
    tide__pool_span *data;
    size_t count, capacity;
    size_t unlisted; /* members for which there was no place */
} tide__spans;

tide_status tide__spans_init(tide__spans *spans, size_t capacity);
void tide__spans_deinit(tide__spans *spans);
void tide__spans_clear(tide__spans *spans);

/* true: listed. The caller remembers it for remove. */
bool tide__spans_add(tide__spans *spans, tide__pool_span span);
void tide__spans_remove(tide__spans *spans, tide__pool_span span, bool listed);

/* May `span` overlap a member? */
bool tide__spans_hit(const tide__spans *spans, tide__pool_span span);
static inline bool tide__spans_empty(const tide__spans *spans) { return spans->count + spans->unlisted == 0; }

#endif
