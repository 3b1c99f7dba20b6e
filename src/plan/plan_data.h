/* The plan as data: what schedule fills, place and sync complete, verify and simulate read.
 *
 * Actions keep their uses and waits in two shared arrays (one allocation each, however many actions). */
#ifndef TIDE_PLAN_PLAN_DATA_H
#define TIDE_PLAN_PLAN_DATA_H

#include <tidemark/plan.h>

#include "base/vec.h"

typedef struct tide__action {
    tide_action_kind kind;
    uint32_t queue;
    tide_id op;
    uint32_t variant;
    tide_id copy; /* TIDE_NONE: it neither saves nor loads */
    uint32_t n_uses, n_waits;
    size_t uses, waits; /* first index in plan->uses / plan->waits */
} tide__action;

struct tide_plan {
    tide_signature signature; /* of the program */
    uint64_t machine_fingerprint;
    char machine_name[TIDE_MACHINE_NAME_BYTES];
    char policy[64];
    bool bits_any;
    bool reordered; /* first runs follow the dependencies, not the program's order */
    uint32_t parts; /* of the program; 0 and 1: it is whole */
    uint32_t n_queues, n_tiers;
    uint64_t arena_bytes;
    uint64_t tier_bytes[TIDE_MACHINE_MAX_TIERS];
    TIDE_VEC(tide__action) actions;
    TIDE_VEC(tide_id) uses;
    TIDE_VEC(uint32_t) waits;
    TIDE_VEC(tide_residency) residencies;
    TIDE_VEC(tide_copy) copies;
    tide_prediction prediction;
};

tide_status tide__plan_new(tide_plan **out);
/* Empties it; what it is for (program, machine, policy) stays. */
void tide__plan_clear(tide_plan *plan);
tide_status tide__plan_clone(const tide_plan *plan, tide_plan **out);

/* What a plan may have of a tier: its capacity, within the budget. budgets NULL: the capacity. */
uint64_t tide__tier_limit(const tide_machine *machine, const tide_budgets *budgets, uint32_t tier);

/* How far apart two residencies begin. */
static inline uint64_t tide__distance_bytes(const tide_residency *a, const tide_residency *b) {
    return a->offset_bytes < b->offset_bytes ? b->offset_bytes - a->offset_bytes : a->offset_bytes - b->offset_bytes;
}
/* What a RELOCATE from one residency to another takes: the only place that says it. */
static inline uint64_t tide__relocate_ns(const tide_machine *machine, const tide_residency *from,
                                         const tide_residency *to) {
    return tide_machine_relocate_ns(machine, from->size_bytes, tide__distance_bytes(from, to));
}

/* The first op of the most bytes in the arena; TIDE_NONE if no op runs. */
tide_status tide__plan_peak_op(const tide_program *program, const tide_plan *plan, tide_id *out);

/* tide_plan_simulate for whoever asks for the time alone: peak_bytes stays 0. */
tide_status tide__plan_predict_times(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                                     tide_prediction *out);

/* tide_plan_read_memory without the comparison of the fingerprint: for fuzzing, which cannot guess one. */
tide_status tide__plan_read_unchecked(const char *text, size_t size, const char *name, tide_plan **out);

/* tide_machine_validate, for a machine that may have the tier and the channels of a journal as well. */
tide_status tide__machine_check(const tide_machine *machine);

#endif
