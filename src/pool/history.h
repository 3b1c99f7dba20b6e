/* The watched stream: the latest events in a ring, free of addresses, so that two iterations look alike.
 *
 * Events count from 0 over the pool's life. A symbol is the kind and the size only; a Free's distance to its Malloc is
 * kept beside it: one extra event shifts the distances of everything that is alive across it, but no symbol. */
#ifndef TIDE_POOL_HISTORY_H
#define TIDE_POOL_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"

/* size << 1, plus 1 for a Free. */
typedef uint64_t tide__symbol;
#define TIDE__MAX_BLOCK_BYTES (UINT64_C(1) << 60)

static inline tide__symbol tide__malloc_symbol(uint64_t size_bytes) { return size_bytes << 1; }
static inline tide__symbol tide__free_symbol(uint64_t size_bytes) { return size_bytes << 1 | 1; }
static inline bool tide__symbol_is_free(tide__symbol symbol) { return symbol & 1; }
static inline uint64_t tide__symbol_bytes(tide__symbol symbol) { return symbol >> 1; }

/* A hash of the last 8 symbols: each step pushes the oldest out. */
enum { TIDE__GRAM_LENGTH = 8 };
static inline uint64_t tide__gram_push(uint64_t gram, tide__symbol symbol) {
    return (gram << 64 / TIDE__GRAM_LENGTH) + tide__mix(symbol);
}

typedef struct tide__pool_event {
    tide__symbol symbol;
    uint32_t distance; /* of a Free to its Malloc, in events; UINT32_MAX: further; 0 for a Malloc */
    bool planned;      /* a Malloc that a plan answered */
} tide__pool_event;

typedef struct tide__history {
    tide__pool_event *ring;
    uint64_t mask;  /* ring has mask + 1 places, a power of two */
    uint64_t count; /* events so far */
} tide__history;

/* Remembers at least `events` events. */
tide_status tide__history_init(tide__history *history, uint64_t events);
void tide__history_deinit(tide__history *history);

/* `index` must be one of the last mask + 1 events. */
static inline const tide__pool_event *tide__history_at(const tide__history *history, uint64_t index) {
    return &history->ring[index & history->mask];
}

static inline void tide__history_push(tide__history *history, tide__pool_event event) {
    history->ring[history->count++ & history->mask] = event;
}

/* Index of the oldest event that is remembered. */
static inline uint64_t tide__history_oldest(const tide__history *history) {
    return history->count > history->mask ? history->count - history->mask - 1 : 0;
}

/* The gram that ends with event `index`; short at the beginning of the stream. */
uint64_t tide__history_gram(const tide__history *history, uint64_t index);

#endif
