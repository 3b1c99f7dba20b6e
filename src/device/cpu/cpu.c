/* Opening the CPU device and describing it. */
#include "device/cpu/kernel.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_THREADS 4096

static void close_device(tide_device *device) {
    tide__cpu *cpu = (tide__cpu *)device;
    tide__engine_destroy(cpu->engine);
    tide__team_close(cpu->team);
    free(cpu);
}

/* "model name : AMD EPYC" of /proc/cpuinfo; "CPU" where there is none. */
static void read_model_name(char *out, size_t size) {
    char line[256];
    snprintf(out, size, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value) continue;
        value += strspn(value, ": \t");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    fclose(file);
}

static tide_status get_info(const tide_device *base, tide_device_info *out) {
    const tide__cpu *cpu = (const tide__cpu *)base;
    char model[64], version[32];
    read_model_name(model, sizeof model);
    tide__dnnl_version(version, sizeof version);
    *out = (tide_device_info){.name = "cpu",
                              .threads = cpu->threads,
                              .align_bytes = base->align_bytes,
                              .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
                              .host_visible = true,
                              .has_kernels = true};
    snprintf(out->description, sizeof out->description, "%s, %u thread%s, oneDNN %s", model, cpu->threads,
             cpu->threads == 1 ? "" : "s", version);
    return TIDE_OK;
}

static const tide__device_vtable vtable = {
    .close = close_device,
    .get_info = get_info,
    .arena_create = tide__host_arena_create,
    .arena_destroy = tide__host_arena_destroy,
    .arena_host = tide__host_arena_host,
    .arena_discard = tide__host_arena_discard,
    .queue_create = tide__cpu_queue_create,
    .queue_destroy = tide__cpu_queue_destroy,
    .queue_sync = tide__host_queue_sync,
    .queue_check = tide__host_queue_check,
    .event_create = tide__host_event_create,
    .event_destroy = tide__host_event_destroy,
    .event_record = tide__host_event_record,
    .event_wait = tide__host_event_wait,
    .event_query = tide__host_event_query,
    .event_sync = tide__host_event_sync,
    .event_elapsed = tide__host_event_elapsed,
    .launch = tide__host_launch,
    .copy = tide__host_copy,
    .copy_within = tide__host_copy_within,
    .kernel_create = tide__cpu_kernel_create,
    .kernel_destroy = tide__cpu_kernel_destroy,
    .kernel_enqueue = tide__cpu_kernel_enqueue,
    .operand_layout = tide__cpu_operand_layout,
    .piece_pack = tide__cpu_piece_pack,
    .piece_unpack = tide__cpu_piece_unpack,
};

/* Cores this process may use. */
static uint32_t usable_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? (uint32_t)count : 1;
}

/* More threads than OpenMP will ever give would leave oneDNN's teams incomplete. */
static tide_status check_threads(uint32_t threads) {
    int limit = omp_get_thread_limit();
    if (threads <= MAX_THREADS && (int)threads <= limit) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "cpu: %u threads, at most %d", threads,
                      limit < MAX_THREADS ? limit : MAX_THREADS);
}

tide_status tide__cpu_open(const char *which, const tide_device_options *options, tide_device **out) {
    uint32_t threads = options->threads ? options->threads : usable_cores();
    TIDE_TRY(check_threads(threads));
    tide__cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu) return tide__fail_memory();
    cpu->base = (tide_device){.v = &vtable, .align_bytes = TIDE__CPU_ALIGN};
    cpu->threads = threads;
    tide_status status = tide__engine_create(&cpu->engine);
    if (status == TIDE_OK && threads > 1) status = tide__team_open(usable_cores(), &cpu->team);
    if (status != TIDE_OK) {
        close_device(&cpu->base);
        return status;
    }
    *out = &cpu->base;
    return TIDE_OK;
}
