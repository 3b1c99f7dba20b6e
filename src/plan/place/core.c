/* See core.h. Each round of taking out is linear in items and slots: what conflicts with a lifetime is what has begun
 * before its end, without what had ended by its begin. Items that conflict in both of their lifetimes may be counted
 * twice, which is on the safe side. */
#include "plan/place/core.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/place/fit.h"

/* Putting items in again looks at their conflicts: those of all together, some 0.05 s. */
#define MOST_CONFLICTS UINT64_C(1000000)

/* Items by number and by size. */
typedef struct amount {
    uint64_t count, size;
} amount;

typedef struct peeler {
    const tide__place_problem *p;
    uint64_t capacity;
    uint64_t looked; /* at conflicts, when what was taken out is put in again */
    bool *out;       /* per item */
    uint32_t *taken; /* items in the order they were taken out */
    size_t n_taken;
    amount *begun, *ended; /* per slot, one extra: lifetimes that begin before it; that end by it */
    amount turning;        /* items alive at the end and at the start: they all conflict, and at both ends */
} peeler;

static bool has_second(const tide__place_item *it) { return it->begin2 < it->end2; }

static bool turns(const tide__place_problem *p, const tide__place_item *it) {
    return has_second(it) && it->begin == 0 && it->end2 == p->n_times;
}

static void add(amount *a, uint64_t size) {
    a->count++;
    a->size += size;
}

/* ---- the bottom ---- */

/* What is shifted up by the item must stay aligned. */
static bool can_be_bottom(const tide__place_problem *p, const tide__place_item *it, uint64_t most_align) {
    return it->begin == 0 && it->end == p->n_times && it->size % most_align == 0;
}

static void take_bottom(tide__place_core *core, peeler *peel) {
    uint64_t most_align = 1;
    if (peel->p->fixed) return;
    for (size_t i = 0; i < peel->p->n; i++) most_align = tide__max_u64(most_align, peel->p->items[i].align);
    for (uint32_t i = 0; i < peel->p->n; i++) {
        if (!can_be_bottom(peel->p, &peel->p->items[i], most_align)) continue;
        peel->out[i] = true;
        core->order[core->n_bottom++] = i;
        core->bottom += peel->p->items[i].size;
    }
    peel->capacity -= core->bottom;
}

/* ---- what fits anyway ---- */

static void sum_up(peeler *peel) {
    const tide__place_problem *p = peel->p;
    memset(peel->begun, 0, 2 * ((size_t)p->n_times + 2) * sizeof *peel->begun);
    peel->turning = (amount){0};
    for (size_t i = 0; i < p->n; i++) {
        const tide__place_item *it = &p->items[i];
        if (peel->out[i]) continue;
        add(&peel->begun[it->begin + 1], it->size);
        add(&peel->ended[it->end], it->size);
        if (turns(p, it)) add(&peel->turning, it->size);
        if (!has_second(it)) continue;
        add(&peel->begun[it->begin2 + 1], it->size);
        add(&peel->ended[it->end2], it->size);
    }
    for (uint32_t t = 0; t < p->n_times; t++) {
        peel->begun[t + 1].count += peel->begun[t].count, peel->begun[t + 1].size += peel->begun[t].size;
        peel->ended[t + 1].count += peel->ended[t].count, peel->ended[t + 1].size += peel->ended[t].size;
    }
}

/* All that is alive in [begin, end), without one such item of `size`. */
static amount others_in(const peeler *peel, uint32_t begin, uint32_t end, uint64_t size) {
    return (amount){peel->begun[end].count - peel->ended[begin].count - 1,
                    peel->begun[end].size - peel->ended[begin].size - size};
}

static amount conflicts_of(const peeler *peel, const tide__place_item *it) {
    amount all = others_in(peel, it->begin, it->end, it->size);
    if (!has_second(it)) return all;
    amount second = others_in(peel, it->begin2, it->end2, it->size);
    all.count += second.count, all.size += second.size;
    if (turns(peel->p, it)) all.count -= peel->turning.count - 1, all.size -= peel->turning.size - it->size;
    return all;
}

