/* See network.h. */
#include "nn/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

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

static tide_status create_kernels(tide__network *n, tide_device *device) {
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
    return tide_kernel_enqueue(n->kernels[call->op], call->variant, call->queue, call->arena, call->offsets,
                               call->n_offsets, &args);
}

static tide_status give_input(void *context, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes) {
    const tide__network *n = context;
    for (uint32_t m = 0; m < n->n_micros; m++) {
        const void *source = tensor == tide_step_input(n->step, m)   ? (const void *)n->inputs[m]
                             : tensor == tide_step_label(n->step, m) ? (const void *)n->labels[m]
                                                                     : NULL;
        if (!source) continue;
        memcpy(data, (const char *)source + position, size_bytes);
        return TIDE_OK;
    }
    return tide__fail(TIDE_E_INTERNAL, "tensor %u is no input", tensor);
}

/* ---- opening ---- */

static tide_status open_plan(const tide_trainer_options *o, tide_fit_report *fit, tide__network *n) {
    tide_device_info info;
    n->machine = *o->machine;
    TIDE_TRY(tide_device_get_info(o->device, &info));
    if (n->machine.align_bytes < info.align_bytes) n->machine.align_bytes = info.align_bytes;
    TIDE_TRY(tide_plan_create(n->program, &n->machine, &o->plan, fit, &n->plan));
    tide_run_options run;
    tide_run_options_init(&run);
    run.device = o->device;
    run.program = n->program;
    run.machine = &n->machine;
    run.plan = n->plan;
    run.budgets = o->plan.budgets;
    run.op = run_op;
    run.input = give_input;
    run.op_context = run.input_context = n;
    run.disk_path = o->disk_path;
    return tide_run_create(&run, &n->run);
}

static tide_status open_buffers(const tide_model *model, tide__network *n) {
    tide_shape shape = tide_model_input(model);
    n->plain = malloc(tide__elements(shape) * sizeof *n->plain);
    n->inputs = calloc(n->n_micros, sizeof *n->inputs);
    n->labels = calloc(n->n_micros, sizeof *n->labels);
    if (!n->plain || !n->inputs || !n->labels) return tide__fail_memory();
    for (uint32_t m = 0; m < n->n_micros; m++) {
        n->inputs[m] = malloc(tide_program_tensor(n->program, tide_step_input(n->step, m))->size_bytes);
        n->labels[m] = malloc(tide_program_tensor(n->program, tide_step_label(n->step, m))->size_bytes);
        if (!n->inputs[m] || !n->labels[m]) return tide__fail_memory();
    }
    return TIDE_OK;
}

static tide_status open_all(const tide_trainer_options *o, const tide_step_options *step, tide_fit_report *fit,
                            tide__network *n) {
    tide_step_options with_device = *step;
    with_device.device = o->device;
    with_device.machine = o->machine;
    n->n_micros = step->accumulate > 1 ? step->accumulate : 1;
    TIDE_TRY(tide_step_create(o->model, &with_device, &n->step));
    n->program = tide_step_program(n->step);
    TIDE_TRY(create_kernels(n, o->device));
    TIDE_TRY(open_plan(o, fit, n));
    return open_buffers(o->model, n);
}

tide_status tide__network_open(const tide_trainer_options *options, const tide_step_options *step, tide_fit_report *fit,
                               tide__network *network) {
    *network = (tide__network){0};
    tide_status status = open_all(options, step, fit, network);
    if (status != TIDE_OK) tide__network_close(network);
    return status;
}

void tide__network_close(tide__network *n) {
    tide_run_destroy(n->run);
    tide_plan_destroy(n->plan);
    for (size_t i = 0; i < n->n_owned; i++) tide_kernel_destroy(n->owned[i]);
    for (uint32_t m = 0; m < n->n_micros; m++) {
        if (n->inputs) free(n->inputs[m]);
        if (n->labels) free(n->labels[m]);
    }
    free(n->kernels);
    free(n->owned);
    free(n->inputs);
    free(n->labels);
    free(n->plain);
    tide_step_destroy(n->step);
    *n = (tide__network){0};
}

/* ---- batches ---- */

/* The op that reads an input, and which of its operands that is, know the input's layout. */
static tide_status pack_input(const tide__network *n, uint32_t micro) {
    tide_id tensor = tide_step_input(n->step, micro);
    for (tide_id i = 0; i < tide_program_op_count(n->program); i++) {
        const tide_op *op = tide_program_op(n->program, i);
        for (uint32_t k = 0; k < op->n_reads; k++)
            if (op->reads[k] == tensor) return tide_operand_pack(n->kernels[i], k, n->plain, n->inputs[micro]);
    }
    return tide__fail(TIDE_E_INTERNAL, "nothing reads the input");
}

tide_status tide__network_fill(tide__network *n, const tide_data *data, tide__order_fn order, const void *context) {
    uint64_t pixels = (uint64_t)data->channels * data->height * data->width;
    uint64_t batch = tide_program_tensor(n->program, tide_step_label(n->step, 0))->size_bytes / sizeof(int32_t);
    for (uint32_t m = 0; m < n->n_micros; m++) {
        for (uint64_t i = 0; i < batch; i++) {
            uint64_t index = order(context, m * batch + i);
            TIDE_TRY(data->sample(data->context, index, n->plain + i * pixels, &n->labels[m][i]));
        }
        TIDE_TRY(pack_input(n, m));
    }
    return TIDE_OK;
}

/* ---- states ---- */

tide_status tide__network_write_state(tide__network *n, uint32_t index, const float *plain) {
    const tide_state *s = tide_step_state(n->step, index);
    uint64_t size = tide_program_tensor(n->program, s->at_start)->size_bytes;
    void *stored = malloc(size);
    if (!stored) return tide__fail_memory();
    tide_status status = tide_operand_pack(n->kernels[s->op], s->operand, plain, stored);
    if (status == TIDE_OK) status = tide_run_write(n->run, s->at_start, stored, size);
    free(stored);
    return status;
}

tide_status tide__network_read_state(tide__network *n, uint32_t index, float *plain) {
    const tide_state *s = tide_step_state(n->step, index);
    uint64_t size = tide_program_tensor(n->program, s->at_start)->size_bytes;
    void *stored = malloc(size);
    if (!stored) return tide__fail_memory();
    tide_status status = tide_run_read(n->run, s->at_start, stored, size);
    if (status == TIDE_OK) status = tide_operand_unpack(n->kernels[s->op], s->operand, stored, plain);
    free(stored);
    return status;
}
