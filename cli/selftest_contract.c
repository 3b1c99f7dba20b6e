/* The device contract: copies, order, events, failures, refusals; what the suite that developers run
 * (tests/device/test_conformance.c) asks of a device with kernels. */
#include "selftest.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB (UINT64_C(1) << 20)

/* What the checks work with; NULL where it could not be had. */
typedef struct bench {
    tide_arena *arena;
    tide_queue *compute, *out, *in;
    tide_event *first, *second;
    unsigned char *a, *b;
    uint64_t size_bytes; /* of the arena, a and b */
} bench;

#define TRY(call)                         \
    do {                                  \
        tide_status try_ = (call);        \
        if (try_ != TIDE_OK) return try_; \
    } while (0)

static tide_status open_bench(const selftest *s, bench *b) {
    b->size_bytes = 16 * MIB;
    b->a = malloc(b->size_bytes);
    b->b = malloc(b->size_bytes);
    if (!b->a || !b->b) return TIDE_E_MEMORY;
    TRY(tide_arena_create(s->device, b->size_bytes, &b->arena));
    TRY(tide_queue_create(s->device, TIDE_QUEUE_COMPUTE, &b->compute));
    TRY(tide_queue_create(s->device, TIDE_QUEUE_COPY, &b->out));
    TRY(tide_queue_create(s->device, TIDE_QUEUE_COPY, &b->in));
    TRY(tide_event_create(s->device, &b->first));
    return tide_event_create(s->device, &b->second);
}

static void close_bench(bench *b) {
    tide_event_destroy(b->first);
    tide_event_destroy(b->second);
    tide_queue_destroy(b->compute);
    tide_queue_destroy(b->out);
    tide_queue_destroy(b->in);
    tide_arena_destroy(b->arena);
    free(b->a);
    free(b->b);
}

/* ---- copies ---- */

static tide_status round_trip(bench *b, uint64_t size, bool *right) {
    selftest_fill(b->a, size, (uint32_t)size);
    memset(b->b, 0, size);
    TRY(tide_copy_in(b->in, b->arena, 4096, size, selftest_from(b->a)));
    TRY(tide_queue_sync(b->in));
    TRY(tide_copy_out(b->out, b->arena, 4096, size, selftest_to(b->b)));
    TRY(tide_queue_sync(b->out));
    *right = *right && memcmp(b->a, b->b, size) == 0;
    return TIDE_OK;
}

static tide_status copies(const selftest *s, bench *b, bool *right) {
    static const uint64_t sizes[] = {1, 4095, 2 * MIB, 4 * MIB + 1, 13 * MIB + 7};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) TRY(round_trip(b, sizes[i], right));
    return TIDE_OK;
}

/* Both directions at once, on ranges of their own. */
static tide_status both_directions(const selftest *s, bench *b, bool *right) {
    const uint64_t half = b->size_bytes / 2;
    selftest_fill(b->a, half, 1);
    TRY(tide_copy_in(b->in, b->arena, 0, half, selftest_from(b->a)));
    TRY(tide_queue_sync(b->in));
    selftest_fill(b->a + half, half, 2);
    TRY(tide_copy_in(b->in, b->arena, half, half, selftest_from(b->a + half)));
    TRY(tide_copy_out(b->out, b->arena, 0, half, selftest_to(b->b)));
    TRY(tide_queue_sync(b->in));
    TRY(tide_queue_sync(b->out));
    TRY(tide_copy_out(b->out, b->arena, half, half, selftest_to(b->b + half)));
    TRY(tide_queue_sync(b->out));
    *right = memcmp(b->a, b->b, b->size_bytes) == 0;
    return TIDE_OK;
}

static tide_status moved_within(bench *b, uint64_t from, uint64_t to, bool *right) {
    const uint64_t size = 3 * MIB, whole = 4 * MIB;
    selftest_fill(b->a, whole, 3);
    TRY(tide_copy_in(b->compute, b->arena, 0, whole, selftest_from(b->a)));
    TRY(tide_copy_within(b->compute, b->arena, from, to, size));
    TRY(tide_copy_out(b->compute, b->arena, 0, whole, selftest_to(b->b)));
    TRY(tide_queue_sync(b->compute));
    memmove(b->a + to, b->a + from, size);
    *right = *right && memcmp(b->a, b->b, whole) == 0;
    return TIDE_OK;
}

