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

#endif
