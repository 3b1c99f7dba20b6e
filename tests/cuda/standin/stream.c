/* Streams: a thread each, which takes operations in order and runs one as soon as everything that must be complete before
 * it is (operation.before). The default stream (handle NULL or CU_STREAM_LEGACY) waits for all blocking streams of its
 * context and they for it; streams made with CU_STREAM_NON_BLOCKING know nothing of it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "standin.h"

#define STREAM_TAG UINT64_C(0x0051000000000000)

static struct {
    stream **data;
    uint32_t count;
} table;
static stream *by_index[MAX_STREAMS]; /* whose thread runs */

/* ---- running an operation: without the lock ---- */

static void sleep_ns(uint64_t t_ns) {
    struct timespec t = {.tv_sec = (time_t)(t_ns / 1000000000), .tv_nsec = (long)(t_ns % 1000000000)};
    nanosleep(&t, NULL);
}

static uint64_t hash_bytes(const unsigned char *bytes, uint64_t size) {
    uint64_t h = 0x9e3779b97f4a7c15, word;
    for (; size >= 8; size -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        h = (h ^ word) * 0xff51afd7ed558ccd;
        h ^= h >> 32;
    }
    for (; size; size--) h = (h ^ *bytes++) * 0xff51afd7ed558ccd;
    return h ? h : 1;
}

static CUresult run_copy(const operation *o) {
    if (!clocks_touch(o, o->from.range, o->from.at, o->size, false)) return CUDA_ERROR_LAUNCH_FAILED;
    if (!clocks_touch(o, o->to.range, o->to.at, o->size, true)) return CUDA_ERROR_LAUNCH_FAILED;
    if (o->source_hash && hash_bytes(o->from.bytes, o->size) != o->source_hash)
        return misuse(MISUSE_SOURCE_CHANGED, CUDA_ERROR_LAUNCH_FAILED,
                      "the host wrote to %p, or freed it, before operation %u of stream %u had copied it",
                      (void *)o->from.bytes, o->clock, o->stream->index);
    memmove(o->to.bytes, o->from.bytes, o->size);
    return CUDA_SUCCESS;
}

/* The pattern once, then what is there again behind it: a call per pattern would take a sanitizer's tests minutes. */
static void fill(unsigned char *to, const void *pattern, uint64_t unit, uint64_t size) {
    if (size) memcpy(to, pattern, unit);
    for (uint64_t done = unit; done < size; done *= 2) memcpy(to + done, to, size - done < done ? size - done : done);
}

static CUresult run_set(const operation *o) {
    if (!clocks_touch(o, o->to.range, o->to.at, o->size, true)) return CUDA_ERROR_LAUNCH_FAILED;
    fill(o->to.bytes, &o->value, o->unit, o->size);
    return CUDA_SUCCESS;
}

_Thread_local bool standin_in_host_function;

static CUresult run_operation(const operation *o) {
    report_set_place(o->name);
    switch (o->kind) {
    case OP_KERNEL: return launch_run(o);
    case OP_COPY: return run_copy(o);
    case OP_SET: return run_set(o);
    case OP_HOST:
        standin_in_host_function = true;
        o->host(o->data);
        standin_in_host_function = false;
        return CUDA_SUCCESS;
    default: return CUDA_SUCCESS;
    }
}

/* ---- the thread of a stream ---- */

static bool can_run(const stream *s) {
    if (!s->first) return false;
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        if (i != s->index && the_standin.completed[i] < s->first->before.at[i]) return false;
    return true;
}

static void complete(stream *s, operation *o, CUresult result) {
    context *c = s->owner.context;
    if (result != CUDA_SUCCESS && c->error == CUDA_SUCCESS) c->error = result;
    if (o->kind == OP_RECORD && o->record > o->event->completed) {
        o->event->completed = o->record;
        o->event->t_ns = report_now_ns();
    }
    if (o->kind == OP_HOST) the_standin.n_hosts_pending--;
    the_standin.completed[s->index] = o->clock;
    s->running = NULL;
    free(o->launch.parameters);
    free(o);
    pthread_cond_broadcast(&the_standin.changed);
}

/* How long it takes at least, so that a timeline is the same on a busy machine. */
static uint64_t least_ns(const operation *o) {
    const settings *s = &the_standin.settings;
    if (o->kind == OP_KERNEL) return (uint64_t)s->kernel_us * 1000;
    return o->kind == OP_COPY && s->copy_mibps ? o->size * 1000 / s->copy_mibps * 1000000 / (1 << 20) : 0;
}

