/* "Did you mean": which of some names a misspelt one comes nearest to. */
#ifndef TIDEMARK_NEAREST_H
#define TIDEMARK_NEAREST_H

#include <stddef.h>
#include <stdint.h>

#include <tidemark/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_nearest {
    const char *text;
    size_t length;    /* of the text */
    const char *best; /* NULL: nothing comes near */
    size_t best_length;
    uint32_t distance; /* of the best: letters that are wrong, missing, too many, or swapped with a neighbour */
} tide_nearest;

TIDE_API tide_nearest tide_nearest_begin(const char *text, size_t length);
/* The first `length` bytes of a name, which is borrowed. Names further away than a third of the text do not count. */
TIDE_API void tide_nearest_offer(tide_nearest *nearest, const char *name, size_t length);

#ifdef __cplusplus
}
#endif
#endif
