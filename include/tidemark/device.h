/* The device contract: an arena, queues, events, asynchronous copies and kernels. One conformance suite
 * (tests/device) holds every device to this text.
 *
 * - Everything that is *enqueued* runs later, in the order of its queue; enqueue calls never wait for it.
 * - Queues run concurrently. Order between queues comes from events only: record on one, wait on another.
 * - A failure inside a queue is sticky: later work of that queue is skipped, events still complete, and
 *   tide_queue_sync() returns the first failure with its detail text.
 * - One thread at a time creates and destroys what a device has, and one at a time drives each queue: calls for different
 *   queues may come from different threads. So an io function may itself copy by a queue that nobody else drives, and
 *   wait for it (an evaluation reads its weights like this); of all io functions of a device one at a time may.
 * - Kernels run on the device's own threads.
 * - A device belongs to the process that opened it. In a child of fork() calls for it fail with TIDE_E_DEVICE, and closing
 *   or destroying touches nothing: the parent's goes on. */
#ifndef TIDEMARK_DEVICE_H
#define TIDEMARK_DEVICE_H

#include <stdbool.h>

#include <tidemark/machine.h>
#include <tidemark/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_device tide_device;
typedef struct tide_arena tide_arena;
typedef struct tide_queue tide_queue;
typedef struct tide_event tide_event;
typedef struct tide_kernel tide_kernel;

/* Libraries of other makers that a device can load for products and convolutions: cuBLAS and cuDNN of "cuda". */
typedef enum tide_libraries {
    TIDE_LIBRARIES_TRUSTED, /* once tide_device_trust() has been called for this GPU and these libraries */
    TIDE_LIBRARIES_NONE,
    TIDE_LIBRARIES_ALL
} tide_libraries;

typedef struct tide_device_options {
    size_t size;      /* sizeof(tide_device_options) */
    uint32_t threads; /* cpu: compute threads; 0: all cores this process may use. They wait asleep, see docs/faq.md */
    uint64_t reserve_bytes;      /* sim: device memory left to libraries */
    const tide_machine *machine; /* sim: rates of its copies; NULL: default machine */
    void *memory;                /* host: where its one arena lies, borrowed; NULL: arenas are mapped */
    uint64_t memory_bytes;       /* host: of it */
    tide_libraries libraries;
} tide_device_options;
TIDE_API void tide_device_options_init(tide_device_options *options);

/* Names of the devices this library was built with; NULL after the last. */
TIDE_API const char *tide_device_name(uint32_t i);
/* name: "cpu", "host" (no kernels: for clients that compute by themselves), "opencl" (the first GPU, else the first device
 * of OpenCL), "opencl:1", "cuda" (the first GPU of NVIDIA's driver), "cuda:1", "cuda:GPU-8932f937" (a UUID, as far as it
 * is written) or "sim". TIDE_E_DEVICE when it is not available, saying which are. */
TIDE_API tide_status tide_device_open(const char *name, const tide_device_options *options, tide_device **out);
TIDE_API void tide_device_close(tide_device *device); /* all its objects are destroyed before; NULL is fine */

/* Somebody has compared the libraries of this device with its own kernels and found them to give the same bits every time:
 * from now on devices opened for this GPU use them. Kept in the user's cache. `tidemark devices --selftest` does it. */
TIDE_API tide_status tide_device_trust(tide_device *device);

typedef struct tide_device_info {
    char name[64];         /* "cpu" */
    char description[128]; /* "AMD EPYC, 2 threads, oneDNN 2.6.3" */
    uint32_t threads;
    uint32_t align_bytes;  /* of arena offsets */
    uint64_t memory_bytes; /* largest arena worth trying */
    /* Pinned memory of the host that copies go through, however many queues there are: part of the host's budget.
     * 0: copies are made in place. */
    uint64_t staging_bytes;
    double flops_per_s; /* float32, what the hardware can do at most by its own account; 0: not known */
    bool host_visible;  /* tide_arena_host() works */
    bool has_kernels;   /* tide_kernel_create() works */
} tide_device_info;
TIDE_API tide_status tide_device_get_info(const tide_device *device, tide_device_info *out);

