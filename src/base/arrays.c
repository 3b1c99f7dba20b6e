/* See arrays.h. Each array is a block of its own, behind a link to the one before it, so that sanitizers see its end. */
#include "base/arrays.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct tide__arrays_block {
    struct tide__arrays_block *before;
    max_align_t data[];
} block;

void *tide__arrays_take(tide__arrays *a, size_t count, size_t element_size, int byte) {
    block *b = NULL;
    if (count <= (SIZE_MAX - sizeof *b) / element_size) b = calloc(1, sizeof *b + count * element_size);
    if (!b) {
        a->failed = true;
        return NULL;
    }
    if (byte) memset(b->data, byte, count * element_size);
    b->before = a->newest;
    a->newest = b;
    return b->data;
}

tide_status tide__arrays_check(const tide__arrays *a) { return a->failed ? tide__fail_memory() : TIDE_OK; }

void tide__arrays_free(tide__arrays *a) {
    while (a->newest) {
        block *b = a->newest;
        a->newest = b->before;
        free(b);
    }
    a->failed = false;
}
