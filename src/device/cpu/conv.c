/* Convolutions by oneDNN, where winograd.h has nothing better.
 *
 * Each of the three kinds has a list of ways to do it, best first: on the stored layouts, or on plain row-major
 * copies staged in the workspace, where oneDNN has a fast general code. The first way that is not oneDNN's reference
 * code wins (that code is 10 to 100 times slower). The stored layout of weights is the choice of the forward
 * primitive; backward-weights delivers that layout, backward-data states what it wants instead.
 *
 * What else oneDNN has for the op, on the same stored operands but with another amount of workspace, becomes a variant:
 * its general code on plain copies, or its direct code in place of a special one. */
#include <string.h>

#include "device/cpu/linear.h"
#include "device/cpu/winograd.h"

static dnnl_engine_t engine_of(const tide__cpu_kernel *k) { return ((tide__cpu *)k->base.device)->engine; }

static tide_status describe_images(tide__mds *mds, const tide_op_desc *d, bool plain, tide__conv_spec *way) {
    const dnnl_dims_t x = {d->x.n, d->x.c, d->x.h, d->x.w}, y = {d->y.n, d->y.c, d->y.h, d->y.w};
    if (plain) {
        TIDE_TRY(tide__md_create(mds, 4, x, dnnl_f32, dnnl_nchw, &way->x));
        return tide__md_create(mds, 4, y, dnnl_f32, dnnl_nchw, &way->y);
    }
    TIDE_TRY(tide__activation_md(mds, &d->x, dnnl_f32, &way->x));
    return tide__activation_md(mds, &d->y, dnnl_f32, &way->y);
}

/* w: the layout of the weights; NULL: what the primitive likes best. */
static tide_status make_way(tide__mds *mds, const tide_op_desc *d, bool plain, tide__md w, tide__conv_spec *out) {
    const dnnl_dims_t weights = {d->y.c, d->x.c, d->kernel_h, d->kernel_w}, bias = {d->y.c};
    tide__conv_spec way = {.w = w, .strides = {d->stride, d->stride}, .pad_before = {d->pad_h, d->pad_w}};
    way.pad_after[0] = (d->y.h - 1) * d->stride + d->kernel_h - d->x.h - d->pad_h;
    way.pad_after[1] = (d->y.w - 1) * d->stride + d->kernel_w - d->x.w - d->pad_w;
    TIDE_TRY(describe_images(mds, d, plain, &way));
    if (!w) TIDE_TRY(tide__md_create(mds, 4, weights, dnnl_f32, dnnl_format_tag_any, &way.w));
    if (d->bias) TIDE_TRY(tide__md_create(mds, 1, bias, dnnl_f32, dnnl_a, &way.bias));
    *out = way;
    return TIDE_OK;
}

/* What backward primitives want besides: the forward one of the same layouts, with weights as it likes them. NULL for a
 * forward one. */
static tide_status create_hint(tide__cpu_kernel *k, const tide_op_desc *d, tide_op_kind kind,
                               const tide__conv_spec *way, dnnl_primitive_desc_t *out) {
    const dnnl_dims_t weights = {d->y.c, d->x.c, d->kernel_h, d->kernel_w};
    tide__conv_spec forward = *way;
    *out = NULL;
    if (kind == TIDE_OP_CONV_FWD) return TIDE_OK;
    TIDE_TRY(tide__md_create(&k->mds, 4, weights, dnnl_f32, dnnl_format_tag_any, &forward.w));
    return tide__conv_pd_create(engine_of(k), TIDE_OP_CONV_FWD, &forward, NULL, out);
}

static tide_status create_pd(tide__cpu_kernel *k, const tide_op_desc *d, tide_op_kind kind, const tide__conv_spec *way,
                             dnnl_primitive_desc_t *out) {
    dnnl_primitive_desc_t hint = NULL;
    TIDE_TRY(create_hint(k, d, kind, way, &hint));
    tide_status status = tide__conv_pd_create(engine_of(k), kind, way, hint, out);
    tide__pd_destroy(hint);
    return status;
}

/* The first way that is not reference code, else the first that exists. */
static tide_status choose(tide__cpu_kernel *k, const tide_op_desc *d, tide_op_kind kind, const tide__conv_spec *ways,
                          int n_ways, dnnl_primitive_desc_t *out) {
    dnnl_primitive_desc_t best = NULL;
    tide_status status = TIDE_OK;
    for (int i = 0; i < n_ways; i++) {
        dnnl_primitive_desc_t pd = NULL;
        tide_status created = create_pd(k, d, kind, &ways[i], &pd);
        if (created == TIDE_OK && (!best || !tide__pd_is_ref(pd))) {
            tide__pd_destroy(best);
            best = pd;
            if (!tide__pd_is_ref(pd)) break;
        } else if (created == TIDE_OK) {
            tide__pd_destroy(pd);
        } else {
            status = created;
        }
    }
    if (!best) return status;
    *out = best;
    return TIDE_OK;
}

tide_status tide__conv_choose(tide__cpu_kernel *k, const tide_op_desc *d, tide_op_kind kind,
                              dnnl_primitive_desc_t *out) {
    tide__conv_spec ways[2];
    TIDE_TRY(make_way(&k->mds, d, false, NULL, &ways[0]));
    TIDE_TRY(make_way(&k->mds, d, true, NULL, &ways[1]));
    return choose(k, d, kind, ways, 2, out);
}

