/* See ranges.h. */
#include "run/ranges.h"

#include <stdlib.h>
#include <string.h>

tide_status tide__ranges_init(tide__ranges *r, uint64_t size_bytes) {
    r->free.count = 0;
    r->free_bytes = size_bytes;
    return size_bytes ? tide__vec_push(&r->free, ((tide__range){.offset = 0, .size = size_bytes})) : TIDE_OK;
}

static int by_offset(const void *a, const void *b) {
    const tide__range *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static tide_status append_free(tide__ranges *r, uint64_t begin, uint64_t end) {
    if (end <= begin) return TIDE_OK;
    r->free_bytes += end - begin;
    return tide__vec_push(&r->free, ((tide__range){.offset = begin, .size = end - begin}));
}

tide_status tide__ranges_init_except(tide__ranges *r, uint64_t size_bytes, tide__range *taken, size_t n) {
    uint64_t at = 0;
    r->free.count = 0;
    r->free_bytes = 0;
    if (n) qsort(taken, n, sizeof *taken, by_offset);
    for (size_t i = 0; i < n; i++) {
        if (taken[i].size == 0) continue;
        TIDE_TRY(append_free(r, at, taken[i].offset));
        uint64_t end = taken[i].offset + taken[i].size;
        at = end > at ? end : at;
    }
    return append_free(r, at, size_bytes);
}

void tide__ranges_deinit(tide__ranges *r) { tide__vec_free(&r->free); }

static void remove_range(tide__ranges *r, size_t i) {
    memmove(&r->free.data[i], &r->free.data[i + 1], (r->free.count - i - 1) * sizeof *r->free.data);
    r->free.count--;
}

bool tide__ranges_take(tide__ranges *r, uint64_t size_bytes, uint64_t *offset) {
    size_t best = SIZE_MAX;
    *offset = 0;
    if (size_bytes == 0) return true;
    for (size_t i = 0; i < r->free.count; i++)
        if (r->free.data[i].size >= size_bytes && (best == SIZE_MAX || r->free.data[i].size < r->free.data[best].size))
            best = i;
    if (best == SIZE_MAX) return false;
    tide__range *range = &r->free.data[best];
    *offset = range->offset;
    range->offset += size_bytes;
    range->size -= size_bytes;
    r->free_bytes -= size_bytes;
    if (range->size == 0) remove_range(r, best);
    return true;
}

bool tide__ranges_take_high(tide__ranges *r, uint64_t size_bytes, uint64_t *offset) {
    *offset = 0;
    if (size_bytes == 0) return true;
    for (size_t i = r->free.count; i-- > 0;) {
        tide__range *range = &r->free.data[i];
        if (range->size < size_bytes) continue;
        range->size -= size_bytes;
        r->free_bytes -= size_bytes;
        *offset = range->offset + range->size;
        if (range->size == 0) remove_range(r, i);
        return true;
    }
    return false;
}

/* The first free range behind `offset`. */
static size_t find(const tide__ranges *r, uint64_t offset) {
    size_t lo = 0, hi = r->free.count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (r->free.data[middle].offset < offset)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

tide_status tide__ranges_give(tide__ranges *r, uint64_t offset, uint64_t size_bytes) {
    if (size_bytes == 0) return TIDE_OK;
    size_t i = find(r, offset);
    TIDE_TRY(tide__vec_reserve(&r->free, 1));
    r->free_bytes += size_bytes;
    memmove(&r->free.data[i + 1], &r->free.data[i], (r->free.count - i) * sizeof *r->free.data);
    r->free.data[i] = (tide__range){.offset = offset, .size = size_bytes};
    r->free.count++;
    tide__range *all = r->free.data;
    if (i + 1 < r->free.count && all[i].offset + all[i].size == all[i + 1].offset) {
        all[i].size += all[i + 1].size;
        remove_range(r, i + 1);
    }
    if (i > 0 && all[i - 1].offset + all[i - 1].size == all[i].offset) {
        all[i - 1].size += all[i].size;
        remove_range(r, i);
    }
    return TIDE_OK;
}
