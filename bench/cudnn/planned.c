/* See planned.h. The step is the analytic model's; the variants of its convolutions are replaced by cuDNN's ways, and
 * after planning cuDNN is asked once more, by fresh descriptors, what each chosen way needs. */
#include "cudnn/planned.h"

#include <stdlib.h>

/* Of the roofline's time of an op: an assumption, so that a larger workspace is worth something to the planner. */
static const double share_of_time[TIDE__DNN_WAYS] = {1, 0.8, 0.4};

/* What cuDNN says about an op. */
typedef struct answer {
    bool is_conv;
    uint32_t n;
    tide__dnn_way way[TIDE__DNN_WAYS];
    tide_variant variant[TIDE__DNN_WAYS];
} answer;

typedef struct study {
    tide__dnn_gpu gpu;
    tide_machine machine;
    tide_model *model;
    tide_step *step;
    answer *answers; /* per op */
    tide_program *program;
} study;

static bool is_conv(const tide_op_desc *d) {
    return d &&
           (d->kind == TIDE_OP_CONV_FWD || d->kind == TIDE_OP_CONV_BWD_DATA || d->kind == TIDE_OP_CONV_BWD_WEIGHTS);
}

static tide_status ask(const tide__dnn_gpu *gpu, const tide_op_desc *d, uint64_t cost_ns, answer *out) {
    tide__dnn_conv conv;
    tide_status status = tide__dnn_conv_open(gpu, d, &conv);
    if (status != TIDE_OK) return status;
    *out = (answer){.is_conv = true};
    for (tide__dnn_way way = 0; way < TIDE__DNN_WAYS; way++) {
        if (!conv.engine[way].plan) continue;
        out->way[out->n] = way;
        out->variant[out->n++] = (tide_variant){.workspace_bytes = conv.engine[way].workspace_bytes,
                                                .cost_ns = (uint64_t)(share_of_time[way] * (double)cost_ns),
                                                .bits_class = way};
    }
    tide__dnn_conv_close(&conv);
    return out->n ? TIDE_OK : tide__fail(TIDE_E_UNSUPPORTED, "cuDNN has no engine for a convolution");
}

/* ---- the program with cuDNN's variants ---- */

static tide_status copy_ops(const tide_program *p, const answer *answers, tide_program_builder *b) {
    tide_status status = TIDE_OK;
    for (tide_id t = 0; t < tide_program_tensor_count(p) && status == TIDE_OK; t++)
        status = tide_program_builder_tensor(b, tide_program_tensor(p, t), NULL);
    for (tide_id i = 0; i < tide_program_op_count(p) && status == TIDE_OK; i++) {
        tide_op op = *tide_program_op(p, i);
        if (answers[i].is_conv) {
            op.variants = answers[i].variant;
            op.n_variants = answers[i].n;
        }
        status = tide_program_builder_op(b, &op, NULL);
    }
    for (uint32_t i = 0; i < tide_program_carry_count(p) && status == TIDE_OK; i++)
        status = tide_program_builder_carry(b, *tide_program_carry(p, i));
    return status;
}

static tide_status ask_all(study *s) {
    const tide_program *p = tide_step_program(s->step);
    const uint32_t n = tide_program_op_count(p);
    tide_program_builder *b = NULL;
    s->answers = calloc(n, sizeof *s->answers);
    tide_status status = s->answers ? TIDE_OK : tide__fail_memory();
    for (tide_id i = 0; i < n && status == TIDE_OK; i++) {
        const tide_op_desc *d = tide_step_op_desc(s->step, i);
        if (is_conv(d)) status = ask(&s->gpu, d, tide_program_op(p, i)->variants[0].cost_ns, &s->answers[i]);
    }
    if (status == TIDE_OK) status = tide_program_builder_create(tide_program_name(p), true, &b);
    if (status == TIDE_OK) status = copy_ops(p, s->answers, b);
    if (status == TIDE_OK) status = tide_program_builder_finish(b, &s->program);
    if (status != TIDE_OK) tide_program_builder_destroy(b);
    return status;
}

