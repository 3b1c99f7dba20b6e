/* Gaps: the stretches in which a value waits for its next use. Linear: one pass over the ops counts each tensor's
 * gaps, a second one puts them at their place. */
#include "program/program_data.h"

#include <stdlib.h>

typedef struct gap_work {
    uint32_t *last_use; /* per tensor: the newest op that used it, or TIDE_NONE */
    size_t *place;      /* per tensor: its number of gaps, then where the next one goes */
    tide_gap *gaps;     /* NULL while counting */
} gap_work;

static void use(gap_work *w, tide_id tensor, uint32_t op) {
    uint32_t before = w->last_use[tensor];
    w->last_use[tensor] = op;
    if (before == TIDE_NONE || op - before < 2) return;
    size_t place = w->place[tensor]++;
    if (w->gaps) w->gaps[place] = (tide_gap){tensor, before, op};
}

static void walk(const tide_program *p, gap_work *w) {
    for (size_t t = 0; t < p->tensors.count; t++) w->last_use[t] = TIDE_NONE;
    for (uint32_t i = 0; i < p->ops.count; i++) {
        const tide_op *op = &p->ops.data[i];
        for (uint32_t k = 0; k < op->n_reads; k++) use(w, op->reads[k], i);
        for (uint32_t k = 0; k < op->n_writes; k++) use(w, op->writes[k], i);
    }
}

/* Counts become places; returns the total. */
static size_t assign_places(size_t *place, size_t n) {
    size_t total = 0;
    for (size_t t = 0; t < n; t++) {
        size_t count = place[t];
        place[t] = total;
        total += count;
    }
    return total;
}

tide_status tide_liveness_gaps(const tide_program *p, tide_gap **out, size_t *n_out) {
    TIDE_NEED(p, out, n_out);
    size_t n = p->tensors.count, total = 0;
    gap_work w = {.last_use = malloc((n + 1) * sizeof *w.last_use), .place = calloc(n + 1, sizeof *w.place)};
    if (w.last_use && w.place) {
        walk(p, &w);
        total = assign_places(w.place, n);
        w.gaps = malloc((total + 1) * sizeof *w.gaps);
    }
    if (w.gaps) walk(p, &w);
    free(w.last_use);
    free(w.place);
    if (!w.gaps) return tide__fail_memory();
    *out = w.gaps;
    *n_out = total;
    return TIDE_OK;
}
