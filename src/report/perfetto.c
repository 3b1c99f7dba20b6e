/* The report as a Chrome trace (JSON), which ui.perfetto.dev and chrome://tracing open: queues as threads with their
 * actions, waits as flows, counters of the arena and the tiers, and every value's stay in the arena as an asynchronous
 * slice. Times are microseconds with three decimals, so that no nanosecond is lost. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/size.h"
#include "report/report.h"

enum { ARENA_PROCESS = 1, VALUES_PROCESS = 2 };

typedef struct trace {
    const tide_report *r;
    FILE *f;
    bool first;
} trace;

static void us(FILE *f, const char *key, uint64_t ns) {
    fprintf(f, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

static void begin(trace *t, const char *kind, const char *category, const char *name) {
    fprintf(t->f, "%s{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":", t->first ? "" : ",\n", kind, category);
    tide__json_write_string(t->f, name);
    t->first = false;
}

static void write_label(trace *t, const char *what, int process, uint32_t thread, const char *label) {
    begin(t, "M", "__metadata", what);
    fprintf(t->f, ",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":", process, thread);
    tide__json_write_string(t->f, label);
    fputs("}}", t->f);
}

static void write_labels(trace *t) {
    char name[2 * TIDE_MACHINE_NAME_BYTES];
    write_label(t, "process_name", ARENA_PROCESS, 0, "step");
    write_label(t, "process_name", VALUES_PROCESS, 0, "values in the arena");
    for (uint32_t q = 0; q <= t->r->machine->n_channels; q++) {
        tide__report_queue_name(t->r, q, name, sizeof name);
        write_label(t, "thread_name", ARENA_PROCESS, q, name);
    }
}

/* ---- actions ---- */

static void write_run(trace *t, uint32_t i, const tide_action *a) {
    const tide_op *op = tide_program_op(t->r->program, a->op);
    begin(t, "X", t->r->acts[i].rerun ? "recompute" : tide_phase_name(op->phase), op->name);
    fprintf(t->f, ",\"args\":{\"op\":%u,\"variant\":%u,\"action\":%u", a->op, a->variant, i);
}

static void write_move(trace *t, uint32_t i, const tide_action *a) {
    static const char *const kinds[] = {[TIDE_SAVE] = "save", [TIDE_LOAD] = "load", [TIDE_RELOCATE] = "relocate"};
    const tide_residency *moved = tide_plan_residency(t->r->plan, a->uses[0]);
    begin(t, "X", kinds[a->kind], tide_program_tensor(t->r->program, moved->tensor)->name);
    fprintf(t->f, ",\"args\":{\"tensor\":%u,\"bytes\":%" PRIu64 ",\"action\":%u", moved->tensor, moved->size_bytes, i);
}

/* An arrow from the action that was awaited to the one that stood still for it. */
static void write_flow(trace *t, uint32_t i, const tide_action *a) {
    const tide_timeline *time = t->r->timeline;
    uint32_t cause = t->r->acts[i].cause;
    if (cause == TIDE_NONE) return;
    uint64_t last_ns = tide__max_u64(time->start_ns[cause], time->end_ns[cause] - (time->end_ns[cause] > 0));
    begin(t, "s", "wait", "wait");
    fprintf(t->f, ",\"id\":%u,\"pid\":%d,\"tid\":%u", i, ARENA_PROCESS, tide_plan_action(t->r->plan, cause).queue);
    us(t->f, "ts", last_ns);
    fputc('}', t->f);
    begin(t, "f", "wait", "wait");
    fprintf(t->f, ",\"id\":%u,\"pid\":%d,\"tid\":%u,\"bp\":\"e\"", i, ARENA_PROCESS, a->queue);
    us(t->f, "ts", time->start_ns[i]);
    fputc('}', t->f);
}

static void write_actions(trace *t) {
    const tide_timeline *time = t->r->timeline;
    for (uint32_t i = 0; i < time->n_actions; i++) {
        tide_action a = tide_plan_action(t->r->plan, i);
        a.kind == TIDE_RUN ? write_run(t, i, &a) : write_move(t, i, &a);
        us(t->f, "waited_us", t->r->acts[i].wait_ns);
        fprintf(t->f, "},\"pid\":%d,\"tid\":%u", ARENA_PROCESS, a.queue);
        us(t->f, "ts", time->start_ns[i]);
        us(t->f, "dur", time->end_ns[i] - time->start_ns[i]);
        fputc('}', t->f);
        write_flow(t, i, &a);
    }
}