/* ---- memory: one arena, touched once, never grown ---- */
TIDE_API tide_status tide_arena_create(tide_device *device, uint64_t size_bytes, tide_arena **out);
TIDE_API void tide_arena_destroy(tide_arena *arena);
TIDE_API uint64_t tide_arena_size(const tide_arena *arena);
TIDE_API void *tide_arena_host(tide_arena *arena); /* NULL if not host visible; valid while no queue uses it */
/* While no queue uses them: these bytes mean nothing any more, so the system may have their memory until they are written to
 * again. Bytes beyond the arena are ignored. */
TIDE_API void tide_arena_discard(tide_arena *arena, uint64_t offset, uint64_t size_bytes);

/* ---- queues and events ---- */
typedef enum tide_queue_kind { TIDE_QUEUE_COMPUTE, TIDE_QUEUE_COPY } tide_queue_kind;
TIDE_API tide_status tide_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out);
TIDE_API void tide_queue_destroy(tide_queue *queue); /* waits for what is enqueued */
/* The host waits until everything enqueued so far is complete; the queue's sticky failure, if any. */
TIDE_API tide_status tide_queue_sync(tide_queue *queue);
/* The queue's sticky failure so far, without waiting. TIDE_E_UNSUPPORTED: this device tells only tide_queue_sync. */
TIDE_API tide_status tide_queue_check(tide_queue *queue);

/* A mark in a queue's order, for the host and for other queues. */
TIDE_API tide_status tide_event_create(tide_device *device, tide_event **out);
TIDE_API void tide_event_destroy(tide_event *event); /* records and waits that are enqueued still happen */
/* Completes when all work enqueued on the queue before it is complete. Recording again re-arms the event. */
TIDE_API tide_status tide_event_record(tide_event *event, tide_queue *queue);
/* Work enqueued on `queue` after this call starts only after the event's latest record is complete. */
TIDE_API tide_status tide_event_wait(tide_event *event, tide_queue *queue);
TIDE_API tide_status tide_event_query(tide_event *event, bool *complete); /* never recorded counts as complete */
TIDE_API tide_status tide_event_sync(tide_event *event);                  /* the host waits */
/* Device time between the completions of two recorded, complete events; virtual on "sim". */
TIDE_API tide_status tide_event_elapsed(tide_event *from, tide_event *to, uint64_t *ns);

/* ---- work ---- */
/* A host function in queue order (for closures of embedders and for tests); cost_ns is what "sim" charges for it.
 * Host-visible devices only. The function returns a status that becomes the queue's sticky failure. */
typedef tide_status (*tide_host_fn)(void *context);
TIDE_API tide_status tide_queue_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns);

/* Where copied bytes go or come from: called on a device thread, once or more, pieces in ascending order of
 * `position` (bytes from the start of the copy). `data` is only valid during the call. Tiers implement it. */
typedef tide_status (*tide_io_fn)(void *context, uint64_t position, void *data, uint64_t size_bytes);
typedef struct tide_io {
    tide_io_fn fn;
    void *context;
    uint32_t channel; /* index in the machine: what "sim" charges; TIDE_NONE: free of charge */
} tide_io;
TIDE_API tide_status tide_copy_out(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes,
                                   tide_io sink); /* sink must not write to data */
TIDE_API tide_status tide_copy_in(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes,
                                  tide_io source); /* source fills data */
/* Inside the arena, on a compute queue: the bytes at `to` become what those at `from` were. The two may overlap. "sim"
 * charges tide_machine_relocate_ns(). */
TIDE_API tide_status tide_copy_within(tide_queue *queue, tide_arena *arena, uint64_t from, uint64_t to,
                                      uint64_t size_bytes);