static tide_status open_study(study *s, const tide__dnn *dnn, const planned_gpu *gpu, const char *model,
                              uint32_t batch) {
    tide_model_options m;
    tide_step_options o;
    tide_model_options_init(&m);
    m.batch = batch;
    tide_step_options_init(&o);
    o.machine = &s->machine;
    tide_status status = tide_machine_load(gpu->machine, &s->machine);
    if (status == TIDE_OK) status = tide__dnn_describe(dnn, gpu->properties, &s->gpu);
    if (status == TIDE_OK) status = tide_model_create(model, &m, &s->model);
    if (status == TIDE_OK) status = tide_step_create(s->model, &o, &s->step);
    return status == TIDE_OK ? ask_all(s) : status;
}

static void close_study(study *s) {
    tide_program_destroy(s->program);
    free(s->answers);
    tide_step_destroy(s->step);
    tide_model_destroy(s->model);
    tide__dnn_forget(&s->gpu);
}

/* ---- figures ---- */

static void count_answers(const study *s, planned *r) {
    for (tide_id i = 0; i < tide_program_op_count(s->program); i++) {
        const answer *a = &s->answers[i];
        if (!a->is_conv) continue;
        r->n_convolutions++;
        r->n_answers += a->n;
        for (uint32_t k = 0; k < a->n; k++) {
            const uint64_t bytes = a->variant[k].workspace_bytes;
            if (a->way[k] == TIDE__DNN_LEAN && bytes > r->least_bytes) r->least_bytes = bytes;
            if (a->way[k] == TIDE__DNN_FINE && bytes > r->fine_bytes) r->fine_bytes = bytes;
            if (bytes > r->largest_bytes) r->largest_bytes = bytes;
        }
    }
}

static tide_status plan_in(const study *s, const char *policy, uint64_t bytes, bool bits_any, tide_plan **out) {
    tide_plan_options o;
    tide_plan_options_init(&o);
    o.policy = policy;
    o.budgets.arena_bytes = bytes;
    o.effort = TIDE_EFFORT_LOW;
    o.bits_any = bits_any;
    return tide_plan_create(s->program, &s->machine, &o, NULL, out);
}

/* A RUN's workspace in the plan against a fresh answer. */
static tide_status compare_run(const study *s, const tide_plan *plan, const tide_action *a, planned *r) {
    const answer *known = &s->answers[a->op];
    const tide_op *op = tide_program_op(s->program, a->op);
    const uint32_t n_operands = op->n_reads + op->n_writes;
    const uint64_t bytes = a->n_uses > n_operands ? tide_plan_residency(plan, a->uses[n_operands])->size_bytes : 0;
    answer fresh;
    tide_status status = ask(&s->gpu, tide_step_op_desc(s->step, a->op), 0, &fresh);
    if (status != TIDE_OK) return status;
    if (fresh.n != known->n || fresh.variant[a->variant].workspace_bytes != bytes) r->n_different++;
    if (bytes > r->workspace_bytes) r->workspace_bytes = bytes;
    r->n_runs[known->way[a->variant]]++;
    return TIDE_OK;
}

static tide_status read_plan(const study *s, const tide_plan *plan, planned *r) {
    r->arena_bytes = tide_plan_arena_bytes(plan);
    r->step_ns = tide_plan_prediction(plan)->step_ns;
    for (uint32_t i = 0; i < tide_plan_action_count(plan); i++) {
        const tide_action a = tide_plan_action(plan, i);
        if (a.kind != TIDE_RUN || !s->answers[a.op].is_conv) continue;
        tide_status status = compare_run(s, plan, &a, r);
        if (status != TIDE_OK) return status;
    }
    return TIDE_OK;
}

tide_status planned_make(const tide__dnn *dnn, const planned_gpu *gpu, const char *model, uint32_t batch, double share,
                         planned *out) {
    study s = {0};
    planned r = {0};
    tide_plan *free_plan = NULL, *plan = NULL;
    tide_status status = open_study(&s, dnn, gpu, model, batch);
    if (status == TIDE_OK) status = plan_in(&s, "liveness", UINT64_MAX, false, &free_plan);
    if (status == TIDE_OK) {
        count_answers(&s, &r);
        r.free_bytes = tide_plan_arena_bytes(free_plan);
        r.lean_ns = tide_plan_prediction(free_plan)->step_ns;
        status = plan_in(&s, "hybrid", (uint64_t)(share * (double)r.free_bytes), true, &plan);
    }
    if (status == TIDE_OK) status = read_plan(&s, plan, &r);
    if (status == TIDE_OK) *out = r;
    tide_plan_destroy(plan);
    tide_plan_destroy(free_plan);
    close_study(&s);
    return status;
}
