/* Reading a built program: plain accessors, nothing computed. Invariant: an id out of range gives NULL. */
#include "program/program_data.h"

#include <stdlib.h>

void tide_program_destroy(tide_program *p) {
    if (!p) return;
    tide__vec_free(&p->tensors);
    tide__vec_free(&p->producers);
    tide__vec_free(&p->ops);
    tide__vec_free(&p->carries);
    tide__store_free(&p->store);
    free(p);
}

const char *tide_program_name(const tide_program *p) { return p->name; }

bool tide_program_is_repeating(const tide_program *p) { return p->repeating; }

uint32_t tide_program_tensor_count(const tide_program *p) { return (uint32_t)p->tensors.count; }

uint32_t tide_program_op_count(const tide_program *p) { return (uint32_t)p->ops.count; }

uint32_t tide_program_carry_count(const tide_program *p) { return (uint32_t)p->carries.count; }

const tide_tensor *tide_program_tensor(const tide_program *p, tide_id tensor) {
    return tensor < p->tensors.count ? &p->tensors.data[tensor] : NULL;
}

const tide_op *tide_program_op(const tide_program *p, tide_id op) {
    return op < p->ops.count ? &p->ops.data[op] : NULL;
}

const tide_carry *tide_program_carry(const tide_program *p, uint32_t i) {
    return i < p->carries.count ? &p->carries.data[i] : NULL;
}

tide_id tide_program_producer(const tide_program *p, tide_id tensor) {
    return tensor < p->producers.count ? p->producers.data[tensor] : TIDE_NONE;
}

uint32_t tide_program_message_count(const tide_program *p) { return p->n_messages; }

uint64_t tide_program_cost_ns(const tide_program *p) { return p->cost_ns; }

tide_signature tide_program_signature(const tide_program *p) { return p->signature; }
