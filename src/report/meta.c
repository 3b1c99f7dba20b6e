/* See meta.h. */
#include "report/meta.h"

#include <inttypes.h>
#include <math.h>

#include "base/json.h"

static void member_u64(FILE *f, const char *key, uint64_t value) { fprintf(f, "\"%s\":%" PRIu64, key, value); }

static void member_text(FILE *f, const char *key, const char *value) {
    fprintf(f, "\"%s\":", key);
    tide__json_write_string(f, value);
}

/* Limits: UINT64_MAX is none. */
static void member_limit(FILE *f, const char *key, uint64_t value) {
    if (value == UINT64_MAX)
        fprintf(f, "\"%s\":null", key);
    else
        member_u64(f, key, value);
}

static void member_number(FILE *f, const char *key, double value) {
    if (isfinite(value))
        fprintf(f, "\"%s\":%.9g", key, value);
    else
        fprintf(f, "\"%s\":null", key);
}

static void write_program(const tide_report *r, FILE *f) {
    const tide_liveness *l = r->liveness;
    fputs("\"program\":{", f);
    member_text(f, "name", tide_program_name(r->program));
    fprintf(f, ",\"repeating\":%s,", tide_program_is_repeating(r->program) ? "true" : "false");
    member_u64(f, "total_bytes", l->total_bytes);
    fputc(',', f);
    member_u64(f, "peak_bytes", l->peak_bytes);
    fputc(',', f);
    member_u64(f, "resident_bytes", l->resident_bytes);
    fprintf(f, ",\"peak_op\":%" PRId64 "},", l->peak_op == TIDE_NONE ? -1 : (int64_t)l->peak_op);
}

static void write_plan(const tide_report *r, FILE *f) {
    const tide_prediction *p = &r->timeline->prediction;
    const struct {
        const char *key;
        uint64_t value;
    } figures[] = {
        {"arena_bytes", tide_plan_arena_bytes(r->plan)},
        {"peak_bytes", p->peak_bytes},
        {"peak_ns", r->peak_ns},
        {"step_ns", p->step_ns},
        {"compute_ns", p->compute_ns},
        {"recomputed_ns", p->recomputed_ns},
        {"exposed_ns", p->exposed_ns},
        {"moved_bytes", p->moved_bytes},
        {"transfer_ns", p->transfer_ns},
        {"relocated_bytes", p->relocated_bytes},
        {"relocated_ns", p->relocated_ns},
        {"whole_bytes", r->whole_bytes},
        {"whole_ns", r->whole_ns},
    };
    fputs("\"plan\":{", f);
    member_text(f, "policy", tide_plan_policy(r->plan));
    fprintf(f, ",\"bits\":\"%s\",\"fingerprint\":\"%016" PRIx64 "\",\"peak_action\":%" PRId64 ",",
            tide_plan_bits_any(r->plan) ? "any" : "same", tide_plan_fingerprint(r->plan),
            r->peak_action == TIDE_NONE ? -1 : (int64_t)r->peak_action);
    member_limit(f, "budget_bytes", r->budget_bytes);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        fputc(',', f);
        member_u64(f, figures[i].key, figures[i].value);
    }
    fputs("},", f);
}

static void write_machine(const tide_report *r, FILE *f) {
    static const char *const kinds[] = {
#define NAME(e, text) text,
        TIDE_TIER_TABLE(NAME)
#undef NAME
    };
    const tide_machine *m = r->machine;
    char name[2 * TIDE_MACHINE_NAME_BYTES];
    fputs("\"machine\":{", f);
    member_text(f, "name", m->name);
    fputc(',', f);
    member_text(f, "source", m->source);
    fputc(',', f);
    member_u64(f, "memory_bytes", m->memory_bytes);
    fputc(',', f);
    member_u64(f, "reserve_bytes", m->reserve_bytes);
    fputs(",\"tiers\":[", f);
    for (uint32_t t = 0; t < m->n_tiers; t++) {
        fprintf(f, "%s{\"kind\":\"%s\",", t ? "," : "", kinds[m->tier[t].kind]);
        member_text(f, "name", m->tier[t].name);
        fputc(',', f);
        member_limit(f, "capacity_bytes", m->tier[t].capacity_bytes);
        fputc(',', f);
        member_u64(f, "bytes", tide_plan_tier_bytes(r->plan, t));
        fputc('}', f);
    }
    fputs("],\"queues\":[", f);
    for (uint32_t q = 0; q <= m->n_channels; q++) {
        tide__report_queue_name(r, q, name, sizeof name);
        if (q) fputc(',', f);
        tide__json_write_string(f, name);
    }
    fputs("]},", f);
}

