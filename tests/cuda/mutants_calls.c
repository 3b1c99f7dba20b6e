/* Calls that are wrong by themselves: contexts, handles, values, launches, events, leaks. */
#include "support/test.h"

#include <unistd.h>

#include "cuda/mutants.h"
#include "cuda/texts.h"

/* ---- contexts ---- */

static void call_before_init(bool broken) {
    int count = 0;
    if (broken) cu.reset();
    tried(cu.cuDeviceGetCount(&count));
}

static void call_without_context(bool broken) {
    size_t a, b;
    CUcontext context = NULL;
    assert_cu(cu.cuCtxGetCurrent(&context));
    if (broken) assert_cu(cu.cuCtxSetCurrent(NULL));
    tried(cu.cuMemGetInfo_v2(&a, &b));
    assert_cu(cu.cuCtxSetCurrent(context));
}

static void pop_too_often(bool broken) {
    CUcontext context = NULL;
    assert_cu(cu.cuCtxGetCurrent(&context));
    assert_cu(cu.cuCtxPushCurrent_v2(context));
    tried(cu.cuCtxPopCurrent_v2(&context));
    if (broken) {
        tried(cu.cuCtxPopCurrent_v2(&context));
        tried(cu.cuCtxPopCurrent_v2(&context));
        assert_cu(cu.cuCtxPushCurrent_v2(context));
    }
}

/* Runs `what` with the context of device 1 current where the sequence is broken. */
static void elsewhere(bool broken, void (*what)(CUdeviceptr at, CUstream s, CUevent e, CUfunction f)) {
    CUcontext other = NULL, own = NULL;
    CUmodule module = NULL;
    CUdeviceptr at = get_bytes(64);
    CUstream s = get_stream();
    CUevent e = get_event();
    CUfunction f = standin_kernel_of(TEXT_TWICE, "twice", &module);
    assert_cu(cu.cuCtxGetCurrent(&own));
    assert_cu(cu.cuDevicePrimaryCtxRetain(&other, 1));
    if (broken) assert_cu(cu.cuCtxPushCurrent_v2(other));
    what(at, s, e, f);
    assert_cu(cu.cuCtxSetCurrent(own));
    if (broken) assert_cu(cu.cuCtxPopCurrent_v2(&own));
    assert_cu(cu.cuStreamSynchronize(s));
    tried(cu.cuModuleUnload(module));
    drop_bytes(at);
    drop_stream(s);
    drop_event(e);
    assert_cu(cu.cuDevicePrimaryCtxRelease_v2(1));
}

static void set_bytes(CUdeviceptr at, CUstream s, CUevent e, CUfunction f) {
    tried(cu.cuMemsetD8Async(at, 0, 64, NULL));
}
static void wait_stream(CUdeviceptr at, CUstream s, CUevent e, CUfunction f) { tried(cu.cuStreamSynchronize(s)); }
static void wait_event(CUdeviceptr at, CUstream s, CUevent e, CUfunction f) { tried(cu.cuEventSynchronize(e)); }
static void launch_kernel(CUdeviceptr at, CUstream s, CUevent e, CUfunction f) {
    uint32_t n = 16;
    tried(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&at, &n}, NULL));
    tried(cu.cuCtxSynchronize());
}
static void memory_elsewhere(bool broken) { elsewhere(broken, set_bytes); }
static void stream_elsewhere(bool broken) { elsewhere(broken, wait_stream); }
static void event_elsewhere(bool broken) { elsewhere(broken, wait_event); }
static void kernel_elsewhere(bool broken) { elsewhere(broken, launch_kernel); }

static void release_too_often(bool broken) {
    CUcontext context = NULL;
    assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 1));
    tried(cu.cuDevicePrimaryCtxRelease_v2(1));
    if (broken) tried(cu.cuDevicePrimaryCtxRelease_v2(1));
}

static void use_after_release(bool broken) {
    CUcontext context = NULL;
    size_t a, b;
    assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 1));
    assert_cu(cu.cuCtxPushCurrent_v2(context));
    if (broken) assert_cu(cu.cuDevicePrimaryCtxRelease_v2(1));
    tried(cu.cuMemGetInfo_v2(&a, &b));
    assert_cu(cu.cuCtxPopCurrent_v2(&context));
    if (!broken) assert_cu(cu.cuDevicePrimaryCtxRelease_v2(1));
}

/* ---- handles and values ---- */

