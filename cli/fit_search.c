/* See fit.h. Every probe is a whole plan, so probes are kept and serve all limits. Feasibility is taken to be monotone:
 * what fits larger fits smaller.
 *
 * Invariant of a search: `low` keeps the limit (or is 0), `high` does not (or is past the largest value allowed). */
#include "fit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- depth ---- */

bool fit_pattern(const char *spec, char *pattern, size_t size, uint32_t *value) {
    static const struct {
        const char *name, *full; /* a named member in the form of its family */
    } named[] = {{"resnet50", "resnet:3,4,6,3"}, {"resnet101", "resnet:3,4,23,3"}, {"resnet152", "resnet:3,8,36,3"}};
    static const struct {
        const char *prefix;
        int skip; /* numbers before the one that grows */
    } families[] = {{"resnet:", 2}, {"resnet-cifar:", 0}, {"gpt2:", 0}, {"lstm:", 0}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(spec, named[i].name) == 0) spec = named[i].full;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        size_t length = strlen(families[i].prefix);
        if (strncmp(spec, families[i].prefix, length) != 0) continue;
        const char *at = spec + length;
        for (int k = 0; at && k < families[i].skip; k++) at = (at = strchr(at, ',')) ? at + 1 : NULL;
        if (!at || *at < '1' || *at > '9') return false;
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        *value = number < UINT32_MAX ? (uint32_t)number : 0;
        return *value && snprintf(pattern, size, "%.*s*%s", (int)(at - spec), spec, end) < (int)size;
    }
    return false;
}

/* ---- one probe ---- */

enum { SPEC_BYTES = 256 };

static void spec_of(const fit_search *s, uint32_t value, char *spec) {
    const char *star = s->depth ? strchr(s->spec, '*') : NULL;
    if (star)
        snprintf(spec, SPEC_BYTES, "%.*s%u%s", (int)(star - s->spec), s->spec, value, star + 1);
    else
        snprintf(spec, SPEC_BYTES, "%s", s->spec);
}

static tide_status load_probe(const fit_search *s, uint32_t value, loaded *l) {
    char spec[SPEC_BYTES];
    model_args args = *s->model;
    spec_of(s, value, spec);
    if (!s->depth) args.batch = value;
    return load_program(spec, &args, s->machine, l);
}

/* What fits without a budget's help costs nothing; but policy none does not even do what liveness does. */
static tide_status plan_probe(const fit_search *s, const tide_program *program, fit_probe *p) {
    tide_plan *plan;
    unconstrained whole;
    tide_status status = plan_unconstrained(program, s->machine, &whole);
    if (status != TIDE_OK) return status;
    p->whole_bytes = whole.arena_bytes;
    p->step_ns = whole.step_ns;
    p->ratio = 1;
    p->plain_fits = whole.arena_bytes <= s->options.budgets.arena_bytes;
    p->fits = p->plain_fits && strcmp(s->options.policy, "none") != 0;
    if (p->fits) return TIDE_OK;
    status = tide_plan_create(program, s->machine, &s->options, NULL, &plan);
    if (tide_status_is_misfit(status)) return TIDE_OK;
    if (status != TIDE_OK) return status;
    p->fits = true;
    p->step_ns = tide_plan_prediction(plan)->step_ns;
    p->ratio = whole.step_ns ? (double)p->step_ns / (double)whole.step_ns : 1;
    tide_plan_destroy(plan);
    return TIDE_OK;
}

/* A size past 64 bits fits nowhere. */
static tide_status probe(const fit_search *s, uint32_t value, bool roughly, fit_probe *p) {
    loaded l = {0};
    *p = (fit_probe){.value = value};
    tide_status status = load_probe(s, value, &l);
    if (status == TIDE_E_OVERFLOW) return TIDE_OK;
    if (status != TIDE_OK) return status;
    p->layers = tide_model_layer_count(l.model);
    if (roughly) status = tide_plan_fits(l.program, s->machine, &s->options, &p->fits);
    p->is_rough = p->fits;
    if (status == TIDE_OK && !p->fits) status = plan_probe(s, l.program, p);
    unload(&l);
    return status;
}

