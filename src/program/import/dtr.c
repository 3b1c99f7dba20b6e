/* DTR logs: one training step of a PyTorch fork as JSON Lines (Kirisame et al., "Dynamic Tensor Rematerialization",
 * ICLR 2021), numbers mostly as strings. The result is a one-shot program.
 *
 * Names refer to storages, storages count their references, and a storage becomes one tensor:
 *
 *      CONSTANT + MEMORY          a storage that exists at the start and cannot be made again
 *      CALL + MEMORY + ALIAS ...  an op; each result is a new storage (ALIAS -1) or a view of an argument's, which costs
 *                                 no bytes: whoever reads the view reads the storage
 *      MUTATE                     an op that reads its arguments and writes a new storage for each one it changes (copy
 *                                 on write); the name moves there, other names of the old storage do not
 *      COPY, COPY_FROM            one more name for a storage; a name moved to another storage
 *      RELEASE                    a name goes, if it is of this step; what still has a name at the end is kept
 *      ANNOTATE START, BACKWARD   what precedes the first START is skipped; the phase changes
 *
 * An op that returns only views reads and writes nothing new: it keeps its time and its place, and is not charged again
 * when the storage below is made again. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/size.h"
#include "program/import/import.h"
#include "program/import/names.h"

typedef struct storage {
    uint64_t size_bytes;
    uint32_t references;
    tide_id tensor;
    uint32_t read_by, read_at; /* the op that last read it, and its place in that op's reads: it is listed once */
    uint32_t paired_by;        /* the op that last had it in an in-place pair */
    uint32_t released_after;   /* the op after which its last name went; TIDE_NONE: never */
} storage;

typedef struct reader {
    tide__lines lines;
    tide__import_names names;
    TIDE_VEC(uint32_t) bound; /* per name: its storage, or TIDE_NONE */
    TIDE_VEC(storage) storages;
    tide_program_builder *b;
    uint32_t n_ops;
    tide_phase phase;
    uint64_t load_bytes, peak_bytes; /* under the log's own RELEASEs */
    /* Of the op at hand. */
    TIDE_VEC(uint32_t) args;     /* names */
    TIDE_VEC(uint32_t) results;  /* names */
    TIDE_VEC(uint32_t) replaced; /* storages that lose a name when it ends */
    TIDE_VEC(tide_id) reads;
    TIDE_VEC(tide_id) writes;
    TIDE_VEC(tide_inplace) inplace;
    TIDE_VEC(char) op_name;
} reader;

#define refuse(r, ...) tide__lines_fail(&(r)->lines, __VA_ARGS__)

/* ---- fields ---- */

static const tide__json_node *node_of(const reader *r, uint32_t node) { return &r->lines.doc.nodes.data[node]; }

static tide_status get_field(reader *r, const char *key, tide__json_type type, uint32_t *out) {
    uint32_t node = tide__json_get(&r->lines.doc, 0, key);
    if (!node || node_of(r, node)->type != type)
        return refuse(r, "%s is missing or not a%s", key, type == TIDE__JSON_ARRAY ? "n array" : " string");
    *out = node;
    return TIDE_OK;
}

/* A number, in a string or not. */
static tide_status get_number(reader *r, const char *key, uint32_t *out) {
    uint32_t node = tide__json_get(&r->lines.doc, 0, key);
    if (!node || (node_of(r, node)->type != TIDE__JSON_STRING && node_of(r, node)->type != TIDE__JSON_NUMBER))
        return refuse(r, "%s is missing or not a number", key);
    *out = node;
    return TIDE_OK;
}

static tide_status get_u64(reader *r, const char *key, uint64_t *out) {
    uint32_t node;
    TIDE_TRY(get_number(r, key, &node));
    if (tide__parse_u64(node_of(r, node)->text, node_of(r, node)->length, UINT64_MAX, out)) return TIDE_OK;
    return refuse(r, "%s is not a whole number", key);
}

static tide_status intern(reader *r, uint32_t node, uint32_t *name) {
    const tide__json_node *n = node_of(r, node);
    if (n->type != TIDE__JSON_STRING) return refuse(r, "a name is not a string");
    TIDE_TRY(tide__names_intern(&r->names, n->text, n->length, name));
    return *name == r->bound.count ? tide__vec_push(&r->bound, TIDE_NONE) : TIDE_OK;
}

