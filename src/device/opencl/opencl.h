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

#include "device/gpu/cache.h"
#include "device/gpu/gpu.h"
#include "device/host_arena.h"
#include "device/opencl/clblast.h"

#define TIDE__OPENCL_ALIGN 64 /* bytes, of offsets at least: a cache line */

typedef struct tide__opencl_program tide__opencl_program;

/* Who computes matrix products: TIDE_OPENCL_PRODUCTS, by default what was measured to be faster (products.c). */
typedef enum tide__products { TIDE__PRODUCTS_MEASURED, TIDE__PRODUCTS_OWN, TIDE__PRODUCTS_CLBLAST } tide__products;
#define TIDE__PRODUCT_CLASSES 81 /* three orders of matrices, three sizes of each dimension */

/* Of a class of products; what stands on disk. */
typedef struct tide__product_choice {
    uint64_t way;                /* tide__products; MEASURED: not known yet */
    uint64_t own_ns, clblast_ns; /* of the product that stands for its class */
} tide__product_choice;

typedef struct tide__opencl {
    tide__gpu gpu;
    tide__cl cl;
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    uint64_t max_arena_bytes, memory_bytes;
    bool host_visible;
    bool rounds_quotients; /* as IEEE 754 says, if a program asks for it */
    pthread_mutex_t lock;  /* protects the programs and the arguments of their kernels */
    tide__opencl_program *programs;
    cl_mem pinned; /* of the staging */
    tide__products products;
    tide__clblast clblast;
    tide__product_choice choices[TIDE__PRODUCT_CLASSES];
} tide__opencl;

typedef struct tide__opencl_arena {
    tide__host_arena host; /* bytes is NULL where the host cannot see it */
    cl_mem buffer;
} tide__opencl_arena;

typedef struct tide__opencl_fate tide__opencl_fate; /* queue.c */

typedef struct tide__opencl_queue {
    tide__host_queue host;
    cl_command_queue cl;
    cl_mem faults;           /* compute queues: one tide__gpu_fault */
    tide__opencl_fate *fate; /* compute queues */
    bool in_flight;          /* something was enqueued since the last drain */
    cl_event moved[2];       /* of a copy's halves; NULL: nothing under way */
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
tide_status tide__opencl_event_sync(tide_event *event);
tide_status tide__opencl_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns);

/* launch.c: what gpu/ leaves to a driver. */
extern const tide__gpu_backend tide__opencl_backend;

/* ---- programs (program.c) ---- */

/* A cl_kernel; its program is built, or taken from the disk, at the first call. */
tide_status tide__opencl_function(tide__gpu *gpu, const char *family, const char *name, void **out);
void tide__opencl_programs_release(tide__opencl *opencl);

/* A key of gpu/cache.h: of the device, its driver and the kernels' text in gpu/kernels/`family`.gpu. */
uint64_t tide__opencl_cache_key(const tide__opencl *opencl, const char *family);

/* ---- who computes a product (products.c) ---- */

tide_status tide__products_open(tide__opencl *opencl); /* reads TIDE_OPENCL_PRODUCTS */
void tide__products_close(tide__opencl *opencl);
/* Slots of the backend. The first product of a class that nothing is known about is measured both ways. */
bool tide__product_is_clblast(tide__gpu *gpu, const tide__gemm *g);
tide_status tide__product_add(tide__gpu_kernel *k, const tide__gemm *g);
tide_status tide__product_run(tide__host_queue *queue, const tide__command *command, const tide__gpu_product *product);

#endif
