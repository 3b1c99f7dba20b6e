/* See generation.h. */
#include "plan/decide/hybrid/generation.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/decide/bounds/least.h"
#include "plan/decide/policies/workspaces.h"

/* ---- life ---- */

static tide_status measure_whole(const tide__policy_input *in, uint64_t *out) {
    static const tide__decisions nothing;
    tide_plan *plan;
    static const tide__evaluate_options smallest = {.capacity_bytes = UINT64_MAX};
    TIDE_TRY(tide__evaluate(in, &nothing, &smallest, &plan));
    *out = plan->arena_bytes;
    tide_plan_destroy(plan);
    return TIDE_OK;
}

/* Another variant than the default one may be better. */
static bool has_choice(const tide_op *op, bool bits_any) {
    return tide__workspaces_pick(op, bits_any, 0) || tide__workspaces_pick(op, bits_any, UINT64_MAX);
}

/* How long an op waits for the inputs it reads from the client, if nothing else is on the way. */
static uint64_t input_ns(const tide__policy_input *in, const tide_op *op) {
    uint32_t tier = tide_machine_find_tier(in->machine, TIDE_TIER_CLIENT);
    uint32_t queue = tier == TIDE_NONE ? TIDE_NONE : tide_machine_queue(in->machine, tier, false);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < op->n_reads && queue != TIDE_NONE; i++) {
        const tide_tensor *t = tide_program_tensor(in->program, op->reads[i]);
        uint64_t bytes;
        if (t->start == TIDE_START_CLIENT && tide__align_up(t->size_bytes, in->machine->tier[tier].block_bytes, &bytes))
            sum = tide__add_capped(sum, tide_machine_transfer_ns(in->machine, queue - 1, bytes));
    }
    return sum;
}

/* Ops run one after the other, by their fastest variants, and each waits for its inputs: no plan is faster. */
static uint64_t least_time(const tide__policy_input *in) {
    uint64_t rest = 0, least = 0;
    for (tide_id o = tide_program_op_count(in->program); o-- > 0;) {
        const tide_op *op = tide_program_op(in->program, o);
        uint32_t fastest = tide__workspaces_pick(op, in->options->bits_any, UINT64_MAX);
        rest = tide__add_capped(rest, op->variants[fastest].cost_ns);
        least = tide__max_u64(least, tide__add_capped(rest, input_ns(in, op)));
    }
    return least;
}

static tide_status measure(tide__generation *g) {
    tide__policy_input whole = g->in;
    tide__least least;
    whole.target_bytes = 0;
    TIDE_TRY(tide__policy_least(tide__policy_find("hybrid"), &whole, &least));
    TIDE_TRY(measure_whole(&g->in, &g->whole_bytes));
    g->floor_bytes = least.bytes;
    g->least_ns = least_time(&g->in);
    for (tide_id o = 0; o < tide_program_op_count(g->in.program) && !g->has_variants; o++)
        g->has_variants = has_choice(tide_program_op(g->in.program, o), g->in.options->bits_any);
    return TIDE_OK;
}

static tide_status build(tide__generation *g) {
    TIDE_TRY(measure(g));
    g->in.target_bytes = g->whole_bytes; /* what is a small part of that is not worth a transfer */
    TIDE_TRY(tide__model_create(&g->in, &g->model));
    TIDE_TRY(tide__sketch_create(g->model, g->whole_bytes, &g->sketch));
    for (tide_id o = 0; o < g->model->n_ops; o++) g->slowest_ns = tide__add_capped(g->slowest_ns, g->model->cost_ns[o]);
    return g->moves ? tide__transfers_init(&g->in, g->model, &g->transfers) : TIDE_OK;
}

/* What a place within a rung is worth: some milliseconds. */
enum { PLACE_WORK = 3000 };

