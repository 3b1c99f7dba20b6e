/* See vclock.h. An event simulation: a heap of the next event of each running job; a share group keeps its jobs'
 * remaining work and advances them together whenever its membership changes.
 *
 * Invariant: a job is pending (predecessors open), running its fixed part, in its group's shared part, or done. */
#include "base/vclock.h"

#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "base/vec.h"

#define NO_JOB UINT32_MAX
#define MOST_DRAG 90 /* percent: time goes on whatever moves */

typedef struct job {
    uint64_t ready_ns; /* earliest start: submission, then raised by each predecessor that ends */
    uint64_t start_ns, end_ns;
    uint64_t fixed_ns, work, rate_per_s;
    double left;       /* work still to do in the shared part */
    double fixed_left; /* of the fixed part, ns as of since_ns; dragged jobs only */
    uint64_t since_ns;
    uint32_t serial; /* dragged jobs: events with another one are stale */
    uint32_t queue, share, drag_percent;
    bool dragged, drags; /* drags: its work is being done */
    uint32_t open;       /* predecessors not complete */
    uint32_t first_out;  /* list of edges to successors */
    bool done;
} job;

typedef struct edge {
    uint32_t to, next;
} edge;

typedef struct event {
    uint64_t t_ns;
    uint32_t id;     /* job, or group index with is_group */
    uint32_t serial; /* stale unless equal to that of the group or job */
    bool is_group;
} event;

typedef struct group {
    uint32_t share;
    uint64_t since_ns; /* jobs' `left` is as of this time */
    uint32_t serial;
    TIDE_VEC(uint32_t) active;
} group;

struct tide__vclock {
    uint64_t now_ns;
    uint32_t n_queues;
    uint32_t *last; /* per queue: last submitted job */
    TIDE_VEC(job) jobs;
    TIDE_VEC(edge) edges;
    TIDE_VEC(event) heap;
    TIDE_VEC(group) groups;
    TIDE_VEC(uint32_t) runners; /* dragged jobs in their fixed part */
    uint32_t drag_percent;      /* of all jobs that drag at the moment */
    size_t first_open;          /* jobs before it are done */
};

tide_status tide__vclock_create(uint32_t n_queues, tide__vclock **out) {
    tide__vclock *c = calloc(1, sizeof *c);
    uint32_t *last = malloc((n_queues ? n_queues : 1) * sizeof *last);
    if (!c || !last) {
        free(c);
        free(last);
        return tide__fail_memory();
    }
    for (uint32_t q = 0; q < n_queues; q++) last[q] = NO_JOB;
    c->n_queues = n_queues;
    c->last = last;
    *out = c;
    return TIDE_OK;
}

void tide__vclock_destroy(tide__vclock *c) {
    if (!c) return;
    for (size_t i = 0; i < c->groups.count; i++) tide__vec_free(&c->groups.data[i].active);
    tide__vec_free(&c->groups);
    tide__vec_free(&c->jobs);
    tide__vec_free(&c->edges);
    tide__vec_free(&c->heap);
    tide__vec_free(&c->runners);
    free(c->last);
    free(c);
}

/* ---- the heap of events: by time, then groups before jobs, then by id, so that runs are reproducible ---- */

static bool earlier(const event *a, const event *b) {
    if (a->t_ns != b->t_ns) return a->t_ns < b->t_ns;
    if (a->is_group != b->is_group) return a->is_group;
    return a->id < b->id;
}

static tide_status heap_push(tide__vclock *c, event e) {
    TIDE_TRY(tide__vec_push(&c->heap, e));
    event *h = c->heap.data;
    size_t i = c->heap.count - 1;
    for (; i > 0 && earlier(&e, &h[(i - 1) / 2]); i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
    h[i] = e;
    return TIDE_OK;
}

static event heap_pop(tide__vclock *c) {
    event *h = c->heap.data, top = h[0], last = h[--c->heap.count];
    size_t n = c->heap.count, i = 0;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && earlier(&h[child + 1], &h[child])) child++;
        if (!earlier(&h[child], &last)) break;
        h[i] = h[child];
    }
    h[i] = last;
    return top;
}

/* ---- submitting ---- */

static tide_status add_edge(tide__vclock *c, uint32_t from, uint32_t to) {
    job *before = &c->jobs.data[from];
    job *after = &c->jobs.data[to];
    if (before->done) {
        after->ready_ns = tide__max_u64(after->ready_ns, before->end_ns);
        return TIDE_OK;
    }
    edge e = {.to = to, .next = before->first_out};
    TIDE_TRY(tide__vec_push(&c->edges, e));
    before->first_out = (uint32_t)(c->edges.count - 1);
    after->open++;
    return TIDE_OK;
}

