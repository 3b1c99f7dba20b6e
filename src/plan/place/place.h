/* Placement: items with lifetimes and sizes in, offsets out, so that the arena is as small as the load allows.
 *
 * Pure: knows no plan, no tensor, no device. Times are half-open [begin, end) in any unit. Two items conflict when
 * their lifetimes intersect; conflicting items get disjoint [offset, offset + size).
 *
 *    offset ▲        ┌──────┐
 *           │ ┌──────┤  c   │
 *           │ │  b   ├──────┴───┐
 *           │ ├──────┴──┐   d   │
 *           │ │    a    └───────┘
 *           └─┴────────────────────▶ time
 */
#ifndef TIDE_PLAN_PLACE_PLACE_H
#define TIDE_PLAN_PLACE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TIDE__PLACE_FREE UINT64_MAX

/* auto: the heuristics, then the exact search if they miss the bound and there is a limit to search within. exact: the
 * same, but an error where the search cannot be used. */
#define TIDE__PLACE_ALGORITHMS "auto, smartpool, first-fit, skyline, exact"

typedef struct tide__place_item {
    uint64_t size;         /* 0: gets offset 0 and conflicts with nothing */
    uint64_t align;        /* a power of two, >= 1 */
    uint64_t fixed;        /* TIDE__PLACE_FREE, or the offset it must have */
    uint32_t begin, end;   /* begin == end: conflicts with nothing */
    uint32_t begin2, end2; /* a second lifetime at the same offset (cyclic time: alive at the end of the step and at
                              the start of the next), after the first; begin2 == end2: none */
} tide__place_item;

typedef struct tide__place_options {
    uint64_t capacity; /* stop as soon as the height is <= capacity; 0: as low as possible */
    uint64_t seed;
    double
        time_limit_s; /* of processor time, for the search after the fast heuristics; with both limits 0 there is none */
    uint64_t node_limit;   /* of the exact search, with repair in proportion to the items; 0: only the time limits it */
    const char *algorithm; /* one of TIDE__PLACE_ALGORITHMS; NULL: "auto" */
} tide__place_options;

typedef struct tide__place_result {
    uint64_t height;       /* max over items of offset + size */
    uint64_t lower_bound;  /* proved: no placement is lower */
    bool optimal;          /* height == lower_bound */
    const char *algorithm; /* which one found it: a static string */
} tide__place_result;

/* offsets[n] is the caller's. options may be NULL. Deterministic for a seed when no time limit strikes. Nothing fits
 * into a capacity below result->lower_bound. TIDE_E_ARGUMENT for an unknown algorithm; TIDE_E_UNSUPPORTED if the one
 * that was asked for cannot handle the items. */
tide_status tide__place(const tide__place_item *items, size_t n, const tide__place_options *options, uint64_t *offsets,
                        tide__place_result *result);

typedef enum tide__place_answer {
    TIDE__PLACE_FITS,
    TIDE__PLACE_TOO_HIGH, /* nothing within the capacity was found; the offsets are the lowest that were */
    TIDE__PLACE_TOO_SMALL /* the capacity is below result->lower_bound: nothing was placed, no offset written */
} tide__place_answer;

/* Do the items go into `capacity` bytes? The first placement that does is the answer: quick heuristics one after the
 * other, then repair and the exact search for this very capacity. `work` bounds what they take, in units of about a microsecond,
 * counted, so that answers are the same on every machine; the first heuristic runs whatever the bound. */
tide_status tide__place_within(const tide__place_item *items, size_t n, uint64_t capacity, uint64_t work,
                               uint64_t *offsets, tide__place_result *result, tide__place_answer *answer);

#endif
