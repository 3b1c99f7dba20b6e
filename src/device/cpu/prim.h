/* A oneDNN primitive bound to the operands of a kernel, working on user memory only.
 *
 * Where a primitive uses another layout than an operand is stored in, the operand is *staged*: reordered into the
 * workspace before the primitive runs, or out of it afterwards. The workspace holds the primitive's scratchpad and the
 * staged operands. Invariant: nothing but the bound operands and the workspace is touched. */
#ifndef TIDE_DEVICE_CPU_PRIM_H
#define TIDE_DEVICE_CPU_PRIM_H

#include "device/cpu/kernel.h"

typedef struct tide__bind {
    int arg;          /* DNNL_ARG_SRC ... */
    uint32_t operand; /* of the kernel: reads first, then writes */
    bool swapped;     /* the primitive's first two dimensions are the operand's second and first */
} tide__bind;

/* Builds the primitive of `pd` (still the caller's) into k->prim and sets k->run and k->workspace_bytes. */
tide_status tide__prim_attach(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd, const tide__bind *binds,
                              uint32_t n_binds);
/* Describes another way to the same result as the kernel's next alternative; creates no primitive yet. */
tide_status tide__prim_add_alternative(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd, const tide__bind *binds,
                                       uint32_t n_binds);
/* Creates the primitives that are not there yet. */
tide_status tide__prim_realise(tide__prim *prim);
/* What k->run is then; for kernels that do more than the primitive does. */
tide_status tide__prim_run(const tide__cpu_kernel *k, const tide__call *call);
void tide__prim_destroy(tide__prim *prim); /* NULL is fine */

/* A primitive description in user-scratchpad mode; *out is untouched on failure. hint: the forward one, or NULL. */
tide_status tide__pd_create(dnnl_engine_t engine, const_dnnl_op_desc_t op, const_dnnl_primitive_desc_t hint,
                            dnnl_primitive_desc_t *out);
/* All primitive descriptions for `op`, likewise. */
tide_status tide__pd_iterator_create(dnnl_engine_t engine, const_dnnl_op_desc_t op, const_dnnl_primitive_desc_t hint,
                                     dnnl_primitive_desc_iterator_t *out);
tide_status tide__reorder_pd_create(dnnl_engine_t engine, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                                    dnnl_primitive_desc_t *out);
/* oneDNN's slow reference code? */
bool tide__pd_is_ref(const_dnnl_primitive_desc_t pd);
/* The same bytes with the first two of four dimensions exchanged. */
tide_status tide__md_swapped(const dnnl_memory_desc_t *md, dnnl_memory_desc_t *out);
/* The layout the primitive uses for an argument. */
const dnnl_memory_desc_t *tide__pd_md(const_dnnl_primitive_desc_t pd, int arg);

#endif
