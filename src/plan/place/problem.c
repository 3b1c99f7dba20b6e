/* Building the working form of a placement problem (problem.h): check, drop, compress, scale, bound. */
#include "plan/place/problem.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/place/lifetimes.h"
#include "plan/place/radix.h"

#define MAX_ITEMS ((size_t)1 << 30) /* leaf numbers fit in 31 bits */
#define SAFE_SUM (UINT64_C(1) << 62)

static bool has_second(const tide__place_item *it) { return it->begin2 < it->end2; }

static tide_status check_item(const tide__place_item *it, size_t i) {
    if (!tide__is_power_of_two(it->align))
        return tide__fail(TIDE_E_ARGUMENT, "item %zu: alignment is not a power of two", i);
    if (it->begin > it->end || it->begin2 > it->end2)
        return tide__fail(TIDE_E_ARGUMENT, "item %zu: ends before it begins", i);
    if (has_second(it) && it->begin2 < it->end)
        return tide__fail(TIDE_E_ARGUMENT, "item %zu: second lifetime begins before the first ends", i);
    uint64_t end;
    if (it->fixed == TIDE__PLACE_FREE) return TIDE_OK;
    if (it->fixed & (it->align - 1)) return tide__fail(TIDE_E_ARGUMENT, "item %zu: fixed offset is not aligned", i);
    if (!tide__add(it->fixed, it->size, &end))
        return tide__fail(TIDE_E_OVERFLOW, "item %zu: fixed offset + size does not fit in 64 bits", i);
    return TIDE_OK;
}

static bool is_idle(const tide__place_item *it) { return it->size == 0 || (it->begin == it->end && !has_second(it)); }

static void note_idle(tide__place_problem *p, const tide__place_item *it) {
    if (it->size == 0) return;
    uint64_t offset = it->fixed == TIDE__PLACE_FREE ? 0 : it->fixed;
    p->idle_height_bytes = tide__max_u64(p->idle_height_bytes, offset + it->size);
}

/* Copies the items that matter; an item whose only lifetime is the second gets it as its first. */
static tide_status gather(tide__place_problem *p, const tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(check_item(&items[i], i));
        if (is_idle(&items[i])) {
            note_idle(p, &items[i]);
            continue;
        }
        tide__place_item it = items[i];
        if (it.begin == it.end) it.begin = it.begin2, it.end = it.end2, it.begin2 = it.end2 = 0;
        p->origin[p->n] = (uint32_t)i;
        p->lengths[p->n] = (uint64_t)(it.end - it.begin) + (it.end2 - it.begin2);
        p->items[p->n++] = it;
    }
    return TIDE_OK;
}

/* ---- times ---- */

static uint64_t event_key(uint32_t time, bool begins, size_t leaf) {
    return (uint64_t)time << 32 | (uint64_t)begins << 31 | leaf;
}

static size_t list_events(const tide__place_problem *p, uint64_t *keys) {
    size_t k = 0;
    for (size_t i = 0; i < p->n; i++) {
        const tide__place_item *it = &p->items[i];
        keys[k++] = event_key(it->begin, true, 2 * i);
        keys[k++] = event_key(it->end, false, 2 * i);
        if (!has_second(it)) continue;
        keys[k++] = event_key(it->begin2, true, 2 * i + 1);
        keys[k++] = event_key(it->end2, false, 2 * i + 1);
    }
    return k;
}

static uint32_t *time_field(tide__place_item *it, bool begins, bool second) {
    if (second) return begins ? &it->begin2 : &it->end2;
    return begins ? &it->begin : &it->end;
}

/* A new slot opens only where something begins after something ended: exactly the maximal sets of items that are
 * alive together get a slot each, and no conflict is won or lost. */
static void renumber(tide__place_problem *p, const uint64_t *keys, size_t n_keys) {
    uint32_t slot = 0;
    bool ended = false;
    for (size_t k = 0; k < n_keys; k++) {
        size_t leaf = keys[k] & 0x7fffffff;
        bool begins = keys[k] >> 31 & 1;
        if (begins && ended) slot++;
        ended = !begins;
        *time_field(&p->items[leaf / 2], begins, leaf % 2) = begins ? slot : slot + 1;
    }
    p->n_times = p->n ? slot + 1 : 0;
}

