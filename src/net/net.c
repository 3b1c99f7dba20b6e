/* Joining and leaving a job, and posting messages. What is posted goes to the service thread (service.c). */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "net/local.h"
#include "net/net_data.h"
#include "net/unconst.h"

enum { OPEN_S = 120 }; /* a job whose ranks do not find each other in so long is given up */

void tide_net_options_init(tide_net_options *options) {
    *options = (tide_net_options){.size = sizeof *options, .beat_ms = 250, .silence_ms = 5000};
}

static struct timespec in_ns(uint64_t ns) {
    uint64_t until = tide__now_ns() + ns;
    return (struct timespec){.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};
}

/* ---- making and unmaking ---- */

static tide_status init_locks(tide_net *net) {
    pthread_condattr_t monotonic;
    if (pthread_mutex_init(&net->lock, NULL)) return tide__fail_memory();
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&net->wake, &monotonic);
    pthread_cond_init(&net->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return TIDE_OK;
}

static void destroy(tide_net *net) {
    for (tide__net_post *post = net->spare; post;) {
        tide__net_post *next = post->next;
        free(post);
        post = next;
    }
    tide__net_watch_end(net);
    pthread_cond_destroy(&net->changed);
    pthread_cond_destroy(&net->wake);
    pthread_mutex_destroy(&net->lock);
    free(net->peers);
    free(net->hosts);
    free(net);
}

/* Signals are for the program's own threads. */
static tide_status start_service(tide_net *net) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&net->service, NULL, tide__net_serve, net);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return tide__fail_errno(TIDE_E_MEMORY, error, "cannot start the thread for messages");
    return TIDE_OK;
}

/* False: not by then. */
static bool wait_until(tide_net *net, const bool *flag, const struct timespec *until) {
    int error = 0;
    while (!*flag && error != ETIMEDOUT) error = pthread_cond_timedwait(&net->changed, &net->lock, until);
    return *flag;
}

static tide_status await_opening(tide_net *net) {
    struct timespec until = in_ns(OPEN_S * UINT64_C(1000000000));
    pthread_mutex_lock(&net->lock);
    bool opened = wait_until(net, &net->opened, &until);
    tide_status status = net->open_status;
    pthread_mutex_unlock(&net->lock);
    if (!opened) return tide__fail(TIDE_E_PEER, "the ranks of the job did not find each other in %d s", OPEN_S);
    if (status == TIDE_E_MEMORY) return tide__fail_memory();
    if (status != TIDE_OK) return tide__fail(status, "%s", net->open_why);
    return TIDE_OK;
}

static tide_status greet(tide_net *net) {
    tide__net_hello mine, *all = calloc(net->count, sizeof *all);
    if (!all) return tide__fail_memory();
    tide__net_hello_fill(&mine);
    tide_status status = tide_net_allgather(net, &mine, sizeof mine, all);
    if (status == TIDE_OK) status = tide__net_watch_start(net, all);
    free(all);
    return status;
}

static tide_status check_options(const tide_net_options *o) {
    if (o->beat_ms == 0 || o->silence_ms < 2 * (uint64_t)o->beat_ms)
        return tide__fail(TIDE_E_ARGUMENT, "a silence of %u ms must be at least two beats, which are %u ms apart",
                          o->silence_ms, o->beat_ms);
    return TIDE_OK;
}

tide_status tide__net_start(const tide_net_options *options, const tide__net_transport *transport, void *start,
                            tide_net **out) {
    TIDE_TRY(check_options(options));
    tide_net *net = calloc(1, sizeof *net);
    if (!net) return tide__fail_memory();
    net->options = *options;
    net->v = transport;
    net->start = start;
    tide_status status = init_locks(net);
    if (status != TIDE_OK) {
        free(net);
        return status;
    }
    status = start_service(net);
    if (status != TIDE_OK) {
        destroy(net);
        return status;
    }
    status = await_opening(net);
    if (status == TIDE_E_PEER) return status; /* its thread is still inside the transport: it keeps what it has */
    if (status == TIDE_OK) status = greet(net);
    if (status != TIDE_OK) {
        tide_net_close(net);
        return status;
    }
    *out = net;
    return TIDE_OK;
}

static tide_status check_ranks(const tide_net *net) {
    uint32_t expected = tide_net_job_ranks();
    if (net->count == expected) return TIDE_OK;
    return tide__fail(TIDE_E_UNSUPPORTED,
                      "the job has %u ranks, and MPI finds %u: it was started by another MPI than the plug-in's; set "
                      "TIDE_NET_PLUGIN",
                      expected, net->count);
}

tide_status tide_net_open(const tide_net_options *options, tide_net **out) {
    const tide__net_transport *transport;
    tide_net_options o;
    tide_net *net = NULL;
    TIDE_NEED(out);
    tide_net_options_init(&o);
    TIDE_TRY(tide__options_take("tide_net_options", options, sizeof o, &o));
    if (tide_net_job_ranks() == 1) return tide__net_open_local(1, &o, out);
    TIDE_TRY(tide__net_plugin_load(o.plugin, &transport));
    tide_status status = tide__net_start(&o, transport, NULL, &net);
    if (status != TIDE_OK) return status;
    status = check_ranks(net);
    if (status != TIDE_OK) {
        tide_net_close(net);
        return status;
    }
    *out = net;
    return TIDE_OK;
}

