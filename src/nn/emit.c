/* Operands, reorders and names of one op after the other. */
#include "nn/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tide__emitter_deinit(tide__emitter *e) {
    tide__vec_free(&e->ops);
    tide__vec_free(&e->tensors);
    tide__vec_free(&e->name);
    tide__vec_free(&e->reads);
}

uint64_t tide__emitter_floats(const tide__emitter *e, tide_id tensor) {
    return e->tensors.data[tensor].size_bytes / sizeof(float);
}

static const tide_operand_info *layout_of(const tide__emitter *e, tide_id tensor) {
    const tide__origin *origin = &e->tensors.data[tensor];
    return tide__recipe_operand(origin->recipe, origin->operand);
}

/* ---- names ---- */

static tide_status append_text(tide__emitter *e, const char *text) {
    size_t length = strlen(text);
    TIDE_TRY(tide__vec_reserve(&e->name, length + 1));
    memcpy(e->name.data + e->name.count, text, length + 1);
    e->name.count += length;
    return TIDE_OK;
}

/* a + b + c + "@micro" in the scratch buffer; valid until the next name. */
static tide_status make_name(tide__emitter *e, const char *a, const char *b, const char *c, const char **out) {
    e->name.count = 0;
    TIDE_TRY(append_text(e, a));
    TIDE_TRY(append_text(e, b));
    TIDE_TRY(append_text(e, c));
    if (e->micro > 0) {
        char micro[16];
        snprintf(micro, sizeof micro, "@%u", e->micro);
        TIDE_TRY(append_text(e, micro));
    }
    *out = e->name.data;
    return TIDE_OK;
}

/* "" for 0, unless 0 counts. */
static void number_text(char out[12], uint32_t number, bool from_zero) {
    out[0] = '\0';
    if (number > 0 || from_zero) snprintf(out, 12, "%u", number);
}

/* ---- tensors ---- */

/* tensor->size_bytes is the origin's. */
static tide_status add_tensor(tide__emitter *e, tide_tensor tensor, tide__origin origin, tide_id *out) {
    tensor.size_bytes = origin.size_bytes;
    origin.cls = tensor.cls;
    origin.copy = TIDE_NONE;
    TIDE_TRY(tide__vec_reserve(&e->tensors, 1));
    TIDE_TRY(tide_program_builder_tensor(e->builder, &tensor, out));
    e->tensors.data[e->tensors.count++] = origin;
    return TIDE_OK;
}

static tide_status add_leaf(tide__emitter *e, const tide__leaf *leaf, tide__origin origin, tide_id *out) {
    tide_tensor tensor = leaf->tensor;
    TIDE_TRY(make_name(e, leaf->name, leaf->role ? "." : "", leaf->role ? leaf->role : "", &tensor.name));
    tensor.dtype = tide__recipe_dtype(e->recipes, origin.recipe, origin.operand, tensor.dtype);
    return add_tensor(e, tensor, origin, out);
}

tide_status tide__emit_leaf(tide__emitter *e, const tide__leaf *leaf, tide_id *out) {
    const tide__recipe *recipe;
    TIDE_TRY(tide__recipes_find(e->recipes, leaf->desc, &recipe));
    tide__origin origin = {.recipe = recipe, .operand = leaf->operand};
    origin.size_bytes = leaf->part_bytes ? leaf->part_bytes : tide__recipe_operand(recipe, leaf->operand)->size_bytes;
    return add_leaf(e, leaf, origin, out);
}

tide_status tide__emit_leaf_like(tide__emitter *e, const tide__leaf *leaf, tide_id like, tide_id *out) {
    tide__origin origin = e->tensors.data[like];
    if (leaf->part_bytes) origin.size_bytes = leaf->part_bytes;
    return add_leaf(e, leaf, origin, out);
}

/* ---- ops ---- */

/* Name, phase and operands are set; the rest follows from rule and recipe. */
static tide_status add_op(tide__emitter *e, const tide__op_rule *rule, const tide__recipe *recipe, tide_op op) {
    op.rerunnable = !rule->once;
    op.random = rule->random;
    if (rule->random && op.phase == TIDE_FORWARD) op.counter = e->counter++;
    op.n_variants = recipe->info.n_variants;
    op.variants = recipe->info.variant;
    TIDE_TRY(tide__vec_reserve(&e->ops, 1));
    TIDE_TRY(tide_program_builder_op(e->builder, &op, NULL));
    e->ops.data[e->ops.count++] = recipe;
    return TIDE_OK;
}

