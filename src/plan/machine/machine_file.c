/* Machine profiles as files: one JSON object (docs/formats.md, "Machine profiles"). Profiles are hostile input: every
 * key is known, every number in range, and the whole passes tide_machine_validate before anybody sees it. */
#include <tidemark/machine.h>

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "plan/files.h"
#include "plan/machine/profile_read.h"

enum { FORMAT_VERSION = 1, MAX_PROFILE_BYTES = 1 << 20 };

static const char *const TIER_KINDS[] = {
#define TIER_KIND_NAME(e, name) [e] = name,
    TIDE_TIER_TABLE(TIER_KIND_NAME)
#undef TIER_KIND_NAME
};

/* ---- reading ---- */

tide_status tide__profile_find(const tide__json *doc, uint32_t object, const char *key, uint32_t *out) {
    uint32_t node = tide__json_get(doc, object, key);
    if (!node) return tide__fail(TIDE_E_FORMAT, "%s is missing", key);
    *out = node;
    return TIDE_OK;
}

tide_status tide__profile_u64(const tide__json *doc, uint32_t object, const char *key, uint64_t max, uint64_t *out) {
    return tide__json_u64(doc, tide__json_get(doc, object, key), key, max, out);
}

tide_status tide__profile_u32(const tide__json *doc, uint32_t object, const char *key, uint32_t *out) {
    uint64_t value;
    TIDE_TRY(tide__profile_u64(doc, object, key, UINT32_MAX, &value));
    *out = (uint32_t)value;
    return TIDE_OK;
}

static tide_status read_double(const tide__json *doc, uint32_t object, const char *key, double *out) {
    return tide__json_double(doc, tide__json_get(doc, object, key), key, out);
}

tide_status tide__profile_text(const tide__json *doc, uint32_t object, const char *key, char *out) {
    uint32_t node;
    TIDE_TRY(tide__profile_find(doc, object, key, &node));
    const tide__json_node *n = &doc->nodes.data[node];
    if (n->type != TIDE__JSON_STRING) return tide__fail(TIDE_E_FORMAT, "%s: expected a string", key);
    if (n->length == 0 || n->length >= TIDE_MACHINE_NAME_BYTES)
        return tide__fail(TIDE_E_FORMAT, "%s: expected 1 to %d bytes", key, TIDE_MACHINE_NAME_BYTES - 1);
    memcpy(out, n->text, n->length);
    out[n->length] = '\0';
    return TIDE_OK;
}

static tide_status read_tier(const tide__json *doc, uint32_t node, tide_machine_tier *out) {
    static const char *const keys[] = {"name", "kind", "capacity_bytes", "block_bytes", NULL};
    if (doc->nodes.data[node].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "expected an object");
    TIDE_TRY(tide__json_only(doc, node, keys));
    TIDE_TRY(tide__profile_text(doc, node, "name", out->name));
    uint32_t kind;
    TIDE_TRY(tide__profile_find(doc, node, "kind", &kind));
    size_t k = 0, n = sizeof TIER_KINDS / sizeof *TIER_KINDS;
    while (k < n && !tide__json_is(doc, kind, TIER_KINDS[k])) k++;
    if (k == n) return tide__fail(TIDE_E_FORMAT, "kind: expected \"ram\", \"disk\", \"client\", \"peer\" or \"lent\"");
    out->kind = (tide_tier_kind)k;
    out->capacity_bytes = UINT64_MAX;
    if (tide__json_get(doc, node, "capacity_bytes"))
        TIDE_TRY(tide__profile_u64(doc, node, "capacity_bytes", UINT64_MAX, &out->capacity_bytes));
    return tide__profile_u32(doc, node, "block_bytes", &out->block_bytes);
}

