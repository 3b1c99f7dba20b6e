/* See owners.h. All ranks go over the pieces of a state in the same order, as far as they are stored; what the taker lacks of one comes from
 * its owner. */
#include "nn/owners.h"

#include <stdlib.h>

#include "base/error.h"
#include "nn/step.h"

/* Behind the numbers that programs have. One will do: messages of a sender come in order. */
#define BETWEEN_STEPS (UINT64_C(1) << 48)

static tide_status pass(const tide_peers *p, bool receives, uint32_t peer, void *data, uint64_t size_bytes) {
    const tide_message m = {.receives = receives, .peer = peer, .number = BETWEEN_STEPS};
    return p->message(p->context, &m, 0, data, size_bytes);
}

static bool has_owners(const tide_trainer *t, uint32_t state) {
    const tide_state *s = tide_step_state(t->network.step, state);
    return s->n_parts > 0 && s->parts[0].owner != TIDE_NONE;
}

static tide_status tell_all(void *peers, uint32_t owner, void *data, uint64_t size_bytes) {
    const tide_peers *p = peers;
    if (p->rank != owner) return pass(p, true, owner, data, size_bytes);
    for (uint32_t r = 0; r < p->count; r++)
        if (r != owner) TIDE_TRY(pass(p, false, r, data, size_bytes));
    return TIDE_OK;
}

static tide_status tell_first(void *peers, uint32_t owner, void *data, uint64_t size_bytes) {
    const tide_peers *p = peers;
    if (owner == 0 || (p->rank != 0 && p->rank != owner)) return TIDE_OK;
    return pass(p, p->rank == 0, p->rank == 0 ? owner : 0, data, size_bytes);
}

tide_status tide__owner_hashes_state(tide_trainer *t, uint32_t state, uint64_t *hash) {
    tide_peers p = t->options.peers ? *t->options.peers : (tide_peers){0};
    const tide__far far = {tell_all, &p};
    return tide__network_hash_state(&t->network, state, has_owners(t, state) ? &far : NULL, hash);
}

tide_status tide__owner_reads_state(tide_trainer *t, uint32_t state, tide__piece_fn take, void *context) {
    tide_peers p = t->options.peers ? *t->options.peers : (tide_peers){0};
    const tide__far far = {tell_first, &p};
    if (has_owners(t, state)) return tide__network_read_state(&t->network, state, &far, take, context);
    return take ? tide__network_read_state(&t->network, state, NULL, take, context) : TIDE_OK;
}

tide_status tide__owner_check_path(const tide_trainer *t, const char *path) {
    const tide_peers *p = t->options.peers;
    const bool shared = p && p->count > 1 && t->options.step.shard != TIDE_SHARD_NONE;
    if (path ? !shared || p->rank == 0 : shared && p->rank > 0) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT,
                      "rank 0 names the file, and only ranks that own states beside it do without one");
}