static CUresult run_timed(const operation *o) {
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    const bool in_turn = the_standin.settings.in_turn;
    if (in_turn) pthread_mutex_lock(&turn);
    const uint64_t begin_ns = report_now_ns();
    const CUresult result = run_operation(o);
    const uint64_t took_ns = report_now_ns() - begin_ns, least = least_ns(o);
    if (took_ns < least) sleep_ns(least - took_ns);
    report_time(o, begin_ns, report_now_ns());
    if (in_turn) pthread_mutex_unlock(&turn);
    return result;
}

static void run_first(stream *s, uint64_t *random) {
    operation *o = s->first;
    const bool skipped = s->owner.context->error != CUDA_SUCCESS && o->kind != OP_RECORD;
    const uint32_t delay_us = the_standin.settings.delay_us;
    s->first = o->next;
    if (!s->first) s->last = NULL;
    s->running = o;
    pthread_mutex_unlock(&the_standin.lock);
    if (delay_us) sleep_ns(random_next(random) % delay_us * 1000);
    const CUresult result = skipped ? CUDA_SUCCESS : run_timed(o);
    pthread_mutex_lock(&the_standin.lock);
    complete(s, o, result);
}

static void *stream_main(void *argument) {
    stream *s = argument;
    uint64_t random = the_standin.settings.seed + s->index;
    pthread_mutex_lock(&the_standin.lock);
    for (;;) {
        if (can_run(s))
            run_first(s, &random);
        else if (s->stop && !s->first)
            break;
        else
            pthread_cond_wait(&the_standin.changed, &the_standin.lock);
    }
    pthread_mutex_unlock(&the_standin.lock);
    return NULL;
}

/* ---- making and ending streams ---- */

/* Waits for the thread; the lock is given up meanwhile. */
static void join_thread(stream *s) {
    by_index[s->index] = NULL;
    pthread_mutex_unlock(&the_standin.lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_lock(&the_standin.lock);
}

/* A free index, if need be that of a destroyed stream with nothing left to do. Its clock goes on. */
static uint32_t find_index(void) {
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        if (!by_index[i]) return i;
    for (uint32_t i = 0; i < MAX_STREAMS; i++) {
        stream *s = by_index[i];
        if (!s->destroyed || s->first || s->running) continue;
        join_thread(s);
        return i;
    }
    return MAX_STREAMS;
}

CUresult stream_create(context *c, uint32_t flags, stream **out) {
    if (flags & ~(uint32_t)CU_STREAM_NON_BLOCKING)
        return misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "unknown flags %#x of a stream", flags);
    const uint32_t index = find_index();
    if (index == MAX_STREAMS) return CUDA_ERROR_OUT_OF_MEMORY;
    stream *s = calloc(1, sizeof *s);
    if (!s) abort();
    table.data = array_grow(table.data, table.count, sizeof *table.data);
    *s = (stream){.handle = table.count, .index = index, .owner = {c, c->generation}};
    s->blocking = !(flags & CU_STREAM_NON_BLOCKING);
    s->issued = the_standin.completed[index];
    table.data[table.count++] = s;
    by_index[index] = s;
    if (pthread_create(&s->thread, NULL, stream_main, s) != 0) abort();
    *out = s;
    return CUDA_SUCCESS;
}

/* Returns at once: what is on it still runs. */
CUresult stream_destroy(stream *s) {
    s->destroyed = s->stop = true;
    pthread_cond_broadcast(&the_standin.changed);
    return CUDA_SUCCESS;
}

CUstream stream_handle(const stream *s) { return (CUstream)(uintptr_t)(STREAM_TAG | (uint64_t)s->handle << 4); }

static CUresult default_stream(context *c, stream **out) {
    if (!c->default_stream) {
        CUresult result = stream_create(c, CU_STREAM_DEFAULT, &c->default_stream);
        if (result != CUDA_SUCCESS) return result;
    }
    *out = c->default_stream;
    return CUDA_SUCCESS;
}

CUresult stream_of(context *c, CUstream handle, stream **out) {
    const uint64_t bits = (uint64_t)(uintptr_t)handle, number = (bits & ~STREAM_TAG) >> 4;
    if (handle == NULL || handle == CU_STREAM_LEGACY) return default_stream(c, out);
    if (handle == CU_STREAM_PER_THREAD) return CUDA_ERROR_NOT_SUPPORTED;
    if ((bits & STREAM_TAG) != STREAM_TAG || number >= table.count || stream_handle(table.data[number]) != handle)
        return misuse(MISUSE_BAD_HANDLE, CUDA_ERROR_INVALID_HANDLE, "%p is no stream", (void *)handle);
    stream *s = table.data[number];
    if (s->destroyed) return misuse(MISUSE_DESTROYED, CUDA_ERROR_INVALID_HANDLE, "the stream was destroyed");
    if (!owner_is(s->owner, c))
        return misuse(MISUSE_WRONG_CONTEXT, CUDA_ERROR_INVALID_HANDLE, "a stream of another context");
    *out = s;
    return CUDA_SUCCESS;
}