tide_status tide__generation_init(const tide__policy_input *in, tide__plans *plans, tide__generation *g) {
    *g = (tide__generation){.in = *in, .plans = plans, .place_work = PLACE_WORK, .phase = ""};
    g->moves = !tide__policy_has(in->argument, "nomove") && tide__tiers_allow_moves(in);
    g->reruns = !tide__policy_has(in->argument, "norerun");
    tide_status status = build(g);
    if (status != TIDE_OK) tide__generation_deinit(g);
    return status;
}

void tide__generation_deinit(tide__generation *g) {
    tide__sketch_destroy(g->sketch);
    tide__transfers_deinit(&g->transfers);
    tide__model_destroy(g->model);
    *g = (tide__generation){0};
}

bool tide__generation_want(tide__generation *g, uint32_t percent) {
    return tide__model_want(&g->in, g->whole_bytes / 100 * percent, g->model);
}

/* ---- whoever watches ---- */

void tide__generation_tell(tide__generation *g) {
    const tide_plan_options *o = g->in.options;
    tide_plan_progress p = {.size = sizeof p,
                            .phase = g->phase,
                            .best_ns = tide__plans_time(g->plans, g->plans->wanted_bytes),
                            .bound_ns = tide__max_u64(g->least_ns, g->plans->bound_ns),
                            .share = g->share};
    if (o->progress && !g->stopped) g->stopped = !o->progress(o->progress_self, &p);
}

bool tide__generation_is_over(const tide__generation *g) {
    uint64_t best = tide__plans_time(g->plans, g->plans->wanted_bytes);
    return best <= g->least_ns || (g->stopped && best != UINT64_MAX);
}

/* ---- rungs ---- */

/* Below these parts of the whole, steps are half as large each time: a byte counts more there. */
enum { FEW_PART = 5, MAX_HALVINGS = 4 };

uint64_t tide__generation_rung(const tide__generation *g, uint64_t bytes, uint32_t fineness) {
    uint64_t parts = fineness, limit = g->whole_bytes / FEW_PART;
    for (int i = 0; i < MAX_HALVINGS && bytes <= limit; i++, limit /= 2) parts *= 2;
    if (bytes == 0) return 0;
    /* rung k: the whole times k / parts, in two steps that cannot overflow */
    uint64_t each = g->whole_bytes / parts, rest = g->whole_bytes % parts;
    uint64_t k =
        each ? tide__min_u64((bytes - 1) / each, 4 * parts) : (bytes - 1) * parts / tide__max_u64(g->whole_bytes, 1);
    while (k > 0 && each * k + rest * k / parts >= bytes) k--;
    uint64_t rung = each * k + rest * k / parts;
    return rung >= g->floor_bytes ? rung : bytes > g->floor_bytes ? g->floor_bytes : 0;
}

/* ---- proposals ---- */

tide_status tide__generation_add_variants(const tide__generation *g, tide__decisions *d) {
    if (!g->has_variants || d->variants.count) return TIDE_OK;
    TIDE_TRY(tide__vec_reserve(&d->variants, g->model->n_ops));
    for (tide_id o = 0; o < g->model->n_ops; o++) d->variants.data[d->variants.count++] = g->model->variant[o];
    return TIDE_OK;
}

/* The fastest variants for which the sketch's load leaves room below a limit. */
static tide_status fill_variants(const tide__generation *g, const tide__sketch *s, uint64_t limit_bytes,
                                 tide__decisions *d) {
    tide__policy_input in = g->in;
    uint64_t *loads = calloc(g->model->n_ops + (size_t)1, sizeof *loads);
    if (!loads) return tide__fail_memory();
    for (uint32_t k = 0; k <= g->model->n_ops; k++)
        for (uint32_t e = s->slot_at[k]; e < s->slot_at[k + 1]; e++) loads[k] = tide__max_u64(loads[k], s->load[e]);
    in.target_bytes = limit_bytes;
    tide_status status = tide__workspaces_fill(&in, loads, d);
    free(loads);
    return status;
}

