/* Plan files: JSON Lines, versioned, fingerprinted (docs/formats.md, "Plan files").
 *
 * The reader checks form only (types, ranges, counts, fingerprint); whether the plan is safe is the verifier's word. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "plan/files.h"
#include "plan/plan_data.h"

/* Only plans with an order of their own, and those in parts, need the later versions. */
enum { VERSION = 2, VERSION_ORDER = 3, VERSION_PARTS = 4 };

static int version_of(const tide_plan *p) {
    return p->parts > 1 ? VERSION_PARTS : p->reordered ? VERSION_ORDER : VERSION;
}

/* ---- writing ---- */

static void write_header(FILE *f, const tide_plan *p) {
    fprintf(f, "{\"tidemark\":\"plan\",\"version\":%d,\"program\":\"%016" PRIx64 "%016" PRIx64 "\",\"machine\":",
            version_of(p), p->signature.word[0], p->signature.word[1]);
    tide__json_write_string(f, p->machine_name);
    fprintf(f, ",\"machine_fingerprint\":\"%016" PRIx64 "\",\"policy\":", p->machine_fingerprint);
    tide__json_write_string(f, p->policy);
    if (p->reordered) fputs(",\"order\":\"own\"", f);
    if (p->parts > 1) fprintf(f, ",\"parts\":%u", p->parts);
    fprintf(f, ",\"bits\":\"%s\",\"queues\":%u,\"arena\":%" PRIu64 ",\"tiers\":[", p->bits_any ? "any" : "same",
            p->n_queues, p->arena_bytes);
    for (uint32_t t = 0; t < p->n_tiers; t++) fprintf(f, "%s%" PRIu64, t ? "," : "", p->tier_bytes[t]);
    const tide_prediction *q = &p->prediction;
    fprintf(f,
            "],\"predicted\":{\"step_ns\":%" PRIu64 ",\"compute_ns\":%" PRIu64 ",\"recomputed_ns\":%" PRIu64
            ",\"exposed_ns\":%" PRIu64 ",\"moved_bytes\":%" PRIu64 ",\"transfer_ns\":%" PRIu64
            ",\"peak_bytes\":%" PRIu64 ",\"relocated_bytes\":%" PRIu64 ",\"relocated_ns\":%" PRIu64 "}}\n",
            q->step_ns, q->compute_ns, q->recomputed_ns, q->exposed_ns, q->moved_bytes, q->transfer_ns, q->peak_bytes,
            q->relocated_bytes, q->relocated_ns);
}

static void write_interval(FILE *f, uint64_t offset, uint64_t size, uint32_t begin, uint32_t end, bool at_start,
                           bool at_end) {
    fprintf(f, ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"begin\":%u,\"end\":%u", offset, size, begin, end);
    if (at_start) fputs(",\"at_start\":true", f);
    if (at_end) fputs(",\"at_end\":true", f);
    fputs("}\n", f);
}

static void write_places(FILE *f, const tide_plan *p) {
    for (size_t i = 0; i < p->residencies.count; i++) {
        const tide_residency *r = &p->residencies.data[i];
        fprintf(f, "{\"residency\":%zu", i);
        if (r->tensor != TIDE_NONE) fprintf(f, ",\"tensor\":%u", r->tensor);
        write_interval(f, r->offset_bytes, r->size_bytes, r->begin, r->end, r->at_start, r->at_end);
    }
    for (size_t i = 0; i < p->copies.count; i++) {
        const tide_copy *c = &p->copies.data[i];
        fprintf(f, "{\"copy\":%zu,\"tensor\":%u,\"tier\":%u", i, c->tensor, c->tier);
        write_interval(f, c->offset_bytes, c->size_bytes, c->begin, c->end, c->at_start, c->at_end);
    }
}

static void write_ids(FILE *f, const char *before, const char *key, const uint32_t *ids, uint32_t n) {
    fprintf(f, "%s\"%s\":[", before, key);
    for (uint32_t i = 0; i < n; i++) fprintf(f, "%s%u", i ? "," : "", ids[i]);
    fputc(']', f);
}

static const char *const kinds[] = {"run", "save", "load", "relocate"};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static void write_actions(FILE *f, const tide_plan *p) {
    for (uint32_t i = 0; i < p->actions.count; i++) {
        tide_action a = tide_plan_action(p, i);
        if (a.kind == TIDE_RELOCATE)
            write_ids(f, "{", kinds[a.kind], a.uses, a.n_uses);
        else
            fprintf(f, "{\"%s\":%u", kinds[a.kind], a.kind == TIDE_RUN ? a.op : a.copy);
        if (a.queue) fprintf(f, ",\"queue\":%u", a.queue);
        if (a.variant) fprintf(f, ",\"variant\":%u", a.variant);
        if (a.kind != TIDE_RELOCATE) write_ids(f, ",", "uses", a.uses, a.n_uses);
        if (a.n_waits) write_ids(f, ",", "waits", a.waits, a.n_waits);
        fputs("}\n", f);
    }
}

