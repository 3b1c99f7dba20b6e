/* Memory that is used wrongly, and operations without order. */
#include "support/test.h"

#include "cuda/mutants.h"
#include "cuda/texts.h"

/* ---- copies and sets ---- */

static void copy_from(bool pinned, bool back) {
    static char pageable[256];
    CUdeviceptr at = get_bytes(256);
    CUstream s = get_stream();
    void *bytes = get_pinned(256), *host = pinned ? bytes : pageable;
    tried(back ? cu.cuMemcpyDtoHAsync_v2(host, at, 256, s) : cu.cuMemcpyHtoDAsync_v2(at, host, 256, s));
    assert_cu(cu.cuStreamSynchronize(s));
    drop_pinned(bytes);
    drop_stream(s);
    drop_bytes(at);
}
static void unpinned_source(bool broken) { copy_from(!broken, false); }
static void unpinned_destination(bool broken) { copy_from(!broken, true); }

static void half_pinned(bool broken) {
    static char bytes[512];
    CUdeviceptr at = get_bytes(512);
    assert_cu(cu.cuMemHostRegister_v2(bytes, 256, 0));
    tried(cu.cuMemcpyHtoDAsync_v2(at, bytes, broken ? 512 : 256, NULL));
    assert_cu(cu.cuCtxSynchronize());
    tried(cu.cuMemHostUnregister(bytes));
    drop_bytes(at);
}

static void copy_beyond(bool broken) {
    char x[256] = {0};
    CUdeviceptr at = get_bytes(256);
    tried(cu.cuMemcpyHtoD_v2(at + 64, x, broken ? 256 : 192));
    drop_bytes(at);
}

static void set_beyond(bool broken) {
    CUdeviceptr at = get_bytes(256);
    tried(cu.cuMemsetD32Async(at, 0, broken ? 65 : 64, NULL));
    drop_bytes(at);
}

static void copy_onto_itself(bool broken) {
    CUdeviceptr at = get_bytes(256);
    tried(cu.cuMemcpyDtoDAsync_v2(at + (broken ? 64 : 128), at, 128, NULL));
    drop_bytes(at);
}

static void host_address(bool broken) {
    char x[64] = {0};
    CUdeviceptr at = get_bytes(64);
    tried(cu.cuMemsetD8Async(broken ? (CUdeviceptr)(uintptr_t)x : at, 0, 64, NULL));
    drop_bytes(at);
}

static void set_unaligned(bool broken) {
    CUdeviceptr at = get_bytes(256);
    tried(cu.cuMemsetD32Async(at + (broken ? 2 : 4), 0, 4, NULL));
    drop_bytes(at);
}

/* ---- freeing ---- */

static void set_after_free(bool broken) {
    CUdeviceptr at = get_bytes(256);
    if (broken) drop_bytes(at);
    tried(cu.cuMemsetD8Async(at, 0, 256, NULL));
    if (!broken) drop_bytes(at);
}

static void copy_from_freed_pinned(bool broken) {
    CUdeviceptr at = get_bytes(64);
    void *host = get_pinned(64);
    if (broken) drop_pinned(host);
    tried(cu.cuMemcpyDtoHAsync_v2(host, at, 64, NULL));
    assert_cu(cu.cuCtxSynchronize());
    if (!broken) drop_pinned(host);
    drop_bytes(at);
}

static void free_twice(bool broken) {
    CUdeviceptr at = get_bytes(64);
    drop_bytes(at);
    if (broken) drop_bytes(at);
}

static void free_pinned_twice(bool broken) {
    void *at = get_pinned(64);
    drop_pinned(at);
    if (broken) drop_pinned(at);
}

static void free_inside(bool broken) {
    CUdeviceptr at = get_bytes(512);
    if (broken) drop_bytes(at + 256);
    drop_bytes(at);
}

static void free_registered(bool broken) {
    static char bytes[64];
    assert_cu(cu.cuMemHostRegister_v2(bytes, sizeof bytes, 0));
    if (broken) drop_pinned(bytes);
    tried(cu.cuMemHostUnregister(bytes));
}

static void register_twice(bool broken) {
    static char bytes[64];
    tried(cu.cuMemHostRegister_v2(bytes, sizeof bytes, 0));
    if (broken) tried(cu.cuMemHostRegister_v2(bytes + 32, 32, 0));
    tried(cu.cuMemHostUnregister(bytes));
}

