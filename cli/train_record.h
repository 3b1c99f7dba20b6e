/* --record: what one training planned and measured, as a file for `tidemark report` (src/report/run_file.h). The plan
 * and its program end with their trainer, so they are put down before that; the figures of all runs come last. */
#ifndef TIDE_CLI_TRAIN_RECORD_H
#define TIDE_CLI_TRAIN_RECORD_H

#include "train_output.h"

typedef struct train_record {
    tide_timeline *timeline; /* of the last step */
    char *begun;
    size_t begun_size;
} train_record;

/* After the last step. `machine` is the trainer's, whose alignment is raised to the device's. */
tide_status record_begin(train_record *r, tide_trainer *trainer, tide_device *device, const tide_machine *machine,
                         uint64_t budget_bytes);
tide_status record_write(const train_record *r, const char *path, const char *model, const outcome *runs, int n,
                         uint64_t steps);
void record_free(train_record *r);

#endif
