/* Swaps: which values could leave the arena, and when the transfers of a chosen set of absences take place.
 *
 * The engine under every policy that swaps. A *gap* is a stretch in which a value need not be in the arena. Given a
 * choice of gaps, SAVEs go out as early as they can (earliest next, by the op after which the bytes are wanted) and
 * LOADs come in as late as they can (last deadline last), each channel by itself; what remains in between is absence:
 *
 *   slot          ready     from        free              load         to
 *   compute   ... write ─── last use ─────────────────────────────── next use ...
 *   out                ▐▐▐ wait ▐▐SAVE▐▐                    .
 *   in                                  .                  ▐▐LOAD▐▐▐▐▐
 *   arena     █████████████████████████ ░░░░░ absent ░░░░░ ███████████████
 *
 * Times are on a given clock: slot_ns[k] is when op k starts. A caller who allows compute to wait, or re-runs ops,
 * stretches that clock; the slots that come out make the plan wait there, and no longer.
 *
 *   tide__swaps s;
 *   TIDE_TRY(tide__swaps_init(&s, in, &options));
 *   chosen[i] = true ...;                                  // one per gap of s.gaps
 *   tide__swaps_outcome o = tide__swaps_evaluate(&s, chosen, target_bytes);
 *   TIDE_TRY(tide__swaps_decide(&s, chosen, &decisions));
 *   tide__swaps_deinit(&s); */
#ifndef TIDE_PLAN_DECIDE_SWAPS_H
#define TIDE_PLAN_DECIDE_SWAPS_H

#include "base/arrays.h"
#include "plan/decide/swaps/tiers.h"

/* What one gap is.
 *   inside:  `tensor` is unused in the slots [from, to) and comes back for op `to`. from = 0: it starts in the tier;
 *            to = TIDE_NONE: it does not come back, it ends in the tier.
 *            The first LOAD of an input that is carried waits for what it is carried to, from = the slot behind its last use.
 *   across:  (head != TIDE_NONE) `tensor` is unused from slot `from` to the end of the step and is carried to `head`,
 *            which op `to` of the next step uses first: weights and optimizer state. to = TIDE_NONE: no op does. */
typedef struct tide__swap_gap {
    tide_id tensor, head;
    uint32_t tier;
    uint32_t ready;  /* slot from which the value exists, so that a SAVE can start */
    uint32_t from;   /* first slot after its last use */
    uint32_t to;     /* slot of its next use; n_ops: needed in the arena at the end */
    uint32_t across; /* inside: the gap whose choice leaves a copy in the tier at the start; TIDE_NONE: none does */
    uint64_t size_bytes;
    uint64_t moved_bytes;   /* the same in whole blocks of the tier */
    uint64_t out_ns, in_ns; /* of its transfers */
    bool clean;             /* the tier has it in any case: inputs, and what is carried to itself */
    bool
        forced; /* always chosen: the first LOAD of an input (early instead of at the op, but not before `from`), what no op uses */
} tide__swap_gap;

typedef struct tide__swaps_options {
    uint64_t min_bytes; /* smaller values stay */
    bool weights_stay;  /* only what the step makes, and inputs, may leave */
    bool late_saves;    /* a SAVE starts after the last use, not after the write (AutoSwap, as published) */
    bool always_save;   /* every absence saves, also what the tier has already (likewise) */
    bool fast_ops;      /* each slot takes what the fastest variant of its op's bits class does */
    /* Re-runs that are decided already, by ascending slot and op, and variants: they change clock and loads, and what a re-run
     * reads comes back for it. NULL: none. */
    const tide__decisions *beside;
} tide__swaps_options;

