/* See exact.h: the optimum as a shortest path. */
#include <stdlib.h>

#include "base/vec.h"
#include "plan_exact/exact.h"

enum { MAX_COST = 8192 };

typedef TIDE_VEC(uint32_t) states;
typedef struct search {
    const example *x;
    uint32_t room; /* units for values */
    uint32_t *best;
    states *at; /* per cost */
} search;

static uint32_t units_of(const example *x, uint32_t set) {
    uint32_t units = 0;
    for (uint32_t i = 0; i < x->n_ops; i++) units += set >> i & 1 ? x->units[i] : 0;
    return units;
}

static void reach(search *s, uint32_t done, uint32_t set, uint32_t cost) {
    uint32_t state = done << s->x->n_ops | set;
    if (cost >= MAX_COST || cost >= s->best[state]) return;
    s->best[state] = cost;
    require(tide__vec_push(&s->at[cost], state));
}

static void expand(search *s, uint32_t done, uint32_t set, uint32_t cost) {
    for (uint32_t i = 0; i < s->x->n_ops; i++) {
        uint32_t more = set | 1u << i;
        if (set >> i & 1)
            reach(s, done, set & ~(1u << i), cost);
        else if (i <= done && (s->x->reads[i] & ~set) == 0 && units_of(s->x, more) <= s->room)
            reach(s, done + (i == done), more, cost + s->x->cost[i]);
    }
}

static uint32_t walk(search *s) {
    uint32_t found = 0, n_ops = s->x->n_ops;
    reach(s, 0, 0, 0);
    for (uint32_t cost = 0; cost < MAX_COST; cost++) {
        for (size_t i = 0; i < s->at[cost].count && !found; i++) {
            uint32_t state = s->at[cost].data[i], done = state >> n_ops, set = state & ((1u << n_ops) - 1);
            if (s->best[state] != cost) continue;
            if (done == n_ops && set >> (n_ops - 1) & 1) found = cost;
            expand(s, done, set, cost);
        }
        tide__vec_free(&s->at[cost]);
    }
    return found;
}

uint32_t optimum_by_paths(const example *x, uint32_t room) {
    size_t n = (size_t)(x->n_ops + 1) << x->n_ops;
    search s = {.x = x, .room = room};
    s.best = malloc(n * sizeof *s.best);
    s.at = calloc(MAX_COST, sizeof *s.at);
    if (!s.best || !s.at) exit(1);
    for (size_t i = 0; i < n; i++) s.best[i] = UINT32_MAX;
    uint32_t found = walk(&s);
    free(s.best);
    free(s.at);
    return found;
}
