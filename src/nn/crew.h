/* Several threads for one list of jobs that have nothing to do with each other: samples of a batch that take long to make.
 *
 * Invariant: which thread does a job changes nothing but the time; of jobs that fail, the first of the list is told. */
#ifndef TIDE_NN_CREW_H
#define TIDE_NN_CREW_H

#include <stdint.h>

#include <tidemark/status.h>

typedef tide_status (*tide__job_fn)(void *context, uint64_t job);

/* Jobs 0 to n_jobs - 1, by this thread and up to n_threads - 1 others, for as long as it takes. A thread that cannot be had leaves
 * its share to the rest. */
tide_status tide__crew_run(uint32_t n_threads, uint64_t n_jobs, tide__job_fn fn, void *context);

#endif
