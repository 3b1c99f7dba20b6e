/* What sequences of calls share. */
#include "support/test.h"

#include "cuda/mutants.h"

static CUresult first;

void tried(CUresult result) {
    if (first == CUDA_SUCCESS) first = result;
}
CUresult first_error(void) { return first; }
void forget_errors(void) { first = CUDA_SUCCESS; }

CUdeviceptr get_bytes(size_t bytes) {
    CUdeviceptr at = 0;
    assert_cu(cu.cuMemAlloc_v2(&at, bytes));
    return at;
}

void *get_pinned(size_t bytes) {
    void *at = NULL;
    assert_cu(cu.cuMemHostAlloc(&at, bytes, 0));
    return at;
}

CUstream get_stream(void) {
    CUstream s = NULL;
    assert_cu(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

CUevent get_event(void) {
    CUevent e = NULL;
    assert_cu(cu.cuEventCreate(&e, CU_EVENT_DEFAULT));
    return e;
}

void drop_bytes(CUdeviceptr at) { tried(cu.cuMemFree_v2(at)); }
void drop_pinned(void *at) { tried(cu.cuMemFreeHost(at)); }
void drop_stream(CUstream s) { tried(cu.cuStreamDestroy_v2(s)); }
void drop_event(CUevent e) { tried(cu.cuEventDestroy_v2(e)); }

void run_text(const char *ptx, const char *name, uint32_t groups, CUdeviceptr at, uint32_t shared_bytes) {
    CUmodule module = NULL;
    CUfunction f = standin_kernel_of(ptx, name, &module);
    uint32_t n = 64 * groups;
    tried(cu.cuLaunchKernel(f, groups, 1, 1, 64, 1, 1, shared_bytes, NULL, (void *[]){&at, &n}, NULL));
    tried(cu.cuCtxSynchronize());
    tried(cu.cuModuleUnload(module));
}
