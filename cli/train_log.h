/* A line per training step in a file, as it happens: for plots, and for `tidemark report`. JSON Lines, or CSV by the file's
 * name; docs/formats.md has the fields. */
#ifndef TIDE_CLI_TRAIN_LOG_H
#define TIDE_CLI_TRAIN_LOG_H

#include "cli.h"

typedef struct train_log {
    FILE *stream; /* NULL: there is none */
    const char *path;
    bool csv;
} train_log;

typedef struct log_entry {
    const char *policy;
    uint64_t step; /* counted from 1 */
    float loss, rate;
    const tide_step_report *report;
    uint32_t n_tiers;
} log_entry;

/* Appends to a log that is there when a training is resumed, after its last whole line; else replaces it. path NULL: nothing is logged. */
tide_status log_open(train_log *log, const char *path, const char *model, uint64_t batch, bool resumed);
/* A line, written through at once: a training that is killed leaves whole lines. */
tide_status log_step(train_log *log, const log_entry *entry);
void log_close(train_log *log);

#endif
