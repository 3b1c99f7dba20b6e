/* Transfers: chosen swaps beside a sketch's re-runs, on the clock that those re-runs stretch.
 *
 * The engine of swaps.h says when the SAVEs and LOADs of a choice take place; here they become events of the sketch, so
 * that one load curve shows moves and re-runs together. Invariant after a sync: no chosen gap is idle, so that every
 * transfer hides behind compute. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_TRANSFERS_H
#define TIDE_PLAN_DECIDE_HYBRID_TRANSFERS_H

#include "base/arrays.h"
#include "plan/decide/hybrid/sketch.h"
#include "plan/decide/swaps/swaps.h"

typedef struct tide__gap_rank {
    double score;
    uint32_t gap;
} tide__gap_rank;

typedef struct tide__touch {
    uint32_t slot, next; /* next: in touches; TIDE_NONE */
    bool writes;
} tide__touch;

typedef struct tide__transfers {
    const tide__model *model;
    tide__swaps swaps;
    bool *chosen;  /* per gap */
    double *price; /* per gap: ns per byte to make its value again, by its own op; relative to the dearest */
    double
        stretch; /* how much slower than its runs the step may be, for moves to hide: 1, or more where compute is to wait */
    uint64_t work; /* slots and events looked at, in all calls */
    /* scratch */
    tide__keys reruns, moves;
    tide__gap_rank *order;
    TIDE_VEC(tide__touch) touches; /* of the re-runs of the latest sync */
    uint32_t *first_touch;         /* per tensor: in touches, the earliest; TIDE_NONE */
    tide__arrays arrays;           /* owns the arrays above */
} tide__transfers;

/* All gaps, only the forced ones chosen. `in` must outlive it. */
tide_status tide__transfers_init(const tide__policy_input *in, const tide__model *model, tide__transfers *t);
void tide__transfers_deinit(tide__transfers *t);

/* The moves of the engine's latest evaluation become those of the sketch, beside its re-runs; not built. */
tide_status tide__transfers_apply(tide__transfers *t, tide__sketch *s);
/* Sets the clock to the sketch's re-runs, takes back what does not hide on it, applies the rest and builds. */
tide_status tide__transfers_sync(tide__transfers *t, tide__sketch *s);

typedef struct tide__transfers_taste {
    double noise;  /* scores vary by up to this part */
    double power;  /* by which prices count: 0 not at all */
    uint64_t seed; /* of the noise */
} tide__transfers_taste;

/* Chooses more gaps, best first, as long as they lower the sketch's excess and hide. The sketch is synced then. */
tide_status tide__transfers_fill(tide__transfers *t, tide__sketch *s, tide__transfers_taste taste);

#endif
