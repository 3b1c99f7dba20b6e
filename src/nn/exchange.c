/* Steps of one rank of several: sums over the micro-batches of all ranks, and running statistics from rank to rank.
 *
 *      rank            0      1      2      3        Each rank has the sum of a subtree (tree.c). On every level above, pairs of
 *      own sums        a      b      c      d        ranks send each other what they have and add it, the left side first. So all end up
 *      level 0       a + b  a + b  c + d  c + d      with the bits that one rank alone would have.
 *      level 1       (a + b) + (c + d), everywhere
 *
 * Where a parameter, or a part of it, has an owner (shard.c), the sums of the same tree go to it alone, one way.
 *
 * Messages begin as soon as a sum is there. Its addition waits until some more bytes are under way, so that compute need not wait
 * for messages: `pending` is a queue. All ranks emit the same list of messages in the same order, and count those of others. */
#include <stdio.h>

#include "nn/tape.h"

/* Bytes of messages that are under way beside compute before the first of them is waited for. */
#define AHEAD_BYTES (UINT64_C(32) << 20)

static bool is_loss(uint32_t stake) { return stake == TIDE_NONE; }

static tide_phase phase_of(uint32_t stake) { return is_loss(stake) ? TIDE_FORWARD : TIDE_BACKWARD; }

static void name_sum(const tide__tape *tape, uint32_t stake, char name[TIDE__PARAM_NAME_BYTES]) {
    if (is_loss(stake))
        snprintf(name, TIDE__PARAM_NAME_BYTES, "%s",
                 tide__layer_name(tape->graph, (uint32_t)tape->graph->layers.count - 1));
    else
        tide__tape_name_stake(tape, stake, name);
}

/* ---- sums ---- */

static tide_status finish(tide__tape *tape, uint32_t stake, tide_id total) {
    if (is_loss(stake)) {
        tape->loss = total;
        return tide_program_builder_keep(tape->emit.builder, total);
    }
    tape->stakes.data[stake].grad = total;
    return tape->options->fused_update ? tide__tape_update_stake(tape, stake) : TIDE_OK;
}

/* Who of a pair gets the sum of both: each of them, or the one on the way to the owner. */
static bool receives(const tide__tape *tape, uint32_t stake, uint32_t level, uint32_t rank) {
    uint32_t owner = is_loss(stake) ? TIDE_NONE : tape->stakes.data[stake].owner;
    return owner == TIDE_NONE || ((rank ^ owner) & ((UINT32_C(2) << level) - 1)) == 0;
}

/* Both directions at once; the message of the lower rank has the lower number. A rank whose sum has gone to the owner counts on. */
static tide_status begin(tide__tape *tape, tide__exchange x) {
    uint32_t rank = tape->rank, peer = rank ^ UINT32_C(1) << x.level;
    uint64_t first = tape->n_messages;
    char name[TIDE__PARAM_NAME_BYTES];
    name_sum(tape, x.stake, name);
    const tide__arrival as = {.like = x.own};
    const tide__draft draft = {.phase = phase_of(x.stake), .name = name, .again = x.level};
    bool sends = x.own != TIDE_NONE && receives(tape, x.stake, x.level, peer);
    x.received = TIDE_NONE;
    tape->n_messages += tape->n_ranks;
    if (sends && rank < peer) TIDE_TRY(tide__emit_send(&tape->emit, &draft, x.own, peer, first + rank));
    if (x.own != TIDE_NONE && receives(tape, x.stake, x.level, rank))
        TIDE_TRY(tide__emit_receive(&tape->emit, &draft, &as, peer, first + peer, &x.received));
    if (sends && rank > peer) TIDE_TRY(tide__emit_send(&tape->emit, &draft, x.own, peer, first + rank));
    tape->pending_bytes += x.size_bytes;
    return tide__vec_push(&tape->pending, x);
}

static tide_status add_both(tide__tape *tape, const tide__exchange *x, tide_id *sum) {
    bool left = (tape->rank >> x->level & 1) == 0;
    char name[TIDE__PARAM_NAME_BYTES];
    name_sum(tape, x->stake, name);
    const tide__addend of = {.phase = phase_of(x->stake), .name = name};
    return tide__tape_add(tape, &of, tape->n_levels + x->level, left ? x->own : x->received,
                          left ? x->received : x->own, sum);
}

/* The oldest exchange: its addition, and the next level or what the sum is for. */
static tide_status end_oldest(tide__tape *tape) {
    tide__exchange x = tape->pending.data[tape->first_pending++];
    tape->pending_bytes -= x.size_bytes;
    tide_id sum = TIDE_NONE;
    if (x.received != TIDE_NONE) TIDE_TRY(add_both(tape, &x, &sum));
    bool top = tape->n_ranks >> (x.level + 1) <= 1;
    x.level++;
    x.own = sum;
    return top ? finish(tape, x.stake, sum) : begin(tape, x);
}

