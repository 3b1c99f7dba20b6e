/* See effort.h. */
#include "plan/decide/hybrid/effort.h"

#include "base/size.h"

typedef struct level {
    uint32_t tenths_times_ops; /* rungs to a tenth of the whole, times ops */
    uint64_t work_per_op;      /* of one rung */
    uint64_t edits_times_ops2; /* of polishing, times the square of the ops: entries times edits take that */
} level;

static const level levels[] = {
    [TIDE_EFFORT_LOW] = {1500, 100, 100 * 1000},
    [TIDE_EFFORT_NORMAL] = {4000, 300, 1000 * 1000},
    [TIDE_EFFORT_HIGH] = {8000, 5000, 10 * 1000 * 1000},
};

/* Steps below a third of a percent of the whole are not worth a search. */
enum { MAX_TENTHS = 30, FEW_TENTHS = 10 };

/* Greedy repair takes n builds of n events, at most so many times; and where nothing fits, so many rungs' work. */
enum { GREEDY_TIMES = 8, MOST_TIMES = 10 };

static uint64_t size_of(const tide__generation *g) { return g->model->n_ops + (uint64_t)1; }

static uint32_t tenths_of(const tide__generation *g, tide_effort effort) {
    uint64_t tenths = levels[effort].tenths_times_ops / size_of(g);
    return (uint32_t)tide__min_u64(tide__max_u64(tenths, 1), MAX_TENTHS);
}

bool tide__effort_is_coarse(const tide__generation *g, tide_effort effort) { return tenths_of(g, effort) < FEW_TENTHS; }

tide__descent_options tide__effort_descent(const tide__generation *g, tide_effort effort, double stretch) {
    bool thorough = effort != TIDE_EFFORT_LOW;
    uint64_t n = size_of(g), work = levels[stretch > 1 ? TIDE_EFFORT_LOW : effort].work_per_op * n;
    return (tide__descent_options){.fineness = 10 * tenths_of(g, effort),
                                   .work = work,
                                   .most = tide__max_u64(MOST_TIMES * work, stretch > 1 ? 0 : GREEDY_TIMES * n * n),
                                   .fresh = thorough,
                                   .ascends = thorough,
                                   .stretch = stretch,
                                   .seed = effort};
}

uint64_t tide__effort_edits(const tide__generation *g, tide_effort effort) {
    return levels[effort].edits_times_ops2 / (size_of(g) * size_of(g));
}
