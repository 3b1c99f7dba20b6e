/* Squeaky wheels: skyline runs again and again; what ended too high squeaks, and is taken earlier the next time
 * (squeaky wheel optimisation, Joslin and Clements 1999). */
#ifndef TIDE_PLAN_PLACE_SQUEAK_H
#define TIDE_PLAN_PLACE_SQUEAK_H

#include "plan/place/heuristics.h"
#include "plan/place/orders.h"
#include "plan/place/skyline.h"

typedef struct tide__squeak_options {
    tide__skyline *skyline;
    const tide__order_data *data;
    tide__order_kind kind; /* the order to start from; the others follow */
    uint32_t runs;         /* at most, and no more than the attempt's work; with a deadline: until it strikes */
} tide__squeak_options;

/* Lowers the attempt if it can, until it is good. */
tide_status tide__squeak(tide__attempt *a, const tide__squeak_options *options);

#endif
