/* Reading program files; docs/formats.md describes them.
 *
 * Hostile input: one line at a time over the mapped file, every value checked, every error with file and line. The
 * rules of programs themselves are the builder's. Invariant: memory is the program's plus that of the longest line;
 * pages of the file are given back as soon as they are read. */
#include "program/program_data.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "program/names.h"

typedef struct reader {
    tide__lines lines;
    tide__file *file;              /* what the lines are read from, or NULL */
    tide_program_builder *builder; /* NULL before the header */
    uint64_t n_tensors, n_ops, n_carries;
    bool ended;
    /* scratch of the current line */
    TIDE_VEC(char) name;
    TIDE_VEC(tide_id) ids; /* reads, then writes */
    TIDE_VEC(tide_inplace) pairs;
    TIDE_VEC(tide_variant) variants;
    TIDE_VEC(tide_along) alongs; /* of reads, then writes */
} reader;

/* ---- values ---- */

/* Finds the nodes of the known keys, 0 where a key is absent; refuses any other key. Keys mostly come in the order of
 * the list, so the search for each begins after the one before. */
static tide_status collect(const tide__json *doc, uint32_t object, const char *const *keys, uint32_t n,
                           uint32_t *found) {
    const tide__json_node *nodes = doc->nodes.data;
    if (nodes[object].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "must be an object");
    for (uint32_t i = 0; i < n; i++) found[i] = 0;
    uint32_t guess = 0;
    for (uint32_t k = object + 1; k < nodes[object].next; k = nodes[k + 1].next) {
        uint32_t tried = 0;
        while (tried < n && !tide__json_is(doc, k, keys[guess])) {
            guess = guess + 1 < n ? guess + 1 : 0;
            tried++;
        }
        if (tried == n)
            return tide__fail(TIDE_E_FORMAT, "unknown key \"%.*s\"", nodes[k].length > 64 ? 64 : (int)nodes[k].length,
                              nodes[k].text);
        found[guess] = k + 1;
        guess = guess + 1 < n ? guess + 1 : 0;
    }
    return TIDE_OK;
}

static tide_status read_u32(const tide__json *doc, uint32_t node, const char *what, uint32_t *out) {
    uint64_t value;
    TIDE_TRY(tide__json_u64(doc, node, what, UINT32_MAX, &value));
    *out = (uint32_t)value;
    return TIDE_OK;
}

/* A string, or "" if absent; valid until the next one is read. */
static tide_status read_name(reader *r, uint32_t node, const char **out) {
    const tide__json_node *n = &r->lines.doc.nodes.data[node];
    *out = "";
    if (node == 0) return TIDE_OK;
    if (n->type != TIDE__JSON_STRING) return tide__fail(TIDE_E_FORMAT, "name must be a string");
    r->name.count = 0;
    TIDE_TRY(tide__vec_reserve(&r->name, n->length + 1));
    memcpy(r->name.data, n->text, n->length);
    r->name.data[n->length] = '\0';
    *out = r->name.data;
    return TIDE_OK;
}

static tide_status refuse_word(const char *what, const tide__names *names) {
    char list[256] = "";
    size_t used = 0;
    for (unsigned i = 0; i < names->count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", names->text[i]);
    return tide__fail(TIDE_E_FORMAT, "%s must be one of: %s", what, list);
}

/* One of the words; *out stays as it is (the default) if absent. */
static tide_status read_word(const tide__json *doc, uint32_t node, const char *what, const tide__names *names,
                             unsigned *out) {
    if (node == 0) return TIDE_OK;
    for (unsigned i = 0; i < names->count; i++)
        if (tide__json_is(doc, node, names->text[i])) {
            *out = i;
            return TIDE_OK;
        }
    return refuse_word(what, names);
}

static tide_status read_flag(const tide__json *doc, uint32_t node, const char *what, bool *out) {
    return node == 0 ? TIDE_OK : tide__json_bool(doc, node, what, out);
}

static tide_status expect_array(const tide__json *doc, uint32_t node, const char *what) {
    if (doc->nodes.data[node].type == TIDE__JSON_ARRAY) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "%s must be an array", what);
}

/* Ids count from 0 without holes, so a missing or doubled line shows at once. */
static tide_status check_id(const char *what, uint64_t id, uint64_t expected) {
    if (id == expected) return TIDE_OK;
    if (id < expected) return tide__fail(TIDE_E_FORMAT, "%s %llu is defined twice", what, (unsigned long long)id);
    return tide__fail(TIDE_E_FORMAT, "%s %llu comes before %s %llu: ids ascend without holes", what,
                      (unsigned long long)id, what, (unsigned long long)expected);
}

