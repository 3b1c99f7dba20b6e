/* See network.h. */
#include "nn/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"

uint64_t tide__elements(tide_shape s) { return (uint64_t)s.n * (uint64_t)s.c * (uint64_t)s.h * (uint64_t)s.w; }

/* ---- kernels ---- */

/* Equal ops have the same descriptor object, so sorting by its address brings them together. */
typedef struct described {
    const tide_op_desc *desc;
    tide_id op;
} described;

static int by_descriptor(const void *a, const void *b) {
    const described *x = a, *y = b;
    if (x->desc != y->desc) return (uintptr_t)x->desc < (uintptr_t)y->desc ? -1 : 1;
    return x->op < y->op ? -1 : 1;
}

tide_status tide__network_create_kernels(tide__network *n, tide_device *device) {
    uint32_t n_ops = tide_program_op_count(n->program);
    described *all = malloc((n_ops + 1) * sizeof *all);
    n->kernels = calloc(n_ops + 1, sizeof *n->kernels);
    n->owned = calloc(n_ops + 1, sizeof *n->owned);
    tide_status status = all && n->kernels && n->owned ? TIDE_OK : tide__fail_memory();
    if (status != TIDE_OK) goto done;
    for (tide_id i = 0; i < n_ops; i++) all[i] = (described){tide_step_op_desc(n->step, i), i};
    qsort(all, n_ops, sizeof *all, by_descriptor);
    for (uint32_t i = 0; i < n_ops; i++) {
        if (i == 0 || all[i].desc != all[i - 1].desc) {
            status = tide_kernel_create(device, all[i].desc, &n->owned[n->n_owned]);
            if (status != TIDE_OK) {
                status = tide__fail_in(status, "op \"%s\"", tide_program_op(n->program, all[i].op)->name);
                goto done;
            }
            n->n_owned++;
        }
        n->kernels[all[i].op] = n->owned[n->n_owned - 1];
    }
done:
    free(all);
    return status;
}

/* ---- what the run calls ---- */

static tide_status run_op(void *context, const tide_call *call) {
    const tide__network *n = context;
    tide_step_args args = *call->args;
    args.counter = tide_program_op(n->program, call->op)->counter;
    if (n->timer) TIDE_TRY(tide__op_timer_begin(n->timer, call->queue, call->op));
    TIDE_TRY(tide_kernel_enqueue(n->kernels[call->op], call->variant, call->queue, call->arena, call->offsets,
                                 call->n_offsets, &args));
    return n->timer ? tide__op_timer_end(n->timer, call->queue) : TIDE_OK;
}

/* Whose states a network of inference reads. They come in one by one, each perhaps in several pieces, on the one queue of
 * the client's tier: one room is enough. */
struct tide__lender {
    tide__network *from;
    tide__room room;
    uint32_t *state;  /* per tensor: the state that it is; TIDE_NONE: none */
    uint32_t *source; /* per state: which of the lender's it is */
    uint32_t held;    /* the state that the room has, as this network stores it; TIDE_NONE: none */
};

static tide_status fetch_state(const tide__network *n, struct tide__lender *l, uint32_t state) {
    const tide_state *s = tide_step_state(n->step, state);
    if (l->held == state) return TIDE_OK;
    l->held = TIDE_NONE;
    TIDE_TRY(tide__network_read_state(l->from, l->source[state], &l->room));
    TIDE_TRY(tide_operand_pack(n->kernels[s->op], s->operand, l->room.plain, l->room.stored));
    l->held = state;
    return TIDE_OK;
}

static tide_status give_state(const tide__network *n, tide_id tensor, uint64_t position, void *data, uint64_t size) {
    if (!n->lender || n->lender->state[tensor] == TIDE_NONE)
        return tide__fail(TIDE_E_INTERNAL, "tensor %u is no input", tensor);
    TIDE_TRY(fetch_state(n, n->lender, n->lender->state[tensor]));
    memcpy(data, (const char *)n->lender->room.stored + position, size);
    return TIDE_OK;
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
    return give_state(n, tensor, position, data, size_bytes);
}

/* ---- opening ---- */