static void stream_that_is_none(bool broken) {
    CUstream s = get_stream();
    tried(cu.cuStreamSynchronize(broken ? (CUstream)(uintptr_t)0x7654321000 : s));
    drop_stream(s);
}

static void event_for_a_stream(bool broken) {
    CUstream s = get_stream();
    CUevent e = get_event();
    tried(cu.cuStreamSynchronize(broken ? (CUstream)(void *)e : s));
    drop_event(e);
    drop_stream(s);
}

static void stream_after_its_end(bool broken) {
    CUstream s = get_stream();
    if (broken) drop_stream(s);
    tried(cu.cuStreamQuery(s));
    if (!broken) drop_stream(s);
}

static void event_after_its_end(bool broken) {
    CUevent e = get_event();
    if (broken) drop_event(e);
    tried(cu.cuEventRecord(e, NULL));
    if (!broken) drop_event(e);
}

static void kernel_after_its_module(bool broken) {
    CUmodule module = NULL;
    CUfunction f = standin_kernel_of(TEXT_TWICE, "twice", &module);
    CUdeviceptr at = get_bytes(256);
    uint32_t n = 0;
    if (broken) tried(cu.cuModuleUnload(module));
    tried(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&at, &n}, NULL));
    tried(cu.cuCtxSynchronize());
    if (!broken) tried(cu.cuModuleUnload(module));
    drop_bytes(at);
}

static void no_bytes(bool broken) {
    CUdeviceptr at = 0;
    tried(cu.cuMemAlloc_v2(&at, broken ? 0 : 4));
    if (at) drop_bytes(at);
}

static void nowhere(bool broken) {
    size_t a, b;
    tried(cu.cuMemGetInfo_v2(&a, broken ? NULL : &b));
}

static void unknown_flags(bool broken) {
    CUstream s = NULL;
    tried(cu.cuStreamCreate(&s, broken ? 4 : CU_STREAM_NON_BLOCKING));
    if (s) drop_stream(s);
}

static void unknown_attribute(bool broken) {
    int value = 0;
    tried(cu.cuDeviceGetAttribute(&value, broken ? (CUdevice_attribute)9999 : CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
}

/* ---- modules ---- */

static void text_with_a_mistake(bool broken) {
    CUmodule module = NULL;
    tried(cu.cuModuleLoadData(&module,
                              broken ? PTX_HEAD ".visible .entry f() { ret" : PTX_HEAD ".visible .entry f() { ret; }"));
    if (module) tried(cu.cuModuleUnload(module));
}

static void unknown_instruction(bool broken) {
    CUmodule module = NULL;
    CUfunction f = NULL;
    tried(cu.cuModuleLoadData(&module, broken ? TEXT_ONE("f", "wgmma.fence.sync.aligned;\n") : TEXT_ONE("f", "")));
    tried(cu.cuModuleGetFunction(&f, module, "f"));
    tried(cu.cuModuleUnload(module));
}

/* ---- launches ---- */

typedef struct shape {
    uint32_t gx, gy, gz, bx, by, bz, shared;
} shape;

static void launch_shape(const char *text, shape s) {
    CUmodule module = NULL;
    CUfunction f = standin_kernel_of(text, "twice", &module);
    CUdeviceptr at = get_bytes(256);
    uint32_t n = 0;
    tried(cu.cuLaunchKernel(f, s.gx, s.gy, s.gz, s.bx, s.by, s.bz, s.shared, NULL, (void *[]){&at, &n}, NULL));
    tried(cu.cuCtxSynchronize());
    tried(cu.cuModuleUnload(module));
    drop_bytes(at);
}

#define TEXT_LIMITED(limit) \
    PTX_HEAD ".visible .entry twice(.param .u64 p0, .param .u32 p1) " limit " {\n.reg .b64 %rd<2>;\nret;\n}\n"

static void grid_y_too_large(bool broken) { launch_shape(TEXT_TWICE, (shape){1, broken ? 65536 : 2, 1, 64, 1, 1, 0}); }
static void grid_z_too_large(bool broken) { launch_shape(TEXT_TWICE, (shape){1, 1, broken ? 65536 : 2, 64, 1, 1, 0}); }
static void grid_empty(bool broken) { launch_shape(TEXT_TWICE, (shape){broken ? 0 : 1, 1, 1, 64, 1, 1, 0}); }
static void block_too_large(bool broken) { launch_shape(TEXT_TWICE, (shape){1, 1, 1, broken ? 1025 : 1024, 1, 1, 0}); }
static void block_too_large_in_all(bool broken) {
    launch_shape(TEXT_TWICE, (shape){1, 1, 1, 64, broken ? 32 : 16, 1, 0});
}
static void block_over_its_bound(bool broken) {
    launch_shape(TEXT_LIMITED(".maxntid 64, 1, 1"), (shape){1, 1, 1, broken ? 128 : 64, 1, 1, 0});
}
static void block_not_as_required(bool broken) {
    launch_shape(TEXT_LIMITED(".reqntid 32, 2, 1"), (shape){1, 1, 1, broken ? 64 : 32, broken ? 1 : 2, 1, 0});
}
static void shared_not_asked_for(bool broken) {
    launch_shape(TEXT_TWICE, (shape){1, 1, 1, 64, 1, 1, broken ? 49153 : 49152});
}

static void shared_over_the_device(bool broken) {
    CUmodule module = NULL;
    CUfunction f = standin_kernel_of(TEXT_TWICE, "twice", &module);
    tried(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, broken ? 200000 : 98304));
    tried(cu.cuModuleUnload(module));
}

static void launch_with(void **parameters, void **extra) {
    CUmodule module = NULL;
    CUfunction f = standin_kernel_of(TEXT_TWICE, "twice", &module);
    tried(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, extra));
    tried(cu.cuCtxSynchronize());
    tried(cu.cuModuleUnload(module));
}

