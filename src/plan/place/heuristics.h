/* The fast heuristics, tried one after the other on one problem; the lowest placement is kept. */
#ifndef TIDE_PLAN_PLACE_HEURISTICS_H
#define TIDE_PLAN_PLACE_HEURISTICS_H

#include "plan/place/fit.h"
#include "plan/place/problem.h"

#define TIDE__PLACE_MOST_SKYLINE_WORK UINT64_C(400000) /* where the caller sets no limit: some 0.3 s */

typedef struct tide__place_attempt {
    const tide__place_problem *p;
    uint64_t least;         /* units: nothing lower exists */
    uint64_t enough;        /* units, >= least: no lower placement is wanted, though a cheap one is taken */
    bool layers;            /* skylines in layers, too, which many items need */
    bool quick;             /* the first that is low enough is taken */
    uint64_t work;          /* what skylines may still take: a unit per item and run, about a microsecond */
    uint64_t seed;          /* of what is random */
    uint64_t deadline_ns;   /* on the clock of tide__worked_ns; 0: work is limited by its amount only */
    uint64_t *best, *trial; /* offsets in units, per item; best is valid once there is an algorithm */
    uint32_t *order;        /* a permutation of the items: what the trial is made from */
    uint64_t height;        /* of best */
    const char *algorithm;  /* which one found it: a static string; NULL: none so far */
} tide__place_attempt;

/* The problem must outlive it. */
tide_status tide__place_attempt_init(tide__place_attempt *a, const tide__place_problem *p, uint64_t least,
                                     uint64_t enough);
void tide__place_attempt_deinit(tide__place_attempt *a);

bool tide__place_attempt_is_good(const tide__place_attempt *a);                        /* low enough */
void tide__place_attempt_keep_if_lower(tide__place_attempt *a, const char *algorithm); /* the trial becomes the best */

/* Skylines in several orders. */
tide_status tide__place_try_skylines(tide__place_attempt *a);
/* Size descending. most_conflicts: as in tide__place_fit. */
tide_status tide__place_try_fit(tide__place_attempt *a, tide__place_fit_rule rule, uint64_t most_conflicts,
                                const char *algorithm);

/* First fit and best fit, unless it is good already or they would take too long. There is an answer afterwards. */
tide_status tide__place_try_classics(tide__place_attempt *a);
/* All of them. Some do not apply to every problem, and may run out of memory; there is always one that answers. */
tide_status tide__place_try_heuristics(tide__place_attempt *a);

#endif
