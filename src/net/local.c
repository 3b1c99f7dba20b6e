/* See local.h. A hub has all traffic of the ranks under one lock; a piece of data is copied by whoever comes second, its
 * sender or its receiver. */
#include "net/local.h"
#include "net/unconst.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A frame under way, or one side of a piece of data that waits for the other. */
typedef struct item item;
struct item {
    item *next;
    uint32_t from, to, size_bytes;
    bool is_send, done;
    char *data;   /* of a piece */
    char frame[]; /* a copy */
};

struct tide__net_hub {
    pthread_mutex_t lock;
    uint32_t count, n_users;
    item **frames; /* per receiver, the oldest first */
    item *pieces;  /* both sides of each until they are tested to be done, the oldest first */
};

typedef struct rank {
    tide__net_hub *hub;
    uint32_t rank;
} rank;

tide_status tide__net_hub_create(uint32_t count, tide__net_hub **out) {
    tide__net_hub *hub = calloc(1, sizeof *hub);
    item **frames = calloc(count, sizeof *frames);
    if (!hub || !frames || pthread_mutex_init(&hub->lock, NULL)) {
        free(hub);
        free(frames);
        return tide__fail_memory();
    }
    hub->count = count;
    hub->n_users = 1;
    hub->frames = frames;
    *out = hub;
    return TIDE_OK;
}

static void free_items(item *items) {
    while (items) {
        item *next = items->next;
        free(items);
        items = next;
    }
}

void tide__net_hub_release(tide__net_hub *hub) {
    pthread_mutex_lock(&hub->lock);
    bool last = --hub->n_users == 0;
    pthread_mutex_unlock(&hub->lock);
    if (!last) return;
    for (uint32_t r = 0; r < hub->count; r++) free_items(hub->frames[r]);
    free_items(hub->pieces);
    pthread_mutex_destroy(&hub->lock);
    free(hub->frames);
    free(hub);
}

static int local_open(void *start, void **out, uint32_t *own, uint32_t *count, char *why, size_t why_bytes) {
    const tide__net_seat *seat = start;
    rank *r = calloc(1, sizeof *r);
    if (!r) {
        snprintf(why, why_bytes, "out of host memory");
        return 1;
    }
    pthread_mutex_lock(&seat->hub->lock);
    seat->hub->n_users++;
    pthread_mutex_unlock(&seat->hub->lock);
    *r = (rank){.hub = seat->hub, .rank = seat->rank};
    *out = r;
    *own = seat->rank;
    *count = seat->hub->count;
    return 0;
}

static void append(item **list, item *it) {
    while (*list) list = &(*list)->next;
    *list = it;
}

static int local_send_frame(void *t, uint32_t to, const void *frame, uint32_t size_bytes, tide__net_request *out) {
    rank *r = t;
    item *it = calloc(1, sizeof *it + size_bytes);
    if (!it) return 1;
    it->from = r->rank;
    it->size_bytes = size_bytes;
    memcpy(it->frame, frame, size_bytes);
    pthread_mutex_lock(&r->hub->lock);
    append(&r->hub->frames[to], it);
    pthread_mutex_unlock(&r->hub->lock);
    out->word[0] = 0; /* its bytes are copied: it is done */
    return 0;
}

static int local_poll_frame(void *t, void *frame, uint32_t *size_bytes, uint32_t *from) {
    rank *r = t;
    pthread_mutex_lock(&r->hub->lock);
    item *it = r->hub->frames[r->rank];
    if (it) r->hub->frames[r->rank] = it->next;
    pthread_mutex_unlock(&r->hub->lock);
    *size_bytes = 0;
    if (!it) return 0;
    memcpy(frame, it->frame, it->size_bytes);
    *size_bytes = it->size_bytes;
    *from = it->from;
    free(it);
    return 0;
}

/* Under the lock: the first piece that waits for this one; NULL: none. */
static item *other_side(tide__net_hub *hub, const item *it) {
    item *at = hub->pieces;
    while (at && (at->done || at->is_send == it->is_send || at->from != it->from || at->to != it->to)) at = at->next;
    return at;
}

static int move(rank *r, item *it, tide__net_request *out) {
    pthread_mutex_lock(&r->hub->lock);
    item *other = other_side(r->hub, it);
    bool fits = !other || other->size_bytes == it->size_bytes;
    if (fits) append(&r->hub->pieces, it);
    if (fits && other) {
        memcpy(it->is_send ? other->data : it->data, it->is_send ? it->data : other->data, it->size_bytes);
        other->done = it->done = true;
    }
    pthread_mutex_unlock(&r->hub->lock);
    if (!fits) free(it);
    memcpy(&out->word[0], &it, sizeof it);
    return !fits;
}

