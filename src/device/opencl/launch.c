/* What gpu/ leaves to OpenCL: launches of functions, pinned memory and the moves between it and the arena. */
#include "device/gpu/kernel.h"
#include "device/opencl/opencl.h"

static tide__opencl *device_of(const tide__host_queue *queue) { return (tide__opencl *)queue->base.device; }

/* ---- launches ---- */

/* Under the device's lock: functions, and with them their arguments, are shared by kernels and queues. */
static cl_int enqueue(const tide__opencl_queue *queue, const tide__command *command, const tide__gpu_launch *l,
                      const tide__gpu_value *values) {
    const tide__opencl *opencl = device_of(&queue->host);
    const tide__cl *cl = &opencl->cl;
    const tide__opencl_arena *arena = (const tide__opencl_arena *)command->kernel.arena;
    const size_t lanes[3] = {opencl->gpu.lanes, 1, 1};
    const size_t items[3] = {l->groups[0] * lanes[0], l->groups[1], l->groups[2]};
    cl_int error = cl->SetKernelArg(l->function, 0, sizeof(cl_mem), &arena->buffer);
    if (error == CL_SUCCESS) error = cl->SetKernelArg(l->function, 1, sizeof(cl_mem), &queue->faults);
    for (size_t i = 0; i < l->n_args && error == CL_SUCCESS; i++) {
        const tide__gpu_value *v = &values[i];
        error = v->size_bytes ? cl->SetKernelArg(l->function, (cl_uint)i + 2, v->size_bytes, &v->u)
                              : cl->SetKernelArg(l->function, (cl_uint)i + 2, v->u, NULL);
    }
    if (error != CL_SUCCESS) return error;
    return cl->EnqueueNDRangeKernel(queue->cl, l->function, 3, NULL, items, lanes, 0, NULL, NULL);
}

static tide_status launch(tide__host_queue *queue, const tide__command *command, const tide__gpu_launch *l,
                          const tide__gpu_value *values) {
    tide__opencl *opencl = device_of(queue);
    pthread_mutex_lock(&opencl->lock);
    cl_int error = enqueue((const tide__opencl_queue *)queue, command, l, values);
    pthread_mutex_unlock(&opencl->lock);
    if (error == CL_SUCCESS) return TIDE_OK;
    return tide__fail(TIDE_E_DEVICE, "OpenCL cannot launch %s: %s (%d)",
                      tide_op_kind_name(((const tide__gpu_kernel *)command->kernel.kernel)->desc.kind),
                      tide__cl_error_name(error), error);
}

static tide_status copy_inside(tide__host_queue *queue, tide_arena *arena, uint64_t from, uint64_t to,
                               uint64_t size_bytes) {
    const tide__cl *cl = &device_of(queue)->cl;
    cl_mem buffer = ((tide__opencl_arena *)arena)->buffer;
    cl_int error =
        cl->EnqueueCopyBuffer(((tide__opencl_queue *)queue)->cl, buffer, buffer, from, to, size_bytes, 0, NULL, NULL);
    return tide__cl_check(error, "copy inside the arena");
}

/* ---- pinned memory: mapped as long as the device is open. Any queue of the driver can map and unmap it ---- */

static void *map(const tide__opencl *opencl, cl_mem buffer, uint64_t size_bytes, cl_int *error) {
    const tide__cl *cl = &opencl->cl;
    cl_command_queue queue = cl->CreateCommandQueue(opencl->context, opencl->id, 0, error);
    if (*error != CL_SUCCESS) return NULL;
    void *bytes =
        cl->EnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size_bytes, 0, NULL, NULL, error);
    cl->Finish(queue);
    cl->ReleaseCommandQueue(queue);
    return bytes;
}

static tide_status pin(tide__gpu *gpu, uint64_t size_bytes, void **out) {
    tide__opencl *opencl = (tide__opencl *)gpu;
    cl_int error = CL_SUCCESS;
    cl_mem buffer =
        opencl->cl.CreateBuffer(opencl->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size_bytes, NULL, &error);
    TIDE_TRY(tide__cl_check(error, "create a pinned buffer"));
    void *bytes = map(opencl, buffer, size_bytes, &error);
    if (error != CL_SUCCESS) {
        opencl->cl.ReleaseMemObject(buffer);
        return tide__cl_check(error, "map a pinned buffer");
    }
    opencl->pinned = buffer;
    *out = bytes;
    return TIDE_OK;
}

static void unpin(tide__gpu *gpu, void *bytes) {
    const tide__opencl *opencl = (tide__opencl *)gpu;
    const tide__cl *cl = &opencl->cl;
    cl_int error = CL_SUCCESS;
    cl_command_queue queue = cl->CreateCommandQueue(opencl->context, opencl->id, 0, &error);
    if (error == CL_SUCCESS) {
        cl->EnqueueUnmapMemObject(queue, opencl->pinned, bytes, 0, NULL, NULL);
        cl->Finish(queue);
        cl->ReleaseCommandQueue(queue);
    }
    cl->ReleaseMemObject(opencl->pinned);
}

/* ---- moves ---- */

static tide_status move_start(tide__host_queue *base, const tide__gpu_move *m) {
    tide__opencl_queue *queue = (tide__opencl_queue *)base;
    const tide__cl *cl = &device_of(base)->cl;
    cl_mem buffer = ((tide__opencl_arena *)m->arena)->buffer;
    cl_event *moved = &queue->moved[m->half];
    cl_int error =
        m->out ? cl->EnqueueReadBuffer(queue->cl, buffer, CL_FALSE, m->offset, m->size_bytes, m->data, 0, NULL, moved)
               : cl->EnqueueWriteBuffer(queue->cl, buffer, CL_FALSE, m->offset, m->size_bytes, m->data, 0, NULL, moved);
    TIDE_TRY(tide__cl_check(error, "copy"));
    return tide__cl_check(cl->Flush(queue->cl), "start a copy");
}

static tide_status move_finish(tide__host_queue *base, int half) {
    cl_event *moved = &((tide__opencl_queue *)base)->moved[half];
    const tide__cl *cl = &device_of(base)->cl;
    if (!*moved) return TIDE_OK;
    cl_int error = cl->WaitForEvents(1, moved);
    cl->ReleaseEvent(*moved);
    *moved = NULL;
    return tide__cl_check(error, "copy");
}

const tide__gpu_backend tide__opencl_backend = {
    .title = "OpenCL",
    .function = tide__opencl_function,
    .launch = launch,
    .copy_inside = copy_inside,
    .takes_product = tide__product_is_clblast,
    .add_product = tide__product_add,
    .run_product = tide__product_run,
    .pin = pin,
    .unpin = unpin,
    .move_start = move_start,
    .move_finish = move_finish,
};
