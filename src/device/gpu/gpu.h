/* What GPUs have in common, whoever drives them: kernels of one source (kernels/), builders that turn an op into launches
 * of them (kernel.h), copies through pinned memory (staging.c). opencl/ and cuda/ have what differs, behind the table
 * below; each begins its own structs with the ones of this file. */
#ifndef TIDE_DEVICE_GPU_GPU_H
#define TIDE_DEVICE_GPU_GPU_H

#include <stdatomic.h>

#include "device/host_queue.h"

typedef struct tide__gpu tide__gpu;
typedef struct tide__gpu_kernel tide__gpu_kernel;   /* kernel.h */
typedef struct tide__gpu_launch tide__gpu_launch;   /* kernel.h */
typedef struct tide__gpu_product tide__gpu_product; /* kernel.h */
typedef struct tide__gemm tide__gemm;               /* gemm.h */

/* ---- pinned memory, in slots that queues take for the time of a copy, in two halves ---- */

#define TIDE__GPU_SLOTS 4
#define TIDE__GPU_SLOT_BYTES (UINT64_C(4) << 20)
#define TIDE__GPU_STAGING_BYTES (TIDE__GPU_SLOTS * TIDE__GPU_SLOT_BYTES)

typedef struct tide__gpu_staging {
    pthread_mutex_t lock; /* protects `taken` */
    pthread_cond_t freed;
    bool taken[TIDE__GPU_SLOTS];
    char *bytes; /* NULL: nothing was staged yet */
} tide__gpu_staging;

/* A piece of a copy, between the arena and one half of a slot. */
typedef struct tide__gpu_move {
    tide_arena *arena;
    uint64_t offset, size_bytes;
    void *data;
    bool out;
    int half; /* 0 or 1: a queue has at most one move under way in each */
} tide__gpu_move;

/* ---- what a driver does ---- */

/* An argument of a launch as it goes to the driver. */
typedef struct tide__gpu_value {
    uint32_t size_bytes; /* 0: `u` bytes of shared memory */
    union {
        int32_t i;
        uint64_t u;
        float f;
    };
} tide__gpu_value;

typedef struct tide__gpu_backend {
    const char *title; /* "OpenCL" */
    /* Function `name` of kernels/`family`.gpu, which belongs to the device. */
    tide_status (*function)(tide__gpu *gpu, const char *family, const char *name, void **out);
    /* On a queue's thread: the function with the arena, the queue's faults and these values. */
    tide_status (*launch)(tide__host_queue *queue, const tide__command *command, const tide__gpu_launch *launch,
                          const tide__gpu_value *values);
    /* Likewise: bytes inside the arena, in ranges that do not overlap. */
    tide_status (*copy_inside)(tide__host_queue *queue, tide_arena *arena, uint64_t from, uint64_t to,
                               uint64_t size_bytes);

    /* Ways of libraries as variants of a kernel that has its own launches by now; optional as a group, with run_product. */
    tide_status (*add_ways)(tide__gpu_kernel *k, const tide_op_desc *d);
    void (*forget_ways)(tide__gpu_kernel *k);
    /* A library of matrix products instead of ours; optional as a group. */
    bool (*takes_product)(tide__gpu *gpu, const tide__gemm *g);
    tide_status (*add_product)(tide__gpu_kernel *k, const tide__gemm *g); /* appends it to the newest variant */
    tide_status (*run_product)(tide__host_queue *queue, const tide__command *command, const tide__gpu_product *product);

    /* Memory of the host that the driver copies from and to without the processor. */
    tide_status (*pin)(tide__gpu *gpu, uint64_t size_bytes, void **out);
    void (*unpin)(tide__gpu *gpu, void *bytes);
    tide_status (*move_start)(tide__host_queue *queue, const tide__gpu_move *move);
    tide_status (*move_finish)(tide__host_queue *queue, int half); /* waits */
} tide__gpu_backend;

struct tide__gpu {
    tide_device base;
    const tide__gpu_backend *backend;
    char name[64];
    uint32_t units;       /* compute units */
    uint32_t lanes;       /* work items of a group: kernels/common.gpu */
    uint64_t local_bytes; /* shared memory of a group */
    /* How often the host waited for a compute queue or an event: in a planned step only at its end. */
    atomic_uint_fast64_t host_waits;
    tide__gpu_staging staging;
};

/* A family of devices, as it is opened. */
typedef struct tide__gpu_kind {
    const char *name;  /* "cuda" */
    size_t size_bytes; /* of its struct, which begins with a tide__gpu */
    uint32_t align_bytes;
    const tide__device_vtable *v;
    const tide__gpu_backend *backend;
    /* The rest of the struct, which is zero so far; after a failure v->close() has it. */
    tide_status (*start)(tide__gpu *gpu, const char *which, const tide_device_options *options);
} tide__gpu_kind;

/* `which`: what follows the colon of its name, or NULL. */
tide_status tide__gpu_open(const tide__gpu_kind *kind, const char *which, const tide_device_options *options,
                           tide_device **out);

/* A slot of vtables; counts waits. */
tide_status tide__gpu_queue_sync(tide_queue *queue);

/* On a compute queue's thread: a copy inside the arena, whose ranges may overlap. */
tide_status tide__gpu_run_within(tide__host_queue *queue, const tide__command *command);

/* ---- staging.c: copies where the host cannot see the arena ---- */

tide_status tide__gpu_staging_open(tide__gpu *gpu); /* once it is open it does nothing */
void tide__gpu_staging_close(tide__gpu *gpu);
tide_status tide__gpu_run_copy(tide__host_queue *queue, const tide__command *command);

/* ---- what kernels say about data that is wrong: the first finding stays. The same struct is in kernels/common.gpu ---- */

typedef enum tide__fault_code { TIDE__FAULT_NONE, TIDE__FAULT_LABEL, TIDE__FAULT_TOKEN } tide__fault_code;

typedef struct tide__gpu_fault {
    int32_t code; /* tide__fault_code */
    int32_t value, place, limit;
} tide__gpu_fault;

tide_status tide__gpu_fault_status(const tide__gpu_fault *fault);

#endif
