/* An append-only store of small arrays and strings whose addresses never change: what a program's ops point into.
 *
 * Bytes lie in chunks that grow from 4 KiB to 1 MiB; everything is freed at once. */
#ifndef TIDE_PROGRAM_STORE_H
#define TIDE_PROGRAM_STORE_H

#include <stddef.h>

#include "base/error.h"

typedef struct tide__chunk tide__chunk;

typedef struct tide__store {
    tide__chunk *newest; /* the only chunk with room; it leads to all others */
} tide__store;

void tide__store_free(tide__store *store);

/* Copies count * size bytes, aligned for any type; *out = NULL if that is nothing. */
tide_status tide__store_copy(tide__store *store, const void *data, size_t count, size_t size, const void **out);

/* Copies a string; NULL and "" become a static "". */
tide_status tide__store_string(tide__store *store, const char *text, const char **out);

#endif
