/* See network.h. */
#include "nn/network.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/size.h"
#include "nn/crew.h"
#include "nn/step.h"
#include "plan/budget.h"

uint64_t tide__elements(tide_shape s) { return (uint64_t)s.n * (uint64_t)s.c * (uint64_t)s.h * (uint64_t)s.w; }

/* ---- what the run calls ---- */

static tide_status run_op(void *context, const tide_call *call) {
    const tide__network *n = context;
    tide_step_args args = *call->args;
    args.counter = tide_program_op(n->program, call->op)->counter;
    if (n->timer) TIDE_TRY(tide__op_timer_begin(n->timer, call->queue, call->op));
    TIDE_TRY(tide_kernel_enqueue(tide__step_kernel(n->step, call->op), call->variant, call->queue, call->arena,
                                 call->offsets, call->n_offsets, &args));
    return n->timer ? tide__op_timer_end(n->timer, call->queue) : TIDE_OK;
}

/* A parameter of another network, straight from where that has it. */
static tide_status give_lent(const tide__network *n, tide_id tensor, uint64_t position, void *data, uint64_t size) {
    if (!n->lender || n->lent[tensor] == TIDE_NONE) return tide__fail(TIDE_E_INTERNAL, "tensor %u is no input", tensor);
    return tide__network_read_part(n->lender, n->lent[tensor], position, data, size);
}

static tide_status give_input(void *context, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes) {
    const tide__network *n = context;
    for (uint32_t m = 0; m < n->n_micros; m++) {
        const void *source = tensor == tide_step_input(n->step, m)   ? (const void *)n->batch.inputs[m]
                             : tensor == tide_step_label(n->step, m) ? (const void *)n->batch.labels[m]
                                                                     : NULL;
        if (!source) continue;
        memcpy(data, (const char *)source + position, size_bytes);
        return TIDE_OK;
    }
    return give_lent(n, tensor, position, data, size_bytes);
}

/* ---- opening ---- */

/* Of a network of which nothing is known. */
enum { PEER_BYTES_PER_S = 1000000000, PEER_LATENCY_NS = 100000 };

/* The plan from measured costs may want more of the budget than the first one; no plan wants all of a huge one. */
static uint64_t arena_for_plans(const tide_trainer_options *o, const tide_plan *plan) {
    uint64_t needed = tide_plan_arena_bytes(plan), budget = o->plan.budgets.arena_bytes;
    return budget == UINT64_MAX ? needed : tide__min_u64(budget, tide__add_capped(needed, needed));
}

static const char *online_policy(const tide_trainer_options *o) {
    return o->mode == TIDE_MODE_ONLINE && o->plan.policy ? o->plan.policy : "delta";
}

static tide_status open_run(const tide_trainer_options *o, tide_run *host, tide__network *n) {
    tide_run_options run;
    tide_run_options_init(&run);
    run.device = o->device;
    run.program = n->program;
    run.machine = &n->machine;
    run.plan = n->plan;
    run.budgets = o->plan.budgets;
    if (n->plan) run.arena_bytes = arena_for_plans(o, n->plan);
    run.op = run_op;
    run.input = give_input;
    run.op_context = run.input_context = n;
    run.disk_path = o->disk_path;
    run.disk_checksums = o->disk_checksums;
    run.disk_packing = o->disk_packing;
    run.loan = o->loan;
    run.host = host;
    run.online = online_policy(o);
    if (o->peers) run.message = o->peers->message, run.message_context = o->peers->context;
    return tide_run_create(&run, &n->run);
}

tide_status tide__network_set_budgets(tide_trainer_options *o, const tide_program *program, tide_machine *machine,
                                      tide_plan **made) {
    tide_device_info info;
    tide_plan_options plan = o->plan;
    TIDE_TRY(tide_device_get_info(o->device, &info));
    *machine = *o->machine;
    if (machine->align_bytes < info.align_bytes) machine->align_bytes = info.align_bytes;
    if (o->peers) TIDE_TRY(tide_machine_add_peers(machine, PEER_BYTES_PER_S, PEER_LATENCY_NS));
    if (o->mode == TIDE_MODE_ONLINE) plan.policy = online_policy(o);
    TIDE_TRY(tide__budget_settle(program, machine, &plan, &plan, made));
    plan.policy = o->plan.policy;
    o->plan = plan;
    return TIDE_OK;
}

