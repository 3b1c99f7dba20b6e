/* Sequences of calls, each right and, with `broken`, wrong in one place. The right one must pass without a report, the
 * broken one must be reported as `kind`: so every check is shown to bite, and to leave correct programs alone. */
#ifndef TIDE_TESTS_CUDA_MUTANTS_H
#define TIDE_TESTS_CUDA_MUTANTS_H

#include "cuda/loaded.h"

typedef struct mutant {
    const char *name;
    standin_misuse kind;
    void (*run)(bool broken);
    bool quiet; /* the calls themselves succeed: only the report tells */
} mutant;

/* Each list ends with a name of NULL. */
extern const mutant call_mutants[], memory_mutants[], order_mutants[], kernel_mutants[];

/* Remembers the first error. */
void tried(CUresult result);
CUresult first_error(void);
void forget_errors(void);

/* ---- small steps of many sequences ---- */

CUdeviceptr get_bytes(size_t bytes);
void *get_pinned(size_t bytes);
CUstream get_stream(void);
CUevent get_event(void);
void drop_bytes(CUdeviceptr at);
void drop_pinned(void *at);
void drop_stream(CUstream s);
void drop_event(CUevent e);
/* Loads a text, runs its kernel on one group or more of 64 lanes with `at` (and n), waits, and unloads it. */
void run_text(const char *ptx, const char *name, uint32_t groups, CUdeviceptr at, uint32_t shared_bytes);

#endif
