/* Weights of slots and prices of channels' time, and what values gain by being absent: the problem behind the bound for
 * swapping (bound.c). Only some slots have a weight, the *watched* ones, the fullest of equal stretches, and prices
 * change only there. */
#ifndef TIDE_BENCH_PLAN_SWAP_PRICES_H
#define TIDE_BENCH_PLAN_SWAP_PRICES_H

#include "plan_swap/lines.h"
#include "plan/decide/swaps/swaps.h"

typedef struct swap_price_channel {
    swap_line line;
    uint32_t tier; /* TIDE_NONE: of any of those that have room for a part only; its time costs nothing */
    bool out;
    double rate; /* bytes per ns: the best that any transfer has */
} swap_price_channel;

/* A gap, in the order of values. */
typedef struct swap_price_member {
    tide_id value; /* the tensor, or the one that it is carried from */
    enum { CARRIED_TO, INSIDE, ACROSS } part;
    uint32_t from, gap;
} swap_price_member;

typedef struct swap_prices {
    const tide__swaps *s;
    uint32_t n_watched, n_channels, n_places;
    uint32_t *watched; /* slots, ascending */
    double *load;      /* per watched slot, when nothing is absent */
    double *absent;    /* n_watched + 1: bytes, first as changes */
    double *at[2], *lost[2];
    uint32_t *facing[2][2];                                      /* first and last */
    swap_axis axes[2];                                           /* of LOADs, of SAVEs */
    swap_price_channel channels[2 * TIDE_MACHINE_MAX_TIERS + 2]; /* and those of any tier */
    swap_line_transfer *loads, *saves;                           /* per gap */
    swap_line_transfer **alike; /* those that count, the same lengths and sizes together */
    size_t n_alike;
    swap_price_member *members; /* all gaps */
    double *rows;               /* of the lines: sum, wait_price, waited, n_places each */
    uint32_t *last_dear;        /* of the lines */
    swap_line *lines[2 * TIDE_MACHINE_MAX_TIERS + 2];
    double wait_ns; /* of all waits */
    double best_rate;
    swap_line_costs costs;
    size_t n_numbers;
    double *number, *gradient; /* the weights, the prices channel by channel, and at last the price of waits */
    double *mean, *square;     /* per number: of the latest gradients */
} swap_prices;

/* All numbers are 0. `s` must outlive it. */
tide_status swap_prices_init(swap_prices *p, const tide__swaps *s, uint64_t wait_ns);
void swap_prices_deinit(swap_prices *p);

/* What all values gain at most, given the cheapest ways of all transfers (values.c). Makes the transfers of that on
 * their lines and adds the bytes absent to `absent`, as changes. */
double swap_prices_take(swap_prices *p);

#endif
