/* How far a model can grow on a machine: searches over its batch or its depth, by whole plans. */
#ifndef TIDE_CLI_FIT_H
#define TIDE_CLI_FIT_H

#include <time.h>

#include "cli.h"

/* What a plan may cost: step time relative to the unconstrained plan of the same step. */
typedef enum fit_limit { FIT_LIVENESS, FIT_FREE, FIT_TENTH, FIT_ANY, N_FIT_LIMITS } fit_limit;

/* One size that was tried. */
typedef struct fit_probe {
    uint32_t value; /* batch, or the number that makes the depth */
    uint32_t layers;
    bool fits;       /* the policy's plan fits the budget */
    bool plain_fits; /* that of liveness does */
    bool is_rough;   /* that it fits is all that is known: its time would be */
    double ratio;    /* of step times, if it fits */
    uint64_t whole_bytes, step_ns;
} fit_probe;

typedef struct fit_search {
    const model_args *model;
    const tide_machine *machine;
    tide_plan_options options; /* policy and budgets */
    const char *spec;          /* with '*' where the value goes when the depth is searched */
    bool depth;                /* else the batch */
    uint32_t start, max;
    fit_probe *probes;
    size_t n_probes, capacity;
    clock_t shown; /* processor time of the last line of progress */
} fit_search;

/* The largest value that keeps within the limit, to 1/64 of itself (liveness: exactly); NULL if none does, even 1. The
 * probe is good until the next search. */
tide_status fit_find(fit_search *s, fit_limit limit, const fit_probe **out);
/* Tries one value, or remembers it. */
tide_status fit_try(fit_search *s, uint32_t value, const fit_probe **out);
/* Takes the line of progress off the terminal, if there is one. */
void fit_hide_progress(void);
void fit_free(fit_search *s);

/* "resnet:6,32,55,6" -> "resnet:6,32,*,6" and 55: the number whose growth makes the network deeper. False if the family
 * has none. */
bool fit_pattern(const char *spec, char *pattern, size_t size, uint32_t *value);

#endif
