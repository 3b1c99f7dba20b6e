/* See args.h. */
#include "args.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli.h"

/* ---- values ---- */

static bool parse_number(const char *text, double *out, const char **rest) {
    char *end;
    if (*text < '0' || *text > '9') return false; /* no signs, no blanks, no "inf" */
    if (text[1] == 'x' || text[1] == 'X') return false;
    errno = 0;
    *out = strtod(text, &end);
    if (end == text || errno == ERANGE || !isfinite(*out)) return false;
    *rest = end;
    return true;
}

bool u64_arg_parse(const char *text, uint64_t max, uint64_t *out) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno == ERANGE || *end || value > max) return false;
    *out = value;
    return true;
}

bool size_arg_parse(const char *text, size_arg *out) {
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1},       {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                 {"TB", 1e12},  {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                 {"K", 0x1p10}, {"M", 0x1p20},   {"G", 0x1p30},   {"T", 0x1p40}};
    double value;
    const char *rest;
    if (!parse_number(text, &value, &rest)) return false;
    if (strcmp(rest, "%") == 0) {
        *out = (size_arg){.given = true, .budget = {.kind = TIDE_BUDGET_SHARE, .share = value / 100}};
        return true;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(rest, units[i].name) != 0) continue;
        uint64_t bytes; /* plain digits stay exact; the rest goes through a double */
        if (units[i].factor != 1 || !u64_arg_parse(text, UINT64_MAX, &bytes)) {
            if (value * units[i].factor >= 0x1p63) return false;
            bytes = (uint64_t)(value * units[i].factor);
        }
        *out = (size_arg){.given = true, .budget = {.bytes = bytes}};
        return true;
    }
    return false;
}

bool budget_arg_parse(const char *text, size_arg *out) {
    if (strcmp(text, "min") != 0) return size_arg_parse(text, out);
    *out = (size_arg){.given = true, .budget = {.kind = TIDE_BUDGET_SMALLEST}};
    return true;
}

uint64_t size_arg_bytes(const size_arg *size, uint64_t whole) {
    return size->given ? tide_budget_bytes(&size->budget, whole) : UINT64_MAX;
}

bool duration_arg_parse(const char *text, uint64_t *ns) {
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}};
    double value;
    const char *rest;
    if (!parse_number(text, &value, &rest)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(rest, units[i].name) != 0 || value * units[i].factor >= 0x1p63) continue;
        *ns = (uint64_t)llround(value * units[i].factor);
        return true;
    }
    return false;
}

static const char *parse_value(const arg_option *option, const char *text) {
    const char *rest;
    uint64_t count;
    switch (option->kind) {
    case ARG_FLAG: *(bool *)option->target = true; return NULL;
    case ARG_TEXT: *(const char **)option->target = text; return NULL;
    case ARG_COUNT:
        if (!u64_arg_parse(text, UINT32_MAX - 1, &count) || count == 0) return "a whole number from 1 to 4294967294";
        *(uint32_t *)option->target = (uint32_t)count;
        return NULL;
    case ARG_U64: return u64_arg_parse(text, UINT64_MAX, option->target) ? NULL : "a whole number";
    case ARG_NUMBER: return parse_number(text, option->target, &rest) && !*rest ? NULL : "a number from 0 up";
    case ARG_MAYBE: {
        number_arg *number = option->target;
        number->given = parse_number(text, &number->value, &rest) && !*rest;
        return number->given ? NULL : "a number from 0 up";
    }
    case ARG_SIZE: return size_arg_parse(text, option->target) ? NULL : "a size such as 512MiB, 4GB or 60%";
    case ARG_BUDGET: return budget_arg_parse(text, option->target) ? NULL : "a size such as 512MiB, 4GB or 60%, or min";
    case ARG_DURATION: return duration_arg_parse(text, option->target) ? NULL : "a time such as 81.57ms";
    }
    return "a known kind of value";
}

/* ---- help and errors ---- */

