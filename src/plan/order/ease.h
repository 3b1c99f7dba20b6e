/* Easing an order: what is there at its peak without being used is made later, or used up earlier.
 *
 *   before    ... make x .............. PEAK ......... use x ...
 *   pulled    ... make x  use x ....... PEAK ...................     with all that `use x` waits for
 *   pushed    ......................... PEAK  make x   use x ...     with all that waits for `make x` up to there
 *
 * A move that lowers the peak, or the mean where the peak stays, is kept; the rest is undone. */
#ifndef TIDE_PLAN_ORDER_EASE_H
#define TIDE_PLAN_ORDER_EASE_H

#include "plan/order/curve.h"

/* order: allowed, and allowed afterwards; never of a larger peak. *work: looks at operands that may be taken, less those that
 * were. */
tide_status tide__order_ease(const tide__order_graph *g, uint64_t *work, tide_id *order);

#endif
