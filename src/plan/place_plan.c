/* Place, for plans: residencies and copies become items of the placement engine.
 *
 * Places that must lie at one offset (place_groups.h) become one item. It is alive on the union of its members'
 * intervals; with a carry in it that can be two stretches, one at each end of the step. */
#include "plan/place_plan.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/place_groups.h"
#include "plan/schedule/schedule.h"

/* How far the exact search goes where the heuristics stay above the load: some 0.1 s, counted in nodes, so that it is
 * the same on every machine. A node takes time in proportion to the items; fewer nodes than items lead nowhere. */
static uint64_t search_nodes(uint64_t n_items) {
    return n_items + tide__min_u64(25000, UINT64_C(5000000) / (n_items + 1));
}

/* What a draft is worth: the quick heuristics, and one or two attempts of the exact search where those are quick. */
enum { MOST_DRAFT_ITEMS = 600 };
static uint64_t draft_work(uint64_t n_items) {
    uint64_t orders = 8 * n_items, repairs = 20 * n_items, search = (n_items + n_items / 4 + 100) * n_items / 50;
    return orders + (n_items <= MOST_DRAFT_ITEMS ? repairs + search : 0);
}

/* How places are sought: within a capacity, with bounded work; or as low as possible. */
typedef struct effort {
    bool is_question;
    uint64_t work;
} effort;

/* ---- groups become items ---- */

/* One member's claim on its group's place. Time 0 is the moment before action 0, when all of the start map has its
 * place, used or not; action i is time i + 1. */
typedef struct claim {
    uint32_t member, group, begin, end;
    uint64_t size, align;
    bool gave; /* the next claim begins with the action that ends this one: they share bytes there */
} claim;

static int by_group_and_time(const void *a, const void *b) {
    const claim *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The claims of one group, in time order, as one item: its widest inner gap is left free, smaller ones are not. */
static tide_status merge_claims(const claim *claims, size_t n, tide__place_item *item) {
    *item = (tide__place_item){.align = 1, .fixed = TIDE__PLACE_FREE, .begin = claims[0].begin};
    uint32_t end = claims[0].end, widest = 0;
    bool gave = claims[0].gave;
    for (size_t i = 0; i < n; i++) {
        item->size = tide__max_u64(item->size, claims[i].size);
        item->align = tide__max_u64(item->align, claims[i].align);
        if (i > 0 && end > claims[i].begin + (gave ? 1 : 0))
            return tide__fail(TIDE_E_UNSUPPORTED,
                              "a carried value and its successor are alive at the same time and need the same place");
        if (claims[i].begin > end && claims[i].begin - end > widest) {
            widest = claims[i].begin - end;
            item->end = end;
            item->begin2 = claims[i].begin;
        }
        if (claims[i].end >= end) {
            end = claims[i].end;
            gave = claims[i].gave;
        }
    }
    if (widest)
        item->end2 = end;
    else
        item->end = end;
    return TIDE_OK;
}

/* Sorts the claims and merges those of each group; items has room for n. */
static tide_status merge_groups(claim *claims, size_t n, tide__place_item *items, size_t *n_items) {
    qsort(claims, n, sizeof *claims, by_group_and_time);
    *n_items = 0;
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && claims[next].group == claims[i].group;) next++;
        TIDE_TRY(merge_claims(&claims[i], next - i, &items[(*n_items)++]));
    }
    return TIDE_OK;
}

static tide_status place_items(const tide__place_item *items, size_t n, uint64_t capacity, effort e, uint64_t *offsets,
                               uint64_t *height, tide__place_answer *answer) {
    tide__place_options options = {.capacity = capacity == UINT64_MAX ? 0 : capacity, .node_limit = search_nodes(n)};
    tide__place_result result;
    tide_status status = e.is_question ? tide__place_within(items, n, capacity, e.work, offsets, &result, answer)
                                       : tide__place(items, n, &options, offsets, &result);
    if (status != TIDE_OK) return status;
    *height = result.height;
    if (!e.is_question) *answer = result.height <= capacity ? TIDE__PLACE_FITS : TIDE__PLACE_TOO_HIGH;
    return TIDE_OK;
}

/* Places the groups of n claims (which get sorted); offsets[k] is that of claims[k], then. */
static tide_status place_claims(claim *claims, size_t n, uint64_t capacity, effort e, uint64_t *offsets,
                                uint64_t *height, tide__place_answer *answer) {
    tide__place_item *items = malloc((n + 1) * sizeof *items);
    uint64_t *item_offsets = malloc((n + 1) * sizeof *item_offsets);
    size_t n_items;
    tide_status status = items && item_offsets ? merge_groups(claims, n, items, &n_items) : tide__fail_memory();
    if (status == TIDE_OK) status = place_items(items, n_items, capacity, e, item_offsets, height, answer);
    for (size_t i = 0, item = 0; status == TIDE_OK && *answer != TIDE__PLACE_TOO_SMALL && i < n; i++) {
        item += i > 0 && claims[i].group != claims[i - 1].group;
        offsets[i] = item_offsets[item];
    }
    free(items);
    free(item_offsets);
    return status;
}