typedef struct tide__swaps {
    const tide__policy_input *in;
    tide__swaps_options options;
    uint32_t n_ops;
    TIDE_VEC(tide__swap_gap) gaps;
    uint64_t *op_ns; /* n_ops: what each slot takes */
    uint64_t *
        base_loads; /* n_ops + 1: bytes in the arena when nothing is absent. An input counts from where its first LOAD's gap
                             begins */
    uint64_t *slot_ns; /* n_ops + 1: when each slot starts; may be changed between evaluations, never falling */
    uint64_t
        *wait_ns; /* n_ops + 1: of these, how long compute waits before each slot: op k ends before wait_ns[k + 1] */
    uint32_t *need_slot; /* per gap: its LOAD ends before this slot; at first `to`. Reorder after a change. */
    tide__tiers tiers;   /* that values may go to */
    bool limited;        /* their rooms may be too small: evaluations refuse what comes last */
    bool spread;         /* values have been given their tiers (swap_tiers.h) */
    /* Of the latest evaluation. */
    uint64_t *loads;     /* n_ops + 1 */
    uint32_t *free_slot; /* per gap: its bytes are free from here on; `from` or later */
    uint32_t *save_slot; /* per gap: the slot before which its SAVE ends; TIDE_NONE: no SAVE */
    uint32_t *load_slot; /* per gap: its bytes are taken again; TIDE_NONE: no LOAD */
    bool *idle;          /* per gap: chosen, but the transfers take all of it, or more than the step has, or refused */
    bool *refused;       /* per gap: chosen, but its tier has no room for it then; n_refused of them */
    uint32_t n_refused;
    uint32_t *save_order; /* the gaps that save, n_saves of them, in channel order */
    uint32_t n_saves;
    struct tide__swaps_work *work;
    struct tide__swaps_rooms *rooms; /* NULL: nothing is limited */
    tide__arrays arrays;             /* owns the arrays above */
} tide__swaps;

/* The slot behind the last of an inside gap. */
static inline uint32_t tide__swap_gap_end(const tide__swaps *s, const tide__swap_gap *g) {
    return g->to == TIDE_NONE ? s->n_ops + 1 : g->to;
}

typedef struct tide__swaps_outcome {
    uint64_t peak_bytes; /* the largest load */
    double excess;       /* byte nanoseconds above the target */
    uint64_t late_ns;    /* by which transfers reach over the ends of the step */
    uint32_t n_idle;     /* gaps that should not have been chosen */
} tide__swaps_outcome;

/* `in` must outlive it. */
tide_status tide__swaps_init(tide__swaps *s, const tide__policy_input *in, const tide__swaps_options *options);
void tide__swaps_deinit(tide__swaps *s);

/* For who has put other gaps, base_loads or op_ns there: all that follows from them. */
tide_status tide__swaps_restart(tide__swaps *s);

/* After changes of need_slot. Quick if few change. */
void tide__swaps_reorder(tide__swaps *s);

/* Linear in ops and gaps but for the SAVEs, which are n log n in those chosen. */
tide__swaps_outcome tide__swaps_evaluate(tide__swaps *s, const bool *chosen, uint64_t target_bytes);

/* Takes back what is chosen for nothing, evaluating again until no gap is idle. */
tide__swaps_outcome tide__swaps_settle(tide__swaps *s, bool *chosen, uint64_t target_bytes);

/* Takes back what was refused, evaluating again until nothing is. What is idle for other reasons stays. */
tide__swaps_outcome tide__swaps_drop_refused(tide__swaps *s, bool *chosen, uint64_t target_bytes);

/* Appends the swaps of the latest evaluation, which must be of this choice and have no idle gap. */
tide_status tide__swaps_decide(const tide__swaps *s, const bool *chosen, tide__decisions *out);

/* Slot times back to those of op_ns, without waits. */
void tide__swaps_reset_times(tide__swaps *s);

/* Other tiers or rates: the orders of SAVEs and LOADs are made anew, needs are those of the program again. */
tide_status tide__swaps_reset_orders(tide__swaps *s);

/* Values below *out are not worth a transfer: a small part of the target each, and all that are alive at the peak
 * together a small part of it, too. In very deep networks the latter makes every weight worth one. */
tide_status tide__swap_least_bytes(const tide__policy_input *in, uint64_t *out);

#endif