static void unregister_nothing(bool broken) {
    static char bytes[64];
    if (!broken) assert_cu(cu.cuMemHostRegister_v2(bytes, sizeof bytes, 0));
    tried(cu.cuMemHostUnregister(bytes));
}

static void free_while_copied(bool broken) {
    CUdeviceptr at = get_bytes(256);
    void *host = get_pinned(256);
    CUstream s = get_stream();
    assert_cu(cu.cuMemcpyDtoHAsync_v2(host, at, 256, s));
    if (!broken) assert_cu(cu.cuStreamSynchronize(s));
    drop_pinned(host);
    assert_cu(cu.cuStreamSynchronize(s));
    if (broken) assert_cu(cu.cuMemFreeHost(host));
    drop_stream(s);
    drop_bytes(at);
}

static void unload_while_running(bool broken) {
    CUmodule module = NULL;
    CUfunction f = standin_kernel_of(TEXT_TWICE, "twice", &module);
    CUdeviceptr at = get_bytes(256);
    uint32_t n = 64;
    assert_cu(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&at, &n}, NULL));
    if (!broken) assert_cu(cu.cuCtxSynchronize());
    tried(cu.cuModuleUnload(module));
    assert_cu(cu.cuCtxSynchronize());
    if (broken) assert_cu(cu.cuModuleUnload(module));
    drop_bytes(at);
}

/* ---- order ---- */

/* Two streams, and an event between them unless the sequence is broken. */
typedef struct pair {
    CUstream a, b;
    CUevent event;
    CUdeviceptr at;
    char *host;
} pair;

static pair open_pair(void) {
    return (pair){
        .a = get_stream(), .b = get_stream(), .event = get_event(), .at = get_bytes(512), .host = get_pinned(512)};
}

static void order(const pair *p, bool broken) {
    if (broken) return;
    tried(cu.cuEventRecord(p->event, p->a));
    tried(cu.cuStreamWaitEvent(p->b, p->event, 0));
}

static void close_pair(pair *p) {
    tried(cu.cuCtxSynchronize());
    drop_pinned(p->host);
    drop_bytes(p->at);
    drop_stream(p->a);
    drop_stream(p->b);
    drop_event(p->event);
}

static void read_before_the_write(bool broken) {
    pair p = open_pair();
    tried(cu.cuMemsetD8Async(p.at, 1, 512, p.a));
    order(&p, broken);
    tried(cu.cuMemcpyDtoHAsync_v2(p.host, p.at + 508, 4, p.b));
    close_pair(&p);
}

static void write_before_the_read(bool broken) {
    pair p = open_pair();
    tried(cu.cuMemsetD8Async(p.at, 1, 512, p.b));
    tried(cu.cuStreamSynchronize(p.b));
    tried(cu.cuMemcpyDtoHAsync_v2(p.host, p.at, 512, p.a));
    order(&p, broken);
    tried(cu.cuMemsetD8Async(p.at, 2, 4, p.b));
    close_pair(&p);
}

static void write_twice(bool broken) {
    pair p = open_pair();
    tried(cu.cuMemsetD8Async(p.at, 1, 512, p.a));
    order(&p, broken);
    tried(cu.cuMemsetD8Async(p.at, 2, 512, p.b));
    close_pair(&p);
}

/* The staging buffer is filled again before what was in it has gone. */
static void staging_used_again(bool broken) {
    pair p = open_pair();
    tried(cu.cuMemsetD8Async(p.at, 1, 512, p.b));
    tried(cu.cuStreamSynchronize(p.b));
    tried(cu.cuMemcpyHtoDAsync_v2(p.at, p.host, 256, p.a));
    order(&p, broken);
    tried(cu.cuMemcpyDtoHAsync_v2(p.host + 128, p.at + 256, 128, p.b));
    close_pair(&p);
}

static void kernel_beside_a_copy(bool broken) {
    CUmodule module = NULL;
    CUfunction f = standin_kernel_of(TEXT_TWICE, "twice", &module);
    pair p = open_pair();
    uint32_t n = 64;
    tried(cu.cuMemcpyHtoDAsync_v2(p.at, p.host, 512, p.a));
    order(&p, broken);
    tried(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, p.b, (void *[]){&p.at, &n}, NULL));
    close_pair(&p);
    tried(cu.cuModuleUnload(module));
}