/* ---- kernels (optional: has_kernels) ---- */
#define TIDE_KERNEL_MAX_OPERANDS 64 /* of reads, of writes: a dense block of 48 layers joins 49 parts */
#define TIDE_LAYOUT_ANY 0 /* the kernel works on stored floats in any order: updates, accumulate, zero, grad-norm */
typedef struct tide_operand_info {
    uint64_t size_bytes; /* as stored on this device, padding included */
    uint64_t layout;     /* equal for equal layouts: an op may read what another wrote iff the two agree */
} tide_operand_info;
typedef struct tide_kernel_info {
    uint32_t n_reads, n_writes;
    tide_operand_info read[TIDE_KERNEL_MAX_OPERANDS], write[TIDE_KERNEL_MAX_OPERANDS];
    uint32_t n_variants;     /* >= 1 */
    tide_variant variant[4]; /* workspace, bits class; cost_ns 0: measure it */
} tide_kernel_info;          /* grad-norm and stack may have more reads than fit: read[0] then stands for all */

/* The op of this descriptor, checked, and prepared so that enqueueing it is quick. TIDE_E_UNSUPPORTED: the device does not
 * compute it. */
TIDE_API tide_status tide_kernel_create(tide_device *device, const tide_op_desc *desc, tide_kernel **out);
TIDE_API void tide_kernel_destroy(tide_kernel *kernel); /* not while it is enqueued */
/* Its operands as this device stores them, and its variants. */
TIDE_API tide_status tide_kernel_get_info(const tide_kernel *kernel, tide_kernel_info *out);

/* What changes from step to step; copied at enqueue. */
typedef struct tide_step_args {
    uint64_t seed, step; /* step counts from 0; counter-based randomness = f(seed, step, op counter, element) */
    uint64_t counter;    /* of the op, when it is random */
    float learning_rate;
} tide_step_args;
/* Whose variant i is: "cuDNN", "cuBLAS, TF32"; NULL: the device's own, or there is none. */
TIDE_API const char *tide_kernel_variant_library(const tide_kernel *kernel, uint32_t variant);
/* offsets: reads, writes, then the workspace if the variant has one; in the order of kernel_info. args may be NULL for ops
 * that draw no numbers and learn nothing: all zeros. */
TIDE_API tide_status tide_kernel_enqueue(tide_kernel *kernel, uint32_t variant, tide_queue *queue, tide_arena *arena,
                                         const uint64_t *offsets, uint32_t n_offsets, const tide_step_args *args);

/* Between plain row-major float32 (N, C, H, W or O, I, H, W) and the stored layout of an operand (reads first, then
 * writes), on host memory, synchronously. Padding is written as zeros. */
TIDE_API tide_status tide_operand_pack(const tide_kernel *kernel, uint32_t operand, const float *plain, void *stored);
TIDE_API tide_status tide_operand_unpack(const tide_kernel *kernel, uint32_t operand, const void *stored, float *plain);

/* A piece of an operand, for those too large to convert at once: size_bytes of the stored one from position_bytes on, which
 * are the box [from, to) of the plain one. dims: of the plain one, row-major, with ones after the last. */
typedef struct tide_piece {
    uint64_t position_bytes, size_bytes;
    uint64_t dims[4], from[4], to[4];
} tide_piece;
/* The piece at position_bytes, which is 0 or the end of another piece: as long as max_bytes and the layout allow, but never
 * less than one tile of the layout (a few KiB). */
TIDE_API tide_status tide_operand_piece(const tide_kernel *kernel, uint32_t operand, uint64_t position_bytes,
                                        uint64_t max_bytes, tide_piece *out);
/* As above for one piece; plain is its box alone, row-major. */
TIDE_API tide_status tide_piece_pack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                     const float *plain, void *stored);
TIDE_API tide_status tide_piece_unpack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                       const void *stored, float *plain);

#ifdef __cplusplus
}
#endif
#endif