static void join_touching(tide__place_problem *p) {
    for (size_t i = 0; i < p->n; i++) {
        tide__place_item *it = &p->items[i];
        if (has_second(it) && it->begin2 == it->end) it->end = it->end2, it->begin2 = it->end2 = 0;
        if (!has_second(it)) it->begin2 = it->end2 = 0;
        p->cyclic |= has_second(it);
    }
}

static tide_status compress_times(tide__place_problem *p) {
    uint64_t *keys = malloc((8 * p->n + 1) * sizeof *keys);
    if (!keys) return tide__fail_memory();
    size_t n_keys = list_events(p, keys);
    tide__place_radix_sort(keys, keys + n_keys, n_keys);
    renumber(p, keys, n_keys);
    join_touching(p);
    free(keys);
    return TIDE_OK;
}

/* ---- sizes ---- */

static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* All offsets are multiples of the smallest alignment, so sizes may be rounded up to it. */
static tide_status scale_sizes(tide__place_problem *p) {
    uint64_t least = p->n ? p->items[0].align : 1, common = 0, most = 1;
    for (size_t i = 0; i < p->n; i++) least = tide__min_u64(least, p->items[i].align);
    for (size_t i = 0; i < p->n; i++) {
        tide__place_item *it = &p->items[i];
        if (!tide__align_up(it->size, least, &it->size))
            return tide__fail(TIDE_E_OVERFLOW, "item %u: aligned size does not fit in 64 bits", p->origin[i]);
        common = gcd(it->size, common);
        if (it->fixed != TIDE__PLACE_FREE) common = gcd(it->fixed, common);
        most = tide__max_u64(most, it->align);
    }
    uint64_t power = common & (~common + 1);
    p->unit = tide__max_u64(1, most <= power ? common : power);
    uint64_t implied = p->unit & (~p->unit + 1);
    for (size_t i = 0; i < p->n; i++) {
        tide__place_item *it = &p->items[i];
        it->size /= p->unit;
        it->align = it->align <= implied ? 1 : it->align / p->unit;
        if (it->fixed != TIDE__PLACE_FREE) it->fixed /= p->unit, p->fixed = true;
        p->aligned |= it->align > 1;
    }
    return TIDE_OK;
}

static void find_huge(tide__place_problem *p) {
    uint64_t sum = 0;
    for (size_t i = 0; i < p->n && !p->huge; i++) {
        const tide__place_item *it = &p->items[i];
        uint64_t reach = it->fixed == TIDE__PLACE_FREE ? it->align : it->fixed;
        p->huge = !tide__add(sum, it->size, &sum) || !tide__add(sum, reach, &sum) || sum >= SAFE_SUM;
    }
}

/* ---- the bound ---- */

/* What an item takes up among items that all start at multiples of `align`, in bytes. */
static bool rounded(const tide__place_item *original, uint64_t align, uint64_t *out) {
    return tide__align_up(original->size, align, out);
}

typedef struct load_curve {
    uint64_t *bytes, *ends; /* per slot, one extra */
    uint32_t peak;
} load_curve;

/* The load of the items aligned to `align` or more, sizes rounded up to it. false on overflow. */
static bool fill_load(const tide__place_problem *p, const tide__place_item *originals, uint64_t align,
                      load_curve *load) {
    for (size_t t = 0; t <= p->n_times; t++) load->bytes[t] = load->ends[t] = 0;
    for (size_t i = 0; i < p->n; i++) {
        const tide__place_item *it = &p->items[i], *original = &originals[p->origin[i]];
        uint64_t size;
        if (original->align < align) continue;
        if (!rounded(original, align, &size)) return false;
        if (!tide__add(load->bytes[it->begin], size, &load->bytes[it->begin])) return false;
        load->ends[it->end] += size;
        if (!has_second(it)) continue;
        if (!tide__add(load->bytes[it->begin2], size, &load->bytes[it->begin2])) return false;
        load->ends[it->end2] += size;
    }
    load->peak = 0;
    for (uint32_t t = 1; t < p->n_times; t++) {
        if (!tide__add(load->bytes[t], load->bytes[t - 1] - load->ends[t], &load->bytes[t])) return false;
        if (load->bytes[t] > load->bytes[load->peak]) load->peak = t;
    }
    return true;
}

