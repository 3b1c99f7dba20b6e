/* A growing array of any type: TIDE_VEC(uint32_t) v = {0}; TIDE_TRY(tide__vec_push(&v, x)); ... tide__vec_free(&v).
 *
 * v.data, v.count, v.capacity are read freely. Growth doubles; a failed push leaves the vector as it was. */
#ifndef TIDE_BASE_VEC_H
#define TIDE_BASE_VEC_H

#include <stddef.h>

#include "base/error.h"

#define TIDE_VEC(type)          \
    struct {                    \
        type *data;             \
        size_t count, capacity; \
    }

/* Room for `extra` more elements of `element_size` bytes; *data is reallocated. */
tide_status tide__vec_grow(void **data, size_t count, size_t *capacity, size_t extra, size_t element_size);

/* The (void **) detour goes through memcpy inside tide__vec_grow, so no aliasing rule is broken. Elements may be
 * pointers, whose size clang-tidy takes for a slip. */
#define tide__vec_reserve(v, extra)                                                         \
    ((v)->capacity - (v)->count >= (size_t)(extra)                                          \
         ? TIDE_OK                                                                          \
         : tide__vec_grow((void **)(void *)&(v)->data, (v)->count, &(v)->capacity, (extra), \
                          sizeof *(v)->data)) /* NOLINT(bugprone-sizeof-expression) */

/* status; evaluates `value` once, after growing: it must not be an element of the same vector, which may have moved. */
#define tide__vec_push(v, value) \
    (tide__vec_reserve((v), 1) == TIDE_OK ? ((v)->data[(v)->count++] = (value), TIDE_OK) : TIDE_E_MEMORY)

#define tide__vec_free(v)               \
    do {                                \
        free((v)->data);                \
        (v)->data = NULL;               \
        (v)->count = (v)->capacity = 0; \
    } while (0)

#endif
