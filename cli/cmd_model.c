/* tidemark model: one training step as a program, and what it does to memory. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"

typedef struct model_options {
    model_args model;
    const char *machine, *output, *device;
    uint32_t top;
    bool json;
} model_options;

/* The tensors alive at an op, largest first. */
typedef struct alive {
    tide_id tensor;
    uint64_t bytes;
} alive;

static int by_bytes(const void *a, const void *b) {
    const alive *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->tensor < y->tensor ? -1 : 1;
}

static alive *alive_at(const tide_program *p, const tide_liveness *l, tide_id op, size_t *n) {
    alive *list = malloc((l->n_tensors + 1) * sizeof *list);
    *n = 0;
    for (tide_id t = 0; list && t < l->n_tensors; t++)
        if (l->first[t] != TIDE_NONE && l->first[t] <= op && op <= l->last[t])
            list[(*n)++] = (alive){t, tide_program_tensor(p, t)->size_bytes};
    if (list) qsort(list, *n, sizeof *list, by_bytes);
    return list;
}

static const char *op_name(const tide_program *p, tide_id op) {
    return op == TIDE_NONE ? "-" : tide_program_op(p, op)->name;
}

static void print_human(const loaded *l, const tide_liveness *live, const alive *list, size_t n, uint32_t top) {
    const tide_program *p = l->program;
    printf("%s\n", tide_program_name(p));
    if (l->model) {
        tide_shape in = tide_model_input(l->model);
        uint64_t flops = 0;
        for (tide_id i = 0; i < tide_program_op_count(p); i++) flops += tide_step_op_flops(l->step, i);
        printf("  input              %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 "\n", in.n, in.c, in.h, in.w);
        printf("  parameters         %" PRIu64 "\n", tide_model_parameter_count(l->model));
        printf("  basic layers       %u\n", tide_model_layer_count(l->model));
        printf("  work per step      %.2f GFLOP\n", (double)flops / 1e9);
    }
    printf("  ops, tensors       %u, %u\n", tide_program_op_count(p), tide_program_tensor_count(p));
    printf("  cost of the ops    %s\n", show_ns(tide_program_cost_ns(p)));
    printf("  all tensors        %s\n", show_bytes(live->total_bytes));
    printf("  peak load          %s  at op %u %s\n", show_bytes(live->peak_bytes), live->peak_op,
           op_name(p, live->peak_op));
    printf("  always resident    %s\n", show_bytes(live->resident_bytes));
    printf("  floor, those stay  %s  at op %s\n", show_bytes(live->floor_bytes), op_name(p, live->floor_op));
    printf("  largest single op  %s  op %s\n", show_bytes(live->largest_op_bytes), op_name(p, live->largest_op));
    printf("\nalive at the peak (%zu tensors):\n", n);
    for (size_t i = 0; i < n && i < top; i++)
        printf("  %10s  %s\n", show_bytes(list[i].bytes), tide_program_tensor(p, list[i].tensor)->name);
    if (n > top) printf("  ... and %zu more (--top N)\n", n - top);
}

static void print_json(const loaded *l, const tide_liveness *live, const alive *list, size_t n) {
    const tide_program *p = l->program;
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "name", tide_program_name(p));
    if (l->model) {
        json_u64(&j, "parameters", tide_model_parameter_count(l->model));
        json_u64(&j, "layers", tide_model_layer_count(l->model));
    }
    json_bool(&j, "repeating", tide_program_is_repeating(p));
    json_u64(&j, "ops", tide_program_op_count(p));
    json_u64(&j, "tensors", tide_program_tensor_count(p));
    json_u64(&j, "cost_ns", tide_program_cost_ns(p));
    json_u64(&j, "total_bytes", live->total_bytes);
    json_u64(&j, "peak_bytes", live->peak_bytes);
    json_text(&j, "peak_op", op_name(p, live->peak_op));
    json_u64(&j, "resident_bytes", live->resident_bytes);
    json_u64(&j, "floor_bytes", live->floor_bytes);
    json_text(&j, "floor_op", op_name(p, live->floor_op));
    json_u64(&j, "largest_op_bytes", live->largest_op_bytes);
    json_text(&j, "largest_op", op_name(p, live->largest_op));
    json_open(&j, "alive_at_peak", '[');
    for (size_t i = 0; i < n; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", tide_program_tensor(p, list[i].tensor)->name);
        json_u64(&j, "bytes", list[i].bytes);
        json_close(&j, '{');
    }
    json_close(&j, '[');
    json_end(&j);
}

static tide_status show(const loaded *l, const model_options *o) {
    tide_liveness *live;
    tide_status status = tide_liveness_create(l->program, &live);
    if (status != TIDE_OK) return status;
    size_t n;
    alive *list = alive_at(l->program, live, live->peak_op, &n);
    if (!list)
        status = TIDE_E_MEMORY;
    else if (o->json)
        print_json(l, live, list, n);
    else
        print_human(l, live, list, n, o->top);
    free(list);
    tide_liveness_destroy(live);
    return status;
}

/* As the device lays it out, when one is named. */
static tide_status load(const char *spec, const model_options *o, const tide_machine *m, tide_device **device,
                        loaded *l) {
    if (!o->device) return load_program(spec, &o->model, m, l);
    tide_device_options d;
    tide_device_options_init(&d);
    tide_status status = tide_device_open(o->device, &d, device);
    if (status == TIDE_OK) status = load_model(spec, &o->model, &l->model);
    if (status == TIDE_OK) status = load_step(l->model, &o->model, m, *device, &l->step);
    if (status == TIDE_OK) l->program = tide_step_program(l->step);
    return status;
}

int cmd_model(int argc, char **argv) {
    model_options o = {.machine = "default", .top = 10};
    const char *spec = NULL;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        {"--inference", ARG_FLAG, &o.model.inference, NULL, "the forward pass of an evaluation instead"},
        {"--machine", ARG_TEXT, &o.machine, "NAME", "profile for the costs: a name or a file [default]"},
        {"--device", ARG_TEXT, &o.device, "NAME", "sizes, layouts and reorders as this device has them"},
        {"--top", ARG_COUNT, &o.top, "N", "tensors to list at the peak [10]"},
        {"-o", ARG_TEXT, &o.output, "FILE", "write the program (JSON Lines)"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs"},
    };
    const arg_command command = {
        .usage = "model MODEL|PROGRAM [options]",
        .summary = "What one training step does to memory: load, peak, what is alive there, lower bounds.",
        .details =
            "MODEL is a family such as lenet, resnet50, resnet:3,4,23,3, resnet-cifar:9, vgg16, mlp:784,512,10;\n"
            "PROGRAM is a program file (a path with '/' or '.').",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = &spec,
        .min_positional = 1,
        .max_positional = 1};
    int exit_code;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    tide_machine machine;
    tide_device *device = NULL;
    loaded l = {0};
    tide_status status = tide_machine_load(o.machine, &machine);
    if (status == TIDE_OK) status = load(spec, &o, &machine, &device, &l);
    if (status == TIDE_OK && o.output) status = tide_program_write(l.program, o.output);
    if (status == TIDE_OK) status = show(&l, &o);
    exit_code = status == TIDE_OK ? 0 : report_failure(status);
    unload(&l);
    tide_device_close(device);
    return exit_code;
}
