/* See host_queue.h.
 *
 * Invariant: `completed` commands are done and off the tape; the thread holds no lock while it executes one. After a
 * failure the queue skips work but still waits for and completes events, so nobody who waits for it hangs. */
#include "device/host_queue.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_STACK_BYTES ((size_t)1 << 20)

/* ---- the thread ---- */

static tide_status run_copy(tide__host_queue *queue, const tide__command *command) {
    const tide_io *io = &command->copy.io;
    if (!command->copy.size_bytes) return TIDE_OK;
    if (queue->hooks->run_copy) return queue->hooks->run_copy(queue, command);
    char *data = (char *)tide_arena_host(command->copy.arena) + command->copy.offset;
    return io->fn(io->context, 0, data, command->copy.size_bytes);
}

static tide_status run_within(const tide__command *command) {
    char *host = tide_arena_host(command->within.arena);
    memmove(host + command->within.to, host + command->within.from, command->within.size_bytes);
    return TIDE_OK;
}

static tide_status drain(tide__host_queue *queue) { return queue->hooks->drain ? queue->hooks->drain(queue) : TIDE_OK; }

static tide_status run_work(tide__host_queue *queue, const tide__command *command) {
    tide__fail(TIDE_OK, "%s", ""); /* a function that fails without a text must not inherit an old one */
    if (command->kind == TIDE__COMMAND_KERNEL) return queue->hooks->run_kernel(queue, command);
    if (command->kind == TIDE__COMMAND_WITHIN && queue->hooks->run_within)
        return queue->hooks->run_within(queue, command);
    TIDE_TRY(drain(queue));
    if (command->kind == TIDE__COMMAND_WITHIN) return run_within(command);
    if (command->kind == TIDE__COMMAND_LAUNCH) return command->launch.fn(command->launch.context);
    return command->kind == TIDE__COMMAND_COPY ? run_copy(queue, command) : TIDE_OK;
}

/* `failure` is written by this thread only, so it may read it without the lock. */
static void remember_failure(tide__host_queue *queue, tide_status status) {
    const char *text = tide_last_error();
    pthread_mutex_lock(&queue->lock);
    queue->failure = status;
    snprintf(queue->failure_text, sizeof queue->failure_text, "%s", text[0] ? text : tide_status_text(status));
    pthread_mutex_unlock(&queue->lock);
}

static void execute(tide__host_queue *queue, const tide__command *command) {
    if (command->kind == TIDE__COMMAND_RECORD) {
        bool later = queue->hooks->record && queue->hooks->record(queue, command->event.event, command->event.record);
        if (!later) tide__host_event_complete(command->event.event, command->event.record);
    } else if (command->kind == TIDE__COMMAND_WAIT) {
        tide__host_event_await(command->event.event, command->event.record);
    } else if (command->kind == TIDE__COMMAND_MARK) {
        queue->hooks->mark(queue, command);
    } else if (queue->failure == TIDE_OK) {
        tide_status status = run_work(queue, command);
        if (status != TIDE_OK) remember_failure(queue, status);
    } else if (command->kind == TIDE__COMMAND_DRAIN) {
        drain(queue);
    }
}

static void *queue_main(void *context) {
    tide__host_queue *queue = context;
    const tide__command *command;
    bool compute = queue->base.kind == TIDE_QUEUE_COMPUTE;
    pthread_setname_np(pthread_self(), compute ? "tide-compute" : "tide-copy");
    if (queue->hooks->begin) queue->hooks->begin(queue);
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
    drain(queue);
    return NULL;
}

/* ---- the host's side ---- */

/* The thread, and the OpenMP threads it will start, leave all signals to the host's threads. One that only copies needs
 * a small stack: stacks count where the data segment is limited. */
static int start_thread(tide__host_queue *queue) {
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

static void release(tide__host_queue *queue) {
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->work);
    pthread_cond_destroy(&queue->idle);
    tide__tape_deinit(&queue->tape);
}

tide_status tide__host_queue_start(tide__host_queue *queue, tide_device *device, tide_queue_kind kind,
                                   const tide__queue_hooks *hooks) {
    queue->base = (tide_queue){.device = device, .kind = kind};
    queue->hooks = hooks;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->work, NULL);
    pthread_cond_init(&queue->idle, NULL);
    int error = start_thread(queue);
    if (!error) return TIDE_OK;
    release(queue);
    return tide__fail_errno(TIDE_E_DEVICE, error, "cannot start the thread of a queue");
}

void tide__host_queue_stop(tide__host_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    pthread_cond_signal(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    release(queue);
}

tide_status tide__host_queue_sync(tide_queue *base) {
    tide__host_queue *queue = (tide__host_queue *)base;
    if (queue->hooks->drain)
        TIDE_TRY(tide__host_enqueue(queue, &(tide__command){.kind = TIDE__COMMAND_DRAIN}, NULL, 0));
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

tide_status tide__host_queue_check(tide_queue *base) {
    tide__host_queue *queue = (tide__host_queue *)base;
    pthread_mutex_lock(&queue->lock);
    tide_status status = queue->failure;
    if (status != TIDE_OK) tide__fail(status, "%s", queue->failure_text);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

tide_status tide__host_enqueue(tide__host_queue *queue, const tide__command *command, const uint64_t *offsets,
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

tide_status tide__host_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns) {
    tide__command command = {.kind = TIDE__COMMAND_LAUNCH, .launch = {fn, context}};
    return tide__host_enqueue((tide__host_queue *)queue, &command, NULL, 0);
}

tide_status tide__host_copy(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io io,
                            bool out) {
    tide__command command = {.kind = TIDE__COMMAND_COPY, .copy = {io, arena, offset, size_bytes, out}};
    return tide__host_enqueue((tide__host_queue *)queue, &command, NULL, 0);
}

tide_status tide__host_copy_within(tide_queue *queue, tide_arena *arena, uint64_t from, uint64_t to,
                                   uint64_t size_bytes) {
    tide__command command = {.kind = TIDE__COMMAND_WITHIN, .within = {arena, from, to, size_bytes}};
    return tide__host_enqueue((tide__host_queue *)queue, &command, NULL, 0);
}

tide_status tide__host_kernel_enqueue(tide_kernel *kernel, uint32_t variant, tide_queue *queue, tide_arena *arena,
                                      const uint64_t *offsets, uint32_t n_offsets, const tide_step_args *args) {
    tide__command command = {.kind = TIDE__COMMAND_KERNEL, .kernel = {kernel, variant, arena, *args}};
    return tide__host_enqueue((tide__host_queue *)queue, &command, offsets, n_offsets);
}