/* Closing the transport may hang when a rank dies at this very moment. */
static bool await_end(tide_net *net) {
    pthread_mutex_lock(&net->lock);
    net->closing = true;
    pthread_cond_broadcast(&net->wake);
    while (!net->leaving && !net->ended) pthread_cond_wait(&net->changed, &net->lock);
    struct timespec until = in_ns(net->options.silence_ms * UINT64_C(1000000));
    bool ended = wait_until(net, &net->ended, &until);
    pthread_mutex_unlock(&net->lock);
    return ended;
}

void tide_net_close(tide_net *net) {
    if (!net) return;
    if (!await_end(net)) {
        pthread_detach(net->service); /* it keeps what it has */
        return;
    }
    pthread_join(net->service, NULL);
    destroy(net);
}

/* ---- what is known ---- */

uint32_t tide_net_rank(const tide_net *net) { return net ? net->rank : 0; }
uint32_t tide_net_count(const tide_net *net) { return net ? net->count : 0; }

const char *tide_net_host(const tide_net *net, uint32_t rank) {
    return net && rank < net->count ? net->hosts[rank] : "";
}

void tide_net_set_step(tide_net *net, uint64_t step) { atomic_store(&net->step, step); }

void tide_net_fail(tide_net *net, tide_status status, const char *why) {
    if (!net) return;
    tide__net_fault_set(net, net->rank, status == TIDE_OK ? TIDE_E_INTERNAL : status, atomic_load(&net->step),
                        why ? why : "");
    struct timespec until = in_ns(net->options.silence_ms * UINT64_C(1000000));
    pthread_mutex_lock(&net->lock);
    (void)wait_until(net, &net->ended, &until);
    pthread_mutex_unlock(&net->lock);
}

/* ---- posting ---- */

/* Under the lock; NULL without memory. */
static tide__net_post *new_post(tide_net *net) {
    tide__net_post *post = net->spare;
    if (!post) return calloc(1, sizeof *post);
    net->spare = post->next;
    memset(post, 0, sizeof *post);
    return post;
}

tide_status tide__net_post_message(tide_net *net, const tide__net_post *message, tide_net_ticket *ticket) {
    if (message->peer >= net->count)
        return tide__fail(TIDE_E_ARGUMENT, "there is no rank %u among %u", message->peer, net->count);
    if (!message->data && message->size_bytes) return tide__fail(TIDE_E_ARGUMENT, "a message without its bytes");
    if (!message->done == !ticket) return tide__fail(TIDE_E_ARGUMENT, "a message needs a function or a ticket");
    TIDE_TRY(tide__net_fault_status(net));
    /* the checksum is the poster's work: the service thread has enough to do */
    uint64_t sum = message->is_send && message->data ? tide__net_sum(message->data, message->size_bytes) : 0;
    pthread_mutex_lock(&net->lock);
    bool open = !net->shut && !net->closing;
    tide__net_post *post = open ? new_post(net) : NULL;
    if (post) {
        *post = *message;
        post->sum = sum;
        post->posted_ns = tide__now_ns();
        tide__net_posts_push(&net->inbox, post);
        pthread_cond_signal(&net->wake);
    }
    pthread_mutex_unlock(&net->lock);
    if (!open) TIDE_TRY(tide__net_fault_status(net));
    if (!open) return tide__fail(TIDE_E_ARGUMENT, "the job has been left");
    if (!post) return tide__fail_memory();
    if (ticket) ticket->post = post;
    return TIDE_OK;
}

tide_status tide__net_post_send(tide_net *net, uint32_t to, uint64_t tag, const void *data, uint64_t size_bytes,
                                tide_net_done_fn *done, void *context, tide_net_ticket *ticket) {
    const tide__net_post message = {.is_send = true,
                                    .peer = to,
                                    .tag = tag,
                                    .data = tide__net_unconst(data),
                                    .size_bytes = size_bytes,
                                    .done = done,
                                    .context = context};
    return tide__net_post_message(net, &message, ticket);
}

tide_status tide__net_post_receive(tide_net *net, uint32_t from, uint64_t tag, void *data, uint64_t size_bytes,
                                   tide_net_done_fn *done, void *context, tide_net_ticket *ticket) {
    const tide__net_post message = {
        .peer = from, .tag = tag, .data = data, .size_bytes = size_bytes, .done = done, .context = context};
    return tide__net_post_message(net, &message, ticket);
}

static tide_status check_tag(uint64_t tag) {
    if (tag >> 63) return tide__fail(TIDE_E_ARGUMENT, "tags from 2^63 on are the library's own");
    return TIDE_OK;
}

tide_status tide_net_send(tide_net *net, uint32_t to, uint64_t tag, const void *data, uint64_t size_bytes,
                          tide_net_done_fn *done, void *context, tide_net_ticket *ticket) {
    TIDE_NEED(net);
    TIDE_TRY(check_tag(tag));
    return tide__net_post_send(net, to, tag, data, size_bytes, done, context, ticket);
}

tide_status tide_net_receive(tide_net *net, uint32_t from, uint64_t tag, void *data, uint64_t size_bytes,
                             tide_net_done_fn *done, void *context, tide_net_ticket *ticket) {
    TIDE_NEED(net);
    TIDE_TRY(check_tag(tag));
    return tide__net_post_receive(net, from, tag, data, size_bytes, done, context, ticket);
}

tide_status tide_net_wait(tide_net *net, tide_net_ticket ticket) {
    TIDE_NEED(net, ticket.post);
    tide__net_post *post = ticket.post;
    pthread_mutex_lock(&net->lock);
    while (!post->complete) pthread_cond_wait(&net->changed, &net->lock);
    tide_status status = post->status;
    post->next = net->spare;
    net->spare = post;
    pthread_mutex_unlock(&net->lock);
    return status == TIDE_OK ? TIDE_OK : tide__net_fault_status(net);
}