/* REORDER of `tensor` into the layout of an operand of `to`; named after the op that wants it. */
static tide_status reorder(tide__emitter *e, const tide__draft *reader, tide_id tensor, const tide__recipe *to,
                           uint32_t operand, tide_id *out) {
    tide__origin *from = &e->tensors.data[tensor];
    tide_op_desc desc = {.kind = TIDE_OP_REORDER, .from = &from->recipe->desc, .from_operand = from->operand};
    desc.to = &to->desc;
    desc.to_operand = operand;
    const tide__recipe *recipe;
    TIDE_TRY(tide__recipes_find(e->recipes, &desc, &recipe));
    const char *reader_suffix = tide__op_rule_of(reader->desc->kind, reader->phase)->suffix;
    tide_tensor copy = {.dtype = tide__recipe_dtype(e->recipes, to, operand, TIDE_F32), .cls = from->cls};
    tide__origin origin = {.recipe = to, .operand = operand, .size_bytes = recipe->info.write[0].size_bytes};
    tide_id id;
    TIDE_TRY(make_name(e, reader->name, reader_suffix, ".reorder", &copy.name));
    TIDE_TRY(add_tensor(e, copy, origin, &id));
    tide_op op = {.name = copy.name, .phase = reader->phase, .n_reads = 1, .reads = &tensor, .n_writes = 1};
    op.writes = &id;
    TIDE_TRY(add_op(e, tide__op_rule_of(TIDE_OP_REORDER, reader->phase), recipe, op));
    e->tensors.data[id].copy = e->tensors.data[tensor].copy;
    e->tensors.data[tensor].copy = id;
    *out = id;
    return TIDE_OK;
}

/* The value in that layout: itself, a copy made earlier, or a new one. */
static tide_status in_layout(tide__emitter *e, const tide__draft *reader, tide_id tensor, const tide__recipe *to,
                             uint32_t operand, tide_id *out) {
    uint64_t wanted = tide__recipe_operand(to, operand)->layout;
    for (tide_id t = tensor; t != TIDE_NONE; t = e->tensors.data[t].copy)
        if (layout_of(e, t)->layout == wanted) return *out = t, TIDE_OK;
    return reorder(e, reader, tensor, to, operand, out);
}

tide_status tide__emit_in_layout_of(tide__emitter *e, const tide__draft *reader, tide_id tensor, tide_id like,
                                    tide_id *out) {
    tide__origin origin = e->tensors.data[like];
    return in_layout(e, reader, tensor, origin.recipe, origin.operand, out);
}

/* The device and ops.h must agree about the operands. */
static tide_status check_counts(const tide__draft *draft, uint32_t n_writes, const tide_kernel_info *info) {
    if (draft->n_reads == info->n_reads && n_writes == info->n_writes) return TIDE_OK;
    return tide__fail(TIDE_E_INTERNAL, "%s: %s of %u reads and %u writes, but its kernel has %u and %u", draft->name,
                      tide_op_kind_name(draft->desc->kind), draft->n_reads, n_writes, info->n_reads, info->n_writes);
}

static tide_status resolve_reads(tide__emitter *e, const tide__draft *draft, const tide__op_rule *rule,
                                 const tide__recipe *recipe) {
    e->reads.count = 0;
    TIDE_TRY(tide__vec_reserve(&e->reads, draft->n_reads));
    for (uint32_t i = 0; i < draft->n_reads; i++) {
        tide_id read = draft->reads[i];
        if (!rule->flat) TIDE_TRY(in_layout(e, draft, read, recipe, i, &read));
        e->reads.data[e->reads.count++] = read;
    }
    return TIDE_OK;
}

/* The read whose bytes this write takes over; TIDE_NONE if there is none. */
static tide_id paired_read(const tide__emitter *e, const tide__op_rule *rule, uint32_t write) {
    for (uint32_t i = 0; i < rule->n_pairs; i++)
        if (rule->pair[i].write == write) return e->reads.data[rule->pair[i].read];
    return TIDE_NONE;
}

static tide_status add_write(tide__emitter *e, const tide__draft *draft, const tide__op_rule *rule,
                             const tide__recipe *recipe, uint32_t i, tide_id *out) {
    tide__origin origin = {.recipe = recipe, .operand = recipe->info.n_reads + i};
    tide_id read = paired_read(e, rule, i);
    if (rule->flat && read != TIDE_NONE) origin = e->tensors.data[read];
    origin.size_bytes = recipe->info.write[i].size_bytes; /* a part has the layout of the whole */
    const tide__write_rule *write = &rule->write[rule->numbered ? 0 : i];
    tide_tensor tensor = {.dtype = write->dtype, .cls = write->cls, .keep = write->keep};
    if (rule->same_class) tensor.cls = origin.cls;
    char number[12];
    number_text(number, rule->numbered ? i : draft->again, rule->numbered);
    tensor.dtype = tide__recipe_dtype(e->recipes, origin.recipe, origin.operand, tensor.dtype);
    TIDE_TRY(make_name(e, draft->name, write->suffix, number, &tensor.name));
    return add_tensor(e, tensor, origin, out);
}

/* Pairs of the rule whose tensors are equally large as stored. */
static uint32_t list_pairs(const tide__emitter *e, const tide__op_rule *rule, const tide_id *writes,
                           tide_inplace *pairs) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rule->n_pairs; i++) {
        tide_id read = e->reads.data[rule->pair[i].read], write = writes[rule->pair[i].write];
        if (e->tensors.data[read].size_bytes == e->tensors.data[write].size_bytes) pairs[n++] = rule->pair[i];
    }
    return n;
}

