/* See checkpoint_keys.h. All values are strings, as the format wants it; floats have nine digits, which give back the same
 * bits. */
#include "nn/checkpoint_keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/parts.h"
#include "nn/schedule.h"
#include "nn/step.h"

static const char format_name[] = "tidemark-checkpoint";
/* 3: optimizer state is row-major as well; that is still read. */
enum { OLDEST_VERSION = 3, VERSION = TIDE__CHECKPOINT_PUBLISHED };

static const char *optimizer_name(tide_optimizer o) {
    static const char *const names[] = {
#define OPTIMIZER_NAME(e, name) name,
        TIDE_OPTIMIZER_TABLE(OPTIMIZER_NAME)
#undef OPTIMIZER_NAME
    };
    return names[o];
}

static const char *const curve_names[] = {
#define CURVE_NAME(e, name) name,
    TIDE_CURVE_TABLE(CURVE_NAME)
#undef CURVE_NAME
};

/* ---- writing ---- */

static void write_text(FILE *f, const char *key, const char *text) {
    fprintf(f, ",\"%s\":", key);
    tide__json_write_string(f, text);
}

static void write_u64(FILE *f, const char *key, uint64_t value) { fprintf(f, ",\"%s\":\"%" PRIu64 "\"", key, value); }
static void write_float(FILE *f, const char *key, float value) { fprintf(f, ",\"%s\":\"%.9g\"", key, (double)value); }

static void write_schedule(FILE *f, float rate, const tide_schedule *s) {
    write_float(f, "learning_rate", rate);
    write_text(f, "schedule", curve_names[s->curve]);
    write_u64(f, "warmup_steps", s->warmup_steps);
    write_u64(f, "period_steps", s->period_steps);
    write_float(f, "factor", s->factor);
    write_u64(f, "total_steps", s->total_steps);
    write_float(f, "final_share", s->final_share);
}

void tide__checkpoint_write_keys(FILE *f, const tide_trainer *t) {
    const tide_trainer_options *o = &t->options;
    fprintf(f, "\"__metadata__\":{\"format\":\"%s\",\"version\":\"%d\"", format_name, VERSION);
    write_text(f, "model", tide_model_name(o->model));
    write_text(f, "optimizer", optimizer_name(o->step.optimizer));
    write_text(f, "data", o->data->name);
    write_u64(f, "samples", o->data->n_samples);
    write_u64(f, "batch", t->batch);
    write_u64(f, "accumulate", tide__step_micros(&o->step));
    write_float(f, "weight_decay", o->step.weight_decay);
    write_float(f, "clip_norm", o->step.clip_norm);
    write_u64(f, "seed", o->seed);
    if (o->n_parts) write_u64(f, "parts", tide__parts_fingerprint(o));
    write_schedule(f, o->learning_rate, &o->schedule);
    write_u64(f, "step", t->step);
    write_u64(f, "seen", t->seen);
    fputc('}', f);
}

/* ---- checking ---- */

static tide_status read_float(const tide__safetensors *s, const char *key, float *out) {
    char text[64], *end;
    TIDE_TRY(tide__safetensors_text(s, key, text, sizeof text));
    float value = strtof(text, &end);
    if (end == text || *end || !isfinite(value))
        return tide__fail(TIDE_E_FORMAT, "\"%s\" of \"__metadata__\" is not a number", key);
    *out = value;
    return TIDE_OK;
}

static tide_status check_text(const tide__safetensors *s, const char *key, const char *ours) {
    char theirs[256];
    TIDE_TRY(tide__safetensors_text(s, key, theirs, sizeof theirs));
    if (strcmp(theirs, ours) == 0) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "its %s is \"%s\", here it is \"%s\"", key, theirs, ours);
}

static tide_status check_u64(const tide__safetensors *s, const char *key, uint64_t ours) {
    uint64_t theirs;
    TIDE_TRY(tide__safetensors_u64(s, key, &theirs));
    if (theirs == ours) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "its %s is %" PRIu64 ", here it is %" PRIu64, key, theirs, ours);
}

