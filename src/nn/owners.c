/* See owners.h. A state goes to rank 0 piece by piece: its place, then its plain values. A place without bytes is the end. */
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

tide_status tide__owner_tells(tide_trainer *t, uint32_t state, void *data, uint64_t size_bytes) {
    const tide_peers *p = t->options.peers;
    uint32_t owner = tide_step_state(t->network.step, state)->owner;
    if (owner == TIDE_NONE) return TIDE_OK;
    if (p->rank != owner) return pass(p, true, owner, data, size_bytes);
    for (uint32_t r = 0; r < p->count; r++)
        if (r != owner) TIDE_TRY(pass(p, false, r, data, size_bytes));
    return TIDE_OK;
}

static uint64_t plain_bytes(const tide_piece *piece) {
    uint64_t elements = 1;
    for (int i = 0; i < 4; i++) elements *= piece->to[i] - piece->from[i];
    return elements * sizeof(float);
}

/* Does a piece from another rank lie inside the state, and in the room for one? */
static bool is_sound(const tide_piece *piece) {
    uint64_t room = TIDE__PIECE_BYTES / sizeof(float);
    for (int i = 0; i < 4; i++) {
        if (piece->from[i] > piece->to[i] || piece->to[i] > piece->dims[i]) return false;
        const uint64_t n = piece->to[i] - piece->from[i];
        if (n > room) return false;
        room /= n ? n : 1;
    }
    return true;
}

static tide_status send_piece(void *peers, const tide_state *state, const tide_piece *piece, float *plain) {
    tide_piece place = *piece;
    (void)state;
    TIDE_TRY(pass(peers, false, 0, &place, sizeof place));
    return pass(peers, false, 0, plain, plain_bytes(piece));
}

static tide_status send_state(tide_trainer *t, uint32_t state) {
    tide_piece end = {0};
    tide_peers p = *t->options.peers;
    TIDE_TRY(tide__network_read_state(&t->network, state, send_piece, &p));
    return pass(&p, false, 0, &end, sizeof end);
}

/* All of it is received, whatever `take` says: else ranks would be out of step. */
static tide_status receive_state(tide_trainer *t, const tide_state *s, tide__piece_fn take, void *context) {
    tide_status taken = TIDE_OK;
    const tide_peers *p = t->options.peers;
    float *plain = malloc(TIDE__PIECE_BYTES);
    tide_status status = plain ? TIDE_OK : tide__fail_memory();
    while (status == TIDE_OK) {
        tide_piece piece;
        status = pass(p, true, s->owner, &piece, sizeof piece);
        if (status != TIDE_OK || piece.size_bytes == 0) break;
        if (!is_sound(&piece))
            status = tide__fail(TIDE_E_PEER, "rank %u sends what is no piece of \"%s\"", s->owner, s->name);
        if (status == TIDE_OK) status = pass(p, true, s->owner, plain, plain_bytes(&piece));
        if (status == TIDE_OK && taken == TIDE_OK && take) taken = take(context, s, &piece, plain);
    }
    free(plain);
    return status == TIDE_OK ? taken : status;
}

tide_status tide__owner_reads_state(tide_trainer *t, uint32_t state, tide__piece_fn take, void *context) {
    const tide_peers *p = t->options.peers;
    const tide_state *s = tide_step_state(t->network.step, state);
    if (!p || (p->rank == 0 && (s->owner == TIDE_NONE || s->owner == 0)))
        return take ? tide__network_read_state(&t->network, state, take, context) : TIDE_OK;
    if (s->owner == TIDE_NONE || s->owner == 0) return TIDE_OK;
    if (p->rank == 0) return receive_state(t, s, take, context);
    return p->rank == s->owner ? send_state(t, state) : TIDE_OK;
}

tide_status tide__owner_check_path(const tide_trainer *t, const char *path) {
    const tide_peers *p = t->options.peers;
    const bool shared = p && p->count > 1 && t->options.step.shard != TIDE_SHARD_NONE;
    if (path ? !shared || p->rank == 0 : shared && p->rank > 0) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT,
                      "rank 0 names the file, and only ranks that own states beside it do without one");
}