static void print_help(const arg_command *c) {
    printf("usage: tidemark %s\n\n%s\n", c->usage, c->summary);
    if (c->details) printf("\n%s\n", c->details);
    if (c->n_options) printf("\noptions:\n");
    for (uint32_t i = 0; i < c->n_options; i++) {
        char left[64];
        const arg_option *o = &c->options[i];
        snprintf(left, sizeof left, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-26s %s\n", left, o->help);
    }
    printf("  %-26s %s\n", "--help", "this text");
}

static bool usage_error(const arg_command *c, int *exit_code) {
    fprintf(stderr, "usage: tidemark %s\n", c->usage);
    *exit_code = EXIT_USAGE;
    return false;
}

static int find_option(const arg_command *c, const char *name, size_t length) {
    for (uint32_t i = 0; i < c->n_options; i++)
        if (strlen(c->options[i].name) == length && strncmp(c->options[i].name, name, length) == 0) return (int)i;
    return -1;
}

static bool unknown_option(const arg_command *c, const char *name, size_t length) {
    tide_nearest near = tide_nearest_begin(name, length);
    for (uint32_t i = 0; i < c->n_options; i++)
        tide_nearest_offer(&near, c->options[i].name, strlen(c->options[i].name));
    fprintf(stderr, "tidemark: unknown option %.*s%s%s%s\n", (int)length, name, near.best ? "; did you mean " : "",
            near.best ? near.best : "", near.best ? "?" : "");
    return false;
}

/* ---- the walk ---- */

typedef struct parser {
    const arg_command *command;
    int argc, at;
    char **argv;
    uint32_t n_positional;
    bool *seen; /* per option */
} parser;

static bool take_option(parser *p, const char *arg) {
    const char *equals = arg[0] == '-' && arg[1] == '-' ? strchr(arg, '=') : NULL;
    size_t length = equals ? (size_t)(equals - arg) : strlen(arg);
    int i = find_option(p->command, arg, length);
    if (i < 0) return unknown_option(p->command, arg, length);
    const arg_option *o = &p->command->options[i];
    if (p->seen[i]) {
        fprintf(stderr, "tidemark: %s is given twice\n", o->name);
        return false;
    }
    p->seen[i] = true;
    const char *value = equals ? equals + 1 : NULL;
    if (o->kind == ARG_FLAG && value) {
        fprintf(stderr, "tidemark: %s takes no value\n", o->name);
        return false;
    }
    if (o->kind != ARG_FLAG && !value) {
        if (p->at >= p->argc) {
            fprintf(stderr, "tidemark: %s needs %s\n", o->name, o->value);
            return false;
        }
        value = p->argv[p->at++];
    }
    const char *wanted = parse_value(o, value);
    if (wanted) fprintf(stderr, "tidemark: %s: \"%s\" is not %s\n", o->name, value, wanted);
    return !wanted;
}

static bool take_positional(parser *p, const char *arg) {
    if (p->n_positional == p->command->max_positional) {
        fprintf(stderr, "tidemark: unexpected argument \"%s\"\n", arg);
        return false;
    }
    p->command->positional[p->n_positional++] = arg;
    return true;
}

static bool walk(parser *p, int *exit_code) {
    const arg_command *command = p->command;
    bool only_positional = false;
    while (p->at < p->argc) {
        const char *arg = p->argv[p->at++];
        if (!only_positional && strcmp(arg, "--help") == 0) {
            print_help(command);
            *exit_code = 0;
            return false;
        }
        if (!only_positional && strcmp(arg, "--") == 0) {
            only_positional = true;
            continue;
        }
        bool is_option = !only_positional && arg[0] == '-' && arg[1];
        if (!(is_option ? take_option(p, arg) : take_positional(p, arg))) return usage_error(command, exit_code);
    }
    if (p->n_positional >= command->min_positional) return true;
    fprintf(stderr, "tidemark: an argument is missing\n");
    return usage_error(command, exit_code);
}

bool args_parse(const arg_command *command, int argc, char **argv, int *exit_code) {
    parser p = {.command = command, .argc = argc, .at = 1, .argv = argv};
    p.seen = calloc(command->n_options + (size_t)1, sizeof *p.seen);
    if (!p.seen) {
        *exit_code = report_failure(complain(TIDE_E_MEMORY, "out of host memory"));
        return false;
    }
    bool go_on = walk(&p, exit_code);
    free(p.seen);
    return go_on;
}
