/* The variants of an op against the clock, once per GPU: see libraries.h. The op runs on numbers of no meaning in an arena
 * of its own, which is gone afterwards; where there is no room for that, nothing is known and nothing changes. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/cuda/libraries.h"
#include "device/gpu/cache.h"

enum { RUNS = 4, MAX_OPERANDS = 8 }; /* of runs the first is not counted */
#define GAIN 0.9                     /* of our own time, that a default of a library stays below */
#define LITTLE_BYTES (UINT64_C(4) << 20)
#define LITTLE_SHARE 8 /* or this part of the op's operands */

/* What stands on disk. */
typedef struct times {
    uint64_t ns[4];
} times;

typedef struct trial {
    tide__gpu_kernel *k;
    tide_arena *arena;
    tide_queue *queue;
    tide_event *from, *to;
    uint64_t offsets[MAX_OPERANDS + 1];
    uint32_t n; /* operands */
} trial;

static uint64_t workspace_of(const tide__gpu_kernel *k, uint32_t variant) {
    if (!k->temporary_bytes[variant]) return k->variants[variant].workspace_bytes;
    return tide__gpu_product_place(k, variant) + k->temporary_bytes[variant];
}

/* Small floats everywhere: what is not a number would be slower, or quicker. */
static tide_status fill(const trial *t, uint64_t size_bytes) {
    tide__cuda *cuda = (tide__cuda *)t->k->base.device;
    const CUdeviceptr at = ((const tide__cuda_arena *)t->arena)->bytes;
    CUstream stream = ((tide__cuda_queue *)t->queue)->stream;
    TIDE_TRY(tide__cuda_enter(cuda));
    CUresult result = cuda->cu.MemsetD8Async(at, 0x3c, size_bytes, stream);
    if (result == CUDA_SUCCESS) result = cuda->cu.StreamSynchronize(stream);
    tide__cuda_leave(cuda);
    return tide__cu_check(&cuda->cu, result, "fill an arena");
}

static tide_status open_trial(trial *t) {
    tide_device *device = t->k->base.device;
    const uint64_t align = device->align_bytes;
    uint64_t end = 0, workspace = 0;
    t->n = (uint32_t)t->k->operands.count;
    if (t->n > MAX_OPERANDS) return tide__fail(TIDE_E_INTERNAL, "an op of %u operands", t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        const tide__gpu_operand *o = &t->k->operands.data[i];
        t->offsets[i] = end;
        end = (end + o->elements * tide__element_bytes(o->type) + align - 1) & ~(align - 1);
    }
    t->offsets[t->n] = end;
    for (uint32_t i = 0; i < t->k->n_variants; i++) workspace = tide__max_u64(workspace, workspace_of(t->k, i));
    TIDE_TRY(tide_arena_create(device, end + workspace, &t->arena));
    TIDE_TRY(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &t->queue));
    TIDE_TRY(tide_event_create(device, &t->from));
    TIDE_TRY(tide_event_create(device, &t->to));
    return fill(t, end);
}

static void close_trial(trial *t) {
    tide_event_destroy(t->from);
    tide_event_destroy(t->to);
    tide_queue_destroy(t->queue);
    tide_arena_destroy(t->arena);
}

static tide_status time_variant(const trial *t, uint32_t variant, uint64_t *best_ns) {
    const tide_step_args args = {0};
    const uint32_t n = t->n + (workspace_of(t->k, variant) ? 1 : 0);
    *best_ns = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        uint64_t ns = 0;
        TIDE_TRY(tide_event_record(t->from, t->queue));
        TIDE_TRY(t->k->base.device->v->kernel_enqueue(&t->k->base, variant, t->queue, t->arena, t->offsets, n, &args));
        TIDE_TRY(tide_event_record(t->to, t->queue));
        TIDE_TRY(tide_queue_sync(t->queue));
        TIDE_TRY(tide_event_elapsed(t->from, t->to, &ns));
        if (i) *best_ns = tide__min_u64(*best_ns, tide__max_u64(ns, 1));
    }
    return TIDE_OK;
}

static tide_status measure(tide__gpu_kernel *k, times *out) {
    trial t = {.k = k};
    tide_status status = open_trial(&t);
    for (uint32_t i = 0; i < k->n_variants && status == TIDE_OK; i++) status = time_variant(&t, i, &out->ns[i]);
    close_trial(&t);
    return status;
}

static bool find_times(tide__gpu_kernel *k, uint64_t key, times *out) {
    size_t size = 0;
    unsigned char *kept = tide__gpu_cache_read("cuda", key, &size);
    const bool known = kept && size == sizeof *out;
    if (known) memcpy(out, kept, sizeof *out);
    free(kept);
    return known || (measure(k, out) == TIDE_OK && tide__gpu_cache_keep("cuda", key, out, sizeof *out));
}

/* Not TF32, and of little workspace: the smallest budget of a training hardly grows. */
static bool may_be_default(const tide__gpu_kernel *k, uint32_t variant) {
    uint64_t operand_bytes = 0;
    for (uint32_t i = 0; i < k->operands.count; i++)
        operand_bytes += k->operands.data[i].elements * tide__element_bytes(k->operands.data[i].type);
    return k->libraries[variant] && !strstr(k->libraries[variant], "TF32") &&
           workspace_of(k, variant) <= tide__max_u64(LITTLE_BYTES, operand_bytes / LITTLE_SHARE);
}

void tide__cuda_try_ways(tide__gpu_kernel *k, uint64_t key) {
    times t = {{0}};
    uint32_t best = 0;
    if (!find_times(k, key, &t)) return;
    for (uint32_t i = 0; i < k->n_variants; i++) {
        k->variants[i].cost_ns = t.ns[i];
        if (may_be_default(k, i) && (double)t.ns[i] < GAIN * (double)t.ns[0] && (!best || t.ns[i] < t.ns[best]))
            best = i;
    }
    tide__gpu_variant_first(k, best);
}