/* smallest: a plan for the budgets in options, of which the device may take its share; NULL: there is none yet. */
static tide_status find_plan(const tide_trainer_options *o, tide_plan *smallest, tide_fit_report *fit,
                             tide__network *n) {
    tide_plan_options plan = o->plan;
    TIDE_TRY(tide_run_budgets(o->device, o->machine, &plan.budgets));
    if (o->mode != TIDE_MODE_ONLINE && o->plan_folder)
        n->plan = tide_plan_recall(o->plan_folder, n->program, &n->machine, &plan);
    n->recalled = n->plan != NULL;
    if (o->mode != TIDE_MODE_PLANNED || n->plan) return TIDE_OK;
    if (smallest && tide_plan_verify(smallest, n->program, &n->machine, &plan.budgets, NULL) == TIDE_OK)
        return n->plan = smallest, TIDE_OK;
    return tide_plan_create(n->program, &n->machine, &plan, fit, &n->plan);
}

static tide_status open_plan(tide_trainer_options *o, tide_run *host, tide_fit_report *fit, tide__network *n) {
    tide_plan *smallest;
    TIDE_TRY(tide__network_set_budgets(o, n->program, &n->machine, &smallest));
    tide_status status = find_plan(o, smallest, fit, n);
    if (n->plan != smallest) tide_plan_destroy(smallest);
    if (status == TIDE_OK) status = open_run(o, host, n);
    tide__memory_give_back(); /* what planning and proving took, before the arena is touched */
    return status;
}

/* Touched at once: memory that the first step would take by surprise belongs to the cost of opening. By volatile
 * writes, because compilers make one calloc, which touches nothing, of malloc and memset. */
static void *touched(uint64_t size_bytes) {
    enum { PAGE_BYTES = 4096 };
    void *bytes = calloc(size_bytes ? size_bytes : 1, 1);
    volatile char *pages = bytes;
    for (uint64_t i = 0; pages && i < size_bytes; i += PAGE_BYTES) pages[i] = 0;
    return bytes;
}

static tide_status open_batch(const tide__network *n, tide__batch *b) {
    b->inputs = calloc(n->n_micros, sizeof *b->inputs);
    b->labels = calloc(n->n_micros, sizeof *b->labels);
    if (!b->inputs || !b->labels) return tide__fail_memory();
    for (uint32_t m = 0; m < n->n_micros; m++) {
        b->inputs[m] = touched(tide_program_tensor(n->program, tide_step_input(n->step, m))->size_bytes);
        b->labels[m] = touched(tide_program_tensor(n->program, tide_step_label(n->step, m))->size_bytes);
        if (!b->inputs[m] || !b->labels[m]) return tide__fail_memory();
    }
    return TIDE_OK;
}

void tide__batch_close(const tide__network *n, tide__batch *b) {
    for (uint32_t m = 0; m < n->n_micros; m++) {
        if (b->inputs) free(b->inputs[m]);
        if (b->labels) free(b->labels[m]);
    }
    free(b->inputs);
    free(b->labels);
    *b = (tide__batch){0};
}

tide_status tide__batch_open(const tide__network *n, tide__batch *batch) {
    *batch = (tide__batch){0};
    tide_status status = open_batch(n, batch);
    if (status != TIDE_OK) tide__batch_close(n, batch);
    return status;
}

static tide_status open_buffers(const tide_model *model, tide__network *n) {
    n->plain = touched(tide__elements(tide_model_input(model)) * sizeof *n->plain);
    return n->plain ? tide__batch_open(n, &n->batch) : tide__fail_memory();
}

static uint64_t input_bytes(const tide__network *n) {
    return tide_program_tensor(n->program, tide_step_input(n->step, 0))->size_bytes;
}

/* The first micro-batch of the host is as large, unless the two store it differently. */
static bool borrow_buffers(tide__network *n, const tide__network *host) {
    if (n->n_micros != 1 || input_bytes(n) > input_bytes(host)) return false;
    n->borrows = true;
    n->plain = host->plain;
    n->batch = host->batch;
    return true;
}

static tide_status open_all(tide_trainer_options *o, const tide_step_options *step, tide__network *host,
                            tide_fit_report *fit, tide__network *n) {
    tide_step_options with_device = *step;
    with_device.device = o->device;
    with_device.machine = o->machine;
    const tide__share share = tide__step_share(step);
    n->first_micro = share.first;
    n->n_micros = share.count;
    TIDE_TRY(tide__step_create_runnable(o->model, &with_device, &n->step));
    n->program = tide_step_program(n->step);
    TIDE_TRY(open_plan(o, host ? host->run : NULL, fit, n));
    if (host && borrow_buffers(n, host)) return TIDE_OK;
    return open_buffers(o->model, n);
}

tide_status tide__network_open(tide_trainer_options *options, const tide_step_options *step, tide__network *host,
                               tide_fit_report *fit, tide__network *network) {
    *network = (tide__network){0};
    tide_status status = open_all(options, step, host, fit, network);
    if (status != TIDE_OK) tide__network_close(network);
    return status;
}

