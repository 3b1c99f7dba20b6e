/* The public device calls: a table of devices by name, the argument checks that all devices share, and dispatch.
 *
 * Invariant: nothing reaches a device that is out of bounds, misaligned, of another device or of a parent process. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/size.h"
#include "device/device_vtable.h"

typedef struct device_entry {
    const char *name;
    bool several; /* "name:1" is a second one */
    tide_status (*open)(const char *which, const tide_device_options *options, tide_device **out);
} device_entry;

static const device_entry devices[] = {
#if TIDE_HAVE_CPU
    {"cpu", false, tide__cpu_open},
#endif
#if TIDE_HAVE_CUDA
    {"cuda", true, tide__cuda_open},
#endif
    {"host", false, tide__host_open},
#if TIDE_HAVE_OPENCL
    {"opencl", true, tide__opencl_open},
#endif
    {"sim", false, tide__sim_open},
};
#define N_DEVICES (sizeof devices / sizeof devices[0])

const char *tide_op_kind_name(tide_op_kind kind) {
    switch (kind) {
#define CASE(e, name) \
    case e: return name;
        TIDE_OP_TABLE(CASE)
#undef CASE
    case TIDE_OP_KIND_COUNT: break;
    }
    return "?";
}

/* ---- forks: a child has none of the threads of a device, and no driver works there ---- */

static atomic_uint forks; /* between the process that opened its first device and this one */
static pthread_once_t forks_counted = PTHREAD_ONCE_INIT;
static void count_fork(void) { atomic_fetch_add(&forks, 1); }
static void count_forks(void) { (void)pthread_atfork(NULL, NULL, count_fork); }

static bool is_ours(const tide_device *device) { return device->forks == atomic_load(&forks); }

static tide_status check_ours(const tide_device *device) {
    return is_ours(device) ? TIDE_OK
                           : tide__fail(TIDE_E_DEVICE, "the device was opened before this process was forked; it "
                                                       "stays with the process that opened it");
}

/* ---- devices ---- */

void tide_device_options_init(tide_device_options *options) {
    *options = (tide_device_options){.size = sizeof *options};
}

const char *tide_device_name(uint32_t i) { return i < N_DEVICES ? devices[i].name : NULL; }

static bool is_usable(const device_entry *entry) {
    tide_device_options defaults;
    tide_device *device = NULL;
    tide_device_options_init(&defaults);
    tide_status status = entry->open(NULL, &defaults, &device);
    if (device) device->v->close(device);
    return status == TIDE_OK;
}

/* The names of the devices that open here, found out by opening them: it takes a while and is for failures only. */
static void list_usable(char *out, size_t size) {
    out[0] = 0;
    for (size_t i = 0; i < N_DEVICES; i++) {
        if (!is_usable(&devices[i])) continue;
        strncat(out, out[0] ? ", " : "", size - strlen(out) - 1);
        strncat(out, devices[i].name, size - strlen(out) - 1);
    }
}

/* "opencl" and "opencl:1" are entry "opencl"; *which is then NULL or "1". */
static const device_entry *find_device(const char *name, const char **which) {
    size_t length = strcspn(name, ":");
    *which = name[length] ? name + length + 1 : NULL;
    for (size_t i = 0; i < N_DEVICES; i++)
        if (strlen(devices[i].name) == length && strncmp(name, devices[i].name, length) == 0)
            return !*which || devices[i].several ? &devices[i] : NULL;
    return NULL;
}

/* A device that is known but not usable here says why; this adds what there is instead. */
static tide_status open_entry(const device_entry *entry, const char *which, const tide_device_options *options,
                              tide_device **out) {
    char usable[128], reason[512];
    pthread_once(&forks_counted, count_forks);
    tide_status status = entry->open(which, options, out);
    if (status == TIDE_OK) (*out)->forks = atomic_load(&forks);
    if (status != TIDE_E_DEVICE) return status;
    snprintf(reason, sizeof reason, "%s", tide_last_error());
    list_usable(usable, sizeof usable);
    return tide__fail(TIDE_E_DEVICE, "%s; available: %s", reason, usable);
}

tide_status tide_device_open(const char *name, const tide_device_options *options, tide_device **out) {
    tide_device_options taken;
    tide_device_options_init(&taken);
    if (!name || !out) return tide__fail(TIDE_E_ARGUMENT, "a device needs a name and a place for its handle");
    TIDE_TRY(tide__options_take("tide_device_options", options, sizeof taken, &taken));
    const char *which;
    char usable[128];
    const device_entry *entry = find_device(name, &which);
    if (entry) return open_entry(entry, which, &taken, out);
    list_usable(usable, sizeof usable);
    return tide__fail(TIDE_E_DEVICE, "no device \"%s\"; available: %s", name, usable);
}

