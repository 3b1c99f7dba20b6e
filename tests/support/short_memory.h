/* Out of host memory on demand. The linker sends the calls of malloc and its kin of a program whose name contains
 * "out_of_memory" to the functions here (--wrap); libraries it loads keep theirs. */
#ifndef TIDE_TESTS_SHORT_MEMORY_H
#define TIDE_TESTS_SHORT_MEMORY_H

#include <tidemark/status.h>

typedef tide_status (*task_fn)(void *context);

/* Runs the task again and again, each time with another one of its allocations refused, until none is any more. Each time
 * it must succeed all the same or fail with TIDE_E_MEMORY and a text, and give back every block. */
void exhaust(task_fn task, void *context);
/* The same with about n_tries of them, evenly spread; for tasks that are long. */
void exhaust_some(task_fn task, void *context, long n_tries);
/* From now on one allocation is refused, after `after` others; -1: none. For what is not a task by itself. */
void refuse_one(long after);

#endif
