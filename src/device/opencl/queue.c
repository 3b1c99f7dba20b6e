/* Queues of the OpenCL device: host queues in front of an in-order queue of the driver (opencl.h).
 *
 * Invariant: `in_flight` is set iff something may still run in the driver's queue. Host functions, and copies made by
 * the thread itself, run only after a drain. What the driver ended abnormally is the failure of the next drain, whose
 * sync reports it, although events complete then as ever: nobody who waits for one hangs. */
#include <stdlib.h>

#include "device/gpu/kernel.h"
#include "device/opencl/opencl.h"

static tide__opencl *device_of(const tide__opencl_queue *queue) { return (tide__opencl *)queue->host.base.device; }

/* ---- what callbacks tell ---- */

/* Shared by a queue and its callbacks under way, which a driver may call after the queue is gone. */
struct tide__opencl_fate {
    pthread_mutex_t lock; /* protects the others */
    pthread_cond_t passed;
    uint32_t references; /* of the queue and of every callback to come */
    cl_int error;        /* the first one; CL_SUCCESS: none */
};

static tide__opencl_fate *fate_create(void) {
    tide__opencl_fate *fate = calloc(1, sizeof *fate);
    if (!fate) return NULL;
    pthread_mutex_init(&fate->lock, NULL);
    pthread_cond_init(&fate->passed, NULL);
    fate->references = 1;
    return fate;
}

static void fate_retain(tide__opencl_fate *fate) {
    pthread_mutex_lock(&fate->lock);
    fate->references++;
    pthread_mutex_unlock(&fate->lock);
}

static void fate_release(tide__opencl_fate *fate) {
    pthread_mutex_lock(&fate->lock);
    bool last = --fate->references == 0;
    pthread_cond_signal(&fate->passed);
    pthread_mutex_unlock(&fate->lock);
    if (!last) return;
    pthread_mutex_destroy(&fate->lock);
    pthread_cond_destroy(&fate->passed);
    free(fate);
}

static void fate_fail(tide__opencl_fate *fate, cl_int error) {
    pthread_mutex_lock(&fate->lock);
    if (fate->error == CL_SUCCESS) fate->error = error;
    pthread_mutex_unlock(&fate->lock);
}

/* After all commands have ended: a driver may still be calling back then. */
static cl_int fate_await(tide__opencl_fate *fate) {
    pthread_mutex_lock(&fate->lock);
    while (fate->references > 1) pthread_cond_wait(&fate->passed, &fate->lock);
    cl_int error = fate->error;
    pthread_mutex_unlock(&fate->lock);
    return error;
}

/* ---- waiting ---- */

static tide_status drain(tide__host_queue *base) {
    tide__opencl_queue *queue = (tide__opencl_queue *)base;
    tide__opencl *opencl = device_of(queue);
    tide__gpu_fault fault = {0};
    if (!queue->in_flight) return TIDE_OK;
    queue->in_flight = false;
    TIDE_TRY(tide__cl_check(opencl->cl.Finish(queue->cl), "finish a queue"));
    TIDE_TRY(tide__cl_check(fate_await(queue->fate), "complete a kernel"));
    TIDE_TRY(tide__cl_check(
        opencl->cl.EnqueueReadBuffer(queue->cl, queue->faults, CL_TRUE, 0, sizeof fault, &fault, 0, NULL, NULL),
        "read a queue's faults"));
    return tide__gpu_fault_status(&fault);
}

/* ---- events ---- */

/* From the enqueue of a marker until the driver has passed it. */
typedef struct landmark {
    tide__host_event *event;
    uint64_t record;
    tide__opencl_fate *fate;
} landmark;

static void landmark_free(landmark *l) {
    fate_release(l->fate);
    free(l);
}

static void CL_CALLBACK on_passed(cl_event marker, cl_int status, void *context) {
    landmark *l = context;
    if (status < 0) fate_fail(l->fate, status);
    tide__host_event_complete(l->event, l->record);
    landmark_free(l);
}

static cl_int enqueue_marker(tide__opencl_queue *queue, landmark *l) {
    const tide__cl *cl = &device_of(queue)->cl;
    cl_event marker = NULL;
    cl_int error = cl->EnqueueMarkerWithWaitList(queue->cl, 0, NULL, &marker);
    if (error != CL_SUCCESS) return error;
    error = cl->SetEventCallback(marker, CL_COMPLETE, on_passed, l);
    cl->ReleaseEvent(marker);
    return error;
}