/* ---- the arena ---- */

/* Bytes that move start at a multiple of the tier's block, for direct I/O. */
static void align_moved(const tide_machine *machine, const tide_plan *plan, claim *claims) {
    for (size_t i = 0; i < plan->actions.count; i++) {
        const tide__action *a = &plan->actions.data[i];
        if (a->copy == TIDE_NONE) continue;
        claim *c = &claims[plan->uses.data[a->uses]];
        c->align = tide__max_u64(c->align, machine->tier[plan->copies.data[a->copy].tier].block_bytes);
    }
}

/* One claim per residency; *out is freed by the caller. */
static tide_status claim_arena(const tide_program *program, const tide_machine *machine, bool keep_everything,
                               tide_plan *plan, claim **out) {
    size_t n = plan->residencies.count;
    tide__groups g;
    tide_status status = tide__groups_init(&g, n);
    claim *claims = malloc((n + 1) * sizeof *claims);
    bool *gave = calloc(n + 1, sizeof *gave);
    if (status == TIDE_OK && (!claims || !gave)) status = tide__fail_memory();
    if (status == TIDE_OK) status = tide__join_residencies(program, plan, !keep_everything, &g, gave);
    for (uint32_t i = 0; status == TIDE_OK && i < n; i++) {
        tide_residency *r = &plan->residencies.data[i];
        uint32_t group = tide__groups_find(&g, i);
        bool whole_step = keep_everything && r->tensor != TIDE_NONE && !g.joined[group];
        if (whole_step) r->end = (uint32_t)plan->actions.count;
        claims[i] = (claim){.member = i,
                            .group = group,
                            .begin = whole_step || r->at_start ? 0 : r->begin + 1,
                            .end = r->end + 1,
                            .size = r->size_bytes,
                            .align = machine->align_bytes,
                            .gave = gave[i]};
    }
    tide__groups_deinit(&g);
    free(gave);
    if (status != TIDE_OK) {
        free(claims);
        return status;
    }
    align_moved(machine, plan, claims);
    *out = claims;
    return TIDE_OK;
}

static tide_status place_arena(const tide_program *program, const tide_machine *machine, bool keep_everything,
                               uint64_t capacity, effort e, tide_plan *plan, tide__place_answer *answer) {
    size_t n = plan->residencies.count;
    claim *claims;
    TIDE_TRY(claim_arena(program, machine, keep_everything, plan, &claims));
    uint64_t *offsets = malloc((n + 1) * sizeof *offsets);
    tide_status status =
        offsets ? place_claims(claims, n, capacity, e, offsets, &plan->arena_bytes, answer) : tide__fail_memory();
    for (size_t i = 0; status == TIDE_OK && *answer != TIDE__PLACE_TOO_SMALL && i < n; i++)
        plan->residencies.data[claims[i].member].offset_bytes = offsets[i];
    free(claims);
    free(offsets);
    return status;
}

/* ---- the items of a program, for whoever wants to place them ---- */

static tide_status items_of_plan(const tide_program *program, const tide_machine *machine, tide_plan *plan,
                                 tide__place_item **items, tide_id **tensors, size_t *n_items) {
    size_t n = plan->residencies.count;
    claim *claims;
    TIDE_TRY(claim_arena(program, machine, false, plan, &claims));
    tide__place_item *merged = malloc((n + 1) * sizeof *merged);
    tide_id *named = malloc((n + 1) * sizeof *named);
    tide_status status = merged && named ? merge_groups(claims, n, merged, n_items) : tide__fail_memory();
    for (size_t i = 0, item = 0; status == TIDE_OK && i < n; i++) { /* a group is called after its first member */
        bool first = i == 0 || claims[i].group != claims[i - 1].group;
        if (first) named[item++] = plan->residencies.data[claims[i].member].tensor;
    }
    free(claims);
    if (status == TIDE_OK) {
        *items = merged;
        *tensors = named;
        return TIDE_OK;
    }
    free(merged);
    free(named);
    return status;
}

