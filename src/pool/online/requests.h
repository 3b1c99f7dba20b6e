/* Streams of mallocs and frees for the online allocators, from a recording or from lifetimes, and what an allocator
 * holds for them. */
#ifndef TIDE_POOL_ONLINE_REQUESTS_H
#define TIDE_POOL_ONLINE_REQUESTS_H

#include "plan/place/place.h"
#include "pool/online/online.h"
#include "program/import/stream.h"

typedef struct tide__online_request {
    uint64_t size;  /* 0: frees the block */
    uint32_t block; /* below n_blocks */
} tide__online_request;

typedef struct tide__requests {
    TIDE_VEC(tide__online_request) list;
    uint32_t n_blocks;
} tide__requests;

/* A recording's mallocs and frees. Blocks without bytes are left out. */
tide_status tide__requests_of_stream(const tide__stream *stream, tide__requests *out);

/* A step that is repeated `steps` times, as a framework would run it: each item is malloced and freed once a step.
 * One that is alive over the whole step is malloced once; one that is alive at its end and its start is carried over,
 * so that its two lifetimes are one block. At the same time frees come first, then items in their order. */
tide_status tide__requests_of_items(const tide__place_item *items, size_t n, uint32_t steps, tide__requests *out);

void tide__requests_deinit(tide__requests *requests);

typedef struct tide__online_result {
    uint64_t peak_live_bytes; /* what was asked for */
    uint64_t peak_held_bytes; /* what it held for that */
    uint64_t n_segments;      /* allocations of device memory */
} tide__online_result;

/* TIDE_E_MEMORY if the limit is too low for it (0: none). */
tide_status tide__online_run(const tide__online_kind *kind, const tide__requests *requests, uint64_t alignment,
                             uint64_t limit_bytes, tide__online_result *result);

#endif
