/* Several ranks of a record on one clock: what each of their queues did, and which rank compute waited for. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/size.h"
#include "report/report.h"
#include "report/run_file.h"

static const tide_message *message_of(const tide_report *ran, uint32_t action) {
    tide_action a = tide_plan_action(ran->plan, action);
    return a.kind == TIDE_RUN ? tide_program_op(ran->program, a.op)->message : NULL;
}

/* ---- rows ---- */

static const char *name_of(const tide_report *ran, const tide_action *a) {
    tide_id tensor = a->kind == TIDE_RUN ? TIDE_NONE : tide_plan_residency(ran->plan, a->uses[0])->tensor;
    const char *name = a->kind == TIDE_RUN   ? tide_program_op(ran->program, a->op)->name
                       : tensor != TIDE_NONE ? tide_program_tensor(ran->program, tensor)->name
                                             : NULL;
    return name ? name : "";
}

/* RUN and re-run are 0 and 1, moves follow; messages move. */
static uint32_t kind_of(const tide_report *ran, uint32_t i, const tide_message *message) {
    tide_action_kind kind = tide_plan_action(ran->plan, i).kind;
    if (message) return 1 + (uint32_t)(message->receives ? TIDE_LOAD : TIDE_SAVE);
    return kind == TIDE_RUN ? ran->acts[i].rerun : 1 + (uint32_t)kind;
}

static tide_status add_acts(tide_report *r, uint32_t rank) {
    const tide_report *ran = r->ranks.data[rank].ran;
    const tide_timeline *t = ran->timeline;
    uint32_t first = (uint32_t)r->rank_acts.count;
    TIDE_TRY(tide__vec_reserve(&r->rank_acts, t->n_actions));
    for (uint32_t i = 0; i < t->n_actions; i++) {
        const tide_action a = tide_plan_action(ran->plan, i);
        const tide_message *message = message_of(ran, i);
        const tide__rank_act act = {.rank = rank,
                                    .queue = a.queue,
                                    .kind = kind_of(ran, i, message),
                                    .phase =
                                        a.kind == TIDE_RUN ? (uint32_t)tide_program_op(ran->program, a.op)->phase : 0,
                                    .start_ns = r->ranks.data[rank].begin_ns + t->start_ns[i],
                                    .time_ns = t->end_ns[i] - t->start_ns[i],
                                    .wait_ns = ran->acts[i].wait_ns,
                                    .cause = ran->acts[i].cause == TIDE_NONE ? TIDE_NONE : first + ran->acts[i].cause,
                                    .peer = message ? message->peer : TIDE_NONE,
                                    .name = name_of(ran, &a)};
        TIDE_TRY(tide__vec_push(&r->rank_acts, act));
    }
    return TIDE_OK;
}

tide_status tide__report_find_ranks(tide_report *r) {
    const tide_record *record = r->record;
    for (uint32_t i = 0; record && i < record->ranks.count; i++) {
        const tide__record_rank *from = &record->ranks.data[i];
        TIDE_TRY(tide__vec_push(&r->ranks, ((tide__report_rank){from->host, from->begin_ns, i ? NULL : r->ran})));
        if (i) TIDE_TRY(tide__report_ran(from->record, &r->ranks.data[i].ran));
        TIDE_TRY(add_acts(r, i));
    }
    return TIDE_OK;
}

/* ---- whom compute waited for ---- */

typedef struct waits {
    uint64_t *for_rank_ns; /* per rank: for messages with it; all 0 between two ranks that are written */
    size_t n_ranks;
    uint64_t other_ns; /* for tiers, or nobody knows for what */
} waits;

static void add_wait(const tide_report *ran, uint32_t cause, uint64_t wait_ns, waits *w) {
    const tide_message *message = cause == TIDE_NONE ? NULL : message_of(ran, cause);
    if (message && message->peer < w->n_ranks)
        w->for_rank_ns[message->peer] += wait_ns;
    else
        w->other_ns += wait_ns;
}

/* What is under way when compute has ended is waited for, too: for what ends last. */
static void find_waits(const tide_report *ran, waits *w) {
    const tide_timeline *t = ran->timeline;
    uint64_t compute_end_ns = 0, end_ns = 0;
    uint32_t last = TIDE_NONE;
    for (uint32_t i = 0; i < t->n_actions; i++) {
        if (tide_plan_action(ran->plan, i).queue == 0) {
            add_wait(ran, ran->acts[i].cause, ran->acts[i].wait_ns, w);
            compute_end_ns = t->end_ns[i];
        }
        if (t->end_ns[i] < end_ns) continue;
        end_ns = t->end_ns[i];
        last = i;
    }
    if (end_ns > compute_end_ns) add_wait(ran, last, end_ns - compute_end_ns, w);
}

/* [rank, ns] for those that were waited for, whose sums are 0 again then: not a number for every pair of ranks. */
static void write_waits(const tide_report *ran, const waits *w, FILE *f) {
    bool first = true;
    for (uint32_t i = 0; i < ran->timeline->n_actions; i++) {
        const tide_message *message = message_of(ran, i);
        if (!message || message->peer >= w->n_ranks || w->for_rank_ns[message->peer] == 0) continue;
        fprintf(f, "%s[%" PRIu32 ",%" PRIu64 "]", first ? "" : ",", message->peer, w->for_rank_ns[message->peer]);
        w->for_rank_ns[message->peer] = 0;
        first = false;
    }
}

static void write_rank(const tide__report_rank *rank, const waits *w, FILE *f) {
    const tide_prediction *p = &rank->ran->timeline->prediction;
    char name[2 * TIDE_MACHINE_NAME_BYTES];
    fputs("{\"host\":", f);
    tide__json_write_string(f, rank->host);
    fprintf(f, ",\"begin_ns\":%" PRIu64 ",\"step_ns\":%" PRIu64 ",\"compute_ns\":%" PRIu64 ",\"waits\":[",
            rank->begin_ns, p->step_ns, p->compute_ns);
    write_waits(rank->ran, w, f);
    fprintf(f, "],\"other_wait_ns\":%" PRIu64 ",\"queues\":[", w->other_ns);
    for (uint32_t q = 0; q <= rank->ran->machine->n_channels; q++) {
        tide__report_queue_name(rank->ran, q, name, sizeof name);
        if (q) fputc(',', f);
        tide__json_write_string(f, name);
    }
    fputs("]}", f);
}

tide_status tide__report_write_ranks(const tide_report *r, FILE *f) {
    if (r->ranks.count == 0) return TIDE_OK;
    uint64_t *for_rank_ns = calloc(r->ranks.count, sizeof *for_rank_ns);
    if (!for_rank_ns) return tide__fail_memory();
    fputs(",\"ranks\":[", f);
    for (size_t i = 0; i < r->ranks.count; i++) {
        waits w = {.for_rank_ns = for_rank_ns, .n_ranks = r->ranks.count};
        find_waits(r->ranks.data[i].ran, &w);
        if (i) fputc(',', f);
        write_rank(&r->ranks.data[i], &w, f);
    }
    fputc(']', f);
    free(for_rank_ns);
    return TIDE_OK;
}
