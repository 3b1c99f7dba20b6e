/* The service thread: the only one that touches the transport. It takes what other threads post, answers frames, moves the
 * bytes of cleared messages, tells its neighbours that it lives and listens whether they do.
 *
 * A loop that finds nothing to do naps, longer and longer up to a millisecond: MPI has no call that waits for messages and
 * for other threads at once, and a thread that spins would take a core from the ones that compute. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "net/net_data.h"

enum { WATCH_ALL_RANKS = 16, WATCH_MS = 50, SPINS = 100, MIN_NAP_US = 20, MAX_NAP_US = 1000, TELL_MS = 500 };
static const uint64_t ns_per_ms = 1000000;

/* ---- frames out ---- */

static void send_frame(tide_net *net, uint32_t to, tide__net_outgoing *out, uint32_t payload_bytes) {
    out->to = to;
    out->frame.number = net->peers[to].sent++;
    out->frame.step = atomic_load(&net->step);
    uint32_t size_bytes = tide__net_frame_seal(&out->frame, payload_bytes);
    if (net->v->send_frame(net->t, to, &out->frame, size_bytes, &out->request)) {
        tide__net_blame(net, to, "%s", net->v->error(net->t));
        free(out);
        return;
    }
    out->next = net->outgoing;
    net->outgoing = out;
}

/* An empty frame to fill in; NULL without memory, which is a fault of this rank. */
static tide__net_outgoing *new_frame(tide_net *net, tide__net_kind kind) {
    tide__net_outgoing *out = net->spare_frames;
    if (out)
        net->spare_frames = out->next;
    else if (!(out = malloc(sizeof *out))) {
        tide__net_fault_set(net, net->rank, TIDE_E_MEMORY, atomic_load(&net->step), "out of host memory");
        return NULL;
    }
    memset(&out->frame, 0, TIDE__NET_HEAD_BYTES);
    out->frame.kind = (uint32_t)kind;
    return out;
}

static void tell(tide_net *net, uint32_t to, tide__net_kind kind, uint64_t id) {
    tide__net_outgoing *out = new_frame(net, kind);
    if (!out) return;
    out->frame.id = id;
    send_frame(net, to, out, 0);
}

/* Frames that are gone make room for others. */
static void sweep_frames(tide_net *net) {
    for (tide__net_outgoing **at = &net->outgoing; *at;) {
        tide__net_outgoing *out = *at;
        bool done = false;
        if (net->v->test(net->t, &out->request, &done)) tide__net_blame(net, out->to, "%s", net->v->error(net->t));
        if (!done) {
            at = &out->next;
            continue;
        }
        *at = out->next;
        out->next = net->spare_frames;
        net->spare_frames = out;
    }
}

/* ---- messages ---- */

void tide__net_complete(tide_net *net, tide__net_post *post, tide_status status) {
    if (post->done) post->done(post->context, status);
    pthread_mutex_lock(&net->lock);
    net->n_pending--;
    if (post->done) {
        post->next = net->spare;
        net->spare = post;
    } else {
        post->status = status;
        post->complete = true;
        pthread_cond_broadcast(&net->changed);
    }
    pthread_mutex_unlock(&net->lock);
}

/* A receive and the offer it takes. */
static void meet(tide_net *net, tide__net_post *post, uint64_t id, uint64_t size_bytes, uint64_t sum,
                 const char *payload) {
    tide__net_peer *peer = &net->peers[post->peer];
    if (size_bytes != post->size_bytes) {
        tide__net_blame(net, post->peer, "it sends %llu bytes where rank %u expects %llu",
                        (unsigned long long)size_bytes, net->rank, (unsigned long long)post->size_bytes);
        tide__net_posts_push(&peer->receives, post); /* where the end finds it */
        return;
    }
    if (size_bytes <= TIDE_NET_SMALL) {
        if (size_bytes) memcpy(post->data, payload, size_bytes);
        tide__net_complete(net, post, TIDE_OK);
        return;
    }
    post->sum = sum;
    tide__net_stream_add(&peer->in, post);
    tide__net_stream_move(net, post->peer, &peer->in);
    tell(net, post->peer, TIDE__NET_CLEAR, id);
}

static void keep_offer(tide_net *net, tide__net_peer *peer, const tide__net_frame *frame) {
    size_t payload = frame->size_bytes <= TIDE_NET_SMALL ? frame->size_bytes : 0;
    tide__net_arrival *arrival = malloc(sizeof *arrival + payload);
    if (!arrival) {
        tide__net_fault_set(net, net->rank, TIDE_E_MEMORY, atomic_load(&net->step), "out of host memory");
        return;
    }
    *arrival =
        (tide__net_arrival){.id = frame->id, .tag = frame->tag, .size_bytes = frame->size_bytes, .sum = frame->sum};
    memcpy(arrival->payload, frame->payload, payload);
    *peer->arrivals_end = arrival;
    peer->arrivals_end = &arrival->next;
}

