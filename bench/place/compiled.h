/* Problems of 2-3 · 10^4 buffers as compilers make them. */
#ifndef TIDE_BENCH_PLACE_COMPILED_H
#define TIDE_BENCH_PLACE_COMPILED_H

#include "plan/place/place.h"

enum { COMPILED_KINDS = 9 };

typedef struct compiled_kind {
    const char *name;
    void (*fill)(uint64_t seed, uint64_t n, tide__place_item *items);
} compiled_kind;

extern const compiled_kind compiled_kinds[COMPILED_KINDS];

#endif
