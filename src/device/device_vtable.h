/* What a device implements. device.c checks arguments once, for all devices, and then calls through this table; a
 * device therefore sees only valid handles of its own, ranges inside the arena, aligned offsets and sane sizes.
 *
 * Every object starts with its public base (below): a device embeds it as the first member of its own struct and
 * fills it on creation. Slots marked *optional* may be NULL; the default stands beside them. Outputs are untouched on
 * failure. */
#ifndef TIDE_DEVICE_VTABLE_H
#define TIDE_DEVICE_VTABLE_H

#include <tidemark/device.h>

#include "base/error.h"
#include "device/piece.h"

typedef struct tide__device_vtable {
    /* Frees the device; everything created from it is gone by then. */
    void (*close)(tide_device *device);
    tide_status (*get_info)(const tide_device *device, tide_device_info *out);

    /* size_bytes > 0. A failure text names the size. */
    tide_status (*arena_create)(tide_device *device, uint64_t size_bytes, tide_arena **out);
    void (*arena_destroy)(tide_arena *arena);
    /* Optional: NULL means the host cannot see the arena. */
    void *(*arena_host)(tide_arena *arena);
    /* Optional: NULL means that memory stays taken. */
    void (*arena_discard)(tide_arena *arena, uint64_t offset, uint64_t size_bytes);

    tide_status (*queue_create)(tide_device *device, tide_queue_kind kind, tide_queue **out);
    void (*queue_destroy)(tide_queue *queue); /* waits for what is enqueued */
    tide_status (*queue_sync)(tide_queue *queue);
    /* Optional: NULL means TIDE_E_UNSUPPORTED. */
    tide_status (*queue_check)(tide_queue *queue);

    tide_status (*event_create)(tide_device *device, tide_event **out);
    void (*event_destroy)(tide_event *event);
    tide_status (*event_record)(tide_event *event, tide_queue *queue);
    tide_status (*event_wait)(tide_event *event, tide_queue *queue);
    tide_status (*event_query)(tide_event *event, bool *complete);
    tide_status (*event_sync)(tide_event *event);
    tide_status (*event_elapsed)(tide_event *from, tide_event *to, uint64_t *ns);

    /* Optional: NULL means TIDE_E_UNSUPPORTED (devices whose arena the host cannot see). */
    tide_status (*launch)(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns);
    /* `out`: arena to io.fn; else io.fn to arena. size_bytes may be 0: then fn is not called. */
    tide_status (*copy)(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io io,
                        bool out);
    /* Of a compute queue; both ranges lie in the arena and may overlap; size_bytes > 0 and from != to. */
    tide_status (*copy_within)(tide_queue *queue, tide_arena *arena, uint64_t from, uint64_t to, uint64_t size_bytes);

    /* Kernels: optional as a group. kernel_create NULL means TIDE_E_UNSUPPORTED, and the others are never called. */
    tide_status (*kernel_create)(tide_device *device, const tide_op_desc *desc, tide_kernel **out);
    void (*kernel_destroy)(tide_kernel *kernel);
    tide_status (*kernel_enqueue)(tide_kernel *kernel, uint32_t variant, tide_queue *queue, tide_arena *arena,
                                  const uint64_t *offsets, uint32_t n_offsets, const tide_step_args *args);
    /* operand < n_reads + n_writes; its layout, for piece.h. */
    tide_status (*operand_layout)(const tide_kernel *kernel, uint32_t operand, tide__operand_layout *out);
    /* One piece, perhaps all of the operand; it is one of the layout's. */
    tide_status (*piece_pack)(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece, const float *plain,
                              void *stored);
    tide_status (*piece_unpack)(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                const void *stored, float *plain);
    /* Optional: NULL means that all variants are the device's own. */
    const char *(*variant_library)(const tide_kernel *kernel, uint32_t variant);
    /* Optional: NULL means that the device has no libraries to trust. */
    tide_status (*trust)(tide_device *device);
} tide__device_vtable;

struct tide_device {
    const tide__device_vtable *v;
    uint32_t align_bytes; /* of arena offsets; a power of two */
    uint32_t forks;       /* device.c: of which process it is */
};

struct tide_arena {
    tide_device *device;
    uint64_t size_bytes;
};

struct tide_queue {
    tide_device *device;
    tide_queue_kind kind;
};

struct tide_event {
    tide_device *device;
};

struct tide_kernel {
    tide_device *device;
    tide_kernel_info info;
    const uint64_t *operand_bytes; /* of all n_reads + n_writes operands, also those that info has no room for */
};

/* One per device; device.c lists them. options is complete and valid. which: what follows "name:", NULL if nothing
 * does, as always where there is one of a kind. */
tide_status tide__cpu_open(const char *which, const tide_device_options *options, tide_device **out);
tide_status tide__cuda_open(const char *which, const tide_device_options *options, tide_device **out);
tide_status tide__host_open(const char *which, const tide_device_options *options, tide_device **out);
tide_status tide__opencl_open(const char *which, const tide_device_options *options, tide_device **out);
tide_status tide__sim_open(const char *which, const tide_device_options *options, tide_device **out);

#endif