tide_status tide__vclock_submit(tide__vclock *c, const tide__vjob *spec, uint32_t *id) {
    if (spec->queue >= c->n_queues) return tide__fail(TIDE_E_ARGUMENT, "no queue %u", spec->queue);
    if (spec->work && spec->rate_per_s == 0) return tide__fail(TIDE_E_ARGUMENT, "work at rate 0");
    uint32_t self = (uint32_t)c->jobs.count;
    for (size_t i = 0; i < spec->n_waits; i++)
        if (spec->waits[i] >= self) return tide__fail(TIDE_E_ARGUMENT, "job %u waits for a later one", self);
    job j = {.ready_ns = c->now_ns,
             .fixed_ns = spec->fixed_ns,
             .work = spec->work,
             .rate_per_s = spec->rate_per_s,
             .left = (double)spec->work,
             .queue = spec->queue,
             .share = spec->share,
             .drag_percent = spec->drag_percent,
             .dragged = spec->dragged,
             .first_out = NO_JOB};
    TIDE_TRY(tide__vec_push(&c->jobs, j));
    if (c->last[spec->queue] != NO_JOB) TIDE_TRY(add_edge(c, c->last[spec->queue], self));
    for (size_t i = 0; i < spec->n_waits; i++) TIDE_TRY(add_edge(c, spec->waits[i], self));
    c->last[spec->queue] = self;
    *id = self;
    return TIDE_OK;
}

/* ---- dragging ---- */

/* What the dragged do in a ns. */
static double speed(const tide__vclock *c) {
    uint32_t drag = c->drag_percent < MOST_DRAG ? c->drag_percent : MOST_DRAG;
    return (double)(100 - drag) / 100;
}

static tide_status announce_runner(tide__vclock *c, uint32_t id) {
    job *j = &c->jobs.data[id];
    double ns = ceil(j->fixed_left / speed(c));
    uint64_t whole = ns >= 0x1p63 ? UINT64_MAX : ns <= 0 ? 0 : (uint64_t)ns;
    return heap_push(c, (event){.t_ns = tide__add_capped(j->since_ns, whole), .id = id, .serial = ++j->serial});
}

static tide_status change_drag(tide__vclock *c, uint64_t t_ns, uint32_t drag_percent) {
    double before = speed(c);
    c->drag_percent = drag_percent;
    for (size_t i = 0; i < c->runners.count; i++) {
        job *j = &c->jobs.data[c->runners.data[i]];
        j->fixed_left -= (double)(t_ns - j->since_ns) * before;
        j->since_ns = t_ns;
        TIDE_TRY(announce_runner(c, c->runners.data[i]));
    }
    return TIDE_OK;
}

static tide_status start_dragging(tide__vclock *c, job *j, uint64_t t_ns) {
    if (j->drag_percent == 0) return TIDE_OK;
    j->drags = true;
    return change_drag(c, t_ns, c->drag_percent + j->drag_percent);
}

static tide_status stop_dragging(tide__vclock *c, job *j, uint64_t t_ns) {
    if (!j->drags) return TIDE_OK;
    j->drags = false;
    return change_drag(c, t_ns, c->drag_percent - j->drag_percent);
}

/* Undisturbed, the end is exact integer arithmetic. */
static tide_status start_runner(tide__vclock *c, uint32_t id) {
    job *j = &c->jobs.data[id];
    TIDE_TRY(tide__vec_push(&c->runners, id));
    j->fixed_left = (double)j->fixed_ns;
    j->since_ns = j->start_ns;
    if (c->drag_percent) return announce_runner(c, id);
    return heap_push(c, (event){.t_ns = tide__add_capped(j->start_ns, j->fixed_ns), .id = id});
}

static void remove_runner(tide__vclock *c, uint32_t id) {
    for (size_t i = 0; i < c->runners.count; i++)
        if (c->runners.data[i] == id) c->runners.data[i--] = c->runners.data[--c->runners.count];
}

/* ---- running ---- */

static tide_status start_job(tide__vclock *c, uint32_t id) {
    job *j = &c->jobs.data[id];
    j->start_ns = j->ready_ns;
    if (j->dragged) return start_runner(c, id);
    return heap_push(c, (event){.t_ns = tide__add_capped(j->start_ns, j->fixed_ns), .id = id});
}

static tide_status finish_job(tide__vclock *c, uint32_t id, uint64_t t_ns) {
    job *j = &c->jobs.data[id];
    j->done = true;
    j->end_ns = t_ns;
    c->now_ns = tide__max_u64(c->now_ns, t_ns);
    TIDE_TRY(stop_dragging(c, j, t_ns));
    for (uint32_t e = j->first_out; e != NO_JOB; e = c->edges.data[e].next) {
        uint32_t to = c->edges.data[e].to;
        job *next = &c->jobs.data[to];
        next->ready_ns = tide__max_u64(next->ready_ns, t_ns);
        if (--next->open == 0) TIDE_TRY(start_job(c, to));
    }
    return TIDE_OK;
}

