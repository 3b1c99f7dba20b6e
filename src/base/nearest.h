/* "Did you mean": which of some names a misspelt one comes nearest to. */
#ifndef TIDE_BASE_NEAREST_H
#define TIDE_BASE_NEAREST_H

#include <stddef.h>
#include <stdint.h>

typedef struct tide__nearest {
    const char *text;
    size_t length;    /* of the text */
    const char *best; /* NULL: nothing comes near */
    size_t best_length;
    uint32_t distance; /* of the best: letters that are wrong, missing, too many, or swapped with a neighbour */
} tide__nearest;

tide__nearest tide__nearest_begin(const char *text, size_t length);
/* The first `length` bytes of a name, which is borrowed. Names further away than a third of the text do not count. */
void tide__nearest_offer(tide__nearest *nearest, const char *name, size_t length);

#endif