static tide_status get_name(reader *r, const char *key, uint32_t *name) {
    uint32_t node;
    TIDE_TRY(get_field(r, key, TIDE__JSON_STRING, &node));
    return intern(r, node, name);
}

static tide_status check_bound(reader *r, uint32_t name) {
    if (r->bound.data[name] != TIDE_NONE) return TIDE_OK;
    return refuse(r, "%.60s is not known here", tide__names_text(&r->names, name));
}

static tide_status check_free(reader *r, uint32_t name) {
    if (r->bound.data[name] == TIDE_NONE) return TIDE_OK;
    return refuse(r, "%.60s already exists", tide__names_text(&r->names, name));
}

static bool is_instruction(const reader *r, const char *instruction) {
    uint32_t node = tide__json_get(&r->lines.doc, 0, "INSTRUCTION");
    return node && tide__json_is(&r->lines.doc, node, instruction);
}

/* The line may have no other keys; those that are needed are asked for one by one. */
static tide_status check_keys(reader *r, const char *const *keys) {
    return tide__lines_check(&r->lines, tide__json_only(&r->lines.doc, 0, keys));
}

/* ---- storages ---- */

static tide_status new_storage(reader *r, uint32_t name, uint64_t size_bytes, tide_start start) {
    tide_tensor tensor = {.name = tide__names_text(&r->names, name),
                          .size_bytes = size_bytes,
                          .dtype = TIDE_BYTES,
                          .cls = start == TIDE_START_ABSENT && r->phase == TIDE_FORWARD ? TIDE_CLASS_ACTIVATION
                                                                                        : TIDE_CLASS_OTHER,
                          .start = start};
    storage made = {.size_bytes = size_bytes,
                    .references = 1,
                    .read_by = TIDE_NONE,
                    .paired_by = TIDE_NONE,
                    .released_after = TIDE_NONE};
    if (!tide__add(r->load_bytes, size_bytes, &r->load_bytes)) return refuse(r, "the live bytes exceed 64 bits");
    r->peak_bytes = tide__max_u64(r->peak_bytes, r->load_bytes);
    TIDE_TRY(tide__lines_check(&r->lines, tide_program_builder_tensor(r->b, &tensor, &made.tensor)));
    TIDE_TRY(tide__vec_push(&r->storages, made));
    r->bound.data[name] = (uint32_t)(r->storages.count - 1);
    return TIDE_OK;
}

static void release(reader *r, uint32_t id) {
    storage *s = &r->storages.data[id];
    if (--s->references > 0) return;
    r->load_bytes -= s->size_bytes;
    s->released_after = r->n_ops ? r->n_ops - 1 : 0;
}

/* One more name for a storage. References are bounded by the names, of which there are fewer than 2^32. */
static void bind(reader *r, uint32_t name, uint32_t id) {
    r->storages.data[id].references++;
    r->bound.data[name] = id;
}

static tide_status read_next(reader *r, const char *instruction) {
    bool more;
    TIDE_TRY(tide__lines_next(&r->lines, &more));
    if (!more || !is_instruction(r, instruction)) return refuse(r, "a %s is missing here", instruction);
    return TIDE_OK;
}

/* The next line: {"INSTRUCTION": "MEMORY", "NAME": name, "MEMORY": ...}, or the same with ALIAS. */
static tide_status read_detail(reader *r, const char *instruction, uint32_t name) {
    const char *const keys[] = {"INSTRUCTION", "NAME", instruction, NULL};
    uint32_t named;
    TIDE_TRY(read_next(r, instruction));
    TIDE_TRY(check_keys(r, keys));
    TIDE_TRY(get_name(r, "NAME", &named));
    return named == name ? TIDE_OK
                         : refuse(r, "this %s is not of %.60s", instruction, tide__names_text(&r->names, name));
}

static tide_status read_constant(reader *r) {
    static const char *const keys[] = {"INSTRUCTION", "NAME", NULL};
    uint32_t name;
    uint64_t size_bytes;
    TIDE_TRY(check_keys(r, keys));
    TIDE_TRY(get_name(r, "NAME", &name));
    TIDE_TRY(check_free(r, name));
    TIDE_TRY(read_detail(r, "MEMORY", name));
    TIDE_TRY(get_u64(r, "MEMORY", &size_bytes));
    return new_storage(r, name, size_bytes, TIDE_START_PRESENT);
}

