/* Many buffers at once, which a heuristic has to place well without a search: 10^5 in several distributions, 25000 as
 * compilers have them, 10^6. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "place/bench.h"
#include "place/compiled.h"

enum { MANY = 100000, COMPILED = 25000, MOST = 1000000, SEEDS = 3, SEED = 7 };

static uint64_t draw(uint64_t stream, uint64_t i, uint64_t below) { return tide__random_u64(SEED, stream, i) % below; }

/* From 512 bytes to 32 MiB, each power of two as likely. */
static uint64_t draw_size(uint64_t i) {
    uint64_t power = UINT64_C(512) << draw(1, i, 16);
    return (power + draw(2, i, power)) / 512 * 512;
}

static tide__place_item buffer(uint64_t size, uint64_t begin, uint64_t end) {
    return (tide__place_item){
        .size = size, .align = 1, .fixed = TIDE__PLACE_FREE, .begin = (uint32_t)begin, .end = (uint32_t)end};
}

/* Short lives, one after the other. */
static void fill_window(tide__place_item *items, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) items[i] = buffer(draw_size(i), i, i + 1 + draw(3, i, 40));
}

/* Begin and end anywhere. */
static void fill_uniform(tide__place_item *items, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t a = draw(3, i, n), b = draw(4, i, n);
        items[i] = buffer(draw_size(i), a < b ? a : b, (a < b ? b : a) + 1);
    }
}

/* Most live shortly, some for long: lengths from 1 to 2^16, each power of two as likely. */
static void fill_mixed(tide__place_item *items, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t power = UINT64_C(1) << draw(3, i, 16), begin = draw(4, i, n);
        items[i] = buffer(draw_size(i), begin, begin + power + draw(5, i, power));
    }
}

/* A step of training: outputs wait for their backward, which is a mirror; workspaces and gradients in between. */
static void fill_training(tide__place_item *items, uint64_t n) {
    uint64_t layers = n / 4, end = 2 * layers;
    for (uint64_t i = 0; i < layers; i++) {
        uint64_t back = end - 1 - i;
        items[4 * i] = buffer(draw_size(i), i, back + 1);
        items[4 * i + 1] = buffer(draw_size(layers + i) / 8 + 512, i, i + 1);
        items[4 * i + 2] = buffer(draw_size(i), back, back + 2);
        items[4 * i + 3] = buffer(draw_size(layers + i) / 4 + 512, back, back + 1);
    }
}

/* Not one hole is left at the bound: shown, but no bar was set for it. */
static void fill_cut(tide__place_item *items, uint64_t n) { cut_rectangle(9, n, items); }

/* ---- rows ---- */

typedef struct row {
    const char *name;
    void (*fill)(tide__place_item *items, uint64_t n);
    double most; /* times the bound; 0: no bar */
} row;

static timed time_row(const char *name, size_t n, uint64_t drawn, double seconds, const tide__place_item *items) {
    timed t = time_place(items, n, &(tide__place_options){.time_limit_s = seconds});
    printf("%-18s %8zu %6llu %8.5f %8.3f  %s\n", name, n, (unsigned long long)drawn,
           ratio(t.result.height, t.result.lower_bound), t.seconds, t.result.algorithm);
    fflush(stdout);
    return t;
}

static timed measure(const row *r, size_t n, double seconds, tide__place_item *items) {
    r->fill(items, n);
    return time_row(r->name, n, SEED, seconds, items);
}

static void measure_many(tide__place_item *items) {
    static const row rows[] = {{"sliding window", fill_window, 1.015},
                               {"uniform", fill_uniform, 1.015},
                               {"mixed lengths", fill_mixed, 1.015},
                               {"training step", fill_training, 1.015},
                               {"cut rectangle", fill_cut, 0}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        timed t = measure(&rows[k], MANY, 0.9, items);
        double over = ratio(t.result.height, t.result.lower_bound);
        if (rows[k].most > 0)
            bar(over <= rows[k].most && t.seconds < 1.2,
                "%d buffers, %s: %.4f of the bound in %.3f s (bar %.4f, about 1 s)", MANY, rows[k].name, over,
                t.seconds, rows[k].most);
    }
}

/* The worst of some seeds counts. */
static void measure_compiled(tide__place_item *items) {
    for (size_t k = 0; k < COMPILED_KINDS; k++) {
        double worst = 1, slowest = 0;
        for (uint64_t s = 1; s <= SEEDS; s++) {
            compiled_kinds[k].fill(s, COMPILED, items);
            timed t = time_row(compiled_kinds[k].name, COMPILED, s, 0.9, items);
            double over = ratio(t.result.height, t.result.lower_bound);
            worst = over > worst ? over : worst;
            slowest = t.seconds > slowest ? t.seconds : slowest;
        }
        bar(worst <= 1.0005 && slowest < 1.2,
            "%d buffers of a compiler, %s: %.5f of the bound in %.3f s (bar 1.0005, about 1 s)", COMPILED,
            compiled_kinds[k].name, worst, slowest);
    }
}

static void measure_most(tide__place_item *items) {
    static const row rows[] = {{"sliding window", fill_window, 0}, {"mixed lengths", fill_mixed, 0}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        timed t = measure(&rows[k], MOST, 6, items);
        bar(t.seconds < 10, "%d buffers, %s: placed in %.1f s (bar 10 s)", MOST, rows[k].name, t.seconds);
    }
}

void bench_synthetic(void) {
    tide__place_item *items = require_memory(calloc(MOST, sizeof *items));
    printf("\n== synthetic buffers\n%-18s %8s %6s %8s %8s  %s\n", "distribution", "buffers", "seed", "ratio", "cpu s",
           "found by");
    measure_many(items);
    measure_compiled(items);
    measure_most(items);
    free(items);
}
