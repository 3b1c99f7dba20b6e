/* Memory of another rank as a tier: the borrower's end; lend.h has what the two say. A transfer goes in pieces of which a few are
 * under way, so that checksums are taken while others move. A rank that lends and is lost is a fault of the job. */
#include <stdlib.h>

#include "base/size.h"
#include "net/unconst.h"
#include "tier/lend.h"
#include "tier/tier_kind.h"

enum { PIECE_BYTES = 1 << 20, DEPTH = 8 };

typedef struct peer_tier {
    tide__tier base;
    tide_loan loan;
    uint32_t region;
} peer_tier;

/* An ask and what comes of it: up to three messages. */
typedef struct exchange {
    tide__lend_ask ask;
    tide__lend_answer answer;
    tide_net_ticket ticket[3];
    uint32_t n_tickets;
} exchange;

static tide_status post(const tide_loan *loan, exchange *x, bool sends, uint64_t tag, void *data, uint64_t size_bytes) {
    const tide__net_post message = {
        .is_send = sends, .peer = loan->from, .tag = tag, .data = data, .size_bytes = size_bytes};
    TIDE_TRY(tide__net_post_message(loan->net, &message, &x->ticket[x->n_tickets]));
    x->n_tickets++;
    return TIDE_OK;
}

static tide_status post_all(const tide_loan *loan, exchange *x, char *data) {
    const tide__lend_ask ask = x->ask;
    TIDE_TRY(post(loan, x, true, TIDE__LEND_ASK, &x->ask, sizeof x->ask));
    if (ask.kind == TIDE__LEND_RETURN) return TIDE_OK;
    if (ask.kind == TIDE__LEND_LOAD) return post(loan, x, false, TIDE__LEND_FROM(ask.number), data, ask.size_bytes);
    if (ask.kind == TIDE__LEND_SAVE) TIDE_TRY(post(loan, x, true, TIDE__LEND_TO(ask.number), data, ask.size_bytes));
    return post(loan, x, false, TIDE__LEND_FROM(ask.number), &x->answer, sizeof x->answer);
}

/* Of an ask of which only a part could be posted both sides would wait for the rest: then the job ends. */
static tide_status begin(const tide_loan *loan, exchange *x, tide__lend_ask ask, char *data) {
    tide_net *net = loan->net;
    *x = (exchange){.ask = ask};
    x->ask.number = atomic_fetch_add(&net->n_asks, 1);
    tide_status status = post_all(loan, x, data);
    if (status != TIDE_OK && x->n_tickets > 0)
        tide__net_fault_set(net, net->rank, status, atomic_load(&net->step),
                            "it cannot use the memory that it borrows");
    return status;
}

/* Of everything that was posted, so that nobody touches the bytes any more. */
static tide_status end(const tide_loan *loan, exchange *x) {
    tide_status status = TIDE_OK;
    for (uint32_t i = 0; i < x->n_tickets; i++) {
        tide_status one = tide_net_wait(loan->net, x->ticket[i]);
        if (status == TIDE_OK) status = one;
    }
    if (status != TIDE_OK || x->answer.status == TIDE_OK) return status;
    return tide__fail((tide_status)x->answer.status, "rank %u does not lend that much memory", loan->from);
}

static tide_status ask_once(const tide_loan *loan, tide__lend_ask ask, exchange *x) {
    tide_status posted = begin(loan, x, ask, NULL), ended = end(loan, x);
    return posted == TIDE_OK ? ended : posted;
}

static tide_status move(tide__tier *tier, tide__lend_kind kind, uint64_t offset, char *data, uint64_t size_bytes) {
    const peer_tier *p = (const peer_tier *)tier;
    exchange ring[DEPTH];
    uint64_t first = 0, n = 0;
    tide_status status = TIDE_OK;
    for (uint64_t at = 0; at < size_bytes && status == TIDE_OK; at += PIECE_BYTES) {
        if (n == DEPTH) status = end(&p->loan, &ring[first++ % DEPTH]), n--;
        if (status != TIDE_OK) break;
        const tide__lend_ask ask = {.kind = (uint32_t)kind,
                                    .region = p->region,
                                    .offset = offset + at,
                                    .size_bytes = tide__min_u64(PIECE_BYTES, size_bytes - at)};
        status = begin(&p->loan, &ring[(first + n++) % DEPTH], ask, data + at);
    }
    for (; n > 0; n--) {
        tide_status one = end(&p->loan, &ring[first++ % DEPTH]);
        if (status == TIDE_OK) status = one;
    }
    return status;
}

static tide_status peer_save(tide__tier *tier, uint64_t offset, const char *data, uint64_t size_bytes) {
    return move(tier, TIDE__LEND_SAVE, offset, tide__net_unconst(data), size_bytes);
}

static tide_status peer_load(tide__tier *tier, uint64_t offset, char *data, uint64_t size_bytes) {
    return move(tier, TIDE__LEND_LOAD, offset, data, size_bytes);
}

static tide_status peer_resize(tide__tier *tier, uint64_t capacity_bytes) {
    const peer_tier *p = (const peer_tier *)tier;
    const tide__lend_ask ask = {.kind = TIDE__LEND_RESIZE, .region = p->region, .size_bytes = capacity_bytes};
    exchange x;
    return ask_once(&p->loan, ask, &x);
}

static void peer_destroy(tide__tier *tier) {
    peer_tier *p = (peer_tier *)tier;
    exchange x;
    (void)ask_once(&p->loan, (tide__lend_ask){.kind = TIDE__LEND_CLOSE, .region = p->region}, &x);
    free(p);
}

static const tide__tier_vtable peer_vtable = {peer_save, peer_load, peer_resize, peer_destroy};

tide_status tide__tier_peer_create(const tide_loan *loan, uint64_t capacity_bytes, tide__tier **out) {
    exchange x;
    if (!loan) return tide__fail(TIDE_E_UNSUPPORTED, "memory of other ranks is for jobs in which one lends it");
    peer_tier *p = calloc(1, sizeof *p);
    if (!p) return tide__fail_memory();
    tide_status status = ask_once(loan, (tide__lend_ask){.kind = TIDE__LEND_OPEN, .size_bytes = capacity_bytes}, &x);
    if (status != TIDE_OK) {
        free(p);
        return status;
    }
    p->base.v = &peer_vtable;
    p->loan = *loan;
    p->region = x.answer.region;
    *out = &p->base;
    return TIDE_OK;
}

tide_status tide_loan_return(const tide_loan *loan) {
    TIDE_NEED(loan);
    TIDE_NEED(loan->net);
    exchange x;
    return ask_once(loan, (tide__lend_ask){.kind = TIDE__LEND_RETURN}, &x);
}
