/* 10^5 buffers at once: what a heuristic has to do well without a search. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "place/bench.h"

enum { MANY = 100000 };

static uint64_t draw(uint64_t stream, uint64_t i, uint64_t below) { return tide__random_u64(7, stream, i) % below; }

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
static void fill_window(tide__place_item *items) {
    for (uint64_t i = 0; i < MANY; i++) items[i] = buffer(draw_size(i), i, i + 1 + draw(3, i, 40));
}

/* Begin and end anywhere. */
static void fill_uniform(tide__place_item *items) {
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t a = draw(3, i, MANY), b = draw(4, i, MANY);
        items[i] = buffer(draw_size(i), a < b ? a : b, (a < b ? b : a) + 1);
    }
}

/* Most live shortly, some for long: lengths from 1 to 2^16, each power of two as likely. */
static void fill_mixed(tide__place_item *items) {
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t power = UINT64_C(1) << draw(3, i, 16), begin = draw(4, i, MANY);
        items[i] = buffer(draw_size(i), begin, begin + power + draw(5, i, power));
    }
}

/* A step of training: outputs wait for their backward, which is a mirror; workspaces and gradients in between. */
static void fill_training(tide__place_item *items) {
    uint64_t layers = MANY / 4, end = 2 * layers;
    for (uint64_t i = 0; i < layers; i++) {
        uint64_t back = end - 1 - i;
        items[4 * i] = buffer(draw_size(i), i, back + 1);
        items[4 * i + 1] = buffer(draw_size(layers + i) / 8 + 512, i, i + 1);
        items[4 * i + 2] = buffer(draw_size(i), back, back + 2);
        items[4 * i + 3] = buffer(draw_size(layers + i) / 4 + 512, back, back + 1);
    }
}

/* Not one hole is left at the bound: shown, but no bar was set for it. */
static void fill_cut(tide__place_item *items) { cut_rectangle(9, MANY, items); }

void bench_synthetic(void) {
    static const struct {
        const char *name;
        void (*fill)(tide__place_item *items);
    } all[] = {{"sliding window", fill_window},
               {"uniform", fill_uniform},
               {"mixed lengths", fill_mixed},
               {"training step", fill_training},
               {"cut rectangle", fill_cut}};
    tide__place_item *items = require_memory(calloc(MANY, sizeof *items));
    printf("\n== %d synthetic buffers\n%-18s %8s %8s  %s\n", MANY, "distribution", "ratio", "cpu s", "found by");
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        all[k].fill(items);
        timed t = time_place(items, MANY, &(tide__place_options){.time_limit_s = 0.9});
        double over = ratio(t.result.height, t.result.lower_bound);
        printf("%-18s %8.4f %8.3f  %s\n", all[k].name, over, t.seconds, t.result.algorithm);
        fflush(stdout);
        if (all[k].fill == fill_cut) continue;
        bar(over <= 1.015 && t.seconds < 1.2, "%d buffers, %s: %.4f of the bound in %.3f s (bar 1.0150, about 1 s)",
            MANY, all[k].name, over, t.seconds);
    }
    free(items);
}
