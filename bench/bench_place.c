/* Placement: heights against the lower bound, and what they cost, algorithm by algorithm.
 *
 *      bench_place [FILE.csv...]
 *
 * Without files: perfect packings, rectangles cut into pieces, for which the bound is reached by construction. Seconds
 * are CPU seconds of this process, so that busy neighbours matter less; the search has 1 s of real time. Exit code 1
 * if a file cannot be read or placed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "plan/place/csv.h"

static void require(tide_status status) {
    if (status == TIDE_OK) return;
    fprintf(stderr, "%s: %s\n", tide_status_name(status), tide_last_error());
    exit(1);
}

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One line per algorithm. One that cannot handle the items says so. */
static void measure(const char *name, const tide__place_item *items, size_t n) {
    const tide__place_options all[] = {
        {.algorithm = "smartpool"}, {.algorithm = "skyline"}, {.algorithm = "auto", .time_limit_s = 1}};
    uint64_t *offsets = calloc(n + 1, sizeof *offsets);
    if (!offsets) exit(1);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        tide__place_result r;
        double start = cpu_seconds();
        tide_status status = tide__place(items, n, &all[k], offsets, &r);
        double seconds = cpu_seconds() - start;
        printf("%-24.24s %6zu  %-9s ", k == 0 ? name : "", n, all[k].algorithm);
        if (status == TIDE_E_UNSUPPORTED) {
            printf(" %s\n", tide_last_error());
            continue;
        }
        require(status);
        printf("%12" PRIu64 " %12" PRIu64 " %7.4f %8.4f  %-3s  %s\n", r.lower_bound, r.height,
               r.lower_bound ? (double)r.height / (double)r.lower_bound : 1, seconds, r.optimal ? "yes" : "no",
               r.algorithm);
    }
    free(offsets);
}

static void measure_file(const char *path) {
    tide__place_table table;
    require(tide__place_csv_read(path, &table));
    const char *slash = strrchr(path, '/');
    measure(slash ? slash + 1 : path, table.items, table.n);
    tide__place_table_free(&table);
}

/* Halves pieces, in time or in addresses, until there are n. */
static void cut_rectangle(uint64_t seed, size_t n, tide__place_item *items) {
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
        tide__place_item *items = calloc(sizes[k], sizeof *items);
        if (!items) exit(1);
        cut_rectangle(k, sizes[k], items);
        measure("cut rectangle", items, sizes[k]);
        free(items);
    }
}

int main(int argc, char **argv) {
    printf("%-24s %6s  %-9s %12s %12s %7s %8s  %-3s  %s\n", "problem", "items", "asked", "bound", "height", "ratio",
           "cpu s", "opt", "found by");
    for (int k = 1; k < argc; k++) measure_file(argv[k]);
    if (argc == 1) measure_generated();
    return 0;
}
