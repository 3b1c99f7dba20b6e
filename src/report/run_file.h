/* A run's record as data. `tidemark train --record` writes it, `tidemark
 * report` reads it; the format is in docs/formats.md.
 *
 * Invariant: a record that was read has one pair of times per action of its plan. Whether the plan is safe is the
 * verifier's word, as with any plan from a file. */
#ifndef TIDE_REPORT_RUN_FILE_H
#define TIDE_REPORT_RUN_FILE_H

#include <tidemark/report.h>

#include "base/vec.h"
#include "report/extra.h"

typedef TIDE_VEC(uint64_t) tide__times;

/* One of several ranks. */
typedef struct tide__record_rank {
    char host[TIDE__EXTRA_NAME_BYTES];
    uint64_t begin_ns;   /* of its step, since the earliest began */
    tide_record *record; /* without figures; NULL: the record itself, which is that of rank 0 */
} tide__record_rank;

struct tide_record {
    tide_machine machine;
    tide_program *program;
    tide_plan *plan;
    uint64_t budget_bytes;        /* of the arena; UINT64_MAX: none */
    tide__times start_ns, end_ns; /* per action, measured */
    TIDE_VEC(tide_shape) shapes;  /* per tensor; n = 0: not known */
    tide__measured measured;
    TIDE_VEC(tide__record_rank) ranks; /* empty: there is one */
};

#endif
