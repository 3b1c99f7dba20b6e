/* The orders in which heuristics take items: a key per item, highest first. */
#ifndef TIDE_PLAN_PLACE_ORDERS_H
#define TIDE_PLAN_PLACE_ORDERS_H

#include "plan/place/problem.h"

typedef enum tide__place_order_kind {
    TIDE__PLACE_ORDER_PEAK_DURATION, /* what is alive at the higher load first, then long */
    TIDE__PLACE_ORDER_DURATION,      /* long first */
    TIDE__PLACE_ORDER_PEAK_AREA,     /* likewise, then large duration × size */
    TIDE__PLACE_ORDER_AREA,
    TIDE__PLACE_ORDER_BULK,  /* duration × the root of the size */
    TIDE__PLACE_ORDER_BEGIN, /* early first */
    TIDE__PLACE_ORDER_SIZE,
    TIDE__PLACE_ORDER_WEIGHT, /* duration × the square of the size */
    TIDE__PLACE_ORDER_EXTENT, /* large or long */
    TIDE__PLACE_ORDER_PEAK_BULK,
    TIDE__PLACE_ORDER_PEAK_BEGIN,
    TIDE__PLACE_ORDER_PEAK_END, /* late end first */
    TIDE__PLACE_ORDER_INPUT,    /* as the caller has them */
    TIDE__PLACE_N_ORDERS
} tide__place_order_kind;

/* What keys are made from. */
typedef struct tide__place_order_data {
    const tide__place_problem *p;
    double *log_size, *log_duration;             /* per item */
    double least_size, most_size, most_duration; /* logs */
    double *peak; /* per item: the highest load in its lifetime / the maximum load: 0 .. 1 */
} tide__place_order_data;

tide_status tide__place_order_data_init(tide__place_order_data *d, const tide__place_problem *p);
void tide__place_order_data_deinit(tide__place_order_data *d);

void tide__place_order_keys(const tide__place_order_data *d, tide__place_order_kind kind, double *keys);
/* Sorts the n items of order by descending key, ties by number. scratch: 2n words. */
void tide__place_order_sort(const double *keys, uint32_t *order, size_t n, uint64_t *scratch);

#endif