/* ---- ops ---- */

static tide_status add_read(reader *r, uint32_t id) {
    storage *s = &r->storages.data[id];
    if (s->read_by == r->n_ops) return TIDE_OK;
    s->read_by = r->n_ops;
    s->read_at = (uint32_t)r->reads.count;
    return tide__vec_push(&r->reads, s->tensor);
}

static tide_status copy_op_name(reader *r) {
    uint32_t node;
    TIDE_TRY(get_field(r, "NAME", TIDE__JSON_STRING, &node));
    size_t length = node_of(r, node)->length;
    r->op_name.count = 0;
    TIDE_TRY(tide__vec_reserve(&r->op_name, length + 1));
    memcpy(r->op_name.data, node_of(r, node)->text, length);
    r->op_name.data[length] = '\0';
    return TIDE_OK;
}

/* NAME, ARGS and TIME of a CALL or MUTATE; leaves args and reads filled, the rest of the op empty. */
static tide_status begin_op(reader *r, uint64_t *time_ns) {
    uint32_t node;
    r->args.count = r->reads.count = r->writes.count = r->inplace.count = 0;
    TIDE_TRY(copy_op_name(r));
    TIDE_TRY(get_u64(r, "TIME", time_ns));
    TIDE_TRY(get_field(r, "ARGS", TIDE__JSON_ARRAY, &node));
    for (uint32_t at = node + 1; at < node_of(r, node)->next; at = node_of(r, at)->next) {
        uint32_t name;
        TIDE_TRY(intern(r, at, &name));
        TIDE_TRY(check_bound(r, name));
        TIDE_TRY(tide__vec_push(&r->args, name));
        TIDE_TRY(add_read(r, r->bound.data[name]));
    }
    return TIDE_OK;
}

static tide_status end_op(reader *r, uint64_t time_ns) {
    tide_variant variant = {.cost_ns = time_ns};
    tide_op op = {.name = r->op_name.data,
                  .phase = r->phase,
                  .rerunnable = r->writes.count > 0,
                  .n_reads = (uint32_t)r->reads.count,
                  .n_writes = (uint32_t)r->writes.count,
                  .n_inplace = (uint32_t)r->inplace.count,
                  .n_variants = 1,
                  .reads = r->reads.data,
                  .writes = r->writes.data,
                  .inplace = r->inplace.data,
                  .variants = &variant};
    r->n_ops++;
    return tide__lines_check(&r->lines, tide_program_builder_op(r->b, &op, NULL));
}

static tide_status read_results(reader *r) {
    uint32_t node;
    TIDE_TRY(get_field(r, "RESULT", TIDE__JSON_ARRAY, &node));
    r->results.count = 0;
    for (uint32_t at = node + 1; at < node_of(r, node)->next; at = node_of(r, at)->next) {
        uint32_t name;
        TIDE_TRY(intern(r, at, &name));
        TIDE_TRY(tide__vec_push(&r->results, name));
    }
    return TIDE_OK;
}

/* *arg = the argument a result is a view of, or TIDE_NONE. */
static tide_status get_alias(reader *r, uint32_t *arg) {
    uint32_t node;
    uint64_t index;
    TIDE_TRY(get_number(r, "ALIAS", &node));
    *arg = TIDE_NONE;
    if (node_of(r, node)->length == 2 && memcmp(node_of(r, node)->text, "-1", 2) == 0) return TIDE_OK;
    TIDE_TRY(get_u64(r, "ALIAS", &index));
    if (index >= r->args.count) return refuse(r, "ALIAS %llu is not an argument", (unsigned long long)index);
    *arg = (uint32_t)index;
    return TIDE_OK;
}

/* The MEMORY and ALIAS lines of one result. */
static tide_status read_result(reader *r, uint32_t name) {
    uint64_t size_bytes;
    uint32_t arg;
    TIDE_TRY(read_detail(r, "MEMORY", name));
    TIDE_TRY(get_u64(r, "MEMORY", &size_bytes));
    TIDE_TRY(read_detail(r, "ALIAS", name));
    TIDE_TRY(get_alias(r, &arg));
    TIDE_TRY(check_free(r, name));
    if (arg != TIDE_NONE) {
        bind(r, name, r->bound.data[r->args.data[arg]]);
        return TIDE_OK;
    }
    TIDE_TRY(new_storage(r, name, size_bytes, TIDE_START_ABSENT));
    return tide__vec_push(&r->writes, r->storages.data[r->bound.data[name]].tensor);
}