static void argument_missing(bool broken) {
    CUdeviceptr at = get_bytes(256);
    uint32_t n = 0;
    launch_with((void *[]){&at, broken ? NULL : &n}, NULL);
    drop_bytes(at);
}

static void arguments_in_no_way(bool broken) {
    CUdeviceptr at = get_bytes(256);
    uint32_t n = 0;
    void *both[] = {&at, &n};
    launch_with(broken ? NULL : both, NULL);
    drop_bytes(at);
}

static void arguments_of_another_size(bool broken) {
    struct {
        CUdeviceptr at;
        uint32_t n, more;
    } packed = {get_bytes(256), 0, 0};
    size_t size = broken ? sizeof packed : 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    launch_with(NULL, extra);
    drop_bytes(packed.at);
}

/* ---- events, host functions, errors that stay ---- */

static void time_without_timing(bool broken) {
    CUevent a = get_event(), b = NULL;
    float ms = 0;
    assert_cu(cu.cuEventCreate(&b, broken ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT));
    assert_cu(cu.cuEventRecord(a, NULL));
    assert_cu(cu.cuEventRecord(b, NULL));
    assert_cu(cu.cuCtxSynchronize());
    tried(cu.cuEventElapsedTime_v2(&ms, a, b));
    drop_event(a);
    drop_event(b);
}

static void time_without_a_record(bool broken) {
    CUevent a = get_event(), b = get_event();
    float ms = 0;
    assert_cu(cu.cuEventRecord(a, NULL));
    if (!broken) assert_cu(cu.cuEventRecord(b, NULL));
    assert_cu(cu.cuCtxSynchronize());
    tried(cu.cuEventElapsedTime_v2(&ms, a, b));
    drop_event(a);
    drop_event(b);
}

static void CUDAAPI calls_back(void *data) {
    int count = 0;
    if (data) tried(cu.cuDeviceGetCount(&count));
}

static void call_from_a_host_function(bool broken) {
    int marker = 0;
    tried(cu.cuLaunchHostFunc(NULL, calls_back, broken ? &marker : NULL));
    assert_cu(cu.cuCtxSynchronize());
}

static void work_after_an_error(bool broken) {
    CUmodule module = NULL;
    CUfunction f = standin_kernel_of(TEXT_TWICE, "twice", &module);
    CUdeviceptr at = get_bytes(256);
    uint32_t n = broken ? 128 : 64;
    tried(cu.cuLaunchKernel(f, 2, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&at, &n}, NULL));
    tried(cu.cuCtxSynchronize());
    tried(cu.cuMemsetD8Async(at, 0, 256, NULL));
    tried(cu.cuCtxSynchronize());
    tried(cu.cuModuleUnload(module));
    drop_bytes(at);
}

/* ---- leaks ---- */

