/* A quick checksum for bytes in transit: as fast as a core reads memory. Finds damage; no defence against intent. */
#ifndef TIDE_BASE_CHECKSUM_H
#define TIDE_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* One changed word always shows. The value is the same on all machines of one byte order; it goes into no file. */
uint64_t tide__checksum(const void *data, size_t size);

#endif
