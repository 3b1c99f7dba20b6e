/* tidemark import: another tool's log becomes a program. */
#include <inttypes.h>

#include "cli.h"

typedef struct import_options {
    const char *from, *output;
    uint64_t iteration_ns;
    uint32_t unroll;
    bool drop_unread, json;
} import_options;

static void print_json(const tide_program *p, const tide_import_stats *s, const tide_liveness *l) {
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "format", s->format);
    json_bool(&j, "repeating", tide_program_is_repeating(p));
    json_u64(&j, "ops", tide_program_op_count(p));
    json_u64(&j, "tensors", tide_program_tensor_count(p));
    json_u64(&j, "carries", tide_program_carry_count(p));
    json_u64(&j, "cost_ns", tide_program_cost_ns(p));
    json_u64(&j, "release_peak_bytes", s->release_peak_bytes);
    json_u64(&j, "total_ns", s->total_ns);
    json_u64(&j, "events", s->n_events);
    json_u64(&j, "period_events", s->period_events);
    json_u64(&j, "repeat_begin", s->repeat_begin);
    json_u64(&j, "repeat_end", s->repeat_end);
    json_u64(&j, "cut", s->cut);
    json_u64(&j, "unrolled", s->unrolled);
    json_u64(&j, "peak_bytes", l->peak_bytes);
    json_end(&j);
}

static void print_human(const tide_program *p, const tide_import_stats *s, const tide_liveness *l) {
    printf("%s, from a %s log, %s\n", show_name(tide_program_name(p)), s->format,
           tide_program_is_repeating(p) ? "repeating" : "one-shot");
    if (s->period_events)
        printf("  iteration          %" PRIu64 " events, repeats from event %" PRIu64 " to %" PRIu64 " of %" PRIu64
               "\n",
               s->period_events, s->repeat_begin, s->repeat_end, s->n_events);
    if (s->unrolled > 1)
        printf("  unrolled           %u iterations: blocks outlive the birth of their successors\n", s->unrolled);
    printf("  ops, tensors       %u, %u\n", tide_program_op_count(p), tide_program_tensor_count(p));
    printf("  carried values     %u\n", tide_program_carry_count(p));
    printf("  time of the ops    %s\n", show_ns(tide_program_cost_ns(p)));
    printf("  peak, log's frees  %s (%.1f MB)\n", show_bytes(s->release_peak_bytes),
           (double)s->release_peak_bytes / 1e6);
    printf("  peak, by liveness  %s (%.1f MB)\n", show_bytes(l->peak_bytes), (double)l->peak_bytes / 1e6);
}

static tide_status show(const tide_program *program, const tide_import_stats *stats, bool json) {
    tide_liveness *liveness;
    tide_status status = tide_liveness_create(program, &liveness);
    if (status != TIDE_OK) return status;
    if (json)
        print_json(program, stats, liveness);
    else
        print_human(program, stats, liveness);
    tide_liveness_destroy(liveness);
    return TIDE_OK;
}

static tide_status convert(const char *path, const import_options *o) {
    tide_import_options options = {.size = sizeof options,
                                   .from = o->from,
                                   .iteration_time_ns = o->iteration_ns,
                                   .unroll = o->unroll,
                                   .drop_unread = o->drop_unread};
    tide_import_stats stats;
    tide_program *program;
    tide_status status = tide_program_import_stats(path, &options, &program, &stats);
    if (status != TIDE_OK) return status;
    if (o->output) status = tide_program_write(program, o->output);
    if (status == TIDE_OK && !wants_stdout(o->output)) status = show(program, &stats, o->json);
    tide_program_destroy(program);
    return status;
}

int cmd_import(int argc, char **argv) {
    import_options o = {0};
    const char *path = NULL;
    const arg_option options[] = {
        {"--from", ARG_TEXT, &o.from, "FORMAT", "dtr, singa-access or singa-malloc [by content]"},
        {"--iteration-time", ARG_DURATION, &o.iteration_ns, "TIME",
         "spread evenly over the ops, e.g. 81.57ms [the log's]"},
        {"--unroll", ARG_COUNT, &o.unroll, "K", "iterations in the program [as few as can be planned]"},
        {"--drop-unread", ARG_FLAG, &o.drop_unread, NULL, "keep no bytes that nothing reads (scratch)"},
        {"-o", ARG_TEXT, &o.output, "FILE", "write the program (JSON Lines)"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs"},
    };
    const arg_command command = {
        .usage = "import FILE [options]",
        .summary = "Turns a DTR log or a SINGA stream into a program.",
        .details = "A stream is cut to one iteration; one that does not repeat is refused (exit code 8).",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = &path,
        .min_positional = 1,
        .max_positional = 1};
    int exit_code;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    tide_status status = check_output(o.output, o.json);
    if (status == TIDE_OK) status = convert(path, &o);
    return status == TIDE_OK ? 0 : report_failure(status);
}
