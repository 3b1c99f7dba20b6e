/* A quick checksum for bytes in transit: about 0.2 s of a core per GB. Finds damage; no defence against intent. */
#ifndef TIDE_BASE_CHECKSUM_H
#define TIDE_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* One changed word always shows. The value depends on the machine's byte order: it goes into no file. */
uint64_t tide__checksum(const void *data, size_t size);

#endif
