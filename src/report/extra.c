/* See extra.h. A comparison is a format: keys that are not known are refused. What a training prints is not one: figures
 * that the report has no use for are passed over. */
#include "report/extra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

static tide_status copy_text(const tide__json *doc, uint32_t node, const char *what, char out[TIDE__EXTRA_NAME_BYTES]) {
    if (!node || doc->nodes.data[node].type != TIDE__JSON_STRING)
        return tide__fail(TIDE_E_FORMAT, "\"%s\" is not a text", what);
    size_t length = doc->nodes.data[node].length;
    if (length >= TIDE__EXTRA_NAME_BYTES) length = TIDE__EXTRA_NAME_BYTES - 1;
    memcpy(out, doc->nodes.data[node].text, length);
    out[length] = '\0';
    return TIDE_OK;
}

typedef struct figure {
    const char *key;
    uint64_t *out;
    bool needed;
} figure;

static tide_status read_figures(const tide__json *doc, uint32_t object, const figure *figures, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t node = tide__json_get(doc, object, figures[i].key);
        if (node) TIDE_TRY(tide__json_u64(doc, node, figures[i].key, (uint64_t)1 << 62, figures[i].out));
        if (!node && figures[i].needed) return tide__fail(TIDE_E_FORMAT, "\"%s\" is missing", figures[i].key);
    }
    return TIDE_OK;
}

/* A number that JSON has no form for stands as null. */
static tide_status read_number(const tide__json *doc, uint32_t object, const char *key, double *out) {
    uint32_t node = tide__json_get(doc, object, key);
    *out = NAN;
    if (!node || doc->nodes.data[node].type == TIDE__JSON_NULL) return TIDE_OK;
    return tide__json_double(doc, node, key, out);
}

static tide_status open_list(const tide__json *doc, const char *key, uint32_t *list) {
    if (doc->nodes.data[0].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "not a JSON object");
    *list = tide__json_get(doc, 0, key);
    if (!*list || doc->nodes.data[*list].type != TIDE__JSON_ARRAY || doc->nodes.data[*list].count == 0)
        return tide__fail(TIDE_E_FORMAT, "\"%s\" is not a list with something in it", key);
    return TIDE_OK;
}

/* ---- measured ---- */

static tide_status read_run(const tide__json *doc, uint32_t node, tide__measured_run *run) {
    const figure figures[] = {{"arena_bytes", &run->arena_bytes, true},
                              {"tier_bytes", &run->tier_bytes, false},
                              {"step_ns", &run->step_ns, true},
                              {"saved_bytes", &run->saved_bytes, false},
                              {"loaded_bytes", &run->loaded_bytes, false},
                              {"disk_written_bytes", &run->disk_written_bytes, false},
                              {"disk_read_bytes", &run->disk_read_bytes, false},
                              {"reruns", &run->reruns, false}};
    if (doc->nodes.data[node].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "a run is not an object");
    TIDE_TRY(copy_text(doc, tide__json_get(doc, node, "policy"), "policy", run->policy));
    TIDE_TRY(read_figures(doc, node, figures, sizeof figures / sizeof *figures));
    TIDE_TRY(read_number(doc, node, "last_loss", &run->last_loss));
    TIDE_TRY(read_number(doc, node, "accuracy", &run->accuracy));
    uint32_t same = tide__json_get(doc, node, "same_bits");
    run->compared = same != 0;
    return same ? tide__json_bool(doc, same, "same_bits", &run->same_bits) : TIDE_OK;
}

static tide_status read_measured(const tide__json *doc, tide__measured *out) {
    uint32_t list;
    TIDE_TRY(open_list(doc, "runs", &list));
    TIDE_TRY(copy_text(doc, tide__json_get(doc, 0, "model"), "model", out->model));
    TIDE_TRY(read_figures(doc, 0, &(figure){"steps", &out->steps, true}, 1));
    for (uint32_t i = list + 1; i < doc->nodes.data[list].next; i = doc->nodes.data[i].next) {
        tide__measured_run run = {0};
        TIDE_TRY(read_run(doc, i, &run));
        TIDE_TRY(tide__vec_push(&out->runs, run));
    }
    return TIDE_OK;
}

/* ---- compared ---- */

