/* A run's record: everything a report needs, in one file that needs no other. `tidemark train --record` writes it, `tidemark
 * report` reads it; the format is in docs/formats.md.
 *
 * Invariant: a record that was read has one pair of times per action of its plan. Whether the plan is safe is the
 * verifier's word, as with any plan from a file. */
#ifndef TIDE_REPORT_RUN_FILE_H
#define TIDE_REPORT_RUN_FILE_H

#include <tidemark/ops.h>
#include <tidemark/plan.h>

#include "base/vec.h"
#include "report/extra.h"

typedef TIDE_VEC(uint64_t) tide__times;

typedef struct tide__run_file {
    tide_machine machine;
    tide_program *program;
    tide_plan *plan;
    uint64_t budget_bytes;        /* of the arena; UINT64_MAX: none */
    tide__times start_ns, end_ns; /* per action, measured */
    TIDE_VEC(tide_shape) shapes;  /* per tensor; n = 0: not known */
    tide__measured measured;
} tide__run_file;

/* Whether the first line of a text says that it is a record. */
bool tide__run_file_is(const char *text, size_t size);
/* On failure *out is empty. */
tide_status tide__run_file_read_memory(const char *text, size_t size, const char *name, tide__run_file *out);
void tide__run_file_free(tide__run_file *r);

/* What is written; everything is borrowed. */
typedef struct tide__run_record {
    const tide_machine *machine;
    const tide_program *program;
    const tide_plan *plan;
    const tide_timeline *timeline; /* measured */
    const tide_shape *shapes;      /* per tensor */
    uint64_t budget_bytes;
} tide__run_record;
/* All but the last part, so that plan and program need not outlive their trainer. The caller frees *text. */
tide_status tide__run_record_begin(const tide__run_record *record, char **text, size_t *size);
/* The whole file: what begin gave, and what `tidemark train --json` prints, as text. */
tide_status tide__run_record_write(const char *begun, size_t begun_size, const char *measured, size_t measured_size,
                                   const char *path);

#endif
