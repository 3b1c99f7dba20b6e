/* What the import fuzzers share: import a text, and if that gives a program, its liveness must reproduce the load that
 * the importer saw (for a stream), or stay below it (for a log that frees later than the last use). */
#ifndef TIDE_TESTS_FUZZ_IMPORT_CHECK_H
#define TIDE_TESTS_FUZZ_IMPORT_CHECK_H

#include <stdlib.h>

#include <tidemark/program.h>

#include "program/import/import.h"

static inline void import_and_check(const uint8_t *data, size_t size, const tide_import_options *options) {
    tide_program *p = NULL;
    tide_import_stats stats;
    tide_liveness *l = NULL;
    if (tide__import_memory((const char *)data, size, "fuzz", options, &p, &stats) != TIDE_OK) return;
    if (tide_program_cost_ns(p) != stats.total_ns) abort();
    if (tide_liveness_create(p, &l) == TIDE_OK) {
        bool stream = stats.period_events > 0;
        if (stream && tide_program_op_count(p) != stats.period_events * stats.unrolled) abort();
        if (stream && l->peak_bytes != stats.release_peak_bytes) abort();
        tide_liveness_destroy(l);
    }
    tide_program_destroy(p);
}

#endif
