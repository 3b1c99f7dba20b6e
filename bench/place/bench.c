/* See bench.h. */
#include "place/bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BARS = 200, BAR_BYTES = 160 };

static struct {
    char text[MOST_BARS][BAR_BYTES];
    bool reached[MOST_BARS];
    size_t n;
} bars;

void *require_memory(void *block) {
    if (!block) exit(1);
    return block;
}

const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

double ratio(uint64_t a, uint64_t b) { return b ? (double)a / (double)b : 1; }

void bar(bool reached, const char *format, ...) {
    if (bars.n == MOST_BARS) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(bars.text[bars.n], BAR_BYTES, format, arguments);
    va_end(arguments);
    bars.reached[bars.n++] = reached;
}

bool print_bars(void) {
    size_t n_reached = 0;
    printf("\nbars\n");
    for (size_t i = 0; i < bars.n; i++) {
        printf("  %s  %s\n", bars.reached[i] ? "pass" : "MISS", bars.text[i]);
        n_reached += bars.reached[i];
    }
    printf("%zu of %zu bars reached\n", n_reached, bars.n);
    return n_reached == bars.n;
}

timed time_place(const tide__place_item *items, size_t n, const tide__place_options *options) {
    timed t = {0};
    uint64_t *offsets = require_memory(calloc(n + 1, sizeof *offsets));
    double start = cpu_seconds();
    tide_status status = tide__place(items, n, options, offsets, &t.result);
    t.seconds = cpu_seconds() - start;
    t.able = status != TIDE_E_UNSUPPORTED;
    if (t.able) require(status);
    free(offsets);
    return t;
}
