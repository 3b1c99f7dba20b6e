/* Replays: a recorded stream of mallocs and frees through the pool, over addresses without memory, and what other
 * allocators and placements would have made of it. */
#ifndef TIDEMARK_REPLAY_H
#define TIDEMARK_REPLAY_H

#include <stdbool.h>

#include <tidemark/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_replay_options {
    size_t size;            /* sizeof(tide_replay_options) */
    tide_pool_options pool; /* its backing is replaced */
    const char *from;       /* the stream's format, as for imports; NULL: by content */
    uint32_t deviate_every; /* iterations, about: a malloc is added or left out; 0: never */
    uint64_t seed;          /* of the deviations */
    uint64_t limit_bytes;   /* what the other online allocators have; 0: no limit */
} tide_replay_options;
TIDE_API void tide_replay_options_init(tide_replay_options *options);

typedef struct tide_replay_result {
    size_t size;           /* sizeof(tide_replay_result) */
    uint64_t n_events;     /* of the stream */
    tide_pool_stats stats; /* after the last event, blocks that the stream never frees still live */
    uint64_t n_extra, n_missing;
    /* While learning: up to the first iteration of which a plan answered a malloc. */
    uint64_t learn_events, learn_peak_held_bytes;
    /* Steady: the iterations after that one. */
    uint64_t n_iterations, n_watched, n_planned;
    uint64_t peak_live_bytes, peak_held_bytes;
    uint64_t longest_off_events;
    double worst_share; /* planned / watched of the worst of them; 1 if there are none */
} tide_replay_result;

/* Offline placements of the stream's iteration:
 *
 *      two slots     SmartPool as published: blocks that outlive the iteration get two places for the whole of it, used
 *                    in turn; the others are placed by their lifetimes
 *      two turns     two iterations (more, if a block lives longer) are placed on a circle, every block by its lifetime
 *      engine        the same circle, by this project's placement
 *
 * Blocks that the stream keeps through all iterations (weights) belong to no iteration: their bytes are added to each. */
typedef struct tide_replay_offline {
    uint32_t period_events, n_blocks; /* of one iteration */
    size_t end_event;                 /* request where the iterations end */
    uint64_t resident_bytes;          /* of the blocks that belong to no iteration */
    uint64_t load_bytes;              /* most that is live at once in an iteration, with the residents; likewise: */
    uint64_t bound_bytes;             /* no placement on the circle is lower */
    uint64_t two_slots_bytes;         /* SmartPool as published; 0: the iteration is too large for it */
    uint64_t two_turns_bytes;         /* its variant; likewise */
    uint64_t engine_bytes;
    bool engine_optimal;          /* no placement on the circle is lower */
    const char *engine_algorithm; /* what found it: a static string */
} tide_replay_offline;

#define TIDE_REPLAY_N_ONLINE 4
typedef struct tide_replay_others {
    size_t size;         /* sizeof(tide_replay_others) */
    uint64_t load_bytes; /* most that is live at once in the whole stream */
    struct {
        const char *name; /* "first_fit", "best_fit", one like CnMem, one like PyTorch's; static */
        uint64_t peak_held_bytes;
        uint64_t n_segments;
        bool fits; /* else there is not enough memory for it, and the rest is 0 */
    } online[TIDE_REPLAY_N_ONLINE];
    bool repeats; /* else `offline` is empty */
    tide_replay_offline offline;
    uint64_t recorded_bytes; /* addresses that blocks ever had, in steps of 512; 0: the stream has no addresses */
} tide_replay_others;

/* The sizes of result and others are set; others may be NULL. pool.alignment and pool.plan_seconds are for both. */
TIDE_API tide_status tide_replay_file(const char *path, const tide_replay_options *options, tide_replay_result *result,
                                      tide_replay_others *others);

#ifdef __cplusplus
}
#endif
#endif
