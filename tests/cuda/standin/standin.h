/* The stand-in for libcuda: what its files share.
 *
 *     api_*.c   CUDA's functions: each begins a call (call.c), does one thing, ends it
 *     memory.c  device memory and pinned memory: ranges of bytes with a shadow
 *     stream.c  streams as threads, events, the order of the default stream
 *     clocks.c  what happens before what
 *     cells.c   races between operations
 *     module.c  PTX → C → a shared object, kept on disk by content
 *     launch.c  a grid on lanes, with checks
 *     report.c  misuse, leaks, the timeline, settings
 *
 * One lock (the_standin.lock) covers everything but the running of operations: a thread of a stream takes an operation
 * under it, runs it without it, and completes it under it. Functions here expect the lock to be held unless they say
 * otherwise. Handles are numbers in tables that are never reused, so a handle of something destroyed is recognised. */
#ifndef TIDE_TESTS_CUDA_STANDIN_H
#define TIDE_TESTS_CUDA_STANDIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "driver.h"
#include "lane.h"
#include "ptx.h"
#include "standin_api.h"

#define STANDIN_EXPORT __attribute__((visibility("default")))
#define STANDIN_DECLARE(name, parameters) STANDIN_EXPORT CUresult CUDAAPI name parameters;
STANDIN_FUNCTIONS(STANDIN_DECLARE)
#undef STANDIN_DECLARE

enum { MAX_DEVICES = 8, MAX_STREAMS = 64 };

/* ---- settings, from the environment ---- */

typedef struct settings {
    uint32_t n_devices, version, capability; /* TIDE_STANDIN_DEVICES, _VERSION (13000), _CAPABILITY (120) */
    uint64_t memory_bytes;                   /* TIDE_STANDIN_MEMORY: per device */
    uint64_t seed;                           /* TIDE_STANDIN_SEED: orders of lanes, delays */
    uint32_t delay_us;                       /* TIDE_STANDIN_DELAY_US: at most so long before an operation */
    uint32_t copy_mibps;                     /* TIDE_STANDIN_COPY_MIBPS: 0: as fast as it goes */
    uint32_t kernel_us;                      /* TIDE_STANDIN_KERNEL_US: at least so long takes a kernel */
    bool in_turn;                  /* TIDE_STANDIN_IN_TURN: one operation at a time, as if all went to one stream */
    bool checks;                   /* TIDE_STANDIN_CHECKS=0: no shadows, for long trainings */
    const char *report, *timeline; /* TIDE_STANDIN_REPORT, _TIMELINE: files, written at the end */
    const char *fail;              /* TIDE_STANDIN_FAIL: "cuMemAlloc_v2:3:2,*:100:700", see call.c */
    const char *cache;             /* TIDE_STANDIN_CACHE: folder of compiled kernels */
} settings;

/* ---- contexts ---- */

typedef struct context {
    uint32_t device, retained, flags;
    bool active;
    uint32_t generation; /* counts resets: objects of an earlier one are gone */
    CUresult error;      /* stays */
    bool error_told;
    uint64_t used_bytes;
    struct stream *default_stream; /* NULL: nobody has used it */
} context;

/* Who owns an object. */
typedef struct owner {
    context *context;
    uint32_t generation;
} owner;

/* ---- clocks: see clocks.c ---- */

typedef struct clocks {
    uint32_t at[MAX_STREAMS];
} clocks;

void clocks_join(clocks *to, const clocks *from);
#define EPOCH_CLOCK_BITS 26
/* A number for (stream, clock), never 0. */
uint32_t clocks_epoch(uint32_t index, uint32_t clock);

/* ---- memory ---- */

typedef struct range {
    uint64_t base, size; /* as the device sees it; pinned memory: the address itself */
    unsigned char *bytes;
    lane_cell *cells; /* one per 4 bytes; NULL: no checks */
    owner owner;
    bool pinned, registered, freed;
    uint32_t flags;
    clocks used, written; /* by copies and sets so far */
} range;

CUresult memory_alloc(context *c, uint64_t size, range **out);
CUresult memory_free(uint64_t at);
CUresult memory_pin(context *c, void *at, uint64_t size, uint32_t flags, void **out); /* at NULL: allocates */
CUresult memory_unpin(void *at, bool registered);
/* The range of an address, freed ones included; NULL: none. */
range *memory_find(uint64_t at);
range *memory_find_pinned(uint64_t at);
void memory_release_context(const context *c);
void memory_report_leaks(const context *c); /* of a context; NULL: of all */
void memory_reset(void);
/* The bytes of a call's operand: device memory of this context, inside one allocation. */
CUresult memory_device_operand(context *c, uint64_t at, uint64_t size, range **out);

/* ---- operations on streams ---- */

typedef struct stream stream;
typedef struct event event;
typedef struct function function;

typedef enum operation_kind { OP_KERNEL, OP_COPY, OP_SET, OP_HOST, OP_RECORD, OP_NOTHING } operation_kind;

/* One side of a copy; range NULL: pageable memory. */
typedef struct place {
    range *range;
    uint64_t at;
    unsigned char *bytes;
} place;

typedef struct launch {
    uint32_t grid[3], block[3], dynamic_bytes;
    unsigned char *parameters; /* freed when it is done */
} launch;

typedef struct operation {
    struct operation *next;
    operation_kind kind;
    const char *name; /* for the timeline and reports */
    stream *stream;
    uint32_t clock;
    clocks before; /* must be complete; its own stream's entry is its own clock */
    place to, from;
    uint64_t size;
    uint32_t value, unit; /* of a set: pattern and its bytes */
    uint64_t source_hash; /* of a copy from the host, where nobody else may write to it; 0: unknown */
    CUhostFn host;
    void *data;
    event *event;
    uint64_t record;
    function *function;
    launch launch;
} operation;

