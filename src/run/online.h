/* An online run: no plan; a policy of plan/decide decides at the moment memory is short.
 *
 * Invariant: between steps every queue is idle; the values that exist then are in the arena or in a tier, where
 * `places` says. */
#ifndef TIDE_RUN_ONLINE_H
#define TIDE_RUN_ONLINE_H

#include "plan/decide/online/online.h"
#include "run/ahead.h"
#include "run/journal.h"
#include "run/ranges.h"
#include "run/run_data.h"

/* Where a storage is. */
typedef struct tide__place {
    uint64_t offset, slot; /* in the arena, in the tier */
    uint64_t bytes;
    uint64_t used_by; /* the number of the last run that used it; see ahead.h */
    uint32_t tier;    /* TIDE_NONE: in none */
    bool in_arena;
} tide__place;

/* What copy threads read; it stays where it is while tables grow. */
typedef struct tide__mover {
    tide__move move;
    tide_event *event; /* of its latest move */
    uint64_t ends_ns;  /* about when that is complete; the host's clock */
} tide__mover;

/* Bytes that were given back while somebody still used them. */
typedef struct tide__fence {
    tide__range range;
    tide_id storage; /* whose latest move uses them; TIDE_NONE: none does */
    uint64_t run;    /* the number of the last run that does */
} tide__fence;

struct tide__run_online {
    tide_run *run;
    const tide__online_policy *policy;
    const char *argument;
    tide__online *engine;   /* during a step */
    tide__journal *journal; /* of this step; NULL: none is kept */
    const tide_step_args *args;
    uint64_t arena_bytes, block_bytes; /* in whole blocks; the run's arena may have a few bytes more */
    tide__ranges arena, tiers[TIDE_MACHINE_MAX_TIERS];
    uint64_t tier_bytes[TIDE_MACHINE_MAX_TIERS]; /* the most that they may have */
    uint32_t n_storages;
    TIDE_VEC(tide__place) places;   /* per storage */
    TIDE_VEC(tide__mover *) movers; /* per storage; NULL: it never moved */
    TIDE_VEC(uint64_t) cost_ns;     /* per op: measured, of its latest run */
    TIDE_VEC(uint64_t) offsets;     /* of the op at hand */
    TIDE_VEC(tide__fence) fences;
    tide__ahead ahead;
    tide__range workspace;                             /* of the op at hand */
    uint64_t busy_until_ns[TIDE_MACHINE_MAX_CHANNELS]; /* about */
    tide_status failure;                               /* of calls that cannot return one */
    uint64_t begin_ns, saved_bytes, loaded_bytes, compute_ns;
    uint32_t n_actions;
};

/* The arena has the budget's size, or what the program could ever need if that is less. Arena and queues are opened here;
 * tide__run_online_close leaves them to the run. */
tide_status tide__run_online_open(tide_run *run);
/* Takes in what run->options.program has more than before. */
tide_status tide__run_online_grow(struct tide__run_online *s);
/* Forgets the storages from this one on, and all ops. They have no places any more. */
void tide__run_online_shrink(struct tide__run_online *s, uint32_t n_storages);
/* A tier has at least this many bytes, at most s->tier_bytes, from now on: it is opened, or grows to twice its size. */
tide_status tide__run_online_reach(struct tide__run_online *s, uint32_t tier, uint64_t size_bytes);
/* What is there at the start gets a place: in the arena as long as that has room. */
tide_status tide__run_online_place(struct tide__run_online *s, tide_id storage);
/* For a run that follows a plan: room for the places of its values, none of which is known yet; arena and tiers are the
 * run's. */
tide_status tide__run_online_attach(tide_run *run);
void tide__run_online_close(tide_run *run); /* fine if nothing is open */
tide_status tide__run_online_step(tide_run *run, const tide_step_args *args, tide_step_report *report);
/* The same in parts, for ops that come one by one: `engine` works between the two. The second is called after a failure,
 * too. */
tide_status tide__run_online_begin(struct tide__run_online *s, const tide_step_args *args);
tide_status tide__run_online_finish(struct tide__run_online *s, tide_status status, tide_step_report *report);
/* Between steps: the values of the last step's end become those of the next start, all others are given up. */
tide_status tide__run_online_carry(struct tide__run_online *s);
/* Between steps: forgets a value. */
tide_status tide__run_online_give_up(struct tide__run_online *s, tide_id storage);
/* Between steps: where a value is; NULL if it has none. A carried one answers to both of its ids. */
const tide__place *tide__run_online_find(const tide_run *run, tide_id tensor);

/* Between steps: another arena. All values wait in tiers meanwhile, so that there are never two; TIDE_E_FIT or
 * TIDE_E_TIER_FULL if they have no room there, and nothing has changed then. Any other failure to make the new arena leaves
 * one of the old size; where that fails, too, the run is poisoned. */
tide_status tide__run_online_resize(struct tide__run_online *s, uint64_t arena_bytes);

/* Between steps: the free top of the arena; 0 bytes if the host cannot see it. Values go to tiers if it is smaller than
 * wanted_bytes. */
tide_status tide__run_online_rest(tide_run *run, uint64_t wanted_bytes, tide__range *out);

/* ---- maps.c ---- */
/* Between steps: brings all values to where the plan starts with them; tiers that it uses are open then. After TIDE_E_FIT
 * and TIDE_E_TIER_FULL the run is online as before. */
tide_status tide__run_enter_plan(struct tide__run_online *s, const tide_plan *plan);
/* Takes the places of all values from run->options.plan, whose actions [0, index) are complete and whose others have not
 * begun. */
tide_status tide__run_leave_plan(struct tide__run_online *s, uint32_t index);

/* ---- online_device.c ---- */
extern const tide__online_device tide__run_online_device; /* its self is a struct tide__run_online */
/* Moves everything to the bottom of the arena: what is free is one range on top. Needs an arena the host can see. */
tide_status tide__run_online_compact(struct tide__run_online *s);
/* Its copy in a tier, if there is one, is not needed any more. */
tide_status tide__run_online_give_slot(struct tide__run_online *s, tide_id storage);

#endif