void tide__plan_write_stream(const tide_plan *p, FILE *f) {
    write_header(f, p);
    write_places(f, p);
    write_actions(f, p);
    fprintf(f, "{\"end\":{\"residencies\":%zu,\"copies\":%zu,\"actions\":%zu,\"fingerprint\":\"%016" PRIx64 "\"}}\n",
            p->residencies.count, p->copies.count, p->actions.count, tide_plan_fingerprint(p));
}

tide_status tide_plan_write(const tide_plan *p, const char *path) {
    TIDE_NEED(p, path);
    tide__writer w;
    TIDE_TRY(tide__writer_open(&w, path));
    tide__plan_write_stream(p, w.stream);
    return tide__writer_commit(&w);
}

/* ---- reading ---- */

typedef struct reader {
    tide__lines lines;
    tide_plan *plan;
    bool ended, unchecked; /* unchecked: take any fingerprint */
} reader;

static uint32_t get(const reader *r, uint32_t object, const char *key) {
    return tide__json_get(&r->lines.doc, object, key);
}

static tide_status only(reader *r, uint32_t object, const char *const *keys) {
    return tide__lines_check(&r->lines, tide__json_only(&r->lines.doc, object, keys));
}

static tide_status read_u64(reader *r, uint32_t object, const char *key, uint64_t max, uint64_t *out) {
    return tide__lines_check(&r->lines, tide__json_u64(&r->lines.doc, get(r, object, key), key, max, out));
}

static tide_status read_u32(reader *r, const char *key, uint32_t *out) {
    uint64_t value = 0;
    TIDE_TRY(read_u64(r, 0, key, TIDE_NONE - 1, &value));
    *out = (uint32_t)value;
    return TIDE_OK;
}

