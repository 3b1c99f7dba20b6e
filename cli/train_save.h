/* When a training is saved and where: at its end, every so often, and when a signal ends it; and the saves before the last. */
#ifndef TIDE_CLI_TRAIN_SAVE_H
#define TIDE_CLI_TRAIN_SAVE_H

#include "cli.h"

/* After so many steps, or after so much time; 0: not given. */
typedef struct save_every {
    uint64_t steps, ns;
} save_every;

typedef struct save_args {
    const char *checkpoint, *every; /* NULL: not given */
    uint32_t keep;                  /* files in all; 0: one */
    save_every when;                /* what `every` says; see check_save_args */
} save_args;

/* The rows of save_args for a command's table. */
#define SAVE_OPTIONS(s)                                                                                               \
    {"--checkpoint", ARG_TEXT, &(s).checkpoint, "FILE", "save the training there: at the end, and when interrupted"}, \
        {"--every", ARG_TEXT, &(s).every, "N|TIME", "and after every N steps, or every 10min, 1h ..."}, {             \
        "--keep", ARG_COUNT, &(s).keep, "N", "keep the last N checkpoints: FILE, FILE.1, FILE.2 ... [1]"              \
    }

/* Reads `every`, and says what does not go together. */
tide_status check_save_args(save_args *args);

/* Between save_begin and save_end, SIGINT, SIGTERM and SIGHUP end the training between two steps; a second one ends the
 * process at once, as one of them does at any other time. A SIGHUP that is ignored stays so (nohup). */
typedef struct saver {
    const save_args *args;
    uint64_t saved_ns; /* when it was saved last, or begun */
} saver;
void save_begin(saver *s, const save_args *args);
void save_end(bool ignore); /* from now on they end the process, or are ignored */
/* Between steps: is it time to save? Also when the training ends here: with its last step, or to stop. */
bool save_is_due(const saver *s, const tide_trainer *trainer, bool last, bool stop);
/* Saves if `due`; to stop is TIDE_E_CANCELLED. Ranks without a file have a part in it where `shared`. */
tide_status save_after_step(saver *s, tide_trainer *trainer, bool due, bool stop, bool shared);
bool save_interrupted(void); /* such a signal came */

#endif