/* ---- counters ---- */

static void write_counter(trace *t, const char *name, uint64_t t_ns, uint64_t bytes) {
    begin(t, "C", "memory", name);
    fprintf(t->f, ",\"pid\":%d", ARENA_PROCESS);
    us(t->f, "ts", t_ns);
    fprintf(t->f, ",\"args\":{\"bytes\":%" PRIu64 "}}", bytes);
}

typedef struct change {
    uint64_t t_ns, bytes;
    bool leaves;
} change;

static int by_time(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->t_ns != y->t_ns) return x->t_ns < y->t_ns ? -1 : 1;
    return (int)y->leaves - (int)x->leaves;
}

static tide_status write_tier(trace *t, uint32_t tier) {
    uint32_t n = tide_plan_copy_count(t->r->plan);
    size_t count = 0;
    change *changes = malloc(((size_t)2 * n + 1) * sizeof *changes);
    if (!changes) return tide__fail_memory();
    for (uint32_t i = 0; i < n; i++) {
        const tide_copy *copy = tide_plan_copy(t->r->plan, i);
        const tide__report_slot *slot = &t->r->slots[i];
        if (copy->tier != tier || slot->to_ns <= slot->from_ns) continue;
        changes[count++] = (change){slot->from_ns, copy->size_bytes, false};
        changes[count++] = (change){slot->to_ns, copy->size_bytes, true};
    }
    qsort(changes, count, sizeof *changes, by_time);
    uint64_t load = 0;
    for (size_t i = 0; i < count; i++) {
        load = changes[i].leaves ? load - changes[i].bytes : load + changes[i].bytes;
        if (i + 1 < count && changes[i + 1].t_ns == changes[i].t_ns) continue;
        write_counter(t, t->r->machine->tier[tier].name, changes[i].t_ns, load);
    }
    free(changes);
    return TIDE_OK;
}

static tide_status write_counters(trace *t) {
    const tide_timeline *time = t->r->timeline;
    for (size_t i = 0; i < time->n_points; i++) write_counter(t, "arena", time->t_ns[i], time->load_bytes[i]);
    for (uint32_t tier = 0; tier < t->r->machine->n_tiers; tier++)
        if (t->r->machine->tier[tier].kind != TIDE_TIER_CLIENT) TIDE_TRY(write_tier(t, tier));
    return TIDE_OK;
}

/* ---- values ---- */

static void write_value(trace *t, tide_id id) {
    const tide_residency *d = tide_plan_residency(t->r->plan, id);
    const tide_stay *stay = &t->r->stays[id];
    const char *name = tide_report_stay_name(t->r, id), *cls = tide_class_name(tide_report_stay_class(t->r, id));
    begin(t, "b", cls, name);
    fprintf(t->f, ",\"id\":%u,\"pid\":%d,\"tid\":0", id, VALUES_PROCESS);
    us(t->f, "ts", stay->from_ns);
    fprintf(t->f, ",\"args\":{\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 "}}", d->offset_bytes, d->size_bytes);
    begin(t, "e", cls, name);
    fprintf(t->f, ",\"id\":%u,\"pid\":%d,\"tid\":0", id, VALUES_PROCESS);
    us(t->f, "ts", stay->to_ns);
    fputc('}', t->f);
}

static tide_status write_trace(trace *t) {
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":", t->f);
    tide__json_write_string(t->f, tide_program_name(t->r->program));
    fputs(",\"policy\":", t->f);
    tide__json_write_string(t->f, tide_plan_policy(t->r->plan));
    fputs(",\"machine\":", t->f);
    tide__json_write_string(t->f, t->r->machine->name);
    fputs("},\"traceEvents\":[\n", t->f);
    write_labels(t);
    write_actions(t);
    TIDE_TRY(write_counters(t));
    for (tide_id i = 0; i < tide_plan_residency_count(t->r->plan); i++) write_value(t, i);
    fputs("\n]}\n", t->f);
    return TIDE_OK;
}

tide_status tide_report_write_perfetto(const tide_report *r, const char *path) {
    TIDE_NEED(r, path);
    if (r->ran) r = r->ran;
    tide__writer w;
    TIDE_TRY(tide__writer_open(&w, path));
    trace t = {.r = r, .f = w.stream, .first = true};
    tide_status status = write_trace(&t);
    if (status == TIDE_OK) return tide__writer_commit(&w);
    tide__writer_abort(&w);
    return status;
}