static tide_status find_group(tide__vclock *c, uint32_t share, uint32_t *out) {
    for (uint32_t i = 0; i < c->groups.count; i++)
        if (c->groups.data[i].share == share) {
            *out = i;
            return TIDE_OK;
        }
    *out = (uint32_t)c->groups.count;
    group g = {.share = share};
    return tide__vec_push(&c->groups, g);
}

/* Work done by each active job since the group's last change. */
static void advance_group(tide__vclock *c, group *g, uint64_t t_ns) {
    double seconds = (double)(t_ns - g->since_ns) * 1e-9;
    for (size_t i = 0; i < g->active.count; i++) {
        job *j = &c->jobs.data[g->active.data[i]];
        j->left -= seconds * (double)j->rate_per_s / (double)g->active.count;
    }
    g->since_ns = t_ns;
}

/* ns from now until the job's shared work is done, rounded up. */
static uint64_t ns_left(const job *j, size_t sharers) {
    double ns = j->left <= 0 ? 0 : j->left / (double)j->rate_per_s * (double)sharers * 1e9;
    if (ns >= 0x1p63) return UINT64_MAX;
    uint64_t whole = (uint64_t)ns;
    return whole + ((double)whole < ns - 1e-6);
}

/* Announces when the first of the active jobs ends, should nothing change before. */
static tide_status schedule_group(tide__vclock *c, uint32_t index) {
    group *g = &c->groups.data[index];
    g->serial++;
    if (g->active.count == 0) return TIDE_OK;
    uint64_t soonest = UINT64_MAX;
    for (size_t i = 0; i < g->active.count; i++)
        soonest = tide__min_u64(soonest, ns_left(&c->jobs.data[g->active.data[i]], g->active.count));
    event e = {.t_ns = tide__add_capped(g->since_ns, soonest), .id = index, .serial = g->serial, .is_group = true};
    return heap_push(c, e);
}

static tide_status join_group(tide__vclock *c, uint32_t id, uint64_t t_ns) {
    uint32_t index;
    TIDE_TRY(find_group(c, c->jobs.data[id].share, &index));
    group *g = &c->groups.data[index];
    advance_group(c, g, t_ns);
    TIDE_TRY(tide__vec_push(&g->active, id));
    return schedule_group(c, index);
}

static tide_status on_group(tide__vclock *c, const event *e) {
    group *g = &c->groups.data[e->id];
    if (g->serial != e->serial) return TIDE_OK;
    advance_group(c, g, e->t_ns);
    size_t kept = 0, n = g->active.count, sharers = n;
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = g->active.data[i];
        if (e->t_ns < UINT64_MAX && ns_left(&c->jobs.data[id], sharers) > 0)
            g->active.data[kept++] = id;
        else if (status == TIDE_OK)
            status = finish_job(c, id, e->t_ns);
    }
    g->active.count = kept;
    return status == TIDE_OK ? schedule_group(c, e->id) : status;
}

/* The fixed part is over: alone on its link the rest is exact integer arithmetic; shared it joins its group. */
static tide_status on_fixed_done(tide__vclock *c, const event *e) {
    job *j = &c->jobs.data[e->id];
    if (j->serial != e->serial) return TIDE_OK;
    if (j->dragged) remove_runner(c, e->id);
    if (j->left <= 0) return finish_job(c, e->id, e->t_ns);
    TIDE_TRY(start_dragging(c, j, e->t_ns));
    if (j->share) return join_group(c, e->id, e->t_ns);
    uint64_t ns = tide__work_ns(j->work, j->rate_per_s);
    j->left = 0;
    return heap_push(c, (event){.t_ns = tide__add_capped(e->t_ns, ns), .id = e->id, .serial = j->serial});
}

tide_status tide__vclock_run(tide__vclock *c) {
    for (size_t i = c->first_open; i < c->jobs.count; i++)
        if (c->jobs.data[i].open == 0) TIDE_TRY(start_job(c, (uint32_t)i));
    c->first_open = c->jobs.count;
    while (c->heap.count > 0) {
        event e = heap_pop(c);
        TIDE_TRY(e.is_group ? on_group(c, &e) : on_fixed_done(c, &e));
    }
    c->edges.count = 0; /* all jobs are done: nobody points into the list any more */
    return TIDE_OK;
}

uint64_t tide__vclock_now(const tide__vclock *c) { return c->now_ns; }
uint64_t tide__vclock_start(const tide__vclock *c, uint32_t id) { return c->jobs.data[id].start_ns; }
uint64_t tide__vclock_end(const tide__vclock *c, uint32_t id) { return c->jobs.data[id].end_ns; }
