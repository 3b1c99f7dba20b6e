/* See heuristics.h. Limits are counted in work rather than time, so that results do not depend on the machine. */
#include "plan/place/heuristics.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "plan/place/orders.h"
#include "plan/place/skyline.h"
#include "plan/place/stack.h"

#define MOST_FIT_ITEMS 4000             /* beyond, the skyline is as good and much faster */
#define MOST_CONFLICTS UINT64_C(300000) /* of one ordered fit: some 0.03 s */

tide_status tide__place_attempt_init(tide__place_attempt *a, const tide__place_problem *p, uint64_t least,
                                     uint64_t enough) {
    *a = (tide__place_attempt){.p = p, .least = least, .enough = enough, .work = TIDE__PLACE_MOST_SKYLINE_WORK};
    a->best = malloc((p->n + 1) * sizeof *a->best);
    a->trial = malloc((p->n + 1) * sizeof *a->trial);
    a->order = malloc((p->n + 1) * sizeof *a->order);
    return a->best && a->trial && a->order ? TIDE_OK : tide__fail_memory();
}

void tide__place_attempt_deinit(tide__place_attempt *a) {
    free(a->best);
    free(a->trial);
    free(a->order);
    *a = (tide__place_attempt){0};
}

bool tide__place_attempt_is_good(const tide__place_attempt *a) { return a->algorithm && a->height <= a->enough; }

void tide__place_attempt_keep_if_lower(tide__place_attempt *a, const char *algorithm) {
    uint64_t height = tide__place_height(a->p, a->trial);
    if (a->algorithm && height >= a->height) return;
    memcpy(a->best, a->trial, a->p->n * sizeof *a->best);
    a->height = height;
    a->algorithm = algorithm;
}

/* ---- skylines ---- */

/* No run is wanted any more: nothing is lower, or a quick attempt is low enough. */
static bool is_done(const tide__place_attempt *a) {
    return a->algorithm && a->height <= (a->quick ? a->enough : a->least);
}

/* Room for one more run: one that takes as long as the last, or the work of one. */
static bool may_run(const tide__place_attempt *a, uint64_t last_ns) {
    return a->deadline_ns ? tide__worked_ns() + last_ns <= a->deadline_ns : a->work >= a->p->n;
}

/* One run per order, until nothing is lower or the work is too much; the first in any case. */
static void run_orders(tide__place_attempt *a, tide__place_skyline *skyline, const tide__place_order_data *data,
                       double *keys, uint64_t *scratch) {
    uint64_t n = a->p->n, last_ns = 0;
    for (int kind = 0; kind < TIDE__PLACE_N_ORDERS && !is_done(a); kind++) {
        uint64_t start_ns = a->deadline_ns ? tide__worked_ns() : 0;
        if (kind > 0 && !may_run(a, last_ns)) break;
        tide__place_order_keys(data, (tide__place_order_kind)kind, keys);
        tide__place_order_sort(keys, n, scratch, a->order);
        tide__place_skyline_run(skyline, a->order, a->trial);
        a->work -= tide__min_u64(a->work, n);
        tide__place_attempt_keep_if_lower(a, tide__place_order_name((tide__place_order_kind)kind));
        if (a->deadline_ns) last_ns = tide__worked_ns() - start_ns;
    }
}

static tide_status run_skylines(tide__place_attempt *a, tide__place_skyline *skyline,
                                const tide__place_order_data *data) {
    double *keys = malloc((a->p->n + 1) * sizeof *keys);
    uint64_t *scratch = malloc((2 * a->p->n + 1) * sizeof *scratch);
    tide_status status = keys && scratch ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) run_orders(a, skyline, data, keys, scratch);
    free(keys);
    free(scratch);
    return status;
}

tide_status tide__place_try_skylines(tide__place_attempt *a) {
    tide__place_skyline *skyline = NULL;
    tide__place_order_data data = {0};
    tide_status status = tide__place_skyline_create(a->p, &skyline);
    if (status == TIDE_OK) status = tide__place_order_data_init(&data, a->p);
    if (status == TIDE_OK) status = run_skylines(a, skyline, &data);
    tide__place_order_data_deinit(&data);
    tide__place_skyline_destroy(skyline);
    return status;
}

/* ---- fits ---- */

tide_status tide__place_try_fit(tide__place_attempt *a, tide__place_fit_rule rule, uint64_t most_conflicts,
                                const char *algorithm) {
    TIDE_TRY(tide__place_order_by_size(a->p, a->order));
    TIDE_TRY(tide__place_fit(a->p, a->order, rule, most_conflicts, a->trial));
    tide__place_attempt_keep_if_lower(a, algorithm);
    return TIDE_OK;
}

/* Without a skyline (fixed offsets, huge sizes) fits are all there is, and may take longer. */
static void try_fits(tide__place_attempt *a) {
    if (a->algorithm && a->p->n > MOST_FIT_ITEMS) return;
    uint64_t most = a->algorithm ? MOST_CONFLICTS : 10 * MOST_CONFLICTS;
    if (!tide__place_attempt_is_good(a)) (void)tide__place_try_fit(a, TIDE__PLACE_FIT_BEST, most, "smartpool");
    if (!tide__place_attempt_is_good(a)) (void)tide__place_try_fit(a, TIDE__PLACE_FIT_FIRST, most, "first-fit");
}

tide_status tide__place_try_classics(tide__place_attempt *a) {
    try_fits(a);
    if (a->algorithm) return TIDE_OK;
    TIDE_TRY(tide__place_stack(a->p, a->trial));
    tide__place_attempt_keep_if_lower(a, "stack");
    return TIDE_OK;
}

tide_status tide__place_try_heuristics(tide__place_attempt *a) {
    (void)tide__place_try_skylines(a);
    return tide__place_try_classics(a);
}