static tide_status read_point(const tide__json *doc, uint32_t node, tide__point *p) {
    static const char *const keys[] = {"policy",
                                       "fits",
                                       "budget_bytes",
                                       "arena_bytes",
                                       "step_ns",
                                       "peak_bytes",
                                       "needed_bytes",
                                       "bound_bytes",
                                       "recomputed_ns",
                                       "moved_bytes",
                                       "relocated_bytes",
                                       "relocated_ns",
                                       "exposed_ns",
                                       "planning_ns",
                                       "budget",
                                       "tier",
                                       "tier_needed_bytes",
                                       "tier_has_bytes",
                                       NULL};
    if (doc->nodes.data[node].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "a point is not an object");
    TIDE_TRY(tide__json_only(doc, node, keys));
    TIDE_TRY(copy_text(doc, tide__json_get(doc, node, "policy"), "policy", p->policy));
    uint32_t fits = tide__json_get(doc, node, "fits");
    p->fits = true;
    if (fits) TIDE_TRY(tide__json_bool(doc, fits, "fits", &p->fits));
    const figure figures[] = {{"budget_bytes", &p->budget_bytes, false},
                              {"arena_bytes", &p->arena_bytes, p->fits},
                              {"step_ns", &p->step_ns, p->fits}};
    return read_figures(doc, node, figures, sizeof figures / sizeof *figures);
}

static tide_status read_compared(const tide__json *doc, tide__compared *out) {
    static const char *const keys[] = {"tidemark", "version", "program", "machine", "unconstrained", "points", NULL};
    static const char *const whole_keys[] = {"arena_bytes", "step_ns", NULL};
    uint32_t list;
    uint64_t version = 0;
    TIDE_TRY(open_list(doc, "points", &list));
    if (!tide__json_is(doc, tide__json_get(doc, 0, "tidemark"), "compare"))
        return tide__fail(TIDE_E_FORMAT, "not a comparison: \"tidemark\" is not \"compare\"");
    TIDE_TRY(tide__json_only(doc, 0, keys));
    TIDE_TRY(read_figures(doc, 0, &(figure){"version", &version, true}, 1));
    if (version != 1) return tide__fail(TIDE_E_FORMAT, "version %llu is not known", (unsigned long long)version);
    TIDE_TRY(copy_text(doc, tide__json_get(doc, 0, "program"), "program", out->program));
    TIDE_TRY(copy_text(doc, tide__json_get(doc, 0, "machine"), "machine", out->machine));
    uint32_t whole = tide__json_get(doc, 0, "unconstrained");
    if (!whole || doc->nodes.data[whole].type != TIDE__JSON_OBJECT)
        return tide__fail(TIDE_E_FORMAT, "\"unconstrained\" is not an object");
    TIDE_TRY(tide__json_only(doc, whole, whole_keys));
    const figure figures[] = {{"arena_bytes", &out->whole_bytes, true}, {"step_ns", &out->whole_ns, true}};
    TIDE_TRY(read_figures(doc, whole, figures, 2));
    for (uint32_t i = list + 1; i < doc->nodes.data[list].next; i = doc->nodes.data[i].next) {
        tide__point point = {0};
        TIDE_TRY(read_point(doc, i, &point));
        TIDE_TRY(tide__vec_push(&out->points, point));
    }
    return TIDE_OK;
}

/* ---- files ---- */

static tide_status parse(const char *text, size_t size, tide__json *doc) {
    if (size > (size_t)4 << 20) return tide__fail(TIDE_E_FORMAT, "over 4 MiB");
    return tide__json_parse(doc, text, size);
}

tide_status tide__measured_read_memory(const char *text, size_t size, const char *name, tide__measured *out) {
    tide__json doc = {0};
    tide__measured m = {0};
    tide_status status = parse(text, size, &doc);
    if (status == TIDE_OK) status = read_measured(&doc, &m);
    if (status == TIDE_OK)
        *out = m;
    else
        tide__measured_free(&m);
    tide__json_free(&doc);
    return status == TIDE_E_FORMAT ? tide__fail_in(status, "%s", name) : status;
}

tide_status tide__compared_read_memory(const char *text, size_t size, const char *name, tide__compared *out) {
    tide__json doc = {0};
    tide__compared c = {0};
    tide_status status = parse(text, size, &doc);
    if (status == TIDE_OK) status = read_compared(&doc, &c);
    if (status == TIDE_OK)
        *out = c;
    else
        tide__compared_free(&c);
    tide__json_free(&doc);
    return status == TIDE_E_FORMAT ? tide__fail_in(status, "%s", name) : status;
}

tide_status tide__measured_read(const char *path, tide__measured *out) {
    tide__file file;
    TIDE_TRY(tide__file_open(path, &file));
    tide_status status = tide__measured_read_memory(file.text, file.size, path, out);
    tide__file_close(&file);
    return status;
}

tide_status tide__compared_read(const char *path, tide__compared *out) {
    tide__file file;
    TIDE_TRY(tide__file_open(path, &file));
    tide_status status = tide__compared_read_memory(file.text, file.size, path, out);
    tide__file_close(&file);
    return status;
}

void tide__measured_free(tide__measured *m) { tide__vec_free(&m->runs); }
void tide__compared_free(tide__compared *c) { tide__vec_free(&c->points); }
