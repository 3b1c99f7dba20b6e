/* The MPI plug-in: tide__net_transport over MPI, and the only file that knows MPI. Links no part of the library.
 *
 * Only the service thread calls it, from MPI_Init_thread to MPI_Finalize, so MPI needs no locks (MPI_THREAD_FUNNELED) and
 * its speed does not depend on them. Frames have one tag, data another; a few receives for frames of any rank are always
 * posted. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/transport.h"

enum { TAG_FRAME = 1, TAG_DATA = 2, N_FRAMES = 8 };

typedef struct job {
    MPI_Comm comm;
    struct {
        MPI_Request request;
        char bytes[TIDE__NET_FRAME_BYTES];
    } frames[N_FRAMES]; /* a ring of posted receives */
    int first;
    char error[MPI_MAX_ERROR_STRING];
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
} job;

_Static_assert(sizeof(MPI_Request) <= sizeof(tide__net_request), "a request of MPI fits into one of the transport");

static int checked(job *j, int code) {
    int length = 0;
    if (code != MPI_SUCCESS) MPI_Error_string(code, j->error, &length);
    return code;
}

static int post_frame(job *j, int at) {
    return checked(j, MPI_Irecv(j->frames[at].bytes, TIDE__NET_FRAME_BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG_FRAME,
                                j->comm, &j->frames[at].request));
}

static int join(job *j, uint32_t *own, uint32_t *count) {
    int rank = 0, size = 0, length = 0, level, code;
    if ((code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level))) return code;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if ((code = checked(j, MPI_Comm_dup(MPI_COMM_WORLD, &j->comm)))) return code;
    MPI_Comm_set_errhandler(j->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(j->comm, &rank);
    MPI_Comm_size(j->comm, &size);
    MPI_Get_library_version(j->library, &length);
    j->library[strcspn(j->library, "\n,")] = 0;
    *own = (uint32_t)rank;
    *count = (uint32_t)size;
    for (int i = 0; i < N_FRAMES && !code; i++) code = post_frame(j, i);
    return code;
}

static int mpi_open(void *start, void **out, uint32_t *rank, uint32_t *count, char *why, size_t why_bytes) {
    int initialized = 0;
    (void)start;
    MPI_Initialized(&initialized);
    job *j = initialized ? NULL : calloc(1, sizeof *j);
    if (!j) {
        snprintf(why, why_bytes, initialized ? "MPI is in use in this process already" : "out of host memory");
        return 1;
    }
    if (join(j, rank, count)) {
        snprintf(why, why_bytes, "MPI does not start: %s", j->error);
        free(j);
        return 1;
    }
    *out = j;
    return 0;
}

static void keep(tide__net_request *out, MPI_Request request) { memcpy(out, &request, sizeof request); }

static int mpi_send_frame(void *t, uint32_t to, const void *frame, uint32_t size_bytes, tide__net_request *out) {
    job *j = t;
    MPI_Request request;
    int code = checked(j, MPI_Isend(frame, (int)size_bytes, MPI_BYTE, (int)to, TAG_FRAME, j->comm, &request));
    if (!code) keep(out, request);
    return code;
}

/* Only the oldest receive is looked at: MPI matches in order, so the order of a sender's frames is kept. */
static int mpi_poll_frame(void *t, void *frame, uint32_t *size_bytes, uint32_t *from) {
    job *j = t;
    int done = 0, count = 0, at = j->first;
    MPI_Status status;
    *size_bytes = 0;
    int code = checked(j, MPI_Test(&j->frames[at].request, &done, &status));
    if (code || !done) return code;
    MPI_Get_count(&status, MPI_BYTE, &count);
    memcpy(frame, j->frames[at].bytes, (size_t)count);
    *size_bytes = (uint32_t)count;
    *from = (uint32_t)status.MPI_SOURCE;
    j->first = (at + 1) % N_FRAMES;
    return post_frame(j, at);
}

static int mpi_send(void *t, uint32_t to, const void *data, uint32_t size_bytes, tide__net_request *out) {
    job *j = t;
    MPI_Request request;
    int code = checked(j, MPI_Isend(data, (int)size_bytes, MPI_BYTE, (int)to, TAG_DATA, j->comm, &request));
    if (!code) keep(out, request);
    return code;
}

static int mpi_receive(void *t, uint32_t from, void *data, uint32_t size_bytes, tide__net_request *out) {
    job *j = t;
    MPI_Request request;
    int code = checked(j, MPI_Irecv(data, (int)size_bytes, MPI_BYTE, (int)from, TAG_DATA, j->comm, &request));
    if (!code) keep(out, request);
    return code;
}

static int mpi_test(void *t, tide__net_request *r, bool *done) {
    MPI_Request request;
    int flag = 0;
    memcpy(&request, r, sizeof request);
    int code = checked(t, MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    keep(r, request);
    *done = flag != 0;
    return code;
}

static const char *mpi_error(void *t) { return ((job *)t)->error; }
static const char *mpi_library(void *t) { return ((job *)t)->library; }

/* After a fault MPI is left as it is: to finish it would wait for the rank that is lost. */
static void mpi_close(void *t, bool clean) {
    job *j = t;
    if (!clean) return;
    for (int i = 0; i < N_FRAMES; i++) {
        MPI_Cancel(&j->frames[i].request);
        MPI_Wait(&j->frames[i].request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&j->comm);
    MPI_Finalize();
    free(j);
}

__attribute__((visibility("default"))) extern const tide__net_transport tide_net_transport;
const tide__net_transport tide_net_transport = {
    .version = TIDE__NET_TRANSPORT_VERSION,
    .open = mpi_open,
    .send_frame = mpi_send_frame,
    .poll_frame = mpi_poll_frame,
    .send = mpi_send,
    .receive = mpi_receive,
    .test = mpi_test,
    .error = mpi_error,
    .library = mpi_library,
    .close = mpi_close,
};
