/* Policy `manual`: decisions written by a person, from a JSON Lines file (docs/formats.md, "Decisions files").
 *
 *   {"tidemark":"decisions","version":1}
 *   {"swap":"conv1.y","tier":"ram","after":"conv2","before":"conv2.bwd-weights"}
 *   {"rerun":"relu1","before":"conv2.bwd-weights"}
 *   {"op":"conv2","variant":1}
 *
 * Tensors and ops are named or numbered; a name that several share is refused. */
#include "plan/decide/policies/policies.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

/* The names of a program's ops, or of its tensors, in an order that can be searched: a file may have as many lines as
 * the program has names. */
typedef struct named {
    const char *name;
    size_t length;
    tide_id id;
} named;

typedef struct names {
    named *sorted; /* NULL: nobody has asked yet */
    uint32_t count;
} names;

typedef struct reader {
    const tide_program *program;
    const tide_machine *machine;
    tide__lines lines;
    tide__decisions *out;
    names ops, tensors;
} reader;

static int compare_names(const named *a, const named *b) {
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return a->length ? memcmp(a->name, b->name, a->length) : 0;
}

/* Equal names by ascending id. */
static int by_name(const void *a, const void *b) {
    const named *x = a, *y = b;
    int order = compare_names(x, y);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static tide_status sort_names(const tide_program *p, bool op, names *n) {
    if (n->sorted) return TIDE_OK;
    n->count = op ? tide_program_op_count(p) : tide_program_tensor_count(p);
    n->sorted = malloc((n->count + (size_t)1) * sizeof *n->sorted);
    if (!n->sorted) return tide__fail_memory();
    for (tide_id i = 0; i < n->count; i++) {
        const char *name = op ? tide_program_op(p, i)->name : tide_program_tensor(p, i)->name;
        n->sorted[i] = (named){.name = name, .length = strlen(name), .id = i};
    }
    qsort(n->sorted, n->count, sizeof *n->sorted, by_name);
    return TIDE_OK;
}

/* The first of this name; NULL if there is none. */
static const named *find_name(const names *n, const named *wanted) {
    uint32_t lo = 0, hi = n->count;
    while (lo < hi) {
        uint32_t middle = lo + (hi - lo) / 2;
        if (compare_names(&n->sorted[middle], wanted) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < n->count && compare_names(&n->sorted[lo], wanted) == 0 ? &n->sorted[lo] : NULL;
}

/* A name that only one has. */
static tide_status find_named(reader *r, uint32_t node, const char *what, bool op, tide_id *out) {
    const tide__json_node *value = &r->lines.doc.nodes.data[node];
    names *n = op ? &r->ops : &r->tensors;
    named wanted = {.name = value->text, .length = value->length};
    TIDE_TRY(sort_names(r->program, op, n));
    const named *first = value->type == TIDE__JSON_STRING ? find_name(n, &wanted) : NULL;
    int shown = value->type != TIDE__JSON_STRING ? 0 : value->length > 64 ? 64 : (int)value->length;
    if (!first)
        return tide__lines_fail(&r->lines, "%s: the program has no %s \"%.*s\"", what, op ? "op" : "tensor", shown,
                                shown ? value->text : "");
    if (first + 1 < n->sorted + n->count && compare_names(first, first + 1) == 0)
        return tide__lines_fail(&r->lines, "%s: %u and %u are both called \"%s\"; use the number", what, first->id,
                                first[1].id, first->name);
    *out = first->id;
    return TIDE_OK;
}

/* A number or a name. */
static tide_status find(reader *r, uint32_t node, const char *what, bool op, tide_id *out) {
    uint32_t n = op ? tide_program_op_count(r->program) : tide_program_tensor_count(r->program);
    if (node == 0 || n == 0) return tide__lines_fail(&r->lines, "%s is missing", what);
    if (r->lines.doc.nodes.data[node].type != TIDE__JSON_NUMBER) return find_named(r, node, what, op, out);
    uint64_t id;
    TIDE_TRY(tide__lines_check(&r->lines, tide__json_u64(&r->lines.doc, node, what, n - 1, &id)));
    *out = (tide_id)id;
    return TIDE_OK;
}

static tide_status find_tier(const reader *r, uint32_t node, uint32_t *out) {
    if (node == 0) return tide__lines_fail(&r->lines, "tier is missing");
    for (uint32_t t = 0; t < r->machine->n_tiers; t++)
        if (tide__json_is(&r->lines.doc, node, r->machine->tier[t].name)) {
            *out = t;
            return TIDE_OK;
        }
    const tide__json_node *value = &r->lines.doc.nodes.data[node];
    int shown = value->type != TIDE__JSON_STRING ? 0 : value->length > 64 ? 64 : (int)value->length;
    return tide__lines_fail(&r->lines, "machine \"%s\" has no tier \"%.*s\"", r->machine->name, shown,
                            shown ? value->text : "");
}

static uint32_t get(const reader *r, const char *key) { return tide__json_get(&r->lines.doc, 0, key); }

/* No `after`: the tier has it already; no `before`: it stays there. */
static tide_status read_swap(reader *r) {
    static const char *const keys[] = {"swap", "tier", "after", "before", NULL};
    tide__swap swap = {.save_slot = TIDE_NONE, .load_slot = TIDE_NONE};
    TIDE_TRY(tide__lines_check(&r->lines, tide__json_only(&r->lines.doc, 0, keys)));
    TIDE_TRY(find(r, get(r, "swap"), "swap", false, &swap.tensor));
    TIDE_TRY(find_tier(r, get(r, "tier"), &swap.tier));
    if (get(r, "after")) {
        TIDE_TRY(find(r, get(r, "after"), "after", true, &swap.save_slot));
        swap.save_slot++;
    }
    if (r->machine->tier[swap.tier].kind == TIDE_TIER_CLIENT) swap.save_slot = TIDE_NONE; /* it is there already */
    if (get(r, "before")) TIDE_TRY(find(r, get(r, "before"), "before", true, &swap.load_slot));
    return tide__vec_push(&r->out->swaps, swap);
}

static tide_status read_rerun(reader *r) {
    static const char *const keys[] = {"rerun", "before", NULL};
    tide__rerun rerun;
    TIDE_TRY(tide__lines_check(&r->lines, tide__json_only(&r->lines.doc, 0, keys)));
    TIDE_TRY(find(r, get(r, "rerun"), "rerun", true, &rerun.op));
    TIDE_TRY(find(r, get(r, "before"), "before", true, &rerun.slot));
    if (rerun.slot <= rerun.op) return tide__lines_fail(&r->lines, "the re-run is not after the op's first run");
    return tide__vec_push(&r->out->reruns, rerun);
}

static tide_status read_variant(reader *r) {
    static const char *const keys[] = {"op", "variant", NULL};
    tide_id op;
    uint64_t variant;
    TIDE_TRY(tide__lines_check(&r->lines, tide__json_only(&r->lines.doc, 0, keys)));
    TIDE_TRY(find(r, get(r, "op"), "op", true, &op));
    uint64_t max = tide_program_op(r->program, op)->n_variants - 1;
    TIDE_TRY(tide__lines_check(&r->lines, tide__json_u64(&r->lines.doc, get(r, "variant"), "variant", max, &variant)));
    while (r->out->variants.count < tide_program_op_count(r->program)) TIDE_TRY(tide__vec_push(&r->out->variants, 0));
    r->out->variants.data[op] = (uint32_t)variant;
    return TIDE_OK;
}

static tide_status read_header(reader *r) {
    static const char *const keys[] = {"tidemark", "version", NULL};
    bool more = false;
    uint64_t version;
    TIDE_TRY(tide__lines_next(&r->lines, &more));
    if (!more || !tide__json_is(&r->lines.doc, get(r, "tidemark"), "decisions"))
        return tide__lines_fail(&r->lines,
                                "not a decisions file: the first line is {\"tidemark\":\"decisions\",\"version\":1}");
    TIDE_TRY(tide__lines_check(&r->lines, tide__json_only(&r->lines.doc, 0, keys)));
    TIDE_TRY(tide__lines_check(&r->lines,
                               tide__json_u64(&r->lines.doc, get(r, "version"), "version", UINT32_MAX, &version)));
    return version == 1
               ? TIDE_OK
               : tide__lines_fail(&r->lines, "version %llu is newer than this library", (unsigned long long)version);
}

static tide_status read_all(reader *r) {
    TIDE_TRY(read_header(r));
    for (bool more;;) {
        TIDE_TRY(tide__lines_next(&r->lines, &more));
        if (!more) return TIDE_OK;
        if (get(r, "swap"))
            TIDE_TRY(read_swap(r));
        else if (get(r, "rerun"))
            TIDE_TRY(read_rerun(r));
        else if (get(r, "op"))
            TIDE_TRY(read_variant(r));
        else
            return tide__lines_fail(&r->lines, "neither a swap, a rerun nor a variant");
    }
}

tide_status tide__decisions_read(const char *text, size_t size, const char *name, const tide_program *program,
                                 const tide_machine *machine, tide__decisions *out) {
    reader r = {.program = program, .machine = machine, .out = out};
    tide__lines_init(&r.lines, text, size, name);
    tide_status status = read_all(&r);
    tide__lines_free(&r.lines);
    free(r.ops.sorted);
    free(r.tensors.sorted);
    return status;
}

tide_status tide__decide_manual(const tide__policy_input *in, tide__decisions *out) {
    const char *path = in->options->decisions;
    if (!path) return tide__fail(TIDE_E_ARGUMENT, "policy manual needs a decisions file");
    tide__file file;
    TIDE_TRY(tide__file_open(path, &file));
    tide_status status = tide__decisions_read(file.text, file.size, path, in->program, in->machine, out);
    tide__file_close(&file);
    return status;
}
