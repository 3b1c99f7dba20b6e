/* Command lines, declared as tables: one row per option, checked strictly. Unknown options, options given twice,
 * missing and superfluous arguments are usage errors (exit code 2). */
#ifndef TIDE_CLI_ARGS_H
#define TIDE_CLI_ARGS_H

#include <tidemark/plan.h>

typedef enum arg_kind {
    ARG_FLAG,     /* bool */
    ARG_TEXT,     /* const char * */
    ARG_COUNT,    /* uint32_t, at least 1: so 0 in a target means "not given" */
    ARG_U64,      /* uint64_t */
    ARG_NUMBER,   /* double */
    ARG_MAYBE,    /* number_arg: a number whose absence means something */
    ARG_SIZE,     /* size_arg: "512MiB", "4GB", "60%" */
    ARG_BUDGET,   /* size_arg: the same, or "min" */
    ARG_DURATION, /* uint64_t ns: "81.57ms", "2s" */
} arg_kind;

/* Bytes, a percentage of something known later, or the smallest that will do. */
typedef struct size_arg {
    bool given;
    tide_budget budget;
} size_arg;

typedef struct number_arg {
    bool given;
    double value;
} number_arg;

typedef struct arg_option {
    const char *name; /* with its dashes: "--budget", "-o" */
    arg_kind kind;
    void *target;
    const char *value; /* "BYTES", for the help; NULL for flags */
    const char *help;
} arg_option;

typedef struct arg_command {
    const char *usage;   /* "plan PROGRAM [options]" */
    const char *summary; /* one line */
    const char *details; /* more lines for --help, or NULL */
    const arg_option *options;
    uint32_t n_options;
    const char **positional; /* filled */
    uint32_t min_positional, max_positional;
} arg_command;

/* argv[0] is the command's name. Returns true to go on; else *exit_code says how to end (0 after --help). */
bool args_parse(const arg_command *command, int argc, char **argv, int *exit_code);

/* A percentage resolved against `whole`; UINT64_MAX (no limit) when not given. */
uint64_t size_arg_bytes(const size_arg *size, uint64_t whole);

/* "512MiB" -> bytes, "60%" -> a share of 0.6. Capitals do not matter; "2G" is 2 GiB. */
bool size_arg_parse(const char *text, size_arg *out);
bool budget_arg_parse(const char *text, size_arg *out);  /* or "min" */
bool duration_arg_parse(const char *text, uint64_t *ns); /* "81.57ms", "2s", "10min", "1h" */
bool u64_arg_parse(const char *text, uint64_t max, uint64_t *out);

#endif
