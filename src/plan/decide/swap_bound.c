/* A bound for swapping (swap_search.h), by fluids; with waits only by the circulation.
 *
 * away(k), the bytes absent in slot k, is at most what gaps that cover k hold; at most what has been saved of values
 * that are still wanted, which grows no faster than the out channels run; and it falls no faster than the in channels
 * run. The largest away() that obeys all three is found by one pass each way. */
#include <stdlib.h>

#include "base/size.h"
#include "plan/decide/swap_search.h"

typedef struct fluid {
    const tide__swaps *s;
    double *covered; /* per slot: bytes of gaps that cover it */
    double *wanted;  /* per slot: bytes of values that exist there and have a gap to come */
    double *clean;   /* per slot: those of `covered` that need no SAVE */
    double *away;
} fluid;

static void cover(const tide__swaps *s, double *row, uint32_t from, uint32_t to, double bytes) {
    row[from] += bytes;
    if (to <= s->n_ops) row[to] -= bytes;
}

/* row[] from changes to values. */
static void sum(const tide__swaps *s, double *row) {
    for (uint32_t k = 1; k <= s->n_ops; k++) row[k] += row[k - 1];
}

/* Several gaps of one value are one SAVE: each counts in `wanted` from the end of the one before. */
static void add_gaps(fluid *f, uint32_t *wanted_to) {
    const tide__swaps *s = f->s;
    for (size_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        double bytes = (double)g->size_bytes;
        uint32_t to = g->head == TIDE_NONE ? g->to : s->n_ops + 1;
        cover(s, f->covered, g->from, to, bytes);
        if (g->head != TIDE_NONE && g->to != TIDE_NONE) cover(s, f->covered, 0, g->to, bytes);
        if (g->head != TIDE_NONE && g->to != TIDE_NONE) cover(s, f->clean, 0, g->to, bytes);
        if (g->clean || g->across != TIDE_NONE) {
            cover(s, f->clean, g->from, to, bytes);
            continue;
        }
        uint32_t ready = s->options.late_saves ? g->from : g->ready;
        if (wanted_to[g->tensor] > ready) ready = wanted_to[g->tensor];
        if (to > ready) cover(s, f->wanted, ready, to, bytes);
        if (to > wanted_to[g->tensor]) wanted_to[g->tensor] = to;
    }
    sum(s, f->covered);
    sum(s, f->wanted);
    sum(s, f->clean);
}

/* Bytes per nanosecond of all channels of one direction that gaps use, or may use where tiers are too small for all. */
static double rate_of(const tide__swaps *s, bool out) {
    const tide_machine *m = s->in->machine;
    bool used[TIDE_MACHINE_MAX_TIERS] = {false};
    double rate = 0;
    for (size_t i = 0; i < s->gaps.count; i++) used[s->gaps.data[i].tier] = true;
    for (uint32_t i = 0; i < s->tiers.n && s->limited; i++) used[s->tiers.tier[i]] = true;
    for (uint32_t c = 0; c < m->n_channels; c++)
        if (used[m->channel[c].tier] && m->channel[c].out == out) rate += (double)m->channel[c].bytes_per_s * 1e-9;
    return rate;
}

static double slot_ns(const tide__swaps *s, uint32_t k) {
    return k < s->n_ops ? (double)(s->slot_ns[k + 1] - s->slot_ns[k]) : 0;
}

static double least(double a, double b) { return a < b ? a : b; }

static uint64_t solve(fluid *f) {
    const tide__swaps *s = f->s;
    double out = rate_of(s, true), in = rate_of(s, false), saved = 0, peak = 0;
    for (uint32_t k = 0; k <= s->n_ops; k++) {
        saved = least(f->wanted[k], saved + (k ? out * slot_ns(s, k - 1) : 0));
        f->away[k] = least(f->covered[k], saved + f->clean[k]);
    }
    for (uint32_t k = s->n_ops; k-- > 0;) f->away[k] = least(f->away[k], f->away[k + 1] + in * slot_ns(s, k));
    for (uint32_t k = 0; k <= s->n_ops; k++) {
        double load = (double)s->base_loads[k] - f->away[k];
        if (load > peak) peak = load;
    }
    return (uint64_t)peak;
}

tide_status tide__swap_bound(const tide__swaps *s, uint64_t wait_ns, uint64_t *out) {
    size_t slots = s->n_ops + (size_t)2, n = tide_program_tensor_count(s->in->program) + (size_t)1;
    fluid f = {.s = s};
    f.covered = calloc(slots, sizeof *f.covered);
    f.wanted = calloc(slots, sizeof *f.wanted);
    f.clean = calloc(slots, sizeof *f.clean);
    f.away = calloc(slots, sizeof *f.away);
    uint32_t *wanted_to = calloc(n, sizeof *wanted_to);
    tide_status status = TIDE_OK;
    if (f.covered && f.wanted && f.clean && f.away && wanted_to) {
        add_gaps(&f, wanted_to);
        uint64_t bound = wait_ns ? 0 : solve(&f);
        status = tide__swap_circulation(s, wait_ns, &bound);
        if (status == TIDE_OK) *out = bound;
    } else {
        status = tide__fail_memory();
    }
    free(f.covered);
    free(f.wanted);
    free(f.clean);
    free(f.away);
    free(wanted_to);
    return status;
}
