/* Keys and sorting for orders.h. */
#include "plan/place/orders.h"

#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "plan/place/radix.h"

/* Two peaks this far apart (of 1) differ more than any two durations or areas. */
#define PEAK_WEIGHT 1e6

/* ---- the load under each item ---- */

/* Bottom-up tree of maxima: slot t is node base + t. */
typedef struct load_tree {
    uint32_t base;
    double *most;
} load_tree;

/* Loads as doubles: they only make keys. */
static tide_status load_tree_init(load_tree *tree, const tide__place_problem *p) {
    tree->base = 1;
    while (tree->base < p->n_times) tree->base *= 2;
    tree->most = calloc(2 * (size_t)tree->base + 1, sizeof *tree->most);
    if (!tree->most) return tide__fail_memory();
    double *load = tree->most + tree->base;
    for (size_t i = 0; i < p->n; i++) {
        const tide__place_item *it = &p->items[i];
        load[it->begin] += (double)it->size;
        load[it->end] -= (double)it->size;
        load[it->begin2] += it->begin2 < it->end2 ? (double)it->size : 0;
        load[it->end2] -= it->begin2 < it->end2 ? (double)it->size : 0;
    }
    for (uint32_t t = 1; t < tree->base; t++) load[t] += load[t - 1];
    for (uint32_t k = tree->base - 1; k > 0; k--) tree->most[k] = fmax(tree->most[2 * k], tree->most[2 * k + 1]);
    return TIDE_OK;
}

static double most_load(const load_tree *tree, uint32_t begin, uint32_t end) {
    double most = 0;
    for (begin += tree->base, end += tree->base; begin < end; begin /= 2, end /= 2) {
        if (begin & 1) most = fmax(most, tree->most[begin++]);
        if (end & 1) most = fmax(most, tree->most[--end]);
    }
    return most;
}

static tide_status find_peaks(const tide__place_problem *p, double *peak) {
    load_tree tree = {0};
    TIDE_TRY(load_tree_init(&tree, p));
    for (size_t i = 0; i < p->n; i++) {
        const tide__place_item *it = &p->items[i];
        peak[i] = fmax(most_load(&tree, it->begin, it->end), most_load(&tree, it->begin2, it->end2)) / tree.most[1];
    }
    free(tree.most);
    return TIDE_OK;
}

tide_status tide__place_order_data_init(tide__place_order_data *d, const tide__place_problem *p) {
    *d = (tide__place_order_data){.p = p};
    d->log_size = malloc((3 * p->n + 1) * sizeof *d->log_size);
    if (!d->log_size) return tide__fail_memory();
    d->log_duration = d->log_size + p->n;
    d->peak = d->log_duration + p->n;
    for (size_t i = 0; i < p->n; i++) {
        d->log_size[i] = log((double)p->items[i].size);
        d->log_duration[i] = log((double)p->lengths[i]);
        d->least_size = i ? fmin(d->least_size, d->log_size[i]) : d->log_size[i];
        d->most_size = i ? fmax(d->most_size, d->log_size[i]) : d->log_size[i];
        d->most_duration = fmax(d->most_duration, d->log_duration[i]);
    }
    return find_peaks(p, d->peak);
}

void tide__place_order_data_deinit(tide__place_order_data *d) {
    free(d->log_size);
    *d = (tide__place_order_data){0};
}

/* ---- keys ---- */

/* Where between two values: 0 .. 1. */
static double share(double value, double low, double high) { return high > low ? (value - low) / (high - low) : 0; }

static double key_of(const tide__place_order_data *d, tide__place_order_kind kind, size_t i) {
    double duration = d->log_duration[i], size = d->log_size[i], peak = d->peak[i] * PEAK_WEIGHT;
    switch (kind) {
    case TIDE__PLACE_ORDER_DURATION: return duration;
    case TIDE__PLACE_ORDER_PEAK_DURATION: return peak + duration;
    case TIDE__PLACE_ORDER_PEAK_AREA: return peak + duration + size;
    case TIDE__PLACE_ORDER_AREA: return duration + size;
    case TIDE__PLACE_ORDER_PEAK_BULK: return peak + duration + size / 2;
    case TIDE__PLACE_ORDER_BULK: return duration + size / 2;
    case TIDE__PLACE_ORDER_BEGIN: return -(double)d->p->items[i].begin;
    case TIDE__PLACE_ORDER_SIZE: return size;
    case TIDE__PLACE_ORDER_WEIGHT: return duration + 2 * size;
    case TIDE__PLACE_ORDER_EXTENT:
        return fmax(share(duration, 0, d->most_duration), share(size, d->least_size, d->most_size));
    case TIDE__PLACE_ORDER_PEAK_BEGIN: return peak - (double)d->p->items[i].begin;
    case TIDE__PLACE_ORDER_PEAK_END: return peak + (double)d->p->items[i].end;
    case TIDE__PLACE_ORDER_INPUT:
    case TIDE__PLACE_N_ORDERS: break;
    }
    return -(double)i;
}

void tide__place_order_keys(const tide__place_order_data *d, tide__place_order_kind kind, double *keys) {
    for (size_t i = 0; i < d->p->n; i++) keys[i] = key_of(d, kind, i);
}

/* Keys become 32-bit steps between the lowest and the highest, with the item's number below them; what falls into one
 * step is ordered by number. */
void tide__place_order_sort(const double *keys, uint32_t *order, size_t n, uint64_t *scratch) {
    double low = n ? keys[order[0]] : 0, high = low;
    for (size_t k = 0; k < n; k++) {
        low = fmin(low, keys[order[k]]);
        high = fmax(high, keys[order[k]]);
    }
    double scale = high > low ? (double)UINT32_MAX / (high - low) : 0;
    for (size_t k = 0; k < n; k++) scratch[k] = (uint64_t)((high - keys[order[k]]) * scale) << 32 | order[k];
    tide__place_radix_sort(scratch, scratch + n, n);
    for (size_t k = 0; k < n; k++) order[k] = (uint32_t)scratch[k];
}