static tide_status within(const selftest *s, bench *b, bool *right) {
    TRY(moved_within(b, 0, 512 * 1024, right));
    return moved_within(b, 512 * 1024, 0, right);
}

/* ---- order ---- */

/* A value goes round by events alone: in by one queue, out by another, many times, without a wait of the host. */
static tide_status rounds(const selftest *s, bench *b, bool *right) {
    enum { ROUNDS = 200, BYTES = 4096 };
    for (int i = 0; i < ROUNDS; i++) memset(b->a + i * BYTES, i, BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        TRY(tide_copy_in(b->in, b->arena, 0, BYTES, selftest_from(b->a + i * BYTES)));
        TRY(tide_event_record(b->first, b->in));
        TRY(tide_event_wait(b->first, b->compute));
        TRY(tide_copy_within(b->compute, b->arena, 0, 8192, BYTES));
        TRY(tide_event_record(b->second, b->compute));
        TRY(tide_event_wait(b->second, b->out));
        TRY(tide_event_wait(b->second, b->in));
        TRY(tide_copy_out(b->out, b->arena, 8192, BYTES, selftest_to(b->b + i * BYTES)));
        TRY(tide_event_record(b->first, b->out));
        TRY(tide_event_wait(b->first, b->compute));
    }
    TRY(tide_queue_sync(b->out));
    TRY(tide_queue_sync(b->in));
    TRY(tide_queue_sync(b->compute));
    *right = memcmp(b->a, b->b, ROUNDS * BYTES) == 0;
    return TIDE_OK;
}

static tide_status times(const selftest *s, bench *b, bool *right) {
    uint64_t ns = 0, none = 1;
    bool complete = false;
    TRY(tide_event_record(b->first, b->compute));
    TRY(tide_copy_in(b->compute, b->arena, 0, 8 * MIB, selftest_from(b->a)));
    TRY(tide_event_record(b->second, b->compute));
    TRY(tide_event_sync(b->second));
    TRY(tide_event_query(b->second, &complete));
    TRY(tide_event_elapsed(b->first, b->second, &ns));
    TRY(tide_event_elapsed(b->first, b->first, &none));
    *right = complete && ns > 0 && none == 0;
    return TIDE_OK;
}

/* ---- copies that are held ---- */

/* A source or sink that returns when as many copies as wanted are in it, or when it is open; after ten seconds it fails. */
typedef struct gate {
    atomic_int inside;
    atomic_bool is_open;
    int wanted;
} gate;

static tide_status pass(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    gate *g = context;
    const struct timespec pause = {.tv_nsec = 1000000};
    atomic_fetch_add(&g->inside, 1);
    for (int i = 0; i < 10000; i++) {
        if (atomic_load(&g->is_open) || atomic_load(&g->inside) >= g->wanted) return TIDE_OK;
        nanosleep(&pause, NULL);
    }
    return TIDE_E_CANCELLED;
}

static tide_io through(gate *g) { return (tide_io){.fn = pass, .context = g, .channel = TIDE_NONE}; }

static tide_status sync_all(const bench *b) {
    const tide_status first = tide_queue_sync(b->compute), second = tide_queue_sync(b->out);
    const tide_status third = tide_queue_sync(b->in);
    return first != TIDE_OK ? first : second != TIDE_OK ? second : third;
}

/* Nobody passes before all three are there. */
static tide_status all_at_once(const selftest *s, bench *b, bool *right) {
    gate meeting = {.wanted = 3};
    TRY(tide_copy_in(b->compute, b->arena, 0, 4096, through(&meeting)));
    TRY(tide_copy_in(b->in, b->arena, 4096, 4096, through(&meeting)));
    TRY(tide_copy_out(b->out, b->arena, 8192, 4096, through(&meeting)));
    return sync_all(b);
}