/* Without a marker the event completes when all is done, which is later than need be but not wrong. */
static bool record(tide__host_queue *base, tide__host_event *event, uint64_t number) {
    tide__opencl_queue *queue = (tide__opencl_queue *)base;
    if (!queue->in_flight) return false;
    landmark *l = malloc(sizeof *l);
    if (l) {
        *l = (landmark){event, number, queue->fate};
        fate_retain(l->fate);
        if (enqueue_marker(queue, l) == CL_SUCCESS) {
            device_of(queue)->cl.Flush(queue->cl);
            return true;
        }
        landmark_free(l);
    }
    device_of(queue)->cl.Finish(queue->cl);
    return false;
}

/* ---- kernels, and copies inside the arena ---- */

static tide_status run_kernel(tide__host_queue *base, const tide__command *command) {
    tide__opencl_queue *queue = (tide__opencl_queue *)base;
    queue->in_flight = true;
    tide_status status = tide__gpu_run_kernel(base, command);
    device_of(queue)->cl.Flush(queue->cl);
    return status;
}

static tide_status run_within(tide__host_queue *base, const tide__command *command) {
    ((tide__opencl_queue *)base)->in_flight = true;
    return tide__gpu_run_within(base, command);
}

tide_status tide__opencl_event_sync(tide_event *event) {
    atomic_fetch_add(&((tide__gpu *)event->device)->host_waits, 1);
    return tide__host_event_sync(event);
}

/* ---- life ---- */

static const tide__queue_hooks compute_hooks = {
    .run_kernel = run_kernel, .run_within = run_within, .drain = drain, .record = record};
static const tide__queue_hooks copy_hooks = {0};
static const tide__queue_hooks staged_compute_hooks = {.run_kernel = run_kernel,
                                                       .run_copy = tide__gpu_run_copy,
                                                       .run_within = run_within,
                                                       .drain = drain,
                                                       .record = record};
static const tide__queue_hooks staged_copy_hooks = {.run_copy = tide__gpu_run_copy};

static const tide__queue_hooks *hooks_of(bool compute, bool staged) {
    if (compute) return staged ? &staged_compute_hooks : &compute_hooks;
    return staged ? &staged_copy_hooks : &copy_hooks;
}

static tide_status create_faults(tide__opencl *opencl, tide__opencl_queue *queue) {
    queue->fate = fate_create();
    if (!queue->fate) return tide__fail_memory();
    tide__gpu_fault none = {0};
    cl_int error = CL_SUCCESS;
    queue->faults =
        opencl->cl.CreateBuffer(opencl->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof none, &none, &error);
    return tide__cl_check(error, "create a buffer");
}

static void free_queue(tide__opencl *opencl, tide__opencl_queue *queue) {
    const tide__cl *cl = &opencl->cl;
    if (queue->cl) cl->Finish(queue->cl);
    if (queue->faults) cl->ReleaseMemObject(queue->faults);
    if (queue->cl) cl->ReleaseCommandQueue(queue->cl);
    if (queue->fate) fate_release(queue->fate);
    free(queue);
}

tide_status tide__opencl_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out) {
    tide__opencl *opencl = (tide__opencl *)device;
    const bool compute = kind == TIDE_QUEUE_COMPUTE, staged = !opencl->host_visible;
    cl_int error = CL_SUCCESS;
    tide_status status;
    tide__opencl_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return tide__fail_memory();
    if (compute || staged) {
        queue->cl = opencl->cl.CreateCommandQueue(opencl->context, opencl->id, 0, &error);
        TIDE_TRY_GOTO(tide__cl_check(error, "create a queue"), destroy);
    }
    if (compute) TIDE_TRY_GOTO(create_faults(opencl, queue), destroy);
    if (staged) TIDE_TRY_GOTO(tide__gpu_staging_open(&opencl->gpu), destroy);
    TIDE_TRY_GOTO(tide__host_queue_start(&queue->host, device, kind, hooks_of(compute, staged)), destroy);
    *out = &queue->host.base;
    return TIDE_OK;
destroy:
    free_queue(opencl, queue);
    return status;
}

void tide__opencl_queue_destroy(tide_queue *base) {
    tide__opencl_queue *queue = (tide__opencl_queue *)base;
    tide__host_queue_stop(&queue->host);
    free_queue((tide__opencl *)base->device, queue);
}

tide_status tide__opencl_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns) {
    const tide__opencl *opencl = (const tide__opencl *)queue->device;
    if (opencl->host_visible) return tide__host_launch(queue, fn, context, cost_ns);
    return tide__fail(TIDE_E_UNSUPPORTED, "%s runs no host functions: the host cannot see its memory",
                      opencl->gpu.name);
}
