/* Queues of the sim device: work is charged to the clock, then done on the spot, until the queue has failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/host_arena.h"
#include "device/sim/sim.h"

#define COPY_PIECE_BYTES (UINT64_C(1) << 20) /* small, so that pieces are met in tests */

tide_status tide__sim_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out) {
    tide__sim *sim = (tide__sim *)device;
    uint32_t index = 0;
    while (index < TIDE__SIM_MAX_QUEUES && sim->queues[index]) index++;
    if (index == TIDE__SIM_MAX_QUEUES)
        return tide__fail(TIDE_E_DEVICE, "sim: more than %d queues", TIDE__SIM_MAX_QUEUES);
    tide__sim_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return tide__fail_memory();
    queue->base = (tide_queue){.device = device, .kind = kind};
    queue->index = index;
    sim->queues[index] = queue;
    *out = &queue->base;
    return TIDE_OK;
}

void tide__sim_queue_destroy(tide_queue *base) {
    tide__sim_queue *queue = (tide__sim_queue *)base;
    ((tide__sim *)base->device)->queues[queue->index] = NULL;
    tide__vec_free(&queue->waits);
    free(queue);
}

tide_status tide__sim_queue_sync(tide_queue *base) {
    const tide__sim_queue *queue = (tide__sim_queue *)base;
    TIDE_TRY(tide__sim_settle((tide__sim *)base->device));
    return queue->failure == TIDE_OK ? TIDE_OK : tide__fail(queue->failure, "%s", queue->failure_text);
}

/* ---- work ---- */

typedef struct work {
    tide_host_fn fn; /* NULL: a copy */
    void *context;
    tide_io io;
    char *data;
    const char *from; /* a copy inside the arena; NULL: by `io` */
    uint64_t size_bytes;
} work;

static tide_status do_work(const work *w) {
    if (w->fn) return w->fn(w->context);
    if (w->from) {
        memmove(w->data, w->from, w->size_bytes);
        return TIDE_OK;
    }
    for (uint64_t position = 0; position < w->size_bytes; position += COPY_PIECE_BYTES) {
        uint64_t piece = tide__min_u64(w->size_bytes - position, COPY_PIECE_BYTES);
        TIDE_TRY(w->io.fn(w->io.context, position, w->data + position, piece));
    }
    return TIDE_OK;
}

/* The failure belongs to the queue, not to this call. A function that fails without a text must not inherit the
 * caller's last one, and one that succeeds must leave it alone. */
static void work_now(tide__sim_queue *queue, const work *w) {
    char before[sizeof queue->failure_text];
    snprintf(before, sizeof before, "%s", tide_last_error());
    tide__fail(TIDE_OK, "%s", "");
    tide_status status = do_work(w);
    if (status != TIDE_OK) {
        const char *text = tide_last_error();
        queue->failure = status;
        snprintf(queue->failure_text, sizeof queue->failure_text, "%s", text[0] ? text : tide_status_text(status));
    }
    tide__fail(TIDE_OK, "%s", before);
}

static tide_status charge_and_work(tide__sim_queue *queue, tide__vjob job, const work *w) {
    uint32_t id;
    if (queue->failure != TIDE_OK) return TIDE_OK; /* skipped */
    TIDE_TRY(tide__sim_charge(queue, job, &id));
    work_now(queue, w);
    return TIDE_OK;
}

tide_status tide__sim_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns) {
    const work w = {.fn = fn, .context = context};
    return charge_and_work((tide__sim_queue *)queue, (tide__vjob){.fixed_ns = cost_ns, .dragged = true}, &w);
}

tide_status tide__sim_copy(tide_queue *base, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io io,
                           bool out) {
    const tide_machine *machine = &((tide__sim *)base->device)->machine;
    const work w = {.io = io, .data = ((tide__host_arena *)arena)->bytes + offset, .size_bytes = size_bytes};
    tide__vjob job = {0};
    if (io.channel != TIDE_NONE) {
        if (io.channel >= machine->n_channels)
            return tide__fail(TIDE_E_ARGUMENT, "copy on channel %u of a machine with %u", io.channel,
                              machine->n_channels);
        const tide_machine_channel *channel = &machine->channel[io.channel];
        job = (tide__vjob){.share = channel->share,
                           .drag_percent = channel->drag_percent,
                           .fixed_ns = channel->latency_ns,
                           .work = size_bytes,
                           .rate_per_s = channel->bytes_per_s};
    }
    return charge_and_work((tide__sim_queue *)base, job, &w);
}

tide_status tide__sim_copy_within(tide_queue *base, tide_arena *arena, uint64_t from, uint64_t to,
                                  uint64_t size_bytes) {
    const tide_machine *machine = &((tide__sim *)base->device)->machine;
    char *bytes = ((tide__host_arena *)arena)->bytes;
    const work w = {.data = bytes + to, .from = bytes + from, .size_bytes = size_bytes};
    uint64_t cost_ns = tide_machine_relocate_ns(machine, size_bytes, from > to ? from - to : to - from);
    return charge_and_work((tide__sim_queue *)base, (tide__vjob){.fixed_ns = cost_ns, .dragged = true}, &w);
}
