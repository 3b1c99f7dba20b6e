/* See train_options.h. */
#include "train_options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool is_mode(const train_options *o, const char *mode) { return strcmp(o->mode, mode) == 0; }

/* ---- which trainings ---- */

/* Without what follows its ':'. */
static bool is_policy(const char *name) {
    size_t length = strcspn(name, ":");
    for (uint32_t i = 0; tide_policy_name(i, NULL); i++)
        if (strlen(tide_policy_name(i, NULL)) == length && strncmp(tide_policy_name(i, NULL), name, length) == 0)
            return true;
    return false;
}

static tide_status no_policy(const char *name, size_t length) {
    tide_nearest near = tide_nearest_begin(name, length);
    for (uint32_t i = 0; tide_policy_name(i, NULL); i++)
        tide_nearest_offer(&near, tide_policy_name(i, NULL), strlen(tide_policy_name(i, NULL)));
    return complain(TIDE_E_ARGUMENT, "there is no policy \"%.*s\"; %s%s%s", (int)length, name,
                    near.best ? "did you mean " : "`tidemark train --help` lists them", near.best ? near.best : "",
                    near.best ? "?" : "");
}

/* Checked before the first run, not after it. */
static tide_status add_run(run_list *list, const char *name, size_t length) {
    char *policy = list->policy[list->n];
    snprintf(policy, POLICY_BYTES, "%.*s", (int)length, name);
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->policy[i], policy) == 0)
            return complain(TIDE_E_ARGUMENT, "policy \"%s\" is listed twice", policy);
    if (length >= POLICY_BYTES || !is_policy(policy)) return no_policy(name, length);
    list->n++;
    return TIDE_OK;
}

tide_status list_runs(const train_options *o, run_list *list) {
    const char *policy = o->policy              ? o->policy
                         : is_mode(o, "online") ? "delta"
                         : is_mode(o, "auto")   ? "hybrid"
                                                : default_policy(NULL, &o->budgets);
    list->n = 0;
    if (!o->compare) {
        const char *reference = strcmp(policy, "liveness") == 0 ? "none" : "liveness";
        if (o->verify_bits) (void)add_run(list, reference, strlen(reference));
        return add_run(list, policy, strlen(policy));
    }
    for (const char *at = o->compare;; at++) {
        size_t length = strcspn(at, ",");
        if (list->n == MAX_RUNS) return complain(TIDE_E_ARGUMENT, "--compare takes at most %d policies", MAX_RUNS);
        tide_status status = add_run(list, at, length);
        at += length;
        if (status != TIDE_OK || !*at) return status;
    }
}

/* ---- what goes together ---- */

static tide_status check_mode(const train_options *o) {
    if (!is_mode(o, "planned") && !is_mode(o, "online") && !is_mode(o, "auto"))
        return complain(TIDE_E_ARGUMENT, "--mode: \"%s\" is not planned, online or auto", o->mode);
    if (o->record && is_mode(o, "online"))
        return complain(TIDE_E_ARGUMENT, "--record is for runs that follow a plan; leave --mode online out");
    if (o->plan_cache && is_mode(o, "online"))
        return complain(TIDE_E_ARGUMENT, "--plan-cache is for runs that follow a plan; leave --mode online out");
    if (o->plan_cache && access(o->plan_cache, R_OK | W_OK | X_OK) != 0)
        return complain(TIDE_E_IO, "--plan-cache: cannot use %s: %s", o->plan_cache, strerror(errno));
    if (varies(&o->vary) && (o->record || o->decisions || o->model.micro || o->model.accumulate ||
                             o->budgets.arena.budget.kind == TIDE_BUDGET_SMALLEST))
        return complain(
            TIDE_E_ARGUMENT,
            "--record, --decisions, --micro, --accumulate and --budget min are for networks that do not change; leave"
            " %s out",
            o->vary.min_length ? "--min-length" : "--drop-path");
    return TIDE_OK;
}

static bool runs_manual(const run_list *list) {
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->policy[i], "manual") == 0) return true;
    return false;
}