static tide_status read_channel(const tide__json *doc, uint32_t node, const tide_machine *m,
                                tide_machine_channel *out) {
    static const char *const keys[] = {"tier", "direction", "bytes_per_s", "latency_ns", "share", "drag_percent", NULL};
    if (doc->nodes.data[node].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "expected an object");
    TIDE_TRY(tide__json_only(doc, node, keys));
    uint32_t tier, direction;
    TIDE_TRY(tide__profile_find(doc, node, "tier", &tier));
    out->tier = 0;
    while (out->tier < m->n_tiers && !tide__json_is(doc, tier, m->tier[out->tier].name)) out->tier++;
    if (out->tier == m->n_tiers) return tide__fail(TIDE_E_FORMAT, "tier: expected the name of a tier");
    TIDE_TRY(tide__profile_find(doc, node, "direction", &direction));
    out->out = tide__json_is(doc, direction, "out");
    if (!out->out && !tide__json_is(doc, direction, "in"))
        return tide__fail(TIDE_E_FORMAT, "direction: expected \"in\" or \"out\"");
    TIDE_TRY(tide__profile_u64(doc, node, "bytes_per_s", UINT64_MAX, &out->bytes_per_s));
    TIDE_TRY(tide__profile_u64(doc, node, "latency_ns", UINT64_MAX, &out->latency_ns));
    out->share = out->drag_percent = 0;
    if (tide__json_get(doc, node, "share")) TIDE_TRY(tide__profile_u32(doc, node, "share", &out->share));
    return tide__json_get(doc, node, "drag_percent") ? tide__profile_u32(doc, node, "drag_percent", &out->drag_percent)
                                                     : TIDE_OK;
}

/* The array `key`, with at most `max` elements. */
static tide_status find_array(const tide__json *doc, const char *key, uint32_t max, uint32_t *node, uint32_t *count) {
    TIDE_TRY(tide__profile_find(doc, 0, key, node));
    const tide__json_node *n = &doc->nodes.data[*node];
    if (n->type != TIDE__JSON_ARRAY || n->count > max)
        return tide__fail(TIDE_E_FORMAT, "%s: expected an array of at most %u", key, max);
    *count = n->count;
    return TIDE_OK;
}

static tide_status read_tiers(const tide__json *doc, tide_machine *m) {
    uint32_t node;
    TIDE_TRY(find_array(doc, "tiers", TIDE_MACHINE_MAX_TIERS, &node, &m->n_tiers));
    uint32_t at = node + 1;
    for (uint32_t i = 0; i < m->n_tiers; i++, at = doc->nodes.data[at].next) {
        tide_status status = read_tier(doc, at, &m->tier[i]);
        if (status != TIDE_OK) return tide__fail_in(status, "tiers[%u]", i);
    }
    return TIDE_OK;
}

static tide_status read_channels(const tide__json *doc, tide_machine *m) {
    uint32_t node;
    TIDE_TRY(find_array(doc, "channels", TIDE_MACHINE_MAX_CHANNELS, &node, &m->n_channels));
    uint32_t at = node + 1;
    for (uint32_t i = 0; i < m->n_channels; i++, at = doc->nodes.data[at].next) {
        tide_status status = read_channel(doc, at, m, &m->channel[i]);
        if (status != TIDE_OK) return tide__fail_in(status, "channels[%u]", i);
    }
    return TIDE_OK;
}

tide_status tide__profile_head(const tide__json *doc, const char *format) {
    uint32_t node = tide__json_get(doc, 0, "format"), notes = tide__json_get(doc, 0, "notes");
    if (!node || !tide__json_is(doc, node, format))
        return tide__fail(TIDE_E_FORMAT, "not a %s profile (\"format\": \"%s\")", strchr(format, '-') + 1, format);
    uint64_t version;
    TIDE_TRY(tide__profile_u64(doc, 0, "version", UINT64_MAX, &version));
    if (version != FORMAT_VERSION)
        return tide__fail(TIDE_E_FORMAT, "version %llu is not supported (this library reads %d)",
                          (unsigned long long)version, FORMAT_VERSION);
    if (notes && doc->nodes.data[notes].type != TIDE__JSON_STRING) /* for people; not kept */
        return tide__fail(TIDE_E_FORMAT, "notes: expected a string");
    return TIDE_OK;
}

