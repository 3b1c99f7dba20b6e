/* See plan.h. */
#include "pool/plan.h"

#include <stdlib.h>
#include <string.h>

#include "plan/place/place.h"

/* The lives, and the length that has room for the longest. */
static void copy_lives(tide__pool_plan *plan, const tide__iteration *it, const tide__pool_plan *earlier,
                       uint32_t *life) {
    plan->length = it->period;
    for (uint32_t i = 0; i < it->n_items; i++) {
        life[i] = it->life[i];
        if (earlier && earlier->items[i].life > life[i]) life[i] = earlier->items[i].life;
        uint32_t copies = life[i] / it->period + 1;
        if (plan->length < copies * it->period) plan->length = copies * it->period;
    }
}

static tide_status allocate(tide__pool_plan *plan, uint32_t items_per_copy) {
    uint32_t n = plan->length;
    plan->n_items = n / plan->period * items_per_copy;
    plan->symbols = malloc((n + (size_t)1) * sizeof *plan->symbols);
    plan->item = malloc((n + (size_t)1) * sizeof *plan->item);
    plan->ends = malloc((n + (size_t)1) * sizeof *plan->ends);
    plan->grams = malloc((n + (size_t)1) * sizeof *plan->grams);
    plan->items = calloc(plan->n_items + 1, sizeof *plan->items);
    plan->slots = malloc((plan->n_items + 1) * sizeof *plan->slots);
    bool good = plan->symbols && plan->item && plan->ends && plan->grams && plan->items && plan->slots;
    return good ? TIDE_OK : tide__fail_memory();
}

/* ---- unrolling ---- */

static void unroll(tide__pool_plan *plan, const tide__iteration *it, const uint32_t *life) {
    for (uint32_t at = 0; at < plan->length; at++) {
        uint32_t i = at % plan->period;
        plan->symbols[at] = it->symbols[i];
        plan->item[at] = TIDE__NO_ITEM;
        if (tide__symbol_is_free(it->symbols[i])) continue;
        plan->item[at] = at / plan->period * it->n_items + it->item[i];
        plan->items[plan->item[at]] = (tide__pool_item){.begin = at, .life = life[it->item[i]]};
    }
}

static void list_ends(tide__pool_plan *plan) {
    for (uint32_t at = 0; at < plan->length; at++) plan->ends[at] = TIDE__NO_ITEM;
    for (uint32_t i = 0; i < plan->n_items; i++) {
        tide__pool_item *item = &plan->items[i];
        if (item->life == 0) continue;
        uint32_t end = item->begin + item->life;
        uint32_t *first = &plan->ends[end < plan->length ? end : end - plan->length];
        item->next_end = *first;
        *first = i;
    }
}

static int compare_grams(const void *a, const void *b) {
    const tide__gram_place *x = a, *y = b;
    if (x->gram != y->gram) return x->gram < y->gram ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static void index_grams(tide__pool_plan *plan) {
    uint64_t gram = 0;
    uint32_t n = plan->length;
    if (n == 0) return;
    for (uint32_t i = 0; i < TIDE__GRAM_LENGTH; i++)
        gram = tide__gram_push(gram, plan->symbols[(n - TIDE__GRAM_LENGTH % n + i) % n]);
    for (uint32_t i = 0; i < n; i++) {
        gram = tide__gram_push(gram, plan->symbols[i]);
        plan->grams[i] = (tide__gram_place){gram, i};
    }
    qsort(plan->grams, n, sizeof *plan->grams, compare_grams);
}

/* ---- placing ---- */

/* An item's lifetime on the circle: one stretch, or two with the border between them. */
static tide__place_item lifetime(const tide__pool_plan *plan, const tide__pool_item *item, uint64_t alignment) {
    tide__place_item out = {.size = tide__item_bytes(plan, item), .align = alignment, .fixed = TIDE__PLACE_FREE};
    if (item->life == 0) out.size = 0;
    if (item->begin + item->life <= plan->length) {
        out.begin = item->begin;
        out.end = item->begin + item->life;
    } else {
        out.end = item->begin + item->life - plan->length;
        out.begin2 = item->begin;
        out.end2 = plan->length;
    }
    return out;
}

static tide_status place(tide__pool_plan *plan, uint64_t alignment, double seconds) {
    tide__place_item *items = malloc((plan->n_items + 1) * sizeof *items);
    uint64_t *offsets = malloc((plan->n_items + 1) * sizeof *offsets);
    tide__place_options options = {.time_limit_s = seconds};
    tide__place_result result;
    tide_status status = items && offsets ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) {
        for (uint32_t i = 0; i < plan->n_items; i++) items[i] = lifetime(plan, &plan->items[i], alignment);
        status = tide__place(items, plan->n_items, &options, offsets, &result);
    }
    if (status == TIDE_OK) {
        plan->height = result.height;
        plan->lower_bound = result.lower_bound;
        plan->algorithm = result.algorithm;
        for (uint32_t i = 0; i < plan->n_items; i++) plan->items[i].offset = offsets[i];
    }
    free(items);
    free(offsets);
    return status;
}

