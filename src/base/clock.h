/* Clocks, in ns: the only place that reads them. */
#ifndef TIDE_BASE_CLOCK_H
#define TIDE_BASE_CLOCK_H

#include <stdint.h>

uint64_t tide__now_ns(void);    /* monotonic */
uint64_t tide__worked_ns(void); /* processor time of this thread: on a busy machine it stands still meanwhile */

#endif
