/* A plan under construction, for tests: issue actions one by one; places and waits are found here, naively, without
 * any code of the library's planner or verifier. Order is kept as the full set of ancestors of each action (a bit per
 * pair of actions), bytes as the list of all accesses that ever were.
 *
 * Every failure fails the test. Invariant: the actions issued so far are a safe plan. */
#ifndef TIDE_TESTS_PLAN_SKETCH_H
#define TIDE_TESTS_PLAN_SKETCH_H

#include <tidemark/plan.h>

#include "plan/plan_data.h"

#define SKETCH_MAX_ACTIONS 4096

/* A residency or a copy. */
typedef struct sketch_holding {
    tide_id tensor; /* TIDE_NONE: workspace */
    uint32_t space; /* 0: arena; 1 + t: tier t */
    uint64_t offset, size;
    uint32_t begin, end;
    bool at_start, at_end;
    bool open;        /* its end is not decided yet: its bytes are taken */
    bool leaving;     /* open, but do not count on it */
    uint32_t pins;    /* may not be closed while > 0 */
    uint32_t creator; /* action; TIDE_NONE: at the start */
    uint32_t used_to; /* after the last access so far: the smallest legal end */
    tide_id id;       /* in the plan's residencies or copies */
} sketch_holding;

typedef struct sketch_access {
    uint32_t holding, action;
} sketch_access;

typedef struct sketch {
    const tide_program *program;
    const tide_machine *machine;
    tide_plan *plan;
    uint64_t random;
    uint32_t extra_wait_percent;
    TIDE_VEC(sketch_holding) holdings;
    TIDE_VEC(sketch_access) accesses;
    uint64_t *ancestors;                          /* row i: bit j = action j is complete before i starts */
    uint32_t last[1 + TIDE_MACHINE_MAX_CHANNELS]; /* per queue: 1 + its last action */
    uint64_t high_water[1 + TIDE_MACHINE_MAX_TIERS];
} sketch;

void sketch_init(sketch *s, const tide_program *program, const tide_machine *machine, uint64_t seed);
/* Writes the tables, closes what is open, hands the plan over and frees the rest. */
tide_plan *sketch_finish(sketch *s);

uint64_t sketch_random(sketch *s, uint64_t n); /* uniform in [0, n) */
bool sketch_chance(sketch *s, uint32_t percent);
uint32_t sketch_now(const sketch *s); /* the index of the next action */
bool sketch_is_client(const sketch *s, uint32_t space);

/* A random place among the bytes that no open holding has, preferably below the high-water mark. */
uint64_t sketch_place(sketch *s, uint32_t space, uint64_t size, uint64_t align);
/* Nobody open has bytes of this stretch. */
bool sketch_is_free(const sketch *s, uint32_t space, uint64_t offset, uint64_t size);

/* A new holding, open, of the next action or of the start; gives its index. */
uint32_t sketch_add(sketch *s, tide_id tensor, uint32_t space, uint64_t offset, uint64_t size, bool at_start);
/* Decides its end: somewhere between its last access and now. */
void sketch_close(sketch *s, uint32_t h);

/* What an action does, in holdings: uses as in the plan (reads first), creates = uses[n_reads...] and `copy`. */
void sketch_run(sketch *s, tide_id op, uint32_t variant, const uint32_t *uses, uint32_t n_uses);
void sketch_save(sketch *s, uint32_t residency, uint32_t copy);
void sketch_load(sketch *s, uint32_t copy, uint32_t residency);
void sketch_relocate(sketch *s, uint32_t from, uint32_t to);

#endif
