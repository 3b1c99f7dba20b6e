/* Disk requests by io_uring: the kernel moves the bytes while the caller's thread sleeps, with no copy and no thread of
 * our own. Where it was left out of the build or is refused at run time (old kernel, seccomp), open says so. */
#include "tier/disk_io.h"

#include <errno.h>
#include <stdlib.h>

#if TIDE_HAVE_URING
#include <liburing.h>

typedef struct uring_lane {
    struct io_uring ring;
    int fd;
} uring_lane;

static int uring_open(int fd, uint32_t depth, void **out) {
    uring_lane *lane = malloc(sizeof *lane);
    if (!lane) return ENOMEM;
    int error = -io_uring_queue_init(depth, &lane->ring, 0);
    if (error) {
        free(lane);
        return error;
    }
    (void)io_uring_ring_dontfork(&lane->ring); /* a child has no business with the ring; failure is harmless */
    lane->fd = fd;
    *out = lane;
    return 0;
}

static int uring_push(void *context, const tide__disk_request *r, uint32_t tag) {
    uring_lane *lane = context;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&lane->ring);
    if (!sqe) return EBUSY; /* more than `depth` requests */
    if (r->write)
        io_uring_prep_write(sqe, lane->fd, r->data, r->size_bytes, r->offset);
    else
        io_uring_prep_read(sqe, lane->fd, r->data, r->size_bytes, r->offset);
    sqe->user_data = tag;
    return 0;
}

static int uring_wait(void *context, uint32_t *tag, int64_t *result) {
    uring_lane *lane = context;
    struct io_uring_cqe *cqe = NULL;
    if (io_uring_sq_ready(&lane->ring) > 0) {
        int n = io_uring_submit_and_wait(&lane->ring, 1);
        if (n < 0) return -n; /* EINTR, EAGAIN: what was not taken is still in the lane */
    }
    int error = -io_uring_wait_cqe(&lane->ring, &cqe);
    if (error) return error;
    *tag = (uint32_t)cqe->user_data;
    *result = cqe->res;
    io_uring_cqe_seen(&lane->ring, cqe);
    return 0;
}

static void uring_close(void *context) {
    uring_lane *lane = context;
    io_uring_queue_exit(&lane->ring);
    free(lane);
}

#else

static int uring_open(int fd, uint32_t depth, void **out) { return ENOSYS; }
static int uring_push(void *lane, const tide__disk_request *request, uint32_t tag) { return ENOSYS; }
static int uring_wait(void *lane, uint32_t *tag, int64_t *result) { return ENOSYS; }
static void uring_close(void *lane) {}

#endif

const tide__disk_engine tide__disk_uring = {
    .name = "io_uring",
    .open = uring_open,
    .push = uring_push,
    .wait = uring_wait,
    .close = uring_close,
    .reserve = tide__disk_reserve,
};
