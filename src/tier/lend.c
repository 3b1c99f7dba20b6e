/* The rank that lends memory. Everything happens in calls of the net's service thread: a request arrives, its transfer is
 * posted, its answer goes out. So memory is served while the rank computes, waits or does nothing at all.
 *
 * A region is a RAM tier; bytes arrive in it and leave from it without a copy. Their sum stays within the budget. */
#include <stdlib.h>

#include "tier/lend.h"
#include "tier/tier_kind.h"

typedef struct region {
    tide__tier *tier; /* NULL: free */
    uint32_t n_busy;  /* transfers under way */
} region;

/* What one rank borrows. */
typedef struct loan {
    tide_lender *lender;
    uint32_t to;
    uint64_t budget_bytes, used_bytes;
    tide__lend_ask ask; /* the one that is being received, or held */
    bool held;          /* until the transfers of its region have ended here: a borrower has its bytes before that */
    region region[TIDE__LEND_REGIONS];
} loan;

struct tide_lender {
    tide_net *net;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t n_pending; /* posts that are not complete; 0: everything is returned, or the job has a fault */
    loan *loans;
    uint32_t n_loans;
};

/* One answer, or bytes under way. */
typedef struct transfer {
    loan *loan;
    uint32_t region;
    uint64_t number;
    tide__lend_answer answer;
} transfer;

/* ---- posting ---- */

static void begin_post(tide_lender *l) {
    pthread_mutex_lock(&l->lock);
    l->n_pending++;
    pthread_mutex_unlock(&l->lock);
}