/* ---- lines ---- */

static tide_status read_version(const tide__json *doc) {
    uint64_t version;
    TIDE_TRY(tide__json_u64(doc, tide__json_get(doc, 0, "version"), "version", UINT64_MAX, &version));
    if (version == 1) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "program file of version %llu; this library reads version 1",
                      (unsigned long long)version);
}

static tide_status read_header(reader *r) {
    enum { TIDEMARK, VERSION, NAME, KIND, N };
    static const char *const keys[N] = {"tidemark", "version", "name", "kind"};
    static const char *const kinds[] = {"one-shot", "repeating"};
    static const tide__names kind_names = {kinds, 2};
    const tide__json *doc = &r->lines.doc;
    uint32_t at[N];
    unsigned repeating = 0;
    const char *name;
    uint32_t format = tide__json_get(doc, 0, "tidemark");
    if (format == 0 || !tide__json_is(doc, format, "program"))
        return tide__fail(TIDE_E_FORMAT, "not a program file: it must begin with {\"tidemark\":\"program\",...}");
    TIDE_TRY(read_version(doc)); /* before the keys: another version may have others */
    TIDE_TRY(collect(doc, 0, keys, N, at));
    if (at[KIND] == 0) return tide__fail(TIDE_E_FORMAT, "kind is missing");
    TIDE_TRY(read_word(doc, at[KIND], "kind", &kind_names, &repeating));
    TIDE_TRY(read_name(r, at[NAME], &name));
    return tide_program_builder_create(name, repeating == 1, &r->builder);
}

static tide_status read_tensor(reader *r) {
    enum { TENSOR, NAME, BYTES, DTYPE, CLASS, START, KEEP, N };
    static const char *const keys[N] = {"tensor", "name", "bytes", "dtype", "class", "start", "keep"};
    const tide__json *doc = &r->lines.doc;
    uint32_t at[N];
    uint64_t id;
    unsigned dtype = TIDE_F32, cls = TIDE_CLASS_OTHER, start = TIDE_START_ABSENT;
    tide_tensor t = {0};
    TIDE_TRY(collect(doc, 0, keys, N, at));
    TIDE_TRY(tide__json_u64(doc, at[TENSOR], "tensor", UINT32_MAX, &id));
    TIDE_TRY(check_id("tensor", id, r->n_tensors));
    TIDE_TRY(read_name(r, at[NAME], &t.name));
    TIDE_TRY(tide__json_u64(doc, at[BYTES], "bytes", UINT64_MAX, &t.size_bytes));
    TIDE_TRY(read_word(doc, at[DTYPE], "dtype", &tide__dtype_names, &dtype));
    TIDE_TRY(read_word(doc, at[CLASS], "class", &tide__class_names, &cls));
    TIDE_TRY(read_word(doc, at[START], "start", &tide__start_names, &start));
    TIDE_TRY(read_flag(doc, at[KEEP], "keep", &t.keep));
    t.dtype = (tide_dtype)dtype;
    t.cls = (tide_class)cls;
    t.start = (tide_start)start;
    TIDE_TRY(tide_program_builder_tensor(r->builder, &t, NULL));
    r->n_tensors++;
    return TIDE_OK;
}

/* Appends the ids of an array to r->ids; an absent one is empty. */
static tide_status read_ids(reader *r, uint32_t node, const char *what, uint32_t *n) {
    const tide__json *doc = &r->lines.doc;
    *n = 0;
    if (node == 0) return TIDE_OK;
    TIDE_TRY(expect_array(doc, node, what));
    *n = doc->nodes.data[node].count;
    TIDE_TRY(tide__vec_reserve(&r->ids, *n));
    for (uint32_t i = 0, k = node + 1; i < *n; i++, k = doc->nodes.data[k].next)
        TIDE_TRY(read_u32(doc, k, what, &r->ids.data[r->ids.count++]));
    return TIDE_OK;
}

static tide_status read_pair(const tide__json *doc, uint32_t node, tide_inplace *out) {
    const tide__json_node *n = &doc->nodes.data[node];
    if (n->type != TIDE__JSON_ARRAY || n->count != 3)
        return tide__fail(TIDE_E_FORMAT, "inplace must hold [read, write, \"may\" or \"must\"]");
    uint32_t read = node + 1, write = doc->nodes.data[read].next, word = doc->nodes.data[write].next;
    TIDE_TRY(read_u32(doc, read, "position of the read in inplace", &out->read));
    TIDE_TRY(read_u32(doc, write, "position of the write in inplace", &out->write));
    out->must = tide__json_is(doc, word, "must");
    if (out->must || tide__json_is(doc, word, "may")) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "the third value of an inplace pair must be \"may\" or \"must\"");
}