/* An event that was recorded too early orders too little. */
static void event_recorded_early(bool broken) {
    pair p = open_pair();
    if (broken) tried(cu.cuEventRecord(p.event, p.a));
    tried(cu.cuMemsetD8Async(p.at, 1, 512, p.a));
    if (!broken) tried(cu.cuEventRecord(p.event, p.a));
    tried(cu.cuStreamWaitEvent(p.b, p.event, 0));
    tried(cu.cuMemsetD8Async(p.at, 2, 512, p.b));
    close_pair(&p);
}

/* A blocking stream is ordered by the default stream; one that does not block is not. */
static void default_stream_believed_in(bool broken) {
    CUstream s = NULL;
    CUdeviceptr at = get_bytes(512);
    assert_cu(cu.cuStreamCreate(&s, broken ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    tried(cu.cuMemsetD8Async(at, 1, 512, s));
    tried(cu.cuMemsetD8_v2(at, 2, 512));
    tried(cu.cuCtxSynchronize());
    drop_stream(s);
    drop_bytes(at);
}

/* Copies take their time here, so that the host is early for sure. */
static void source_overwritten(bool broken) {
    if (broken) setenv("TIDE_STANDIN_COPY_MIBPS", "2", 1);
    standin_open();
    unsetenv("TIDE_STANDIN_COPY_MIBPS");
    enum { LARGE = 1 << 18 };
    CUdeviceptr at = get_bytes(2 * LARGE);
    char *host = get_pinned(2 * LARGE);
    CUstream s = get_stream();
    tried(cu.cuMemcpyHtoDAsync_v2(at, host, LARGE, s));
    tried(cu.cuMemcpyHtoDAsync_v2(at + LARGE, host + LARGE, 64, s));
    if (!broken) tried(cu.cuStreamSynchronize(s));
    host[LARGE] = 1;
    tried(cu.cuStreamSynchronize(s));
    drop_pinned(host);
    drop_bytes(at);
    drop_stream(s);
}

#define MUTANT(function, kind) \
    { #function, kind, function, false }
const mutant memory_mutants[] = {
    MUTANT(unpinned_source, MISUSE_UNPINNED),
    MUTANT(unpinned_destination, MISUSE_UNPINNED),
    MUTANT(half_pinned, MISUSE_UNPINNED),
    MUTANT(copy_beyond, MISUSE_COPY_BOUNDS),
    MUTANT(set_beyond, MISUSE_COPY_BOUNDS),
    MUTANT(copy_onto_itself, MISUSE_COPY_OVERLAP),
    MUTANT(host_address, MISUSE_ADDRESS),
    MUTANT(set_unaligned, MISUSE_MEMSET_ALIGNMENT),
    MUTANT(set_after_free, MISUSE_AFTER_FREE),
    MUTANT(copy_from_freed_pinned, MISUSE_AFTER_FREE),
    MUTANT(free_twice, MISUSE_DOUBLE_FREE),
    MUTANT(free_pinned_twice, MISUSE_DOUBLE_FREE),
    MUTANT(free_inside, MISUSE_BAD_FREE),
    MUTANT(free_registered, MISUSE_BAD_FREE),
    MUTANT(register_twice, MISUSE_REGISTRATION),
    MUTANT(unregister_nothing, MISUSE_REGISTRATION),
    MUTANT(free_while_copied, MISUSE_BUSY_MEMORY),
    MUTANT(unload_while_running, MISUSE_BUSY_MODULE),
    {NULL, MISUSES, NULL, false},
};
const mutant order_mutants[] = {
    MUTANT(read_before_the_write, MISUSE_RACE),
    MUTANT(write_before_the_read, MISUSE_RACE),
    MUTANT(write_twice, MISUSE_RACE),
    MUTANT(staging_used_again, MISUSE_RACE),
    MUTANT(kernel_beside_a_copy, MISUSE_RACE),
    MUTANT(event_recorded_early, MISUSE_RACE),
    MUTANT(default_stream_believed_in, MISUSE_RACE),
    MUTANT(source_overwritten, MISUSE_SOURCE_CHANGED),
    {NULL, MISUSES, NULL, false},
};
