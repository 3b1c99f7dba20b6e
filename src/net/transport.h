/* What carries bytes between ranks: a table of functions that the MPI plug-in exports, and the ranks of one process
 * (local.h) and tests have, too. It only moves bytes; matching, checksums, heartbeats and deadlines are src/net's.
 *
 * Two kinds of traffic, both reliable, and in order from one rank to another: *frames*, small, taken by whoever polls, and
 * *data*, whose pieces match receives in the order in which both are started. All functions but open are called by one
 * thread, the one that opened it, and none of them waits. They return 0, or another value if the transport is broken; error()
 * then has the text. This header includes libc only: the plug-in links nothing of the library. */
#ifndef TIDE_NET_TRANSPORT_H
#define TIDE_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIDE__NET_TRANSPORT_VERSION 1
#define TIDE__NET_TRANSPORT_SYMBOL "tide_net_transport" /* a tide__net_transport of a plug-in */
enum { TIDE__NET_FRAME_BYTES = 4096 + 64 };             /* of a frame, at most */

/* A send or receive under way; the transport's own words. */
typedef struct tide__net_request {
    uint64_t word[2];
} tide__net_request;

typedef struct tide__net_transport {
    uint32_t version; /* TIDE__NET_TRANSPORT_VERSION */
    /* `start`: what the maker of the transport gives it, NULL for a plug-in. On failure *why is a text. */
    int (*open)(void *start, void **out, uint32_t *rank, uint32_t *count, char *why, size_t why_bytes);
    int (*send_frame)(void *t, uint32_t to, const void *frame, uint32_t size_bytes, tide__net_request *out);
    /* The next frame, in order per sender; *size_bytes 0: there is none now. `frame` has TIDE__NET_FRAME_BYTES. */
    int (*poll_frame)(void *t, void *frame, uint32_t *size_bytes, uint32_t *from);
    int (*send)(void *t, uint32_t to, const void *data, uint32_t size_bytes, tide__net_request *out);
    int (*receive)(void *t, uint32_t from, void *data, uint32_t size_bytes, tide__net_request *out);
    int (*test)(void *t, tide__net_request *request, bool *done); /* not again once it is done */
    const char *(*error)(void *t);
    const char *(*library)(void *t); /* name and version of what moves the bytes */
    /* clean: all ranks close, and nothing is under way. Else it must not wait, and touches no buffer afterwards. */
    void (*close)(void *t, bool clean);
} tide__net_transport;

#endif
