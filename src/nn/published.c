/* See published.h. Invariant: states with different names here have different names there. */
#include "nn/published.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the families ---- */

static const tide__name_rule plain_rules[] = {{"", "", false}};
static const tide__name_rule densenet_rules[] = {{"classifier.", "classifier.", false}, {"", "features.", false}};
/* Hugging Face's Conv1D has its matrix the other way round; its head is the table of tokens. */
static const tide__name_rule gpt2_rules[] = {{"wte.weight", "transformer.wte.weight", false},
                                             {"wte.positions", "transformer.wpe.weight", false},
                                             {"", "transformer.", true}};
static const char *const no_names[] = {NULL};
static const char *const gpt2_masks[] = {".attn.bias", ".attn.masked_bias", NULL};

const tide__naming tide__naming_plain = {.rules = plain_rules, .optional = "", .ignored = no_names},
                   tide__naming_densenet = {.rules = densenet_rules, .optional = "", .ignored = no_names},
                   tide__naming_gpt2 = {.rules = gpt2_rules,
                                        .optional = "transformer.",
                                        .copy = "lm_head.weight",
                                        .copied = "transformer.wte.weight",
                                        .ignored = gpt2_masks};

/* ---- names and shapes ---- */

static bool begins_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

static bool ends_with(const char *text, size_t length, const char *end) {
    size_t n = strlen(end);
    return length >= n && memcmp(text + length - n, end, n) == 0;
}

static const tide__name_rule *find_rule(const tide__naming *naming, const char *name) {
    const tide__name_rule *r = naming->rules;
    while (!begins_with(name, r->from)) r++;
    return r;
}

static void set_dims(const tide_state *s, tide__published *out) {
    const int64_t dims[] = {s->shape.n, s->shape.c, s->shape.h, s->shape.w};
    for (int i = 0; i < 4; i++) out->dim[i] = (uint64_t)dims[i];
    out->rank = s->rank;
    if (s->rank == 2) out->dim[1] *= out->dim[2] * out->dim[3];
}

void tide__publish(const tide__naming *naming, const tide_state *s, tide__published *out) {
    const tide__name_rule *r = find_rule(naming, s->name);
    *out = (tide__published){.transposed = r->transposed && s->rank == 2};
    snprintf(out->name, sizeof out->name, "%s%s%s", s->cls == TIDE_CLASS_OPTIMIZER ? TIDE__OPTIMIZER_PREFIX : "", r->to,
             s->name + strlen(r->from));
    set_dims(s, out);
    if (!out->transposed) return;
    uint64_t outputs = out->dim[0];
    out->dim[0] = out->dim[1];
    out->dim[1] = outputs;
}

void tide__publish_as_before(const tide_state *s, tide__published *out) {
    tide_state before = *s;
    before.rank = 4;
    *out = (tide__published){0};
    snprintf(out->name, sizeof out->name, "%s", s->name);
    set_dims(&before, out);
}

bool tide__publish_counter(const tide__naming *naming, const tide_state *s, char out[TIDE__PUBLISHED_NAME_BYTES]) {
    static const char statistic[] = ".running_var";
    tide__published p;
    if (!ends_with(s->name, strlen(s->name), statistic)) return false;
    tide__publish(naming, s, &p);
    snprintf(out, TIDE__PUBLISHED_NAME_BYTES, "%.*s.num_batches_tracked", (int)(strlen(p.name) - strlen(statistic)),
             p.name);
    return true;
}

/* ---- in files ---- */

bool tide__published_fits(const tide__published *p, const tide__array *a) {
    for (uint32_t i = 0; i < a->rank || i < p->rank; i++)
        if ((i < a->rank ? a->shape[i] : 1) != (i < p->rank ? p->dim[i] : 1)) return false;
    return true;
}

const tide__array *tide__published_find(const tide__naming *naming, const tide__published *p,
                                        const tide__safetensors *s) {
    const tide__array *a = tide__safetensors_find(s, p->name);
    if (a || !*naming->optional || !begins_with(p->name, naming->optional)) return a;
    return tide__safetensors_find(s, p->name + strlen(naming->optional));
}

bool tide__published_ignores(const tide__naming *naming, const tide__array *a) {
    static const char prefix[] = TIDE__OPTIMIZER_PREFIX;
    if (a->name_length >= strlen(prefix) && memcmp(a->name, prefix, strlen(prefix)) == 0) return true;
    if (ends_with(a->name, a->name_length, ".num_batches_tracked")) return true;
    for (const char *const *end = naming->ignored; *end; end++)
        if (ends_with(a->name, a->name_length, *end)) return true;
    return naming->copy && a->name_length == strlen(naming->copy) && memcmp(a->name, naming->copy, a->name_length) == 0;
}

void tide__dims_text(uint32_t rank, const uint64_t *dims, char out[TIDE__DIMS_TEXT_BYTES]) {
    size_t used = 0;
    snprintf(out, TIDE__DIMS_TEXT_BYTES, "one number");
    for (uint32_t i = 0; i < rank && used < TIDE__DIMS_TEXT_BYTES; i++)
        used += (size_t)snprintf(out + used, TIDE__DIMS_TEXT_BYTES - used, "%s%" PRIu64, i ? " x " : "", dims[i]);
}
