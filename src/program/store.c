/* See store.h. Invariant: used <= capacity in every chunk, and handed-out addresses stay valid until the free. */
#include "program/store.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

enum { FIRST_CHUNK = 4096, LAST_CHUNK = 1 << 20 };

struct tide__chunk {
    tide__chunk *older;
    size_t used, capacity;
    alignas(max_align_t) unsigned char bytes[];
};

void tide__store_free(tide__store *store) {
    while (store->newest) {
        tide__chunk *older = store->newest->older;
        free(store->newest);
        store->newest = older;
    }
}

static tide_status add_chunk(tide__store *store, size_t size) {
    size_t capacity = store->newest ? store->newest->capacity * 2 : FIRST_CHUNK;
    if (capacity > LAST_CHUNK) capacity = LAST_CHUNK;
    if (capacity < size) capacity = size;
    uint64_t total;
    tide__chunk *chunk = tide__add(sizeof *chunk, capacity, &total) ? malloc(total) : NULL;
    if (!chunk) return tide__fail_memory();
    chunk->older = store->newest;
    chunk->used = 0;
    chunk->capacity = capacity;
    store->newest = chunk;
    return TIDE_OK;
}

static tide_status take(tide__store *store, size_t size, size_t align, void **out) {
    tide__chunk *chunk = store->newest;
    size_t at = chunk ? (chunk->used + align - 1) & ~(align - 1) : 0;
    if (!chunk || at > chunk->capacity || chunk->capacity - at < size) {
        TIDE_TRY(add_chunk(store, size));
        chunk = store->newest;
        at = 0;
    }
    chunk->used = at + size;
    *out = chunk->bytes + at;
    return TIDE_OK;
}

tide_status tide__store_copy(tide__store *store, const void *data, size_t count, size_t size, const void **out) {
    uint64_t total;
    void *copy = NULL;
    if (!tide__mul(count, size, &total)) return tide__fail_memory();
    if (total > 0) {
        /* The largest power of two that divides the element size is enough for its alignment. */
        size_t align = tide__min_u64(size & (~size + 1), alignof(max_align_t));
        TIDE_TRY(take(store, total, align, &copy));
        memcpy(copy, data, total);
    }
    *out = copy;
    return TIDE_OK;
}

tide_status tide__store_string(tide__store *store, const char *text, const char **out) {
    const void *copy = "";
    if (text && *text) TIDE_TRY(tide__store_copy(store, text, strlen(text) + 1, 1, &copy));
    *out = copy;
    return TIDE_OK;
}
