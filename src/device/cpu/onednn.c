/* See onednn.h: what is the same in oneDNN 2 and 3. */
#include "device/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/gemm.h"

tide_status tide__dnnl(dnnl_status_t status, const char *doing) {
    switch (status) {
    case dnnl_success: return TIDE_OK;
    case dnnl_out_of_memory: return tide__fail(TIDE_E_MEMORY, "oneDNN ran out of memory: cannot %s", doing);
    case dnnl_unimplemented: return tide__fail(TIDE_E_UNSUPPORTED, "oneDNN has no implementation to %s", doing);
    case dnnl_invalid_arguments: return tide__fail(TIDE_E_ARGUMENT, "oneDNN refuses the arguments to %s", doing);
    default: return tide__fail(TIDE_E_DEVICE, "oneDNN status %d: cannot %s", (int)status, doing);
    }
}

void tide__dnnl_version(char *out, size_t size) {
    const dnnl_version_t *v = dnnl_version();
    snprintf(out, size, "%d.%d.%d", v->major, v->minor, v->patch);
}

tide_status tide__engine_create(dnnl_engine_t *out) {
    return tide__dnnl(dnnl_engine_create(out, dnnl_cpu, 0), "create an engine");
}

void tide__engine_destroy(dnnl_engine_t engine) {
    if (engine) dnnl_engine_destroy(engine);
}

tide_status tide__stream_create(dnnl_engine_t engine, dnnl_stream_t *out) {
    return tide__dnnl(dnnl_stream_create(out, engine, dnnl_stream_default_flags), "create a stream");
}

void tide__stream_destroy(dnnl_stream_t stream) {
    if (stream) dnnl_stream_destroy(stream);
}

tide_status tide__gemm(int64_t m, int64_t n, int64_t k, float factor, tide__matrix a, tide__matrix b, float keep,
                       float *c, int64_t stride) {
    return tide__dnnl(dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, factor, a.data, a.stride,
                                 b.data, b.stride, keep, c, stride),
                      "multiply matrices");
}

/* ---- layouts ---- */

void tide__mds_free(tide__mds *mds) {
    for (size_t i = 0; i < mds->count; i++) tide__md_destroy(mds->data[i]);
    tide__vec_free(mds);
}

tide_status tide__mds_take(tide__mds *mds, tide__md md, tide__md *out) {
    if (!md || tide__vec_push(mds, md) != TIDE_OK) {
        tide__md_destroy(md);
        return tide__fail_memory();
    }
    *out = md;
    return TIDE_OK;
}

tide_status tide__md_keep(tide__mds *mds, tide__md md, tide__md *out) {
    return tide__mds_take(mds, tide__md_clone(md), out);
}

uint64_t tide__md_bytes(tide__md md) { return dnnl_memory_desc_get_size(md); }

bool tide__md_equal(tide__md a, tide__md b) { return dnnl_memory_desc_equal(a, b); }

/* ---- primitive descriptions ---- */

dnnl_primitive_attr_t tide__attr_create(void) {
    dnnl_primitive_attr_t attr = NULL;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success) return NULL;
    if (dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success) return attr;
    dnnl_primitive_attr_destroy(attr);
    return NULL;
}

const char *tide__pd_name(const_dnnl_primitive_desc_t pd) {
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}

bool tide__pd_is_ref(const_dnnl_primitive_desc_t pd) { return strncmp(tide__pd_name(pd), "ref", 3) == 0; }

tide__md tide__pd_md(const_dnnl_primitive_desc_t pd, int arg) {
    return dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
}

void tide__pd_destroy(dnnl_primitive_desc_t pd) {
    if (pd) dnnl_primitive_desc_destroy(pd);
}

tide_status tide__reorder_pd_create(dnnl_engine_t engine, tide__md from, tide__md to, dnnl_primitive_desc_t *out) {
    dnnl_primitive_attr_t attr = tide__attr_create();
    if (!attr) return tide__fail_memory();
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr);
    dnnl_primitive_attr_destroy(attr);
    if (status == dnnl_success) *out = pd;
    return tide__dnnl(status, "reorder an operand");
}