/* The arena's budget is then the total, unless another one was given. */
static bool is_total(const size_arg *total, const size_arg *arena) {
    return total->budget.kind == TIDE_BUDGET_BYTES && arena->budget.kind == TIDE_BUDGET_BYTES &&
           arena->budget.bytes == total->budget.bytes;
}

static tide_status check_trainings(const train_options *o, const run_list *list) {
    if (o->weights.file && o->resume)
        return complain(TIDE_E_ARGUMENT, "--resume has weights of its own; leave --weights out");
    if (o->steps && o->epochs) return complain(TIDE_E_ARGUMENT, "--steps and --epochs both say when to end");
    if (o->threads && strcmp(o->device, "cpu") != 0)
        return complain(TIDE_E_ARGUMENT, "--threads is for device cpu, not %s", o->device);
    if (o->total.given && !is_total(&o->total, &o->budgets.arena))
        return complain(TIDE_E_ARGUMENT, "--total-budget is in bytes, and instead of --budget");
    if (o->compare && o->verify_bits)
        return complain(TIDE_E_ARGUMENT, "--compare verifies the bits already; leave --verify-bits out");
    if (o->compare && o->policy) return complain(TIDE_E_ARGUMENT, "--compare lists the policies; leave --policy out");
    if (o->decisions && !runs_manual(list)) return complain(TIDE_E_ARGUMENT, "--decisions is for policy manual");
    return TIDE_OK;
}

/* Also what the training would only find out at its end. */
static tide_status check_files(const train_options *o, const run_list *list) {
    if (wants_stdout(o->record)) return complain(TIDE_E_ARGUMENT, "--record needs a file of its own");
    if (wants_stdout(o->log)) return complain(TIDE_E_ARGUMENT, "--log needs a file of its own");
    if (o->record && o->save.checkpoint && strcmp(o->record, o->save.checkpoint) == 0)
        return complain(TIDE_E_ARGUMENT, "--record and --checkpoint are the same file");
    if (o->save.checkpoint && list->n > 1)
        return complain(TIDE_E_ARGUMENT, "--checkpoint is for one training; leave --compare and --verify-bits out");
    if (o->save_weights && list->n > 1)
        return complain(TIDE_E_ARGUMENT, "--save-weights is for one training; leave --compare and --verify-bits out");
    if (o->save_weights && o->save.checkpoint && strcmp(o->save_weights, o->save.checkpoint) == 0)
        return complain(TIDE_E_ARGUMENT, "--save-weights and --checkpoint are the same file");
    tide_status status = o->save.checkpoint ? tide_file_check(o->save.checkpoint, true) : TIDE_OK;
    if (status == TIDE_OK && o->save_weights) status = tide_file_check(o->save_weights, true);
    return status == TIDE_OK && o->record ? tide_file_check(o->record, false) : status;
}

/* What to do about a loss that is not finite. */
static tide_status check_on_nan(train_options *o) {
    if (!o->on_nan || strcmp(o->on_nan, "stop") == 0) return TIDE_OK;
    if (strcmp(o->on_nan, "skip") != 0)
        return complain(TIDE_E_ARGUMENT, "--on-nan: \"%s\" is not stop or skip", o->on_nan);
    if (o->model.fused_update)
        return complain(TIDE_E_ARGUMENT, "--on-nan skip and --fused-update do not go together: a fused update cannot"
                                         " wait for all gradients");
    o->model.skip_nonfinite = true;
    return TIDE_OK;
}

/* Before data is read and unpacked, which may take a while. */
static tide_status check_search(const train_options *o) {
    tide_effort effort;
    tide_order order;
    return parse_effort(o->effort, &effort) && parse_order(o->order, &order) ? TIDE_OK : TIDE_E_ARGUMENT;
}