static void close_buffers(tide__network *n) {
    tide__batch_close(n, &n->batch);
    free(n->plain);
}

void tide__network_close(tide__network *n) {
    tide_run_destroy(n->run);
    tide_plan_destroy(n->plan);
    if (!n->borrows) close_buffers(n);
    free(n->lent);
    tide_step_destroy(n->step);
    *n = (tide__network){0};
}

/* ---- batches ---- */

/* The op that reads an input, and which of its operands that is, know the input's layout. */
tide_status tide__network_pack_input(const tide__network *n, uint32_t micro, const float *plain, float *stored) {
    tide_id tensor = tide_step_input(n->step, micro);
    for (tide_id i = 0; i < tide_program_op_count(n->program); i++) {
        const tide_op *op = tide_program_op(n->program, i);
        for (uint32_t k = 0; k < op->n_reads; k++)
            if (op->reads[k] == tensor) return tide_operand_pack(tide__step_kernel(n->step, i), k, plain, stored);
    }
    return tide__fail(TIDE_E_INTERNAL, "nothing reads the input");
}

tide_status tide__data_sample(const tide_data *data, tide__order_fn order, const void *context, uint64_t i,
                              float *pixels, int32_t *labels) {
    const uint64_t none = UINT64_MAX;
    uint64_t draw = none, index = order(context, i, &draw);
    bool can_vary = data->size >= offsetof(tide_data, threads) && data->vary; /* clients may know an older tide_data */
    return draw != none && can_vary ? data->vary(data->context, index, draw, pixels, labels)
                                    : data->sample(data->context, index, pixels, labels);
}

typedef struct filling {
    const tide_data *data;
    tide__order_fn order;
    const void *context;
    uint64_t first, pixels, n_labels; /* the first sample; per sample */
    float *plain;
    int32_t *labels;
} filling;

static tide_status fill_sample(void *context, uint64_t i) {
    const filling *f = context;
    return tide__data_sample(f->data, f->order, f->context, f->first + i, f->plain + i * f->pixels,
                             f->labels + i * f->n_labels);
}

tide_status tide__network_fill(const tide__network *n, const tide__batch *b, const tide_data *data,
                               tide__order_fn order, const void *context) {
    uint64_t pixels = (uint64_t)data->channels * data->height * data->width;
    uint64_t labels = data->labels ? data->labels : 1;
    uint64_t batch =
        tide_program_tensor(n->program, tide_step_label(n->step, 0))->size_bytes / sizeof(int32_t) / labels;
    uint32_t threads = data->size >= sizeof *data && data->threads ? data->threads : 1;
    for (uint32_t m = 0; m < n->n_micros; m++) {
        filling f = {data, order, context, (n->first_micro + m) * batch, pixels, labels, n->plain, b->labels[m]};
        TIDE_TRY(tide__crew_run(threads, batch, fill_sample, &f));
        TIDE_TRY(tide__network_pack_input(n, m, n->plain, b->inputs[m]));
    }
    return TIDE_OK;
}

/* ---- values ---- */

tide_status tide__network_read(const tide__network *n, tide_id tensor, void *data, uint64_t size_bytes) {
    return n->session ? tide_session_read(n->session, n->ids[tensor], data, size_bytes)
                      : tide_run_read(n->run, tensor, data, size_bytes);
}

tide_status tide__network_read_part(const tide__network *n, tide_id tensor, uint64_t position_bytes, void *data,
                                    uint64_t size_bytes) {
    return n->session ? tide_session_read_part(n->session, n->ids[tensor], position_bytes, data, size_bytes)
                      : tide_run_read_part(n->run, tensor, position_bytes, data, size_bytes);
}

tide_status tide__network_write_part(const tide__network *n, tide_id tensor, uint64_t position_bytes, const void *data,
                                     uint64_t size_bytes) {
    return n->session ? tide_session_write_part(n->session, n->ids[tensor], position_bytes, data, size_bytes)
                      : tide_run_write_part(n->run, tensor, position_bytes, data, size_bytes);
}

void tide__step_for_inference(tide_step_options *step) {
    step->inference = true;
    if (step->shard != TIDE_SHARD_ALL) step->accumulate = step->first_micro = step->micro_count = 0;
    step->fused_update = false;
    step->clip_norm = 0;
    step->skip_nonfinite = false;
}

bool tide__step_find_state(const tide_step *step, const char *name, uint32_t *index) {
    uint32_t n = tide_step_state_count(step);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = (*index + k) % n;
        if (strcmp(tide_step_state(step, i)->name, name) != 0) continue;
        *index = i;
        return true;
    }
    return false;
}