tide_status tide__emit(tide__emitter *e, const tide__draft *draft, tide_id writes[TIDE__MAX_WRITES]) {
    const tide__op_rule *rule = tide__op_rule_of(draft->desc->kind, draft->phase);
    if (!rule) return tide__fail(TIDE_E_INTERNAL, "%s: op kind %d has no rule", draft->name, (int)draft->desc->kind);
    uint32_t n_writes = tide__op_n_writes(rule, draft->desc);
    const tide__recipe *recipe;
    TIDE_TRY(tide__recipes_find(e->recipes, draft->desc, &recipe));
    TIDE_TRY(check_counts(draft, n_writes, &recipe->info));
    TIDE_TRY(resolve_reads(e, draft, rule, recipe));
    for (uint32_t i = 0; i < n_writes; i++) TIDE_TRY(add_write(e, draft, rule, recipe, i, &writes[i]));
    tide_inplace pairs[3];
    tide_op op = {.phase = draft->phase, .n_reads = draft->n_reads, .reads = e->reads.data, .n_writes = n_writes};
    op.writes = writes;
    op.n_inplace = list_pairs(e, rule, writes, pairs);
    op.inplace = pairs;
    op.counter = draft->draw;
    char number[12];
    number_text(number, draft->again, false);
    TIDE_TRY(make_name(e, draft->name, rule->suffix, number, &op.name));
    return add_op(e, rule, recipe, op);
}

/* ---- messages ---- */

static tide_status add_message(tide__emitter *e, const tide__draft *draft, const tide_message *message, tide_op op) {
    static const tide_variant only = {0};
    char number[12];
    number_text(number, draft->again, false);
    TIDE_TRY(make_name(e, draft->name, message->receives ? ".receive" : ".send", number, &op.name));
    op.phase = draft->phase;
    op.n_variants = 1;
    op.variants = &only;
    op.message = message;
    TIDE_TRY(tide__vec_reserve(&e->ops, 1));
    TIDE_TRY(tide_program_builder_op(e->builder, &op, NULL));
    e->ops.data[e->ops.count++] = NULL;
    return TIDE_OK;
}

tide_status tide__emit_send(tide__emitter *e, const tide__draft *draft, tide_id tensor, uint32_t peer,
                            uint64_t number) {
    const tide_message message = {.receives = false, .peer = peer, .number = number};
    return add_message(e, draft, &message, (tide_op){.n_reads = 1, .reads = &tensor});
}

static tide_status receive(tide__emitter *e, const tide__draft *draft, tide__origin origin, uint32_t peer,
                           uint64_t number, tide_id *out) {
    const tide_message message = {.receives = true, .peer = peer, .number = number};
    tide_tensor tensor = {.dtype = TIDE_F32, .cls = origin.cls};
    char text[12];
    tide_id id;
    number_text(text, draft->again, false);
    TIDE_TRY(make_name(e, draft->name, ".received", text, &tensor.name));
    TIDE_TRY(add_tensor(e, tensor, origin, &id));
    TIDE_TRY(add_message(e, draft, &message, (tide_op){.n_writes = 1, .writes = &id}));
    *out = id;
    return TIDE_OK;
}

tide_status tide__emit_receive(tide__emitter *e, const tide__draft *draft, const tide__arrival *as, uint32_t peer,
                               uint64_t number, tide_id *out) {
    tide__origin origin = {.operand = as->operand, .cls = as->cls};
    if (as->like != TIDE_NONE) {
        origin = e->tensors.data[as->like];
    } else {
        TIDE_TRY(tide__recipes_find(e->recipes, draft->desc, &origin.recipe));
        origin.size_bytes = tide__recipe_operand(origin.recipe, as->operand)->size_bytes;
    }
    if (as->part_bytes) origin.size_bytes = as->part_bytes;
    return receive(e, draft, origin, peer, number, out);
}

/* ---- parts ---- */

tide_status tide__emit_cut(tide__emitter *e, tide__draft draft, tide_id whole, uint64_t first, uint64_t floats,
                           tide_id *part) {
    const tide_op_desc desc = {
        .kind = TIDE_OP_CUT, .elements = tide__emitter_floats(e, whole), .part_first = first, .part_elements = floats};
    tide_id writes[TIDE__MAX_WRITES];
    draft.desc = &desc;
    draft.reads = &whole;
    draft.n_reads = 1;
    TIDE_TRY(tide__emit(e, &draft, writes));
    *part = writes[0];
    return TIDE_OK;
}

tide_status tide__emit_paste(tide__emitter *e, tide__draft draft, tide_id part, uint64_t first, uint64_t floats,
                             tide_id *whole) {
    const bool has_prev = *whole != TIDE_NONE;
    const tide_op_desc desc = {.kind = TIDE_OP_PASTE,
                               .elements = floats,
                               .has_prev = has_prev,
                               .part_first = first,
                               .part_elements = tide__emitter_floats(e, part)};
    const tide_id reads[2] = {has_prev ? *whole : part, part};
    tide_id writes[TIDE__MAX_WRITES];
    draft.desc = &desc;
    draft.reads = reads;
    draft.n_reads = has_prev ? 2 : 1;
    TIDE_TRY(tide__emit(e, &draft, writes));
    *whole = writes[0];
    return TIDE_OK;
}
