/* See online_sim.h.
 *
 * Time: an op starts when compute is free and its loaded reads have arrived. Bytes that a SAVE leaves are free when it
 * ends, so whoever waits for them waits for it. A LOAD takes its bytes when it is issued. Channels are serial. */
#include "plan/decide/online/online_sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"
#include "plan/plan_data.h"

typedef struct simulation {
    const tide__online_run *run;
    tide__online *engine;
    tide__decisions *out; /* NULL: nobody wants them */
    uint64_t used_bytes, peak_bytes, workspace_bytes;
    uint64_t now_ns, compute_ns;
    uint64_t free_ns[TIDE_MACHINE_MAX_CHANNELS]; /* when a channel has done what it has */
    uint64_t *ready_ns;                          /* per storage: when its LOAD is complete */
    uint32_t *open_swap;                         /* per storage: the swap that has no LOAD yet; TIDE_NONE */
    tide__arrays arrays;                         /* owns the arrays above */
} simulation;

/* ---- decisions ---- */

static tide_status note(simulation *s, tide__step_kind kind, size_t index) {
    tide__step step = {.slot = s->engine->slot, .kind = kind, .index = (uint32_t)index};
    return tide__vec_push(&s->out->sequence, step);
}

static tide_status note_absence(simulation *s, tide_id id, uint32_t tier, bool saves) {
    if (!s->out) return TIDE_OK;
    tide__swap swap = {
        .tensor = id, .tier = tier, .save_slot = saves ? s->engine->slot : TIDE_NONE, .load_slot = TIDE_NONE};
    s->open_swap[id] = (uint32_t)s->out->swaps.count;
    TIDE_TRY(tide__vec_push(&s->out->swaps, swap));
    return saves ? note(s, TIDE__STEP_SAVE, s->open_swap[id]) : TIDE_OK;
}

static tide_status note_load(simulation *s, tide_id id, uint32_t tier) {
    if (!s->out) return TIDE_OK;
    if (s->open_swap[id] == TIDE_NONE) TIDE_TRY(note_absence(s, id, tier, false));
    s->out->swaps.data[s->open_swap[id]].load_slot = s->engine->slot;
    uint32_t index = s->open_swap[id];
    s->open_swap[id] = TIDE_NONE;
    return note(s, TIDE__STEP_LOAD, index);
}

static tide_status note_rerun(simulation *s, tide_id op) {
    if (!s->out) return TIDE_OK;
    tide__rerun rerun = {.slot = s->engine->slot, .op = op};
    TIDE_TRY(tide__vec_push(&s->out->reruns, rerun));
    return note(s, TIDE__STEP_RERUN, s->out->reruns.count - 1);
}

/* ---- the device ---- */

static bool reserve(void *self, tide_id id, uint64_t bytes) {
    simulation *s = self;
    if (bytes > s->run->budget_bytes - s->used_bytes) return false;
    s->used_bytes += bytes;
    s->peak_bytes = tide__max_u64(s->peak_bytes, s->used_bytes);
    if (id == TIDE_NONE) s->workspace_bytes = bytes;
    return true;
}

static void release(void *self, tide_id id) {
    simulation *s = self;
    s->used_bytes -= id == TIDE_NONE ? s->workspace_bytes : s->engine->storages[id].bytes;
}

static void inherit(void *self, tide_id read, tide_id write) { (void)self, (void)read, (void)write; }

static tide_status run_op(void *self, tide_id id, bool rerun) {
    simulation *s = self;
    const tide_op *op = tide_program_op(s->run->program, id);
    for (uint32_t i = 0; i < op->n_reads; i++) s->now_ns = tide__max_u64(s->now_ns, s->ready_ns[op->reads[i]]);
    s->now_ns = tide__add_capped(s->now_ns, op->variants[0].cost_ns);
    s->compute_ns = tide__add_capped(s->compute_ns, op->variants[0].cost_ns);
    return rerun ? note_rerun(s, id) : TIDE_OK;
}

/* Channels that share a link take turns here. */
static uint64_t channel_free(const simulation *s, uint32_t channel) {
    const tide_machine *m = s->run->machine;
    uint64_t free_ns = s->free_ns[channel];
    for (uint32_t c = 0; c < m->n_channels; c++)
        if (m->channel[c].share && m->channel[c].share == m->channel[channel].share)
            free_ns = tide__max_u64(free_ns, s->free_ns[c]);
    return free_ns;
}