/* The plan from measured costs may want more of the budget than the first one; no plan wants all of a huge one. */
static uint64_t arena_for_plans(const tide_trainer_options *o, const tide_plan *plan) {
    uint64_t needed = tide_plan_arena_bytes(plan), budget = o->plan.budgets.arena_bytes;
    return budget == UINT64_MAX ? needed : tide__min_u64(budget, tide__add_capped(needed, needed));
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
    run.host = host;
    run.online = o->mode == TIDE_MODE_ONLINE && o->plan.policy ? o->plan.policy : "delta";
    return tide_run_create(&run, &n->run);
}

static tide_status open_plan(const tide_trainer_options *o, tide_run *host, tide_fit_report *fit, tide__network *n) {
    tide_device_info info;
    tide_plan_options plan = o->plan;
    n->machine = *o->machine;
    TIDE_TRY(tide_device_get_info(o->device, &info));
    if (n->machine.align_bytes < info.align_bytes) n->machine.align_bytes = info.align_bytes;
    TIDE_TRY(tide_run_budgets(o->device, o->machine, &plan.budgets));
    if (o->mode != TIDE_MODE_ONLINE && o->plan_folder)
        n->plan = tide_plan_recall(o->plan_folder, n->program, &n->machine, &plan);
    n->recalled = n->plan != NULL;
    if (o->mode == TIDE_MODE_PLANNED && !n->plan)
        TIDE_TRY(tide_plan_create(n->program, &n->machine, &plan, fit, &n->plan));
    return open_run(o, host, n);
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

static tide_status open_all(const tide_trainer_options *o, const tide_step_options *step, tide__network *host,
                            tide_fit_report *fit, tide__network *n) {
    tide_step_options with_device = *step;
    with_device.device = o->device;
    with_device.machine = o->machine;
    n->n_micros = step->accumulate > 1 ? step->accumulate : 1;
    TIDE_TRY(tide_step_create(o->model, &with_device, &n->step));
    n->program = tide_step_program(n->step);
    TIDE_TRY(tide__network_create_kernels(n, o->device));
    TIDE_TRY(open_plan(o, host ? host->run : NULL, fit, n));
    if (host && borrow_buffers(n, host)) return TIDE_OK;
    return open_buffers(o->model, n);
}

tide_status tide__network_open(const tide_trainer_options *options, const tide_step_options *step, tide__network *host,
                               tide_fit_report *fit, tide__network *network) {
    *network = (tide__network){0};
    tide_status status = open_all(options, step, host, fit, network);
    if (status != TIDE_OK) tide__network_close(network);
    return status;
}

static void close_lender(struct tide__lender *l) {
    if (!l) return;
    tide__room_close(&l->room);
    free(l->state);
    free(l->source);
    free(l);
}

static void close_buffers(tide__network *n) {
    tide__batch_close(n, &n->batch);
    free(n->plain);
}

void tide__network_close(tide__network *n) {
    tide_run_destroy(n->run);
    tide_plan_destroy(n->plan);
    for (size_t i = 0; i < n->n_owned; i++) tide_kernel_destroy(n->owned[i]);
    if (!n->borrows) close_buffers(n);
    close_lender(n->lender);
    free(n->kernels);
    free(n->owned);
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
            if (op->reads[k] == tensor) return tide_operand_pack(n->kernels[i], k, plain, stored);
    }
    return tide__fail(TIDE_E_INTERNAL, "nothing reads the input");
}

tide_status tide__network_fill(const tide__network *n, const tide__batch *b, const tide_data *data,
                               tide__order_fn order, const void *context) {
    uint64_t pixels = (uint64_t)data->channels * data->height * data->width;
    uint64_t labels = data->labels ? data->labels : 1;
    uint64_t batch =
        tide_program_tensor(n->program, tide_step_label(n->step, 0))->size_bytes / sizeof(int32_t) / labels;
    for (uint32_t m = 0; m < n->n_micros; m++) {
        for (uint64_t i = 0; i < batch; i++) {
            uint64_t index = order(context, m * batch + i);
            TIDE_TRY(data->sample(data->context, index, n->plain + i * pixels, &b->labels[m][i * labels]));
        }
        TIDE_TRY(tide__network_pack_input(n, m, n->plain, b->inputs[m]));
    }
    return TIDE_OK;
}

/* ---- values ---- */

tide_status tide__network_read(const tide__network *n, tide_id tensor, void *data, uint64_t size_bytes) {
    return n->session ? tide_session_read(n->session, n->ids[tensor], data, size_bytes)
                      : tide_run_read(n->run, tensor, data, size_bytes);
}