/* Empties *d. Where a carried value and its successor would need one place at the same time, no arena is large enough. */
static tide_status offer(tide__generation *g, tide__decisions *d, const tide__evaluate_options *placed,
                         tide__plans_outcome *out) {
    tide_status status = tide__plans_offer(g->plans, d, placed, out);
    if (status != TIDE_E_UNSUPPORTED) return status;
    *out = (tide__plans_outcome){.arena_bytes = UINT64_MAX, .step_ns = UINT64_MAX};
    return TIDE_OK;
}

/* A copy of the decisions, in the capacity; d stays. */
static tide_status offer_copy(tide__generation *g, const tide__decisions *d, uint64_t capacity_bytes, bool relocates,
                              tide__plans_outcome *out) {
    tide__evaluate_options placed = {.capacity_bytes = capacity_bytes,
                                     .place_work = g->place_work,
                                     .relocates = relocates,
                                     .fills = g->has_variants};
    tide__decisions copy = {0};
    TIDE_TRY(tide__decisions_copy(d, &copy));
    return offer(g, &copy, &placed, out);
}

/* What placement may lose of the capacity where large workspaces are placed beside everything else. */
enum { LOSS_PART = 50 };

/* Workspaces are placed beside everything else, or go into the holes that are left. Where that misses the capacity, values are
 * relocated. */
static tide_status propose(tide__generation *g, const tide__sketch *s, tide__decisions *d, uint64_t capacity_bytes,
                           tide__plans_outcome *out) {
    out->arena_bytes = UINT64_MAX;
    TIDE_TRY(tide__generation_add_variants(g, d));
    if (g->has_variants && s) {
        tide__decisions filled = {0};
        tide_status status = tide__decisions_copy(d, &filled);
        if (status == TIDE_OK) status = fill_variants(g, s, capacity_bytes - capacity_bytes / LOSS_PART, &filled);
        if (status == TIDE_OK) status = offer_copy(g, &filled, capacity_bytes, false, out);
        tide__decisions_free(&filled);
        TIDE_TRY(status);
    }
    return out->arena_bytes > capacity_bytes ? offer_copy(g, d, capacity_bytes, true, out) : TIDE_OK;
}

tide_status tide__generation_propose(tide__generation *g, tide__decisions *d, uint64_t capacity_bytes,
                                     tide__plans_outcome *out) {
    tide_status status = propose(g, NULL, d, capacity_bytes, out);
    tide__decisions_free(d);
    *d = (tide__decisions){0};
    return status;
}

tide_status tide__generation_add_reruns(const tide__sketch *s, tide__decisions *d) {
    for (size_t i = 0; i < s->extra.count; i++) {
        uint64_t key = s->extra.data[i];
        tide__rerun rerun = {.slot = tide__event_slot(key), .op = tide__event_id(key)};
        if (tide__event_kind_of(key) == TIDE__EVENT_RUN) TIDE_TRY(tide__vec_push(&d->reruns, rerun));
    }
    return TIDE_OK;
}

tide_status tide__generation_propose_sketch(tide__generation *g, const tide__sketch *s, const tide__transfers *moves,
                                            uint64_t capacity_bytes, tide__plans_outcome *out) {
    tide__decisions d = {0};
    tide_status status = moves ? tide__swaps_decide(&moves->swaps, moves->chosen, &d) : TIDE_OK;
    if (status == TIDE_OK) status = tide__generation_add_reruns(s, &d);
    if (status == TIDE_OK) status = propose(g, s, &d, capacity_bytes, out);
    tide__decisions_free(&d);
    return status;
}

tide_status tide__generation_try_load(tide__generation *g, const tide__sketch *s, const tide__transfers *moves,
                                      tide__plans_outcome *out) {
    tide__evaluate_options placed = {.capacity_bytes = tide__sketch_peak(s), .place_work = g->place_work};
    tide__decisions d = {0};
    tide_status status = moves ? tide__swaps_decide(&moves->swaps, moves->chosen, &d) : TIDE_OK;
    if (status == TIDE_OK) status = tide__generation_add_reruns(s, &d);
    if (status == TIDE_OK) status = offer(g, &d, &placed, out);
    tide__decisions_free(&d);
    return status;
}
