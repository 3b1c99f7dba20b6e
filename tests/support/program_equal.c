/* See program_equal.h. Field by field: structs have padding. */
#include "support/program_equal.h"

#include <string.h>

static bool same_array(const void *a, const void *b, size_t count, size_t size) {
    return count == 0 || memcmp(a, b, count * size) == 0;
}

static const char *tensor_difference(const tide_tensor *a, const tide_tensor *b) {
    if (strcmp(a->name, b->name) != 0) return "the name of a tensor";
    if (a->size_bytes != b->size_bytes || a->dtype != b->dtype) return "the size or dtype of a tensor";
    if (a->cls != b->cls || a->start != b->start || a->keep != b->keep) return "class, start or keep of a tensor";
    return NULL;
}

static bool same_pairs(const tide_op *a, const tide_op *b) {
    if (a->n_inplace != b->n_inplace) return false;
    for (uint32_t i = 0; i < a->n_inplace; i++) {
        tide_inplace x = a->inplace[i], y = b->inplace[i];
        if (x.read != y.read || x.write != y.write || x.must != y.must) return false;
    }
    return true;
}

static bool same_variants(const tide_op *a, const tide_op *b) {
    if (a->n_variants != b->n_variants) return false;
    for (uint32_t i = 0; i < a->n_variants; i++) {
        tide_variant x = a->variants[i], y = b->variants[i];
        if (x.workspace_bytes != y.workspace_bytes || x.cost_ns != y.cost_ns || x.bits_class != y.bits_class)
            return false;
    }
    return true;
}

static bool same_message(const tide_message *a, const tide_message *b) {
    if (!a || !b) return a == b;
    return a->receives == b->receives && a->peer == b->peer && a->number == b->number;
}

static const char *op_difference(const tide_op *a, const tide_op *b) {
    if (strcmp(a->name, b->name) != 0) return "the name of an op";
    if (a->phase != b->phase || a->rerunnable != b->rerunnable) return "phase or rerunnable of an op";
    if (a->random != b->random || a->counter != b->counter) return "the randomness of an op";
    if (a->n_reads != b->n_reads || a->n_writes != b->n_writes) return "the number of reads or writes";
    if (!same_array(a->reads, b->reads, a->n_reads, sizeof *a->reads)) return "the reads of an op";
    if (!same_array(a->writes, b->writes, a->n_writes, sizeof *a->writes)) return "the writes of an op";
    if (!same_pairs(a, b)) return "the in-place pairs of an op";
    if (!same_message(a->message, b->message)) return "the message of an op";
    return same_variants(a, b) ? NULL : "the variants of an op";
}

static const char *count_difference(const tide_program *p, const tide_program *q) {
    if (tide_program_tensor_count(p) != tide_program_tensor_count(q)) return "the number of tensors";
    if (tide_program_op_count(p) != tide_program_op_count(q)) return "the number of ops";
    if (tide_program_carry_count(p) != tide_program_carry_count(q)) return "the number of carries";
    if (strcmp(tide_program_name(p), tide_program_name(q)) != 0) return "the name";
    if (tide_program_is_repeating(p) != tide_program_is_repeating(q)) return "the kind";
    return tide_program_cost_ns(p) == tide_program_cost_ns(q) ? NULL : "the cost";
}

const char *program_difference(const tide_program *p, const tide_program *q) {
    const char *found = count_difference(p, q);
    for (tide_id i = 0; !found && i < tide_program_tensor_count(p); i++) {
        found = tensor_difference(tide_program_tensor(p, i), tide_program_tensor(q, i));
        if (tide_program_producer(p, i) != tide_program_producer(q, i)) found = "the producer of a tensor";
    }
    for (tide_id i = 0; !found && i < tide_program_op_count(p); i++)
        found = op_difference(tide_program_op(p, i), tide_program_op(q, i));
    for (tide_id i = 0; !found && i < tide_program_carry_count(p); i++)
        if (memcmp(tide_program_carry(p, i), tide_program_carry(q, i), sizeof(tide_carry)) != 0) found = "a carry";
    tide_signature a = tide_program_signature(p), b = tide_program_signature(q);
    if (!found && memcmp(&a, &b, sizeof a) != 0) found = "the signature";
    return found;
}
