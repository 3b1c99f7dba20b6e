/* The builder: appends checked tensors, ops and carries to a program under construction.
 *
 * Invariant: a call checks everything and reserves all memory first and changes the program last, so a failed call
 * leaves it as it was (bytes already copied into the store stay there, unseen). */
#include "program/build.h"

#include <stdlib.h>

#include "base/error.h"

tide_status tide_program_builder_create(const char *name, bool repeating, tide_program_builder **out) {
    TIDE_NEED(name, out);
    tide_program_builder *b = calloc(1, sizeof *b);
    tide_program *p = calloc(1, sizeof *p);
    if (!b || !p || tide__store_string(&p->store, name, &p->name) != TIDE_OK) {
        free(b);
        free(p);
        return tide__fail_memory();
    }
    p->repeating = repeating;
    b->program = p;
    *out = b;
    return TIDE_OK;
}

static void free_builder_only(tide_program_builder *b) {
    tide__vec_free(&b->states);
    tide__vec_free(&b->pair_marks);
    free(b);
}

void tide_program_builder_destroy(tide_program_builder *b) {
    if (!b) return;
    tide_program_destroy(b->program);
    free_builder_only(b);
}

tide_status tide_program_builder_tensor(tide_program_builder *b, const tide_tensor *tensor, tide_id *out) {
    TIDE_NEED(b, tensor);
    tide_program *p = b->program;
    TIDE_TRY(tide__check_tensor(b, tensor));
    TIDE_TRY(tide__vec_reserve(&p->tensors, 1));
    TIDE_TRY(tide__vec_reserve(&p->producers, 1));
    TIDE_TRY(tide__vec_reserve(&b->states, 1));
    tide_tensor copy = *tensor;
    TIDE_TRY(tide__store_string(&p->store, tensor->name, &copy.name));
    tide_id id = (tide_id)p->tensors.count;
    p->tensors.data[p->tensors.count++] = copy;
    p->producers.data[p->producers.count++] = TIDE_NONE;
    b->states.data[b->states.count++] = (tide__build_state){.destroyed_by = TIDE_NONE};
    b->sum_bytes += copy.size_bytes;
    if (out) *out = id;
    return TIDE_OK;
}

static tide_status copy_split(tide_program *p, const tide_op *op, const tide_split **out) {
    const void *reads, *writes, *split;
    if (!op->split) return *out = NULL, TIDE_OK;
    tide_split copy = *op->split;
    TIDE_TRY(tide__store_copy(&p->store, copy.reads, op->n_reads, sizeof *copy.reads, &reads));
    TIDE_TRY(tide__store_copy(&p->store, copy.writes, op->n_writes, sizeof *copy.writes, &writes));
    copy.reads = reads;
    copy.writes = writes;
    TIDE_TRY(tide__store_copy(&p->store, &copy, 1, sizeof copy, &split));
    *out = split;
    return TIDE_OK;
}

static tide_status copy_op(tide_program *p, const tide_op *op, tide_op *copy) {
    const void *reads, *writes, *inplace, *variants, *message;
    *copy = *op;
    if (!op->random) copy->counter = 0;
    TIDE_TRY(tide__store_copy(&p->store, op->reads, op->n_reads, sizeof *op->reads, &reads));
    TIDE_TRY(tide__store_copy(&p->store, op->writes, op->n_writes, sizeof *op->writes, &writes));
    TIDE_TRY(tide__store_copy(&p->store, op->inplace, op->n_inplace, sizeof *op->inplace, &inplace));
    TIDE_TRY(tide__store_copy(&p->store, op->variants, op->n_variants, sizeof *op->variants, &variants));
    TIDE_TRY(tide__store_copy(&p->store, op->message, op->message != NULL, sizeof *op->message, &message));
    copy->reads = reads;
    copy->writes = writes;
    copy->inplace = inplace;
    copy->variants = variants;
    copy->message = message;
    TIDE_TRY(copy_split(p, op, &copy->split));
    return tide__store_string(&p->store, op->name, &copy->name);
}

/* What an accepted op means for its tensors and for the sums. */
static void account_op(tide_program_builder *b, const tide_op *op, tide_id id) {
    uint64_t workspace_bytes, cost_ns;
    tide__op_extremes(op, &workspace_bytes, &cost_ns);
    b->sum_bytes += workspace_bytes;
    b->sum_ns += cost_ns;
    b->program->cost_ns += op->variants[0].cost_ns;
    if (op->message) b->program->last_message = op->message->number;
    b->program->n_messages += op->message != NULL;
    for (uint32_t i = 0; i < op->n_writes; i++) b->program->producers.data[op->writes[i]] = id;
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) b->states.data[op->reads[op->inplace[i].read]].destroyed_by = id;
}

static tide_status blame_op(tide_status status, tide_id id, const char *name) {
    if (!name || !*name) return tide__fail_in(status, "op %u", id);
    return tide__fail_in(status, "op %u \"%.60s\"", id, name);
}

tide_status tide_program_builder_op(tide_program_builder *b, const tide_op *op, tide_id *out) {
    TIDE_NEED(b, op);
    tide_program *p = b->program;
    tide_op copy;
    tide_id id = (tide_id)p->ops.count;
    if (!op) return tide__fail(TIDE_E_ARGUMENT, "no op given");
    tide_status status = tide__check_op(b, op);
    if (status != TIDE_OK) return blame_op(status, id, op->name);
    TIDE_TRY(tide__vec_reserve(&p->ops, 1));
    TIDE_TRY(copy_op(p, op, &copy));
    p->ops.data[p->ops.count++] = copy;
    account_op(b, &copy, id);
    if (out) *out = id;
    return TIDE_OK;
}

tide_status tide_program_builder_carry(tide_program_builder *b, tide_carry carry) {
    TIDE_NEED(b);
    TIDE_TRY(tide__check_carry(b, carry));
    TIDE_TRY(tide__vec_push(&b->program->carries, carry));
    b->states.data[carry.to].carried_to = true;
    return TIDE_OK;
}

tide_status tide_program_builder_keep(tide_program_builder *b, tide_id tensor) {
    TIDE_NEED(b);
    TIDE_TRY(tide__check_keep(b, tensor));
    b->program->tensors.data[tensor].keep = true;
    return TIDE_OK;
}

tide_status tide_program_builder_finish(tide_program_builder *b, tide_program **out) {
    TIDE_NEED(b, out);
    TIDE_TRY(tide__check_whole(b));
    TIDE_TRY(tide__signature_compute(b->program, &b->program->signature));
    *out = b->program;
    free_builder_only(b);
    return TIDE_OK;
}