static tide_status read_pairs(reader *r, uint32_t node) {
    const tide__json *doc = &r->lines.doc;
    r->pairs.count = 0;
    if (node == 0) return TIDE_OK;
    TIDE_TRY(expect_array(doc, node, "inplace"));
    for (uint32_t k = node + 1; k < doc->nodes.data[node].next; k = doc->nodes.data[k].next) {
        tide_inplace pair;
        TIDE_TRY(read_pair(doc, k, &pair));
        TIDE_TRY(tide__vec_push(&r->pairs, pair));
    }
    return TIDE_OK;
}

static tide_status read_variant(const tide__json *doc, uint32_t node, tide_variant *out) {
    enum { WORKSPACE, COST, BITS, N };
    static const char *const keys[N] = {"workspace", "cost", "bits"};
    uint32_t at[N];
    *out = (tide_variant){0};
    TIDE_TRY(collect(doc, node, keys, N, at));
    TIDE_TRY(tide__json_u64(doc, at[COST], "cost", UINT64_MAX, &out->cost_ns));
    if (at[WORKSPACE]) TIDE_TRY(tide__json_u64(doc, at[WORKSPACE], "workspace", UINT64_MAX, &out->workspace_bytes));
    return at[BITS] ? read_u32(doc, at[BITS], "bits", &out->bits_class) : TIDE_OK;
}

static tide_status read_variants(reader *r, uint32_t cost, uint32_t variants) {
    const tide__json *doc = &r->lines.doc;
    tide_variant v = {0};
    r->variants.count = 0;
    if (cost != 0 && variants != 0) return tide__fail(TIDE_E_FORMAT, "either cost or variants, not both");
    if (variants == 0) {
        TIDE_TRY(tide__json_u64(doc, cost, "cost", UINT64_MAX, &v.cost_ns));
        return tide__vec_push(&r->variants, v);
    }
    TIDE_TRY(expect_array(doc, variants, "variants"));
    for (uint32_t k = variants + 1; k < doc->nodes.data[variants].next; k = doc->nodes.data[k].next) {
        tide_status status = read_variant(doc, k, &v);
        if (status != TIDE_OK) return tide__fail_in(status, "variant %zu", r->variants.count);
        TIDE_TRY(tide__vec_push(&r->variants, v));
    }
    return TIDE_OK;
}

/* [peer, number]. */
static tide_status read_message(const tide__json *doc, uint32_t send, uint32_t receive, tide_message *out) {
    uint32_t node = send ? send : receive;
    uint64_t peer;
    if (send && receive) return tide__fail(TIDE_E_FORMAT, "either send or receive, not both");
    TIDE_TRY(expect_array(doc, node, "a message"));
    if (doc->nodes.data[node].count != 2) return tide__fail(TIDE_E_FORMAT, "a message is [peer, number]");
    TIDE_TRY(tide__json_u64(doc, node + 1, "peer", UINT32_MAX, &peer));
    TIDE_TRY(tide__json_u64(doc, doc->nodes.data[node + 1].next, "number", UINT64_MAX, &out->number));
    out->peer = (uint32_t)peer;
    out->receives = receive != 0;
    return TIDE_OK;
}

/* A word per operand. */
static tide_status read_alongs(reader *r, uint32_t node, const char *what, uint32_t n) {
    const tide__json *doc = &r->lines.doc;
    if (node) TIDE_TRY(expect_array(doc, node, what));
    if ((node ? doc->nodes.data[node].count : 0) != n)
        return tide__fail(TIDE_E_FORMAT, "split: %s must have a word per operand", what);
    TIDE_TRY(tide__vec_reserve(&r->alongs, n));
    for (uint32_t i = 0, k = node + 1; i < n; i++, k = doc->nodes.data[k].next) {
        unsigned along = 0;
        TIDE_TRY(read_word(doc, k, what, &tide__along_names, &along));
        r->alongs.data[r->alongs.count++] = (tide_along)along;
    }
    return TIDE_OK;
}

