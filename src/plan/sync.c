/* Sync: the waits of a plan.
 *
 * One walk in issue order. An action depends on (1) the actions that made what it reads, and (2), where it makes a
 * residency or a copy, on the last accesses of whatever lay on those bytes before. A dependency needs a wait unless
 * the action's clock covers it already: clock[q] is how many actions of queue q are known to be complete. */
#include <stdlib.h>
#include <string.h>

#include "plan/schedule/schedule.h"
#include "plan/span_map.h"

typedef struct syncer {
    tide_plan *plan;
    uint32_t n_queues;
    uint32_t *clocks;         /* [action][queue] */
    uint32_t *residency_use;  /* [residency][queue]: last access, as a count of that queue's actions; 0 = none */
    uint32_t *copy_use;       /* [copy][queue] */
    uint32_t *residency_made; /* per residency: the action that made it + 1; 0 = start map */
    uint32_t *copy_made;
    uint32_t *queue_action[1 + TIDE_MACHINE_MAX_CHANNELS]; /* [queue][count - 1] -> action */
    uint32_t queue_count[1 + TIDE_MACHINE_MAX_CHANNELS];
    tide__span_map *arena, *tier[TIDE_MACHINE_MAX_TIERS];
    uint32_t need[1 + TIDE_MACHINE_MAX_CHANNELS]; /* of the action at hand: the counts it depends on */
} syncer;

static void need_row(syncer *s, const uint32_t *row) {
    for (uint32_t q = 0; q < s->n_queues; q++)
        if (row[q] > s->need[q]) s->need[q] = row[q];
}

static void need_action(syncer *s, uint32_t action) {
    uint32_t q = s->plan->actions.data[action].queue;
    uint32_t count = s->clocks[(size_t)action * s->n_queues + q];
    if (count > s->need[q]) s->need[q] = count;
}

static void evicted_residency(void *context, uint32_t owner) {
    syncer *s = context;
    need_row(s, &s->residency_use[(size_t)owner * s->n_queues]);
}

static void evicted_copy(void *context, uint32_t owner) {
    syncer *s = context;
    need_row(s, &s->copy_use[(size_t)owner * s->n_queues]);
}

/* ---- what an action depends on ---- */

static tide_status occupy_residency(syncer *s, tide_id id) {
    const tide_residency *r = &s->plan->residencies.data[id];
    if (!s->arena) return TIDE_OK;
    return tide__span_map_assign(s->arena, r->offset_bytes, r->offset_bytes + r->size_bytes, id, evicted_residency, s);
}

static tide_status occupy_copy(syncer *s, tide_id id) {
    const tide_copy *c = &s->plan->copies.data[id];
    if (!s->tier[c->tier]) return TIDE_OK; /* a client tier, or for data alone */
    return tide__span_map_assign(s->tier[c->tier], c->offset_bytes, c->offset_bytes + c->size_bytes, id, evicted_copy,
                                 s);
}

/* A residency is made by the first action of its interval, unless it was there at the start. */
static tide_status collect_uses(syncer *s, uint32_t i) {
    const tide__action *a = &s->plan->actions.data[i];
    for (uint32_t k = 0; k < a->n_uses; k++) {
        tide_id id = s->plan->uses.data[a->uses + k];
        const tide_residency *r = &s->plan->residencies.data[id];
        if (!r->at_start && r->begin == i) {
            s->residency_made[id] = i + 1;
            TIDE_TRY(occupy_residency(s, id));
        } else if (s->residency_made[id]) {
            need_action(s, s->residency_made[id] - 1);
        }
    }
    return TIDE_OK;
}

static tide_status collect_copy(syncer *s, uint32_t i) {
    const tide__action *a = &s->plan->actions.data[i];
    if (a->kind == TIDE_SAVE) {
        s->copy_made[a->copy] = i + 1;
        return occupy_copy(s, a->copy);
    }
    if (a->kind == TIDE_LOAD && s->copy_made[a->copy]) need_action(s, s->copy_made[a->copy] - 1);
    return TIDE_OK;
}

/* ---- from needs to waits ---- */

static uint32_t *clock_of(syncer *s, uint32_t action) { return &s->clocks[(size_t)action * s->n_queues]; }

static void join_clock(syncer *s, uint32_t *clock, uint32_t action) {
    const uint32_t *other = clock_of(s, action);
    for (uint32_t q = 0; q < s->n_queues; q++)
        if (other[q] > clock[q]) clock[q] = other[q];
}