tide_status tide__place_items(const tide_program *program, const tide_machine *machine, tide__place_item **items,
                              tide_id **tensors, size_t *n) {
    tide__decisions nothing = {0};
    tide_plan *plan;
    TIDE_TRY(tide__plan_new(&plan));
    plan->n_queues = 1 + machine->n_channels;
    plan->n_tiers = machine->n_tiers;
    tide_status status = tide__schedule(program, machine, &nothing, plan);
    if (status == TIDE_OK) status = items_of_plan(program, machine, plan, items, tensors, n);
    tide_plan_destroy(plan);
    return status;
}

/* ---- the load ---- */

tide_status tide__plan_load(const tide_program *program, const tide_machine *machine, tide_plan *plan,
                            uint64_t *loads) {
    size_t n = plan->residencies.count, n_times = plan->actions.count + 2, n_items;
    claim *claims;
    TIDE_TRY(claim_arena(program, machine, false, plan, &claims));
    tide__place_item *items = malloc((n + 1) * sizeof *items);
    uint64_t *change = calloc(n_times + 1, sizeof *change); /* sums modulo 2^64: losses are negative */
    tide_status status = items && change ? merge_groups(claims, n, items, &n_items) : tide__fail_memory();
    for (size_t i = 0; status == TIDE_OK && i < n_items; i++) {
        change[items[i].begin] += items[i].size;
        change[items[i].end] -= items[i].size;
        change[items[i].begin2] += items[i].size; /* begin2 == end2 where there is no second lifetime */
        change[items[i].end2] -= items[i].size;
    }
    for (size_t i = 0; status == TIDE_OK && i + 1 < n_times; i++) {
        change[i + 1] += change[i];
        if (i + 2 < n_times) loads[i] = change[i + 1];
    }
    free(items);
    free(change);
    free(claims);
    return status;
}

/* ---- the tiers ---- */

/* The stretch in which a copy has its slot to itself where the tier has room. It takes the slot when the value to be saved comes
 * into being: a SAVE starts then if its channel is free, wherever in the issue order it stands, and a slot that somebody
 * else still needs would make it wait. It gives the slot back when an op uses what was loaded from it, as its LOAD is
 * complete then; the next SAVE to that slot, and whoever waits for its bytes, would wait for that LOAD otherwise. What is
 * carried has to share its slot, and has it as short as it can. */
typedef struct stretch {
    uint32_t begin, end;
} stretch;

static void stretch_saves(const tide_plan *plan, stretch *of) {
    for (uint32_t i = 0; i < plan->actions.count; i++) {
        const tide__action *a = &plan->actions.data[i];
        if (a->kind != TIDE_SAVE || plan->copies.data[a->copy].at_end) continue;
        of[a->copy].begin = plan->residencies.data[plan->uses.data[a->uses]].begin;
    }
}

/* made: per residency, scratch. */
static void stretch_loads(const tide_plan *plan, tide__groups *g, tide_id *made, stretch *of) {
    for (size_t i = 0; i < plan->residencies.count; i++) made[i] = TIDE_NONE;
    for (uint32_t i = 0; i < plan->actions.count; i++) {
        const tide__action *a = &plan->actions.data[i];
        if (a->kind == TIDE_LOAD) made[plan->uses.data[a->uses]] = a->copy;
        for (uint32_t k = 0; a->kind == TIDE_RUN && k < a->n_uses; k++) {
            tide_id copy = made[plan->uses.data[a->uses + k]];
            if (copy == TIDE_NONE || g->joined[tide__groups_find(g, copy)]) continue;
            if (of[copy].end < i + 1) of[copy].end = i + 1;
            made[plan->uses.data[a->uses + k]] = TIDE_NONE;
        }
    }
}

/* One per copy, freed by the caller. */
static tide_status find_stretches(const tide_plan *plan, tide__groups *g, stretch **out) {
    stretch *of = malloc((plan->copies.count + 1) * sizeof *of);
    tide_id *made = malloc((plan->residencies.count + 1) * sizeof *made);
    if (!of || !made) {
        free(of);
        free(made);
        return tide__fail_memory();
    }
    for (uint32_t i = 0; i < plan->copies.count; i++)
        of[i] = (stretch){plan->copies.data[i].begin, plan->copies.data[i].end};
    stretch_saves(plan, of);
    stretch_loads(plan, g, made, of);
    free(made);
    *out = of;
    return TIDE_OK;
}