static tide_status share_one(tide__tape *tape, uint32_t stake, tide_id own) {
    const tide__exchange x = {.stake = stake, .size_bytes = tape->emit.tensors.data[own].size_bytes, .own = own};
    TIDE_TRY(tape->n_ranks == 1 || tape->options->inference ? finish(tape, stake, own) : begin(tape, x));
    while (tape->pending_bytes > AHEAD_BYTES && tape->pending.count - tape->first_pending > 1)
        TIDE_TRY(end_oldest(tape));
    return TIDE_OK;
}

/* Parts of a gradient are those of its weight, so they are cut where it is stored like it. */
static tide_status share_parts(tide__tape *tape, const tide__weight *w, tide_id own) {
    static const tide_op_desc cut = {.kind = TIDE_OP_CUT};
    char name[TIDE__PARAM_NAME_BYTES];
    tide__param_name(tape->graph, &tape->graph->params.data[tape->stakes.data[w->first_stake].param], name);
    tide__draft draft = {.desc = &cut, .phase = TIDE_BACKWARD, .name = name};
    TIDE_TRY(tide__emit_in_layout_of(&tape->emit, &draft, own, w->like, &own));
    const uint32_t end = w->first_stake + w->n_stakes;
    for (uint32_t i = w->first_stake; i < end; i++) {
        const tide__stake s = tape->stakes.data[i];
        tide_id part;
        tide__tape_name_stake(tape, i, name);
        TIDE_TRY(tide__emit_cut(&tape->emit, draft, own, s.first, s.floats, &part));
        TIDE_TRY(share_one(tape, i, part));
    }
    return TIDE_OK;
}

/* Names of what belongs to the whole step carry no number of a micro-batch. */
tide_status tide__tape_share(tide__tape *tape, uint32_t slot, tide_id own) {
    const tide__weight *w = slot < tape->graph->params.count ? &tape->weights[slot] : NULL;
    uint32_t micro = tape->emit.micro;
    tape->emit.micro = 0;
    tide_status status =
        w && w->n_stakes > 1 ? share_parts(tape, w, own) : share_one(tape, w ? w->first_stake : TIDE_NONE, own);
    tape->emit.micro = micro;
    return status;
}

tide_status tide__tape_share_rest(tide__tape *tape) {
    tape->emit.micro = 0;
    while (tape->first_pending < tape->pending.count) TIDE_TRY(end_oldest(tape));
    return TIDE_OK;
}

/* ---- running statistics ---- */

/* All of them from one rank to another. */
static tide_status pass_statistics(tide__tape *tape, uint32_t from, uint32_t to) {
    uint32_t rank = tape->rank;
    for (size_t i = 0; i < tape->statistics.count / tape->n_micros;
         i++) { /* the layers, as the first micro-batch has them */
        for (uint32_t k = 2; k < 4; k++) {
            uint32_t param = tide__layer_param(tape->graph, tape->statistics.data[i].layer, k);
            char name[TIDE__PARAM_NAME_BYTES];
            tide__param_name(tape->graph, &tape->graph->params.data[param], name);
            const tide__draft draft = {.phase = TIDE_UPDATE, .name = name, .again = to};
            tide_id *now = &tape->weights[param].now;
            const tide__arrival as = {.like = *now};
            uint64_t number = tape->n_messages++;
            if (rank == from) TIDE_TRY(tide__emit_send(&tape->emit, &draft, *now, to, number));
            if (rank == to) TIDE_TRY(tide__emit_receive(&tape->emit, &draft, &as, from, number, now));
        }
    }
    return TIDE_OK;
}

static tide_status update_own(tide__tape *tape) {
    for (size_t i = 0; i < tape->statistics.count; i++) {
        const tide__statistics *s = &tape->statistics.data[i];
        tape->emit.micro = s->micro;
        TIDE_TRY(tide__tape_update_statistics(tape, s));
    }
    tape->emit.micro = 0;
    return TIDE_OK;
}

/* In the order of the micro-batches, so from rank to rank; then the last one tells all. */
tide_status tide__tape_chain_statistics(tide__tape *tape) {
    for (uint32_t r = 0; r < tape->n_ranks; r++) {
        if (r > 0) TIDE_TRY(pass_statistics(tape, r - 1, r));
        if (tape->rank == r) TIDE_TRY(update_own(tape));
    }
    for (uint32_t r = 0; r + 1 < tape->n_ranks; r++) TIDE_TRY(pass_statistics(tape, tape->n_ranks - 1, r));
    return TIDE_OK;
}