/* ---- issuing ---- */

/* The rules of the default stream. */
static void join_default(const stream *s, clocks *before) {
    const context *c = s->owner.context;
    if (s == c->default_stream) {
        for (uint32_t i = 0; i < MAX_STREAMS; i++)
            if (by_index[i] && by_index[i]->blocking && owner_is(by_index[i]->owner, c))
                clocks_join(before, &by_index[i]->known);
    } else if (s->blocking && c->default_stream) {
        clocks_join(before, &c->default_stream->known);
    }
}

/* From now on the place is in use; the host's own writes to it can be told from nobody else's where nobody else writes. */
static void mark_places(operation *o) {
    const bool from_host = o->kind == OP_COPY && o->from.range && o->from.range->pinned;
    bool alone = from_host && the_standin.n_hosts_pending == 0 && the_standin.settings.checks;
    for (uint32_t i = 0; alone && i < MAX_STREAMS; i++)
        alone = o->from.range->written.at[i] <= the_standin.completed[i];
    if (alone) o->source_hash = hash_bytes(o->from.bytes, o->size);
    if (o->from.range) o->from.range->used.at[o->stream->index] = o->clock;
    if (o->to.range) o->to.range->used.at[o->stream->index] = o->to.range->written.at[o->stream->index] = o->clock;
    if (o->function) o->function->module->used.at[o->stream->index] = o->clock;
}

CUresult stream_issue(stream *s, operation given) {
    operation *o = malloc(sizeof *o);
    if (!o) abort();
    *o = given;
    o->stream = s;
    o->next = NULL;
    o->clock = ++s->issued;
    clocks_join(&o->before, &s->known);
    clocks_join(&o->before, &the_standin.host);
    join_default(s, &o->before);
    o->before.at[s->index] = o->clock;
    s->known = o->before;
    mark_places(o);
    if (o->kind == OP_HOST) the_standin.n_hosts_pending++;
    if (s->last)
        s->last->next = o;
    else
        s->first = o;
    s->last = o;
    pthread_cond_broadcast(&the_standin.changed);
    return CUDA_SUCCESS;
}

/* ---- waiting ---- */

bool stream_is_done(stream *s) {
    if (the_standin.completed[s->index] < s->issued) return false;
    clocks_join(&the_standin.host, &s->known);
    return true;
}

void stream_wait(stream *s) {
    const uint32_t until = s->issued;
    const clocks known = s->known;
    while (the_standin.completed[s->index] < until) pthread_cond_wait(&the_standin.changed, &the_standin.lock);
    clocks_join(&the_standin.host, &known);
}

void stream_wait_context(const context *c) {
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        if (by_index[i] && by_index[i]->owner.context == c) stream_wait(by_index[i]);
}

bool stream_wait_all(uint32_t seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        while (by_index[i] && !stream_is_done(by_index[i]))
            if (pthread_cond_timedwait(&the_standin.changed, &the_standin.lock, &until) != 0) return false;
    return true;
}

/* ---- the end ---- */

void stream_release_context(const context *c) {
    for (uint32_t i = 0; i < MAX_STREAMS; i++) {
        stream *s = by_index[i];
        if (!s || !owner_is(s->owner, c)) continue;
        stream_destroy(s);
        join_thread(s);
    }
}

void stream_report_leaks(const context *c) {
    for (uint32_t i = 0; i < table.count; i++) {
        const stream *s = table.data[i];
        if (!s->destroyed && s != s->owner.context->default_stream && owner_is_or_any(s->owner, c))
            misuse(MISUSE_LEAK, CUDA_SUCCESS, "a stream");
    }
}

void stream_reset(void) {
    for (uint32_t i = 0; i < MAX_STREAMS; i++) {
        if (!by_index[i]) continue;
        stream_destroy(by_index[i]);
        join_thread(by_index[i]);
    }
    for (uint32_t i = 0; i < table.count; i++) free(table.data[i]);
    free(table.data);
    table.data = NULL, table.count = 0;
}
