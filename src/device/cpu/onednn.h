/* oneDNN, versions 2 and 3, as the CPU device uses it. Only onednn.c, onednn_2.c, onednn_3.c and prim.c call oneDNN;
 * everybody else goes through this header and through prim.h. CMake compiles the file of the version it finds.
 *
 * A layout (tide__md) is read-only. Version 2 has layouts as structs, version 3 as handles; here both are pointers whose
 * owner is a tide__mds, or the primitive description they were asked of. */
#ifndef TIDE_DEVICE_CPU_ONEDNN_H
#define TIDE_DEVICE_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <stdbool.h>

#include <tidemark/ops.h>

#include "base/vec.h"

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t tide__md;
#else
typedef const dnnl_memory_desc_t *tide__md;
#endif

/* ---- what both versions have (onednn.c) ---- */

/* Passes a oneDNN failure on: "cannot create the primitive: oneDNN says unimplemented". */
tide_status tide__dnnl(dnnl_status_t status, const char *doing);
/* "3.2.0", of the library that runs. */
void tide__dnnl_version(char *out, size_t size);
tide_status tide__engine_create(dnnl_engine_t *out);
void tide__engine_destroy(dnnl_engine_t engine); /* NULL is fine */
tide_status tide__stream_create(dnnl_engine_t engine, dnnl_stream_t *out);
void tide__stream_destroy(dnnl_stream_t stream); /* NULL is fine */

/* Layouts somebody owns together. */
typedef TIDE_VEC(tide__md) tide__mds;
void tide__mds_free(tide__mds *mds);
/* The new layout `md` (NULL if there is no memory) becomes one of mds, or is destroyed. */
tide_status tide__mds_take(tide__mds *mds, tide__md md, tide__md *out);
/* A copy that outlives the owner of md. */
tide_status tide__md_keep(tide__mds *mds, tide__md md, tide__md *out);

/* The status of a failure says what failed: oneDNN's "unimplemented" is TIDE_E_UNSUPPORTED. */
tide_status tide__reorder_pd_create(dnnl_engine_t engine, tide__md from, tide__md to, dnnl_primitive_desc_t *out);
/* The name of an implementation: "jit:avx2", "ref:any". */
const char *tide__pd_name(const_dnnl_primitive_desc_t pd);
/* oneDNN's slow reference code? */
bool tide__pd_is_ref(const_dnnl_primitive_desc_t pd);
/* The layout the primitive uses for an argument; pd's. */
tide__md tide__pd_md(const_dnnl_primitive_desc_t pd, int arg);
void tide__pd_destroy(dnnl_primitive_desc_t pd); /* NULL is fine */
uint64_t tide__md_bytes(tide__md md);
bool tide__md_equal(tide__md a, tide__md b);
/* Attributes with a scratchpad of the user's; NULL without memory. */
dnnl_primitive_attr_t tide__attr_create(void);

/* ---- what differs (onednn_2.c, onednn_3.c) ---- */

tide_status tide__md_create(tide__mds *mds, int n_dims, const dnnl_dims_t dims, dnnl_data_type_t type,
                            dnnl_format_tag_t tag, tide__md *out);
tide__md tide__md_clone(tide__md md); /* NULL without memory */
void tide__md_destroy(tide__md md);   /* NULL is fine */
/* The same bytes with the first two of four dimensions exchanged. */
tide_status tide__md_swapped(tide__mds *mds, tide__md md, tide__md *out);

typedef struct tide__md_view {
    int n_dims, n_blocks;
    dnnl_data_type_t type;
    const dnnl_dim_t *dims, *padded, *strides;  /* of n_dims; md's */
    const dnnl_dim_t *block_dims, *block_sizes; /* of n_blocks, the outermost first; md's */
} tide__md_view;

tide__md_view tide__md_look(tide__md md);

/* A convolution; bias NULL: without. */
typedef struct tide__conv_spec {
    tide__md x, y, w, bias;
    dnnl_dims_t strides, pad_before, pad_after;
} tide__conv_spec;

/* For a CONV kind, in user-scratchpad mode. hint: the forward one, or NULL. */
tide_status tide__conv_pd_create(dnnl_engine_t engine, tide_op_kind kind, const tide__conv_spec *spec,
                                 const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out);
/* Shows every implementation to `visit`, until that fails; none is no failure. */
typedef tide_status (*tide__pd_visit)(void *context, const_dnnl_primitive_desc_t pd);
tide_status tide__conv_pd_each(dnnl_engine_t engine, tide_op_kind kind, const tide__conv_spec *spec,
                               const_dnnl_primitive_desc_t hint, tide__pd_visit visit, void *context);

typedef struct tide__fc_spec {
    tide__md x, y, w, bias;
} tide__fc_spec;

/* For an FC kind, likewise. */
tide_status tide__fc_pd_create(dnnl_engine_t engine, tide_op_kind kind, const tide__fc_spec *spec,
                               const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out);

#endif
