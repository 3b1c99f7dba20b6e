/* What the parts of bench_place share. Seconds are CPU seconds of this process, so that busy neighbours matter less.
 * Every bar is printed where it is measured and again, as a summary, at the end. */
#ifndef TIDE_BENCH_PLACE_BENCH_H
#define TIDE_BENCH_PLACE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common.h"
#include "plan/place/place.h"

void *require_memory(void *block);
const char *file_name(const char *path);
double ratio(uint64_t a, uint64_t b); /* a / b; 1 if b is 0 */

/* One bar: what was asked, whether it was reached. A line goes to the summary. */
void bar(bool reached, const char *format, ...) TIDE_PRINTF(2, 3);
/* Prints the summary; false if a bar was missed. */
bool print_bars(void);

typedef struct timed {
    tide__place_result result;
    double seconds;
    bool able; /* else the algorithm does not take the items, and the rest is empty */
} timed;
timed time_place(const tide__place_item *items, size_t n, const tide__place_options *options);

/* ---- the parts ---- */

/* Problems from files, or perfect packings if there are none. */
void bench_problems(const char *const *paths, size_t n);
/* Recorded streams, or made ones if there are none: placements, other allocators, the pool. */
void bench_streams(const char *const *paths, size_t n);
/* Every family of models at three batch sizes, and some very deep ones. */
void bench_models(void);
/* 10^5 buffers and more, in several distributions. */
void bench_synthetic(void);

/* Halves a rectangle in time or addresses until there are n pieces: the bound is reached by construction. */
void cut_rectangle(uint64_t seed, size_t n, tide__place_item *items);

#endif
