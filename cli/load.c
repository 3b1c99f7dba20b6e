/* From names on the command line to models, steps and programs. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The library's last error is set by the library only; what the command itself finds wrong is printed at once. */
static tide_status bad_argument(const char *option, const char *value, const char *wanted) {
    fprintf(stderr, "tidemark: %s: \"%s\" is not %s\n", option, value, wanted);
    return TIDE_E_ARGUMENT;
}

int report_failure(tide_status status) {
    const char *text = tide_last_error();
    if (*text)
        fprintf(stderr, "tidemark: %s\n", text);
    else if (status != TIDE_E_ARGUMENT)
        fprintf(stderr, "tidemark: %s\n", tide_status_text(status));
    return tide_status_exit_code(status);
}

static bool parse_input(const char *text, tide_model_options *o) {
    uint32_t *const dims[] = {&o->channels, &o->height, &o->width};
    for (int i = 0; i < 3; i++) {
        char *end;
        if (*text < '1' || *text > '9') return false;
        unsigned long value = strtoul(text, &end, 10);
        if (value > 1u << 20 || *end != (i < 2 ? 'x' : '\0')) return false;
        *dims[i] = (uint32_t)value;
        text = end + 1;
    }
    return true;
}

tide_status load_model(const char *spec, const model_args *args, tide_model **out) {
    tide_model_options o;
    tide_model_options_init(&o);
    o.batch = args->batch;
    o.classes = args->classes;
    if (args->input && !parse_input(args->input, &o))
        return bad_argument("--input", args->input, "CxHxW, e.g. 3x32x32");
    return tide_model_create(spec, &o, out);
}

static bool find_optimizer(const char *name, tide_optimizer *out) {
    static const char *const names[] = {
#define NAME(e, text) text,
        TIDE_OPTIMIZER_TABLE(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *out = (tide_optimizer)i;
        return true;
    }
    return false;
}

tide_status fill_step_options(const model_args *args, tide_step_options *out) {
    const char *optimizer = args->optimizer ? args->optimizer : "momentum";
    tide_step_options_init(out);
    if (!find_optimizer(optimizer, &out->optimizer))
        return bad_argument("--optimizer", optimizer, "sgd, momentum, adam or adamw");
    out->weight_decay = (float)args->weight_decay;
    out->clip_norm = (float)args->clip_norm;
    out->fused_update = args->fused_update;
    out->accumulate = args->accumulate;
    out->inference = args->inference;
    return TIDE_OK;
}

tide_status load_step(const tide_model *model, const model_args *args, const tide_machine *machine, tide_device *device,
                      tide_step **out) {
    tide_step_options o;
    tide_status status = fill_step_options(args, &o);
    if (status != TIDE_OK) return status;
    o.machine = machine;
    o.device = device;
    return tide_step_create(model, &o, out);
}

static bool is_path(const char *name) { return strchr(name, '/') || strchr(name, '.') || strcmp(name, "-") == 0; }

tide_status load_program(const char *name, const model_args *args, const tide_machine *machine, loaded *out) {
    *out = (loaded){0};
    tide_status status;
    if (is_path(name)) {
        status = tide_program_read(name, &out->file);
        out->program = out->file;
        return status;
    }
    status = load_model(name, args, &out->model);
    if (status == TIDE_OK) status = load_step(out->model, args, machine, NULL, &out->step);
    if (status == TIDE_OK)
        out->program = tide_step_program(out->step);
    else
        unload(out);
    return status;
}

void unload(loaded *l) {
    tide_step_destroy(l->step);
    tide_model_destroy(l->model);
    tide_program_destroy(l->file);
    *l = (loaded){0};
}