static tide_status read_head(const tide__json *doc) {
    static const char *const keys[] = {"format",
                                       "version",
                                       "name",
                                       "source",
                                       "notes",
                                       "memory_bytes",
                                       "reserve_bytes",
                                       "align_bytes",
                                       "flops_per_s",
                                       "bytes_per_s",
                                       "launch_ns",
                                       "matrix_efficiency",
                                       "vector_efficiency",
                                       "half_flops_per_s",
                                       "tiers",
                                       "channels",
                                       NULL};
    if (doc->nodes.data[0].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "expected an object");
    TIDE_TRY(tide__profile_head(doc, "tidemark-machine"));
    return tide__json_only(doc, 0, keys);
}

static tide_status read_document(const tide__json *doc, void *machine) {
    tide_machine *m = machine;
    TIDE_TRY(read_head(doc));
    TIDE_TRY(tide__profile_text(doc, 0, "name", m->name));
    TIDE_TRY(tide__profile_text(doc, 0, "source", m->source));
    TIDE_TRY(tide__profile_u64(doc, 0, "memory_bytes", UINT64_MAX, &m->memory_bytes));
    TIDE_TRY(tide__profile_u64(doc, 0, "reserve_bytes", UINT64_MAX, &m->reserve_bytes));
    TIDE_TRY(tide__profile_u32(doc, 0, "align_bytes", &m->align_bytes));
    TIDE_TRY(read_double(doc, 0, "flops_per_s", &m->flops_per_s));
    TIDE_TRY(read_double(doc, 0, "bytes_per_s", &m->bytes_per_s));
    TIDE_TRY(tide__profile_u64(doc, 0, "launch_ns", UINT64_MAX, &m->launch_ns));
    TIDE_TRY(read_double(doc, 0, "matrix_efficiency", &m->matrix_efficiency));
    TIDE_TRY(read_double(doc, 0, "vector_efficiency", &m->vector_efficiency));
    if (tide__json_get(doc, 0, "half_flops_per_s"))
        TIDE_TRY(read_double(doc, 0, "half_flops_per_s", &m->half_flops_per_s));
    TIDE_TRY(read_tiers(doc, m));
    TIDE_TRY(read_channels(doc, m));
    tide_status status = tide_machine_validate(m);
    return status == TIDE_E_ARGUMENT ? TIDE_E_FORMAT : status;
}

static size_t line_of(const char *text, size_t at) {
    size_t line = 1;
    for (size_t i = 0; text && i < at; i++) line += text[i] == '\n';
    return line;
}

tide_status tide__profile_read(const void *text, size_t size, const char *name_in_errors, tide__profile_fn read,
                               void *out) {
    if (!name_in_errors || (!text && size > 0)) return tide__fail(TIDE_E_ARGUMENT, "profile: NULL argument");
    if (size > MAX_PROFILE_BYTES) return tide__fail(TIDE_E_FORMAT, "%s: too large for a profile", name_in_errors);
    tide__json doc = {0};
    tide_status status = tide__json_parse(&doc, text, size);
    if (status == TIDE_E_FORMAT) {
        tide__fail_in(status, "%s:%zu", name_in_errors, line_of(text, doc.error_at));
    } else if (status == TIDE_OK) {
        status = read(&doc, out);
        if (status != TIDE_OK) tide__fail_in(status, "%s", name_in_errors);
    }
    tide__json_free(&doc);
    return status;
}

tide_status tide_machine_read_memory(const void *text, size_t size, const char *name_in_errors, tide_machine *out) {
    TIDE_NEED(text, out);
    tide_machine m = {0};
    TIDE_TRY(tide__profile_read(text, size, name_in_errors, read_document, &m));
    *out = m;
    return TIDE_OK;
}

/* ---- writing ---- */

/* 15 digits read better, 17 are always exact. */
static void write_number(FILE *f, const char *key, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value) snprintf(text, sizeof text, "%.17g", value);
    fprintf(f, "  \"%s\": %s,\n", key, text);
}

