/* See ahead.h. */
#include "run/ahead.h"

#include "base/clock.h"
#include "base/size.h"
#include "run/online.h"

typedef struct tide__run_online state;

static tide__issued *slot_of(tide__ahead *a, uint64_t number) { return &a->runs[number % TIDE__AHEAD]; }

static bool is_under_way(const tide__ahead *a, uint64_t number) { return number > a->n_complete; }

void tide__ahead_close(tide__ahead *a) {
    for (int i = 0; i < TIDE__AHEAD; i++) {
        tide_event_destroy(a->runs[i].begin);
        tide_event_destroy(a->runs[i].end);
        a->runs[i].begin = a->runs[i].end = NULL;
    }
}

/* ---- completing ---- */

static tide_status take_time(state *s, const tide__issued *run) {
    uint64_t ns;
    TIDE_TRY(tide_event_elapsed(run->begin, run->end, &ns));
    s->cost_ns.data[run->op] = s->engine->ops[run->op].cost_ns = ns;
    s->compute_ns += ns;
    return TIDE_OK;
}

/* The oldest one under way is complete. */
static tide_status complete_oldest(state *s) {
    tide__ahead *a = &s->ahead;
    const tide__issued *run = slot_of(a, ++a->n_complete);
    a->pending_ns -= tide__min_u64(a->pending_ns, run->cost_ns);
    tide__journal_saw_run(s->journal, run->action);
    return take_time(s, run);
}

/* Both: a driver may tell of the two in any order. */
static tide_status is_complete(const tide__issued *run, bool *complete) {
    TIDE_TRY(tide_event_query(run->end, complete));
    return *complete ? tide_event_query(run->begin, complete) : TIDE_OK;
}

tide_status tide__ahead_collect(state *s) {
    tide__ahead *a = &s->ahead;
    while (is_under_way(a, a->n_issued)) {
        bool complete;
        TIDE_TRY(is_complete(slot_of(a, a->n_complete + 1), &complete));
        if (!complete) return TIDE_OK;
        TIDE_TRY(complete_oldest(s));
    }
    return TIDE_OK;
}

static tide_status await_oldest(state *s) {
    const tide__issued *run = slot_of(&s->ahead, s->ahead.n_complete + 1);
    TIDE_TRY(tide_event_sync(run->end));
    return tide_event_sync(run->begin);
}

tide_status tide__ahead_settle(state *s, tide_status status) {
    if (status == TIDE_OK) status = tide__ahead_collect(s);
    s->ahead.n_complete = s->ahead.n_issued;
    s->ahead.pending_ns = 0;
    return status;
}

/* ---- issuing ---- */

static tide_status open_events(state *s, tide__issued *run) {
    tide_device *device = s->run->options.device;
    if (!run->begin) TIDE_TRY(tide_event_create(device, &run->begin));
    return run->end ? TIDE_OK : tide_event_create(device, &run->end);
}

tide_status tide__ahead_begin(state *s, tide_id op) {
    tide__ahead *a = &s->ahead;
    if (a->n_issued - a->n_complete == TIDE__AHEAD) TIDE_TRY(await_oldest(s));
    TIDE_TRY(tide__ahead_collect(s));
    tide__issued *run = slot_of(a, a->n_issued + 1);
    TIDE_TRY(open_events(s, run));
    run->op = op;
    run->action = tide__journal_run(s->journal, op);
    run->cost_ns = s->cost_ns.data[op];
    return tide_event_record(run->begin, s->run->queue[0]);
}

tide_status tide__ahead_end(state *s) {
    tide__ahead *a = &s->ahead;
    tide__issued *run = slot_of(a, a->n_issued + 1);
    TIDE_TRY(tide_event_record(run->end, s->run->queue[0]));
    a->n_issued++;
    a->pending_ns = tide__add_capped(a->pending_ns, run->cost_ns);
    run->ends_ns = tide__add_capped(tide__now_ns(), a->pending_ns);
    return TIDE_OK;
}

/* ---- waiting ---- */

tide_status tide__ahead_wait(state *s, uint64_t number, uint32_t queue) {
    if (!is_under_way(&s->ahead, number)) return TIDE_OK;
    const tide__issued *run = slot_of(&s->ahead, number);
    tide__journal_wait_run(s->journal, queue, run->action);
    return tide_event_wait(run->end, s->run->queue[queue]);
}

uint64_t tide__ahead_end_ns(const tide__ahead *a, uint64_t number) {
    return is_under_way(a, number) ? a->runs[number % TIDE__AHEAD].ends_ns : 0;
}
