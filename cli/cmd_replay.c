/* tidemark replay: a recorded stream of mallocs and frees through the pool, and what it and others made of it. */
#include <inttypes.h>

#include <tidemark/replay.h>

#include "cli.h"

typedef struct replay_args {
    size_arg min_block, alignment, limit;
    tide_replay_options replay;
    bool json;
} replay_args;

static double ratio(uint64_t a, uint64_t b) { return b ? (double)a / (double)b : 1; }

/* ---- output ---- */

static void json_other(json_out *j, const char *name, uint64_t bytes, const tide_replay_others *c) {
    json_open(j, name, '{');
    json_u64(j, "bytes", bytes);
    json_number(j, "ratio", ratio(bytes, c->load_bytes));
    json_close(j, '{');
}

/* One that has no figure is left out. */
static void json_others(json_out *j, const tide_replay_others *c) {
    const tide_replay_offline *o = &c->offline;
    json_u64(j, "stream_load_bytes", c->load_bytes);
    json_open(j, "others", '{');
    for (int k = 0; k < TIDE_REPLAY_N_ONLINE; k++)
        if (c->online[k].fits) json_other(j, c->online[k].name, c->online[k].peak_held_bytes, c);
    if (c->recorded_bytes) json_other(j, "recorded", c->recorded_bytes, c);
    if (o->two_slots_bytes) json_other(j, "smartpool_two_slots", o->two_slots_bytes, c);
    if (o->two_turns_bytes) json_other(j, "smartpool_two_turns", o->two_turns_bytes, c);
    if (c->repeats) json_other(j, "placement", o->engine_bytes, c);
    if (c->repeats) json_other(j, "placement_bound", o->bound_bytes, c);
    json_close(j, '{');
}

static void print_json(const tide_replay_result *r, const tide_replay_others *c) {
    json_out j;
    json_begin(&j, stdout);
    json_u64(&j, "events", r->n_events);
    json_u64(&j, "mallocs", r->stats.n_mallocs);
    json_u64(&j, "period_events", r->stats.period_events);
    json_u64(&j, "first_plan_event", r->stats.first_plan_event);
    json_u64(&j, "learn_events", r->learn_events);
    json_u64(&j, "learn_peak_bytes", r->learn_peak_held_bytes);
    json_u64(&j, "iterations", r->n_iterations);
    json_u64(&j, "watched", r->n_watched);
    json_u64(&j, "planned", r->n_planned);
    json_number(&j, "worst_iteration", r->worst_share);
    json_u64(&j, "load_bytes", r->peak_live_bytes);
    json_u64(&j, "footprint_bytes", r->peak_held_bytes);
    json_u64(&j, "plan_bytes", r->stats.plan_bytes);
    json_u64(&j, "plan_load_bytes", r->stats.plan_load_bytes);
    json_u64(&j, "plans_made", r->stats.n_plans_made);
    json_u64(&j, "plan_ns", r->stats.plan_ns);
    json_u64(&j, "extra", r->n_extra);
    json_u64(&j, "missing", r->n_missing);
    json_u64(&j, "deviations", r->stats.n_deviations);
    json_u64(&j, "longest_off_events", r->longest_off_events);
    json_u64(&j, "conflicts", r->stats.n_conflicts);
    json_others(&j, c);
    json_end(&j);
}

static void print_row(const char *name, uint64_t bytes, uint64_t load_bytes) {
    printf("  %-24s %10.1f MiB  %6.3f\n", name, (double)bytes / 0x1p20, ratio(bytes, load_bytes));
}

static void print_plan(const tide_replay_result *r) {
    const tide_pool_stats *s = &r->stats;
    printf("  iteration          %u events, planned after %" PRIu64 " in %s\n", s->period_events, s->first_plan_event,
           show_ns(s->plan_ns));
    printf("  plan               %s for a load of %s (%.3f), by %s\n", show_bytes(s->plan_bytes),
           show_bytes(s->plan_load_bytes), ratio(s->plan_bytes, s->plan_load_bytes), s->plan_algorithm);
    printf("  from the plan      %.2f%% of %" PRIu64 " mallocs in %" PRIu64 " iterations; %.2f%% of the worst\n",
           100 * ratio(r->n_planned, r->n_watched), r->n_watched, r->n_iterations, 100 * r->worst_share);
    printf("  added, left out    %" PRIu64 ", %" PRIu64 " mallocs; off the plan for at most %" PRIu64 " events\n",
           r->n_extra, r->n_missing, r->longest_off_events);
}

/* 0: no figure. */
static void print_other(const char *name, uint64_t bytes, const tide_replay_others *c, const char *none) {
    if (bytes)
        print_row(name, bytes, c->load_bytes);
    else
        printf("  %-24s %14s\n", name, none);
}

