/* See squeak.h. An item's key is its place in the order (1 for the first, 0 for the last), what it has squeaked, and
 * a little noise. Squeaks fade; when nothing has improved for a while, they are forgotten and the next order is
 * taken. */
#include "plan/place/squeak.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/size.h"

#define SQUEAK 0.2 /* a fifth of the whole order */
#define FADING 0.95
#define NOISE 0.05
#define PATIENCE 30 /* runs without improvement before the next order */

typedef struct wheel {
    tide__place_attempt *a;
    const tide__place_squeak_options *options;
    double *base, *squeaks, *keys; /* per item */
    uint64_t *scratch;
    uint32_t run, idle; /* runs in all; since the last improvement or order */
    int kind;
} wheel;

static void take_order(wheel *w) {
    size_t n = w->a->p->n;
    tide__place_order_keys(w->options->data, (tide__place_order_kind)w->kind, w->keys);
    tide__place_order_sort(w->keys, n, w->scratch, w->a->order);
    for (size_t k = 0; k < n; k++) w->base[w->a->order[k]] = 1 - (double)k / (double)n;
    memset(w->squeaks, 0, n * sizeof *w->squeaks);
    w->idle = 0;
}

/* UINT64_MAX - run keeps the draws apart from those of the exact search. */
static void sort_items(wheel *w) {
    for (size_t i = 0; i < w->a->p->n; i++) {
        double noise = 2 * (double)tide__random_unit(w->a->seed, UINT64_MAX - w->run, i) - 1;
        w->keys[i] = w->base[i] + w->squeaks[i] + NOISE * noise;
    }
    tide__place_order_sort(w->keys, w->a->p->n, w->scratch, w->a->order);
}

static void listen(wheel *w) {
    for (size_t i = 0; i < w->a->p->n; i++) {
        w->squeaks[i] *= FADING;
        if (w->a->trial[i] + w->a->p->items[i].size > w->a->enough) w->squeaks[i] += SQUEAK;
    }
}

static void turn(wheel *w) {
    uint64_t before = w->a->height;
    sort_items(w);
    tide__place_skyline_run(w->options->skyline, w->a->order, w->a->trial);
    w->a->work -= tide__min_u64(w->a->work, w->a->p->n);
    tide__place_attempt_keep_if_lower(w->a, "squeaky wheel");
    listen(w);
    w->run++;
    w->idle = w->a->height < before ? 0 : w->idle + 1;
    if (w->idle <= PATIENCE) return;
    w->kind = (w->kind + 1) % TIDE__PLACE_N_ORDERS;
    take_order(w);
}

static bool goes_on(const wheel *w) {
    if (tide__place_attempt_is_good(w->a)) return false;
    if (w->a->deadline_ns) return tide__now_ns() < w->a->deadline_ns;
    return w->run < w->options->runs && w->a->work >= w->a->p->n;
}

tide_status tide__place_squeak(tide__place_attempt *a, const tide__place_squeak_options *options) {
    size_t n = a->p->n + 1;
    wheel w = {.a = a, .options = options, .kind = (int)options->kind};
    w.base = malloc(3 * n * sizeof *w.base);
    w.scratch = malloc(2 * n * sizeof *w.scratch);
    tide_status status = w.base && w.scratch ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) {
        w.squeaks = w.base + n;
        w.keys = w.squeaks + n;
        take_order(&w);
        while (goes_on(&w)) turn(&w);
    }
    free(w.base);
    free(w.scratch);
    return status;
}
