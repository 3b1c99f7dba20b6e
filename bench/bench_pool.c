/* The pool: what a malloc and its free cost on the plan and off it. How it serves recorded streams is in bench_place.
 *
 * The iterations are nets of 10 to 10^4 layers; strange ones come once and never again. Times are CPU times of this
 * process, the best of a few runs, so that busy neighbours matter less; the backing costs nothing. Exit code 1 when a
 * pair on the plan takes more than 60 ns or the plan serves less than 99 %. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <tidemark/pool.h>

#include "base/rng.h"
#include "common.h"

/* ---- a net's iterations ---- */

static tide_status free_alloc(void *context, uint64_t size_bytes, uint64_t alignment, void **out) {
    uintptr_t *next = context;
    *next = (*next + alignment - 1) & ~(alignment - 1);
    *out = (void *)*next; /* NOLINT(performance-no-int-to-ptr): nobody dereferences it */
    *next += size_bytes;
    return TIDE_OK;
}

static void free_free(void *context, void *block, uint64_t size_bytes) {
    (void)context;
    (void)block;
    (void)size_bytes;
}

typedef struct net {
    tide_pool *pool;
    uint32_t layers;
    uint64_t noise; /* added to sizes: a new value is an iteration never seen before */
    void **kept;
    uintptr_t next;
} net;

static void net_create(net *n, uint32_t layers) {
    tide_pool_options o;
    tide_pool_options_init(&o);
    *n = (net){.layers = layers, .next = 1 << 20};
    o.backing = (tide_pool_backing){.alloc = free_alloc, .free = free_free, .context = &n->next};
    o.plan_seconds = 0;
    o.max_period_events = 1 << 18;
    n->kept = calloc(layers, sizeof *n->kept);
    if (!n->kept) exit(1);
    require(tide_pool_create(&o, &n->pool));
}

static void net_destroy(net *n) {
    tide_pool_destroy(n->pool);
    free(n->kept);
}

static uint64_t layer_bytes(const net *n, uint32_t layer) { return 4096 * (1 + layer * UINT64_C(7) % 97) + n->noise; }

static void *take(const net *n, uint64_t size_bytes) {
    void *block;
    require(tide_pool_malloc(n->pool, size_bytes, &block));
    return block;
}

static void give(const net *n, void *block) { require(tide_pool_free(n->pool, block)); }

/* Forward keeps an output per layer and uses a workspace; backward replaces one gradient by the next. */
static uint64_t run_iteration(net *n) {
    for (uint32_t i = 0; i < n->layers; i++) {
        n->kept[i] = take(n, layer_bytes(n, i));
        give(n, take(n, 512 * (1 + i * UINT64_C(5) % 31) + n->noise));
    }
    void *gradient = take(n, 4000);
    for (uint32_t i = n->layers; i-- > 0;) {
        void *next = take(n, layer_bytes(n, i));
        give(n, n->kept[i]);
        give(n, gradient);
        gradient = next;
    }
    give(n, gradient);
    return 3 * (uint64_t)n->layers + 1;
}

/* ns per pair over about `pairs` of them; a new iteration each time if `strange`. */
static double measure(net *n, uint64_t pairs, int strange) {
    uint64_t done = 0;
    double start = cpu_seconds();
    while (done < pairs) {
        if (strange) n->noise = tide__random_u64(1, 1, n->noise) % 65536 * 512;
        done += run_iteration(n);
    }
    n->noise = 0;
    return (cpu_seconds() - start) * 1e9 / (double)done;
}

static bool bench_net(uint32_t layers) {
    net n;
    tide_pool_stats before, after;
    net_create(&n, layers);
    double planned = 1e9, off = 1e9;
    for (int i = 0; i < 5; i++) run_iteration(&n);
    tide_pool_get_stats(n.pool, &before);
    for (int i = 0; i < 5; i++) {
        double ns = measure(&n, 1000000, 0);
        if (ns < planned) planned = ns;
    }
    tide_pool_get_stats(n.pool, &after);
    for (int i = 0; i < 3; i++) {
        double ns = measure(&n, 100000, 1);
        if (ns < off) off = ns;
    }
    double share = (double)(after.n_planned - before.n_planned) / (double)(after.n_watched - before.n_watched);
    printf("%8u %9u %9.1f %11.1f %9.2f %10.3f %9.1f\n", layers, after.period_events, planned, off, 100 * share,
           (double)after.plan_bytes / (double)after.plan_load_bytes, (double)after.plan_ns / 1e6);
    net_destroy(&n);
    return planned <= 60 && share >= 0.99;
}

int main(void) {
    bool good = true;
    puts("  layers    period   ns/pair  ... strange  served %  plan/load   plan ms");
    for (uint32_t layers = 10; layers <= 10000; layers *= 10) good = bench_net(layers) && good;
    return good ? 0 : 1;
}