/* As kind `owner` stores them. */
static tide_status stored_weights(tide__cpu_kernel *k, const tide_op_desc *d, tide_op_kind owner, tide__md *out) {
    dnnl_primitive_desc_t pd = NULL;
    TIDE_TRY(tide__conv_choose(k, d, owner, &pd));
    tide_status status = tide__md_keep(&k->mds, tide__pd_md(pd, DNNL_ARG_WEIGHTS), out);
    tide__pd_destroy(pd);
    return status;
}

tide_status tide__conv_choose_weights(tide__cpu_kernel *k, const tide_op_desc *d, tide_op_kind owner, tide__md *stored,
                                      dnnl_primitive_desc_t *out) {
    tide__conv_spec ways[3];
    TIDE_TRY(stored_weights(k, d, owner, stored));
    TIDE_TRY(make_way(&k->mds, d, false, *stored, &ways[0]));
    TIDE_TRY(make_way(&k->mds, d, false, NULL, &ways[1]));
    TIDE_TRY(make_way(&k->mds, d, true, NULL, &ways[2]));
    return choose(k, d, TIDE_OP_CONV_BWD_WEIGHTS, ways, 3, out);
}

/* ---- variants ---- */

/* Code for older processors is slower at the same workspace. */
static bool is_worth_it(const_dnnl_primitive_desc_t pd, const char *chosen) {
    const char *name = tide__pd_name(pd);
    return !tide__pd_is_ref(pd) && !strstr(name, "sse") && strcmp(name, chosen) != 0;
}

/* Adds pd unless a variant has the same amount of workspace. */
static tide_status add_variant(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd) {
    if (k->n_alternatives == TIDE__MAX_ALTERNATIVES) return TIDE_OK;
    tide_status status = tide__linear_alternative(k, pd);
    const tide__alternative *newest = &k->alternatives[k->n_alternatives - 1];
    bool known = newest->workspace_bytes == k->workspace_bytes;
    for (uint32_t i = 0; i + 1 < k->n_alternatives; i++)
        known = known || newest->workspace_bytes == k->alternatives[i].workspace_bytes;
    if (status == TIDE_OK && !known) return TIDE_OK;
    tide__prim_destroy(newest->prim);
    k->n_alternatives--;
    return status == TIDE_E_UNSUPPORTED ? TIDE_OK : status; /* no reorder to its layouts */
}

typedef struct variants {
    tide__cpu_kernel *k;
    const char *chosen; /* the name of variant 0 */
} variants;

static tide_status visit_variant(void *context, const_dnnl_primitive_desc_t pd) {
    const variants *v = context;
    return is_worth_it(pd, v->chosen) ? add_variant(v->k, pd) : TIDE_OK;
}

/* oneDNN may have nothing for this way: then there is nothing to add. */
static tide_status add_variants_of(variants *v, bool plain, tide__md weights) {
    tide__cpu_kernel *k = v->k;
    dnnl_primitive_desc_t hint = NULL;
    tide__conv_spec way;
    TIDE_TRY(make_way(&k->mds, &k->desc, plain, weights, &way));
    if (create_hint(k, &k->desc, k->desc.kind, &way, &hint) != TIDE_OK) return TIDE_OK;
    tide_status status = tide__conv_pd_each(engine_of(k), k->desc.kind, &way, hint, visit_variant, v);
    tide__pd_destroy(hint);
    return status;
}

static tide_status add_variants(tide__cpu_kernel *k, tide__md weights, const char *chosen) {
    variants v = {k, chosen};
    TIDE_TRY(add_variants_of(&v, false, weights));
    return add_variants_of(&v, true, NULL);
}

static tide_status build_by_primitive(tide__cpu_kernel *k, const tide_op_desc *source) {
    dnnl_primitive_desc_t pd = NULL;
    tide__md stored;
    tide_status status;
    if (source->kind == TIDE_OP_CONV_BWD_WEIGHTS) {
        TIDE_TRY(tide__conv_choose_weights(k, source, TIDE_OP_CONV_FWD, &stored, &pd));
        status = tide__linear_backward_weights(k, pd, stored);
    } else {
        TIDE_TRY(tide__conv_choose(k, source, source->kind, &pd));
        stored = tide__pd_md(pd, DNNL_ARG_WEIGHTS);
        status = source->kind == TIDE_OP_CONV_FWD ? tide__linear_forward(k, pd) : tide__linear_backward_data(k, pd);
    }
    if (status == TIDE_OK) status = add_variants(k, stored, tide__pd_name(pd));
    tide__pd_destroy(pd);
    return status;
}

/* Winograd's method reads and writes bf16 by itself. */
tide_status tide__build_conv(tide__cpu_kernel *k, const tide_op_desc *source) {
    tide__md stored;
    if (tide__winograd_is_for(source)) {
        TIDE_TRY(stored_weights(k, source, TIDE_OP_CONV_FWD, &stored));
        if (tide__winograd_reads(source, stored)) return tide__winograd_build(k, stored);
    }
    return source->bf16 ? tide__build_widened(k, source) : build_by_primitive(k, source);
}
