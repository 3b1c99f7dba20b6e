/* The time of channels, cut into pieces with a price each, and the cheapest way to have a transfer done in it.
 *
 * Part of the bound for swapping (bound.c). A *line* is one channel. Its time runs in the direction in which a
 * transfer's end decides: forwards for SAVEs, whose bytes are gone when they are over; backwards for LOADs, whose bytes are
 * there as soon as they begin. So on both, a transfer does not start before it is ready and takes its time in one piece, and
 * when it is done, some of the watched slots are *lost*: they had the bytes nevertheless.
 *
 *   watched         0           1       2           3
 *   SAVE     ready ─┼──▐▐▐▐▐▐▐▐▐┼▐▐ done: 0 and 1 are lost
 *   LOAD                                     done ▐▐┼▐▐▐▐▐▐── ready: 3 is lost
 *
 * Compute may wait, in all for some time, wherever that is best. While it does, the time of a line stands still, but
 * transfers go on, at a price of its own. */
#ifndef TIDE_BENCH_PLAN_SWAP_LINES_H
#define TIDE_BENCH_PLAN_SWAP_LINES_H

#include <stdint.h>

#include "base/error.h"

/* One direction of time, in ns from where it starts. Place 0 is the start, place i > 0 the last moment at which a transfer
 * is done for the i-th watched slot in this direction, the last place the end. Piece i is from place i to the next. */
typedef struct swap_axis {
    uint32_t n;         /* places */
    const double *at;   /* per place, ascending */
    const double *lost; /* per place: the weight of the watched slots before it */
    /* Per piece: the pieces of the other direction that have time in common with it, [first, last]. */
    const uint32_t *first_facing, *last_facing;
} swap_axis;

typedef struct swap_line {
    const swap_axis *axis;
    double *price; /* per piece and ns */
    double *sum;   /* per place: the price of all time before it */
    double *used;  /* per piece: ns of the transfers made */
    /* NULL: there are no waits. */
    double *wait_price; /* per piece, its ends included, and ns; never below `price` */
    uint32_t
        *last_dear; /* per piece b: 1 + the last piece whose time is dearer than waits in one from there to b; 0: none
                            is. And as many to work with. */
    double *waited; /* per piece: ns of waiting that transfers made use of */
    double wait_ns; /* of all waits */
} swap_line;

typedef struct swap_line_transfer {
    swap_line *line;
    double ns, bytes, ready_ns;
    uint32_t least;       /* the place before which it is of no use to be done */
    uint32_t first_start; /* the first place at or after ready_ns */
    uint32_t first_end;   /* the first place at or after ready_ns + ns; n: the end comes before */
    uint32_t waited_end;  /* the same if all waits were there */
    /* The cheapest way. */
    double cost; /* the price of its time + its bytes * the weight of what is lost; INFINITY: there is no way */
    double start_ns;
    double waited_ns; /* of `ns`, on top of what is under way from start_ns on, while compute waits */
    uint32_t done;    /* place */
} swap_line_transfer;

/* Of all transfers of some length and size, wherever they start. */
typedef struct swap_line_costs {
    uint32_t n;
    double *from, *upto;               /* n: price of the one that starts at a place; that ends there */
    double *best_from, *best_upto;     /* n + 1: the least cost of these and all later ones */
    uint32_t *end;                     /* n: the first place at or after the end of the one that starts there */
    uint32_t *which_from, *which_upto; /* n: places of the least costs */
} swap_line_costs;

tide_status swap_line_costs_init(swap_line_costs *c, uint32_t n);
void swap_line_costs_deinit(swap_line_costs *c);

/* Of a transfer whose line, ns, bytes, ready_ns and `least` are set: the rest, with no way found. */
void swap_line_transfer_place(swap_line_transfer *t);
/* After a change of prices. */
void swap_line_sum(swap_line *l);
/* For transfers like this one, with the present prices. */
void swap_line_costs_of(swap_line_costs *c, const swap_line_transfer *like);
/* Prices are constant within pieces, so a cheapest way starts when it is ready, or starts or ends at a place. Exact without
 * waits. With them it is at most what a way costs, all waits at the cheapest moment from any piece to the way's end:
 * then time that is dearer than that is waited for instead, without a limit but where the way starts when it is ready. */
void swap_line_find(const swap_line_costs *c, swap_line_transfer *t);
/* Makes the transfer in the way found. */
void swap_line_use(const swap_line_transfer *t);

/* ---- waits (waits.c) ---- */

/* A wait serves all lines, so at no moment do their prices for it sum up to more than `most`. Lowers the prices of time
 * where that needs it, and sets those of waits, as high as they can be. */
void swap_lines_set_waits(swap_line *const *lines, uint32_t n, double most);
/* When `used` is less the length of the pieces, a gradient: adds what prices of time change those of waits; returns the
 * gradient of `most`, but for the waits themselves. */
double swap_lines_gain_waits(swap_line *const *lines, uint32_t n, double most);

#endif
