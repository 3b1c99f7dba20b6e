/* Opening the sim device and describing it. It has no kernels: embedders and tests launch host functions with a cost. */
#include "device/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/host_arena.h"

static void close_device(tide_device *device) {
    tide__sim *sim = (tide__sim *)device;
    tide__vclock_destroy(sim->clock);
    tide__vec_free(&sim->pending);
    free(sim);
}

static tide_status get_info(const tide_device *base, tide_device_info *out) {
    const tide__sim *sim = (const tide__sim *)base;
    *out = (tide_device_info){.name = "sim",
                              .threads = 1,
                              .align_bytes = base->align_bytes,
                              .memory_bytes = sim->memory_bytes,
                              .host_visible = true};
    snprintf(out->description, sizeof out->description, "simulated %.50s (%.50s)", sim->machine.name,
             sim->machine.source);
    return TIDE_OK;
}

static tide_status arena_create(tide_device *device, uint64_t size_bytes, tide_arena **out) {
    const tide__sim *sim = (const tide__sim *)device;
    if (size_bytes > sim->memory_bytes)
        return tide__fail(TIDE_E_MEMORY, "an arena of %llu bytes on a device with %llu", (unsigned long long)size_bytes,
                          (unsigned long long)sim->memory_bytes);
    return tide__host_arena_create(device, size_bytes, out);
}

static const tide__device_vtable vtable = {
    .close = close_device,
    .get_info = get_info,
    .arena_create = arena_create,
    .arena_destroy = tide__host_arena_destroy,
    .arena_host = tide__host_arena_host,
    .arena_discard = tide__host_arena_discard,
    .queue_create = tide__sim_queue_create,
    .queue_destroy = tide__sim_queue_destroy,
    .queue_sync = tide__sim_queue_sync,
    .event_create = tide__sim_event_create,
    .event_destroy = tide__sim_event_destroy,
    .event_record = tide__sim_event_record,
    .event_wait = tide__sim_event_wait,
    .event_query = tide__sim_event_query,
    .event_sync = tide__sim_event_sync,
    .event_elapsed = tide__sim_event_elapsed,
    .launch = tide__sim_launch,
    .copy = tide__sim_copy,
    .copy_within = tide__sim_copy_within,
};

tide_status tide__sim_open(const char *which, const tide_device_options *options, tide_device **out) {
    if (options->machine) TIDE_TRY(tide_machine_validate(options->machine));
    tide__sim *sim = calloc(1, sizeof *sim);
    if (!sim) return tide__fail_memory();
    if (options->machine)
        sim->machine = *options->machine;
    else
        tide_machine_init_default(&sim->machine);
    uint64_t memory = sim->machine.memory_bytes, reserve = options->reserve_bytes;
    sim->base = (tide_device){.v = &vtable, .align_bytes = sim->machine.align_bytes};
    sim->memory_bytes = reserve < memory ? memory - reserve : 0;
    tide_status status = tide__vclock_create(TIDE__SIM_MAX_QUEUES, &sim->clock);
    if (status != TIDE_OK) {
        free(sim);
        return status;
    }
    *out = &sim->base;
    return TIDE_OK;
}