static item *new_piece(bool is_send, uint32_t from, uint32_t to, char *data, uint32_t size_bytes) {
    item *it = calloc(1, sizeof *it);
    if (it) *it = (item){.is_send = is_send, .from = from, .to = to, .data = data, .size_bytes = size_bytes};
    return it;
}

static int local_send(void *t, uint32_t to, const void *data, uint32_t size_bytes, tide__net_request *out) {
    rank *r = t;
    item *it = new_piece(true, r->rank, to, tide__net_unconst(data), size_bytes);
    return it ? move(r, it, out) : 1;
}

static int local_receive(void *t, uint32_t from, void *data, uint32_t size_bytes, tide__net_request *out) {
    rank *r = t;
    item *it = new_piece(false, from, r->rank, data, size_bytes);
    return it ? move(r, it, out) : 1;
}

static int local_test(void *t, tide__net_request *request, bool *done) {
    rank *r = t;
    item *it; /* NULL: a frame */
    memcpy(&it, &request->word[0], sizeof it);
    pthread_mutex_lock(&r->hub->lock);
    *done = !it || it->done;
    if (it && *done) {
        item **at = &r->hub->pieces;
        while (*at != it) at = &(*at)->next;
        *at = it->next;
    }
    pthread_mutex_unlock(&r->hub->lock);
    if (*done) free(it);
    return 0;
}

static const char *local_error(void *t) {
    (void)t;
    return "out of host memory, or pieces of a message that differ in size";
}

static const char *local_library(void *t) {
    (void)t;
    return "threads of one process";
}

/* Nobody touches the buffers of this rank any more. */
static void local_close(void *t, bool clean) {
    rank *r = t;
    (void)clean;
    pthread_mutex_lock(&r->hub->lock);
    for (item **at = &r->hub->pieces; *at;) {
        item *it = *at;
        if ((it->is_send ? it->from : it->to) != r->rank) {
            at = &it->next;
            continue;
        }
        *at = it->next;
        free(it);
    }
    pthread_mutex_unlock(&r->hub->lock);
    tide__net_hub_release(r->hub);
    free(r);
}

const tide__net_transport tide__net_local = {
    .version = TIDE__NET_TRANSPORT_VERSION,
    .open = local_open,
    .send_frame = local_send_frame,
    .poll_frame = local_poll_frame,
    .send = local_send,
    .receive = local_receive,
    .test = local_test,
    .error = local_error,
    .library = local_library,
    .close = local_close,
};

/* ---- all ranks at once ---- */

/* Ranks join each other while they open, so each opens on a thread of its own. */
typedef struct opening {
    tide__net_seat seat;
    const tide_net_options *options;
    const tide__net_transport *transport;
    tide_net *net;
    tide_status status;
    pthread_t thread;
    bool started;
} opening;

static void *open_one(void *context) {
    opening *o = context;
    o->status = tide__net_start(o->options, o->transport, &o->seat, &o->net);
    return NULL;
}

static void *close_one(void *net) {
    tide_net_close(net);
    return NULL;
}

static tide_status open_all(opening *all, uint32_t count) {
    tide_status status = TIDE_OK;
    for (uint32_t r = 0; r < count; r++) all[r].started = pthread_create(&all[r].thread, NULL, open_one, &all[r]) == 0;
    for (uint32_t r = 0; r < count; r++) {
        if (all[r].started) pthread_join(all[r].thread, NULL);
        if (!all[r].started || all[r].status != TIDE_OK)
            status = tide__fail(all[r].started ? all[r].status : TIDE_E_MEMORY, "rank %u cannot be opened", r);
    }
    if (status == TIDE_OK) return status;
    for (uint32_t r = 0; r < count; r++)
        all[r].started = all[r].net && pthread_create(&all[r].thread, NULL, close_one, all[r].net) == 0;
    for (uint32_t r = 0; r < count; r++)
        if (all[r].started) pthread_join(all[r].thread, NULL);
    return status;
}

tide_status tide__net_open_seats(uint32_t count, const tide_net_options *options, const tide__net_transport *transport,
                                 tide_net **out) {
    tide__net_hub *hub;
    TIDE_TRY(tide__net_hub_create(count, &hub));
    opening *all = calloc(count, sizeof *all);
    tide_status status = all ? TIDE_OK : tide__fail_memory();
    for (uint32_t r = 0; r < count && all; r++)
        all[r] = (opening){.seat = {hub, r}, .options = options, .transport = transport};
    if (status == TIDE_OK) status = open_all(all, count);
    for (uint32_t r = 0; r < count && status == TIDE_OK; r++) out[r] = all[r].net;
    tide__net_hub_release(hub);
    free(all);
    return status;
}

tide_status tide__net_open_local(uint32_t count, const tide_net_options *options, tide_net **out) {
    return tide__net_open_seats(count, options, &tide__net_local, out);
}