void tide_device_close(tide_device *device) {
    if (device && is_ours(device)) device->v->close(device);
}

tide_status tide_device_get_info(const tide_device *device, tide_device_info *out) {
    TIDE_NEED(device, out);
    TIDE_TRY(check_ours(device));
    return device->v->get_info(device, out);
}

tide_status tide_device_trust(tide_device *device) {
    TIDE_NEED(device);
    TIDE_TRY(check_ours(device));
    if (!device->v->trust) return tide__fail(TIDE_E_UNSUPPORTED, "the device has no libraries");
    return device->v->trust(device);
}

/* ---- memory ---- */

tide_status tide_arena_create(tide_device *device, uint64_t size_bytes, tide_arena **out) {
    TIDE_NEED(device, out);
    TIDE_TRY(check_ours(device));
    if (size_bytes == 0) return tide__fail(TIDE_E_ARGUMENT, "an arena of 0 bytes");
    return device->v->arena_create(device, size_bytes, out);
}

void tide_arena_destroy(tide_arena *arena) {
    if (arena && is_ours(arena->device)) arena->device->v->arena_destroy(arena);
}

uint64_t tide_arena_size(const tide_arena *arena) { return arena->size_bytes; }

void *tide_arena_host(tide_arena *arena) {
    const tide__device_vtable *v = arena->device->v;
    return v->arena_host ? v->arena_host(arena) : NULL;
}

void tide_arena_discard(tide_arena *arena, uint64_t offset, uint64_t size_bytes) {
    const tide__device_vtable *v = arena->device->v;
    if (!v->arena_discard || offset >= arena->size_bytes) return;
    v->arena_discard(arena, offset, tide__min_u64(size_bytes, arena->size_bytes - offset));
}

static tide_status check_range(const tide_arena *arena, uint64_t offset, uint64_t size_bytes, const char *what,
                               uint32_t index) {
    uint64_t end;
    if (!tide__add(offset, size_bytes, &end) || end > arena->size_bytes)
        return tide__fail(TIDE_E_ARGUMENT, "%s %u: %llu bytes at offset %llu leave the arena of %llu bytes", what,
                          index, (unsigned long long)size_bytes, (unsigned long long)offset,
                          (unsigned long long)arena->size_bytes);
    if (offset & (arena->device->align_bytes - 1))
        return tide__fail(TIDE_E_ARGUMENT, "%s %u: offset %llu is not a multiple of %u", what, index,
                          (unsigned long long)offset, arena->device->align_bytes);
    return TIDE_OK;
}

static tide_status check_same_device(const tide_device *a, const tide_device *b) {
    TIDE_TRY(check_ours(a));
    return a == b ? TIDE_OK : tide__fail(TIDE_E_ARGUMENT, "objects of two different devices in one call");
}

/* ---- queues and events ---- */

tide_status tide_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out) {
    TIDE_NEED(device, out);
    TIDE_TRY(check_ours(device));
    if (kind != TIDE_QUEUE_COMPUTE && kind != TIDE_QUEUE_COPY)
        return tide__fail(TIDE_E_ARGUMENT, "unknown kind of queue %d", (int)kind);
    return device->v->queue_create(device, kind, out);
}

void tide_queue_destroy(tide_queue *queue) {
    if (queue && is_ours(queue->device)) queue->device->v->queue_destroy(queue);
}

tide_status tide_queue_sync(tide_queue *queue) {
    TIDE_NEED(queue);
    TIDE_TRY(check_ours(queue->device));
    return queue->device->v->queue_sync(queue);
}

tide_status tide_queue_check(tide_queue *queue) {
    TIDE_NEED(queue);
    TIDE_TRY(check_ours(queue->device));
    if (!queue->device->v->queue_check)
        return tide__fail(TIDE_E_UNSUPPORTED, "this device tells failures to who waits");
    return queue->device->v->queue_check(queue);
}

tide_status tide_event_create(tide_device *device, tide_event **out) {
    TIDE_NEED(device, out);
    TIDE_TRY(check_ours(device));
    return device->v->event_create(device, out);
}

void tide_event_destroy(tide_event *event) {
    if (event && is_ours(event->device)) event->device->v->event_destroy(event);
}

