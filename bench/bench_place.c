/* Placement and the pool, side by side in one run: heights against proved bounds, what the classics and other allocators
 * make of the same lifetimes, and what it costs.
 *
 *      bench_place [FILE...]
 *
 * FILE.csv is a placement problem, any other file a recorded stream of mallocs and frees; without some of a kind, made
 * ones take their place. Ends with every bar and whether it
 * was reached. Exit code 1 if a file cannot be read or placed, 2 if a bar was missed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/bench.h"

static bool is_problem(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".csv") == 0;
}

/* The arguments of one kind, in order. */
static size_t pick(int argc, char **argv, bool problems, const char **out) {
    size_t n = 0;
    for (int i = 1; i < argc; i++)
        if (is_problem(argv[i]) == problems) out[n++] = argv[i];
    return n;
}

int main(int argc, char **argv) {
    const char **paths =
        require_memory(calloc((size_t)argc + 1, sizeof *paths)); /* NOLINT(bugprone-sizeof-expression) */
    size_t n = pick(argc, argv, true, paths);
    bench_problems(paths, n);
    n = pick(argc, argv, false, paths);
    bench_streams(paths, n);
    bench_models();
    bench_synthetic();
    free(paths);
    return print_bars() ? 0 : 2;
}
