/* See disk_io.h. A file of its own, so that a test can put its own list in place of this one when it links. */
#include "tier/disk_io.h"

#include <fcntl.h>
#include <stddef.h>

int tide__disk_reserve(int fd, uint64_t size_bytes) { return posix_fallocate(fd, 0, (off_t)size_bytes); }

const tide__disk_engine *const *tide__disk_engines(void) {
    static const tide__disk_engine *const engines[] = {&tide__disk_uring, &tide__disk_threads, NULL};
    return engines;
}
