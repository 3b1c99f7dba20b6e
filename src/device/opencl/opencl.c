/* Opening an OpenCL device and describing it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/gpu/kernel.h"
#include "device/opencl/opencl.h"

static void close_device(tide_device *device) {
    tide__opencl *opencl = (tide__opencl *)device;
    tide__opencl_programs_release(opencl);
    tide__products_close(opencl);
    tide__gpu_staging_close(&opencl->gpu);
    if (opencl->context) opencl->cl.ReleaseContext(opencl->context);
    pthread_mutex_destroy(&opencl->lock);
    free(opencl);
}

static tide_status get_info(const tide_device *base, tide_device_info *out) {
    const tide__opencl *opencl = (const tide__opencl *)base;
    char model[64], driver[32];
    tide__opencl_text(opencl, CL_DEVICE_NAME, model, sizeof model);
    tide__opencl_text(opencl, CL_DRIVER_VERSION, driver, sizeof driver);
    *out = (tide_device_info){.threads = opencl->gpu.units,
                              .align_bytes = base->align_bytes,
                              .memory_bytes = tide__min_u64(opencl->max_arena_bytes, opencl->memory_bytes),
                              .staging_bytes = opencl->host_visible ? 0 : TIDE__GPU_STAGING_BYTES,
                              .host_visible = opencl->host_visible,
                              .has_kernels = true};
    snprintf(out->name, sizeof out->name, "%s", opencl->gpu.name);
    snprintf(out->description, sizeof out->description, "%s, %u unit%s, driver %s", model, opencl->gpu.units,
             opencl->gpu.units == 1 ? "" : "s", driver);
    return TIDE_OK;
}

static const tide__device_vtable vtable = {
    .close = close_device,
    .get_info = get_info,
    .arena_create = tide__opencl_arena_create,
    .arena_destroy = tide__opencl_arena_destroy,
    .arena_host = tide__opencl_arena_host,
    .queue_create = tide__opencl_queue_create,
    .queue_destroy = tide__opencl_queue_destroy,
    .queue_sync = tide__gpu_queue_sync,
    .queue_check = tide__host_queue_check,
    .event_create = tide__host_event_create,
    .event_destroy = tide__host_event_destroy,
    .event_record = tide__host_event_record,
    .event_wait = tide__host_event_wait,
    .event_query = tide__host_event_query,
    .event_sync = tide__opencl_event_sync,
    .event_elapsed = tide__host_event_elapsed,
    .launch = tide__opencl_launch,
    .copy = tide__host_copy,
    .copy_within = tide__host_copy_within,
    .kernel_create = tide__gpu_kernel_create,
    .kernel_destroy = tide__gpu_kernel_destroy,
    .kernel_enqueue = tide__host_kernel_enqueue,
    .operand_layout = tide__gpu_operand_layout,
    .piece_pack = tide__gpu_piece_pack,
    .piece_unpack = tide__gpu_piece_unpack,
};

static tide_status ask(const tide__opencl *opencl, cl_device_info what, size_t size, void *out) {
    return tide__cl_check(opencl->cl.GetDeviceInfo(opencl->id, what, size, out, NULL), "describe a device");
}

/* One on processors, else as many as groups may have, up to MAX_LANES. TIDE_OPENCL_LANES asks for another number, so that
 * the kernels of GPUs can be tested without one. */
static tide_status find_lanes(tide__opencl *opencl, cl_device_type type) {
    enum { MAX_LANES = 256 };
    size_t most = 1;
    const char *asked = getenv("TIDE_OPENCL_LANES");
    TIDE_TRY(ask(opencl, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most));
    opencl->gpu.lanes = type & CL_DEVICE_TYPE_CPU ? 1 : MAX_LANES;
    while (opencl->gpu.lanes > most) opencl->gpu.lanes /= 2;
    if (!asked) return TIDE_OK;
    char *end;
    const unsigned long lanes = strtoul(asked, &end, 10);
    if (*end || lanes > MAX_LANES || lanes > most || !tide__is_power_of_two(lanes))
        return tide__fail(TIDE_E_ARGUMENT, "TIDE_OPENCL_LANES is \"%s\", not a power of two up to %d that %s has",
                          asked, MAX_LANES, opencl->gpu.name);
    opencl->gpu.lanes = (uint32_t)lanes;
    return TIDE_OK;
}

/* Memory is shared where the device is a CPU: drivers of others may keep copies even of memory they can see. */
static tide_status read_limits(tide__opencl *opencl) {
    cl_device_type type = 0;
    cl_bool unified = CL_FALSE, compiler = CL_FALSE;
    cl_uint units = 0, align_bits = 0;
    cl_ulong alloc = 0, memory = 0, local = 0;
    cl_device_fp_config floats = 0;
    TIDE_TRY(ask(opencl, CL_DEVICE_TYPE, sizeof type, &type));
    TIDE_TRY(ask(opencl, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified));
    TIDE_TRY(ask(opencl, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler));
    TIDE_TRY(ask(opencl, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units));
    TIDE_TRY(ask(opencl, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof align_bits, &align_bits));
    TIDE_TRY(ask(opencl, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof alloc, &alloc));
    TIDE_TRY(ask(opencl, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory));
    TIDE_TRY(ask(opencl, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local));
    TIDE_TRY(ask(opencl, CL_DEVICE_SINGLE_FP_CONFIG, sizeof floats, &floats));
    if (!compiler) return tide__fail(TIDE_E_DEVICE, "the OpenCL device has no compiler for kernels");
    opencl->host_visible = (type & CL_DEVICE_TYPE_CPU) && unified;
    opencl->rounds_quotients = floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    opencl->gpu.base.align_bytes = (uint32_t)tide__max_u64(TIDE__OPENCL_ALIGN, align_bits / 8);
    opencl->gpu.units = units ? units : 1;
    opencl->max_arena_bytes = alloc;
    opencl->memory_bytes = memory;
    opencl->gpu.local_bytes = local;
    return find_lanes(opencl, type);
}

static tide_status start(tide__gpu *gpu, const char *which, const tide_device_options *options) {
    tide__opencl *opencl = (tide__opencl *)gpu;
    cl_int error = CL_SUCCESS;
    pthread_mutex_init(&opencl->lock, NULL);
    TIDE_TRY(tide__cl_load(&opencl->cl));
    TIDE_TRY(tide__opencl_choose(opencl, which));
    TIDE_TRY(read_limits(opencl));
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)opencl->platform, 0};
    opencl->context = opencl->cl.CreateContext(properties, 1, &opencl->id, NULL, NULL, &error);
    TIDE_TRY(tide__cl_check(error, "create a context"));
    return tide__products_open(opencl);
}

static const tide__gpu_kind kind = {.name = "opencl",
                                    .size_bytes = sizeof(tide__opencl),
                                    .align_bytes = TIDE__OPENCL_ALIGN,
                                    .v = &vtable,
                                    .backend = &tide__opencl_backend,
                                    .start = start};

tide_status tide__opencl_open(const char *which, const tide_device_options *options, tide_device **out) {
    return tide__gpu_open(&kind, which, options, out);
}