struct stream {
    uint32_t handle, index; /* index: in clocks */
    owner owner;
    bool blocking, destroyed, stop;
    pthread_t thread;
    operation *first, *last, *running;
    uint32_t issued;
    clocks known; /* of the operation issued last */
};

struct event {
    uint32_t handle;
    owner owner;
    uint32_t flags;
    bool destroyed;
    uint64_t records, completed; /* how often it was recorded, and how far that has come */
    uint32_t stream, clock;      /* of the last record */
    clocks known;
    uint64_t t_ns;
};

CUresult stream_create(context *c, uint32_t flags, stream **out);
CUresult stream_destroy(stream *s);
/* Checks the handle; NULL is the default stream of the context. */
CUresult stream_of(context *c, CUstream handle, stream **out);
CUstream stream_handle(const stream *s);
/* Hands an operation to its stream; takes what it points to. */
CUresult stream_issue(stream *s, operation o);
void stream_wait(stream *s);
/* True once all operations so far are complete: the host knows it then. */
bool stream_is_done(stream *s);
void stream_wait_context(const context *c);
/* False: some still run after this time. */
bool stream_wait_all(uint32_t seconds);
void stream_release_context(const context *c);
void stream_report_leaks(const context *c);
void stream_reset(void);

CUresult event_create(context *c, uint32_t flags, CUevent *out);
CUresult event_of(context *c, CUevent handle, event **out);
CUresult event_record(event *e, stream *s);
CUresult event_wait_for(event *e, stream *s);
bool event_is_done(event *e);
void event_wait(event *e);
CUresult event_elapsed(const event *begin, const event *end, float *milliseconds);
void event_release_context(const context *c);
void event_report_leaks(const context *c);
void event_reset(void);

extern _Thread_local bool standin_in_host_function;

/* ---- races between operations, see cells.c; without the lock ---- */

/* An operation touches bytes [at, at + size) of a range. False: a race, which is reported. */
bool clocks_touch(const operation *o, range *r, uint64_t at, uint64_t size, bool write);
/* The same for four bytes, by a lane. */
bool clocks_touch_cell(const operation *o, lane_cell *cell, bool write, uint32_t *other_out);
const char *clocks_describe(uint32_t epoch, char text[64]);

/* ---- modules and kernels ---- */

typedef struct module {
    uint32_t handle;
    owner owner;
    bool unloaded;
    ptx_module ptx;
    uint64_t globals[16];
    clocks used;
} module;

struct function {
    uint32_t handle;
    module *module;
    const ptx_kernel *kernel;
    int (*run)(lane *l); /* NULL: not compiled yet */
    void *object;
    char *c_text;
    uint32_t slots, max_dynamic_bytes;
};

CUresult module_load(context *c, const void *image, module **out);
CUresult module_unload(module *m);
CUresult module_of(context *c, const void *handle, module **out);
void *module_handle(const module *m);
CUresult function_get(module *m, const char *name, function **out);
CUresult function_of(context *c, const void *handle, function **out);
void *function_handle(const function *f);
void module_release_context(const context *c);
void module_report_leaks(const context *c);
void module_reset(void);
/* Compiles where nobody has; without the lock. False: the compiler failed, `error` says how. */
bool module_compile(function *f, char *error, size_t size);

/* ---- launches ---- */

CUresult launch_check(function *f, const launch *l);
/* Runs it on the calling thread, without the lock; what is wrong is reported. */
CUresult launch_run(const operation *o);

/* ---- calls and reports ---- */

enum { NEEDS_CONTEXT = 1, NEEDS_INIT = 2, NEW_WORK = 4, CLEANS_UP = 8 };

typedef struct call {
    const char *name;
    context *context;
    CUresult result;
    uint32_t needs;
} call;

/* Takes the lock; call_end() gives it back and returns the result. */
call call_begin(const char *name, uint32_t needs);
CUresult call_end(call *c);
/* A child of the process that called cuInit. */
bool call_is_child(void);
/* Refuses the call where a pointer is NULL; true while nothing is wrong with it. */
bool call_has(call *c, const void *pointer);
/* Reports and returns the error the call fails with. Safe with and without the lock. */
CUresult misuse(standin_misuse kind, CUresult error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The name of the call or operation this thread is at. */
void report_set_place(const char *name);
void report_reset(void);
void report_write_files(void);
void report_time(const operation *o, uint64_t begin_ns, uint64_t end_ns);
uint64_t report_now_ns(void);
void call_reset(void);
/* How often each function was called, as members of a JSON object. */
void call_write_counts(FILE *file);
bool owner_is(owner o, const context *c);
/* True as well if c is NULL and the owner is there. */
bool owner_is_or_any(owner o, const context *c);
uint64_t random_next(uint64_t *state);
/* Room for one more element, by doubling. The stand-in gives up where there is no memory: it is part of tests. */
void *array_grow(void *array, uint32_t count, size_t element);

typedef struct standin {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an operation is complete, or there is a new one */
    settings settings;
    bool initialised;
    pid_t process; /* that called cuInit: in a child of fork() nothing works */
    context contexts[MAX_DEVICES];
    uint32_t completed[MAX_STREAMS]; /* operations, per index of a stream */
    clocks host;                     /* what the host knows to be complete */
    uint32_t n_hosts_pending;        /* host functions that have not run yet */
} standin;

extern standin the_standin;

#endif
