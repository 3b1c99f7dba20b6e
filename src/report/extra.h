/* What a report shows besides its plan when it is given: a training that was measured (`tidemark train --json`) and a
 * comparison of policies (`tidemark compare --json`). Both come from files and are checked like every file; the formats
 * are in docs/formats.md. */
#ifndef TIDE_REPORT_EXTRA_H
#define TIDE_REPORT_EXTRA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

enum { TIDE__EXTRA_NAME_BYTES = 64 };

/* One run of a measured training. */
typedef struct tide__measured_run {
    char policy[TIDE__EXTRA_NAME_BYTES];
    uint64_t arena_bytes, tier_bytes, step_ns, saved_bytes, loaded_bytes, reruns;
    uint64_t disk_written_bytes, disk_read_bytes; /* 0: not given, or no disk */
    double last_loss, accuracy;                   /* NaN: not given */
    bool compared, same_bits;                     /* with the first run */
} tide__measured_run;

typedef struct tide__measured {
    char model[TIDE__EXTRA_NAME_BYTES]; /* "" if nothing was given */
    uint64_t steps;
    TIDE_VEC(tide__measured_run) runs;
} tide__measured;

/* One plan of a comparison. */
typedef struct tide__point {
    char policy[TIDE__EXTRA_NAME_BYTES];
    bool fits;
    uint64_t budget_bytes;         /* 0: none */
    uint64_t arena_bytes, step_ns; /* 0 if it does not fit */
} tide__point;

typedef struct tide__compared {
    char program[TIDE__EXTRA_NAME_BYTES], machine[TIDE__EXTRA_NAME_BYTES];
    uint64_t whole_bytes, whole_ns; /* unconstrained */
    TIDE_VEC(tide__point) points;
} tide__compared;

/* On failure *out is untouched; errors begin with the path. */
tide_status tide__measured_read(const char *path, tide__measured *out);
tide_status tide__compared_read(const char *path, tide__compared *out);
tide_status tide__measured_read_memory(const char *text, size_t size, const char *name, tide__measured *out);
tide_status tide__compared_read_memory(const char *text, size_t size, const char *name, tide__compared *out);
void tide__measured_free(tide__measured *m);
void tide__compared_free(tide__compared *c);

#endif