static tide_status read_flag(reader *r, const char *key, bool *out) {
    *out = false;
    if (!get(r, 0, key)) return TIDE_OK;
    return tide__lines_check(&r->lines, tide__json_bool(&r->lines.doc, get(r, 0, key), key, out));
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `words` 64-bit words as 16 lower-case hexadecimal digits each. */
static tide_status read_hex(reader *r, uint32_t node, const char *key, uint64_t *out, uint32_t words) {
    const tide__json_node *n = &r->lines.doc.nodes.data[node];
    if (node == 0 || n->type != TIDE__JSON_STRING || n->length != 16 * words)
        return tide__lines_fail(&r->lines, "%s must be %u hexadecimal digits", key, 16 * words);
    for (uint32_t i = 0; i < n->length; i++) {
        int digit = hex_value(n->text[i]);
        if (digit < 0) return tide__lines_fail(&r->lines, "%s must be %u hexadecimal digits", key, 16 * words);
        out[i / 16] = out[i / 16] << 4 | (uint64_t)digit;
    }
    return TIDE_OK;
}

static tide_status read_text(reader *r, const char *key, char *out, size_t room) {
    uint32_t node = get(r, 0, key);
    const tide__json_node *n = &r->lines.doc.nodes.data[node];
    if (node == 0 || n->type != TIDE__JSON_STRING || n->length >= room)
        return tide__lines_fail(&r->lines, "%s must be a string of at most %zu bytes", key, room - 1);
    memcpy(out, n->text, n->length);
    out[n->length] = '\0';
    return TIDE_OK;
}

static tide_status read_tiers(reader *r) {
    uint32_t node = get(r, 0, "tiers");
    const tide__json_node *nodes = r->lines.doc.nodes.data;
    if (node == 0 || nodes[node].type != TIDE__JSON_ARRAY || nodes[node].count > TIDE_MACHINE_MAX_TIERS)
        return tide__lines_fail(&r->lines, "tiers must be a list of at most %d numbers", TIDE_MACHINE_MAX_TIERS);
    r->plan->n_tiers = nodes[node].count;
    for (uint32_t i = 0, k = node + 1; i < nodes[node].count; i++, k = nodes[k].next)
        TIDE_TRY(tide__lines_check(&r->lines,
                                   tide__json_u64(&r->lines.doc, k, "tiers", UINT64_MAX, &r->plan->tier_bytes[i])));
    return TIDE_OK;
}

static tide_status read_prediction(reader *r) {
    static const char *const keys[] = {"step_ns",     "compute_ns", "recomputed_ns",   "exposed_ns",   "moved_bytes",
                                       "transfer_ns", "peak_bytes", "relocated_bytes", "relocated_ns", NULL};
    uint32_t object = get(r, 0, "predicted");
    tide_prediction *p = &r->plan->prediction;
    uint64_t *fields[] = {&p->step_ns,     &p->compute_ns, &p->recomputed_ns,   &p->exposed_ns,  &p->moved_bytes,
                          &p->transfer_ns, &p->peak_bytes, &p->relocated_bytes, &p->relocated_ns};
    if (object == 0 || r->lines.doc.nodes.data[object].type != TIDE__JSON_OBJECT)
        return tide__lines_fail(&r->lines, "predicted is missing");
    TIDE_TRY(only(r, object, keys));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        TIDE_TRY(read_u64(r, object, keys[i], UINT64_MAX, fields[i]));
    return TIDE_OK;
}

static tide_status read_order(reader *r, uint64_t version) {
    r->plan->reordered = version == VERSION_ORDER || (version == VERSION_PARTS && get(r, 0, "order"));
    if (!r->plan->reordered)
        return get(r, 0, "order") ? tide__lines_fail(&r->lines, "order: only version %d has it", VERSION_ORDER)
                                  : TIDE_OK;
    if (tide__json_is(&r->lines.doc, get(r, 0, "order"), "own")) return TIDE_OK;
    return tide__lines_fail(&r->lines, "order must be \"own\"");
}

static tide_status read_parts(reader *r, uint64_t version) {
    if (version != VERSION_PARTS)
        return get(r, 0, "parts") ? tide__lines_fail(&r->lines, "parts: only version %d has them", VERSION_PARTS)
                                  : TIDE_OK;
    TIDE_TRY(read_u32(r, "parts", &r->plan->parts));
    return r->plan->parts > 1 ? TIDE_OK : tide__lines_fail(&r->lines, "parts must be 2 or more");
}

static tide_status read_header(reader *r) {
    static const char *const keys[] = {"tidemark", "version", "program",   "machine", "machine_fingerprint",
                                       "policy",   "order",   "parts",     "bits",    "queues",
                                       "arena",    "tiers",   "predicted", NULL};
    tide_plan *p = r->plan;
    bool more = false;
    uint64_t version = 0, queues = 0;
    TIDE_TRY(tide__lines_next(&r->lines, &more));
    if (!more || !tide__json_is(&r->lines.doc, get(r, 0, "tidemark"), "plan"))
        return tide__lines_fail(&r->lines, "not a plan file: the first line begins with {\"tidemark\":\"plan\"");
    TIDE_TRY(read_u64(r, 0, "version", UINT32_MAX, &version));
    if (version < VERSION || version > VERSION_PARTS)
        return tide__lines_fail(&r->lines, "version %" PRIu64 " is not known here", version);
    TIDE_TRY(only(r, 0, keys));
    TIDE_TRY(read_order(r, version));
    TIDE_TRY(read_parts(r, version));
    TIDE_TRY(read_hex(r, get(r, 0, "program"), "program", p->signature.word, 2));
    TIDE_TRY(read_hex(r, get(r, 0, "machine_fingerprint"), "machine_fingerprint", &p->machine_fingerprint, 1));
    TIDE_TRY(read_text(r, "machine", p->machine_name, sizeof p->machine_name));
    TIDE_TRY(read_text(r, "policy", p->policy, sizeof p->policy));
    p->bits_any = tide__json_is(&r->lines.doc, get(r, 0, "bits"), "any");
    if (!p->bits_any && !tide__json_is(&r->lines.doc, get(r, 0, "bits"), "same"))
        return tide__lines_fail(&r->lines, "bits must be \"same\" or \"any\"");
    TIDE_TRY(read_u64(r, 0, "queues", 1 + TIDE_MACHINE_MAX_CHANNELS, &queues));
    if (queues == 0) return tide__lines_fail(&r->lines, "queues must be at least 1");
    p->n_queues = (uint32_t)queues;
    TIDE_TRY(read_u64(r, 0, "arena", UINT64_MAX, &p->arena_bytes));
    TIDE_TRY(read_tiers(r));
    return read_prediction(r);
}

static tide_status read_next_id(reader *r, const char *key, size_t expected) {
    uint64_t id = 0;
    TIDE_TRY(read_u64(r, 0, key, TIDE_NONE - 1, &id));
    return id == expected ? TIDE_OK : tide__lines_fail(&r->lines, "expected %s %zu", key, expected);
}

static tide_status read_residency(reader *r) {
    static const char *const keys[] = {"residency", "tensor",   "offset", "bytes", "begin",
                                       "end",       "at_start", "at_end", NULL};
    tide_residency x = {.tensor = TIDE_NONE};
    TIDE_TRY(only(r, 0, keys));
    TIDE_TRY(read_next_id(r, "residency", r->plan->residencies.count));
    if (get(r, 0, "tensor")) TIDE_TRY(read_u32(r, "tensor", &x.tensor));
    TIDE_TRY(read_u64(r, 0, "offset", UINT64_MAX, &x.offset_bytes));
    TIDE_TRY(read_u64(r, 0, "bytes", UINT64_MAX, &x.size_bytes));
    TIDE_TRY(read_u32(r, "begin", &x.begin));
    TIDE_TRY(read_u32(r, "end", &x.end));
    TIDE_TRY(read_flag(r, "at_start", &x.at_start));
    TIDE_TRY(read_flag(r, "at_end", &x.at_end));
    return tide__vec_push(&r->plan->residencies, x);
}

static tide_status read_copy(reader *r) {
    static const char *const keys[] = {"copy",  "tensor", "tier",     "offset", "bytes",
                                       "begin", "end",    "at_start", "at_end", NULL};
    tide_copy x = {0};
    TIDE_TRY(only(r, 0, keys));
    TIDE_TRY(read_next_id(r, "copy", r->plan->copies.count));
    TIDE_TRY(read_u32(r, "tensor", &x.tensor));
    TIDE_TRY(read_u32(r, "tier", &x.tier));
    TIDE_TRY(read_u64(r, 0, "offset", UINT64_MAX, &x.offset_bytes));
    TIDE_TRY(read_u64(r, 0, "bytes", UINT64_MAX, &x.size_bytes));
    TIDE_TRY(read_u32(r, "begin", &x.begin));
    TIDE_TRY(read_u32(r, "end", &x.end));
    TIDE_TRY(read_flag(r, "at_start", &x.at_start));
    TIDE_TRY(read_flag(r, "at_end", &x.at_end));
    return tide__vec_push(&r->plan->copies, x);
}

/* The elements of list `node`, each below `limit`, go to the end of a vector of ids. */
#define READ_IDS(r, node, key, limit, vec, n_out)                                                                    \
    do {                                                                                                             \
        const tide__json_node *list_ = &(r)->lines.doc.nodes.data[node];                                             \
        if ((node) == 0 || list_->type != TIDE__JSON_ARRAY)                                                          \
            return tide__lines_fail(&(r)->lines, key " must be a list");                                             \
        for (uint32_t i_ = 0, k_ = (node) + 1; i_ < list_->count; i_++, k_ = (r)->lines.doc.nodes.data[k_].next) {   \
            uint64_t id_ = 0;                                                                                        \
            TIDE_TRY(tide__lines_check(&(r)->lines, tide__json_u64(&(r)->lines.doc, k_, key, TIDE_NONE - 1, &id_))); \
            if (id_ >= (limit)) return tide__lines_fail(&(r)->lines, key ": %" PRIu64 " is out of range", id_);      \
            TIDE_TRY(tide__vec_push(vec, (uint32_t)id_));                                                            \
        }                                                                                                            \
        *(n_out) = list_->count;                                                                                     \
    } while (0)

static tide_status read_subject(reader *r, tide__action *a) {
    if (a->kind == TIDE_RELOCATE) return TIDE_OK; /* its uses say it all */
    TIDE_TRY(read_u32(r, kinds[a->kind], a->kind == TIDE_RUN ? &a->op : &a->copy));
    if (a->kind != TIDE_RUN && a->copy >= r->plan->copies.count)
        return tide__lines_fail(&r->lines, "there is no copy %u", a->copy);
    return TIDE_OK;
}

static tide_status read_action(reader *r, tide_action_kind kind) {
    static const char *const keys[] = {"run", "save", "load", "relocate", "queue", "variant", "uses", "waits", NULL};
    tide_plan *p = r->plan;
    tide__action a = {.kind = kind, .op = TIDE_NONE, .copy = TIDE_NONE, .uses = p->uses.count, .waits = p->waits.count};
    uint64_t queue = 0;
    int n_kinds = 0;
    TIDE_TRY(only(r, 0, keys));
    for (int k = 0; k < N_KINDS; k++) n_kinds += get(r, 0, kinds[k]) != 0;
    if (n_kinds != 1) return tide__lines_fail(&r->lines, "an action is either a run, a save, a load or a relocate");
    TIDE_TRY(read_subject(r, &a));
    if (get(r, 0, "queue")) TIDE_TRY(read_u64(r, 0, "queue", p->n_queues - 1, &queue));
    if (get(r, 0, "variant")) TIDE_TRY(read_u32(r, "variant", &a.variant));
    a.queue = (uint32_t)queue;
    if (kind == TIDE_RELOCATE && get(r, 0, "uses"))
        return tide__lines_fail(&r->lines, "a relocate has its uses under its own key");
    READ_IDS(r, get(r, 0, kind == TIDE_RELOCATE ? "relocate" : "uses"), "uses", p->residencies.count, &p->uses,
             &a.n_uses);
    if (get(r, 0, "waits")) READ_IDS(r, get(r, 0, "waits"), "waits", p->actions.count, &p->waits, &a.n_waits);
    return tide__vec_push(&p->actions, a);
}

static tide_status read_end(reader *r) {
    static const char *const outer[] = {"end", NULL};
    static const char *const keys[] = {"residencies", "copies", "actions", "fingerprint", NULL};
    uint32_t end = get(r, 0, "end");
    uint64_t fingerprint = 0;
    TIDE_TRY(only(r, 0, outer));
    if (r->lines.doc.nodes.data[end].type != TIDE__JSON_OBJECT)
        return tide__lines_fail(&r->lines, "end must be an object");
    TIDE_TRY(only(r, end, keys));
    const size_t counts[] = {r->plan->residencies.count, r->plan->copies.count, r->plan->actions.count};
    for (size_t i = 0; i < 3; i++) {
        uint64_t n = 0;
        TIDE_TRY(read_u64(r, end, keys[i], TIDE_NONE, &n));
        if (n != counts[i])
            return tide__lines_fail(&r->lines, "%s: %" PRIu64 " announced, %zu read", keys[i], n, counts[i]);
    }
    TIDE_TRY(read_hex(r, get(r, end, "fingerprint"), "fingerprint", &fingerprint, 1));
    if (!r->unchecked && fingerprint != tide_plan_fingerprint(r->plan))
        return tide__lines_fail(&r->lines, "the fingerprint does not match the content: the file was changed");
    r->ended = true;
    return TIDE_OK;
}

/* Which kind of line it is: "end" is also the name of a field, so the places are asked for first. */
static tide_status read_line(reader *r) {
    if (r->ended) return tide__lines_fail(&r->lines, "text after the end");
    if (get(r, 0, "residency")) return read_residency(r);
    if (get(r, 0, "copy")) return read_copy(r);
    for (int k = 0; k < N_KINDS; k++)
        if (get(r, 0, kinds[k])) return read_action(r, (tide_action_kind)k);
    if (get(r, 0, "end")) return read_end(r);
    return tide__lines_fail(&r->lines, "unknown kind of line");
}

static tide_status read_all(reader *r) {
    TIDE_TRY(read_header(r));
    for (bool more;;) {
        TIDE_TRY(tide__lines_next(&r->lines, &more));
        if (!more) break;
        TIDE_TRY(read_line(r));
    }
    return r->ended ? TIDE_OK : tide__lines_fail(&r->lines, "the file is cut short: no end line");
}

static tide_status read_text_of_plan(const char *text, size_t size, const char *name, bool unchecked, tide_plan **out) {
    reader r = {.unchecked = unchecked};
    TIDE_TRY(tide__plan_new(&r.plan));
    tide__lines_init(&r.lines, text, size, name);
    tide_status status = read_all(&r);
    tide__lines_free(&r.lines);
    if (status == TIDE_OK)
        *out = r.plan;
    else
        tide_plan_destroy(r.plan);
    return status;
}

tide_status tide_plan_read_memory(const void *text, size_t size, const char *name_in_errors, tide_plan **out) {
    TIDE_NEED(text, out);
    return read_text_of_plan(text, size, name_in_errors, false, out);
}

tide_status tide__plan_read_unchecked(const char *text, size_t size, const char *name, tide_plan **out) {
    return read_text_of_plan(text, size, name, true, out);
}

tide_status tide_plan_read(const char *path, tide_plan **out) {
    TIDE_NEED(path, out);
    tide__file file;
    TIDE_TRY(tide__file_open(path, &file));
    tide_status status = tide_plan_read_memory(file.text, file.size, path, out);
    tide__file_close(&file);
    return status;
}
