/* The CUDA device: NVIDIA's GPUs through the driver's API.
 *
 * The arena is one allocation. A queue is a host queue (device/host_queue.h) whose thread feeds a stream of its own. A
 * compute queue's thread hands kernels to its stream and goes on; nothing waits for them but a sync. A copy queue's
 * thread moves a copy through pinned memory in pieces and waits for each (gpu/staging.c): when it goes on to the next
 * command the copy is complete.
 *
 * An event is a mark in a stream (event.c). A compute queue that waits for one has its stream wait, not its thread. A copy
 * queue's thread waits by itself, before it takes a slot of pinned memory: whoever holds a slot waits for no kernel, so
 * copies cannot block each other.
 *
 * The context is the GPU's primary one, which libraries of the same process share. Threads of callers have it current
 * only during a call. */
#ifndef TIDE_DEVICE_CUDA_CUDA_H
#define TIDE_DEVICE_CUDA_CUDA_H

#include "device/cuda/driver.h"
#include "device/gpu/gpu.h"

#define TIDE__CUDA_ALIGN 256      /* bytes, of offsets: what cuMemAlloc keeps */
#define TIDE__CUDA_LANES 256      /* of the kernels as they are compiled, cmake/cuda.cmake */
#define TIDE__CUDA_MAX_GRID 65535 /* groups in y and z of one launch */

typedef struct tide__cuda_module tide__cuda_module;       /* module.c */
typedef struct tide__cuda_mark tide__cuda_mark;           /* event.c */
typedef struct tide__cuda_libraries tide__cuda_libraries; /* libraries.c */

typedef struct tide__cuda {
    tide__gpu gpu;
    tide__cu cu;
    CUdevice id;
    CUcontext context; /* NULL: not retained */
    char model[64];
    int major, minor; /* compute capability */
    double flops_per_s;
    /* An error of the driver stays with the context: no work goes to it any more, on any queue, and all of them fail with
     * the text of the first. */
    atomic_bool is_lost;
    bool is_gone; /* closing: somebody has reset the device, and what was in the context is no more */
    char lost_text[256];
    atomic_uint n_ops;    /* that a compute queue has given to the driver since it waited last */
    atomic_uint last_op;  /* of all: 1 + a tide_op_kind; 0: there was none */
    bool stepwise;        /* TIDE_CUDA_SYNC=1: the host waits for every op, so that a failure has its name */
    pthread_mutex_t lock; /* protects the modules and lost_text */
    tide__cuda_module *modules;
    tide__cuda_libraries *libraries; /* NULL: none, or not to be used */
    pthread_mutex_t marks_lock;      /* protects the marks and which one an event has */
    pthread_cond_t marked;           /* one more was issued */
    tide__cuda_mark *free_marks;
} tide__cuda;

typedef struct tide__cuda_arena {
    tide_arena base;
    CUdeviceptr bytes;
} tide__cuda_arena;

typedef struct tide__cuda_queue {
    tide__host_queue host;
    CUstream stream;
    CUevent moved[2]; /* of a copy's halves */
    bool in_flight;   /* something was enqueued since the last drain */
    /* Compute queues: */
    CUdeviceptr faults;      /* one tide__gpu_fault on the GPU */
    tide__gpu_fault *report; /* pinned: where it is read to */
} tide__cuda_queue;

/* The context for calls of this thread, which may have another one; between the two the thread calls nobody else. */
tide_status tide__cuda_enter(const tide__cuda *cuda);
void tide__cuda_leave(const tide__cuda *cuda);

/* On queues' threads: before work goes to the driver, and after a call that did so or that waited for some. */
tide_status tide__cuda_before(const tide__cuda *cuda);
tide_status tide__cuda_after(tide__cuda *cuda, CUresult result, const char *doing);
/* The device takes no more work. */
void tide__cuda_lose(tide__cuda *cuda, CUresult result, const char *doing);

/* choose.c: `which` is what follows "cuda:", a number or a UUID, NULL for the first. Fills id, model, major, minor. */
tide_status tide__cuda_choose(tide__cuda *cuda, const char *which);

/* module.c: a CUfunction; its family is loaded at the first call. */
tide_status tide__cuda_function(tide__gpu *gpu, const char *family, const char *name, void **out);
void tide__cuda_modules_unload(tide__cuda *cuda);

/* launch.c: what gpu/ leaves to a driver. */
extern const tide__gpu_backend tide__cuda_backend;

/* arena.c */
tide_status tide__cuda_arena_create(tide_device *device, uint64_t size_bytes, tide_arena **out);
void tide__cuda_arena_destroy(tide_arena *arena);

/* queue.c */
tide_status tide__cuda_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out);
void tide__cuda_queue_destroy(tide_queue *queue);

/* event.c */
tide_status tide__cuda_event_create(tide_device *device, tide_event **out);
void tide__cuda_event_destroy(tide_event *event);
tide_status tide__cuda_event_record(tide_event *event, tide_queue *queue);
tide_status tide__cuda_event_wait(tide_event *event, tide_queue *queue);
tide_status tide__cuda_event_query(tide_event *event, bool *complete);
tide_status tide__cuda_event_sync(tide_event *event);
tide_status tide__cuda_event_elapsed(tide_event *from, tide_event *to, uint64_t *ns);
void tide__cuda_marks_free(tide__cuda *cuda);
/* A hook of queues. */
void tide__cuda_run_mark(tide__host_queue *queue, const tide__command *command);

#endif