static uint64_t transfer(simulation *s, uint32_t tier, bool out, uint64_t bytes) {
    uint32_t channel = tide_machine_queue(s->run->machine, tier, out) - 1;
    uint64_t start = tide__max_u64(s->now_ns, channel_free(s, channel));
    return s->free_ns[channel] = tide__add_capped(start, tide_machine_transfer_ns(s->run->machine, channel, bytes));
}

static tide_status save(void *self, tide_id id, uint32_t tier) {
    simulation *s = self;
    s->now_ns = tide__max_u64(s->now_ns, s->ready_ns[id]);
    s->now_ns = transfer(s, tier, true, s->engine->storages[id].bytes);
    return note_absence(s, id, tier, true);
}

static tide_status load(void *self, tide_id id, uint32_t tier) {
    simulation *s = self;
    s->ready_ns[id] = transfer(s, tier, false, s->engine->storages[id].bytes);
    return note_load(s, id, tier);
}

static uint64_t now_ns(void *self) { return ((simulation *)self)->now_ns; }
static uint64_t free_bytes(void *self) {
    const simulation *s = self;
    return s->run->budget_bytes - s->used_bytes;
}
static uint64_t ready_ns(void *self, tide_id id) { return ((simulation *)self)->ready_ns[id]; }
static uint64_t channel_free_ns(void *self, uint32_t tier, bool out) {
    const simulation *s = self;
    return channel_free(s, tide_machine_queue(s->run->machine, tier, out) - 1);
}

static const tide__online_device device = {reserve, release,    inherit,  run_op,          save, load,
                                           now_ns,  free_bytes, ready_ns, channel_free_ns, NULL};

/* ---- one step ---- */

/* What starts in a tier, and so has to end there. */
typedef struct tiers_at_start {
    uint32_t *tier; /* per tensor */
    bool changed;
} tiers_at_start;

static tide_status begin(simulation *s, const tiers_at_start *starts) {
    tide__online_options o = {.program = s->run->program,
                              .machine = s->run->machine,
                              .budgets = s->run->budgets,
                              .policy = s->run->policy,
                              .argument = s->run->argument,
                              .device = &device,
                              .device_self = s,
                              .release_after = s->run->release_after};
    size_t n = tide_program_tensor_count(s->run->program) + (size_t)1;
    tide__array(&s->arrays, s->ready_ns, n);
    tide__array_ones(&s->arrays, s->open_swap, n);
    TIDE_TRY(tide__arrays_check(&s->arrays));
    TIDE_TRY(tide__online_create(&o, &s->engine));
    s->engine->keep_leftovers = s->engine->never_share = s->run->as_dtr;
    for (uint32_t i = 0; i < tide_program_carry_count(s->run->program); i++) {
        const tide_carry *c = tide_program_carry(s->run->program, i);
        s->engine->storages[c->to].start_tier = s->engine->storages[c->from].end_tier = starts->tier[c->to];
        if (starts->tier[c->to] != TIDE_NONE) TIDE_TRY(note_absence(s, c->to, starts->tier[c->to], false));
    }
    return TIDE_OK;
}

/* What did not fit at the end will start, and end, in a tier. */
static void settle_homeless(const simulation *s, tiers_at_start *starts) {
    const tide__online *o = s->engine;
    starts->changed = o->homeless.count > 0;
    for (uint32_t i = 0; i < tide_program_carry_count(s->run->program) && starts->changed; i++) {
        const tide_carry *c = tide_program_carry(s->run->program, i);
        for (size_t k = 0; k < o->homeless.count; k++)
            if (o->homeless.data[k] == c->from) starts->tier[c->to] = tide__online_tier(o, c->from);
    }
}

static tide_status simulate_once(const tide__online_run *run, tiers_at_start *starts, tide__decisions *out,
                                 tide__online_figures *figures) {
    simulation s = {.run = run, .out = out};
    tide_status status = begin(&s, starts);
    if (status == TIDE_OK) status = tide__online_step(s.engine);
    if (status == TIDE_OK) settle_homeless(&s, starts);
    if (status == TIDE_OK)
        *figures = (tide__online_figures){.compute_ns = s.compute_ns,
                                          .recomputed_ns = s.engine->rerun_ns,
                                          .step_ns = s.now_ns,
                                          .peak_bytes = s.peak_bytes,
                                          .n_reruns = s.engine->n_reruns,
                                          .n_swaps = s.engine->n_swaps};
    tide__online_destroy(s.engine);
    tide__arrays_free(&s.arrays);
    return status;
}

/* ---- the steady state ---- */

