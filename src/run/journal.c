/* See journal.h. */
#include "run/journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/plan_data.h"
#include "program/program_data.h"
#include "run/online.h"

enum { MAX_QUEUES = 1 + TIDE_MACHINE_MAX_CHANNELS };

typedef struct noted {
    tide_id residency, copy; /* that it has now; TIDE_NONE: none */
    uint32_t last_move;      /* the action; TIDE_NONE: it never moved */
    tide_id heir_of;         /* it will be made where this one is; TIDE_NONE */
} noted;

struct tide__journal {
    struct tide__run_online *online;
    tide_plan *plan;
    tide_machine machine; /* with one more tier, for what is moved inside the arena */
    uint32_t shift_tier, shift_out, shift_in;
    TIDE_VEC(noted) storages;
    uint32_t seen[MAX_QUEUES];             /* 1 + the last action of a queue that the host knows to be complete */
    uint32_t last[MAX_QUEUES];             /* 1 + the last action of a queue */
    uint32_t told[MAX_QUEUES][MAX_QUEUES]; /* [q][p]: what queue q waits for, of queue p, anyway */
    TIDE_VEC(uint32_t) waits[MAX_QUEUES];  /* for the next action of a queue */
    tide_status failure;
};

static void keep_failure(tide__journal *j, tide_status status) {
    if (j->failure == TIDE_OK) j->failure = status;
}

static uint32_t n_actions(const tide__journal *j) { return (uint32_t)j->plan->actions.count; }

static noted *find(tide__journal *j, tide_id id) {
    static const noted nothing = {TIDE_NONE, TIDE_NONE, TIDE_NONE, TIDE_NONE};
    while (j->storages.count <= id && j->failure == TIDE_OK) keep_failure(j, tide__vec_push(&j->storages, nothing));
    noted *all = j->storages.data;
    return j->failure == TIDE_OK && all ? &all[id] : NULL;
}

/* ---- residencies and copies ---- */

static tide_id add_residency(tide__journal *j, tide_id tensor, uint64_t offset, uint64_t bytes, bool at_start) {
    tide_residency r = {.tensor = tensor,
                        .offset_bytes = offset,
                        .size_bytes = bytes,
                        .begin = n_actions(j),
                        .end = UINT32_MAX,
                        .at_start = at_start};
    keep_failure(j, tide__vec_push(&j->plan->residencies, r));
    return (tide_id)(j->plan->residencies.count - 1);
}

static tide_id add_copy(tide__journal *j, tide_copy c) {
    c.end = UINT32_MAX;
    keep_failure(j, tide__vec_push(&j->plan->copies, c));
    return (tide_id)(j->plan->copies.count - 1);
}

static void end_residency(tide__journal *j, tide_id *residency, uint32_t end) {
    if (*residency != TIDE_NONE) j->plan->residencies.data[*residency].end = end;
    *residency = TIDE_NONE;
}

/* In the client tier from the start to the end. */
static void add_client_copy(tide__journal *j, tide_id id, noted *s) {
    uint32_t tier = tide_machine_find_tier(&j->machine, TIDE_TIER_CLIENT);
    if (s->copy != TIDE_NONE || tier == TIDE_NONE) return;
    s->copy = add_copy(
        j,
        (tide_copy){
            .tensor = id, .tier = tier, .size_bytes = j->online->places.data[id].bytes, .begin = 0, .at_start = true});
}

/* ---- life ---- */

static void add_shift_tier(tide__journal *j) {
    tide_machine *m = &j->machine;
    j->shift_tier = m->n_tiers++;
    m->tier[j->shift_tier] =
        (tide_machine_tier){.name = "shift", .kind = TIDE_TIER_RAM, .capacity_bytes = UINT64_MAX, .block_bytes = 1};
    for (int out = 0; out < 2; out++)
        m->channel[m->n_channels++] =
            (tide_machine_channel){.tier = j->shift_tier, .out = out, .bytes_per_s = 1, .latency_ns = 0};
    j->shift_in = m->n_channels - 1; /* queues count from 1 */
    j->shift_out = m->n_channels;
}