static void take_offer(tide_net *net, uint32_t from, const tide__net_frame *frame) {
    tide__net_post *post = tide__net_posts_take_tag(&net->peers[from].receives, frame->tag);
    if (post)
        meet(net, post, frame->id, frame->size_bytes, frame->sum, frame->payload);
    else
        keep_offer(net, &net->peers[from], frame);
}

static void take_clear(tide_net *net, uint32_t from, uint64_t id) {
    tide__net_post *post = tide__net_posts_take_id(&net->peers[from].offered, id);
    if (post)
        tide__net_stream_add(&net->peers[from].out, post);
    else
        tide__net_blame(net, from, "it asks for a message that was not offered");
}

static void blame_absent(tide_net *net, const tide__net_post *post) {
    tide__net_blame(net, post->peer, "it has left the job, and rank %u has a message %s it", net->rank,
                    post->is_send ? "for" : "from");
}

/* What a rank sent before it left is here, and may still be taken. */
static void begin_receive(tide_net *net, tide__net_post *post) {
    tide__net_peer *peer = &net->peers[post->peer];
    for (tide__net_arrival **at = &peer->arrivals; *at; at = &(*at)->next) {
        tide__net_arrival *arrival = *at;
        if (arrival->tag != post->tag) continue;
        *at = arrival->next;
        if (!*at) peer->arrivals_end = at;
        meet(net, post, arrival->id, arrival->size_bytes, arrival->sum, arrival->payload);
        free(arrival);
        return;
    }
    tide__net_posts_push(&peer->receives, post);
    if (peer->left) blame_absent(net, post);
}

static void begin_send(tide_net *net, tide__net_post *post) {
    bool small = post->size_bytes <= TIDE_NET_SMALL;
    post->id = net->n_ids++;
    tide__net_posts_push(&net->peers[post->peer].offered, post);
    if (net->peers[post->peer].left) {
        blame_absent(net, post);
        return;
    }
    tide__net_outgoing *out = new_frame(net, TIDE__NET_OFFER);
    if (!out) return;
    out->frame.id = post->id;
    out->frame.tag = post->tag;
    out->frame.size_bytes = post->size_bytes;
    out->frame.sum = post->sum;
    if (small && post->size_bytes) memcpy(out->frame.payload, post->data, post->size_bytes);
    send_frame(net, post->peer, out, small ? (uint32_t)post->size_bytes : 0);
    if (!small || tide__net_faulty(net)) return;
    (void)tide__net_posts_take_id(&net->peers[post->peer].offered, post->id);
    tide__net_complete(net, post, TIDE_OK);
}

static bool take_posts(tide_net *net) {
    pthread_mutex_lock(&net->lock);
    tide__net_posts posts = net->inbox;
    net->inbox = (tide__net_posts){0};
    for (const tide__net_post *p = posts.first; p; p = p->next) net->n_pending++;
    pthread_mutex_unlock(&net->lock);
    bool any = posts.first != NULL;
    for (tide__net_post *post; (post = tide__net_posts_pop(&posts));) {
        if (post->is_send)
            begin_send(net, post);
        else
            begin_receive(net, post);
    }
    return any;
}

/* ---- frames in ---- */

/* Messages that cannot become complete without it. Those on their way to it have arrived, or it would not leave. */
static bool has_business(const tide__net_peer *peer) {
    return peer->offered.first || peer->receives.first || peer->in.queue.first;
}

static void take_bye(tide_net *net, uint32_t from) {
    net->peers[from].left = true;
    if (has_business(&net->peers[from]))
        tide__net_blame(net, from, "it left the job while messages between it and rank %u were under way", net->rank);
}

static void take_frame(tide_net *net, uint32_t from, tide__net_frame *frame, uint32_t size_bytes) {
    tide__net_peer *peer = &net->peers[from];
    const char *wrong = tide__net_frame_check(frame, size_bytes, peer->heard);
    if (wrong) {
        tide__net_blame(net, from, "%s", wrong);
        return;
    }
    peer->heard++;
    peer->heard_ns = tide__now_ns();
    peer->step = frame->step;
    switch ((tide__net_kind)frame->kind) {
    case TIDE__NET_BEAT: break;
    case TIDE__NET_OFFER: take_offer(net, from, frame); break;
    case TIDE__NET_CLEAR: take_clear(net, from, frame->id); break;
    case TIDE__NET_FAULT: tide__net_fault_from_frame(net, frame); break;
    case TIDE__NET_BYE: take_bye(net, from); break;
    }
}

