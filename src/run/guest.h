/* What a client that brings guests into its run has to know: how much room there is, and whether all is back. */
#ifndef TIDE_RUN_GUEST_H
#define TIDE_RUN_GUEST_H

#include <tidemark/run.h>

/* Between steps: the largest arena that a guest of this run may have. */
uint64_t tide__run_guest_bytes(const tide_run *run);
/* Takes from the budgets of tiers what this run has reserved: the rest is for runs beside it. */
void tide__run_guest_tiers(const tide_run *run, tide_budgets *budgets);
/* After a guest of this run is gone: the failure, if values that had made room for it did not come back. Then the run
 * refuses everything else. */
tide_status tide__run_left_by_guest(const tide_run *run);

#endif