static tide_status check_shard(train_options *o) {
    if (o->lenders && !o->lent.given) return complain(TIDE_E_ARGUMENT, "--lenders need a --peer-budget to lend");
    if (o->lent.given && o->lent.budget.kind != TIDE_BUDGET_BYTES)
        return complain(TIDE_E_ARGUMENT, "--peer-budget is in bytes");
    if (!o->supervise && (o->restarts || o->launcher))
        return complain(TIDE_E_ARGUMENT, "--restarts and --launcher need --supervise");
    o->least_shard = TIDE_SHARD_NONE;
    o->most_shard = o->shard && strcmp(o->shard, "auto") == 0 ? TIDE_SHARD_ALL : TIDE_SHARD_NONE;
    if (!o->shard || o->most_shard == TIDE_SHARD_ALL) return TIDE_OK;
    if (!parse_shard(o->shard, &o->least_shard))
        return complain(TIDE_E_ARGUMENT, "--shard: \"%s\" is not none, optimizer, all or auto", o->shard);
    o->most_shard = o->least_shard;
    return TIDE_OK;
}

tide_status check_train_options(train_options *o, const run_list *list) {
    tide_status status = check_mode(o);
    if (status == TIDE_OK) status = check_shard(o);
    if (status == TIDE_OK && !parse_bits(o->bits, &o->bits_any)) status = TIDE_E_ARGUMENT;
    if (status == TIDE_OK && o->bits_any && o->verify_bits)
        status = complain(TIDE_E_ARGUMENT, "--bits any lets the bits differ; leave --verify-bits out");
    if (status == TIDE_OK) status = check_search(o);
    if (status == TIDE_OK) status = check_on_nan(o);
    if (status == TIDE_OK) status = check_save_args(&o->save);
    if (status == TIDE_OK) status = check_trainings(o, list);
    if (status == TIDE_OK) status = check_weights_args(&o->weights);
    if (status == TIDE_OK) status = check_data_args(&o->data);
    if (status == TIDE_OK) status = check_vary_args(&o->vary);
    if (status == TIDE_OK) status = check_schedule_args(&o->schedule);
    return status == TIDE_OK ? check_files(o, list) : status;
}

/* ---- reading ---- */

#define RANK_OPTIONS(o)                                                                                        \
    {"--shard", ARG_TEXT, &(o).shard, "none|optimizer|all|auto",                                               \
     "of several ranks: what lies at one of them only; auto: the least with which all ranks fit [none]"},      \
        {"--peer-budget", ARG_SIZE, &(o).lent, "SIZE",                                                         \
         "memory that each rank lends, or each of --lenders: a tier of the others, and no more than that"},    \
        {"--lenders", ARG_COUNT, &(o).lenders, "N",                                                            \
         "so many ranks, the last ones, do not train: they lend --peer-budget [0]"},                           \
        {"--supervise", ARG_COUNT, &(o).supervise, "RANKS",                                                    \
         "start so many ranks, and go on from the last checkpoint with those that are left when one is lost"}, \
        {"--restarts", ARG_COUNT, &(o).restarts, "N", "with --supervise: how often at most [10]"}, {           \
        "--launcher", ARG_TEXT, &(o).launcher, "COMMAND",                                                      \
            "with --supervise: what starts ranks, \"-n RANKS tidemark ...\" follows [mpirun]"                  \
    }