static tide_status start(tide__journal *j) {
    const struct tide__run_online *o = j->online;
    j->machine = *o->run->options.machine;
    add_shift_tier(j);
    TIDE_TRY(tide__plan_new(&j->plan));
    for (tide_id id = 0; id < o->n_storages; id++) {
        const tide__place *p = &o->places.data[id];
        noted *s = find(j, id);
        if (!s) break;
        if (p->in_arena) s->residency = add_residency(j, id, p->offset, p->bytes, true);
        if (p->tier != TIDE_NONE)
            s->copy = add_copy(
                j,
                (tide_copy){
                    .tensor = id, .tier = p->tier, .offset_bytes = p->slot, .size_bytes = p->bytes, .at_start = true});
    }
    return j->failure;
}

tide_status tide__journal_open(struct tide__run_online *online, tide__journal **out) {
    tide__journal *j = calloc(1, sizeof *j);
    if (!j) return tide__fail_memory();
    j->online = online;
    tide_status status = start(j);
    if (status == TIDE_OK)
        *out = j;
    else
        tide__journal_close(j);
    return status;
}

void tide__journal_close(tide__journal *j) {
    if (!j) return;
    tide_plan_destroy(j->plan);
    tide__vec_free(&j->storages);
    for (int q = 0; q < MAX_QUEUES; q++) tide__vec_free(&j->waits[q]);
    free(j);
}

/* ---- what the host knows ---- */

static void saw(tide__journal *j, uint32_t action) {
    uint32_t queue = j->plan->actions.data[action].queue;
    if (j->seen[queue] <= action) j->seen[queue] = action + 1;
}

void tide__journal_saw_move(tide__journal *j, tide_id id) {
    noted *s = j ? find(j, id) : NULL;
    if (s && s->last_move != TIDE_NONE) saw(j, s->last_move);
}

void tide__journal_saw_run(tide__journal *j, uint32_t action) {
    if (j && action < n_actions(j)) saw(j, action);
}

void tide__journal_saw_all(tide__journal *j) {
    if (j) memcpy(j->seen, j->last, sizeof j->seen);
}

void tide__journal_wait(tide__journal *j, uint32_t queue, tide_id id) {
    noted *s = j ? find(j, id) : NULL;
    if (s && s->last_move != TIDE_NONE) keep_failure(j, tide__vec_push(&j->waits[queue], s->last_move));
}

void tide__journal_wait_run(tide__journal *j, uint32_t queue, uint32_t action) {
    if (j) keep_failure(j, tide__vec_push(&j->waits[queue], action));
}

/* ---- actions ---- */

