/* The byte ranges of the verifier; see the header for the picture. Invariant after seal(): point 0 is marked, and a
 * word of level k + 1 has a bit for each non-zero word of level k. */
#include <stdlib.h>

#include "plan/verify/verify_ranges.h"

#include <tidemark/program.h>

tide_status tide__ranges_add_point(tide__verify_ranges *r, uint64_t point) {
    return tide__vec_push(&r->points, point) == TIDE_OK ? TIDE_OK : tide__fail_memory();
}

static int compare_points(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort_points(tide__verify_ranges *r) {
    qsort(r->points.data, r->points.count, sizeof *r->points.data, compare_points);
    size_t n = 1;
    for (size_t i = 1; i < r->points.count; i++)
        if (r->points.data[i] != r->points.data[n - 1]) r->points.data[n++] = r->points.data[i];
    r->points.count = n;
}

static void mark(tide__verify_ranges *r, size_t position) {
    for (int level = 0; level < TIDE__RANGES_LEVELS; level++, position /= 64)
        r->marks[level][position / 64] |= UINT64_C(1) << position % 64;
}

static void unmark(tide__verify_ranges *r, size_t position) {
    for (int level = 0; level < TIDE__RANGES_LEVELS; level++, position /= 64) {
        r->marks[level][position / 64] &= ~(UINT64_C(1) << position % 64);
        if (r->marks[level][position / 64] != 0) return;
    }
}

tide_status tide__ranges_seal(tide__verify_ranges *r) {
    TIDE_TRY(tide__ranges_add_point(r, 0));
    sort_points(r);
    size_t words = r->points.count;
    for (int level = 0; level < TIDE__RANGES_LEVELS; level++) {
        words = words / 64 + 1;
        r->marks[level] = calloc(words, sizeof *r->marks[level]);
        if (!r->marks[level]) return tide__fail_memory();
    }
    r->owner = malloc(r->points.count * sizeof *r->owner);
    if (!r->owner) return tide__fail_memory();
    r->owner[0] = TIDE_NONE;
    mark(r, 0);
    return TIDE_OK;
}

void tide__ranges_free(tide__verify_ranges *r) {
    tide__vec_free(&r->points);
    free(r->owner);
    for (int level = 0; level < TIDE__RANGES_LEVELS; level++) free(r->marks[level]);
}

/* Position of a point that was added before seal(). */
static size_t find_point(const tide__verify_ranges *r, uint64_t point) {
    size_t low = 0, high = r->points.count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (r->points.data[middle] <= point)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Bits of `word` strictly above / below bit `b`. */
static uint64_t above(uint64_t word, size_t b) { return b == 63 ? 0 : word & (~UINT64_C(0) << (b + 1)); }
static uint64_t below(uint64_t word, size_t b) { return word & ((UINT64_C(1) << b) - 1); }

/* The last mark before `position`, which is not 0: up until a word has one, then down along the last bits. */
static size_t previous_mark(const tide__verify_ranges *r, size_t position) {
    int level = 0;
    uint64_t found;
    while ((found = below(r->marks[level][position / 64], position % 64)) == 0) position /= 64, level++;
    for (;;) {
        position = position / 64 * 64 + (size_t)(63 - __builtin_clzll(found));
        if (level == 0) return position;
        found = r->marks[--level][position];
        position *= 64;
    }
}

size_t tide__ranges_next(const tide__verify_ranges *r, size_t position) {
    int level = 0;
    uint64_t found;
    while ((found = above(r->marks[level][position / 64], position % 64)) == 0) {
        position /= 64;
        if (++level == TIDE__RANGES_LEVELS) return r->points.count;
    }
    for (;;) {
        position = position / 64 * 64 + (size_t)__builtin_ctzll(found);
        if (level == 0) return position;
        found = r->marks[--level][position];
        position *= 64;
    }
}

size_t tide__ranges_cut(tide__verify_ranges *r, uint64_t point) {
    size_t position = find_point(r, point);
    if (r->marks[0][position / 64] >> position % 64 & 1) return position;
    r->owner[position] = r->owner[previous_mark(r, position)];
    mark(r, position);
    return position;
}

void tide__ranges_join(tide__verify_ranges *r, size_t begin, size_t end, uint32_t owner) {
    for (size_t p = tide__ranges_next(r, begin); p < end; p = tide__ranges_next(r, begin)) unmark(r, p);
    r->owner[begin] = owner;
}
