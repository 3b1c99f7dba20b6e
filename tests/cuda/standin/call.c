/* What every call begins and ends with: the lock, the count, failures on request, and the rules that hold for all:
 * cuInit first, a context where one is needed, nothing from host functions, no new work after an error that stays.
 *
 * TIDE_STANDIN_FAIL lists failures, "name:n:error" with commas between: the n-th call of a function (from 1; "*" for any
 * function) fails with that number and does nothing else. "n+" fails from the n-th on. Errors of kernels stay. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "context.h"

standin the_standin = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

typedef struct counted {
    const char *name; /* of a function: a constant */
    uint64_t calls;
} counted;
static counted counts[96];
static uint64_t all_calls;

static uint64_t count_call(const char *name) {
    all_calls++;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (!counts[i].name) counts[i].name = name;
        if (strcmp(counts[i].name, name) == 0) return ++counts[i].calls;
    }
    return 0;
}

STANDIN_EXPORT uint64_t standin_calls(const char *name) {
    uint64_t n = 0;
    pthread_mutex_lock(&the_standin.lock);
    if (!name) n = all_calls;
    for (size_t i = 0; name && i < sizeof counts / sizeof counts[0] && counts[i].name; i++)
        if (strcmp(counts[i].name, name) == 0) n = counts[i].calls;
    pthread_mutex_unlock(&the_standin.lock);
    return n;
}

void call_write_counts(FILE *file) {
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && counts[i].name; i++)
        fprintf(file, "%s\n\"%s\": %llu", i ? "," : "", counts[i].name, (unsigned long long)counts[i].calls);
}

void call_reset(void) {
    memset(counts, 0, sizeof counts);
    all_calls = 0;
}

/* ---- failures on request ---- */

static bool stays(CUresult error) {
    return error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_FAILED ||
           error == CUDA_ERROR_LAUNCH_TIMEOUT || error == CUDA_ERROR_MISALIGNED_ADDRESS ||
           error == CUDA_ERROR_ECC_UNCORRECTABLE;
}

/* One entry of the list, for the n-th call of this function. */
static CUresult failure_in(const char *entry, const char *name, uint64_t n) {
    const char *colon = strchr(entry, ':');
    char *end = NULL;
    if (!colon) return CUDA_SUCCESS;
    const bool any = entry[0] == '*',
               named = strncmp(entry, name, (size_t)(colon - entry)) == 0 && name[colon - entry] == 0;
    if (!any && !named) return CUDA_SUCCESS;
    const uint64_t at = strtoull(colon + 1, &end, 10), count = any ? all_calls : n;
    const bool onwards = *end == '+';
    if (onwards) end++;
    if (*end != ':' || (onwards ? count < at : count != at)) return CUDA_SUCCESS;
    return (CUresult)strtoul(end + 1, NULL, 10);
}

static CUresult wanted_failure(const char *name, uint64_t n) {
    for (const char *entry = the_standin.settings.fail; entry;
         entry = strchr(entry, ',') ? strchr(entry, ',') + 1 : NULL) {
        const CUresult error = failure_in(entry, name, n);
        if (error != CUDA_SUCCESS) return error;
    }
    return CUDA_SUCCESS;
}

/* ---- calls ---- */

bool call_is_child(void) { return the_standin.initialised && the_standin.process != getpid(); }

static CUresult check_rules(call *c) {
    if (standin_in_host_function)
        return misuse(MISUSE_IN_CALLBACK, CUDA_ERROR_NOT_PERMITTED, "called from a host function");
    if (c->needs && call_is_child()) return CUDA_ERROR_NOT_INITIALIZED;
    if ((c->needs & (NEEDS_INIT | NEEDS_CONTEXT)) && !the_standin.initialised)
        return misuse(MISUSE_NOT_INITIALISED, CUDA_ERROR_NOT_INITIALIZED, "before cuInit");
    if (!(c->needs & NEEDS_CONTEXT)) return CUDA_SUCCESS;
    bool gone = false;
    c->context = context_current(&gone);
    if (gone)
        return misuse(MISUSE_RELEASED_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context was released");
    if (!c->context) return misuse(MISUSE_NO_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, "no context is current");
    if (c->context->error == CUDA_SUCCESS || (c->needs & CLEANS_UP)) return CUDA_SUCCESS;
    if ((c->needs & NEW_WORK) && c->context->error_told)
        misuse(MISUSE_AFTER_ERROR, CUDA_SUCCESS, "new work though error %d was returned before",
               (int)c->context->error);
    return c->context->error;
}

call call_begin(const char *name, uint32_t needs) {
    call c = {.name = name, .needs = needs};
    report_set_place(name);
    pthread_mutex_lock(&the_standin.lock);
    const uint64_t n = count_call(name);
    c.result = check_rules(&c);
    if (c.result != CUDA_SUCCESS) return c;
    c.result = wanted_failure(name, n);
    if (c.context && stays(c.result)) c.context->error = c.result;
    return c;
}

bool call_has(call *c, const void *pointer) {
    if (c->result == CUDA_SUCCESS && !pointer)
        c->result = misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "a NULL pointer");
    return c->result == CUDA_SUCCESS;
}

CUresult call_end(call *c) {
    context *x = c->context;
    if (x && x->error != CUDA_SUCCESS) {
        x->error_told = true;
        if (c->result == CUDA_SUCCESS || c->result == CUDA_ERROR_NOT_READY) c->result = x->error;
    }
    pthread_mutex_unlock(&the_standin.lock);
    return c->result;
}

/* ---- beginning and end ---- */

/* A host function that waits for what never comes must not keep the process from ending. */
enum { MOST_SECONDS = 20 };

static void finish(void) {
    report_set_place("the end");
    if (!stream_wait_all(MOST_SECONDS)) misuse(MISUSE_LEAK, CUDA_SUCCESS, "work that does not end");
    context_report_leaks();
    report_write_files();
}

static bool finished;

STANDIN_EXPORT void standin_finish(void) {
    pthread_mutex_lock(&the_standin.lock);
    if (!finished && !call_is_child()) finish();
    finished = true;
    pthread_mutex_unlock(&the_standin.lock);
}

STANDIN_EXPORT void standin_reset(void) {
    pthread_mutex_lock(&the_standin.lock);
    stream_wait_all(MOST_SECONDS);
    stream_reset();
    event_reset();
    module_reset();
    memory_reset();
    context_reset_all();
    report_reset();
    call_reset();
    memset(the_standin.completed, 0, sizeof the_standin.completed);
    memset(&the_standin.host, 0, sizeof the_standin.host);
    the_standin.initialised = false;
    finished = false;
    pthread_mutex_unlock(&the_standin.lock);
}

__attribute__((constructor)) static void on_load(void) { report_reset(); }
__attribute__((destructor)) static void on_unload(void) {
    standin_finish();
    pthread_mutex_lock(&the_standin.lock);
    if (!call_is_child() && stream_wait_all(0)) stream_reset();
    pthread_mutex_unlock(&the_standin.lock);
}
