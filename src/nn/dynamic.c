/* Networks that change from step to step: each model that comes up is prepared once (its step, its kernels) and then
 * played into a session, op by op, with every value released after its last use. Parameters live in the session; models
 * find them by name. So that host memory is bounded however many models come up, only the last ones stay prepared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "nn/dynamic.h"
#include "nn/states.h"
#include "nn/step.h"

enum { MAX_PREPARED = 64 };

typedef tide__played played;
typedef tide__played_op played_op;
typedef tide__parameter parameter;

void tide_dynamic_options_init(tide_dynamic_options *options) {
    *options = (tide_dynamic_options){.size = sizeof *options, .seed = 1, .learning_rate = 0.05f};
    tide_session_options_init(&options->session);
    tide_step_options_init(&options->step);
    options->step.optimizer = TIDE_MOMENTUM;
}

tide_status tide_dynamic_create(const tide_dynamic_options *options, tide_dynamic **out) {
    tide_dynamic_options taken;
    tide_dynamic_options_init(&taken);
    if (!out) return tide__fail(TIDE_E_ARGUMENT, "a network needs a place for its handle");
    TIDE_TRY(tide__options_take("tide_dynamic_options", options, sizeof taken, &taken));
    options = &taken;
    if (!isfinite(options->learning_rate) || options->learning_rate < 0)
        return tide__fail(TIDE_E_ARGUMENT, "a learning rate of %g is no number from 0 up",
                          (double)options->learning_rate);
    if (options->step.accumulate > 1 || options->step.inference)
        return tide__fail(TIDE_E_UNSUPPORTED, "a network that changes trains on one batch per step");
    tide_dynamic *d = calloc(1, sizeof *d);
    if (!d) return tide__fail_memory();
    d->options = *options;
    d->options.step.device = options->session.device;
    d->options.step.machine = options->session.machine;
    tide_status status = tide_session_create(&options->session, &d->session);
    if (status == TIDE_OK)
        *out = d;
    else
        free(d);
    return status;
}

static void close_played(played *p) {
    tide__network_close(&p->network);
    free(p->ops);
    free(p->ids);
    free(p->last);
    free(p->state);
    free(p->becomes);
    free(p->operands);
    free(p->input);
    free(p);
}

void tide_dynamic_destroy(tide_dynamic *d) {
    if (!d) return;
    tide_session_destroy(d->session);
    for (size_t i = 0; i < d->models.count; i++) close_played(d->models.data[i]);
    for (size_t i = 0; i < d->parameters.count; i++) free(d->parameters.data[i].name);
    tide__vec_free(&d->models);
    tide__vec_free(&d->parameters);
    free(d);
}

tide_session_stats tide_dynamic_get_stats(const tide_dynamic *d) { return tide_session_get_stats(d->session); }

/* ---- parameters ---- */

static tide_status add_parameter(tide_dynamic *d, const played *p, const tide_state *s, parameter like, tide_id *out) {
    tide_tensor tensor = *tide_program_tensor(p->network.program, s->at_start);
    TIDE_TRY(tide__vec_reserve(&d->parameters, 1));
    like.name = strdup(s->name);
    if (!like.name) return tide__fail_memory();
    tide_status status = tide_session_state(d->session, &tensor, out);
    if (status != TIDE_OK) {
        free(like.name);
        return status;
    }
    d->parameters.data[d->parameters.count++] = like;
    return TIDE_OK;
}

/* Where that failed once it is tried again the next time. */
static tide_status ensure_written(tide_dynamic *d, played *p, uint32_t index, tide_id id) {
    parameter *known = &d->parameters.data[id];
    p->ids[tide_step_state(p->network.step, index)->at_start] = id;
    if (!known->written) TIDE_TRY(tide__network_init_state(&p->network, index, d->options.seed));
    known->written = true;
    return TIDE_OK;
}

/* Bytes mean the same to all models only if all store them in the same way. */
static tide_status find_parameter(tide_dynamic *d, played *p, uint32_t index, tide_id *out) {
    const tide_state *s = tide_step_state(p->network.step, index);
    parameter mine = {.size_bytes = tide_program_tensor(p->network.program, s->at_start)->size_bytes};
    TIDE_TRY(tide__network_state_layout(&p->network, index, &mine.layout));
    for (tide_id id = 0; id < d->parameters.count; id++) {
        const parameter *known = &d->parameters.data[id];
        if (strcmp(known->name, s->name) != 0) continue;
        if (known->size_bytes != mine.size_bytes || known->layout != mine.layout)
            return tide__fail(TIDE_E_UNSUPPORTED, "\"%s\" is stored in another way by an earlier model", s->name);
        *out = id;
        return ensure_written(d, p, index, id);
    }
    TIDE_TRY(add_parameter(d, p, s, mine, out));
    return ensure_written(d, p, index, *out);
}

/* ---- preparing a model ---- */

