/* See refine.h. */
#include "plan/place/refine.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/size.h"
#include "plan/place/core.h"
#include "plan/place/exact.h"

#define LEAST_NS 1000000 /* a search of less time is not begun */
#define LEAST_NODES 16
#define MOST_PART_ITEMS 20000 /* their core may still be small enough */
#define LEAST_DETOUR 400      /* nodes of a first question beyond the items there are */
#define GOAL_SHARE 3          /* the goal is worth that many other questions, but in the first round */
#define HALVINGS 4            /* other questions of a round, at most */
#define ROUND_GROWTH 3        /* of nodes, from round to round */
#define MOST_NODES (UINT64_MAX / 16)

/* What a search may spend; UINT64_MAX where there is no limit. */
typedef struct budget {
    uint64_t nodes, deadline_ns;
} budget;

typedef struct refiner {
    const tide__place_problem *p;
    const tide__place_refine_options *options;
    uint64_t *offsets;
    uint64_t lower_bound; /* proved */
    uint64_t settled;     /* the height of the parts that are done: others need not be lower */
    uint32_t n_parts;
    uint32_t *part_of_slot;   /* per slot */
    uint32_t *first_member;   /* per part, one extra */
    uint32_t *members;        /* items by part */
    tide__place_problem part; /* the one at work */
    uint64_t *part_offsets, *core_offsets;
    budget left;
    uint32_t round; /* of questions about a part: each draws its own orders */
    uint64_t nodes; /* of all searches so far */
} refiner;

/* ---- parts ---- */

static bool has_second(const tide__place_item *it) { return it->begin2 < it->end2; }

/* A stretch ends where the furthest end of all that began in it is reached. Both arrays are per slot. */
static uint32_t cut_stretches(const tide__place_problem *p, const uint32_t *furthest, uint32_t *stretch) {
    uint32_t end = 0, n = 0;
    for (uint32_t t = 0; t < p->n_times; t++) {
        n += t == end;
        stretch[t] = n - 1;
        if (furthest[t] > end) end = furthest[t];
    }
    return n;
}

static uint32_t root_of(uint32_t *parent, uint32_t k) {
    while (parent[k] != k) k = parent[k] = parent[parent[k]];
    return k;
}

/* Stretches that share an item with two lifetimes are of one part. */
static void join_stretches(const tide__place_problem *p, const uint32_t *stretch, uint32_t n, uint32_t *parent) {
    for (uint32_t k = 0; k < n; k++) parent[k] = k;
    for (size_t i = 0; i < p->n; i++) {
        if (!has_second(&p->items[i])) continue;
        uint32_t a = root_of(parent, stretch[p->items[i].begin]), b = root_of(parent, stretch[p->items[i].begin2]);
        parent[a > b ? a : b] = a > b ? b : a;
    }
}

/* A root comes first of its part. number: per stretch. */
static void number_parts(refiner *r, uint32_t *parent, const uint32_t *stretch, uint32_t *number) {
    uint32_t last = UINT32_MAX;
    for (uint32_t t = 0; t < r->p->n_times; t++) {
        uint32_t root = root_of(parent, stretch[t]);
        if (root == stretch[t] && stretch[t] != last) number[root] = r->n_parts++;
        last = stretch[t];
        r->part_of_slot[t] = number[root];
    }
}

static void sort_members(refiner *r) {
    for (size_t i = 0; i < r->p->n; i++) r->first_member[r->part_of_slot[r->p->items[i].begin] + 1]++;
    for (uint32_t c = 0; c < r->n_parts; c++) r->first_member[c + 1] += r->first_member[c];
    for (uint32_t i = 0; i < r->p->n; i++) r->members[r->first_member[r->part_of_slot[r->p->items[i].begin]]++] = i;
    for (uint32_t c = r->n_parts; c > 0; c--) r->first_member[c] = r->first_member[c - 1];
    r->first_member[0] = 0;
}

static tide_status find_parts(refiner *r) {
    size_t n_slots = (size_t)r->p->n_times + 1;
    uint32_t *furthest = calloc(3 * n_slots, sizeof *furthest);
    if (!furthest) return tide__fail_memory();
    uint32_t *stretch = furthest + n_slots;
    for (size_t i = 0; i < r->p->n; i++) {
        const tide__place_item *it = &r->p->items[i];
        if (it->end > furthest[it->begin]) furthest[it->begin] = it->end;
        if (has_second(it) && it->end2 > furthest[it->begin2]) furthest[it->begin2] = it->end2;
    }
    uint32_t n = cut_stretches(r->p, furthest, stretch), *parent = stretch + n_slots;
    join_stretches(r->p, stretch, n, parent);
    number_parts(r, parent, stretch, furthest); /* furthest is free again */
    sort_members(r);
    free(furthest);
    return TIDE_OK;
}