tide_status tide__network_write(const tide__network *n, tide_id tensor, const void *data, uint64_t size_bytes) {
    return n->session ? tide_session_write(n->session, n->ids[tensor], data, size_bytes)
                      : tide_run_write(n->run, tensor, data, size_bytes);
}

void tide__step_for_inference(tide_step_options *step) {
    step->inference = true;
    step->accumulate = 0;
    step->fused_update = false;
    step->clip_norm = 0;
    step->skip_nonfinite = false;
}

/* ---- states ---- */

static uint64_t stored_bytes(const tide__network *n, uint32_t state) {
    return tide_program_tensor(n->program, tide_step_state(n->step, state)->at_start)->size_bytes;
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

/* Of the largest states. The plain one starts on a cache line. */
static void measure_room(const tide__network *n, uint64_t *stored, uint64_t *plain) {
    for (uint32_t i = 0; i < tide_step_state_count(n->step); i++) {
        uint64_t size = (stored_bytes(n, i) + 63) & ~UINT64_C(63);
        uint64_t elements = tide__elements(tide_step_state(n->step, i)->shape);
        *stored = size > *stored ? size : *stored;
        *plain = elements * sizeof(float) > *plain ? elements * sizeof(float) : *plain;
    }
}

/* In the arena of `run` if that has a free stretch; NULL: nobody's. */
static tide_status open_room(const tide__network *n, const tide__network *other, tide_run *run, tide__room *room) {
    uint64_t stored = 64, plain = 64;
    measure_room(n, &stored, &plain);
    if (other) measure_room(other, &stored, &plain);
    char *bytes = run ? tide_run_scratch(run, stored + plain) : NULL;
    room->heap = NULL;
    if (!bytes) bytes = room->heap = malloc(stored + plain);
    if (!bytes) return tide__fail_memory();
    room->stored = bytes;
    room->plain = (float *)(void *)(bytes + stored);
    return TIDE_OK;
}

tide_status tide__room_open(tide__network *n, const tide__network *other, tide__room *room) {
    return open_room(n, other, n->run, room);
}

void tide__room_close(tide__room *room) { free(room->heap); }

tide_status tide__network_write_state(tide__network *n, uint32_t index, tide__room *room) {
    const tide_state *s = tide_step_state(n->step, index);
    TIDE_TRY(tide_operand_pack(n->kernels[s->op], s->operand, room->plain, room->stored));
    return tide__network_write(n, s->at_start, room->stored, stored_bytes(n, index));
}

tide_status tide__network_read_stored(tide__network *n, uint32_t index, tide__room *room, uint64_t *size_bytes) {
    *size_bytes = stored_bytes(n, index);
    return tide__network_read(n, tide_step_state(n->step, index)->at_start, room->stored, *size_bytes);
}

tide_status tide__network_read_state(tide__network *n, uint32_t index, tide__room *room) {
    const tide_state *s = tide_step_state(n->step, index);
    uint64_t size;
    TIDE_TRY(tide__network_read_stored(n, index, room, &size));
    return tide_operand_unpack(n->kernels[s->op], s->operand, room->stored, room->plain);
}

/* ---- borrowed states ---- */

static tide_status list_sources(const tide__network *n, struct tide__lender *l) {
    uint32_t source = 0;
    for (uint32_t i = 0; i < tide_step_state_count(n->step); i++) {
        const tide_state *s = tide_step_state(n->step, i);
        if (!tide__step_find_state(l->from->step, s->name, &source))
            return tide__fail(TIDE_E_INTERNAL, "the training step has no state \"%s\"", s->name);
        l->source[i] = source;
        l->state[s->at_start] = i;
    }
    return TIDE_OK;
}

tide_status tide__network_borrow_states(tide__network *n, tide__network *from) {
    size_t tensors = tide_program_tensor_count(n->program), states = tide_step_state_count(n->step);
    struct tide__lender *l = n->lender = calloc(1, sizeof *l);
    if (!l) return tide__fail_memory();
    l->from = from;
    l->held = TIDE_NONE;
    l->state = malloc((tensors + 1) * sizeof *l->state);
    l->source = calloc(states + 1, sizeof *l->source);
    if (!l->state || !l->source) return tide__fail_memory();
    memset(l->state, 0xff, tensors * sizeof *l->state); /* TIDE_NONE in each */
    TIDE_TRY(list_sources(n, l));
    return open_room(n, from, from->run, &l->room); /* beside its guest: it is used during steps */
}