static tide_status open_network(tide_dynamic *d, played *p) {
    tide__network *n = &p->network;
    tide_step_options step = d->options.step;
    n->n_micros = 1;
    n->session = d->session;
    if (p->inference) tide__step_for_inference(&step);
    step.scores_only = p->inference;
    step.state_part_bytes = UINT64_MAX; /* a session's states are whole */
    TIDE_TRY(tide__step_create_runnable(p->model, &step, &n->step));
    n->program = tide_step_program(n->step);
    return TIDE_OK;
}

static void find_last_uses(played *p) {
    const tide_program *program = p->network.program;
    for (tide_id i = 0; i < tide_program_op_count(program); i++) {
        const tide_op *op = tide_program_op(program, i);
        p->ops[i] = (played_op){.kernel = tide__step_kernel(p->network.step, i), .counter = op->counter};
        for (uint32_t k = 0; k < op->n_reads; k++) p->last[op->reads[k]] = i;
        for (uint32_t k = 0; k < op->n_writes; k++) p->last[op->writes[k]] = i;
    }
}

static size_t most_operands(const tide_program *program) {
    size_t most = 0;
    for (tide_id i = 0; i < tide_program_op_count(program); i++) {
        const tide_op *op = tide_program_op(program, i);
        size_t n = (size_t)op->n_reads + op->n_writes;
        most = n > most ? n : most;
    }
    return most;
}

static tide_status prepare(tide_dynamic *d, played *p) {
    TIDE_TRY(open_network(d, p));
    const tide_program *program = p->network.program;
    size_t n_tensors = tide_program_tensor_count(program), n_ops = tide_program_op_count(program);
    uint32_t n_states = tide_step_state_count(p->network.step);
    p->ops = calloc(n_ops + 1, sizeof *p->ops);
    p->ids = calloc(n_tensors + 1, sizeof *p->ids);
    p->last = calloc(n_tensors + 1, sizeof *p->last);
    p->state = calloc(n_states + (size_t)1, sizeof *p->state);
    p->becomes = malloc((n_tensors + 1) * sizeof *p->becomes);
    p->operands = calloc(most_operands(program) + 1, sizeof *p->operands);
    p->input = malloc(tide_program_tensor(program, tide_step_input(p->network.step, 0))->size_bytes + 1);
    if (!p->ops || !p->ids || !p->last || !p->state || !p->becomes || !p->operands || !p->input)
        return tide__fail_memory();
    p->network.ids = p->ids;
    find_last_uses(p);
    memset(p->becomes, 0xff, n_tensors * sizeof *p->becomes); /* TIDE_NONE in each */
    for (uint32_t i = 0; i < n_states; i++) {
        const tide_state *s = tide_step_state(p->network.step, i);
        TIDE_TRY(find_parameter(d, p, i, &p->state[i]));
        if (s->at_end != s->at_start) p->becomes[s->at_end] = p->state[i];
    }
    return TIDE_OK;
}

/* The model that has not come up for the longest time: never that of the last step, which may not have ended. */
static void drop_oldest(tide_dynamic *d) {
    played **oldest = NULL;
    for (size_t i = 0; i < d->models.count; i++) {
        played **p = &d->models.data[i];
        if (!(*p)->pinned && (!oldest || (*p)->last_use < (*oldest)->last_use)) oldest = p;
    }
    if (!oldest) return;
    close_played(*oldest);
    *oldest = d->models.data[--d->models.count];
}

static tide_status add_played(tide_dynamic *d, const tide_model *model, bool inference, played **out) {
    TIDE_TRY(tide__vec_reserve(&d->models, 1));
    played *p = calloc(1, sizeof *p);
    if (!p) return tide__fail_memory();
    p->model = model;
    p->inference = inference;
    tide_status status = prepare(d, p);
    if (status != TIDE_OK) {
        close_played(p);
        return status;
    }
    if (d->models.count >= MAX_PREPARED) drop_oldest(d);
    *out = d->models.data[d->models.count++] = p;
    return TIDE_OK;
}

tide_status tide__dynamic_find(tide_dynamic *d, const tide_model *model, bool inference, played **out) {
    size_t i = 0;
    while (i < d->models.count && (d->models.data[i]->model != model || d->models.data[i]->inference != inference)) i++;
    if (i < d->models.count)
        *out = d->models.data[i];
    else
        TIDE_TRY(add_played(d, model, inference, out));
    (*out)->last_use = ++d->clock;
    return TIDE_OK;
}

/* ---- playing ---- */

static tide_status run_op(void *context, const tide_call *call) {
    const played_op *op = context;
    tide_step_args args = *call->args;
    args.counter = op->counter;
    return tide_kernel_enqueue(op->kernel, call->variant, call->queue, call->arena, call->offsets, call->n_offsets,
                               &args);
}

static tide_status declare_inputs(tide_dynamic *d, played *p, const int32_t *labels) {
    const tide_step *step = p->network.step;
    tide_id input = tide_step_input(step, 0), label = tide_step_label(step, 0);
    const tide_program *program = p->network.program;
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) p->ids[tide_step_state(step, i)->at_start] = p->state[i];
    TIDE_TRY(tide_session_input(d->session, tide_program_tensor(program, input), p->input, &p->ids[input]));
    return tide_session_input(d->session, tide_program_tensor(program, label), labels, &p->ids[label]);
}