bool read_train_options(int argc, char **argv, train_options *o, int *exit_code) {
    *o = (train_options){.machine = "cpu",
                         .effort = "normal",
                         .device = "cpu",
                         .mode = "planned",
                         .data = {.seed = 1},
                         .schedule = NO_SCHEDULE,
                         .vary = NO_VARIATION};
    const arg_option options[] = {
        MODEL_OPTIONS(o->model),
        {"--dtype", ARG_TEXT, &o->model.dtype, "f32|bf16", "of activations and their gradients [f32]"},
        DATA_OPTIONS(o->data),
        {"--steps", ARG_COUNT, &o->steps, "N", "training steps [100]"},
        {"--epochs", ARG_COUNT, &o->epochs, "N", "or how often every sample is shown"},
        SAVE_OPTIONS(o->save),
        {"--resume", ARG_TEXT, &o->resume, "FILE",
         "go on from a checkpoint, up to --steps or --epochs in all [as many as it was to have]"},
        WEIGHTS_OPTIONS(o->weights),
        {"--save-weights", ARG_TEXT, &o->save_weights, "FILE",
         "write the weights alone at the end, as torchvision and transformers load them"},
        SCHEDULE_OPTIONS(o->schedule),
        VARY_OPTIONS(o->vary),
        {"--seed", ARG_U64, &o->data.seed, "N", "of weights, order and dropout [1]"},
        {"--policy", ARG_TEXT, &o->policy, "NAME", "see above [hybrid with a --budget, else liveness]"},
        {"--effort", ARG_TEXT, &o->effort, "low|normal|high", "how long the policy may search [normal]"},
        ORDER_OPTION(o->order),
        {"--mode", ARG_TEXT, &o->mode, "NAME",
         "planned; online: delta, cache or dtr decide as it goes; auto: one step so, then planned [planned]"},
        {"--plan-cache", ARG_TEXT, &o->plan_cache, "FOLDER", "keep plans there, and begin with one of them [nowhere]"},
        {"--decisions", ARG_TEXT, &o->decisions, "FILE", "for policy manual"},
        {"--compare", ARG_TEXT, &o->compare, "LIST", "train under each of these policies, compare the bits"},
        {"--budget", ARG_BUDGET, &o->budgets.arena, "SIZE",
         "bytes of the arena; 60% is of the unconstrained one; min is the smallest that works [no limit]"},
        {"--total-budget", ARG_SIZE, &o->total, "SIZE",
         "or bytes of the whole process: code, threads, planning, RAM tiers and arena [no limit]"},
        {"--host-budget", ARG_SIZE, &o->budgets.host, "SIZE",
         "bytes of RAM tiers [no limit; on the cpu in a --budget 0]"},
        {"--disk-budget", ARG_SIZE, &o->budgets.disk, "SIZE", "bytes of disk tiers [no limit]"},
        {"--disk-path", ARG_TEXT, &o->disk_path, "FOLDER", "where spilled bytes go [$TMPDIR, else /tmp]"},
        {"--no-disk-checksums", ARG_FLAG, &o->no_disk_checksums, NULL, "believe what comes back from disk"},
        {"--no-disk-packing", ARG_FLAG, &o->no_disk_packing, NULL, "write zeros to disk, too"},
        {"--machine", ARG_TEXT, &o->machine, "NAME", "profile of tiers and channels: a name or a file [cpu]"},
        {"--device", ARG_TEXT, &o->device, "NAME", "cpu, opencl, cuda or cuda:N, see `tidemark devices` [cpu]"},
        RANK_OPTIONS(*o),
        {"--threads", ARG_COUNT, &o->threads, "N", "compute threads of cpu [all cores]"},
        BITS_OPTION(o->bits, "other roundings are accepted: variants of ops, and ranks on machines that differ"),
        {"--verify-bits", ARG_FLAG, &o->verify_bits, NULL, "train unconstrained as well and compare bit for bit"},
        {"--record", ARG_TEXT, &o->record, "FILE", "write what was planned and measured, for `tidemark report`"},
        {"--log", ARG_TEXT, &o->log, "FILE",
         "a line per step: loss, rate, time, memory; JSON Lines, or CSV by its name"},
        {"--on-nan", ARG_TEXT, &o->on_nan, "stop|skip",
         "when the loss is not finite: end the training, or go on without that step's update [stop]"},
        {"--quiet", ARG_FLAG, &o->quiet, NULL, "no progress"},
        {"--json", ARG_FLAG, &o->json, NULL, "for programs"},
    };
    const arg_command command = {.usage = "train MODEL [options]",
                                 .summary =
                                     "Trains a model from a verified plan, inside a byte budget, to the same bits.",
                                 .details = policies_text(),
                                 .options = options,
                                 .n_options = sizeof options / sizeof *options,
                                 .positional = &o->spec,
                                 .min_positional = 1,
                                 .max_positional = 1};
    bool read = args_parse(&command, argc, argv, exit_code);
    if (o->total.given && !o->budgets.arena.given) o->budgets.arena = o->total;
    return read;
}
