/* --record: what one training planned and measured, as a file for `tidemark report` (report.h). The plan
 * and its program end with their trainer, so they are put down before that; the figures of all runs come last. */
#ifndef TIDE_CLI_TRAIN_RECORD_H
#define TIDE_CLI_TRAIN_RECORD_H

#include "train_ranks.h"

typedef struct train_record {
    tide_timeline *timeline; /* of the last step */
    char *begun;
    size_t begun_size;
    uint64_t begin_ns;       /* of that step, by this rank's clock */
    tide_record_rank *ranks; /* of rank 0 of several: what all have begun; NULL: there is one */
    char **texts;            /* of the others, per rank */
    char (*hosts)[TIDE_NET_HOST];
    uint32_t n_ranks;
} train_record;

/* After the last step. */
tide_status record_begin(train_record *r, const tide_trainer *trainer);
/* Of several ranks: rank 0 gets what the others have begun. */
tide_status record_gather(train_record *record, const train_ranks *r);
tide_status record_write(const train_record *r, const char *path, const char *model, const outcome *runs, int n,
                         uint64_t steps);
void record_free(train_record *r);

#endif
