/* The OpenCL device: any vendor's GPU, or the CPU through PoCL.
 *
 * The arena is one buffer; kernels get it with byte offsets, so no sub-buffers are made. A compute queue is a host
 * queue whose thread hands kernels to an in-order queue of the driver and goes on: nothing waits for them but a sync,
 * and events complete from the driver's callbacks. Where host and device share memory (`host_visible`) copies are made
 * by the channels' own threads on the arena itself, because drivers for CPUs do not overlap copies with kernels; else
 * they go through pinned memory of fixed size, each through a slot in two halves, one moving while the tier works on the
 * other. */
#ifndef TIDE_DEVICE_OPENCL_OPENCL_H
#define TIDE_DEVICE_OPENCL_OPENCL_H

#include <stdatomic.h>

#include "device/host_arena.h"
#include "device/host_queue.h"
#include "device/opencl/clblast.h"

#define TIDE__OPENCL_ALIGN 64 /* bytes, of offsets at least: a cache line */
/* Without host-visible memory: pinned memory of the device, in slots that queues take for the time of a copy. */
#define TIDE__OPENCL_SLOTS 4
#define TIDE__OPENCL_SLOT_BYTES (UINT64_C(4) << 20)
#define TIDE__OPENCL_STAGING_BYTES (TIDE__OPENCL_SLOTS * TIDE__OPENCL_SLOT_BYTES)

typedef struct tide__opencl_program tide__opencl_program;

/* Who computes matrix products: TIDE_OPENCL_PRODUCTS, by default what was measured to be faster (products.c). */
typedef enum tide__products { TIDE__PRODUCTS_MEASURED, TIDE__PRODUCTS_OWN, TIDE__PRODUCTS_CLBLAST } tide__products;
#define TIDE__PRODUCT_CLASSES 81 /* three orders of matrices, three sizes of each dimension */

/* Of a class of products; what stands on disk. */
typedef struct tide__product_choice {
    uint64_t way;                /* tide__products; MEASURED: not known yet */
    uint64_t own_ns, clblast_ns; /* of the product that stands for its class */
} tide__product_choice;

typedef struct tide__opencl_staging {
    pthread_mutex_t lock; /* protects `taken` */
    pthread_cond_t freed;
    bool taken[TIDE__OPENCL_SLOTS];
    cl_mem buffer; /* NULL: nothing was staged yet */
    char *bytes;   /* where it is mapped */
} tide__opencl_staging;

typedef struct tide__opencl {
    tide_device base;
    tide__cl cl;
    char name[64];
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    uint32_t units;       /* compute units */
    uint64_t local_bytes; /* local memory of a work group */
    uint32_t lanes;       /* work items of a group: kernels/common.gpu */
    uint64_t max_arena_bytes, memory_bytes;
    bool host_visible;
    /* How often the host waited for a compute queue or an event: in a planned step only at its end. */
    atomic_uint_fast64_t host_waits;
    pthread_mutex_t lock; /* protects the programs and the arguments of their kernels */
    tide__opencl_program *programs;
    tide__opencl_staging staging;
    tide__products products;
    tide__clblast clblast;
    tide__product_choice choices[TIDE__PRODUCT_CLASSES];
} tide__opencl;

typedef struct tide__opencl_arena {
    tide__host_arena host; /* bytes is NULL where the host cannot see it */
    cl_mem buffer;
} tide__opencl_arena;

/* What kernels say about data that is wrong: the first finding stays. The same struct stands in kernels/common.gpu. */
typedef struct tide__opencl_fault {
    cl_int code; /* tide__fault_code */
    cl_int value;
    cl_int place, limit;
} tide__opencl_fault;

typedef enum tide__fault_code { TIDE__FAULT_NONE, TIDE__FAULT_LABEL, TIDE__FAULT_TOKEN } tide__fault_code;

typedef struct tide__opencl_fate tide__opencl_fate; /* queue.c */

typedef struct tide__opencl_queue {
    tide__host_queue host;
    cl_command_queue cl;
    cl_mem faults;           /* compute queues: one tide__opencl_fault */
    tide__opencl_fate *fate; /* compute queues */
    bool in_flight;          /* something was enqueued since the last drain */
} tide__opencl_queue;

/* choose.c: `which` is the number after "opencl:", NULL for the first GPU, else the first device. Fills platform, id. */
tide_status tide__opencl_choose(tide__opencl *opencl, const char *which);
/* A text of the device, cut to size; "" where there is none. */
void tide__opencl_text(const tide__opencl *opencl, cl_device_info what, char *out, size_t size);

/* arena.c */
tide_status tide__opencl_arena_create(tide_device *device, uint64_t size_bytes, tide_arena **out);
void tide__opencl_arena_destroy(tide_arena *arena);
void *tide__opencl_arena_host(tide_arena *arena);

/* queue.c */
tide_status tide__opencl_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out);
void tide__opencl_queue_destroy(tide_queue *queue);
tide_status tide__opencl_queue_sync(tide_queue *queue);
tide_status tide__opencl_event_sync(tide_event *event);
tide_status tide__opencl_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns);

/* staging.c: copies where the host cannot see the arena. */
tide_status tide__opencl_staging_open(tide__opencl *opencl); /* once it is open it does nothing */
void tide__opencl_staging_close(tide__opencl *opencl);
tide_status tide__opencl_run_copy(tide__host_queue *queue, const tide__command *command);

#endif