static bool alive_at(const tide__place_item *it, uint32_t t) {
    return (it->begin <= t && t < it->end) || (it->begin2 <= t && t < it->end2);
}

/* Of the items alive at the peak only the topmost may leave its rounding unused. */
static uint64_t unused_at_peak(const tide__place_problem *p, const tide__place_item *originals, uint64_t align,
                               const load_curve *load) {
    uint64_t unused = 0, size;
    for (size_t i = 0; i < p->n; i++) {
        const tide__place_item *original = &originals[p->origin[i]];
        if (original->align < align || !alive_at(&p->items[i], load->peak)) continue;
        if (rounded(original, align, &size)) unused = tide__max_u64(unused, size - original->size);
    }
    return unused;
}

/* One bound per alignment in use. That of the smallest one is the load in units; where a larger one overflows it is
 * left out, as it is not needed. */
static tide_status bound_load(tide__place_problem *p, const tide__place_item *originals, load_curve *load) {
    uint64_t seen = 0;
    for (size_t i = 0; i < p->n; i++) seen |= originals[p->origin[i]].align;
    bool first = true;
    for (uint64_t align = 1; align; align *= 2) {
        if (!(seen & align)) continue;
        if (!fill_load(p, originals, align, load)) {
            if (first) return tide__fail(TIDE_E_OVERFLOW, "the load does not fit in 64 bits");
            continue;
        }
        uint64_t peak = load->bytes[load->peak], bytes = peak - unused_at_peak(p, originals, align, load);
        if (first) p->lower_bound = peak / p->unit;
        p->lower_bound_bytes = tide__max_u64(p->lower_bound_bytes, bytes);
        first = false;
    }
    return TIDE_OK;
}

static tide_status bound_height(tide__place_problem *p, const tide__place_item *originals) {
    load_curve load = {.bytes = malloc(2 * ((size_t)p->n_times + 1) * sizeof(uint64_t))};
    if (!load.bytes) return tide__fail_memory();
    load.ends = load.bytes + p->n_times + 1;
    tide_status status = bound_load(p, originals, &load);
    free(load.bytes);
    for (size_t i = 0; i < p->n; i++) {
        const tide__place_item *original = &originals[p->origin[i]];
        if (original->fixed != TIDE__PLACE_FREE)
            p->lower_bound_bytes = tide__max_u64(p->lower_bound_bytes, original->fixed + original->size);
    }
    uint64_t units = p->lower_bound_bytes / p->unit + (p->lower_bound_bytes % p->unit != 0);
    p->lower_bound = tide__max_u64(p->lower_bound, units);
    p->lower_bound_bytes = tide__max_u64(p->lower_bound_bytes, p->idle_height_bytes);
    return status;
}

/* For sizes that are in units and cannot overflow. */
static tide_status bound_subset(tide__place_problem *p) {
    uint64_t *change = calloc((size_t)p->n_times + 1, sizeof *change), load = 0;
    if (!change) return tide__fail_memory();
    for (size_t i = 0; i < p->n; i++) {
        const tide__place_item *it = &p->items[i];
        change[it->begin] += it->size;
        change[it->end] -= it->size; /* wraps, and back when summed up */
        if (has_second(it)) change[it->begin2] += it->size, change[it->end2] -= it->size;
        if (it->fixed != TIDE__PLACE_FREE) p->lower_bound = tide__max_u64(p->lower_bound, it->fixed + it->size);
    }
    for (uint32_t t = 0; t < p->n_times; t++) {
        load += change[t];
        p->lower_bound = tide__max_u64(p->lower_bound, load);
    }
    p->lower_bound_bytes = p->lower_bound;
    free(change);
    return TIDE_OK;
}

/* ---- fixed offsets ---- */

typedef struct edge {
    uint64_t at;
    uint32_t item;
    bool opens;
} edge;

