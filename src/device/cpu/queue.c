/* Queues of the CPU device: a thread that takes commands from a tape, in order.
 *
 * Invariant: `completed` commands are done and off the tape; the thread holds no lock while it executes one. After a
 * failure the queue skips work but still waits for and completes events, so nobody who waits for it hangs. */
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/kernel.h"

#define COPY_STACK_BYTES ((size_t)1 << 20)

/* ---- the thread ---- */

/* All at once: a tier knows best how to cut it. */
static tide_status run_copy(const tide__command *command) {
    const tide_io *io = &command->copy.io;
    return command->copy.size_bytes ? io->fn(io->context, 0, command->copy.data, command->copy.size_bytes) : TIDE_OK;
}

static tide_status run_kernel(const tide__cpu_queue *queue, const tide__command *command) {
    const tide__cpu_kernel *kernel = command->kernel.kernel;
    tide__call call = {.arena = command->kernel.arena,
                       .variant = command->kernel.variant,
                       .offsets = command->offsets,
                       .args = &command->kernel.args,
                       .stream = queue->stream};
    return kernel->run(kernel, &call);
}

static tide_status run_work(const tide__cpu_queue *queue, const tide__command *command) {
    tide__fail(TIDE_OK, "%s", ""); /* a function that fails without a text must not inherit an old one */
    switch (command->kind) {
    case TIDE__COMMAND_LAUNCH: return command->launch.fn(command->launch.context);
    case TIDE__COMMAND_COPY: return run_copy(command);
    case TIDE__COMMAND_KERNEL: return run_kernel(queue, command);
    case TIDE__COMMAND_RECORD:
    case TIDE__COMMAND_WAIT: break;
    }
    return tide__fail(TIDE_E_INTERNAL, "queue command %d", (int)command->kind);
}

/* `failure` is written by this thread only, so it may read it without the lock. */
static void remember_failure(tide__cpu_queue *queue, tide_status status) {
    const char *text = tide_last_error();
    pthread_mutex_lock(&queue->lock);
    queue->failure = status;
    snprintf(queue->failure_text, sizeof queue->failure_text, "%s", text[0] ? text : tide_status_text(status));
    pthread_mutex_unlock(&queue->lock);
}

static void execute(tide__cpu_queue *queue, const tide__command *command) {
    if (command->kind == TIDE__COMMAND_RECORD) {
        tide__cpu_event_complete(command->event.event, command->event.record);
    } else if (command->kind == TIDE__COMMAND_WAIT) {
        tide__cpu_event_await(command->event.event, command->event.record);
    } else if (queue->failure == TIDE_OK) {
        tide_status status = run_work(queue, command);
        if (status != TIDE_OK) remember_failure(queue, status);
    }
}

static void *queue_main(void *context) {
    tide__cpu_queue *queue = context;
    const tide__command *command;
    bool compute = queue->base.kind == TIDE_QUEUE_COMPUTE;
    pthread_setname_np(pthread_self(), compute ? "tide-compute" : "tide-copy");
    omp_set_dynamic(0); /* oneDNN counts on getting every thread it was promised */
    omp_set_num_threads(compute ? (int)((tide__cpu *)queue->base.device)->threads : 1);
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        while (!(command = tide__tape_front(&queue->tape)) && !queue->stopping)
            pthread_cond_wait(&queue->work, &queue->lock);
        if (!command) break;
        pthread_mutex_unlock(&queue->lock);
        execute(queue, command);
        pthread_mutex_lock(&queue->lock);
        tide__tape_pop(&queue->tape);
        queue->completed++;
        if (queue->n_syncing) pthread_cond_broadcast(&queue->idle);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* ---- the host's side ---- */

/* The thread, and the OpenMP threads it will start, leave all signals to the host's threads. One that only copies needs
 * a small stack: stacks count where the data segment is limited. */
static int start_thread(tide__cpu_queue *queue) {
    sigset_t all, old;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (queue->base.kind == TIDE_QUEUE_COPY) pthread_attr_setstacksize(&attributes, COPY_STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = pthread_create(&queue->thread, &attributes, queue_main, queue);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

static tide_status start(tide__cpu_queue *queue) {
    const tide__cpu *cpu = (const tide__cpu *)queue->base.device;
    if (queue->base.kind == TIDE_QUEUE_COMPUTE)
        TIDE_TRY(
            tide__dnnl(dnnl_stream_create(&queue->stream, cpu->engine, dnnl_stream_default_flags), "create a stream"));
    int error = start_thread(queue);
    return error ? tide__fail_errno(TIDE_E_DEVICE, error, "cannot start the thread of a queue") : TIDE_OK;
}

static void free_queue(tide__cpu_queue *queue) {
    dnnl_stream_destroy(queue->stream);
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->work);
    pthread_cond_destroy(&queue->idle);
    tide__tape_deinit(&queue->tape);
    free(queue);
}

tide_status tide__cpu_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out) {
    tide_status status;
    tide__cpu_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return tide__fail_memory();
    queue->base = (tide_queue){.device = device, .kind = kind};
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->work, NULL);
    pthread_cond_init(&queue->idle, NULL);
    status = start(queue);
    if (status != TIDE_OK) {
        free_queue(queue);
        return status;
    }
    *out = &queue->base;
    return TIDE_OK;
}

void tide__cpu_queue_destroy(tide_queue *base) {
    tide__cpu_queue *queue = (tide__cpu_queue *)base;
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    pthread_cond_signal(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    free_queue(queue);
}

tide_status tide__cpu_queue_sync(tide_queue *base) {
    tide__cpu_queue *queue = (tide__cpu_queue *)base;
    pthread_mutex_lock(&queue->lock);
    uint64_t target = queue->enqueued;
    queue->n_syncing++;
    while (queue->completed < target) pthread_cond_wait(&queue->idle, &queue->lock);
    queue->n_syncing--;
    tide_status status = queue->failure;
    if (status != TIDE_OK) tide__fail(status, "%s", queue->failure_text);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

tide_status tide__cpu_enqueue(tide__cpu_queue *queue, const tide__command *command, const uint64_t *offsets,
                              uint32_t n_offsets) {
    void *record = NULL;
    size_t offsets_bytes = n_offsets * sizeof *offsets;
    pthread_mutex_lock(&queue->lock);
    tide_status status = tide__tape_push(&queue->tape, sizeof *command + offsets_bytes, &record);
    if (status == TIDE_OK) {
        memcpy(record, command, sizeof *command);
        if (n_offsets) memcpy(((tide__command *)record)->offsets, offsets, offsets_bytes);
        queue->enqueued++;
        pthread_cond_signal(&queue->work);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

tide_status tide__cpu_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns) {
    tide__command command = {.kind = TIDE__COMMAND_LAUNCH, .launch = {fn, context}};
    return tide__cpu_enqueue((tide__cpu_queue *)queue, &command, NULL, 0);
}

/* The two directions differ only in what io.fn does with the bytes. */
tide_status tide__cpu_copy(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io io,
                           bool out) {
    char *data = ((tide__host_arena *)arena)->bytes + offset;
    tide__command command = {.kind = TIDE__COMMAND_COPY, .copy = {io, data, size_bytes}};
    return tide__cpu_enqueue((tide__cpu_queue *)queue, &command, NULL, 0);
}
