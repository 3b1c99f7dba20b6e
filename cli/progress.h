/* A progress line on stderr: redrawn in place on a terminal, an occasional line elsewhere. */
#ifndef TIDE_CLI_PROGRESS_H
#define TIDE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <tidemark/run.h>

typedef struct progress {
    const char *label, *unit;
    uint64_t first, total, units_per_step, start_ns, shown_ns;
    bool quiet, terminal;
} progress;

/* unit: of the speed, "img" or "tokens". first: steps done before, total: those still to come. */
void progress_start(progress *p, const char *label, uint64_t first, uint64_t total, const char *unit,
                    uint64_t units_per_step, bool quiet);
/* With the bytes in the arena and in every tier that is used; on a terminal wide enough also as bars, whose lengths are
 * shares of all those bytes. */
void progress_step(progress *p, uint64_t done, float loss, const tide_step_report *report, const tide_machine *machine);
void progress_end(progress *p);

/* A clock that only goes forward. */
uint64_t now_ns(void);

#endif
