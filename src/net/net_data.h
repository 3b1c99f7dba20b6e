/* What the files of src/net share: a net, its posted messages and what its service thread knows of each peer.
 *
 *      any thread:  send, receive ──▶ inbox ──▶ service thread ──▶ offers, clears, streams ──▶ complete ──▶ done, or a waiter
 *
 * The lock guards the inbox, spare posts, `complete` of posts and the fault. Everything below "the service thread's" is
 * touched by that thread alone. */
#ifndef TIDE_NET_DATA_H
#define TIDE_NET_DATA_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/frame.h"

typedef struct tide__net_post tide__net_post;
struct tide__net_post {
    tide__net_post *next;
    bool is_send;
    uint32_t peer;
    uint64_t tag, id, size_bytes;
    uint64_t sum; /* of a send, taken when it was posted; of a receive, what its sender says */
    char *data;   /* only read when sending */
    uint64_t posted_ns;
    bool patient;                                   /* it may wait for ever: no deadline holds for it */
    uint64_t started_bytes, moved_bytes, moved_sum; /* by the stream */
    tide_net_done_fn *done;
    void *context;
    bool complete;
    tide_status status;
};

typedef struct tide__net_posts {
    tide__net_post *first, *last;
} tide__net_posts;

/* An offer whose receive is not posted yet; the payload of a small one with it. */
typedef struct tide__net_arrival tide__net_arrival;
struct tide__net_arrival {
    tide__net_arrival *next;
    uint64_t id, tag, size_bytes, sum;
    char payload[];
};

/* The bytes of cleared messages, one direction of one pair of ranks: the queue's messages one after the other, in pieces
 * of which a few are under way together. */
enum { TIDE__NET_DEPTH = 16 };
typedef struct tide__net_stream {
    tide__net_posts queue; /* not complete */
    tide__net_post *next;  /* the first of them of which a piece is yet to start; NULL: none */
    struct {
        tide__net_post *post;
        uint32_t size_bytes;
        tide__net_request request;
    } piece[TIDE__NET_DEPTH]; /* a ring */
    uint32_t first, n;
} tide__net_stream;

typedef struct tide__net_peer {
    uint64_t sent, heard;        /* frames so far */
    uint64_t heard_ns, step;     /* when and where it was alive for certain */
    bool left;                   /* said BYE */
    tide__net_posts offered;     /* sends that wait for their CLEAR */
    tide__net_posts receives;    /* that no offer has met */
    tide__net_arrival *arrivals; /* offers that no receive has met, the oldest first */
    tide__net_arrival **arrivals_end;
    tide__net_stream out, in;
} tide__net_peer;

/* A frame on its way out. */
typedef struct tide__net_outgoing tide__net_outgoing;
struct tide__net_outgoing {
    tide__net_outgoing *next;
    uint32_t to;
    tide__net_request request;
    tide__net_frame frame;
};

/* What ranks tell each other first. */
typedef struct tide__net_hello {
    char host[TIDE_NET_HOST];
    uint64_t pid, pid_space; /* the namespace in which the pid means something; 0: not known */
} tide__net_hello;

/* The process of a rank on this host. */
typedef struct tide__net_watched {
    int fd;            /* readable when it has ended; -1: not watched */
    uint64_t ended_ns; /* when that was seen; 0: not yet */
} tide__net_watched;

struct tide_net {
    tide_net_options options;
    const tide__net_transport *v;
    void *start; /* for v->open */
    uint32_t rank, count;
    uint32_t n_among;        /* ranks that take part in what all ranks call */
    _Atomic uint64_t n_asks; /* of this rank, for memory of others */
    char (*hosts)[TIDE_NET_HOST];
    uint64_t n_collectives;
    _Atomic uint64_t step;
    _Atomic bool faulty;                  /* there is a fault */
    _Atomic(tide__net_watched *) watched; /* per rank; NULL while they join */

    pthread_t service;
    pthread_mutex_t lock;
    pthread_cond_t wake;    /* the service thread: there is something to do */
    pthread_cond_t changed; /* everybody else: a post is complete, the service thread has opened or ended */
    tide__net_posts inbox;
    tide__net_post *spare;
    tide_net_fault_info fault;
    /* leaving: the transport is being closed; shut: nothing can be posted any more */
    bool opened, closing, leaving, shut, ended;
    tide_status open_status;
    char open_why[TIDE_NET_WHY];

    /* ---- the service thread's ---- */
    void *t;
    tide__net_peer *peers;
    tide__net_outgoing *outgoing, *spare_frames;
    uint64_t n_ids, n_pending; /* posts taken and not complete */
    uint64_t looked_ns, beat_ns, watch_ns;
    bool said_bye;
};

/* net.c: a new net over this transport, its service thread running; joins the other ranks. */
tide_status tide__net_start(const tide_net_options *options, const tide__net_transport *transport, void *start,
                            tide_net **out);

/* job.c: what the plug-in that this process's job needs exports; path: its file, NULL: wherever it is. */
tide_status tide__net_plugin_load(const char *path, const tide__net_transport **out);

/* net.c: a message with all that its poster fills in: direction, peer, tag, data, size, done, context, patience. */
tide_status tide__net_post_message(tide_net *net, const tide__net_post *message, tide_net_ticket *ticket);
/* net.c: tide_net_send and tide_net_receive with any tag. */
tide_status tide__net_post_send(tide_net *net, uint32_t to, uint64_t tag, const void *data, uint64_t size_bytes,
                                tide_net_done_fn *done, void *context, tide_net_ticket *ticket);
tide_status tide__net_post_receive(tide_net *net, uint32_t from, uint64_t tag, void *data, uint64_t size_bytes,
                                   tide_net_done_fn *done, void *context, tide_net_ticket *ticket);

/* service.c */
void *tide__net_serve(void *net);
void tide__net_complete(tide_net *net, tide__net_post *post, tide_status status);

/* stream.c: the queue takes the post; its bytes move from then on. Returns whether anything moved. */
void tide__net_stream_add(tide__net_stream *stream, tide__net_post *post);
bool tide__net_stream_move(tide_net *net, uint32_t peer, tide__net_stream *stream);

/* posts.c */
void tide__net_posts_push(tide__net_posts *list, tide__net_post *post);
tide__net_post *tide__net_posts_pop(tide__net_posts *list);
/* The first with this tag (a receive) or id (a send), taken out; NULL: none. */
tide__net_post *tide__net_posts_take_tag(tide__net_posts *list, uint64_t tag);
tide__net_post *tide__net_posts_take_id(tide__net_posts *list, uint64_t id);

/* watch.c: hellos of all ranks, after which tide_net_host knows them; `look` is the service thread's. */
void tide__net_hello_fill(tide__net_hello *hello);
tide_status tide__net_watch_start(tide_net *net, const tide__net_hello *hellos);
void tide__net_watch_look(tide_net *net, uint64_t now);
void tide__net_watch_end(tide_net *net);

/* fault.c */
/* The job has this fault from now on, unless it has one. Any thread. */
void tide__net_fault_set(tide_net *net, uint32_t rank, tide_status status, uint64_t step, const char *why);
void tide__net_blame(tide_net *net, uint32_t rank, const char *format, ...)
    TIDE_PRINTF(3, 4); /* the service thread's */
bool tide__net_faulty(const tide_net *net);
tide_status tide__net_fault_status(const tide_net *net); /* TIDE_OK, or TIDE_E_PEER with the text of the fault */
void tide__net_fault_to_frame(tide_net *net, tide__net_frame *frame);
void tide__net_fault_from_frame(tide_net *net, const tide__net_frame *frame);

#endif