/* of: per copy, when it has its slot; NULL: from its SAVE to its last LOAD. */
static tide_status place_copies(const tide_machine *machine, uint32_t tier, tide__groups *g, const stretch *of,
                                uint64_t capacity, effort e, tide_plan *plan, tide__place_answer *answer) {
    size_t n = plan->copies.count, used = 0;
    claim *claims = malloc((n ? n : 1) * sizeof *claims);
    uint64_t *offsets = malloc((n ? n : 1) * sizeof *offsets);
    tide_status status = claims && offsets ? TIDE_OK : tide__fail_memory();
    if (status != TIDE_OK) goto done;
    for (uint32_t i = 0; i < n; i++) {
        const tide_copy *c = &plan->copies.data[i];
        if (c->tier != tier) continue;
        claims[used++] = (claim){.member = i,
                                 .group = tide__groups_find(g, i),
                                 .begin = c->at_start ? 0 : (of ? of[i].begin : c->begin) + 1,
                                 .end = (of ? of[i].end : c->end) + 1,
                                 .size = c->size_bytes,
                                 .align = machine->tier[tier].block_bytes};
    }
    TIDE_TRY_GOTO(place_claims(claims, used, capacity, e, offsets, &plan->tier_bytes[tier], answer), done);
    if (*answer == TIDE__PLACE_TOO_SMALL) goto done;
    for (size_t k = 0; k < used; k++) plan->copies.data[claims[k].member].offset_bytes = offsets[k];
done:
    free(claims);
    free(offsets);
    return status;
}

/* Where slots for so long are too many for the tier, a SAVE has to wait for its slot. Every copy gets an offset, if need be
 * above the room. */
static tide_status place_tier(const tide_machine *machine, uint32_t tier, tide__groups *g, uint64_t room, effort e,
                              tide_plan *plan, tide__place_answer *answer) {
    stretch *of;
    TIDE_TRY(find_stretches(plan, g, &of));
    tide_status status = place_copies(machine, tier, g, of, e.is_question ? room : UINT64_MAX, e, plan, answer);
    free(of);
    if (status == TIDE_OK && plan->tier_bytes[tier] > room)
        status = place_copies(machine, tier, g, NULL, room, e, plan, answer);
    if (status == TIDE_OK && *answer == TIDE__PLACE_TOO_SMALL)
        status = place_copies(machine, tier, g, NULL, UINT64_MAX, e, plan, answer);
    if (status == TIDE_OK) *answer = plan->tier_bytes[tier] > room ? TIDE__PLACE_TOO_HIGH : TIDE__PLACE_FITS;
    return status;
}

/* *answer: as it is, unless a tier does not hold its copies. */
static tide_status place_tiers(const tide_program *program, const tide_machine *machine, const tide_budgets *budgets,
                               effort e, tide_plan *plan, tide__place_answer *answer) {
    tide__groups g;
    tide_status status = tide__groups_init(&g, plan->copies.count);
    if (status == TIDE_OK) status = tide__join_copies(program, plan, &g);
    for (uint32_t t = 0; t < machine->n_tiers && status == TIDE_OK; t++) {
        tide__place_answer of_tier = TIDE__PLACE_FITS;
        uint64_t room = tide__tier_limit(machine, budgets, t);
        if (machine->tier[t].kind != TIDE_TIER_CLIENT) status = place_tier(machine, t, &g, room, e, plan, &of_tier);
        if (of_tier != TIDE__PLACE_FITS) *answer = of_tier;
    }
    tide__groups_deinit(&g);
    return status;
}

/* ---- all together ---- */

static uint64_t arena_limit(const tide_budgets *budgets) { return budgets ? budgets->arena_bytes : UINT64_MAX; }

tide_status tide__place_plan(const tide_program *program, const tide_machine *machine, bool keep_everything,
                             const tide_budgets *budgets, tide_plan *plan) {
    const effort careful = {0};
    tide__place_answer answer;
    TIDE_TRY(place_arena(program, machine, keep_everything, arena_limit(budgets), careful, plan, &answer));
    return place_tiers(program, machine, budgets, careful, plan, &answer);
}

tide_status tide__place_plan_within(const tide_program *program, const tide_machine *machine, bool keep_everything,
                                    const tide_budgets *budgets, uint64_t work, tide_plan *plan,
                                    tide__place_answer *answer) {
    const effort bounded = {.is_question = true, .work = work};
    TIDE_TRY(place_arena(program, machine, keep_everything, arena_limit(budgets), bounded, plan, answer));
    return *answer == TIDE__PLACE_TOO_SMALL ? TIDE_OK : place_tiers(program, machine, budgets, bounded, plan, answer);
}

tide_status tide__place_tiers(const tide_program *program, const tide_machine *machine, const tide_budgets *budgets,
                              tide_plan *plan) {
    tide__place_answer answer = TIDE__PLACE_FITS;
    const effort bounded = {.is_question = true, .work = draft_work(plan->copies.count)};
    return place_tiers(program, machine, budgets, bounded, plan, &answer);
}
