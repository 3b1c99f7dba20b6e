/* What the commands share: exit codes, messages, loading, and small output helpers. cli/ is the only place that
 * prints, prompts or exits. Data goes to stdout, messages to stderr. */
#ifndef TIDE_CLI_CLI_H
#define TIDE_CLI_CLI_H

#include <stdio.h>

#include <tidemark/tidemark.h>

#include "args.h"

enum { EXIT_USAGE = 2 };

/* One per command file; argv[0] is the command's name; returns the exit code. */
int cmd_model(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_fit(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_place(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_report(int argc, char **argv);

/* What the command itself finds wrong: "tidemark: text" on stderr, at once; returns `status`. */
tide_status complain(tide_status status, const char *format, ...) TIDE_PRINTF(2, 3);
/* What the library found wrong: its last error on stderr, unless complain() has spoken; the exit code of the status. A lost
 * rank is told once for all ranks, by ranks_leave. */
int report_failure(tide_status status);

/* ---- models and programs from the command line ---- */

typedef struct model_args {
    uint32_t batch, micro, accumulate, classes;
    const char *input;     /* "3x32x32" */
    const char *optimizer; /* "momentum"; NULL: as the model's recipe says */
    const char *dtype;     /* "bf16"; NULL: f32 */
    number_arg weight_decay, clip_norm;
    bool fused_update, inference;
    bool skip_nonfinite; /* train's --on-nan skip */
} model_args;

/* The rows of model_args for a command's table. */
#define MODEL_OPTIONS(m)                                                                                             \
    {"--batch", ARG_COUNT, &(m).batch, "N", "samples per step [32]"},                                                \
        {"--micro", ARG_COUNT, &(m).micro, "N", "compute a step in micro-batches of so many samples [all at once]"}, \
        {"--accumulate", ARG_COUNT, &(m).accumulate, "K", "or in K micro-batches of --batch samples each [1]"},      \
        {"--input", ARG_TEXT, &(m).input, "CxHxW", "size of one sample [the family's own]"},                         \
        {"--classes", ARG_COUNT, &(m).classes, "N", "classes of the last layer [the family's own]"},                 \
        {"--optimizer", ARG_TEXT, &(m).optimizer, "NAME", "sgd, momentum, adam or adamw [the recipe's]"},            \
        {"--weight-decay", ARG_MAYBE, &(m).weight_decay, "X", "decay of weights per unit of rate [the recipe's]"},   \
        {"--fused-update", ARG_FLAG, &(m).fused_update, NULL, "update each weight right after its gradient"}, {      \
        "--clip-norm", ARG_MAYBE, &(m).clip_norm, "X", "clip the gradients' global norm; 0: off [the recipe's]"      \
    }

/* Of the commands that plan: for machines, or for a device as it stores values. */
#define DTYPE_OPTION(m) \
    { "--dtype", ARG_TEXT, &(m).dtype, "f32|bf16|f16", "of activations and products, for mixed precision [f32]" }

/* A program: a file (a path with '/' or '.'), or a model's training step, of plain shapes or as a device has it. */
typedef struct loaded {
    tide_model *model; /* NULL for files */
    tide_step *step;   /* NULL for files */
    tide_program *file;
    const tide_program *program;
} loaded;
bool is_path(const char *name);
/* Micro-batches of a step, each a batch of the model; --batch, --micro and --accumulate say how many. */
tide_status count_micros(const model_args *args, uint32_t *out);
tide_status load_model(const char *spec, const model_args *args, tide_model **out);
/* A part of it, see tide_model_options. */
typedef struct model_variation {
    const uint8_t *skip;
    uint32_t n_skip, length;
} model_variation;
tide_status load_variation(const char *spec, const model_args *args, const model_variation *variation,
                           tide_model **out);
/* --optimizer and its kin, else what the model's recipe says; device and machine are the caller's. */
tide_status fill_step_options(const model_args *args, const tide_model *model, tide_step_options *out);
const char *optimizer_name(tide_optimizer optimizer);
/* "momentum, rate 0.1 per 256 samples, ...". */
const char *show_recipe(const tide_training_recipe *recipe);
tide_status load_step(const tide_model *model, const model_args *args, const tide_machine *machine, tide_device *device,
                      tide_step **out);
tide_status load_program(const char *name, const model_args *args, const tide_machine *machine, loaded *out);
void unload(loaded *l);
/* A usage error if an option that shapes a model was given, as `path` is a program. */
tide_status refuse_model_options(const model_args *args, const char *path);
/* Per tensor of the step's program; n = 0 where the shape is not known. *out is freed with free(). */
tide_status find_shapes(const tide_step *step, tide_shape **out);

/* ---- policies and budgets ---- */

const char *policies_text(void); /* their names and summaries, for --help */

typedef struct budget_args {
    size_arg arena, host, disk;
} budget_args;

/* The rows of budget_args for a command's table. */
#define BUDGET_OPTIONS(b)                                                                               \
    {"--budget", ARG_BUDGET, &(b).arena, "SIZE",                                                        \
     "bytes of the arena; 60% is of the unconstrained one; min is the smallest that works [no limit]"}, \
        {"--host-budget", ARG_SIZE, &(b).host, "SIZE", "bytes of RAM tiers [no limit]"}, {              \
        "--disk-budget", ARG_SIZE, &(b).disk, "SIZE", "bytes of disk tiers [no limit]"                  \
    }

/* Rows that several tables have. */
#define MACHINE_OPTION(target)                                                       \
    {                                                                                \
        "--machine", ARG_TEXT, &(target), "NAME",                                    \
            "default, cpu, rtx4060 ... h100 (see docs/costs.md) or a file [default]" \
    }
#define EFFORT_OPTION(target, which) \
    { "--effort", ARG_TEXT, &(target), "low|normal|high", "how long the policy may search [" which "]" }

#define ORDER_OPTION(target) \
    { "--order", ARG_TEXT, &(target), "free|program", "in which ops run: free lets policy hybrid choose [free]" }

#define BITS_OPTION(target, accepted) \
    { "--bits", ARG_TEXT, &(target), "same|any", "any: " accepted " [same]" }

/* How one plan is to be made; NULL where nothing was given. */
typedef struct planning_args {
    const char *machine, *policy, *decisions, *effort, *order;
    budget_args budgets;
} planning_args;

/* The rows of planning_args for a command's table. */
#define PLANNING_OPTIONS(p)                                                                                 \
    MACHINE_OPTION((p).machine),                                                                            \
        {"--policy", ARG_TEXT, &(p).policy, "NAME",                                                         \
         "`tidemark plan --help` lists them [hybrid with a --budget, else liveness]"},                      \
        {"--decisions", ARG_TEXT, &(p).decisions, "FILE", "swaps, re-runs and variants for policy manual"}, \
        BUDGET_OPTIONS((p).budgets), EFFORT_OPTION((p).effort, "normal"), ORDER_OPTION((p).order)

/* What every percentage refers to: the plan of policy liveness without a budget. */
typedef struct unconstrained {
    uint64_t arena_bytes, step_ns;
} unconstrained;
/* What --policy stands at when it is not given: hybrid inside a budget, liveness without one. */
const char *default_policy(const char *given, const budget_args *budgets);
/* "low", "normal", "high"; false, with the complaint made, for anything else. */
bool parse_effort(const char *text, tide_effort *out);
/* "none", "optimizer", "all"; false for anything else. */
bool parse_shard(const char *text, tide_shard *out);
const char *shard_name(tide_shard shard);
/* "free", "program" likewise; NULL is free. */
bool parse_order(const char *text, tide_order *out);
/* "same" (NULL, too), "any": other roundings than the default's are accepted; false, with the complaint made, for anything
 * else. */
bool parse_bits(const char *text, bool *any);
/* tide_plan_smallest, as closely as the effort pays for, with what it tries shown on a terminal. */
tide_status find_smallest(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                          tide_smallest *out);
tide_status plan_unconstrained(const tide_program *program, const tide_machine *machine, unconstrained *out);
/* "Does not fit" with the smallest budget that was seen to work and the op that decides it, or which tier is full; right
 * after the library said so. Any other failure as report_failure does. The names in `json` come from program and machine,
 * which may be NULL. Returns the exit code. */
int report_misfit(tide_status status, const tide_fit_report *fit, const tide_program *program,
                  const tide_machine *machine, bool json);
/* Where the arena is the host's own memory, RAM tiers save nothing: inside a budget there are none, unless they are asked for. */
tide_status drop_ram(const budget_args *budgets, const tide_device *device, tide_machine *machine);
/* Those that are given. */
void fill_budgets(const budget_args *args, tide_plan_options *out);
/* Around a search for the smallest budget: a terminal sees it. */
void watch_search(tide_plan_options *options);
void unwatch_search(tide_plan_options *options);

/* What does not go together in planning_args. */
tide_status check_planning(const planning_args *args);
/* The machine's profile, or the neutral one. */
tide_status load_machine(const planning_args *args, tide_machine *out);
/* Policy, decisions, effort and budgets, those in bytes. */
tide_status fill_plan_options(const planning_args *args, const tide_program *program, const tide_machine *machine,
                              tide_plan_options *out);

/* ---- output ---- */

/* "1532.4 MiB", "12.3 ms", `op 25 "conv2.bwd-data"`, a name from a file without control characters: in one of a few
 * static buffers, good for one printf. */
const char *show_bytes(uint64_t bytes);
const char *show_ns(uint64_t ns);
const char *show_loss(double loss); /* at most nine characters, whatever it is */
const char *show_op(const tide_program *program, tide_id op);
const char *show_name(const char *name);

/* A text inside an SVG: escaped, without control characters. */
void svg_text(FILE *stream, const char *text);

/* "-o -" gives stdout to the file: then no report is printed, and --json is refused. */
bool wants_stdout(const char *output);
tide_status check_output(const char *output, bool json);

/* A file that is written at once when it is complete: fill `stream` in between. */
typedef struct file_out {
    const char *path;
    FILE *stream;
    char *text;
    size_t size;
} file_out;
tide_status file_out_begin(file_out *f, const char *path);
tide_status file_out_end(file_out *f);

/* JSON objects on stdout: json_begin, fields, json_end; values are written as they come. */
typedef struct json_out {
    FILE *stream;
    int depth;
    bool first;
} json_out;
void json_begin(json_out *j, FILE *stream);
void json_end(json_out *j);
void json_open(json_out *j, const char *key, char bracket); /* '{' or '['; key NULL inside lists */
void json_close(json_out *j, char bracket);
void json_u64(json_out *j, const char *key, uint64_t value);
void json_number(json_out *j, const char *key, double value);
void json_string(FILE *stream, const char *text); /* in quotes, escaped */
void json_text(json_out *j, const char *key, const char *value);
void json_bool(json_out *j, const char *key, bool value);

#endif