static void write_words(FILE *f) {
    fputs("\"classes\":[", f);
    for (int i = 0; i <= TIDE_CLASS_OTHER; i++) fprintf(f, "%s\"%s\"", i ? "," : "", tide_class_name((tide_class)i));
    fputs("],\"phases\":[", f);
    for (int i = 0; i <= TIDE_UPDATE; i++) fprintf(f, "%s\"%s\"", i ? "," : "", tide_phase_name((tide_phase)i));
    fputs("],\"fates\":[", f);
#define FATE(e, name, text) fprintf(f, "%s[\"%s\",\"%s\"]", e ? "," : "", name, text);
    TIDE_FATE_TABLE(FATE)
#undef FATE
    fputc(']', f);
}

static void write_run(const tide__measured_run *run, FILE *f) {
    const struct {
        const char *key;
        uint64_t value;
    } figures[] = {{"arena_bytes", run->arena_bytes},
                   {"tier_bytes", run->tier_bytes},
                   {"step_ns", run->step_ns},
                   {"saved_bytes", run->saved_bytes},
                   {"loaded_bytes", run->loaded_bytes},
                   {"reruns", run->reruns},
                   {"disk_written_bytes", run->disk_written_bytes},
                   {"disk_read_bytes", run->disk_read_bytes}};
    fputc('{', f);
    member_text(f, "policy", run->policy);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        fputc(',', f);
        member_u64(f, figures[i].key, figures[i].value);
    }
    fputc(',', f);
    member_number(f, "last_loss", run->last_loss);
    fputc(',', f);
    member_number(f, "accuracy", run->accuracy);
    fprintf(f, ",\"same_bits\":%s}", !run->compared ? "null" : run->same_bits ? "true" : "false");
}

static void write_measured(const tide__measured *m, FILE *f) {
    if (m->runs.count == 0) return;
    fputs(",\"measured\":{", f);
    member_text(f, "model", m->model);
    fputc(',', f);
    member_u64(f, "steps", m->steps);
    fputs(",\"runs\":[", f);
    for (size_t i = 0; i < m->runs.count; i++) {
        if (i) fputc(',', f);
        write_run(&m->runs.data[i], f);
    }
    fputs("]}", f);
}

/* The figures of the plan again, as they came out. */
static void write_ran(const tide_report *ran, FILE *f) {
    if (!ran) return;
    const tide_prediction *p = &ran->timeline->prediction;
    fprintf(f,
            ",\"ran\":{\"step_ns\":%" PRIu64 ",\"compute_ns\":%" PRIu64 ",\"recomputed_ns\":%" PRIu64
            ",\"exposed_ns\":%" PRIu64 ",\"transfer_ns\":%" PRIu64 ",\"relocated_ns\":%" PRIu64
            ",\"peak_bytes\":%" PRIu64 ",\"peak_ns\":%" PRIu64 "}",
            p->step_ns, p->compute_ns, p->recomputed_ns, p->exposed_ns, p->transfer_ns, p->relocated_ns, p->peak_bytes,
            ran->peak_ns);
}

static void write_compared(const tide__compared *c, FILE *f) {
    if (c->points.count == 0) return;
    fputs(",\"compared\":{", f);
    member_text(f, "program", c->program);
    fputc(',', f);
    member_text(f, "machine", c->machine);
    fputc(',', f);
    member_u64(f, "whole_bytes", c->whole_bytes);
    fputc(',', f);
    member_u64(f, "whole_ns", c->whole_ns);
    fputs(",\"points\":[", f);
    for (size_t i = 0; i < c->points.count; i++) {
        const tide__point *p = &c->points.data[i];
        fprintf(f, "%s{", i ? "," : "");
        member_text(f, "policy", p->policy);
        fprintf(f, ",\"fits\":%s,\"budget_bytes\":%" PRIu64 ",\"arena_bytes\":%" PRIu64 ",\"step_ns\":%" PRIu64 "}",
                p->fits ? "true" : "false", p->budget_bytes, p->arena_bytes, p->step_ns);
    }
    fputs("]}", f);
}

tide_status tide__report_write_meta(const tide_report *r, FILE *f) {
    member_text(f, "version", tide_version());
    fputc(',', f);
    write_program(r, f);
    write_plan(r, f);
    write_machine(r, f);
    write_words(f);
    write_measured(tide__report_measured(r), f);
    write_ran(r->ran, f);
    write_compared(&r->compared, f);
    return tide__report_write_ranks(r, f);
}