static bool take_frames(tide_net *net) {
    bool any = false;
    while (!tide__net_faulty(net)) {
        tide__net_frame frame;
        uint32_t size_bytes = 0, from = 0;
        if (net->v->poll_frame(net->t, &frame, &size_bytes, &from)) {
            tide__net_blame(net, net->rank, "%s", net->v->error(net->t));
            return true;
        }
        if (!size_bytes) break;
        take_frame(net, from, &frame, size_bytes);
        any = true;
    }
    return any;
}

/* ---- life ---- */

/* Two ranks listen to each other: in a large job only neighbours do, and tell all others what they find. */
static bool listens(const tide_net *net, uint32_t peer) {
    if (peer == net->rank) return false;
    if (net->count <= WATCH_ALL_RANKS) return true;
    uint32_t distance = (peer + net->count - net->rank) % net->count;
    return distance == 1 || distance == net->count - 1;
}

static void check_deadline(tide_net *net, uint32_t peer, const tide__net_posts *posts, uint64_t now) {
    uint64_t deadline = net->options.deadline_ms * ns_per_ms;
    const tide__net_post *first = posts->first;
    while (first && first->patient) first = first->next;
    if (deadline && first && now - first->posted_ns > deadline)
        tide__net_blame(net, peer, "a message between it and rank %u was not complete after %u ms", net->rank,
                        net->options.deadline_ms);
}

static void check_peer(tide_net *net, uint32_t r, uint64_t now) {
    const tide__net_peer *peer = &net->peers[r];
    if (listens(net, r) && !peer->left && now > peer->heard_ns &&
        now - peer->heard_ns > net->options.silence_ms * ns_per_ms)
        tide__net_blame(net, r, "nothing was heard of it for %.1f s; it was killed, stopped or cut off",
                        (double)(now - peer->heard_ns) / 1e9);
    check_deadline(net, r, &peer->offered, now);
    check_deadline(net, r, &peer->receives, now);
    check_deadline(net, r, &peer->out.queue, now);
    check_deadline(net, r, &peer->in.queue, now);
}

/* A process that was stopped itself must not blame the others for its own silence. */
static void forgive_own_silence(tide_net *net, uint64_t now) {
    if (now - net->looked_ns > net->options.silence_ms * ns_per_ms / 2)
        for (uint32_t r = 0; r < net->count; r++) net->peers[r].heard_ns = now;
    net->looked_ns = now;
}

static void keep_alive(tide_net *net) {
    uint64_t now = tide__now_ns();
    forgive_own_silence(net, now);
    if (now - net->watch_ns >= WATCH_MS * ns_per_ms) {
        net->watch_ns = now;
        tide__net_watch_look(net, now);
    }
    if (now - net->beat_ns < net->options.beat_ms * ns_per_ms) return;
    net->beat_ns = now;
    for (uint32_t r = 0; r < net->count && !tide__net_faulty(net); r++) {
        check_peer(net, r, now);
        if (listens(net, r) && !net->said_bye && !tide__net_faulty(net)) tell(net, r, TIDE__NET_BEAT, 0);
    }
}

/* ---- the loop ---- */

/* What a stream of sends needs of this thread is little: it may nap between, so that the one that takes checksums has the core. */
typedef struct traffic {
    bool in, out;
} traffic;

static bool move_streams(tide_net *net, traffic *busy) {
    bool moved = false;
    for (uint32_t r = 0; r < net->count; r++) {
        tide__net_peer *peer = &net->peers[r];
        if (!peer->out.queue.first && !peer->in.queue.first) continue;
        busy->in |= peer->in.queue.first != NULL;
        busy->out |= peer->out.queue.first != NULL;
        moved |= tide__net_stream_move(net, r, &peer->out);
        moved |= tide__net_stream_move(net, r, &peer->in);
    }
    return moved;
}

static void nap(tide_net *net, uint32_t idle, traffic busy) {
    if (busy.in && idle < SPINS) {
        sched_yield();
        return;
    }
    uint32_t shift = busy.in || busy.out ? 0 : idle < 6 ? idle : 6;
    uint64_t us = (uint64_t)MIN_NAP_US << shift, until = tide__now_ns() + 1000 * (us < MAX_NAP_US ? us : MAX_NAP_US);
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};
    pthread_mutex_lock(&net->lock);
    if (!net->inbox.first) pthread_cond_timedwait(&net->wake, &net->lock, &t);
    pthread_mutex_unlock(&net->lock);
}

/* Says BYE when nothing is left to do here; true when everybody has. */
static bool may_leave(tide_net *net) {
    pthread_mutex_lock(&net->lock);
    bool idle = net->closing && net->n_pending == 0 && !net->inbox.first;
    pthread_mutex_unlock(&net->lock);
    if (!idle) return false;
    for (uint32_t r = 0; r < net->count && !net->said_bye; r++)
        if (r != net->rank) tell(net, r, TIDE__NET_BYE, 0);
    net->said_bye = true;
    for (uint32_t r = 0; r < net->count; r++)
        if (r != net->rank && !net->peers[r].left) return false;
    return !net->outgoing;
}

