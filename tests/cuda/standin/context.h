/* Contexts as calls need them. */
#ifndef TIDE_TESTS_CUDA_CONTEXT_H
#define TIDE_TESTS_CUDA_CONTEXT_H

#include "standin.h"

/* The one that is current in this thread; NULL: none. *gone: it was, but has been released since. */
context *context_current(bool *gone);
/* Everything that is left over, contexts included. */
void context_report_leaks(void);
void context_reset_all(void);

#endif
