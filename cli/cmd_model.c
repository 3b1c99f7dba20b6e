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

/* Optimizer states that lie in parts. */
static uint32_t states_in_parts(const tide_step *step) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) n += tide_step_state(step, i)->n_parts > 0;
    return n;
}

static void print_model(const loaded *l) {
    tide_shape in = tide_model_input(l->model);
    uint64_t flops = 0;
    for (tide_id i = 0; i < tide_program_op_count(l->program); i++) flops += tide_step_op_flops(l->step, i);
    printf("  %-18s %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 "\n", "input", in.n, in.c, in.h, in.w);
    printf("  %-18s %" PRIu64 "\n", "parameters", tide_model_parameter_count(l->model));
    printf("  %-18s %u\n", "basic layers", tide_model_layer_count(l->model));
    printf("  %-18s %.2f GFLOP\n", "work per step", (double)flops / 1e9);
    printf("  %-18s %s\n", "trained by", show_recipe(tide_model_recipe(l->model)));
    printf("  %-18s %s\n", "fresh weights", tide_model_recipe(l->model)->weights);
    const uint32_t n = states_in_parts(l->step);
    if (n) printf("  %-18s %u of %u\n", "states in parts", n, tide_step_state_count(l->step));
}

static void print_row(const char *name, uint64_t bytes, const char *remark) {
    printf("  %-18s %11s   %s\n", name, show_bytes(bytes), remark);
}

static void print_bounds(const tide_program *p, const tide_liveness *live) {
    print_row("all tensors", live->total_bytes, "if none shared bytes");
    print_row("peak load", live->peak_bytes, show_op(p, live->peak_op));
    print_row("always resident", live->resident_bytes, "weights and the like: in use all the time");
    print_row("floor", live->floor_bytes, show_op(p, live->floor_op));
    print_row("largest single op", live->largest_op_bytes, show_op(p, live->largest_op));
    printf(
        "No budget below the floor works while the always resident stay; none below the largest single op at all.\n");
}

static void print_human(const loaded *l, const tide_machine *m, const tide_liveness *live, const alive *list, size_t n,
                        uint32_t top) {
    const tide_program *p = l->program;
    printf("%s, %s\n", show_name(tide_program_name(p)), tide_program_is_repeating(p) ? "repeating" : "one-shot");
    if (l->model) print_model(l);
    printf("  %-18s %u, %u\n", "ops, tensors", tide_program_op_count(p), tide_program_tensor_count(p));
    printf("  %-18s %s", "time of the ops", show_ns(tide_program_cost_ns(p)));
    if (l->model) printf("   on machine %s (%s)", show_name(m->name), show_name(m->source));
    putchar('\n');
    print_bounds(p, live);
    printf("\nalive at the peak (%zu tensors):\n", n);
    for (size_t i = 0; i < n && i < top; i++)
        printf("  %11s  %s\n", show_bytes(list[i].bytes), show_name(tide_program_tensor(p, list[i].tensor)->name));
    if (n > top) printf("  ... and %zu more (--top N)\n", n - top);
}

static void op_json(json_out *j, const char *id_key, const char *name_key, const tide_program *p, tide_id op) {
    if (op == TIDE_NONE) return;
    json_u64(j, id_key, op);
    json_text(j, name_key, tide_program_op(p, op)->name);
}

static void recipe_json(json_out *j, const tide_training_recipe *r) {
    json_open(j, "recipe", '{');
    json_text(j, "optimizer", optimizer_name(r->optimizer));
    json_number(j, "learning_rate", (double)r->learning_rate);
    json_u64(j, "base_batch", r->base_batch);
    json_bool(j, "rate_by_root", r->rate_by_root);
    json_u64(j, "warmup_steps", r->warmup_steps);
    json_number(j, "weight_decay", (double)r->weight_decay);
    json_number(j, "clip_norm", (double)r->clip_norm);
    json_text(j, "weights", r->weights);
    json_close(j, '{');
}

static void print_json(const loaded *l, const tide_liveness *live, const alive *list, size_t n) {
    const tide_program *p = l->program;
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "name", tide_program_name(p));
    if (l->model) {
        json_u64(&j, "parameters", tide_model_parameter_count(l->model));
        json_u64(&j, "layers", tide_model_layer_count(l->model));
        json_u64(&j, "states_in_parts", states_in_parts(l->step));
        recipe_json(&j, tide_model_recipe(l->model));
    }
    json_bool(&j, "repeating", tide_program_is_repeating(p));
    json_u64(&j, "ops", tide_program_op_count(p));
    json_u64(&j, "tensors", tide_program_tensor_count(p));
    json_u64(&j, "cost_ns", tide_program_cost_ns(p));
    json_u64(&j, "total_bytes", live->total_bytes);
    json_u64(&j, "peak_bytes", live->peak_bytes);
    op_json(&j, "peak_op", "peak_op_name", p, live->peak_op);
    json_u64(&j, "resident_bytes", live->resident_bytes);
    json_u64(&j, "floor_bytes", live->floor_bytes);
    op_json(&j, "floor_op", "floor_op_name", p, live->floor_op);
    json_u64(&j, "largest_op_bytes", live->largest_op_bytes);
    op_json(&j, "largest_op", "largest_op_name", p, live->largest_op);
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

static tide_status show(const loaded *l, const tide_machine *m, const model_options *o) {
    tide_liveness *live;
    tide_status status = tide_liveness_create(l->program, &live);
    if (status != TIDE_OK) return status;
    size_t n;
    alive *list = alive_at(l->program, live, live->peak_op, &n);
    if (!list)
        status = complain(TIDE_E_MEMORY, "out of host memory");
    else if (o->json)
        print_json(l, live, list, n);
    else
        print_human(l, m, live, list, n, o->top);
    free(list);
    tide_liveness_destroy(live);
    return status;
}

/* As the device lays it out, when one is named. */
static tide_status load(const char *spec, const model_options *o, const tide_machine *m, tide_device **device,
                        loaded *l) {
    if (!o->device) return load_program(spec, &o->model, m, l);
    if (is_path(spec)) return complain(TIDE_E_ARGUMENT, "--device is for models; %s is a program file", spec);
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
        DTYPE_OPTION(o.model),
        {"--inference", ARG_FLAG, &o.model.inference, NULL, "the forward pass of an evaluation instead"},
        MACHINE_OPTION(o.machine),
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
    if (check_output(o.output, o.json) != TIDE_OK) return report_failure(TIDE_E_ARGUMENT);
    tide_machine machine;
    tide_device *device = NULL;
    loaded l = {0};
    tide_status status = tide_machine_load(o.machine, &machine);
    if (status == TIDE_OK) status = load(spec, &o, &machine, &device, &l);
    if (status == TIDE_OK && o.output) status = tide_program_write(l.program, o.output);
    if (status == TIDE_OK && !wants_stdout(o.output)) status = show(&l, &machine, &o);
    exit_code = status == TIDE_OK ? 0 : report_failure(status);
    unload(&l);
    tide_device_close(device);
    return exit_code;
}
