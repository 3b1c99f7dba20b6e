/* SmartPool as an allocator: malloc and free for programs that cannot be changed.
 *
 * Training repeats. The pool watches the stream of mallocs and frees, finds the iteration, gives each of its blocks an
 * offset in one region of the backing memory, and from then on answers the n-th malloc of the iteration with
 * base + offset, without a search. What does not match the plan comes from the backing, as everything did before.
 *
 *      malloc 4 MiB, malloc 1 MiB, free ...        learn: every block from the backing
 *      malloc 4 MiB, malloc 1 MiB, free ...        ... it repeats: plan the iteration
 *      malloc 4 MiB, malloc 1 MiB, free ...        served: region + offset
 *      malloc 4 MiB, malloc 9 MiB (?), ...         a deviation: that block from the backing, then back on the plan
 *
 * Live blocks never overlap, whatever the client does: a planned offset is handed out only while no live block lies in
 * its bytes. The pool never reads or writes the memory it hands out, so the backing may be any address space. A block
 * may be handed out again as soon as it is freed: a client that works on the memory asynchronously frees a block when
 * the work is ordered before whatever it mallocs next.
 *
 * All functions may be called from any thread. The idea is SmartPool's (Zhang et al. 2019, arXiv 1903.06631). */
#ifndef TIDEMARK_POOL_H
#define TIDEMARK_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <tidemark/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_pool tide_pool;

/* Where memory comes from. Both functions are called with the pool's lock held: they must not call the pool. */
typedef struct tide_pool_backing {
    /* A block of at least size_bytes (> 0) at a multiple of `alignment` (a power of two), disjoint from all others that
     * are not freed yet. Not NULL. Its failures reach the caller of tide_pool_malloc. */
    tide_status (*alloc)(void *context, uint64_t size_bytes, uint64_t alignment, void **out);
    /* Gives it back; size_bytes is what alloc was asked for. */
    void (*free)(void *context, void *block, uint64_t size_bytes);
    void *context;
} tide_pool_backing;

/* Anonymous mappings of the host. */
TIDE_API tide_pool_backing tide_pool_host_backing(void);

typedef struct tide_pool_options {
    size_t size; /* sizeof(tide_pool_options) */
    tide_pool_backing backing;
    uint64_t min_block_bytes;   /* smaller blocks are not watched: they always come from the backing */
    uint64_t alignment;         /* of every block: a power of two, at most 2 MiB */
    uint32_t max_plans;         /* 1 to 64: iterations to remember, e.g. training and evaluation */
    uint32_t max_period_events; /* 16 to 2^22: mallocs and frees of the longest iteration that is looked for; the
                                   pool needs about 90 bytes of host memory for each */
    double plan_seconds;        /* how long a plan may be improved; 0: fast heuristics only */
} tide_pool_options;

/* Defaults: host backing, every block watched, alignment 256, 8 plans, 65536 events, 0.5 s. */
TIDE_API void tide_pool_options_init(tide_pool_options *options);

/* Learns from the first malloc on. The options are copied; the backing is used until tide_pool_destroy. */
TIDE_API tide_status tide_pool_create(const tide_pool_options *options, tide_pool **out);

/* Gives all memory back, that of blocks still live too. NULL is allowed. */
TIDE_API void tide_pool_destroy(tide_pool *pool);

/* size_bytes 0 yields NULL and success. TIDE_E_MEMORY for more than 2^60 bytes; else what the backing reports. */
TIDE_API tide_status tide_pool_malloc(tide_pool *pool, uint64_t size_bytes, void **out);

/* NULL is allowed. TIDE_E_ARGUMENT for an address that is not that of a live block of this pool, e.g. a second free. */
TIDE_API tide_status tide_pool_free(tide_pool *pool, void *block);

/* Counts are since the pool's creation. Watched blocks are those of at least min_block_bytes. */
typedef struct tide_pool_stats {
    uint64_t n_mallocs, n_frees; /* of all blocks */
    uint64_t n_watched;          /* mallocs of watched blocks: planned + fallbacks */
    uint64_t n_planned;          /* answered from a plan */
    uint64_t n_fallbacks;        /* watched, but from the backing: while learning, off the plan, or in conflict */
    uint64_t n_conflicts;        /* fallbacks because a live block lay in the planned bytes */
    uint64_t n_iterations;       /* that ended while a plan was being followed */
    uint64_t n_deviations;       /* times the stream left the plan */
    uint64_t n_returns;          /* times it came back to one */
    uint64_t longest_off_events; /* most events in a row that had no place in a plan, once there was one */
    uint64_t n_plans_made, n_plans_dropped;
    uint64_t first_plan_event; /* events of the watched stream before the first plan; 0: no plan yet */
    uint64_t plan_ns;          /* time spent in planning */

    uint64_t live_bytes, peak_live_bytes; /* what the client asked for */
    uint64_t held_bytes, peak_held_bytes; /* what the backing was asked for */
    uint64_t region_bytes;                /* of held_bytes: the region that plans use */

    uint32_t n_plans;           /* remembered now */
    uint32_t period_events;     /* of the plan that is or was last followed; 0: no plan yet, likewise below */
    uint64_t plan_bytes;        /* its footprint in the region */
    uint64_t plan_load_bytes;   /* its largest load: no placement is lower */
    const char *plan_algorithm; /* which one placed it; NULL: no plan yet */
} tide_pool_stats;
TIDE_API void tide_pool_get_stats(tide_pool *pool, tide_pool_stats *out);

/* The peaks start anew from what is live and held now. */
TIDE_API void tide_pool_reset_peaks(tide_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