static int by_address(const void *a, const void *b) {
    const edge *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    if (x->opens != y->opens) return x->opens ? 1 : -1;
    return (x->item > y->item) - (x->item < y->item);
}

static tide_status sweep_addresses(const tide__place_problem *p, const edge *edges, size_t n,
                                   tide__place_lifetimes *open) {
    for (size_t k = 0; k < n; k++) {
        uint32_t i = edges[k].item, other;
        if (!edges[k].opens) {
            tide__place_lifetimes_remove(open, i);
            continue;
        }
        if (tide__place_lifetimes_conflicts(open, i, &other, 1))
            return tide__fail(TIDE_E_ARGUMENT, "items %u and %u: fixed offsets overlap", p->origin[i],
                              p->origin[other]);
        tide__place_lifetimes_add(open, i);
    }
    return TIDE_OK;
}

/* Walks up the addresses with the set of fixed items at the current one: no two of them may be alive together. */
static tide_status check_fixed(const tide__place_problem *p) {
    if (!p->fixed) return TIDE_OK;
    tide__place_lifetimes open = {0};
    edge *edges = malloc((2 * p->n + 1) * sizeof *edges);
    if (!edges) return tide__fail_memory();
    size_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const tide__place_item *it = &p->items[i];
        if (it->fixed == TIDE__PLACE_FREE) continue;
        edges[n++] = (edge){it->fixed, i, true};
        edges[n++] = (edge){it->fixed + it->size, i, false};
    }
    qsort(edges, n, sizeof *edges, by_address);
    tide_status status = tide__place_lifetimes_init(&open, p->items, p->n);
    if (status == TIDE_OK) status = sweep_addresses(p, edges, n, &open);
    tide__place_lifetimes_deinit(&open);
    free(edges);
    return status;
}

/* ---- all together ---- */

static tide_status build(tide__place_problem *p, const tide__place_item *items, size_t n) {
    TIDE_TRY(gather(p, items, n));
    TIDE_TRY(compress_times(p));
    TIDE_TRY(scale_sizes(p));
    TIDE_TRY(bound_height(p, items));
    find_huge(p);
    return check_fixed(p);
}

static tide_status allocate(tide__place_problem *p, size_t n) {
    *p = (tide__place_problem){.unit = 1};
    if (n > MAX_ITEMS) return tide__fail(TIDE_E_ARGUMENT, "%zu items: too many to place", n);
    p->items = malloc((n + 1) * sizeof *p->items);
    p->origin = malloc((n + 1) * sizeof *p->origin);
    p->lengths = malloc((n + 1) * sizeof *p->lengths);
    return p->items && p->origin && p->lengths ? TIDE_OK : tide__fail_memory();
}

tide_status tide__place_problem_init(tide__place_problem *p, const tide__place_item *items, size_t n) {
    tide_status status = allocate(p, n);
    if (status == TIDE_OK) status = build(p, items, n);
    if (status != TIDE_OK) tide__place_problem_deinit(p);
    return status;
}

tide_status tide__place_problem_subset(tide__place_problem *p, const tide__place_problem *whole,
                                       const uint32_t *members, size_t n) {
    tide_status status = allocate(p, n);
    for (size_t k = 0; k < n && status == TIDE_OK; k++) {
        const tide__place_item *it = &whole->items[members[k]];
        p->items[p->n] = *it;
        p->origin[p->n] = members[k];
        p->lengths[p->n++] = whole->lengths[members[k]];
        p->aligned |= it->align > 1;
        p->fixed |= it->fixed != TIDE__PLACE_FREE;
    }
    if (status == TIDE_OK) status = compress_times(p);
    if (status == TIDE_OK) status = bound_subset(p);
    if (status != TIDE_OK) tide__place_problem_deinit(p);
    return status;
}

void tide__place_problem_deinit(tide__place_problem *p) {
    free(p->items);
    free(p->origin);
    free(p->lengths);
    *p = (tide__place_problem){.unit = 1};
}

uint64_t tide__place_height(const tide__place_problem *p, const uint64_t *offsets) {
    uint64_t height = 0;
    for (size_t i = 0; i < p->n; i++) height = tide__max_u64(height, offsets[i] + p->items[i].size);
    return height;
}
