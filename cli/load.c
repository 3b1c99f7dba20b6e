/* From names on the command line to models, steps and programs; and how failures are told. */
#include <float.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* ---- failures ---- */

/* A status that the command made itself says nothing about the library's last error, which may be an old one. */
static bool told;

tide_status complain(tide_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("tidemark: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    told = true;
    return status;
}

int report_failure(tide_status status) {
    const char *text = tide_last_error();
    if (!told && status != TIDE_E_PEER) fprintf(stderr, "tidemark: %s\n", *text ? text : tide_status_text(status));
    told = false;
    return tide_status_exit_code(status);
}

/* ---- models ---- */

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

tide_status count_micros(const model_args *args, uint32_t *out) {
    uint32_t batch = args->batch ? args->batch : 32;
    if (args->micro && args->accumulate)
        return complain(TIDE_E_ARGUMENT, "--micro and --accumulate both cut a step into micro-batches; leave one out");
    if (args->micro && batch % args->micro != 0)
        return complain(TIDE_E_ARGUMENT, "--micro: a batch of %u is no whole number of micro-batches of %u", batch,
                        args->micro);
    *out = args->micro ? batch / args->micro : args->accumulate ? args->accumulate : 1;
    return TIDE_OK;
}

tide_status load_model(const char *spec, const model_args *args, tide_model **out) {
    return load_variation(spec, args, &(model_variation){0}, out);
}

tide_status load_variation(const char *spec, const model_args *args, const model_variation *v, tide_model **out) {
    tide_model_options o;
    tide_model_options_init(&o);
    o.batch = args->micro ? args->micro : args->batch;
    o.classes = args->classes;
    o.skip = v->skip;
    o.n_skip = v->n_skip;
    o.length = v->length;
    if (args->input && !parse_input(args->input, &o))
        return complain(TIDE_E_ARGUMENT, "--input: \"%s\" is not CxHxW, e.g. 3x32x32", args->input);
    return tide_model_create(spec, &o, out);
}

static const char *const optimizer_names[] = {
#define NAME(e, text) [e] = text,
    TIDE_OPTIMIZER_TABLE(NAME)
#undef NAME
};

const char *optimizer_name(tide_optimizer optimizer) { return optimizer_names[optimizer]; }

static bool find_optimizer(const char *name, tide_optimizer *out) {
    for (size_t i = 0; i < sizeof optimizer_names / sizeof *optimizer_names; i++) {
        if (strcmp(optimizer_names[i], name) != 0) continue;
        *out = (tide_optimizer)i;
        return true;
    }
    return false;
}

static bool find_dtype(const char *name, tide_dtype *out) {
    static const struct {
        const char *name;
        tide_dtype dtype;
    } known[] = {{"f32", TIDE_F32}, {"bf16", TIDE_BF16}, {"f16", TIDE_F16}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return *out = known[i].dtype, true;
    return false;
}

/* A fused update cannot wait for a norm: then the recipe's clipping is left out, that of the command line refused. */
static void follow_recipe(const model_args *args, const tide_training_recipe *recipe, tide_step_options *out) {
    out->optimizer = recipe->optimizer;
    out->weight_decay = recipe->weight_decay;
    out->clip_norm = args->fused_update ? 0 : recipe->clip_norm;
}

tide_status fill_step_options(const model_args *args, const tide_model *model, tide_step_options *out) {
    tide_step_options_init(out);
    follow_recipe(args, tide_model_recipe(model), out);
    if (args->optimizer && !find_optimizer(args->optimizer, &out->optimizer))
        return complain(TIDE_E_ARGUMENT, "--optimizer: \"%s\" is not sgd, momentum, adam or adamw", args->optimizer);
    if (args->weight_decay.value > (double)FLT_MAX || args->clip_norm.value > (double)FLT_MAX)
        return complain(TIDE_E_ARGUMENT, "--weight-decay and --clip-norm must fit a float");
    if (args->weight_decay.given) out->weight_decay = (float)args->weight_decay.value;
    if (args->clip_norm.given) out->clip_norm = (float)args->clip_norm.value;
    if (args->dtype && !find_dtype(args->dtype, &out->dtype))
        return complain(TIDE_E_ARGUMENT, "--dtype: \"%s\" is not f32, bf16 or f16", args->dtype);
    out->fused_update = args->fused_update;
    out->skip_nonfinite = args->skip_nonfinite;
    out->inference = args->inference;
    return count_micros(args, &out->accumulate);
}

/* Once: `fit` loads many steps. */
static void tell_rate(const tide_step_options *o) {
    static bool has_told;
    if (o->dtype == TIDE_F32 || o->device || !o->machine || o->machine->half_flops_per_s > 0 || has_told) return;
    has_told = true;
    fprintf(stderr, "tidemark: machine %s states no rate for bf16 and f16: products run at that of f32\n",
            show_name(o->machine->name));
}

tide_status load_step(const tide_model *model, const model_args *args, const tide_machine *machine, tide_device *device,
                      tide_step **out) {
    tide_step_options o;
    tide_status status = fill_step_options(args, model, &o);
    if (status != TIDE_OK) return status;
    o.machine = machine;
    o.device = device;
    tell_rate(&o);
    return tide_step_create(model, &o, out);
}

/* ---- programs ---- */

bool is_path(const char *name) { return strchr(name, '/') || strchr(name, '.') || strcmp(name, "-") == 0; }

/* The first option that shapes a model, as it was given; NULL if none was. */
static const char *model_option(const model_args *a) {
    if (a->batch) return "--batch";
    if (a->input) return "--input";
    if (a->classes) return "--classes";
    if (a->optimizer) return "--optimizer";
    if (a->weight_decay.given) return "--weight-decay";
    if (a->dtype) return "--dtype";
    if (a->fused_update) return "--fused-update";
    if (a->micro) return "--micro";
    if (a->accumulate) return "--accumulate";
    if (a->clip_norm.given) return "--clip-norm";
    return a->inference ? "--inference" : NULL;
}

tide_status refuse_model_options(const model_args *args, const char *path) {
    const char *option = model_option(args);
    return option ? complain(TIDE_E_ARGUMENT, "%s is for models; %s is a program file", option, path) : TIDE_OK;
}

static tide_status load_file(const char *path, const model_args *args, loaded *out) {
    tide_status status = refuse_model_options(args, path);
    if (status == TIDE_OK) status = tide_program_read(path, &out->file);
    out->program = out->file;
    return status;
}

/* What stands before a ':' is the name of a model family. */
static bool is_family(const char *name) {
    size_t length = strcspn(name, ":");
    const char *family, *summary;
    for (uint32_t i = 0; (family = tide_model_family(i, &summary)) != NULL; i++)
        if (strcspn(family, ":") == length && strncmp(family, name, length) == 0) return true;
    return false;
}

tide_status load_program(const char *name, const model_args *args, const tide_machine *machine, loaded *out) {
    *out = (loaded){0};
    if (is_path(name)) return load_file(name, args, out);
    if (!is_family(name) && access(name, R_OK) == 0)
        return complain(TIDE_E_ARGUMENT, "%s is not a model; if you mean the file, write ./%s", name, name);
    tide_status status = load_model(name, args, &out->model);
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