/* Of the offsets, only multiples of the alignment count; one conflict blocks a stretch of them. */
static bool always_fits(const peeler *peel, const tide__place_item *it, amount others) {
    uint64_t per_item, blocked;
    if (it->fixed != TIDE__PLACE_FREE || peel->capacity < it->size) return false;
    if (!tide__mul(others.count, it->size - 1 + it->align - 1, &per_item) ||
        !tide__add(others.size, per_item, &blocked))
        return false;
    return blocked / it->align < (peel->capacity - it->size) / it->align + 1;
}

static bool take_out_some(peeler *peel) {
    size_t before = peel->n_taken;
    sum_up(peel);
    for (uint32_t i = 0; i < peel->p->n; i++) {
        if (peel->out[i]) continue;
        amount others = conflicts_of(peel, &peel->p->items[i]);
        if (peel->looked + others.count > MOST_CONFLICTS || !always_fits(peel, &peel->p->items[i], others)) continue;
        peel->looked += others.count;
        peel->taken[peel->n_taken++] = i;
    }
    for (size_t k = before; k < peel->n_taken; k++) peel->out[peel->taken[k]] = true;
    return peel->n_taken > before;
}

/* ---- the core as a problem ---- */

static tide_status keep_rest(tide__place_core *core, const peeler *peel) {
    uint32_t *kept = core->order + core->n_bottom + core->n_out;
    size_t n = 0;
    for (uint32_t i = 0; i < peel->p->n; i++)
        if (!peel->out[i]) kept[n++] = i;
    core->capacity = peel->capacity;
    return tide__place_problem_subset(&core->problem, peel->p, kept, n);
}

static tide_status find(tide__place_core *core, peeler *peel) {
    take_bottom(core, peel);
    while (take_out_some(peel)) {
    }
    for (size_t k = peel->n_taken; k-- > 0;) core->order[core->n_bottom + core->n_out++] = peel->taken[k];
    return keep_rest(core, peel);
}

tide_status tide__place_core_init(tide__place_core *core, const tide__place_problem *whole, uint64_t capacity) {
    size_t n = whole->n + 1, n_slots = (size_t)whole->n_times + 2;
    peeler peel = {.p = whole, .capacity = capacity};
    *core = (tide__place_core){.whole = whole};
    core->order = malloc(n * sizeof *core->order);
    peel.out = calloc(n, sizeof *peel.out);
    peel.taken = malloc(n * sizeof *peel.taken);
    peel.begun = malloc(2 * n_slots * sizeof *peel.begun);
    peel.ended = peel.begun + n_slots;
    bool all = core->order && peel.out && peel.taken && peel.begun;
    tide_status status = all ? find(core, &peel) : tide__fail_memory();
    free(peel.out);
    free(peel.taken);
    free(peel.begun);
    if (status != TIDE_OK) tide__place_core_deinit(core);
    return status;
}

void tide__place_core_deinit(tide__place_core *core) {
    tide__place_problem_deinit(&core->problem);
    free(core->order);
    *core = (tide__place_core){0};
}

/* ---- back to the whole ---- */

/* The bottom as one item: each of the others would look at all of its items. */
static void join_bottom(const tide__place_core *core, tide__place_item *items) {
    uint64_t at = 0;
    for (size_t k = 0; k < core->n_bottom; k++) {
        tide__place_item *it = &items[core->order[k]];
        it->fixed = at;
        at += it->size;
        if (k > 0) it->begin = it->end = 0;
    }
    if (core->n_bottom > 0) items[core->order[0]].size = core->bottom;
}

/* What has its place counts as fixed; the rest goes to its first free offset. */
tide_status tide__place_core_complete(const tide__place_core *core, const uint64_t *core_offsets, uint64_t *offsets) {
    const tide__place_problem *p = core->whole;
    tide__place_item *items = malloc((p->n + 1) * sizeof *items);
    if (!items) return tide__fail_memory();
    memcpy(items, p->items, p->n * sizeof *items);
    join_bottom(core, items);
    for (size_t k = 0; k < core->problem.n; k++) items[core->problem.origin[k]].fixed = core->bottom + core_offsets[k];
    tide__place_problem placed = *p;
    placed.items = items;
    tide_status status = tide__place_fit(&placed, core->order, TIDE__PLACE_FIT_FIRST, 0, offsets);
    free(items);
    return status;
}