/* The latest needed action whose completion the clock does not cover; its clock covers the most. */
static bool latest_need(const syncer *s, const uint32_t *clock, uint32_t *action) {
    bool found = false;
    for (uint32_t q = 0; q < s->n_queues; q++) {
        if (s->need[q] <= clock[q]) continue;
        uint32_t candidate = s->queue_action[q][s->need[q] - 1];
        if (!found || candidate > *action) *action = candidate;
        found = true;
    }
    return found;
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static tide_status add_waits(syncer *s, uint32_t i) {
    tide__action *a = &s->plan->actions.data[i];
    uint32_t *clock = clock_of(s, i), on = 0;
    a->waits = s->plan->waits.count;
    a->n_waits = 0;
    while (latest_need(s, clock, &on)) {
        TIDE_TRY(tide__vec_push(&s->plan->waits, on));
        join_clock(s, clock, on);
        a->n_waits++;
    }
    if (a->n_waits > 1) qsort(s->plan->waits.data + a->waits, a->n_waits, sizeof on, ascending);
    return TIDE_OK;
}

/* The action's place in its queue; its clock starts from the previous action there. */
static void enter_queue(syncer *s, uint32_t i) {
    uint32_t q = s->plan->actions.data[i].queue, *clock = clock_of(s, i);
    memset(clock, 0, s->n_queues * sizeof *clock);
    if (s->queue_count[q]) join_clock(s, clock, s->queue_action[q][s->queue_count[q] - 1]);
    s->queue_action[q][s->queue_count[q]++] = i;
}

static void record_uses(syncer *s, uint32_t i) {
    const tide__action *a = &s->plan->actions.data[i];
    uint32_t count = s->queue_count[a->queue];
    clock_of(s, i)[a->queue] = count;
    for (uint32_t k = 0; k < a->n_uses; k++)
        s->residency_use[(size_t)s->plan->uses.data[a->uses + k] * s->n_queues + a->queue] = count;
    if (a->copy != TIDE_NONE) s->copy_use[(size_t)a->copy * s->n_queues + a->queue] = count;
}

static tide_status walk(syncer *s) {
    s->plan->waits.count = 0;
    for (uint32_t i = 0; i < s->plan->residencies.count; i++)
        if (s->plan->residencies.data[i].at_start) TIDE_TRY(occupy_residency(s, i));
    for (uint32_t i = 0; i < s->plan->copies.count; i++)
        if (s->plan->copies.data[i].at_start) TIDE_TRY(occupy_copy(s, i));
    for (uint32_t i = 0; i < s->plan->actions.count; i++) {
        memset(s->need, 0, sizeof s->need);
        enter_queue(s, i);
        TIDE_TRY(collect_uses(s, i));
        TIDE_TRY(collect_copy(s, i));
        TIDE_TRY(add_waits(s, i));
        record_uses(s, i);
    }
    return TIDE_OK;
}

/* ---- life ---- */

static void *zeros(size_t n, size_t m) { return calloc(n + 1, m * sizeof(uint32_t)); }

static tide_status init(syncer *s) {
    const tide_plan *p = s->plan;
    s->n_queues = p->n_queues;
    s->clocks = zeros(p->actions.count, s->n_queues);
    s->residency_use = zeros(p->residencies.count, s->n_queues);
    s->copy_use = zeros(p->copies.count, s->n_queues);
    s->residency_made = zeros(p->residencies.count, 1);
    s->copy_made = zeros(p->copies.count, 1);
    if (!s->clocks || !s->residency_use || !s->copy_use || !s->residency_made || !s->copy_made)
        return tide__fail_memory();
    uint32_t counts[1 + TIDE_MACHINE_MAX_CHANNELS] = {0};
    for (size_t i = 0; i < p->actions.count; i++) counts[p->actions.data[i].queue]++;
    for (uint32_t q = 0; q < s->n_queues; q++)
        if (!(s->queue_action[q] = zeros(counts[q], 1))) return tide__fail_memory();
    return TIDE_OK;
}

/* What lies where. */
static tide_status init_maps(syncer *s) {
    const tide_plan *p = s->plan;
    bool used[TIDE_MACHINE_MAX_TIERS] = {false};
    for (size_t i = 0; i < p->copies.count; i++)
        used[p->copies.data[i].tier] = p->tier_bytes[p->copies.data[i].tier] > 0;
    for (uint32_t t = 0; t < p->n_tiers; t++)
        if (used[t]) TIDE_TRY(tide__span_map_create(&s->tier[t]));
    return tide__span_map_create(&s->arena);
}

static void deinit(syncer *s) {
    free(s->clocks);
    free(s->residency_use);
    free(s->copy_use);
    free(s->residency_made);
    free(s->copy_made);
    for (uint32_t q = 0; q < s->n_queues; q++) free(s->queue_action[q]);
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) tide__span_map_destroy(s->tier[t]);
    tide__span_map_destroy(s->arena);
}

static tide_status run(tide_plan *plan, bool reuse) {
    syncer s = {.plan = plan};
    tide_status status = init(&s);
    if (status == TIDE_OK && reuse) status = init_maps(&s);
    if (status == TIDE_OK) status = walk(&s);
    deinit(&s);
    return status;
}

tide_status tide__sync(tide_plan *plan) { return run(plan, true); }

tide_status tide__sync_data(tide_plan *plan) { return run(plan, false); }