/* On a terminal at once, elsewhere now and then: by processor time, so that a busy machine tells no more. */
static void show_probe(fit_search *s, uint32_t value) {
    enum { EVERY_S = 10 };
    char what[SPEC_BYTES];
    spec_of(s, value, what);
    if (!s->depth) snprintf(what, sizeof what, "batch %u", value);
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%s ...\x1b[K", show_name(what));
        fflush(stderr);
    } else if (clock() - s->shown >= (clock_t)EVERY_S * CLOCKS_PER_SEC) {
        s->shown = clock();
        fprintf(stderr, "%s ... (%zu tried)\n", show_name(what), s->n_probes);
    }
}

static fit_probe *find_probe(const fit_search *s, uint32_t value) {
    for (size_t i = 0; i < s->n_probes; i++)
        if (s->probes[i].value == value) return &s->probes[i];
    return NULL;
}

static tide_status try_value(fit_search *s, uint32_t value, bool roughly, const fit_probe **out) {
    fit_probe *known = find_probe(s, value);
    if (known && (roughly || !known->is_rough)) return *out = known, TIDE_OK;
    if (known) {
        show_probe(s, value);
        *out = known;
        return probe(s, value, false, known);
    }
    if (s->n_probes == s->capacity) {
        size_t capacity = 2 * s->capacity + 16;
        fit_probe *probes = realloc(s->probes, capacity * sizeof *probes);
        if (!probes) return complain(TIDE_E_MEMORY, "out of host memory");
        s->probes = probes;
        s->capacity = capacity;
    }
    show_probe(s, value);
    tide_status status = probe(s, value, roughly, &s->probes[s->n_probes]);
    if (status == TIDE_OK) *out = &s->probes[s->n_probes++];
    return status;
}

tide_status fit_try(fit_search *s, uint32_t value, const fit_probe **out) { return try_value(s, value, false, out); }

void fit_hide_progress(void) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\x1b[K");
}

void fit_free(fit_search *s) {
    fit_hide_progress();
    free(s->probes);
    s->probes = NULL;
    s->n_probes = s->capacity = 0;
}

/* ---- the search ---- */

static bool keeps(const fit_probe *p, fit_limit limit) {
    if (limit == FIT_LIVENESS) return p->plain_fits;
    return p->fits && (limit == FIT_ANY || p->ratio <= (limit == FIT_FREE ? 1.002 : 1.1));
}

/* What earlier searches know. */
static void recall(const fit_search *s, fit_limit limit, uint64_t *low, uint64_t *high) {
    *low = 0;
    *high = (uint64_t)s->max + 1;
    for (size_t i = 0; i < s->n_probes; i++)
        if (keeps(&s->probes[i], limit) && s->probes[i].value > *low) *low = s->probes[i].value;
    for (size_t i = 0; i < s->n_probes; i++)
        if (!keeps(&s->probes[i], limit) && s->probes[i].value > *low && s->probes[i].value < *high)
            *high = s->probes[i].value;
}

static bool is_quick(const fit_search *s) {
    bool quick = false;
    for (size_t i = 0; i < s->n_probes; i++) quick = quick || s->probes[i].is_rough;
    return quick;
}

/* Doubling while nothing is known above, the middle then. Where all that counts is whether it fits, which was quick to
 * find out, the largest comes next. */
static uint64_t next_value(const fit_search *s, fit_limit limit, uint64_t low, uint64_t high) {
    if (high <= s->max) return low + (high - low) / 2;
    if (limit == FIT_ANY && is_quick(s)) return s->max;
    uint64_t next = low ? 2 * low : s->start;
    return next < high ? next : high - 1;
}

/* The plans of liveness are quick: exact. */
static uint64_t tolerance(fit_limit limit, uint64_t low) { return limit == FIT_LIVENESS || low < 64 ? 1 : low / 64; }

tide_status fit_find(fit_search *s, fit_limit limit, const fit_probe **out) {
    uint64_t low, high;
    const fit_probe *p;
    for (recall(s, limit, &low, &high); high - low > tolerance(limit, low); recall(s, limit, &low, &high)) {
        tide_status status = try_value(s, (uint32_t)next_value(s, limit, low, high), limit == FIT_ANY, &p);
        if (status != TIDE_OK) return status;
    }
    *out = NULL;
    return low ? fit_try(s, (uint32_t)low, out) : TIDE_OK;
}