static void write_member(FILE *f, const char *key, const char *text) {
    fprintf(f, "  \"%s\": ", key);
    tide__json_write_string(f, text);
    fputs(",\n", f);
}

static void write_tier(FILE *f, const tide_machine_tier *t) {
    fputs("    {\"name\": ", f);
    tide__json_write_string(f, t->name);
    fprintf(f, ", \"kind\": \"%s\"", TIER_KINDS[t->kind]);
    if (t->capacity_bytes != UINT64_MAX)
        fprintf(f, ", \"capacity_bytes\": %llu", (unsigned long long)t->capacity_bytes);
    fprintf(f, ", \"block_bytes\": %u}", t->block_bytes);
}

static void write_channel(FILE *f, const tide_machine *m, const tide_machine_channel *c) {
    fputs("    {\"tier\": ", f);
    tide__json_write_string(f, m->tier[c->tier].name);
    fprintf(f, ", \"direction\": \"%s\", \"bytes_per_s\": %llu, \"latency_ns\": %llu, \"share\": %u",
            c->out ? "out" : "in", (unsigned long long)c->bytes_per_s, (unsigned long long)c->latency_ns, c->share);
    if (c->drag_percent) fprintf(f, ", \"drag_percent\": %u", c->drag_percent);
    fputs("}", f);
}

void tide__machine_write_stream(const tide_machine *m, FILE *f) {
    fprintf(f, "{\n  \"format\": \"tidemark-machine\",\n  \"version\": %d,\n", FORMAT_VERSION);
    write_member(f, "name", m->name);
    write_member(f, "source", m->source);
    fprintf(f, "  \"memory_bytes\": %llu,\n", (unsigned long long)m->memory_bytes);
    fprintf(f, "  \"reserve_bytes\": %llu,\n", (unsigned long long)m->reserve_bytes);
    fprintf(f, "  \"align_bytes\": %u,\n", m->align_bytes);
    write_number(f, "flops_per_s", m->flops_per_s);
    write_number(f, "bytes_per_s", m->bytes_per_s);
    fprintf(f, "  \"launch_ns\": %llu,\n", (unsigned long long)m->launch_ns);
    write_number(f, "matrix_efficiency", m->matrix_efficiency);
    write_number(f, "vector_efficiency", m->vector_efficiency);
    if (m->half_flops_per_s != 0) write_number(f, "half_flops_per_s", m->half_flops_per_s);
    fputs("  \"tiers\": [", f);
    for (uint32_t i = 0; i < m->n_tiers; i++) {
        fputs(i ? ",\n" : "\n", f);
        write_tier(f, &m->tier[i]);
    }
    fputs("\n  ],\n  \"channels\": [", f);
    for (uint32_t i = 0; i < m->n_channels; i++) {
        fputs(i ? ",\n" : "\n", f);
        write_channel(f, m, &m->channel[i]);
    }
    fputs("\n  ]\n}\n", f);
}

tide_status tide_machine_write(const tide_machine *m, const char *path) {
    TIDE_NEED(m);
    if (!path) return tide__fail(TIDE_E_ARGUMENT, "machine: no path");
    TIDE_TRY(tide_machine_validate(m));
    tide__writer w;
    TIDE_TRY(tide__writer_open(&w, path));
    tide__machine_write_stream(m, w.stream);
    return tide__writer_commit(&w);
}

tide_status tide_machine_write_memory(const tide_machine *m, char **text, size_t *size) {
    char *written = NULL;
    size_t bytes = 0;
    TIDE_NEED(m);
    if (!text || !size) return tide__fail(TIDE_E_ARGUMENT, "machine: nowhere to write to");
    TIDE_TRY(tide_machine_validate(m));
    FILE *stream = open_memstream(&written, &bytes);
    if (!stream) return tide__fail_memory();
    tide__machine_write_stream(m, stream);
    if (fclose(stream) != 0) {
        free(written);
        return tide__fail_memory();
    }
    *text = written;
    *size = bytes;
    return TIDE_OK;
}