tide_status tide_event_record(tide_event *event, tide_queue *queue) {
    TIDE_NEED(event, queue);
    TIDE_TRY(check_same_device(event->device, queue->device));
    return event->device->v->event_record(event, queue);
}

tide_status tide_event_wait(tide_event *event, tide_queue *queue) {
    TIDE_NEED(event, queue);
    TIDE_TRY(check_same_device(event->device, queue->device));
    return event->device->v->event_wait(event, queue);
}

tide_status tide_event_query(tide_event *event, bool *complete) {
    TIDE_NEED(event, complete);
    TIDE_TRY(check_ours(event->device));
    return event->device->v->event_query(event, complete);
}

tide_status tide_event_sync(tide_event *event) {
    TIDE_NEED(event);
    TIDE_TRY(check_ours(event->device));
    return event->device->v->event_sync(event);
}

tide_status tide_event_elapsed(tide_event *from, tide_event *to, uint64_t *ns) {
    TIDE_NEED(from, to, ns);
    TIDE_TRY(check_same_device(from->device, to->device));
    return from->device->v->event_elapsed(from, to, ns);
}

/* ---- work ---- */

tide_status tide_queue_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns) {
    TIDE_NEED(queue);
    TIDE_TRY(check_ours(queue->device));
    const tide__device_vtable *v = queue->device->v;
    if (!fn) return tide__fail(TIDE_E_ARGUMENT, "launch without a function");
    if (!v->launch) return tide__fail(TIDE_E_UNSUPPORTED, "this device runs no host functions");
    return v->launch(queue, fn, context, cost_ns);
}

static tide_status copy(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io io,
                        bool out) {
    if (!io.fn) return tide__fail(TIDE_E_ARGUMENT, "copy without a function");
    TIDE_TRY(check_same_device(queue->device, arena->device));
    TIDE_TRY(check_range(arena, offset, size_bytes, "copy on channel", io.channel));
    return queue->device->v->copy(queue, arena, offset, size_bytes, io, out);
}

tide_status tide_copy_out(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io sink) {
    TIDE_NEED(queue, arena);
    return copy(queue, arena, offset, size_bytes, sink, true);
}

tide_status tide_copy_in(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io source) {
    TIDE_NEED(queue, arena);
    return copy(queue, arena, offset, size_bytes, source, false);
}

tide_status tide_copy_within(tide_queue *queue, tide_arena *arena, uint64_t from, uint64_t to, uint64_t size_bytes) {
    TIDE_NEED(queue, arena);
    TIDE_TRY(check_same_device(queue->device, arena->device));
    if (queue->kind != TIDE_QUEUE_COMPUTE)
        return tide__fail(TIDE_E_ARGUMENT, "copies inside the arena run on compute queues only");
    TIDE_TRY(check_range(arena, from, size_bytes, "copy within: range", 0));
    TIDE_TRY(check_range(arena, to, size_bytes, "copy within: range", 1));
    if (size_bytes == 0 || from == to) return TIDE_OK;
    return queue->device->v->copy_within(queue, arena, from, to, size_bytes);
}

/* ---- kernels ---- */

tide_status tide_kernel_create(tide_device *device, const tide_op_desc *desc, tide_kernel **out) {
    TIDE_NEED(device, desc, out);
    TIDE_TRY(check_ours(device));
    if (!device->v->kernel_create) return tide__fail(TIDE_E_UNSUPPORTED, "this device has no kernels");
    if ((unsigned)desc->kind >= TIDE_OP_KIND_COUNT)
        return tide__fail(TIDE_E_ARGUMENT, "unknown kind of op %d", (int)desc->kind);
    tide_status status = device->v->kernel_create(device, desc, out);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "%s", tide_op_kind_name(desc->kind));
}

void tide_kernel_destroy(tide_kernel *kernel) {
    if (kernel && is_ours(kernel->device)) kernel->device->v->kernel_destroy(kernel);
}

tide_status tide_kernel_get_info(const tide_kernel *kernel, tide_kernel_info *out) {
    TIDE_NEED(kernel, out);
    *out = kernel->info;
    return TIDE_OK;
}

const char *tide_kernel_variant_library(const tide_kernel *kernel, uint32_t variant) {
    if (!kernel || variant >= kernel->info.n_variants || !kernel->device->v->variant_library) return NULL;
    return kernel->device->v->variant_library(kernel, variant);
}

