/* See spans.h. */
#include "pool/spans.h"

#include <stdlib.h>
#include <string.h>

tide_status tide__spans_init(tide__spans *spans, size_t capacity) {
    *spans = (tide__spans){.data = calloc(capacity, sizeof *spans->data), .capacity = capacity};
    return spans->data ? TIDE_OK : tide__fail_memory();
}

void tide__spans_deinit(tide__spans *spans) { free(spans->data); }

void tide__spans_clear(tide__spans *spans) { spans->count = spans->unlisted = 0; }

/* The first member that ends above `offset`. */
static size_t find(const tide__spans *spans, uint64_t offset) {
    size_t low = 0, high = spans->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans->data[middle].end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool tide__spans_add(tide__spans *spans, tide__pool_span span) {
    if (spans->count == spans->capacity) {
        spans->unlisted++;
        return false;
    }
    size_t at = find(spans, span.begin);
    memmove(&spans->data[at + 1], &spans->data[at], (spans->count - at) * sizeof *spans->data);
    spans->data[at] = span;
    spans->count++;
    return true;
}

void tide__spans_remove(tide__spans *spans, tide__pool_span span, bool listed) {
    if (!listed) {
        spans->unlisted--;
        return;
    }
    size_t at = find(spans, span.begin);
    spans->count--;
    memmove(&spans->data[at], &spans->data[at + 1], (spans->count - at) * sizeof *spans->data);
}

bool tide__spans_hit(const tide__spans *spans, tide__pool_span span) {
    if (spans->unlisted) return true;
    size_t at = find(spans, span.begin);
    return at < spans->count && spans->data[at].begin < span.end;
}
