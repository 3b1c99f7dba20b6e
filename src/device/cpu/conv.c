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

/* What is needed to describe one way. */
typedef struct way {
    dnnl_memory_desc_t x, y, w, bias;
    dnnl_dims_t strides, pad_before, pad_after;
} way;

static void plain_md(const tide_shape *s, dnnl_memory_desc_t *out) {
    const dnnl_dims_t dims = {s->n, s->c, s->h, s->w};
    dnnl_memory_desc_init_by_tag(out, 4, dims, dnnl_f32, dnnl_nchw);
}

/* w: the layout of the weights; NULL: what the primitive likes best. */
static way make_way(const tide_op_desc *d, bool plain, const dnnl_memory_desc_t *w) {
    const dnnl_dims_t weights = {d->y.c, d->x.c, d->kernel_h, d->kernel_w}, bias = {d->y.c};
    way a = {.strides = {d->stride, d->stride}, .pad_before = {d->pad_h, d->pad_w}};
    a.pad_after[0] = (d->y.h - 1) * d->stride + d->kernel_h - d->x.h - d->pad_h;
    a.pad_after[1] = (d->y.w - 1) * d->stride + d->kernel_w - d->x.w - d->pad_w;
    if (plain) {
        plain_md(&d->x, &a.x);
        plain_md(&d->y, &a.y);
    } else {
        tide__activation_md(&d->x, dnnl_f32, &a.x);
        tide__activation_md(&d->y, dnnl_f32, &a.y);
    }
    dnnl_memory_desc_init_by_tag(&a.w, 4, weights, dnnl_f32, dnnl_format_tag_any);
    if (w) a.w = *w;
    dnnl_memory_desc_init_by_tag(&a.bias, 1, bias, dnnl_f32, dnnl_a);
    return a;
}

static dnnl_status_t describe(tide_op_kind kind, bool bias, const way *a, dnnl_convolution_desc_t *out) {
    const dnnl_memory_desc_t *b = bias ? &a->bias : NULL;
    if (kind == TIDE_OP_CONV_FWD)
        return dnnl_convolution_forward_desc_init(out, dnnl_forward_training, dnnl_convolution_direct, &a->x, &a->w, b,
                                                  &a->y, a->strides, a->pad_before, a->pad_after);
    if (kind == TIDE_OP_CONV_BWD_DATA)
        return dnnl_convolution_backward_data_desc_init(out, dnnl_convolution_direct, &a->x, &a->w, &a->y, a->strides,
                                                        a->pad_before, a->pad_after);
    return dnnl_convolution_backward_weights_desc_init(out, dnnl_convolution_direct, &a->x, &a->w, b, &a->y, a->strides,
                                                       a->pad_before, a->pad_after);
}