static void work(tide_net *net) {
    uint32_t idle = 0;
    net->looked_ns = net->beat_ns = tide__now_ns();
    while (!tide__net_faulty(net)) {
        traffic busy = {0};
        bool moved = take_posts(net);
        moved |= take_frames(net);
        moved |= move_streams(net, &busy);
        sweep_frames(net);
        keep_alive(net);
        if (may_leave(net)) return;
        idle = moved ? 0 : idle + 1;
        if (idle) nap(net, idle, busy);
    }
}

/* ---- the end ---- */

/* To others than the rank whose fault it is, which may never take any. */
static bool has_outgoing(const tide_net *net, uint32_t lost) {
    const tide__net_outgoing *out = net->outgoing;
    while (out && out->to == lost) out = out->next;
    return out;
}

static void tell_fault(tide_net *net) {
    uint32_t lost = tide_net_fault(net).rank;
    uint64_t until = tide__now_ns() + TELL_MS * ns_per_ms;
    for (uint32_t r = 0; r < net->count; r++) {
        if (r == net->rank || net->peers[r].left) continue;
        tide__net_outgoing *out = new_frame(net, TIDE__NET_FAULT);
        if (!out) return;
        tide__net_fault_to_frame(net, &out->frame);
        send_frame(net, r, out, (uint32_t)out->frame.size_bytes);
    }
    while (has_outgoing(net, lost) && tide__now_ns() < until) {
        sweep_frames(net);
        sched_yield();
    }
}

static void fail_posts(tide_net *net, tide__net_posts *posts) {
    for (tide__net_post *post; (post = tide__net_posts_pop(posts));) tide__net_complete(net, post, TIDE_E_PEER);
}

static void drop_frames(tide__net_outgoing *out) {
    while (out) {
        tide__net_outgoing *next = out->next;
        free(out);
        out = next;
    }
}

static void drop_peer(tide_net *net, tide__net_peer *peer) {
    fail_posts(net, &peer->offered);
    fail_posts(net, &peer->receives);
    fail_posts(net, &peer->out.queue);
    fail_posts(net, &peer->in.queue);
    while (peer->arrivals) {
        tide__net_arrival *next = peer->arrivals->next;
        free(peer->arrivals);
        peer->arrivals = next;
    }
}

/* No post is taken from now on; those that nobody has looked at yet. */
static tide__net_posts shut(tide_net *net) {
    pthread_mutex_lock(&net->lock);
    tide__net_posts late = net->inbox;
    net->inbox = (tide__net_posts){0};
    net->shut = true;
    for (const tide__net_post *p = late.first; p; p = p->next) net->n_pending++;
    pthread_mutex_unlock(&net->lock);
    return late;
}

static void leave(tide_net *net) {
    bool faulty = tide__net_faulty(net);
    if (faulty) tell_fault(net);
    pthread_mutex_lock(&net->lock);
    net->leaving = true;
    pthread_cond_broadcast(&net->changed);
    pthread_mutex_unlock(&net->lock);
    net->v->close(net->t, !faulty);
    tide__net_posts late = shut(net);
    fail_posts(net, &late);
    for (uint32_t r = 0; r < net->count; r++) drop_peer(net, &net->peers[r]);
    drop_frames(net->outgoing);
    drop_frames(net->spare_frames);
    net->outgoing = net->spare_frames = NULL;
}

static tide_status join(tide_net *net) {
    uint64_t now = tide__now_ns();
    if (net->v->open(net->start, &net->t, &net->rank, &net->count, net->open_why, sizeof net->open_why))
        return TIDE_E_UNSUPPORTED;
    net->n_among = net->count;
    net->peers = calloc(net->count, sizeof *net->peers);
    net->hosts = calloc(net->count, sizeof *net->hosts);
    if (!net->peers || !net->hosts) {
        net->v->close(net->t, false);
        return TIDE_E_MEMORY;
    }
    for (uint32_t r = 0; r < net->count; r++) {
        net->peers[r].arrivals_end = &net->peers[r].arrivals;
        net->peers[r].heard_ns = now;
    }
    return TIDE_OK;
}

void *tide__net_serve(void *context) {
    tide_net *net = context;
    tide_status status = join(net);
    pthread_mutex_lock(&net->lock);
    net->opened = true;
    net->open_status = status;
    pthread_cond_broadcast(&net->changed);
    pthread_mutex_unlock(&net->lock);
    if (status == TIDE_OK) {
        work(net);
        leave(net);
    }
    pthread_mutex_lock(&net->lock);
    net->ended = true;
    pthread_cond_broadcast(&net->changed);
    pthread_mutex_unlock(&net->lock);
    return NULL;
}
