/* What the disk tier asks of the system, as tables of functions: requests to read and write that run asynchronously,
 * and the reservation of the file. Two engines exist, io_uring and threads; tests put one of their own in between, so
 * that a full disk or a bad read happens exactly when they say.
 *
 * A lane is one queue of requests on one file, used by one thread at a time:
 *
 *      push, push, push      requests wait in the lane
 *      wait                  all that wait are started; sleeps in the kernel until one is complete
 *
 * Errors are errno numbers, 0 is success. */
#ifndef TIDE_TIER_DISK_IO_H
#define TIDE_TIER_DISK_IO_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tide__disk_request {
    char *data; /* only read when writing */
    uint64_t offset;
    uint32_t size_bytes;
    bool write;
} tide__disk_request;

typedef struct tide__disk_engine {
    const char *name;
    int (*open)(int fd, uint32_t depth, void **lane);
    /* At most `depth` requests are in a lane at any time. `tag` comes back from wait. */
    int (*push)(void *lane, const tide__disk_request *request, uint32_t tag);
    /* At least one request is in the lane. *result: bytes moved, or a negative errno. */
    int (*wait)(void *lane, uint32_t *tag, int64_t *result);
    void (*close)(void *lane);                   /* nothing is in it, unless wait has failed */
    int (*reserve)(int fd, uint64_t size_bytes); /* of the disk, so that a write later finds its place */
} tide__disk_engine;

int tide__disk_reserve(int fd, uint64_t size_bytes); /* what both engines use */
extern const tide__disk_engine tide__disk_uring, tide__disk_threads;

/* What a disk tier tries, in order, the fastest first; NULL after the last. */
const tide__disk_engine *const *tide__disk_engines(void);

#endif