static tide_status check_operands(const tide_kernel *kernel, const tide_variant *variant, const tide_arena *arena,
                                  const uint64_t *offsets, uint32_t n_offsets) {
    uint32_t n_operands = kernel->info.n_reads + kernel->info.n_writes;
    uint32_t wanted = n_operands + (variant->workspace_bytes > 0);
    if (n_offsets != wanted)
        return tide__fail(TIDE_E_ARGUMENT, "kernel got %u offsets, expected %u", n_offsets, wanted);
    for (uint32_t i = 0; i < n_operands; i++)
        TIDE_TRY(check_range(arena, offsets[i], kernel->operand_bytes[i], "operand", i));
    if (variant->workspace_bytes == 0) return TIDE_OK;
    return check_range(arena, offsets[n_operands], variant->workspace_bytes, "workspace, operand", n_operands);
}

tide_status tide_kernel_enqueue(tide_kernel *kernel, uint32_t variant, tide_queue *queue, tide_arena *arena,
                                const uint64_t *offsets, uint32_t n_offsets, const tide_step_args *args) {
    TIDE_NEED(kernel, queue, arena, offsets);
    static const tide_step_args none = {0};
    TIDE_TRY(check_same_device(kernel->device, queue->device));
    TIDE_TRY(check_same_device(kernel->device, arena->device));
    if (queue->kind != TIDE_QUEUE_COMPUTE) return tide__fail(TIDE_E_ARGUMENT, "kernels run on compute queues only");
    if (variant >= kernel->info.n_variants)
        return tide__fail(TIDE_E_ARGUMENT, "variant %u of %u", variant, kernel->info.n_variants);
    TIDE_TRY(check_operands(kernel, &kernel->info.variant[variant], arena, offsets, n_offsets));
    return kernel->device->v->kernel_enqueue(kernel, variant, queue, arena, offsets, n_offsets, args ? args : &none);
}

static tide_status check_operand(const tide_kernel *kernel, uint32_t operand) {
    uint32_t n = kernel->info.n_reads + kernel->info.n_writes;
    return operand < n ? TIDE_OK : tide__fail(TIDE_E_ARGUMENT, "operand %u of a kernel with %u", operand, n);
}

tide_status tide_operand_piece(const tide_kernel *kernel, uint32_t operand, uint64_t position_bytes, uint64_t max_bytes,
                               tide_piece *out) {
    TIDE_NEED(kernel, out);
    tide__operand_layout layout;
    TIDE_TRY(check_operand(kernel, operand));
    TIDE_TRY(kernel->device->v->operand_layout(kernel, operand, &layout));
    return tide__operand_layout_piece(&layout, position_bytes, max_bytes, out);
}

/* A piece of a layout is what the layout gives for its position and size. */
static tide_status check_piece(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece) {
    tide_piece own;
    TIDE_TRY(tide_operand_piece(kernel, operand, piece->position_bytes, piece->size_bytes, &own));
    return memcmp(&own, piece, sizeof own) == 0 ? TIDE_OK
                                                : tide__fail(TIDE_E_ARGUMENT, "operand %u has no such piece at %llu",
                                                             operand, (unsigned long long)piece->position_bytes);
}

tide_status tide_piece_pack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece, const float *plain,
                            void *stored) {
    TIDE_NEED(kernel, piece, plain, stored);
    TIDE_TRY(check_piece(kernel, operand, piece));
    return kernel->device->v->piece_pack(kernel, operand, piece, plain, stored);
}

tide_status tide_piece_unpack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece, const void *stored,
                              float *plain) {
    TIDE_NEED(kernel, piece, stored, plain);
    TIDE_TRY(check_piece(kernel, operand, piece));
    return kernel->device->v->piece_unpack(kernel, operand, piece, stored, plain);
}

tide_status tide_operand_pack(const tide_kernel *kernel, uint32_t operand, const float *plain, void *stored) {
    TIDE_NEED(kernel, plain, stored);
    tide_piece whole;
    TIDE_TRY(tide_operand_piece(kernel, operand, 0, UINT64_MAX, &whole));
    return kernel->device->v->piece_pack(kernel, operand, &whole, plain, stored);
}

tide_status tide_operand_unpack(const tide_kernel *kernel, uint32_t operand, const void *stored, float *plain) {
    TIDE_NEED(kernel, stored, plain);
    tide_piece whole;
    TIDE_TRY(tide_operand_piece(kernel, operand, 0, UINT64_MAX, &whole));
    return kernel->device->v->piece_unpack(kernel, operand, &whole, stored, plain);
}