static tide_status read_split(reader *r, uint32_t node, const tide_op *op, tide_split *out) {
    enum { UNITS, READS, WRITES, BITS, WORKSPACE, SUM_COST, N };
    static const char *const keys[N] = {"units", "reads", "writes", "bits", "workspace", "sum_cost"};
    const tide__json *doc = &r->lines.doc;
    uint32_t at[N];
    *out = (tide_split){0};
    r->alongs.count = 0;
    TIDE_TRY(collect(doc, node, keys, N, at));
    TIDE_TRY(read_u32(doc, at[UNITS], "units", &out->units));
    TIDE_TRY(read_alongs(r, at[READS], "reads", op->n_reads));
    TIDE_TRY(read_alongs(r, at[WRITES], "writes", op->n_writes));
    if (at[BITS]) TIDE_TRY(read_u32(doc, at[BITS], "bits", &out->bits_class));
    if (at[SUM_COST]) TIDE_TRY(tide__json_u64(doc, at[SUM_COST], "sum_cost", UINT64_MAX, &out->sum_cost_ns));
    out->cut_workspace = at[WORKSPACE] != 0;
    if (at[WORKSPACE] && !tide__json_is(doc, at[WORKSPACE], "cut"))
        return tide__fail(TIDE_E_FORMAT, "workspace of a split must be \"cut\"");
    out->reads = r->alongs.data;
    out->writes = r->alongs.data ? r->alongs.data + op->n_reads : NULL;
    return TIDE_OK;
}

/* The lists of the op, from the scratch vectors that now stand still. */
static void point_to_lists(reader *r, tide_op *op) {
    op->reads = r->ids.data;
    op->writes = r->ids.data ? r->ids.data + op->n_reads : NULL;
    op->inplace = r->pairs.data;
    op->n_inplace = (uint32_t)r->pairs.count;
    op->variants = r->variants.data;
    op->n_variants = (uint32_t)r->variants.count;
}

static tide_status read_op(reader *r) {
    enum { OP, NAME, PHASE, READS, WRITES, INPLACE, COST, VARIANTS, RERUN, RANDOM, SEND, RECEIVE, SPLIT, N };
    static const char *const keys[N] = {"op",       "name",  "phase",  "reads", "writes",  "inplace", "cost",
                                        "variants", "rerun", "random", "send",  "receive", "split"};
    const tide__json *doc = &r->lines.doc;
    uint32_t at[N];
    uint64_t id;
    unsigned phase = 0;
    tide_op op = {.rerunnable = true};
    tide_message message;
    tide_split split;
    TIDE_TRY(collect(doc, 0, keys, N, at));
    TIDE_TRY(tide__json_u64(doc, at[OP], "op", UINT32_MAX, &id));
    TIDE_TRY(check_id("op", id, r->n_ops));
    TIDE_TRY(read_name(r, at[NAME], &op.name));
    if (at[PHASE] == 0) return tide__fail(TIDE_E_FORMAT, "phase is missing");
    TIDE_TRY(read_word(doc, at[PHASE], "phase", &tide__phase_names, &phase));
    r->ids.count = 0;
    TIDE_TRY(read_ids(r, at[READS], "reads", &op.n_reads));
    TIDE_TRY(read_ids(r, at[WRITES], "writes", &op.n_writes));
    TIDE_TRY(read_pairs(r, at[INPLACE]));
    TIDE_TRY(read_variants(r, at[COST], at[VARIANTS]));
    TIDE_TRY(read_flag(doc, at[RERUN], "rerun", &op.rerunnable));
    op.random = at[RANDOM] != 0;
    if (op.random) TIDE_TRY(tide__json_u64(doc, at[RANDOM], "random", UINT64_MAX, &op.counter));
    if (at[SEND] || at[RECEIVE]) {
        TIDE_TRY(read_message(doc, at[SEND], at[RECEIVE], &message));
        op.message = &message;
    }
    if (at[SPLIT]) {
        TIDE_TRY(read_split(r, at[SPLIT], &op, &split));
        op.split = &split;
    }
    op.phase = (tide_phase)phase;
    point_to_lists(r, &op);
    TIDE_TRY(tide_program_builder_op(r->builder, &op, NULL));
    r->n_ops++;
    return TIDE_OK;
}

static tide_status read_carry(reader *r) {
    static const char *const keys[] = {"carry"};
    uint32_t at, n;
    TIDE_TRY(collect(&r->lines.doc, 0, keys, 1, &at));
    r->ids.count = 0;
    TIDE_TRY(read_ids(r, at, "carry", &n));
    if (n != 2) return tide__fail(TIDE_E_FORMAT, "carry must be [from, to]");
    TIDE_TRY(tide_program_builder_carry(r->builder, (tide_carry){r->ids.data[0], r->ids.data[1]}));
    r->n_carries++;
    return TIDE_OK;
}

