/* Squeaky wheels: skyline runs again and again; what ended too high squeaks, and is taken earlier the next time
 * (squeaky wheel optimisation, Joslin and Clements 1999). */
#ifndef TIDE_PLAN_PLACE_SQUEAK_H
#define TIDE_PLAN_PLACE_SQUEAK_H

#include "plan/place/heuristics.h"
#include "plan/place/orders.h"
#include "plan/place/skyline.h"

typedef struct tide__place_squeak_options {
    tide__place_skyline *skyline;
    const tide__place_order_data *data;
    tide__place_order_kind kind; /* the order to start from; the others follow */
    uint32_t runs;               /* at most, and no more than the attempt's work; with a deadline: until it strikes */
} tide__place_squeak_options;

/* Lowers the attempt if it can, until it is good. */
tide_status tide__place_squeak(tide__place_attempt *a, const tide__place_squeak_options *options);

#endif
