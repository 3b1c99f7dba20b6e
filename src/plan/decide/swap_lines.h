/* The time of channels, cut into pieces with a price each, and the cheapest way to have a transfer done in it.
 *
 * Part of the bound for swapping (swap_bound.c). A *line* is one channel. Its time runs in the direction in which a
 * transfer's end decides: forwards for SAVEs, whose bytes are gone when they are over; backwards for LOADs, whose bytes are
 * there as soon as they begin. So on both, a transfer does not start before it is ready and takes its time in one piece, and
 * when it is done, some of the watched slots are *lost*: they had the bytes nevertheless.
 *
 *   watched         0           1       2           3
 *   SAVE     ready ─┼──▐▐▐▐▐▐▐▐▐┼▐▐ done: 0 and 1 are lost
 *   LOAD                                     done ▐▐┼▐▐▐▐▐▐── ready: 3 is lost
 */
#ifndef TIDE_PLAN_DECIDE_SWAP_LINES_H
#define TIDE_PLAN_DECIDE_SWAP_LINES_H

#include <stdint.h>

#include "base/error.h"

/* One direction of time, in ns from where it starts. Place 0 is the start, place i > 0 the last moment at which a transfer
 * is done for the i-th watched slot in this direction, the last place the end. Piece i is from place i to the next. */
typedef struct tide__axis {
    uint32_t n;         /* places */
    const double *at;   /* per place, ascending */
    const double *lost; /* per place: the weight of the watched slots before it */
} tide__axis;

typedef struct tide__line {
    const tide__axis *axis;
    double *price; /* per piece and ns */
    double *sum;   /* per place: the price of all time before it */
    double *used;  /* per piece: ns of the transfers made */
} tide__line;

typedef struct tide__line_transfer {
    tide__line *line;
    double ns, bytes, ready_ns;
    uint32_t least;       /* the place before which it is of no use to be done */
    uint32_t first_start; /* the first place at or after ready_ns */
    uint32_t first_end;   /* the first place at or after ready_ns + ns; n: the end comes before */
    /* The cheapest way. */
    double cost; /* the price of its time + its bytes * the weight of what is lost; INFINITY: there is no way */
    double start_ns;
    uint32_t done; /* place */
} tide__line_transfer;

/* Of all transfers of some length and size, wherever they start. */
typedef struct tide__line_costs {
    uint32_t n;
    double *from, *upto;               /* n: price of the one that starts at a place; that ends there */
    double *best_from, *best_upto;     /* n + 1: the least cost of these and all later ones */
    uint32_t *end;                     /* n: the first place at or after the end of the one that starts there */
    uint32_t *which_from, *which_upto; /* n: places of the least costs */
} tide__line_costs;

tide_status tide__line_costs_init(tide__line_costs *c, uint32_t n);
void tide__line_costs_deinit(tide__line_costs *c);

/* Of a transfer whose line, ns, bytes, ready_ns and `least` are set: the rest, with no way found. */
void tide__line_transfer_place(tide__line_transfer *t);
/* After a change of prices. */
void tide__line_sum(tide__line *l);
/* For transfers like this one, with the present prices. */
void tide__line_costs_of(tide__line_costs *c, const tide__line_transfer *like);
/* Exact: prices are constant within pieces, so a cheapest way starts when it is ready, or starts or ends at a place. */
void tide__line_find(const tide__line_costs *c, tide__line_transfer *t);
/* Makes the transfer in the way found. */
void tide__line_use(const tide__line_transfer *t);

#endif
