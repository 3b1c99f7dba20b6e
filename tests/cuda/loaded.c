/* Loading the stand-in, and the few steps every test begins and ends with. */
#include "support/test.h"

#include <dlfcn.h>

#include "cuda/loaded.h"

standin_table cu;

const char *standin_library(void) { return STANDIN_LIBRARY; }

static void *library;

static void find(const char *name, void *out) {
    void *address = dlsym(library, name);
    if (!address) fail_msg("no %s in the stand-in", name);
    memcpy(out, &address, sizeof address);
}

void standin_load(void) {
    if (library) return;
    library = dlopen(STANDIN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
#define STANDIN_FIND(name, parameters) find(#name, &cu.name);
    STANDIN_FUNCTIONS(STANDIN_FIND)
#undef STANDIN_FIND
    find("standin_misuse_count", &cu.misuse_count);
    find("standin_report", &cu.report);
    find("standin_finish", &cu.finish);
    find("standin_reset", &cu.reset);
    find("standin_calls", &cu.calls);
}

CUcontext standin_open(void) {
    CUcontext context = NULL;
    standin_load();
    cu.reset();
    assert_cu(cu.cuInit(0));
    assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 0));
    assert_cu(cu.cuCtxSetCurrent(context));
    return context;
}

void standin_expect_quiet(void) {
    if (cu.report(0)) fail_msg("reported: %s", cu.report(0));
}

void standin_close(void) {
    assert_cu(cu.cuDevicePrimaryCtxRelease_v2(0));
    standin_expect_quiet();
    cu.finish();
    standin_expect_quiet();
}

CUfunction standin_kernel_of(const char *ptx, const char *name, CUmodule *module_out) {
    CUfunction f = NULL;
    CUresult result = cu.cuModuleLoadData(module_out, ptx);
    if (result != CUDA_SUCCESS) fail_msg("the module: %d %s", (int)result, cu.report(0) ? cu.report(0) : "");
    result = cu.cuModuleGetFunction(&f, *module_out, name);
    if (result != CUDA_SUCCESS) fail_msg("%s: %d %s", name, (int)result, cu.report(0) ? cu.report(0) : "");
    return f;
}
