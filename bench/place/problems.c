/* Placement problems: heights against the bound, and what they cost, algorithm by algorithm. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "place/bench.h"
#include "plan/place/csv.h"

enum { MANY_ITEMS = 20000 };

static void print_header(void) {
    printf("%-20s %6s  %-9s %12s %12s %7s %8s  %-3s  %s\n", "problem", "items", "asked", "bound", "height", "ratio",
           "cpu s", "opt", "found by");
}

static void print_row(const char *name, size_t n, const char *asked, const timed *t) {
    const tide__place_result *r = &t->result;
    printf("%-20.20s %6zu  %-9s ", name, n, asked);
    if (!t->able)
        printf("does not take it\n");
    else
        printf("%12" PRIu64 " %12" PRIu64 " %7.4f %8.4f  %-3s  %s\n", r->lower_bound, r->height,
               ratio(r->height, r->lower_bound), t->seconds, r->optimal ? "yes" : "no", r->algorithm);
}

/* The N of "name.N.csv": the capacity that is asked for; 0: none, the bound is. */
static uint64_t capacity_of(const char *name) {
    const char *dot = strchr(name, '.');
    char *end;
    if (!dot || dot[1] < '0' || dot[1] > '9') return 0;
    uint64_t capacity = strtoull(dot + 1, &end, 10);
    return strcmp(end, ".csv") == 0 ? capacity : 0;
}

static void judge(const char *name, size_t n, uint64_t capacity, const timed *t) {
    const tide__place_result *r = &t->result;
    if (capacity)
        bar(r->height <= capacity && t->seconds < 0.6, "%s: %s %" PRIu64 " in %.3f s (bar 0.6 s)", name,
            r->height <= capacity ? "within" : "NOT within", capacity, t->seconds);
    else if (n < MANY_ITEMS)
        bar(r->optimal && t->seconds < 0.2, "%s: %.4f of the bound in %.3f s (bar 1.0000, 0.2 s)", name,
            ratio(r->height, r->lower_bound), t->seconds);
    else
        bar(ratio(r->height, r->lower_bound) <= 1.002 && t->seconds < 1.2,
            "%s: %.4f of the bound in %.3f s (bar 1.0020, about 1 s)", name, ratio(r->height, r->lower_bound),
            t->seconds);
}

/* `judged`: the problem is one of those that bars were set for. */
static void measure(const char *name, const tide__place_item *items, size_t n, uint64_t capacity, bool judged) {
    const tide__place_options all[] = {
        {.algorithm = "smartpool"},
        {.algorithm = "skyline"},
        {.algorithm = "auto", .time_limit_s = capacity ? 10 : 1, .capacity = capacity},
    };
    enum { N_ALL = sizeof all / sizeof *all };
    for (size_t k = 0; k < N_ALL; k++) {
        timed t = time_place(items, n, &all[k]);
        print_row(k == 0 ? name : "", n, all[k].algorithm, &t);
        if (judged && k == N_ALL - 1) judge(name, n, capacity, &t);
    }
}

static void measure_file(const char *path) {
    tide__place_table table;
    require(tide__place_csv_read(path, &table));
    measure(file_name(path), table.items, table.n, capacity_of(file_name(path)), true);
    tide__place_table_free(&table);
}

void cut_rectangle(uint64_t seed, size_t n, tide__place_item *items) {
    items[0] = (tide__place_item){.size = 1 << 20, .align = 1, .fixed = TIDE__PLACE_FREE, .end = 1 << 20};
    uint64_t at = 0;
    for (size_t k = 1; k < n;) {
        tide__place_item *whole = &items[tide__random_u64(seed, 0, at++) % k], part = *whole;
        bool in_time = tide__random_u64(seed, 0, at++) % 2;
        uint64_t extent = in_time ? part.end - part.begin : part.size;
        if (extent < 2) continue;
        uint64_t cut = 1 + tide__random_u64(seed, 0, at++) % (extent - 1);
        if (in_time) {
            whole->end = part.begin = part.begin + (uint32_t)cut;
        } else {
            whole->size = cut;
            part.size -= cut;
        }
        items[k++] = part;
    }
}

static void measure_generated(void) {
    static const size_t sizes[] = {50, 100, 200, 400, 1000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        tide__place_item *items = require_memory(calloc(sizes[k], sizeof *items));
        cut_rectangle(k, sizes[k], items);
        measure("cut rectangle", items, sizes[k], 0, false);
        free(items);
    }
}

void bench_problems(const char *const *paths, size_t n) {
    printf("== problems: 1 s for the search, 10 s where a capacity is asked for\n");
    print_header();
    for (size_t i = 0; i < n; i++) measure_file(paths[i]);
    if (n == 0) measure_generated();
}
