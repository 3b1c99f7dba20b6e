/* Online policies: decisions at the moment memory runs short, without look-ahead (DTR, DELTA, SuperNeurons' tensor cache).
 *
 *      policy file (cache.c, delta.c, dtr.c)      which storage leaves, and how; which comes back early
 *                │  choose, prefetch ▲ arrived, left, used
 *      engine    ▼ (online.c, _room.c, _life.c)   residency, locks, chains of re-runs, releases, the hard budget
 *                │  reserve, run, save, load
 *      device    ▼ online_sim.c: a virtual clock; the run-time's: an arena and queues
 *
 * The engine walks a program op by op and knows what a framework knows: the op at hand, what ran before, measured
 * costs, and when the last reference to a value goes. Memory is made free *before* it is taken, so the budget is hard.
 * A storage is one value of the program. The program may still grow while the step runs (tide__online_grow). */
#ifndef TIDE_PLAN_DECIDE_ONLINE_H
#define TIDE_PLAN_DECIDE_ONLINE_H

#include <tidemark/plan.h>

#include "plan/decide/swaps/tiers.h"

typedef struct tide__online tide__online;

typedef struct tide__storage {
    uint64_t bytes;        /* in the arena, rounded up to the blocks of the tiers it may move through */
    uint64_t last_used_ns; /* as an operand; device time */
    tide_id producer;      /* TIDE_NONE: it was there at the start */
    uint32_t tier;         /* one that has a copy; TIDE_NONE: none */
    uint32_t locks;        /* ops at hand that want it; > 0: it stays */
    uint32_t at;           /* its place among the residents */
    uint32_t pinned;       /* stamp of the op that is about to run with it */
    bool resident;
    bool arriving; /* a LOAD is under way, or nobody has looked since */
    bool live;     /* somebody still refers to it */
    bool ended;    /* the step is over and this is kept: it may move, but not be dropped */
    bool held;     /* nobody does, but it is a source of what was dropped and is still wanted */
    uint32_t first_consumer, last_consumer; /* in `consumers`: the ops that read it; TIDE_NONE: none */
    uint32_t release_after;                 /* the op after which its last reference goes; TIDE_NONE: not known */
    uint32_t start_tier;                    /* PRESENT in this tier instead of the arena; TIDE_NONE */
    uint32_t end_tier;                      /* it has to be in this tier at the end; TIDE_NONE */
} tide__storage;

typedef struct tide__online_op {
    uint64_t cost_ns; /* measured if it ran */
    uint32_t stamp;   /* the last search that saw it */
    bool ran;
    bool dead;  /* cannot be re-run any more, a source of it is gone */
    bool fixed; /* its outputs may not be dropped any more, a source is about to go */
} tide__online_op;

/* One op that reads a storage. */
typedef struct tide__consumer {
    tide_id op;
    uint32_t next; /* the next op that reads it; TIDE_NONE: none */
} tide__consumer;

typedef enum tide__way { TIDE__DROP, TIDE__SWAP, TIDE__RELEASE } tide__way; /* RELEASE: the last reference went */

typedef struct tide__victim {
    tide_id storage; /* TIDE_NONE: none */
    tide__way way;   /* DROP or SWAP */
} tide__victim;

/* One policy: a file that knows no device. Every callback but choose may be NULL. Only what is resident, without locks
 * and allowed by tide__online_can_drop or _can_swap may be chosen. */
typedef struct tide__online_policy {
    const char *name;
    bool swaps; /* uses tiers; sizes are then rounded to their blocks */
    bool takes_argument;
    tide_status (*create)(const tide__online *o, const char *argument, void **self);
    void (*destroy)(void *self);
    /* There are more storages than the n_before that it knows; at the beginning that is 0. */
    tide_status (*grow)(void *self, const tide__online *o, uint32_t n_before);
    /* Memory is short: who leaves next, and how? */
    tide__victim (*choose)(void *self, const tide__online *o);
    /* A swapped storage to bring back while there is room and the channel is idle; TIDE_NONE: none. */
    tide_id (*prefetch)(void *self, const tide__online *o);
    tide_status (*arrived)(void *self, const tide__online *o, tide_id storage); /* made, made again or loaded */
    tide_status (*left)(void *self, const tide__online *o, tide_id storage, tide__way way);
    void (*used)(void *self, const tide__online *o, tide_id storage); /* an op reads or wrote it */
    /* A swapped storage was wanted: how much of its way back compute had to wait for. */
    void (*loaded)(void *self, const tide__online *o, uint64_t transfer_ns, uint64_t exposed_ns);
} tide__online_policy;

/* What carries it out. Bytes are counted (simulation) or placed (run-time). */
typedef struct tide__online_device {
    /* Room for a storage, or for the workspace of the op that runs next (TIDE_NONE); false: not now. */
    bool (*reserve)(void *self, tide_id storage, uint64_t bytes);
    void (*release)(void *self, tide_id storage);
    /* `write` takes over the bytes of `read`. */
    void (*inherit)(void *self, tide_id read, tide_id write);
    /* Reads are resident (or on their way), writes and the workspace reserved. */
    tide_status (*run)(void *self, tide_id op, bool rerun);
    tide_status (*save)(void *self, tide_id storage, uint32_t tier); /* its bytes are released next */
    tide_status (*load)(void *self, tide_id storage, uint32_t tier); /* its bytes are reserved */
    uint64_t (*now_ns)(void *self);
    uint64_t (*free_bytes)(void *self);
    uint64_t (*ready_ns)(void *self, tide_id storage); /* when the LOAD of an arriving storage ends */
    /* When the channel could begin another transfer; device time. */
    uint64_t (*channel_free_ns)(void *self, uint32_t tier, bool out);
    /* Has the tier as many bytes left in one piece? NULL: bytes that are left always are. */
    bool (*has_slot)(void *self, uint32_t tier, uint64_t bytes);
} tide__online_device;

