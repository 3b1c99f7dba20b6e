/* REORDER: the same values in the layout of another op's operand. The two layouts come from kernels that are built
 * for the two ops and thrown away. */
#include "device/cpu/prim.h"

/* Declares as operand of k what is operand `operand` of `desc`. */
static tide_status add_operand_of(tide__cpu_kernel *k, tide__access access, const tide_op_desc *desc,
                                  uint32_t operand) {
    const char *which = access == TIDE__READ ? "from" : "to";
    tide_kernel *kernel = NULL;
    if (!desc || desc->kind == TIDE_OP_REORDER || (unsigned)desc->kind >= TIDE_OP_KIND_COUNT)
        return tide__fail(TIDE_E_ARGUMENT, "`%s` must be an op that is not itself a reorder", which);
    TIDE_TRY(tide__cpu_kernel_create(k->base.device, desc, &kernel));
    const tide__cpu_kernel *other = (const tide__cpu_kernel *)kernel;
    tide_status status = operand < other->operands.count
                             ? tide__add_copy(k, access, &other->operands.data[operand])
                             : tide__fail(TIDE_E_ARGUMENT, "`%s` has no operand %u", which, operand);
    tide__cpu_kernel_destroy(kernel);
    return status;
}

static tide_status check_same_values(tide__md from, tide__md to) {
    const tide__md_view a = tide__md_look(from), b = tide__md_look(to);
    bool same = a.n_dims == b.n_dims && a.type == b.type;
    for (int i = 0; same && i < a.n_dims; i++) same = a.dims[i] == b.dims[i];
    return same ? TIDE_OK : tide__fail(TIDE_E_ARGUMENT, "the two operands have different shapes");
}

tide_status tide__build_reorder(tide__cpu_kernel *k, const tide_op_desc *source) {
    static const tide__bind binds[] = {{DNNL_ARG_FROM, 0}, {DNNL_ARG_TO, 1}};
    dnnl_primitive_desc_t pd = NULL;
    TIDE_TRY(add_operand_of(k, TIDE__READ, source->from, source->from_operand));
    TIDE_TRY(add_operand_of(k, TIDE__WRITE, source->to, source->to_operand));
    tide__md from = k->operands.data[0].md, to = k->operands.data[1].md;
    TIDE_TRY(check_same_values(from, to));
    TIDE_TRY(tide__reorder_pd_create(((tide__cpu *)k->base.device)->engine, from, to, &pd));
    tide_status status = tide__prim_attach(k, pd, binds, 2);
    tide__pd_destroy(pd);
    return status;
}