/* The last thing that the service thread does for a post: the lender may be gone afterwards. */
static void end_post(tide_lender *l) {
    pthread_mutex_lock(&l->lock);
    if (--l->n_pending == 0) pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* This rank cannot keep what it has promised. */
static void give_up(const loan *b, tide_status status) {
    tide_net *net = b->lender->net;
    tide__net_fault_set(net, net->rank, status, atomic_load(&net->step), "it cannot serve the memory that it lends");
}

/* What cannot be posted would be waited for: then the job ends. */
static tide_status post(loan *b, tide__net_post message) {
    message.peer = b->to;
    begin_post(b->lender);
    tide_status status = tide__net_post_message(b->lender->net, &message, NULL);
    if (status == TIDE_OK) return TIDE_OK;
    give_up(b, status);
    end_post(b->lender);
    return status;
}

static transfer *new_transfer(loan *b, uint32_t at, uint64_t number) {
    transfer *t = malloc(sizeof *t);
    if (t)
        *t = (transfer){.loan = b, .region = at, .number = number};
    else
        give_up(b, TIDE_E_MEMORY);
    return t;
}

static void end_answer(void *context, tide_status status) {
    transfer *t = context;
    tide_lender *l = t->loan->lender;
    (void)status; /* a fault of the job */
    free(t);
    end_post(l);
}

/* Takes the transfer. */
static void answer(transfer *t, tide_status status) {
    t->answer = (tide__lend_answer){(uint32_t)status, t->region};
    const tide__net_post message = {.is_send = true,
                                    .tag = TIDE__LEND_FROM(t->number),
                                    .data = (char *)&t->answer,
                                    .size_bytes = sizeof t->answer,
                                    .done = end_answer,
                                    .context = t};
    if (post(t->loan, message) != TIDE_OK) free(t);
}

/* ---- regions ---- */

static bool has_room(const loan *b, uint64_t now_bytes, uint64_t wanted_bytes) {
    return wanted_bytes <= b->budget_bytes && b->used_bytes - now_bytes <= b->budget_bytes - wanted_bytes;
}

static tide_status open_region(loan *b, uint64_t size_bytes, uint32_t *out) {
    uint32_t at = 0;
    while (at < TIDE__LEND_REGIONS && b->region[at].tier) at++;
    if (at == TIDE__LEND_REGIONS || !has_room(b, 0, size_bytes)) return TIDE_E_TIER_FULL;
    TIDE_TRY(tide__tier_create(TIDE_TIER_RAM, size_bytes, 1, NULL, &b->region[at].tier));
    b->used_bytes += size_bytes;
    *out = at;
    return TIDE_OK;
}

static uint64_t bytes_of(const region *r) { return tide__tier_get_stats(r->tier).capacity_bytes; }

static tide_status resize_region(loan *b, region *r, uint64_t size_bytes) {
    uint64_t now = bytes_of(r);
    if (!has_room(b, now, size_bytes)) return TIDE_E_TIER_FULL;
    if (size_bytes > now)
        TIDE_TRY(tide__tier_grow(r->tier, size_bytes));
    else
        tide__tier_shrink(r->tier, size_bytes);
    b->used_bytes += bytes_of(r) - now;
    return TIDE_OK;
}

static void close_region(loan *b, region *r) {
    if (!r->tier) return;
    b->used_bytes -= bytes_of(r);
    tide__tier_destroy(r->tier);
    r->tier = NULL;
}

/* ---- asks ---- */

static void let_go(loan *b);

static void end_save(void *context, tide_status status) {
    transfer *t = context;
    tide_lender *l = t->loan->lender;
    t->loan->region[t->region].n_busy--;
    let_go(t->loan);
    if (status == TIDE_OK)
        answer(t, TIDE_OK);
    else
        free(t);
    end_post(l);
}

static void end_load(void *context, tide_status status) {
    const transfer *t = context;
    t->loan->region[t->region].n_busy--;
    let_go(t->loan);
    end_answer(context, status);
}

static void move(loan *b, const tide__lend_ask *ask) {
    region *r = &b->region[ask->region];
    bool saves = ask->kind == TIDE__LEND_SAVE;
    transfer *t = new_transfer(b, ask->region, ask->number);
    if (!t) return;
    const tide__net_post message = {.is_send = !saves,
                                    .tag = saves ? TIDE__LEND_TO(ask->number) : TIDE__LEND_FROM(ask->number),
                                    .data = tide__tier_ram_bytes(r->tier) + ask->offset,
                                    .size_bytes = ask->size_bytes,
                                    .done = saves ? end_save : end_load,
                                    .context = t};
    r->n_busy++;
    if (post(b, message) == TIDE_OK) return;
    r->n_busy--;
    free(t);
}

static void change(loan *b, const tide__lend_ask *ask) {
    transfer *t = new_transfer(b, ask->region, ask->number);
    tide_status status = TIDE_OK;
    if (!t) return;
    if (ask->kind == TIDE__LEND_OPEN) status = open_region(b, ask->size_bytes, &t->region);
    if (ask->kind == TIDE__LEND_RESIZE) status = resize_region(b, &b->region[ask->region], ask->size_bytes);
    if (ask->kind == TIDE__LEND_CLOSE) close_region(b, &b->region[ask->region]);
    answer(t, status);
}

/* Nothing that a borrower says makes this rank touch other memory. */
static bool makes_sense(const loan *b, const tide__lend_ask *ask) {
    if (ask->number > TIDE__LEND_MAX_NUMBER) return false;
    if (ask->kind == TIDE__LEND_OPEN || ask->kind == TIDE__LEND_RETURN) return true;
    if (ask->kind > TIDE__LEND_RETURN || ask->region >= TIDE__LEND_REGIONS) return false;
    const region *r = &b->region[ask->region];
    if (!r->tier) return false;
    if (ask->kind == TIDE__LEND_RESIZE || ask->kind == TIDE__LEND_CLOSE) return true;
    uint64_t has = bytes_of(r);
    return ask->kind >= TIDE__LEND_SAVE && ask->size_bytes <= has && ask->offset <= has - ask->size_bytes;
}

static tide_status await_ask(loan *b);

static bool must_wait(const loan *b) {
    bool moves = b->ask.kind == TIDE__LEND_RESIZE || b->ask.kind == TIDE__LEND_CLOSE;
    return moves && b->region[b->ask.region].n_busy > 0;
}

/* What was asked; then the next is awaited, which fails with the job only. */
static void serve(loan *b) {
    const tide__lend_ask ask = b->ask;
    b->held = must_wait(b);
    if (b->held) return;
    if (ask.kind >= TIDE__LEND_SAVE)
        move(b, &ask);
    else
        change(b, &ask);
    (void)await_ask(b);
}

static void let_go(loan *b) {
    if (b->held) serve(b);
}

static void take_ask(void *context, tide_status status) {
    loan *b = context;
    tide_lender *l = b->lender;
    bool goes_on = status == TIDE_OK && b->ask.kind != TIDE__LEND_RETURN;
    if (goes_on && makes_sense(b, &b->ask))
        serve(b);
    else if (goes_on)
        tide__net_blame(l->net, b->to, "it asks for memory that it was not lent");
    end_post(l);
}

static tide_status await_ask(loan *b) {
    const tide__net_post message = {.tag = TIDE__LEND_ASK,
                                    .data = (char *)&b->ask,
                                    .size_bytes = sizeof b->ask,
                                    .patient = true,
                                    .done = take_ask,
                                    .context = b};
    return post(b, message);
}

/* ---- life ---- */

static void destroy(tide_lender *l) {
    for (uint32_t i = 0; i < l->n_loans; i++)
        for (uint32_t r = 0; r < TIDE__LEND_REGIONS; r++) close_region(&l->loans[i], &l->loans[i].region[r]);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l->loans);
    free(l);
}

/* NULL without memory. */
static tide_lender *create(tide_net *net) {
    tide_lender *l = calloc(1, sizeof *l);
    loan *loans = calloc(net->count, sizeof *loans);
    if (!l || !loans || pthread_mutex_init(&l->lock, NULL)) {
        free(l);
        free(loans);
        return NULL;
    }
    pthread_cond_init(&l->changed, NULL);
    l->net = net;
    l->loans = loans;
    return l;
}

tide_status tide_lender_open(tide_net *net, const uint64_t *budget_bytes, tide_lender **out) {
    TIDE_NEED(net, budget_bytes, out);
    tide_lender *l = create(net);
    if (!l) return tide__fail_memory();
    for (uint32_t r = 0; r < net->count; r++) {
        if (budget_bytes[r] == 0) continue;
        loan *b = &l->loans[l->n_loans++];
        *b = (loan){.lender = l, .to = r, .budget_bytes = budget_bytes[r]};
        tide_status status = await_ask(b);
        if (status == TIDE_OK) continue;
        (void)tide_lender_close(l); /* waits for those before, which end with the job */
        return status;
    }
    *out = l;
    return TIDE_OK;
}

tide_status tide_lender_close(tide_lender *l) {
    TIDE_NEED(l);
    pthread_mutex_lock(&l->lock);
    while (l->n_pending > 0) pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    tide_status status = tide__net_fault_status(l->net);
    destroy(l);
    return status;
}