/* The first tier with room, which it takes; TIDE_NONE: none. */
static uint32_t take_room(const tide__online_run *run, const tide__tiers *tiers, uint64_t bytes, uint64_t *taken) {
    for (uint32_t i = 0; i < tiers->n; i++) {
        uint32_t t = tiers->tier[i];
        uint64_t room = tide__tier_limit(run->machine, run->budgets, t), all, moved;
        if (!tide__align_up(bytes, run->machine->tier[t].block_bytes, &moved)) continue;
        all = tide__add_capped(taken[t], moved);
        if (all > room) continue;
        taken[t] = all;
        return t;
    }
    return TIDE_NONE;
}

/* If not even what is there at the start fits: the last of it begins in a tier. */
static void choose_starts(const tide__online_run *run, tiers_at_start *starts) {
    uint32_t n = tide_program_tensor_count(run->program);
    uint64_t bytes = 0, taken[TIDE_MACHINE_MAX_TIERS] = {0};
    tide__tiers tiers = tide__tiers_of(run->machine);
    for (tide_id id = 0; id < n; id++) starts->tier[id] = TIDE_NONE;
    for (tide_id id = 0; id < n && run->policy->swaps; id++) {
        const tide_tensor *t = tide_program_tensor(run->program, id);
        if (t->start != TIDE_START_PRESENT || tiers.n == 0) continue;
        bytes += t->size_bytes + run->machine->tier[tiers.tier[0]].block_bytes;
        if (bytes > run->budget_bytes) starts->tier[id] = take_room(run, &tiers, t->size_bytes, taken);
    }
}

tide_status tide__online_simulate(const tide__online_run *run, tide__decisions *out, tide__online_figures *figures) {
    enum { MAX_ROUNDS = 6 };
    tiers_at_start starts = {.tier = malloc((tide_program_tensor_count(run->program) + (size_t)1) * sizeof(uint32_t))};
    if (!starts.tier) return tide__fail_memory();
    choose_starts(run, &starts);
    tide_status status;
    int round = 0;
    do {
        tide__decisions made = {0};
        status = simulate_once(run, &starts, out ? &made : NULL, figures);
        if (status == TIDE_OK && !starts.changed && out)
            *out = made;
        else
            tide__decisions_free(&made);
    } while (status == TIDE_OK && starts.changed && ++round < MAX_ROUNDS);
    if (status == TIDE_OK && starts.changed)
        status =
            tide__fail(TIDE_E_FIT, "policy %s: what is kept over the step's end finds no place", run->policy->name);
    free(starts.tier);
    return status;
}

/* ---- the planner ---- */

/* The smallest load that works, within 1 %: for the report that says what would fit. */
static tide_status find_smallest(tide__online_run *run, uint64_t too_small, uint64_t enough, tide__decisions *out) {
    tide__online_figures figures;
    tide__decisions made = {0};
    run->budget_bytes = enough;
    TIDE_TRY(tide__online_simulate(run, &made, &figures));
    while (enough - too_small > enough / 100 + 1) {
        tide__decisions better = {0};
        run->budget_bytes = too_small + (enough - too_small) / 2;
        tide_status status = tide__online_simulate(run, &better, &figures);
        if (status == TIDE_OK) {
            enough = run->budget_bytes;
            tide__decisions_free(&made);
            made = better;
        } else {
            tide__decisions_free(&better);
            too_small = run->budget_bytes;
            if (status != TIDE_E_FIT) {
                tide__decisions_free(&made);
                return status;
            }
        }
    }
    *out = made;
    return TIDE_OK;
}

tide_status tide__decide_online(const tide__policy_input *in, const tide__online_policy *policy, tide__decisions *out) {
    tide_budgets budgets = in->options->budgets;
    for (uint32_t t = 0; t < in->machine->n_tiers; t++) budgets.tier_bytes[t] = tide__tier_room(in, t);
    tide__online_run run = {.program = in->program,
                            .machine = in->machine,
                            .budgets = &budgets,
                            .policy = policy,
                            .argument = in->argument,
                            .budget_bytes = in->target_bytes};
    tide__online_figures figures;
    tide_status status = tide__online_simulate(&run, out, &figures);
    if (status != TIDE_E_FIT || in->target_bytes == UINT64_MAX) return status;
    run.budget_bytes = UINT64_MAX;
    TIDE_TRY(tide__online_simulate(&run, NULL, &figures));
    return find_smallest(&run, in->target_bytes, tide__max_u64(figures.peak_bytes, in->target_bytes), out);
}
