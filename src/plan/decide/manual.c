/* Policy `manual`: decisions written by a person, from a JSON Lines file (docs/formats.md, "Decisions files").
 *
 *   {"tidemark":"decisions","version":1}
 *   {"swap":"conv1.y","tier":"ram","after":"conv2","before":"conv2.bwd-weights"}
 *   {"rerun":"relu1","before":"conv2.bwd-weights"}
 *   {"op":"conv2","variant":1}
 *
 * Tensors and ops are named or numbered; a name that several share is refused. */
#include "plan/decide/policies.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

typedef struct reader {
    const tide_program *program;
    const tide_machine *machine;
    tide__lines lines;
    tide__decisions *out;
} reader;

static const char *name_of(const tide_program *p, bool op, tide_id id) {
    return op ? tide_program_op(p, id)->name : tide_program_tensor(p, id)->name;
}

/* A number, or a name that only one has. */
static tide_status find(const reader *r, uint32_t node, const char *what, bool op, tide_id *out) {
    uint32_t n = op ? tide_program_op_count(r->program) : tide_program_tensor_count(r->program);
    const tide__json_node *value = &r->lines.doc.nodes.data[node];
    if (node == 0 || n == 0) return tide__lines_fail(&r->lines, "%s is missing", what);
    if (value->type == TIDE__JSON_NUMBER) {
        uint64_t id;
        TIDE_TRY(tide__lines_check(&r->lines, tide__json_u64(&r->lines.doc, node, what, n - 1, &id)));
        *out = (tide_id)id;
        return TIDE_OK;
    }
    *out = TIDE_NONE;
    for (tide_id i = 0; i < n; i++) {
        if (!tide__json_is(&r->lines.doc, node, name_of(r->program, op, i))) continue;
        if (*out != TIDE_NONE)
            return tide__lines_fail(&r->lines, "%s: %u and %u are both called \"%s\"; use the number", what, *out, i,
                                    name_of(r->program, op, i));
        *out = i;
    }
    if (*out == TIDE_NONE)
        return tide__lines_fail(&r->lines, "%s names no %s of the program", what, op ? "op" : "tensor");
    return TIDE_OK;
}

static tide_status find_tier(const reader *r, uint32_t node, uint32_t *out) {
    if (node == 0) return tide__lines_fail(&r->lines, "tier is missing");
    for (uint32_t t = 0; t < r->machine->n_tiers; t++)
        if (tide__json_is(&r->lines.doc, node, r->machine->tier[t].name)) {
            *out = t;
            return TIDE_OK;
        }
    return tide__lines_fail(&r->lines, "machine \"%s\" has no tier of this name", r->machine->name);
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
    if (get(r, "before")) TIDE_TRY(find(r, get(r, "before"), "before", true, &swap.load_slot));
    if (swap.save_slot == TIDE_NONE && swap.load_slot == TIDE_NONE)
        return tide__lines_fail(&r->lines, "a swap needs \"after\" or \"before\"");
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
    return status;
}

tide_status tide__decide_manual(const tide_program *program, const tide_machine *machine,
                                const tide_plan_options *options, tide__decisions *out) {
    if (!options->decisions) return tide__fail(TIDE_E_ARGUMENT, "policy manual needs a decisions file");
    tide__file file;
    TIDE_TRY(tide__file_open(options->decisions, &file));
    tide_status status = tide__decisions_read(file.text, file.size, options->decisions, program, machine, out);
    tide__file_close(&file);
    return status;
}
