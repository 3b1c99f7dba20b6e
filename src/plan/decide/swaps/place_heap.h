/* A heap of places in some order, the first of them on top. */
#ifndef TIDE_PLAN_DECIDE_PLACE_HEAP_H
#define TIDE_PLAN_DECIDE_PLACE_HEAP_H

#include <stddef.h>
#include <stdint.h>

static inline void tide__place_heap_push(uint32_t *heap, size_t *n, uint32_t place) {
    size_t at = (*n)++;
    for (; at > 0 && place < heap[(at - 1) / 2]; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = place;
}

static inline uint32_t tide__place_heap_pop(uint32_t *heap, size_t *n) {
    uint32_t top = heap[0], last = heap[--*n];
    size_t at = 0;
    for (size_t child = 1; child < *n; child = 2 * at + 1) {
        if (child + 1 < *n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

#endif
