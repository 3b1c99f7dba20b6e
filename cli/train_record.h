/* --record: what one training planned and measured, as a file for `tidemark report` (report.h). The plan
 * and its program end with their trainer, so they are put down before that; the figures of all runs come last. */
#ifndef TIDE_CLI_TRAIN_RECORD_H
#define TIDE_CLI_TRAIN_RECORD_H

#include "train_output.h"

typedef struct train_record {
    tide_timeline *timeline; /* of the last step */
    char *begun;
    size_t begun_size;
} train_record;

/* After the last step. */
tide_status record_begin(train_record *r, const tide_trainer *trainer);
tide_status record_write(const train_record *r, const char *path, const char *model, const outcome *runs, int n,
                         uint64_t steps);
void record_free(train_record *r);

#endif
