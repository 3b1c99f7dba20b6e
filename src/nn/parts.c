/* See parts.h. */
#include "nn/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"
#include "nn/dynamic.h"
#include "plan/budget.h"

#define PART_STREAM UINT64_C(0x7061727473) /* of the draws */

struct tide__parts {
    tide_dynamic *dynamic;
    float *plain, *sample; /* of a batch of the whole model, of one sample */
    int32_t *labels, *sample_labels;
};

static uint64_t values_of(const tide_model *model) {
    tide_shape in = tide_model_input(model);
    return (uint64_t)(in.c * in.h * in.w);
}

/* ---- checking ---- */

tide_status tide__parts_check(const tide_trainer_options *o) {
    tide_shape whole = tide_model_input(o->model);
    if (o->n_parts == 0) return TIDE_OK;
    if (o->step.accumulate > 1 || o->plan.decisions)
        return tide__fail(TIDE_E_UNSUPPORTED,
                          "a network that changes trains on one batch per step, by no file's decisions");
    for (uint32_t i = 0; i < o->n_parts; i++) {
        tide_shape in = tide_model_input(o->parts[i]);
        if (in.n != whole.n || in.c > whole.c || in.h != whole.h || in.w != whole.w ||
            tide_model_labels(o->parts[i]) > tide_model_labels(o->model))
            return tide__fail(TIDE_E_ARGUMENT, "part %u takes other samples than the model", i);
    }
    return TIDE_OK;
}

uint64_t tide__parts_fingerprint(const tide_trainer_options *o) {
    uint64_t hash = o->n_parts;
    for (uint32_t i = 0; i < o->n_parts; i++) {
        const tide_model *m = o->parts[i];
        hash = tide__hash_word(hash, values_of(m));
        for (uint32_t b = 0; b < tide_model_block_count(m); b++) hash = tide__hash_word(hash, tide_model_skips(m, b));
    }
    return hash;
}

/* ---- life ---- */

static tide_status open_buffers(tide_trainer *t) {
    struct tide__parts *p = t->parts;
    const tide_data *d = t->options.data;
    uint64_t batch = (uint64_t)tide_model_input(t->options.model).n, labels = tide_model_labels(t->options.model);
    uint64_t values = values_of(t->options.model);
    p->plain = calloc(batch * values + 1, sizeof *p->plain);
    p->labels = calloc(batch * labels + 1, sizeof *p->labels);
    p->sample = calloc((size_t)d->channels * d->height * d->width + 1, sizeof *p->sample);
    p->sample_labels = calloc((d->labels ? d->labels : 1) + (size_t)1, sizeof *p->sample_labels);
    return p->plain && p->labels && p->sample && p->sample_labels ? TIDE_OK : tide__fail_memory();
}

/* What the whole model needs if nothing leaves, and room for blocks and gaps. */
static tide_status find_arena(const tide_program *program, const tide_machine *machine, uint64_t *out) {
    tide_plan_options options;
    tide_plan *plan;
    tide_plan_options_init(&options);
    TIDE_TRY(tide_plan_create(program, machine, &options, NULL, &plan));
    uint64_t arena = tide_plan_arena_bytes(plan);
    *out = arena + arena / 8 + UINT64_C(8192) * tide_program_tensor_count(program);
    tide_plan_destroy(plan);
    return TIDE_OK;
}

/* Budgets that are not in bytes, and one that is missing, are found by the step of the whole model. */
static tide_status find_budgets(tide_trainer_options *o, tide_machine *machine) {
    tide_step_options step = o->step;
    uint64_t *arena = &o->plan.budgets.arena_bytes;
    tide_step *whole;
    step.device = o->device;
    step.machine = o->machine;
    TIDE_TRY(tide_step_create(o->model, &step, &whole));
    tide_status status = tide__network_set_budgets(o, tide_step_program(whole), machine, NULL);
    if (status == TIDE_OK && *arena == UINT64_MAX) status = find_arena(tide_step_program(whole), machine, arena);
    tide_step_destroy(whole);
    return status;
}

static tide_status set_budgets(tide_trainer_options *o, tide_machine *machine) {
    bool is_limited = o->plan.budgets.arena_bytes != UINT64_MAX || o->plan.arena_budget.bytes != UINT64_MAX;
    if (tide__budget_is_relative(&o->plan) || !is_limited) return find_budgets(o, machine);
    return tide__network_set_budgets(o, NULL, machine, NULL);
}