static tide_status read_call(reader *r) {
    static const char *const keys[] = {"INSTRUCTION", "NAME", "ARGS", "RESULT", "TIME", NULL};
    uint64_t time_ns;
    TIDE_TRY(check_keys(r, keys));
    TIDE_TRY(begin_op(r, &time_ns));
    TIDE_TRY(read_results(r));
    for (size_t i = 0; i < r->results.count; i++) TIDE_TRY(read_result(r, r->results.data[i]));
    return end_op(r, time_ns);
}

/* An argument gets a new storage of the same size, which may take over the old one's bytes if nobody else needs them.
 * An argument that was changed already (it is listed twice) is left alone. */
static tide_status mutate(reader *r, uint32_t name) {
    uint32_t id = r->bound.data[name];
    storage old = r->storages.data[id];
    if (old.read_by != r->n_ops) return TIDE_OK;
    TIDE_TRY(tide__vec_push(&r->replaced, id));
    TIDE_TRY(new_storage(r, name, old.size_bytes, TIDE_START_ABSENT));
    TIDE_TRY(tide__vec_push(&r->writes, r->storages.data[r->bound.data[name]].tensor));
    if (old.paired_by == r->n_ops) return TIDE_OK;
    r->storages.data[id].paired_by = r->n_ops;
    tide_inplace pair = {.read = old.read_at, .write = (uint32_t)r->writes.count - 1};
    return tide__vec_push(&r->inplace, pair);
}

static tide_status read_mutate(reader *r) {
    static const char *const keys[] = {"INSTRUCTION", "NAME", "ARGS", "MUTATE", "TIME", NULL};
    uint64_t time_ns, index;
    uint32_t node;
    TIDE_TRY(check_keys(r, keys));
    TIDE_TRY(begin_op(r, &time_ns));
    TIDE_TRY(get_field(r, "MUTATE", TIDE__JSON_ARRAY, &node));
    r->replaced.count = 0;
    for (uint32_t at = node + 1; at < node_of(r, node)->next; at = node_of(r, at)->next) {
        const tide__json_node *n = node_of(r, at);
        bool scalar = n->type == TIDE__JSON_NUMBER || n->type == TIDE__JSON_STRING;
        if (!scalar || !tide__parse_u64(n->text, n->length, UINT64_MAX, &index) || index >= r->args.count)
            return refuse(r, "MUTATE lists something that is not the number of an argument");
        TIDE_TRY(mutate(r, r->args.data[index]));
    }
    TIDE_TRY(end_op(r, time_ns));
    for (size_t i = 0; i < r->replaced.count; i++) release(r, r->replaced.data[i]);
    return TIDE_OK;
}

/* ---- names ---- */

/* COPY makes DST; COPY_FROM moves it. */
static tide_status read_copy(reader *r, bool moves) {
    static const char *const keys[] = {"INSTRUCTION", "DST", "SRC", NULL};
    uint32_t dst, src;
    TIDE_TRY(check_keys(r, keys));
    TIDE_TRY(get_name(r, "SRC", &src));
    TIDE_TRY(check_bound(r, src));
    TIDE_TRY(get_name(r, "DST", &dst));
    TIDE_TRY(moves ? check_bound(r, dst) : check_free(r, dst));
    uint32_t old = r->bound.data[dst];
    bind(r, dst, r->bound.data[src]);
    if (moves) release(r, old);
    return TIDE_OK;
}

static tide_status read_release(reader *r) {
    static const char *const keys[] = {"INSTRUCTION", "NAME", NULL};
    uint32_t name;
    TIDE_TRY(check_keys(r, keys));
    size_t known = r->bound.count;
    TIDE_TRY(get_name(r, "NAME", &name));
    if (name == known) return TIDE_OK; /* from before START */
    TIDE_TRY(check_bound(r, name));
    release(r, r->bound.data[name]);
    r->bound.data[name] = TIDE_NONE;
    return TIDE_OK;
}

/* ---- the whole ---- */