/* The primitive description of one way. Backward ones get the forward one of the same layouts as a hint. */
static tide_status create_pd(dnnl_engine_t engine, const tide_op_desc *d, tide_op_kind kind, const way *a,
                             dnnl_primitive_desc_t *out) {
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_t hint = NULL;
    if (kind != TIDE_OP_CONV_FWD) {
        way forward = *a;
        const dnnl_dims_t weights = {d->y.c, d->x.c, d->kernel_h, d->kernel_w};
        dnnl_memory_desc_init_by_tag(&forward.w, 4, weights, dnnl_f32, dnnl_format_tag_any);
        TIDE_TRY(create_pd(engine, d, TIDE_OP_CONV_FWD, &forward, &hint));
    }
    tide_status status = tide__dnnl(describe(kind, d->bias, a, &op), "describe a convolution");
    if (status == TIDE_OK) status = tide__pd_create(engine, &op, hint, out);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

/* The first way that is not reference code, else the first that exists. */
static tide_status choose(dnnl_engine_t engine, const tide_op_desc *d, tide_op_kind kind, const way *ways, int n_ways,
                          dnnl_primitive_desc_t *out) {
    dnnl_primitive_desc_t best = NULL;
    tide_status status = TIDE_OK;
    for (int i = 0; i < n_ways; i++) {
        dnnl_primitive_desc_t pd = NULL;
        tide_status created = create_pd(engine, d, kind, &ways[i], &pd);
        if (created == TIDE_OK && (!best || !tide__pd_is_ref(pd))) {
            dnnl_primitive_desc_destroy(best);
            best = pd;
            if (!tide__pd_is_ref(pd)) break;
        } else if (created == TIDE_OK) {
            dnnl_primitive_desc_destroy(pd);
        } else {
            status = created;
        }
    }
    if (!best) return status;
    *out = best;
    return TIDE_OK;
}

tide_status tide__conv_choose(dnnl_engine_t engine, const tide_op_desc *d, tide_op_kind kind,
                              dnnl_primitive_desc_t *out) {
    const way ways[] = {make_way(d, false, NULL), make_way(d, true, NULL)};
    return choose(engine, d, kind, ways, 2, out);
}

tide_status tide__conv_choose_weights(dnnl_engine_t engine, const tide_op_desc *d, tide_op_kind owner,
                                      dnnl_memory_desc_t *stored, dnnl_primitive_desc_t *out) {
    dnnl_primitive_desc_t pd = NULL;
    TIDE_TRY(tide__conv_choose(engine, d, owner, &pd));
    *stored = *tide__pd_md(pd, DNNL_ARG_WEIGHTS);
    dnnl_primitive_desc_destroy(pd);
    const way ways[] = {make_way(d, false, stored), make_way(d, false, NULL), make_way(d, true, NULL)};
    return choose(engine, d, TIDE_OP_CONV_BWD_WEIGHTS, ways, 3, out);
}

/* ---- variants ---- */

static const char *name_of(const_dnnl_primitive_desc_t pd) {
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}

/* Code for older processors is slower at the same workspace. */
static bool is_worth_it(const_dnnl_primitive_desc_t pd, const char *chosen) {
    const char *name = name_of(pd);
    return strncmp(name, "ref", 3) != 0 && !strstr(name, "sse") && strcmp(name, chosen) != 0;
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

/* All implementations that an iterator has to offer. */
static tide_status add_from(tide__cpu_kernel *k, dnnl_primitive_desc_iterator_t it, const char *chosen) {
    tide_status status = TIDE_OK;
    do {
        dnnl_primitive_desc_t pd = dnnl_primitive_desc_iterator_fetch(it);
        if (!pd) return tide__fail_memory();
        if (is_worth_it(pd, chosen)) status = add_variant(k, pd);
        dnnl_primitive_desc_destroy(pd);
    } while (status == TIDE_OK && dnnl_primitive_desc_iterator_next(it) == dnnl_success);
    return status;
}

/* oneDNN may have nothing for this way: then there is nothing to add. */
static tide_status add_variants_of(tide__cpu_kernel *k, dnnl_engine_t engine, const way *a, const char *chosen) {
    const tide_op_desc *d = &k->desc;
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_iterator_t it = NULL;
    dnnl_primitive_desc_t hint = NULL;
    way forward = *a;
    const dnnl_dims_t weights = {d->y.c, d->x.c, d->kernel_h, d->kernel_w};
    dnnl_memory_desc_init_by_tag(&forward.w, 4, weights, dnnl_f32, dnnl_format_tag_any);
    if (describe(d->kind, d->bias, a, &op) != dnnl_success) return TIDE_OK;
    if (d->kind != TIDE_OP_CONV_FWD && create_pd(engine, d, TIDE_OP_CONV_FWD, &forward, &hint) != TIDE_OK)
        return TIDE_OK;
    tide_status status = TIDE_OK;
    if (tide__pd_iterator_create(engine, &op, hint, &it) == TIDE_OK) status = add_from(k, it, chosen);
    dnnl_primitive_desc_iterator_destroy(it);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

static tide_status add_variants(tide__cpu_kernel *k, dnnl_engine_t engine, const dnnl_memory_desc_t *weights,
                                const char *chosen) {
    const way blocked = make_way(&k->desc, false, weights), plain = make_way(&k->desc, true, NULL);
    TIDE_TRY(add_variants_of(k, engine, &blocked, chosen));
    return add_variants_of(k, engine, &plain, chosen);
}

/* As the forward primitive stores them. */
static tide_status stored_weights(dnnl_engine_t engine, const tide_op_desc *d, dnnl_memory_desc_t *out) {
    dnnl_primitive_desc_t pd = NULL;
    TIDE_TRY(tide__conv_choose(engine, d, TIDE_OP_CONV_FWD, &pd));
    *out = *tide__pd_md(pd, DNNL_ARG_WEIGHTS);
    dnnl_primitive_desc_destroy(pd);
    return TIDE_OK;
}

static tide_status build_by_primitive(tide__cpu_kernel *k, const tide_op_desc *source) {
    dnnl_engine_t engine = ((tide__cpu *)k->base.device)->engine;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_memory_desc_t stored;
    tide_status status;
    if (source->kind == TIDE_OP_CONV_BWD_WEIGHTS) {
        TIDE_TRY(tide__conv_choose_weights(engine, source, TIDE_OP_CONV_FWD, &stored, &pd));
        status = tide__linear_backward_weights(k, pd, &stored);
    } else {
        TIDE_TRY(tide__conv_choose(engine, source, source->kind, &pd));
        stored = *tide__pd_md(pd, DNNL_ARG_WEIGHTS);
        status = source->kind == TIDE_OP_CONV_FWD ? tide__linear_forward(k, pd) : tide__linear_backward_data(k, pd);
    }
    if (status == TIDE_OK) status = add_variants(k, engine, &stored, name_of(pd));
    dnnl_primitive_desc_destroy(pd);
    return status;
}

tide_status tide__build_conv(tide__cpu_kernel *k, const tide_op_desc *source) {
    dnnl_memory_desc_t stored;
    if (!tide__winograd_is_for(source)) return build_by_primitive(k, source);
    TIDE_TRY(stored_weights(((tide__cpu *)k->base.device)->engine, source, &stored));
    return tide__winograd_reads(source, &stored) ? tide__winograd_build(k, &stored) : build_by_primitive(k, source);
}