static void fill_session(const tide_trainer_options *o, tide_session_options *s) {
    bool online = o->mode == TIDE_MODE_ONLINE;
    s->device = o->device;
    s->machine = o->machine;
    s->budgets = o->plan.budgets;
    s->online = online && o->plan.policy ? o->plan.policy : "delta";
    s->policy = online ? "" : o->plan.policy ? o->plan.policy : "hybrid";
    s->effort = o->plan.effort;
    s->plan_folder = o->plan_folder;
    s->disk_path = o->disk_path;
    s->disk_checksums = o->disk_checksums;
    s->disk_packing = o->disk_packing;
}

tide_status tide__parts_open(tide_trainer *t) {
    tide_dynamic_options o;
    tide_machine machine;
    tide__played *whole;
    t->parts = calloc(1, sizeof *t->parts);
    if (!t->parts) return tide__fail_memory();
    tide_dynamic_options_init(&o);
    TIDE_TRY(set_budgets(&t->options, &machine));
    fill_session(&t->options, &o.session);
    o.step = t->options.step;
    o.seed = t->options.seed;
    TIDE_TRY(open_buffers(t));
    TIDE_TRY(tide_dynamic_create(&o, &t->parts->dynamic));
    TIDE_TRY(tide__dynamic_find(t->parts->dynamic, t->options.model, false, &whole));
    whole->pinned = true;
    t->network = whole->network; /* the dynamic network's own */
    t->network.machine = machine;
    return TIDE_OK;
}

void tide__parts_close(tide_trainer *t) {
    struct tide__parts *p = t->parts;
    if (!p) return;
    t->network = (tide__network){0};
    tide_dynamic_destroy(p->dynamic);
    free(p->plain);
    free(p->labels);
    free(p->sample);
    free(p->sample_labels);
    free(p);
    t->parts = NULL;
}

/* ---- batches ---- */

/* Of each sample as much as the model takes: shorter ones are beginnings of longer ones. */
static tide_status fill(const struct tide__parts *p, const tide_model *model, const tide_data *data,
                        tide__order_fn order, const void *context) {
    uint64_t values = values_of(model), labels = tide_model_labels(model);
    for (uint64_t i = 0; i < (uint64_t)tide_model_input(model).n; i++) {
        TIDE_TRY(tide__data_sample(data, order, context, i, p->sample, p->sample_labels));
        memcpy(p->plain + i * values, p->sample, values * sizeof *p->plain);
        memcpy(p->labels + i * labels, p->sample_labels, labels * sizeof *p->labels);
    }
    return TIDE_OK;
}

/* ---- steps ---- */

static const tide_model *draw(const tide_trainer *t) {
    const tide_trainer_options *o = &t->options;
    return o->parts[tide__random_u64(o->seed, PART_STREAM, t->step) % o->n_parts];
}

tide_status tide__parts_step(tide_trainer *t, const tide_step_args *args, float *loss, tide_step_report *report) {
    const struct tide__parts *p = t->parts;
    const tide_model *model = draw(t);
    tide__cursor cursor = {.seed = t->options.seed, .n_samples = t->options.data->n_samples, .seen = t->seen};
    tide__played *played;
    TIDE_TRY(fill(p, model, t->options.data, tide__cursor_order, &cursor));
    TIDE_TRY(tide__dynamic_find(p->dynamic, model, false, &played));
    TIDE_TRY(tide__dynamic_play(p->dynamic, played, p->plain, p->labels, args, report));
    tide_id scale = tide_step_update_scale(played->network.step);
    if (scale != TIDE_NONE)
        TIDE_TRY(tide__network_read(&played->network, scale, &t->update_scale, sizeof t->update_scale));
    return tide__network_read(&played->network, tide_step_loss(played->network.step), loss, sizeof *loss);
}

tide_status tide__parts_look(tide_trainer *t, const tide_data *data, tide__order_fn order, const void *context,
                             const tide_step_args *args, tide__network **network, const int32_t **labels) {
    const struct tide__parts *p = t->parts;
    tide__played *played;
    TIDE_TRY(fill(p, t->options.model, data, order, context));
    TIDE_TRY(tide__dynamic_find(p->dynamic, t->options.model, true, &played));
    TIDE_TRY(tide__dynamic_play(p->dynamic, played, p->plain, p->labels, args, NULL));
    *network = &played->network;
    *labels = p->labels;
    return TIDE_OK;
}