static uint32_t part_size(const refiner *r, uint32_t c) { return r->first_member[c + 1] - r->first_member[c]; }

static void store_part(refiner *r) {
    for (size_t k = 0; k < r->part.n; k++) r->offsets[r->part.origin[k]] = r->part_offsets[k];
}

static uint64_t part_height(const refiner *r, uint32_t c) {
    uint64_t height = 0;
    for (uint32_t k = r->first_member[c]; k < r->first_member[c + 1]; k++)
        height = tide__max_u64(height, r->offsets[r->members[k]] + r->p->items[r->members[k]].size);
    return height;
}

/* ---- limits ---- */

/* `parts` of `among` even parts of what is left. */
static budget share_of(budget all, uint64_t parts, uint64_t among) {
    uint64_t now = tide__worked_ns();
    budget share = all;
    if (all.nodes != UINT64_MAX) share.nodes = all.nodes / among * parts;
    if (all.deadline_ns != UINT64_MAX && all.deadline_ns > now)
        share.deadline_ns = now + (all.deadline_ns - now) / among * parts;
    return share;
}

/* A question's share of nodes, if so many are left. */
static budget part_of(budget all, uint64_t nodes) { return (budget){tide__min_u64(all.nodes, nodes), all.deadline_ns}; }

static bool is_spent(budget b) {
    return b.nodes < LEAST_NODES || (b.deadline_ns != UINT64_MAX && tide__worked_ns() + LEAST_NS > b.deadline_ns);
}

static void spend(budget *b, uint64_t nodes) {
    if (b->nodes != UINT64_MAX) b->nodes -= tide__min_u64(nodes, b->nodes);
}

/* ---- the search ---- */

static tide_status search_core(refiner *r, const tide__place_core *core, budget limit, tide__place_exact_answer *answer,
                               uint64_t *nodes) {
    tide__place_exact_options o = {.capacity = core->capacity,
                                   .seed = r->options->seed + r->round,
                                   .node_limit = limit.nodes == UINT64_MAX ? 0 : limit.nodes,
                                   .deadline_ns = limit.deadline_ns == UINT64_MAX ? 0 : limit.deadline_ns};
    *answer = TIDE__PLACE_EXACT_GAVE_UP;
    *nodes = 0;
    if (core->problem.n > TIDE__PLACE_EXACT_MOST_ITEMS) return TIDE_OK;
    return tide__place_exact(&core->problem, &o, r->core_offsets, answer, nodes);
}

static tide_status search_part(refiner *r, uint64_t target, budget limit, tide__place_exact_answer *answer,
                               uint64_t *nodes) {
    tide__place_core core;
    TIDE_TRY(tide__place_core_init(&core, &r->part, target));
    tide_status status = search_core(r, &core, limit, answer, nodes);
    if (status == TIDE_OK && *answer == TIDE__PLACE_EXACT_FOUND)
        status = tide__place_core_complete(&core, r->core_offsets, r->part_offsets);
    tide__place_core_deinit(&core);
    return status;
}

static uint64_t goal(const refiner *r) {
    return tide__max_u64(tide__max_u64(r->lower_bound, r->settled), r->options->capacity);
}

/* Asks whether the part goes into `target`; *high is its height then. */
static tide_status ask(refiner *r, uint32_t c, uint64_t target, budget share, budget *limit, uint64_t *high) {
    tide__place_exact_answer answer;
    uint64_t nodes;
    TIDE_TRY(search_part(r, target, share, &answer, &nodes));
    spend(limit, nodes);
    spend(&r->left, nodes);
    r->nodes += nodes;
    if (answer == TIDE__PLACE_EXACT_NONE_EXISTS) r->lower_bound = tide__max_u64(r->lower_bound, target + 1);
    if (answer != TIDE__PLACE_EXACT_FOUND) return TIDE_OK;
    store_part(r);
    *high = part_height(r, c);
    return TIDE_OK;
}

/* What the questions of a round may take. */
typedef struct round_nodes {
    uint64_t goal, other;
} round_nodes;