static tide_status read_version(const tide__safetensors *s, uint64_t *out) {
    TIDE_TRY(tide__safetensors_u64(s, "version", out));
    if (*out >= OLDEST_VERSION && *out <= VERSION) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "its version is %" PRIu64 ", here it is %d", *out, VERSION);
}

static tide_status check_float(const tide__safetensors *s, const char *key, float ours) {
    float theirs;
    TIDE_TRY(read_float(s, key, &theirs));
    if (theirs == ours) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "its %s is %.9g, here it is %.9g", key, (double)theirs, (double)ours);
}

static tide_status check_parts(const tide__safetensors *s, const tide_trainer_options *o) {
    uint64_t theirs = 0;
    if (tide__safetensors_has(s, "parts")) TIDE_TRY(tide__safetensors_u64(s, "parts", &theirs));
    if (theirs == tide__parts_fingerprint(o)) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "its network changes from step to step in another way, or not at all");
}

tide_status tide__checkpoint_check_keys(const tide_trainer *t, const tide__safetensors *s) {
    const tide_trainer_options *o = &t->options;
    uint64_t version;
    TIDE_TRY(check_text(s, "format", format_name));
    TIDE_TRY(read_version(s, &version));
    TIDE_TRY(check_text(s, "model", tide_model_name(o->model)));
    TIDE_TRY(check_text(s, "optimizer", optimizer_name(o->step.optimizer)));
    TIDE_TRY(check_text(s, "data", o->data->name));
    TIDE_TRY(check_u64(s, "samples", o->data->n_samples));
    TIDE_TRY(check_u64(s, "batch", t->batch));
    TIDE_TRY(check_u64(s, "accumulate", tide__step_micros(&o->step)));
    TIDE_TRY(check_float(s, "weight_decay", o->step.weight_decay));
    TIDE_TRY(check_float(s, "clip_norm", o->step.clip_norm));
    TIDE_TRY(check_u64(s, "seed", o->seed));
    return check_parts(s, o);
}

bool tide__checkpoint_is_before(const tide__safetensors *s) {
    uint64_t version;
    char format[sizeof format_name];
    return tide__safetensors_text(s, "format", format, sizeof format) == TIDE_OK && strcmp(format, format_name) == 0 &&
           tide__safetensors_u64(s, "version", &version) == TIDE_OK && version < TIDE__CHECKPOINT_PUBLISHED;
}

/* ---- reading ---- */

static tide_status read_curve(const tide__safetensors *s, tide_curve *out) {
    char text[64];
    TIDE_TRY(tide__safetensors_text(s, "schedule", text, sizeof text));
    for (size_t i = 0; i < sizeof curve_names / sizeof *curve_names; i++) {
        if (strcmp(curve_names[i], text) != 0) continue;
        *out = (tide_curve)i;
        return TIDE_OK;
    }
    return tide__fail(TIDE_E_FORMAT, "its schedule \"%s\" is not known", text);
}

static tide_status read_schedule(const tide__safetensors *s, tide_schedule *out) {
    TIDE_TRY(read_curve(s, &out->curve));
    TIDE_TRY(tide__safetensors_u64(s, "warmup_steps", &out->warmup_steps));
    TIDE_TRY(tide__safetensors_u64(s, "period_steps", &out->period_steps));
    TIDE_TRY(read_float(s, "factor", &out->factor));
    TIDE_TRY(tide__safetensors_u64(s, "total_steps", &out->total_steps));
    TIDE_TRY(read_float(s, "final_share", &out->final_share));
    return tide__schedule_check(out) == TIDE_OK ? TIDE_OK
                                                : tide__fail(TIDE_E_FORMAT, "its schedule of the rate makes no sense");
}

tide_status tide__checkpoint_read_keys(const tide__safetensors *s, tide__checkpoint_state *out) {
    TIDE_TRY(read_version(s, &out->version));
    TIDE_TRY(tide__safetensors_u64(s, "step", &out->step));
    TIDE_TRY(tide__safetensors_u64(s, "seen", &out->seen));
    if (out->seen >> 62) return tide__fail(TIDE_E_FORMAT, "it has seen %" PRIu64 " samples", out->seen);
    TIDE_TRY(read_float(s, "learning_rate", &out->learning_rate));
    return read_schedule(s, &out->schedule);
}
