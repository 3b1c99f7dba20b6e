/* A sketch: decisions, and the load that follows from them by liveness alone, fast enough to try thousands.
 *
 * Decisions are a sorted set of extra events beside the ops themselves: re-run op p in slot x, save or load a tensor
 * in slot x (decide.h has the slots). Any set with p < x is a valid one: a use reads the latest instance of its
 * tensor, an instance (a *stay* in the arena) ends with its last use, so nothing needs repair when an event goes.
 *
 *     event   0      1      2       3        4          5
 *             op 0   op 1   op 2    op 3     re-run 0   op 4
 *     x       ■──────■               ·       ■──────────■      two stays, a gap of events 2 and 3 between them
 *
 * Loads count places that an in-place pair shares once. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_SKETCH_H
#define TIDE_PLAN_DECIDE_HYBRID_SKETCH_H

#include "plan/decide/hybrid/model.h"

/* An event's key sorts as the schedule does: by slot, then saves, loads, runs, then by tensor or op. */
typedef enum tide__event_kind { TIDE__EVENT_SAVE, TIDE__EVENT_LOAD, TIDE__EVENT_RUN } tide__event_kind;
static inline uint64_t tide__event_key(uint32_t slot, tide__event_kind kind, uint32_t id) {
    return (uint64_t)slot << 34 | (uint64_t)kind << 32 | id;
}
static inline uint32_t tide__event_slot(uint64_t key) { return (uint32_t)(key >> 34); }
static inline tide__event_kind tide__event_kind_of(uint64_t key) { return (tide__event_kind)(key >> 32 & 3); }
static inline uint32_t tide__event_id(uint64_t key) { return (uint32_t)key; }

/* One stretch of a tensor in the arena, by events, both included. */
typedef struct tide__stay {
    tide_id tensor;
    uint32_t begin, end;
    uint32_t before;   /* the tensor's stay before this one; TIDE_NONE */
    uint32_t last_use; /* in uses[]: the latest, which leads to those before; births count, saves do not */
    bool gone;         /* an op has overwritten it */
} tide__stay;

typedef struct tide__use {
    uint32_t event, before; /* `before`: index in uses[]; TIDE_NONE */
} tide__use;

typedef TIDE_VEC(uint64_t) tide__keys;

typedef struct tide__sketch {
    const tide__model *model;
    uint64_t target_bytes;
    tide__keys extra; /* sorted: the decisions */
    bool *away_first; /* per tensor: PRESENT, but in a tier until its first LOAD */
    bool *away_last;  /* per tensor: kept, but in a tier at the end */
    /* What follows, by tide__sketch_build. Event n_events is the end of the step. */
    uint32_t n_events;
    uint64_t *keys;    /* per event */
    uint64_t *load;    /* per event: bytes while it happens */
    uint64_t *through; /* per event: bytes that were there before it and are needed in it or after it */
    uint32_t *over;    /* per event: how many events before it are above the target */
    uint32_t *slot_at; /* per slot: its first event; n_ops + 2 entries */
    TIDE_VEC(tide__stay) stays;
    TIDE_VEC(tide__use) uses;
    uint32_t *latest; /* per tensor: its last stay; TIDE_NONE */
    bool broken;      /* a re-run reads what an op has overwritten before: it needs another re-run */
    double excess;    /* sum over events of the bytes above the target */
    uint64_t run_ns;  /* all runs together */
    /* scratch */
    size_t room;
    uint64_t *change;
    TIDE_VEC(uint64_t) handovers;
} tide__sketch;

tide_status tide__sketch_create(const tide__model *model, uint64_t target_bytes, tide__sketch **out);
void tide__sketch_destroy(tide__sketch *s); /* NULL is fine */
/* Brings everything up to date with `extra`. */
tide_status tide__sketch_build(tide__sketch *s);
/* No decisions; not built. */
void tide__sketch_clear(tide__sketch *s);
/* Adds or removes a decision; the rest is out of date until the next build. Adding what is there does nothing. */
tide_status tide__sketch_add(tide__sketch *s, uint64_t key);
void tide__sketch_remove(tide__sketch *s, uint64_t key);
bool tide__sketch_has(const tide__sketch *s, uint64_t key);
tide_status tide__keys_copy(const tide__keys *from, tide__keys *to);

static inline bool tide__sketch_fits(const tide__sketch *s) { return s->over[s->n_events] == 0 && !s->broken; }
/* The largest load. */
uint64_t tide__sketch_peak(const tide__sketch *s);
/* The first event with a larger key. */
uint32_t tide__sketch_after(const tide__sketch *s, uint64_t key);

#endif
