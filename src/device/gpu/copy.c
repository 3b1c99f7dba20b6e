/* Ops that only move floats: concat and its gradient, slice, stack, reorder. */
#include "device/gpu/copy.h"

tide_status tide__gpu_copy(tide__gpu_kernel *k, tide__blocks_of from, tide__blocks_of to, int64_t n, int64_t blocks) {
    return TIDE__LAUNCH(k, "copy", "copy_blocks", tide__runs((uint64_t)n), blocks, 1,
                        tide__place_at(from.operand, from.first * 4), tide__place_at(to.operand, to.first * 4),
                        tide__long((uint64_t)n), tide__long((uint64_t)from.stride), tide__long((uint64_t)to.stride));
}

/* The channels of a part lie together in each image of the whole. */
tide_status tide__gpu_build_concat(tide__gpu_kernel *k, const tide_op_desc *d) {
    const bool join = d->kind == TIDE_OP_CONCAT_FWD;
    const int64_t pixels = d->y.h * d->y.w;
    tide__blocks_of whole = {.operand = join ? d->n_parts : 0, .stride = d->y.c * pixels};
    if (!join) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&d->y)));
    for (uint32_t i = 0; i < d->n_parts; i++) {
        const uint64_t n = (uint64_t)(d->y.n * d->part_channels[i] * pixels);
        TIDE_TRY(join ? tide__gpu_reads(k, TIDE__F32, n) : tide__gpu_writes(k, TIDE__F32, n));
    }
    if (join) TIDE_TRY(tide__gpu_writes(k, TIDE__F32, tide__shape_elements(&d->y)));
    for (uint32_t i = 0; i < d->n_parts; i++) {
        const int64_t n = d->part_channels[i] * pixels;
        const tide__blocks_of part = {.operand = join ? i : i + 1, .stride = n};
        TIDE_TRY(tide__gpu_copy(k, join ? part : whole, join ? whole : part, n, d->y.n));
        whole.first += n;
    }
    return TIDE_OK;
}

/* Step s of S has rows s, s + S, s + 2 S ... */
tide_status tide__gpu_build_steps(tide__gpu_kernel *k, const tide_op_desc *d) {
    const bool slice = d->kind == TIDE_OP_SLICE;
    const int64_t width = d->x.c, rows = slice ? d->y.n : d->x.n, all = d->steps * width;
    for (int32_t i = 0; i < (slice ? 1 : d->steps); i++)
        TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&d->x)));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, tide__shape_elements(&d->y)));
    if (slice)
        return tide__gpu_copy(k, (tide__blocks_of){0, d->step * width, all}, (tide__blocks_of){1, 0, width}, width,
                              rows);
    for (int32_t i = 0; i < d->steps; i++)
        TIDE_TRY(tide__gpu_copy(k, (tide__blocks_of){(uint32_t)i, 0, width},
                                (tide__blocks_of){(uint32_t)d->steps, i * width, all}, width, rows));
    return TIDE_OK;
}

/* Every layout is plain, so a reorder is a copy. */
static tide_status find_operand(tide__gpu_kernel *k, const char *which, const tide_op_desc *d, uint32_t operand,
                                tide__gpu_operand *out) {
    tide_kernel *kernel = NULL;
    if (!d || d->kind == TIDE_OP_REORDER || (unsigned)d->kind >= TIDE_OP_KIND_COUNT)
        return tide__fail(TIDE_E_ARGUMENT, "`%s` must be an op that is not itself a reorder", which);
    TIDE_TRY(tide__gpu_kernel_create(k->base.device, d, &kernel));
    const tide__gpu_kernel *other = (const tide__gpu_kernel *)kernel;
    tide_status status = TIDE_OK;
    if (operand < other->operands.count)
        *out = other->operands.data[operand];
    else
        status = tide__fail(TIDE_E_ARGUMENT, "`%s` has no operand %u", which, operand);
    tide__gpu_kernel_destroy(kernel);
    return status;
}

tide_status tide__gpu_build_reorder(tide__gpu_kernel *k, const tide_op_desc *d) {
    tide__gpu_operand from = {0}, to = {0};
    TIDE_TRY(find_operand(k, "from", d->from, d->from_operand, &from));
    TIDE_TRY(find_operand(k, "to", d->to, d->to_operand, &to));
    if (from.elements != to.elements || from.type != to.type)
        return tide__fail(TIDE_E_ARGUMENT, "the two operands have different shapes");
    if (from.type != TIDE__F32) return tide__fail(TIDE_E_UNSUPPORTED, "a reorder of other than floats");
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, from.elements));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, to.elements));
    return tide__gpu_copy(k, (tide__blocks_of){0, 0, 0}, (tide__blocks_of){1, 0, 0}, (int64_t)from.elements, 1);
}

/* Some floats of a whole, out of it or into it. */
tide_status tide__gpu_build_cut(tide__gpu_kernel *k, const tide_op_desc *d) {
    const bool out = d->kind == TIDE_OP_CUT;
    const uint32_t before = !out && d->has_prev ? 1 : 0;
    const int64_t n = (int64_t)d->part_elements;
    const tide__blocks_of first = {.operand = before, .first = out ? (int64_t)d->part_first : 0, .stride = n};
    const tide__blocks_of second = {.operand = before + 1, .first = out ? 0 : (int64_t)d->part_first, .stride = n};
    if (before) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, d->elements));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, out ? d->elements : d->part_elements));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, out ? d->part_elements : d->elements));
    return tide__gpu_copy(k, first, second, n, 1);
}