/* The goal itself, then halfway between what failed and what is there. */
static tide_status ask_round(refiner *r, uint32_t c, round_nodes nodes, budget *limit, uint64_t *high) {
    uint64_t low = goal(r);
    TIDE_TRY(ask(r, c, low, part_of(*limit, nodes.goal), limit, high));
    low = tide__max_u64(low + 1, goal(r));
    for (int k = 0; k < HALVINGS && low < *high && !is_spent(*limit); k++) {
        uint64_t target = low + (*high - low) / 2, before = *high;
        TIDE_TRY(ask(r, c, target, part_of(*limit, nodes.other), limit, high));
        if (*high == before) low = target + 1;
    }
    return TIDE_OK;
}

/* A capacity that the caller gave is all that matters to him: it gets the whole budget. Else rounds of questions, each
 * with more nodes than the one before: many are easy a little above where they are hopeless. */
static tide_status settle_part(refiner *r, uint32_t c, budget *limit) {
    uint64_t high = part_height(r, c), n = r->part.n;
    round_nodes nodes = {n + n / 4 + LEAST_DETOUR, 4 * n + LEAST_DETOUR};
    bool is_asked = goal(r) == r->options->capacity, goes_on = !is_asked;
    if (is_asked) TIDE_TRY(ask(r, c, goal(r), *limit, limit, &high));
    for (r->round = 0; goes_on && goal(r) < high && !is_spent(*limit); r->round++) {
        uint64_t before = r->nodes;
        TIDE_TRY(ask_round(r, c, nodes, limit, &high));
        goes_on = r->nodes > before; /* not if there are too many items for any search */
        nodes.other = tide__min_u64(nodes.other, MOST_NODES) * ROUND_GROWTH;
        nodes.goal = GOAL_SHARE * nodes.other;
    }
    r->settled = tide__max_u64(r->settled, high);
    return TIDE_OK;
}

static tide_status lower_part(refiner *r, uint32_t c, budget *limit) {
    TIDE_TRY(tide__place_problem_subset(&r->part, r->p, r->members + r->first_member[c], part_size(r, c)));
    tide_status status = settle_part(r, c, limit);
    tide__place_problem_deinit(&r->part);
    return status;
}

static bool is_worth_it(const refiner *r, uint32_t c) {
    return part_size(r, c) <= MOST_PART_ITEMS && part_height(r, c) > goal(r);
}

static tide_status lower_parts(refiner *r) {
    uint64_t waiting = 0;
    for (uint32_t c = 0; c < r->n_parts; c++) {
        if (part_size(r, c) > MOST_PART_ITEMS) r->settled = tide__max_u64(r->settled, part_height(r, c));
        waiting += is_worth_it(r, c);
    }
    for (uint32_t c = 0; c < r->n_parts && waiting > 0; c++) {
        if (!is_worth_it(r, c)) continue;
        budget limit = share_of(r->left, 1, waiting);
        if (waiting > 1) waiting--;
        TIDE_TRY(lower_part(r, c, &limit));
    }
    return TIDE_OK;
}

/* ---- all together ---- */

static tide_status take_memory(refiner *r) {
    size_t n_slots = (size_t)r->p->n_times + 2, n = r->p->n + 1, most = tide__min_u64(n, MOST_PART_ITEMS + 1);
    r->part_of_slot = calloc(n_slots, sizeof *r->part_of_slot);
    r->first_member = calloc(n_slots, sizeof *r->first_member);
    r->members = calloc(n, sizeof *r->members);
    r->part_offsets = calloc(most, sizeof *r->part_offsets);
    r->core_offsets = calloc(most, sizeof *r->core_offsets);
    bool all = r->part_of_slot && r->first_member && r->members && r->part_offsets && r->core_offsets;
    return all ? TIDE_OK : tide__fail_memory();
}

static void give_back(refiner *r) {
    free(r->part_of_slot);
    free(r->first_member);
    free(r->members);
    free(r->part_offsets);
    free(r->core_offsets);
}

tide_status tide__place_refine(const tide__place_problem *p, const tide__place_refine_options *options,
                               uint64_t *offsets, uint64_t *lower_bound) {
    refiner r = {.p = p, .options = options, .offsets = offsets, .lower_bound = *lower_bound};
    r.left.nodes = options->node_limit ? options->node_limit : UINT64_MAX;
    r.left.deadline_ns = options->deadline_ns ? options->deadline_ns : UINT64_MAX;
    tide_status status = take_memory(&r);
    if (status == TIDE_OK) status = find_parts(&r);
    if (status == TIDE_OK) status = lower_parts(&r);
    *lower_bound = r.lower_bound;
    give_back(&r);
    return status;
}