static void leak_memory(bool broken) {
    CUdeviceptr at = get_bytes(64);
    if (!broken) drop_bytes(at);
}
static void leak_pinned(bool broken) {
    void *at = get_pinned(64);
    if (!broken) drop_pinned(at);
}
static void leak_registration(bool broken) {
    static char bytes[4096];
    assert_cu(cu.cuMemHostRegister_v2(bytes, sizeof bytes, 0));
    if (!broken) tried(cu.cuMemHostUnregister(bytes));
}
static void leak_stream(bool broken) {
    CUstream s = get_stream();
    if (!broken) drop_stream(s);
}
static void leak_event(bool broken) {
    CUevent e = get_event();
    if (!broken) drop_event(e);
}
static void leak_module(bool broken) {
    CUmodule module = NULL;
    assert_cu(cu.cuModuleLoadData(&module, TEXT_TWICE));
    if (!broken) tried(cu.cuModuleUnload(module));
}
static void leak_context(bool broken) {
    CUcontext context = NULL;
    assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 1));
    if (!broken) tried(cu.cuDevicePrimaryCtxRelease_v2(1));
}

#define MUTANT(function, kind) \
    { #function, kind, function, false }
#define QUIET_MUTANT(function, kind) \
    { #function, kind, function, true }
const mutant call_mutants[] = {
    MUTANT(call_before_init, MISUSE_NOT_INITIALISED),
    MUTANT(call_without_context, MISUSE_NO_CONTEXT),
    MUTANT(pop_too_often, MISUSE_NO_CONTEXT),
    MUTANT(memory_elsewhere, MISUSE_WRONG_CONTEXT),
    MUTANT(stream_elsewhere, MISUSE_WRONG_CONTEXT),
    MUTANT(event_elsewhere, MISUSE_WRONG_CONTEXT),
    MUTANT(kernel_elsewhere, MISUSE_WRONG_CONTEXT),
    MUTANT(release_too_often, MISUSE_RELEASED_CONTEXT),
    MUTANT(use_after_release, MISUSE_RELEASED_CONTEXT),
    MUTANT(stream_that_is_none, MISUSE_BAD_HANDLE),
    MUTANT(event_for_a_stream, MISUSE_BAD_HANDLE),
    MUTANT(stream_after_its_end, MISUSE_DESTROYED),
    MUTANT(event_after_its_end, MISUSE_DESTROYED),
    MUTANT(kernel_after_its_module, MISUSE_DESTROYED),
    MUTANT(no_bytes, MISUSE_BAD_VALUE),
    MUTANT(nowhere, MISUSE_BAD_VALUE),
    MUTANT(unknown_flags, MISUSE_BAD_VALUE),
    MUTANT(unknown_attribute, MISUSE_BAD_VALUE),
    MUTANT(text_with_a_mistake, MISUSE_IMAGE),
    MUTANT(unknown_instruction, MISUSE_IMAGE),
    MUTANT(grid_y_too_large, MISUSE_GRID),
    MUTANT(grid_z_too_large, MISUSE_GRID),
    MUTANT(grid_empty, MISUSE_GRID),
    MUTANT(block_too_large, MISUSE_BLOCK),
    MUTANT(block_too_large_in_all, MISUSE_BLOCK),
    MUTANT(block_over_its_bound, MISUSE_BLOCK),
    MUTANT(block_not_as_required, MISUSE_BLOCK),
    MUTANT(shared_not_asked_for, MISUSE_SHARED_SIZE),
    MUTANT(shared_over_the_device, MISUSE_SHARED_SIZE),
    MUTANT(argument_missing, MISUSE_ARGUMENTS),
    MUTANT(arguments_in_no_way, MISUSE_ARGUMENTS),
    MUTANT(arguments_of_another_size, MISUSE_ARGUMENTS),
    MUTANT(time_without_timing, MISUSE_EVENT_TIMING),
    MUTANT(time_without_a_record, MISUSE_EVENT_TIMING),
    MUTANT(call_from_a_host_function, MISUSE_IN_CALLBACK),
    MUTANT(work_after_an_error, MISUSE_AFTER_ERROR),
    QUIET_MUTANT(leak_memory, MISUSE_LEAK),
    QUIET_MUTANT(leak_pinned, MISUSE_LEAK),
    QUIET_MUTANT(leak_registration, MISUSE_LEAK),
    QUIET_MUTANT(leak_stream, MISUSE_LEAK),
    QUIET_MUTANT(leak_event, MISUSE_LEAK),
    QUIET_MUTANT(leak_module, MISUSE_LEAK),
    QUIET_MUTANT(leak_context, MISUSE_LEAK),
    {NULL, MISUSES, NULL, false},
};