static bool is_annotation(const reader *r, const char *text) {
    uint32_t node = tide__json_get(&r->lines.doc, 0, "ANNOTATION");
    return is_instruction(r, "ANNOTATE") && node && tide__json_is(&r->lines.doc, node, text);
}

/* All other annotations are remarks: a log that goes on through several STARTs is one long step, as DTR takes it. */
static tide_status read_annotation(reader *r) {
    if (is_annotation(r, "BACKWARD")) r->phase = TIDE_BACKWARD;
    return TIDE_OK;
}

static tide_status read_line(reader *r) {
    if (is_instruction(r, "CALL")) return read_call(r);
    if (is_instruction(r, "RELEASE")) return read_release(r);
    if (is_instruction(r, "COPY")) return read_copy(r, false);
    if (is_instruction(r, "COPY_FROM")) return read_copy(r, true);
    if (is_instruction(r, "CONSTANT")) return read_constant(r);
    if (is_instruction(r, "MUTATE")) return read_mutate(r);
    if (is_instruction(r, "ANNOTATE")) return read_annotation(r);
    if (is_instruction(r, "MEMORY") || is_instruction(r, "ALIAS"))
        return refuse(r, "a MEMORY or ALIAS that belongs to nothing");
    return refuse(r, "INSTRUCTION is missing or not known");
}

/* Leaves the reader after START, or at the beginning if there is none. */
static tide_status skip_to_start(reader *r) {
    bool more = true;
    while (more) {
        TIDE_TRY(tide__lines_next(&r->lines, &more));
        if (more && is_annotation(r, "START")) return TIDE_OK;
    }
    r->lines.at = r->lines.line = 0;
    return TIDE_OK;
}

static tide_status read_log(reader *r) {
    bool more;
    TIDE_TRY(skip_to_start(r));
    for (;;) {
        TIDE_TRY(tide__lines_next(&r->lines, &more));
        if (!more) break;
        TIDE_TRY(read_line(r));
    }
    for (size_t i = 0; i < r->storages.count; i++)
        if (r->storages.data[i].references > 0) TIDE_TRY(tide_program_builder_keep(r->b, r->storages.data[i].tensor));
    return TIDE_OK;
}

static void free_reader(reader *r) {
    tide__lines_free(&r->lines);
    tide__names_free(&r->names);
    tide__vec_free(&r->bound);
    tide__vec_free(&r->storages);
    tide__vec_free(&r->args);
    tide__vec_free(&r->results);
    tide__vec_free(&r->replaced);
    tide__vec_free(&r->reads);
    tide__vec_free(&r->writes);
    tide__vec_free(&r->inplace);
    tide__vec_free(&r->op_name);
    tide_program_builder_destroy(r->b);
}

/* Storages are tensors, in the same order. */
static tide_status copy_releases(const reader *r, uint32_t **out) {
    uint32_t *releases = malloc((r->storages.count + 1) * sizeof *releases);
    if (!releases) return tide__fail_memory();
    for (size_t i = 0; i < r->storages.count; i++) releases[i] = r->storages.data[i].released_after;
    *out = releases;
    return TIDE_OK;
}

static tide_status read_dtr(const tide__import *in, tide_program **out, tide_import_stats *stats) {
    const char *slash = strrchr(in->name, '/');
    reader r = {0};
    tide_status status;
    if (in->options.iteration_time_ns)
        return tide__fail(TIDE_E_ARGUMENT, "%s: an iteration time is for streams; DTR logs have their own", in->name);
    tide__lines_init(&r.lines, in->text, in->size, in->name);
    tide__names_init(&r.names);
    TIDE_TRY_GOTO(tide_program_builder_create(slash ? slash + 1 : in->name, false, &r.b), done);
    TIDE_TRY_GOTO(read_log(&r), done);
    if (in->releases) TIDE_TRY_GOTO(copy_releases(&r, in->releases), done);
    TIDE_TRY_GOTO(tide_program_builder_finish(r.b, out), done);
    r.b = NULL;
    *stats = (tide_import_stats){.release_peak_bytes = r.peak_bytes};
done:
    free_reader(&r);
    return status;
}

static bool recognise(const char *line, size_t length) {
    return line[0] == '{' && memmem(line, length, "\"INSTRUCTION\"", 13) != NULL;
}

const tide__importer tide__import_dtr = {"dtr", recognise, read_dtr, NULL};