/* ---- from an offset to its block ---- */

static int compare_slots(const void *a, const void *b) {
    const tide__pool_slot *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void index_offsets(tide__pool_plan *plan) {
    tide__pool_slot *slots = plan->slots;
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_items; i++) slots[i] = (tide__pool_slot){plan->items[i].offset, i};
    qsort(slots, plan->n_items, sizeof *slots, compare_slots);
    for (uint32_t i = 0; i < plan->n_items; i++) {
        if (n == 0 || slots[n - 1].offset != slots[i].offset) slots[n++] = slots[i];
        plan->items[slots[i].item].slot = (n - 1) & 0x3fffffff;
    }
    plan->n_slots = n;
}

tide__pool_item *tide__pool_plan_block_at(const tide__pool_plan *plan, uint64_t offset) {
    tide__pool_slot wanted = {.offset = offset};
    const tide__pool_slot *slot = bsearch(&wanted, plan->slots, plan->n_slots, sizeof wanted, compare_slots);
    if (!slot || plan->items[slot->item].state == TIDE__ITEM_IDLE) return NULL;
    return &plan->items[slot->item];
}

/* ---- the whole ---- */

tide_status tide__pool_plan_create(const tide__iteration *iteration, const tide__pool_plan *earlier, uint64_t alignment,
                                   double seconds, tide__pool_plan **out) {
    uint32_t *life = malloc((iteration->n_items + 1) * sizeof *life);
    tide__pool_plan *plan = calloc(1, sizeof *plan);
    tide_status status = life && plan ? TIDE_OK : tide__fail_memory();
    if (status != TIDE_OK) goto done;
    plan->period = iteration->period;
    plan->signature = iteration->signature;
    copy_lives(plan, iteration, earlier, life);
    TIDE_TRY_GOTO(allocate(plan, iteration->n_items), done);
    unroll(plan, iteration, life);
    list_ends(plan);
    index_grams(plan);
    TIDE_TRY_GOTO(place(plan, alignment, seconds), done);
    TIDE_TRY_GOTO(tide__pool_plan_check(plan), done);
    index_offsets(plan);
    *out = plan;
    plan = NULL;
done:
    free(life);
    tide__pool_plan_destroy(plan);
    return status;
}

/* The first copy, read as an iteration. */
tide_status tide__pool_plan_create_lean(const tide__pool_plan *plan, uint64_t alignment, double seconds,
                                        tide__pool_plan **out) {
    uint32_t n_items = plan->n_items / (plan->length / plan->period);
    tide__iteration it = {.period = plan->period,
                          .n_items = n_items,
                          .symbols = plan->symbols,
                          .item = malloc(plan->period * sizeof *it.item),
                          .life = malloc((n_items + 1) * sizeof *it.life),
                          .signature = plan->signature};
    tide_status status = it.item && it.life ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) {
        memcpy(it.item, plan->item, plan->period * sizeof *it.item);
        for (uint32_t i = 0; i < n_items; i++) {
            const tide__pool_item *item = &plan->items[i];
            it.life[i] = item->begin + item->life <= plan->period ? item->life : 0;
        }
        status = tide__pool_plan_create(&it, NULL, alignment, seconds, out);
        if (status == TIDE_OK) (*out)->lean = true;
    }
    free(it.item);
    free(it.life);
    return status;
}

void tide__pool_plan_destroy(tide__pool_plan *plan) {
    if (!plan) return;
    free(plan->symbols);
    free(plan->item);
    free(plan->ends);
    free(plan->items);
    free(plan->slots);
    free(plan->grams);
    free(plan);
}

bool tide__pool_plan_is_of(const tide__pool_plan *plan, const tide__iteration *it) {
    return plan->signature == it->signature && plan->period == it->period &&
           memcmp(plan->symbols, it->symbols, it->period * sizeof *it->symbols) == 0;
}

bool tide__pool_plan_is_outlived(const tide__pool_plan *plan, const tide__iteration *it) {
    for (uint32_t i = 0; i < it->n_items; i++)
        if (it->life[i] > plan->items[i].life) return true;
    return false;
}

/* The first place at or after (gram, at) in the order of the index. */
static uint32_t lower_bound(const tide__pool_plan *plan, tide__gram_place wanted) {
    uint32_t low = 0, high = plan->length;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_grams(&plan->grams[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t tide__pool_plan_find(const tide__pool_plan *plan, uint64_t gram, uint32_t from, uint32_t max, uint32_t *out) {
    uint32_t first = lower_bound(plan, (tide__gram_place){gram, 0}), n = 0;
    uint32_t middle = lower_bound(plan, (tide__gram_place){gram, from});
    for (uint32_t i = middle; n < max && i < plan->length && plan->grams[i].gram == gram; i++)
        out[n++] = plan->grams[i].at;
    for (uint32_t i = first; n < max && i < middle; i++) out[n++] = plan->grams[i].at;
    return n;
}