/* With one copy held: more work for its queue is taken, and what another queue has is done. */
static tide_status while_held(const selftest *s, bench *b, gate *held, bool *right) {
    enum { COPIES = 1000, BYTES = 64, STEP = 4096 };
    TRY(tide_copy_in(b->in, b->arena, 0, 4096, through(held)));
    for (int i = 0; i < COPIES; i++) TRY(tide_copy_in(b->in, b->arena, STEP, BYTES, selftest_from(b->a + i)));
    TRY(tide_copy_out(b->out, b->arena, 2 * STEP, STEP, selftest_to(b->b)));
    TRY(tide_queue_sync(b->out));
    atomic_store(&held->is_open, true);
    TRY(tide_queue_sync(b->in));
    TRY(tide_copy_out(b->out, b->arena, STEP, BYTES, selftest_to(b->b)));
    TRY(tide_queue_sync(b->out));
    *right = memcmp(b->b, b->a + COPIES - 1, BYTES) == 0;
    return TIDE_OK;
}

/* The second queue waits for the first; the event is complete when that is, and not before. */
static tide_status order_by_event(const selftest *s, bench *b, gate *held, bool *right) {
    gate behind = {.is_open = true};
    bool early = true, late = false;
    TRY(tide_copy_in(b->compute, b->arena, 0, 4096, through(held)));
    TRY(tide_event_record(b->first, b->compute));
    TRY(tide_event_wait(b->first, b->out));
    TRY(tide_copy_out(b->out, b->arena, 0, 4096, through(&behind)));
    TRY(tide_event_query(b->first, &early));
    const int begun = atomic_load(&behind.inside);
    atomic_store(&held->is_open, true);
    TRY(tide_queue_sync(b->out));
    TRY(tide_event_query(b->first, &late));
    *right = !early && begun == 0 && late && atomic_load(&behind.inside) > 0;
    return TIDE_OK;
}

/* A wait means the record before it; the one after it is of another queue, which is free. */
static tide_status record_again(const selftest *s, bench *b, gate *held, bool *right) {
    bool complete = true;
    TRY(tide_copy_in(b->in, b->arena, 0, 4096, through(held)));
    TRY(tide_event_record(b->first, b->in));
    TRY(tide_event_wait(b->first, b->out));
    TRY(tide_event_record(b->second, b->out));
    TRY(tide_event_record(b->first, b->compute));
    TRY(tide_event_sync(b->first));
    TRY(tide_event_query(b->second, &complete));
    *right = !complete;
    return TIDE_OK;
}

/* Whatever came of it, nothing stays held. */
static tide_status with_a_gate(tide_status (*run)(const selftest *s, bench *b, gate *held, bool *right),
                               const selftest *s, bench *b, bool *right) {
    gate held = {.wanted = 2};
    const tide_status status = run(s, b, &held, right);
    atomic_store(&held.is_open, true);
    const tide_status synced = sync_all(b);
    return status != TIDE_OK ? status : synced;
}

static tide_status held_alone(const selftest *s, bench *b, bool *right) { return with_a_gate(while_held, s, b, right); }
static tide_status ordered(const selftest *s, bench *b, bool *right) {
    return with_a_gate(order_by_event, s, b, right);
}
static tide_status recorded_again(const selftest *s, bench *b, bool *right) {
    return with_a_gate(record_again, s, b, right);
}

static tide_status destroyed(const selftest *s, bench *b, bool *right) {
    enum { COPIES = 100 };
    gate counter = {.is_open = true};
    tide_queue *queue = NULL;
    TRY(tide_queue_create(s->device, TIDE_QUEUE_COPY, &queue));
    tide_status status = TIDE_OK;
    for (int i = 0; i < COPIES && status == TIDE_OK; i++)
        status = tide_copy_out(queue, b->arena, 0, 64, through(&counter));
    tide_queue_destroy(queue);
    *right = atomic_load(&counter.inside) == COPIES;
    return status;
}

/* ---- what is refused ---- */

static tide_status refusals(const selftest *s, bench *b, bool *right) {
    const uint64_t end = b->size_bytes, odd = s->info.align_bytes / 2;
    tide_arena *none = NULL;
    tide_event *never = NULL;
    uint64_t ns = 0;
    bool complete = false;
    TRY(tide_event_create(s->device, &never));
    *right = tide_arena_create(s->device, 0, &none) == TIDE_E_ARGUMENT && !none &&
             tide_copy_out(b->out, b->arena, end - 4096, 4097, selftest_to(b->b)) == TIDE_E_ARGUMENT &&
             tide_copy_in(b->in, b->arena, 0, UINT64_MAX, selftest_from(b->a)) == TIDE_E_ARGUMENT &&
             tide_copy_in(b->in, b->arena, odd, 16, selftest_from(b->a)) == TIDE_E_ARGUMENT &&
             tide_event_elapsed(never, never, &ns) == TIDE_E_ARGUMENT &&
             tide_event_query(never, &complete) == TIDE_OK && complete && tide_event_sync(never) == TIDE_OK;
    tide_event_destroy(never);
    return sync_all(b);
}