static void print_others(const tide_replay_others *c) {
    static const char *const names[TIDE_REPLAY_N_ONLINE] = {"first fit", "best fit", "like CnMem", "like PyTorch's"};
    printf("\n  others, whole stream\n");
    for (int k = 0; k < TIDE_REPLAY_N_ONLINE; k++)
        print_other(names[k], c->online[k].fits ? c->online[k].peak_held_bytes : 0, c, "does not fit");
    if (c->recorded_bytes) print_row("as recorded", c->recorded_bytes, c->load_bytes);
    if (!c->repeats) return;
    printf("\n  placed offline, one iteration\n");
    print_other("SmartPool, two slots", c->offline.two_slots_bytes, c, "too large for it");
    print_other("SmartPool, two turns", c->offline.two_turns_bytes, c, "too large for it");
    print_row("plan/place", c->offline.engine_bytes, c->load_bytes);
    print_row("proved bound", c->offline.bound_bytes, c->load_bytes);
}

static void print_pool(const tide_replay_result *r, const tide_replay_others *c) {
    print_plan(r);
    printf("\n  %-24s %14s  %6s\n", "peak", "bytes", "/ load");
    print_row("load", r->peak_live_bytes, r->peak_live_bytes);
    print_row("pool", r->peak_held_bytes, r->peak_live_bytes);
    print_row("pool, while learning", r->learn_peak_held_bytes, r->peak_live_bytes);
    print_others(c);
}

static void print_human(const char *path, const tide_replay_result *r, const tide_replay_others *c) {
    printf("%s\n  stream             %" PRIu64 " events, %" PRIu64 " mallocs\n", path, r->n_events, r->stats.n_mallocs);
    if (r->stats.n_plans_made) {
        print_pool(r, c);
        return;
    }
    printf("  no iteration found: every block came from the backing\n");
    print_others(c);
}

/* ---- the command ---- */

static tide_status take_sizes(replay_args *a) {
    tide_pool_options *o = &a->replay.pool;
    if (a->min_block.budget.kind || a->alignment.budget.kind || a->limit.budget.kind)
        return complain(TIDE_E_ARGUMENT, "--min-block, --alignment and --limit are bytes, not percentages");
    if (a->min_block.given) o->min_block_bytes = a->min_block.budget.bytes;
    if (a->alignment.given) o->alignment = a->alignment.budget.bytes;
    if (a->limit.given) a->replay.limit_bytes = a->limit.budget.bytes;
    return TIDE_OK;
}

static tide_status replay_file(const char *path, replay_args *a) {
    tide_replay_result result = {.size = sizeof result};
    tide_replay_others others = {.size = sizeof others};
    tide_status status = take_sizes(a);
    if (status == TIDE_OK) status = tide_replay_file(path, &a->replay, &result, &others);
    if (status != TIDE_OK) return status;
    if (a->json)
        print_json(&result, &others);
    else
        print_human(path, &result, &others);
    return TIDE_OK;
}

int cmd_replay(int argc, char **argv) {
    replay_args a = {0};
    const char *path = NULL;
    tide_replay_options_init(&a.replay);
    const arg_option options[] = {
        {"--from", ARG_TEXT, &a.replay.from, "FORMAT", "singa-access or singa-malloc [by content]"},
        {"--min-block", ARG_SIZE, &a.min_block, "BYTES", "smaller blocks are not watched [0]"},
        {"--alignment", ARG_SIZE, &a.alignment, "BYTES", "of every block [256]"},
        {"--plan-time", ARG_NUMBER, &a.replay.pool.plan_seconds, "S", "how long a plan may be improved [0.5]"},
        {"--deviate-every", ARG_COUNT, &a.replay.deviate_every, "N",
         "add or leave out a malloc about every N iterations [never]"},
        {"--seed", ARG_U64, &a.replay.seed, "N", "of the deviations [0]"},
        {"--limit", ARG_SIZE, &a.limit, "BYTES", "what the other online allocators have [no limit]"},
        {"--json", ARG_FLAG, &a.json, NULL, "for programs"},
    };
    const arg_command command = {
        .usage = "replay STREAM [options]",
        .summary = "Runs a recorded stream of mallocs and frees through the pool and through others.",
        .details =
            "Only addresses are handed out, no memory. The pool finds the iteration while the stream runs, places\n"
            "its blocks in one region and serves them from there. Beside it: what other allocators hold for the\n"
            "stream, and how SmartPool's published heuristic and this placement engine lay out its iteration.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = &path,
        .min_positional = 1,
        .max_positional = 1};
    int exit_code;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    tide_status status = replay_file(path, &a);
    return status == TIDE_OK ? 0 : report_failure(status);
}
