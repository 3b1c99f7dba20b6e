/* Modules, libraries, kernels and launches. A library is a module under another name. */
#include <stdlib.h>
#include <string.h>

#include "standin.h"

/* ---- modules ---- */

static void *load(call *c, const void *image) {
    module *m = NULL;
    if (c->result == CUDA_SUCCESS) c->result = module_load(c->context, image, &m);
    return m ? module_handle(m) : NULL;
}

static void unload(call *c, const void *handle) {
    module *m = NULL;
    if (c->result == CUDA_SUCCESS) c->result = module_of(c->context, handle, &m);
    if (c->result == CUDA_SUCCESS) c->result = module_unload(m);
}

static void *find_function(call *c, const void *handle, const char *name) {
    module *m = NULL;
    function *f = NULL;
    if (call_has(c, name)) c->result = module_of(c->context, handle, &m);
    if (c->result == CUDA_SUCCESS) c->result = function_get(m, name, &f);
    return f ? function_handle(f) : NULL;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *out, const void *image) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    void *handle = call_has(&c, out) ? load(&c, image) : NULL;
    if (handle) *out = handle;
    return call_end(&c);
}

/* Options are about compilers that are not here. */
CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n_options, CUjit_option *options,
                                    void **values) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    if (n_options) call_has(&c, options), call_has(&c, values);
    void *handle = call_has(&c, out) ? load(&c, image) : NULL;
    if (handle) *out = handle;
    return call_end(&c);
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
    call c = call_begin(__func__, NEEDS_CONTEXT | CLEANS_UP);
    unload(&c, handle);
    return call_end(&c);
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    void *found = call_has(&c, out) ? find_function(&c, handle, name) : NULL;
    if (found) *out = found;
    return call_end(&c);
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *bytes, CUmodule handle, const char *name) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    module *m = NULL;
    if (call_has(&c, name)) c.result = module_of(c.context, handle, &m);
    if (c.result == CUDA_SUCCESS) c.result = CUDA_ERROR_NOT_FOUND;
    for (uint32_t i = 0; m && i < m->ptx.n_variables && i < 16; i++) {
        const ptx_variable *v = &m->ptx.variables[i];
        if (!m->globals[i] || !ptx_is(v->name, name)) continue;
        if (out) *out = m->globals[i];
        if (bytes) *bytes = v->size_bytes;
        c.result = CUDA_SUCCESS;
    }
    return call_end(&c);
}

/* ---- libraries ---- */

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *options, void **values,
                                   unsigned n_options, CUlibraryOption *library_options, void **library_values,
                                   unsigned n_library_options) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    void *handle = call_has(&c, out) ? load(&c, image) : NULL;
    if (handle) *out = handle;
    return call_end(&c);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary handle) {
    call c = call_begin(__func__, NEEDS_CONTEXT | CLEANS_UP);
    unload(&c, handle);
    return call_end(&c);
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    void *found = call_has(&c, out) ? find_function(&c, handle, name) : NULL;
    if (found) *out = found;
    return call_end(&c);
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *out, CUkernel handle) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    function *f = NULL;
    if (call_has(&c, out)) c.result = function_of(c.context, handle, &f);
    if (f) *out = function_handle(f);
    return call_end(&c);
}

/* ---- kernels ---- */

static call with_function(const char *name, uint32_t needs, CUfunction handle, function **out) {
    call c = call_begin(name, NEEDS_CONTEXT | needs);
    if (c.result == CUDA_SUCCESS) c.result = function_of(c.context, handle, out);
    return c;
}