/* What this op is the last to use; old values of states go with their carry, or with a kernel that overwrites them. */
static tide_status release_dead(tide_dynamic *d, const played *p, tide_id id) {
    const tide_op *op = tide_program_op(p->network.program, id);
    for (uint32_t k = 0; k < op->n_reads + op->n_writes; k++) {
        tide_id t = k < op->n_reads ? op->reads[k] : op->writes[k - op->n_reads];
        const tide_tensor *tensor = tide_program_tensor(p->network.program, t);
        bool overwritten = false;
        for (uint32_t i = 0; i < op->n_inplace && k < op->n_reads; i++)
            overwritten |= op->inplace[i].must && op->inplace[i].read == k;
        if (p->last[t] != id || tensor->keep || tensor->start == TIDE_START_PRESENT || overwritten) continue;
        TIDE_TRY(tide_session_release(d->session, p->ids[t]));
    }
    return TIDE_OK;
}

static tide_status play_op(tide_dynamic *d, played *p, tide_id id) {
    tide_op op = *tide_program_op(p->network.program, id);
    for (uint32_t k = 0; k < op.n_writes; k++) {
        tide_tensor tensor = *tide_program_tensor(p->network.program, op.writes[k]);
        TIDE_TRY(tide_session_tensor(d->session, &tensor, &p->ids[op.writes[k]]));
        p->operands[op.n_reads + k] = p->ids[op.writes[k]];
    }
    for (uint32_t k = 0; k < op.n_reads; k++) p->operands[k] = p->ids[op.reads[k]];
    op.reads = p->operands;
    op.writes = p->operands + op.n_reads;
    TIDE_TRY(tide_session_op(d->session, &op, run_op, &p->ops[id]));
    return release_dead(d, p, id);
}

/* The states that the op has made anew. */
static tide_status carry_states(tide_dynamic *d, const played *p, const tide_op *op) {
    for (uint32_t k = 0; k < op->n_writes; k++) {
        tide_id state = p->becomes[op->writes[k]];
        if (state != TIDE_NONE) TIDE_TRY(tide_session_carry(d->session, p->ids[op->writes[k]], state));
    }
    return TIDE_OK;
}

static tide_status play_ops(tide_dynamic *d, played *p) {
    const tide_program *program = p->network.program;
    for (tide_id i = 0; i < tide_program_op_count(program); i++) {
        TIDE_TRY(play_op(d, p, i));
        TIDE_TRY(carry_states(d, p, tide_program_op(program, i)));
    }
    return TIDE_OK;
}

tide_status tide__dynamic_play(tide_dynamic *d, played *p, const float *plain, const int32_t *labels,
                               const tide_step_args *args, tide_step_report *report) {
    TIDE_TRY(tide__network_pack_input(&p->network, 0, plain, p->input));
    TIDE_TRY(tide_session_begin(d->session, args));
    TIDE_TRY(declare_inputs(d, p, labels));
    TIDE_TRY(play_ops(d, p));
    return tide_session_end(d->session, report);
}

tide_status tide_dynamic_step(tide_dynamic *d, const tide_model *model, const float *plain, const int32_t *labels,
                              float *loss, tide_step_report *report) {
    TIDE_NEED(d, model, plain, labels, loss);
    played *p;
    tide_step_args args = {.seed = d->options.seed, .step = d->n_steps, .learning_rate = d->options.learning_rate};
    TIDE_TRY(tide__dynamic_find(d, model, false, &p));
    TIDE_TRY(tide__dynamic_play(d, p, plain, labels, &args, report));
    d->n_steps++;
    return tide__network_read(&p->network, tide_step_loss(p->network.step), loss, sizeof *loss);
}

/* In the order of their names, because models may come up in any order. */
static int by_name(const void *a, const void *b) {
    const parameter *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static tide_status hash_parameter(tide_dynamic *d, const parameter *p, uint64_t *hash) {
    const tide_id id = (tide_id)(p - d->parameters.data);
    const tide__network only = {.session = d->session, .ids = &id};
    return tide__network_hash_part(&only, 0, p->size_bytes, p->size_bytes, hash);
}

tide_status tide_dynamic_hash(tide_dynamic *d, uint64_t *hash) {
    TIDE_NEED(d, hash);
    uint64_t h = d->n_steps;
    const parameter **sorted = malloc((d->parameters.count + 1) * sizeof *sorted);
    if (!sorted) return tide__fail_memory();
    size_t n = 0;
    for (size_t i = 0; i < d->parameters.count; i++)
        if (d->parameters.data[i].written) sorted[n++] = &d->parameters.data[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < n && status == TIDE_OK; i++) status = hash_parameter(d, sorted[i], &h);
    free(sorted);
    if (status == TIDE_OK) *hash = h;
    return status;
}