/* ---- failures ---- */

static tide_status fail_at_once(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    return TIDE_E_CANCELLED;
}

/* A queue that failed skips what follows and says so at every sync; the others go on. */
static tide_status sticky(const selftest *s, bench *b, bool *right) {
    const tide_io failing = {.fn = fail_at_once, .channel = TIDE_NONE};
    tide_queue *queue = NULL;
    unsigned char untouched = 7;
    TRY(tide_queue_create(s->device, TIDE_QUEUE_COPY, &queue));
    tide_status enqueued = tide_copy_in(queue, b->arena, 0, 4096, failing);
    if (enqueued == TIDE_OK) enqueued = tide_copy_out(queue, b->arena, 0, 1, selftest_to(&untouched));
    *right = enqueued == TIDE_OK && tide_queue_sync(queue) == TIDE_E_CANCELLED &&
             tide_queue_sync(queue) == TIDE_E_CANCELLED && untouched == 7;
    tide_queue_destroy(queue);
    return tide_queue_sync(b->out);
}

/* A label that is no class, on a queue of its own: found by the kernel, told by the sync. */
static tide_status wrong_label(const selftest *s, bench *b, bool *right) {
    const tide_op_desc d = {.kind = TIDE_OP_SOFTMAX_LOSS_BWD, .x = {2, 3, 1, 1}, .y = {2, 3, 1, 1}};
    const uint64_t offsets[] = {0, 4096, 8192};
    tide_kernel *kernel = NULL;
    tide_queue *queue = NULL;
    float labels[2] = {2, 3};
    TRY(tide_kernel_create(s->device, &d, &kernel));
    tide_status status = tide_operand_pack(kernel, 1, labels, b->a + 4096);
    if (status == TIDE_OK) status = tide_copy_in(b->in, b->arena, 0, 12288, selftest_from(b->a));
    if (status == TIDE_OK) status = tide_queue_sync(b->in);
    if (status == TIDE_OK) status = tide_queue_create(s->device, TIDE_QUEUE_COMPUTE, &queue);
    if (status == TIDE_OK) status = tide_kernel_enqueue(kernel, 0, queue, b->arena, offsets, 3, NULL);
    if (status == TIDE_OK)
        *right = tide_queue_sync(queue) == TIDE_E_ARGUMENT && strstr(tide_last_error(), "label 3 of sample 1");
    tide_queue_destroy(queue);
    tide_kernel_destroy(kernel);
    return status;
}

/* ---- all of it ---- */

typedef struct check {
    const char *what;
    tide_status (*run)(const selftest *s, bench *b, bool *right);
} check;

static const check checks[] = {
    {"copies in and out, of five sizes", copies},
    {"copies in both directions at once", both_directions},
    {"copies inside the arena that overlap", within},
    {"three queues in step by events, 200 rounds", rounds},
    {"three queues at the same time", all_at_once},
    {"a queue that is held holds nobody else", held_alone},
    {"an event keeps another queue until it is complete", ordered},
    {"an event recorded again means the new record", recorded_again},
    {"events are complete and have times", times},
    {"a queue is destroyed when its work is done", destroyed},
    {"wrong sizes, offsets and events are refused", refusals},
    {"a failure stays with its queue", sticky},
    {"a wrong label is reported", wrong_label},
};

void selftest_contract(selftest *s) {
    bench b = {0};
    selftest_head(s, "contract");
    tide_status status = open_bench(s, &b);
    if (status != TIDE_OK) selftest_check(s, "arena, queues and events", status, false);
    for (size_t i = 0; i < sizeof checks / sizeof *checks && status == TIDE_OK; i++) {
        bool right = true;
        const tide_status ran = checks[i].run(s, &b, &right);
        selftest_check(s, checks[i].what, ran, right);
    }
    close_bench(&b);
}
