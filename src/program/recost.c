/* The same program in another form: with measured costs instead of modelled ones (sizes, order and signature stay, so
 * plans for the one are plans for the other), as a program that runs once, or with its ops in another order. */
#include <stdlib.h>

#include "program/build.h"

typedef TIDE_VEC(tide_variant) variant_list;

/* The other variants keep their ratio to the default one, which is all that is known of them. */
static tide_status scale_variants(const tide_op *op, uint64_t cost_ns, variant_list *out) {
    double factor = op->variants[0].cost_ns ? (double)cost_ns / (double)op->variants[0].cost_ns : 1;
    out->count = 0;
    for (uint32_t i = 0; i < op->n_variants; i++) {
        tide_variant v = op->variants[i];
        double scaled = (double)v.cost_ns * factor;
        v.cost_ns = i == 0 ? cost_ns : scaled < 0x1p62 ? (uint64_t)scaled : UINT64_C(1) << 62;
        TIDE_TRY(tide__vec_push(out, v));
    }
    return TIDE_OK;
}

/* What is different from the program that is copied. */
typedef struct changes {
    bool repeating;
    const uint64_t *cost_ns; /* per op; NULL: those it has */
    const tide_id *order;    /* NULL: the one it has */
} changes;

static tide_status copy_all(const tide_program *p, const changes *c, variant_list *variants, tide_program_builder *b) {
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        TIDE_TRY(tide_program_builder_tensor(b, tide_program_tensor(p, t), NULL));
    for (tide_id i = 0; i < tide_program_op_count(p); i++) {
        tide_op op = *tide_program_op(p, c->order ? c->order[i] : i);
        if (c->cost_ns) {
            TIDE_TRY(scale_variants(&op, c->cost_ns[i], variants));
            op.variants = variants->data;
        }
        TIDE_TRY(tide_program_builder_op(b, &op, NULL));
    }
    for (uint32_t i = 0; c->repeating && i < tide_program_carry_count(p); i++)
        TIDE_TRY(tide_program_builder_carry(b, *tide_program_carry(p, i)));
    return TIDE_OK;
}

static tide_status copy_program(const tide_program *p, const changes *c, tide_program **out) {
    tide_program_builder *b;
    variant_list variants = {0};
    TIDE_TRY(tide_program_builder_create(tide_program_name(p), c->repeating, &b));
    tide_status status = copy_all(p, c, &variants, b);
    if (status == TIDE_OK) status = tide_program_builder_finish(b, out);
    if (status != TIDE_OK) tide_program_builder_destroy(b);
    tide__vec_free(&variants);
    return status;
}

tide_status tide_program_with_costs(const tide_program *p, const uint64_t *cost_ns, tide_program **out) {
    TIDE_NEED(p, cost_ns, out);
    return copy_program(p, &(changes){.repeating = tide_program_is_repeating(p), .cost_ns = cost_ns}, out);
}

tide_status tide__program_once(const tide_program *p, tide_program **out) {
    return copy_program(p, &(changes){.repeating = false}, out);
}

tide_status tide__program_reorder(const tide_program *p, const tide_id *order, tide_program **out) {
    return copy_program(p, &(changes){.repeating = tide_program_is_repeating(p), .order = order}, out);
}
