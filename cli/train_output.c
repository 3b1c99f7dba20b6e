/* See train_output.h. */
#include "train_output.h"

#include <inttypes.h>
#include <string.h>

bool compare_bits(outcome *runs, int n, uint64_t steps) {
    bool all = true;
    for (int i = 0; i < n; i++) {
        runs[i].same_bits =
            runs[i].hash == runs[0].hash && memcmp(runs[i].losses, runs[0].losses, steps * sizeof *runs[i].losses) == 0;
        all = all && runs[i].same_bits;
    }
    return all;
}

static const char *bits_text(const outcome *runs, int i, int n) {
    if (n == 1) return "";
    if (i == 0) return "(reference)";
    return runs[i].same_bits ? "yes" : "NO";
}

static const char *accuracy_text(const outcome *run, char text[16]) {
    if (run->judged != TIDE_OK) return "-";
    snprintf(text, 16, "%.2f %%", 100 * run->test.accuracy);
    return text;
}

static void print_disk(const outcome *run) {
    if (!run->disk_written_bytes && !run->disk_read_bytes) return;
    printf("%-10s disk: %s written and %s read per step, for ", run->policy, show_bytes(run->disk_written_bytes),
           show_bytes(run->disk_read_bytes));
    printf("%s saved and %s loaded\n", show_bytes(run->saved_bytes), show_bytes(run->loaded_bytes));
}

static void print_ranks(const outcome *run) {
    if (!run->ranks) return;
    printf("%-10s %12s %12s %10s %12s %10s  host (%s, --shard %s)\n", "rank", "arena", "tiers", "step", "sent",
           "messages", run->policy, shard_name(run->shard));
    for (uint32_t r = 0; r < run->n_ranks; r++) {
        const rank_use *u = &run->ranks[r];
        printf("%-10u %12s %12s %10s %12s %10s  %s\n", r, show_bytes(u->arena_bytes), show_bytes(u->tier_bytes),
               show_ns(u->step_ns), show_bytes(u->sent_bytes), show_ns(u->messages_ns), show_name(u->host));
    }
}

void print_runs(const outcome *runs, int n, uint64_t steps) {
    char text[16];
    printf("%-10s %12s %12s %10s %8s %9s %9s%s\n", "policy", "arena", "tiers", "step", "re-runs", "loss", "accuracy",
           n > 1 ? "  same bits" : "");
    for (int i = 0; i < n; i++)
        printf("%-10s %12s %12s %10s %8u %9s %9s%s%s\n", runs[i].policy, show_bytes(runs[i].arena_bytes),
               show_bytes(runs[i].tier_bytes), show_ns(runs[i].step_ns), runs[i].n_reruns,
               show_loss((double)runs[i].losses[steps - 1]), accuracy_text(&runs[i], text), n > 1 ? "  " : "",
               bits_text(runs, i, n));
    for (int i = 0; i < n; i++) print_disk(&runs[i]);
    for (int i = 0; i < n; i++) print_ranks(&runs[i]);
    if (runs[0].bits_any) printf("bits may differ: --bits any accepts other roundings\n");
}

static void ranks_json(json_out *j, const outcome *run) {
    if (!run->ranks) return;
    json_text(j, "shard", shard_name(run->shard));
    json_open(j, "ranks", '[');
    for (uint32_t r = 0; r < run->n_ranks; r++) {
        const rank_use *u = &run->ranks[r];
        json_open(j, NULL, '{');
        json_text(j, "host", u->host);
        json_u64(j, "arena_bytes", u->arena_bytes);
        json_u64(j, "tier_bytes", u->tier_bytes);
        json_u64(j, "step_ns", u->step_ns);
        json_u64(j, "sent_bytes", u->sent_bytes);
        json_u64(j, "messages_ns", u->messages_ns);
        json_close(j, '{');
    }
    json_close(j, '[');
}

static void run_json(json_out *j, const outcome *run, int n, uint64_t steps) {
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, run->hash);
    json_open(j, NULL, '{');
    json_text(j, "policy", run->policy);
    json_u64(j, "arena_bytes", run->arena_bytes);
    json_u64(j, "tier_bytes", run->tier_bytes);
    json_open(j, "tiers", '{');
    for (uint32_t t = 0; t < run->machine->n_tiers; t++)
        if (run->machine->tier[t].kind != TIDE_TIER_CLIENT) json_u64(j, run->machine->tier[t].name, run->tiers[t]);
    json_close(j, '{');
    json_u64(j, "step_ns", run->step_ns);
    json_u64(j, "saved_bytes", run->saved_bytes);
    json_u64(j, "loaded_bytes", run->loaded_bytes);
    json_u64(j, "disk_written_bytes", run->disk_written_bytes);
    json_u64(j, "disk_read_bytes", run->disk_read_bytes);
    json_u64(j, "relocated_bytes", run->relocated_bytes);
    json_u64(j, "reruns", run->n_reruns);
    json_number(j, "first_loss", (double)run->losses[0]);
    json_number(j, "last_loss", (double)run->losses[steps - 1]);
    json_number(j, "accuracy", run->test.accuracy);
    json_number(j, "test_loss", run->test.loss);
    json_text(j, "bits", hash);
    ranks_json(j, run);
    if (n > 1) json_bool(j, "same_bits", run->same_bits);
    json_close(j, '{');
}

void print_runs_json(FILE *stream, const char *model, const outcome *runs, int n, uint64_t steps) {
    json_out j;
    json_begin(&j, stream);
    json_text(&j, "model", model);
    json_u64(&j, "steps", steps);
    json_bool(&j, "bits_may_differ", runs[0].bits_any);
    json_open(&j, "runs", '[');
    for (int i = 0; i < n; i++) run_json(&j, &runs[i], n, steps);
    json_close(&j, '[');
    json_end(&j);
}