typedef struct tide__frame {
    tide_id op;
    uint32_t cursor; /* reads before it were resident when they were looked at */
} tide__frame;

struct tide__online {
    const tide_program *program;
    const tide_machine *machine;
    const tide__online_policy *policy;
    void *self; /* the policy's */
    const tide__online_device *device;
    void *device_self;
    uint32_t n_ops, n_storages;
    tide__storage *storages;
    tide__online_op *ops;
    size_t storage_capacity, op_capacity;
    uint32_t n_started;          /* storages that were there at the start have been seen up to here */
    TIDE_VEC(tide_id) residents; /* unordered */
    TIDE_VEC(tide__consumer) consumers;
    uint32_t *first_release; /* of a complete program: op i releases releases[first_release[i]] ... */
    tide_id *releases;
    TIDE_VEC(tide__frame) frames; /* the op at hand and, on top of it, re-runs that it waits for */
    TIDE_VEC(tide_id) stack;      /* of searches in the graph */
    TIDE_VEC(tide_id) leftovers;  /* made again on the way to something else, wanted by nobody */
    TIDE_VEC(tide_id) homeless;   /* what had to be in the arena at the end and did not fit */
    uint32_t stamp, pin;
    tide__tiers tiers;                          /* that storages may go to, the first with room is taken */
    uint64_t tier_room[TIDE_MACHINE_MAX_TIERS]; /* bytes left */
    uint64_t largest_need_bytes;                /* the most that one op reserved so far */
    uint64_t n_events;                          /* runs and moves */
    uint64_t n_reruns, rerun_ns, n_swaps;
    tide_id slot;        /* the op of the program that is at hand; n_ops: after the last */
    bool keep_leftovers; /* as DTR does: they leave when the policy chooses them */
    bool ends_anywhere;  /* kept values may end in the arena or a tier, wherever they are */
    bool never_share;    /* as DTR does: outputs do not take over the bytes of dying inputs */
};

typedef struct tide__online_options {
    const tide_program *program;
    const tide_machine *machine;
    const tide_budgets *budgets; /* of the tiers */
    const tide__online_policy *policy;
    const char *argument; /* of the policy; "" if none */
    const tide__online_device *device;
    void *device_self;
    const uint32_t *release_after; /* per storage, as above; NULL: the last use, and never for kept ones */
    bool growing;                  /* ops come one by one; with each it is said what it releases */
} tide__online_options;
tide_status tide__online_create(const tide__online_options *options, tide__online **out);
void tide__online_destroy(tide__online *o); /* NULL is fine */

/* One step: what is there at the start, every op, what has to be there at the end. TIDE_E_FIT: the budget or the
 * limit of work does not allow it; the text names the op. */
tide_status tide__online_step(tide__online *o);

/* The same in parts, for ops that come one by one. Nobody refers to the `dead` storages after this op. */
tide_status tide__online_begin(tide__online *o);
tide_status tide__online_run_op(tide__online *o, tide_id op, const tide_id *dead, uint32_t n_dead);
tide_status tide__online_end(tide__online *o);
/* Instead of the beginning: ops [0, n_ran) have run already, elsewhere, and left this. */
typedef struct tide__online_map {
    const bool *resident; /* per storage: the device has reserved its bytes */
    const uint32_t *tier; /* per storage: one that has a copy; TIDE_NONE */
    const bool *released; /* per storage: nobody refers to it any more */
} tide__online_map;
tide_status tide__online_resume(tide__online *o, tide_id n_ran, const tide__online_map *map);
/* Takes in what the program has more than before; between two ops. */
tide_status tide__online_grow(tide__online *o);

/* ---- for policies ---- */

/* It can be made again: dropping it loses nothing. */
bool tide__online_can_drop(const tide__online *o, tide_id storage);
/* A tier has it, or has room for it. */
bool tide__online_can_swap(const tide__online *o, tide_id storage);
/* The tier it is in or would go to; TIDE_NONE: none has room. */
uint32_t tide__online_tier(const tide__online *o, tide_id storage);
uint64_t tide__online_now(const tide__online *o);
/* For an array with one number per storage: room for n instead of n_before; the bytes of new ones are `byte`. */
tide_status tide__online_widen(uint32_t **numbers, uint32_t n_before, uint32_t n, int byte);

/* ---- between online.c, online_room.c, online_life.c and online_resume.c ---- */

/* It is in the arena now. */
tide_status tide__online_enter(tide__online *o, tide_id storage);
/* Nobody refers to it any more. */
tide_status tide__online_release(tide__online *o, tide_id storage);

/* A value that cannot be made again: from the start, or from an op that runs once. */
bool tide__online_is_source(const tide__online *o, tide_id storage);
/* Something dropped and still wanted comes from it. */
tide_status tide__online_is_needed(tide__online *o, tide_id source, bool *out);
/* Before `source` is destroyed: what was dropped, is wanted and comes from it, pushed on o->stack from *first on. Their
 * producers become `fixed`. */
tide_status tide__online_find_wanted(tide__online *o, tide_id source, size_t *first);
/* It is gone: nothing that read it can run again. */
tide_status tide__online_bury(tide__online *o, tide_id source);

/* ---- policies, and the planner that drives them in simulation ---- */
extern const tide__online_policy tide__online_cache, tide__online_delta, tide__online_dtr;

#endif