static CUresult attribute_of(const function *f, int attribute, int *value) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = f->kernel->max_lanes ? (int)f->kernel->max_lanes : 1024;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)f->kernel->shared_bytes; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)f->kernel->local_bytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = (int)f->module->ptx.target; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = (int)the_standin.settings.capability; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = f->max_dynamic_bytes ? (int)f->max_dynamic_bytes : 49152 - (int)f->kernel->shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    default: return misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "attribute %d is not known", attribute);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
    function *f = NULL;
    call c = with_function(__func__, 0, handle, &f);
    if (call_has(&c, value)) c.result = attribute_of(f, (int)attribute, value);
    return call_end(&c);
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    function *f = NULL;
    call c = with_function(__func__, 0, handle, &f);
    if (c.result != CUDA_SUCCESS) return call_end(&c);
    const int most = 101376 - (int)f->kernel->shared_bytes;
    if ((int)attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 && value <= most)
        f->max_dynamic_bytes = (uint32_t)value;
    else if ((int)attribute != CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        c.result = misuse(MISUSE_SHARED_SIZE, CUDA_ERROR_INVALID_VALUE, "attribute %d of %s cannot be %d",
                          (int)attribute, f->kernel->name, value);
    return call_end(&c);
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
    function *f = NULL;
    call c = with_function(__func__, 0, handle, &f);
    if (call_has(&c, offset) && index >= f->kernel->n_parameters)
        c.result = CUDA_ERROR_INVALID_VALUE; /* how callers count */
    if (c.result == CUDA_SUCCESS) {
        *offset = f->kernel->variables[index].at;
        if (size) *size = f->kernel->variables[index].size_bytes;
    }
    return call_end(&c);
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int lanes, size_t shared) {
    function *f = NULL;
    call c = with_function(__func__, 0, handle, &f);
    if (call_has(&c, blocks) && lanes <= 0)
        c.result = misuse(MISUSE_BLOCK, CUDA_ERROR_INVALID_VALUE, "%d lanes", lanes);
    if (c.result == CUDA_SUCCESS) {
        const size_t bytes = shared + f->kernel->shared_bytes, by_lanes = (size_t)(1024 / lanes);
        const size_t by_shared = bytes ? 102400 / bytes : 16, fewest = by_lanes < by_shared ? by_lanes : by_shared;
        *blocks = (int)(fewest < 16 ? fewest : 16);
    }
    return call_end(&c);
}

/* ---- launches ---- */

/* One pointer per parameter. */
static CUresult gather(const ptx_kernel *k, void **parameters, unsigned char *to) {
    for (uint32_t i = 0; i < k->n_parameters; i++) {
        const ptx_variable *v = &k->variables[i];
        if (!parameters[i])
            return misuse(MISUSE_ARGUMENTS, CUDA_ERROR_INVALID_VALUE, "%s: no argument for parameter %u", k->name, i);
        memcpy(to + v->at, parameters[i], v->size_bytes);
    }
    return CUDA_SUCCESS;
}

/* All of them in one buffer, with its size. */
static CUresult unpack(const ptx_kernel *k, void **extra, unsigned char *to) {
    const void *buffer = NULL;
    size_t size = 0;
    for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1]) memcpy(&size, extra[1], sizeof size);
    }
    if (!buffer || size != k->parameter_bytes)
        return misuse(MISUSE_ARGUMENTS, CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes of arguments for %u of parameters",
                      k->name, size, k->parameter_bytes);
    memcpy(to, buffer, size);
    return CUDA_SUCCESS;
}

static CUresult take_arguments(const ptx_kernel *k, void **parameters, void **extra, unsigned char *to) {
    if (k->n_parameters == 0) return CUDA_SUCCESS;
    if (!parameters == !extra)
        return misuse(MISUSE_ARGUMENTS, CUDA_ERROR_INVALID_VALUE, "%s: arguments in one of the two ways", k->name);
    return parameters ? gather(k, parameters, to) : unpack(k, extra, to);
}

static CUresult issue_launch(function *f, stream *s, launch given, void **parameters, void **extra) {
    CUresult result = launch_check(f, &given);
    if (result != CUDA_SUCCESS) return result;
    given.parameters = calloc(1, f->kernel->parameter_bytes + 8);
    if (!given.parameters) abort();
    result = take_arguments(f->kernel, parameters, extra, given.parameters);
    if (result != CUDA_SUCCESS) return free(given.parameters), result;
    return stream_issue(s, (operation){.kind = OP_KERNEL, .name = f->kernel->name, .function = f, .launch = given});
}

CUresult CUDAAPI cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream on,
                                void **parameters, void **extra) {
    function *f = NULL;
    stream *s = NULL;
    call c = with_function(__func__, NEW_WORK, handle, &f);
    const launch l = {
        .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .dynamic_bytes = shared_bytes};
    if (c.result == CUDA_SUCCESS) c.result = stream_of(c.context, on, &s);
    if (c.result == CUDA_SUCCESS) c.result = issue_launch(f, s, l, parameters, extra);
    return call_end(&c);
}
