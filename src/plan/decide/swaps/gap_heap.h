/* A heap of gaps by their scores, for greedy choices whose scores only fall as others are chosen: one that still leads
 * with a fresh score is the best. */
#ifndef TIDE_PLAN_DECIDE_GAP_HEAP_H
#define TIDE_PLAN_DECIDE_GAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tide__scored_gap {
    double score;
    uint32_t gap;
} tide__scored_gap;

/* The larger score first, then the smaller index. */
static inline bool tide__scored_before(tide__scored_gap a, tide__scored_gap b) {
    return a.score != b.score ? a.score > b.score : a.gap < b.gap;
}

/* The one at `at` may have fallen: down to its place. */
static inline void tide__gap_heap_sink(tide__scored_gap *heap, size_t n, size_t at) {
    tide__scored_gap moving = heap[at];
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && tide__scored_before(heap[child + 1], heap[child])) child++;
        if (!tide__scored_before(heap[child], moving)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static inline void tide__gap_heap_make(tide__scored_gap *heap, size_t n) {
    for (size_t i = n / 2; i-- > 0;) tide__gap_heap_sink(heap, n, i);
}

/* Takes the first one off. */
static inline void tide__gap_heap_pop(tide__scored_gap *heap, size_t *n) {
    heap[0] = heap[--*n];
    tide__gap_heap_sink(heap, *n, 0);
}

#endif