static tide_status check_count(const tide__json *doc, uint32_t node, const char *what, uint64_t found) {
    uint64_t said;
    TIDE_TRY(tide__json_u64(doc, node, what, UINT64_MAX, &said));
    if (said == found) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "the end line counts %llu %s, the file has %llu", (unsigned long long)said, what,
                      (unsigned long long)found);
}

static tide_status read_end(reader *r) {
    enum { TENSORS, OPS, CARRIES, N };
    static const char *const outer[] = {"end"}, *const keys[N] = {"tensors", "ops", "carries"};
    const tide__json *doc = &r->lines.doc;
    uint32_t end, at[N];
    TIDE_TRY(collect(doc, 0, outer, 1, &end));
    tide_status status = collect(doc, end, keys, N, at);
    if (status != TIDE_OK) return tide__fail_in(status, "end");
    TIDE_TRY(check_count(doc, at[TENSORS], "tensors", r->n_tensors));
    TIDE_TRY(check_count(doc, at[OPS], "ops", r->n_ops));
    TIDE_TRY(check_count(doc, at[CARRIES], "carries", r->n_carries));
    r->ended = true;
    return TIDE_OK;
}

/* ---- the file ---- */

typedef struct line_kind {
    const char *key;
    tide_status (*read)(reader *r);
} line_kind;

static const line_kind line_kinds[] = {
    {"tensor", read_tensor}, {"op", read_op}, {"carry", read_carry}, {"end", read_end}};

/* The line's kind is the one key of the list above that it has; mostly its first. */
static tide_status read_line(reader *r) {
    const tide__json *doc = &r->lines.doc;
    const tide__json_node *nodes = doc->nodes.data;
    if (!r->builder) return read_header(r);
    if (r->ended) return tide__fail(TIDE_E_FORMAT, "a line after the end line");
    for (uint32_t k = 1; k < nodes[0].next; k = nodes[k + 1].next)
        for (size_t i = 0; i < sizeof line_kinds / sizeof *line_kinds; i++)
            if (tide__json_is(doc, k, line_kinds[i].key)) return line_kinds[i].read(r);
    return tide__fail(TIDE_E_FORMAT, "neither a tensor, nor an op, a carry or the end");
}

/* To the reader of a file, what the builder refuses is wrong in the file. */
static tide_status blame_line(const reader *r, tide_status status) {
    return tide__lines_check(&r->lines, status == TIDE_E_ARGUMENT ? TIDE_E_FORMAT : status);
}

static tide_status read_lines(reader *r, tide_program **out) {
    for (;;) {
        bool more;
        TIDE_TRY(tide__lines_next(&r->lines, &more));
        if (!more) break;
        TIDE_TRY(blame_line(r, read_line(r)));
        if (r->file) tide__file_drop(r->file, r->lines.at);
    }
    if (r->lines.line == 0) r->lines.line = 1; /* an empty file has no line that could be named */
    if (!r->ended) return tide__lines_fail(&r->lines, "the file is cut short: it has no end line");
    TIDE_TRY(blame_line(r, tide_program_builder_finish(r->builder, out)));
    r->builder = NULL;
    return TIDE_OK;
}

static tide_status read_text(const char *text, size_t size, const char *name, tide__file *file, tide_program **out) {
    reader r = {.file = file};
    tide__lines_init(&r.lines, text, size, name);
    tide_status status = read_lines(&r, out);
    tide__lines_free(&r.lines);
    tide_program_builder_destroy(r.builder);
    tide__vec_free(&r.name);
    tide__vec_free(&r.ids);
    tide__vec_free(&r.pairs);
    tide__vec_free(&r.variants);
    tide__vec_free(&r.alongs);
    return status;
}

tide_status tide_program_read_memory(const void *text, size_t size, const char *name_in_errors, tide_program **out) {
    TIDE_NEED(text, out);
    return read_text(text, size, name_in_errors, NULL, out);
}

tide_status tide_program_read(const char *path, tide_program **out) {
    TIDE_NEED(path, out);
    tide__file file;
    TIDE_TRY(tide__file_open(path, &file));
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    tide_status status = read_text(file.text, file.size, name, &file, out);
    tide__file_close(&file);
    return status;
}