static int by_number(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* What was asked for, and what the host has seen since the queue's last action. */
static void add_waits(tide__journal *j, tide__action *a) {
    tide_plan *plan = j->plan;
    uint32_t q = a->queue;
    for (uint32_t p = 0; p < MAX_QUEUES; p++) {
        if (p == q || j->seen[p] <= j->told[q][p]) continue;
        keep_failure(j, tide__vec_push(&j->waits[q], j->seen[p] - 1));
        j->told[q][p] = j->seen[p];
    }
    a->waits = plan->waits.count;
    if (j->waits[q].count) qsort(j->waits[q].data, j->waits[q].count, sizeof(uint32_t), by_number);
    for (size_t i = 0; i < j->waits[q].count; i++) {
        uint32_t wait = j->waits[q].data[i];
        if (a->n_waits && plan->waits.data[plan->waits.count - 1] == wait) continue;
        keep_failure(j, tide__vec_push(&plan->waits, wait));
        a->n_waits++;
    }
    j->waits[q].count = 0;
}

static void add_use(tide__journal *j, tide_id residency) { keep_failure(j, tide__vec_push(&j->plan->uses, residency)); }

/* Its uses have been added from `uses` on. */
static void add_action(tide__journal *j, tide__action a, size_t uses) {
    a.uses = uses;
    a.n_uses = (uint32_t)(j->plan->uses.count - uses);
    add_waits(j, &a);
    if (j->failure != TIDE_OK) return;
    keep_failure(j, tide__vec_push(&j->plan->actions, a));
    j->last[a.queue] = n_actions(j);
}

/* A re-run may make anew what is still there. */
static void make(tide__journal *j, tide_id id) {
    const tide__place *p = &j->online->places.data[id];
    noted *s = find(j, id);
    if (!s) return;
    end_residency(j, &s->residency, n_actions(j));
    s->residency = add_residency(j, id, p->offset, p->bytes, false);
    s->heir_of = TIDE_NONE;
    add_use(j, s->residency);
}

uint32_t tide__journal_run(tide__journal *j, tide_id id) {
    if (!j || j->failure != TIDE_OK) return 0;
    const tide_op *op = tide_program_op(j->online->run->options.program, id);
    tide__range workspace = j->online->workspace;
    size_t uses = j->plan->uses.count;
    tide_id scratch = TIDE_NONE;
    for (uint32_t i = 0; i < op->n_reads; i++) {
        const noted *s = find(j, op->reads[i]);
        if (s) add_use(j, s->residency);
    }
    for (uint32_t i = 0; i < op->n_writes; i++) make(j, op->writes[i]);
    if (op->variants[0].workspace_bytes) {
        scratch = add_residency(j, TIDE_NONE, workspace.offset, workspace.size, false);
        add_use(j, scratch);
    }
    uint32_t action = n_actions(j);
    add_action(j, (tide__action){.kind = TIDE_RUN, .op = id, .copy = TIDE_NONE}, uses);
    end_residency(j, &scratch, n_actions(j));
    for (uint32_t i = 0; i < op->n_reads; i++) { /* what was handed over */
        noted *s = find(j, op->reads[i]);
        if (s && !j->online->places.data[op->reads[i]].in_arena) end_residency(j, &s->residency, n_actions(j));
    }
    return action;
}

void tide__journal_move(tide__journal *j, tide_id id, uint32_t tier, uint32_t queue, bool out) {
    noted *s = j ? find(j, id) : NULL;
    if (!s || j->failure != TIDE_OK) return;
    const tide__place *p = &j->online->places.data[id];
    size_t uses = j->plan->uses.count;
    if (j->machine.tier[tier].kind == TIDE_TIER_CLIENT) add_client_copy(j, id, s);
    if (out)
        s->copy = add_copy(
            j, (tide_copy){
                   .tensor = id, .tier = tier, .offset_bytes = p->slot, .size_bytes = p->bytes, .begin = n_actions(j)});
    else
        s->residency = add_residency(j, id, p->offset, p->bytes, false);
    add_use(j, s->residency);
    s->last_move = n_actions(j);
    add_action(j, (tide__action){.kind = out ? TIDE_SAVE : TIDE_LOAD, .queue = queue, .op = TIDE_NONE, .copy = s->copy},
               uses);
}

void tide__journal_release(tide__journal *j, tide_id id) {
    noted *s = j ? find(j, id) : NULL;
    if (s) end_residency(j, &s->residency, n_actions(j));
}

void tide__journal_give_slot(tide__journal *j, tide_id id) {
    noted *s = j ? find(j, id) : NULL;
    if (!s || s->copy == TIDE_NONE || j->machine.tier[j->plan->copies.data[s->copy].tier].kind == TIDE_TIER_CLIENT)
        return;
    j->plan->copies.data[s->copy].end = n_actions(j);
    s->copy = TIDE_NONE;
}

void tide__journal_inherit(tide__journal *j, tide_id read, tide_id write) {
    noted *s = j ? find(j, write) : NULL;
    if (s) s->heir_of = read;
}

/* Out to the tier of shifts and back in, each after everything before. */
void tide__journal_shift(tide__journal *j, tide_id id) {
    noted *s = j ? find(j, id) : NULL;
    const tide__place *p = j ? &j->online->places.data[id] : NULL;
    if (s && s->residency == TIDE_NONE && s->heir_of != TIDE_NONE) s = find(j, s->heir_of);
    if (!s || s->residency == TIDE_NONE || j->plan->residencies.data[s->residency].offset_bytes == p->offset) return;
    tide_id tensor = j->plan->residencies.data[s->residency].tensor, old = s->residency;
    tide_id copy = add_copy(
        j, (tide_copy){.tensor = tensor, .tier = j->shift_tier, .size_bytes = p->bytes, .begin = n_actions(j)});
    add_use(j, old);
    add_action(j, (tide__action){.kind = TIDE_SAVE, .queue = j->shift_out, .op = TIDE_NONE, .copy = copy},
               j->plan->uses.count - 1);
    tide__journal_saw_all(j);
    end_residency(j, &old, n_actions(j));
    s->residency = add_residency(j, tensor, p->offset, p->bytes, false);
    add_use(j, s->residency);
    add_action(j, (tide__action){.kind = TIDE_LOAD, .queue = j->shift_in, .op = TIDE_NONE, .copy = copy},
               j->plan->uses.count - 1);
    tide__journal_saw_all(j);
    if (j->failure == TIDE_OK) j->plan->copies.data[copy].end = n_actions(j);
}

/* ---- the verdict ---- */

static void finish(tide__journal *j, const tide_program *program) {
    tide_plan *plan = j->plan;
    for (tide_id id = 0; id < tide_program_tensor_count(program); id++) {
        noted *s = find(j, id);
        if (s && tide_program_tensor(program, id)->start == TIDE_START_CLIENT) add_client_copy(j, id, s);
    }
    for (size_t i = 0; i < plan->residencies.count; i++) {
        tide_residency *r = &plan->residencies.data[i];
        r->at_end = r->end == UINT32_MAX;
        if (r->at_end) r->end = n_actions(j);
    }
    for (size_t i = 0; i < plan->copies.count; i++) {
        tide_copy *c = &plan->copies.data[i];
        c->at_end = c->end == UINT32_MAX && j->machine.tier[c->tier].kind != TIDE_TIER_CLIENT;
        if (c->end == UINT32_MAX) c->end = n_actions(j);
        if (c->tier == j->shift_tier)
            plan->tier_bytes[c->tier] = tide__max_u64(plan->tier_bytes[c->tier], c->size_bytes);
    }
}

static void describe(tide__journal *j, const tide_program *program) {
    tide_plan *plan = j->plan;
    plan->signature = tide_program_signature(program);
    plan->machine_fingerprint = tide_machine_fingerprint(&j->machine);
    plan->n_queues = 1 + j->machine.n_channels;
    plan->n_tiers = j->machine.n_tiers;
    plan->arena_bytes = j->online->arena_bytes;
    for (uint32_t t = 0; t < j->shift_tier; t++) plan->tier_bytes[t] = j->online->tier_bytes[t];
}

tide_status tide__journal_check(tide__journal *j, const tide_program *program) {
    tide_program *once;
    tide_verdict verdict;
    tide_budgets budgets = j->online->run->options.budgets;
    if (j->failure != TIDE_OK) return tide__fail_memory(); /* nothing else goes wrong on the way */
    budgets.tier_bytes[j->shift_tier] = UINT64_MAX;
    TIDE_TRY(tide__program_once(program, &once));
    finish(j, once);
    describe(j, once);
    tide_status status = j->failure == TIDE_OK ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) status = tide_plan_verify(j->plan, once, &j->machine, &budgets, &verdict);
    tide_program_destroy(once);
    if (status != TIDE_E_PLAN) return status;
    return tide__fail(TIDE_E_INTERNAL, "the journal of an online step is refused: action %u, rule %s: %s",
                      verdict.action, verdict.rule, verdict.message);
}
