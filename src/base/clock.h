/* The monotonic clock, in ns. The only place that reads it. */
#ifndef TIDE_BASE_CLOCK_H
#define TIDE_BASE_CLOCK_H

#include <stdint.h>

uint64_t tide__now_ns(void);

#endif
