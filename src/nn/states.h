/* States of a network: parameters, optimizer state, running statistics. They go in and out piece by piece, through
 * buffers of a fixed size, so that nothing here takes more memory for a larger model. Between steps only. */
#ifndef TIDE_NN_STATES_H
#define TIDE_NN_STATES_H

#include "nn/network.h"

#define TIDE__PIECE_BYTES (UINT64_C(1) << 20) /* of one piece, as stored and plain */

/* What a state is filled from, or goes to: `plain` is the piece's box, row-major. */
typedef tide_status (*tide__piece_fn)(void *context, const tide_state *state, const tide_piece *piece, float *plain);
tide_status tide__network_write_state(tide__network *network, uint32_t state, tide__piece_fn fill, void *context);
/* What passes between ranks, where states have owners: data of a part to who wants it, or from its owner. */
typedef struct tide__far {
    tide_status (*pass)(void *context, uint32_t owner, void *data, uint64_t size_bytes);
    void *context;
} tide__far;
/* far: NULL, the state is here; take: NULL, it is read for other ranks. */
tide_status tide__network_read_state(tide__network *network, uint32_t state, const tide__far *far, tide__piece_fn take,
                                     void *context);

/* A piece as stretches of the plain array: n elements from element `at` on. */
typedef tide_status (*tide__row_fn)(void *context, uint64_t at, float *row, uint64_t n);
tide_status tide__piece_rows(const tide_piece *piece, float *plain, tide__row_fn row, void *context);

/* Its first value, a function of its name and the seed; nothing where another rank has it. */
tide_status tide__network_init_state(tide__network *network, uint32_t state, uint64_t seed);

/* Folds the bytes of a value, as stored, into a hash. size_of_all: if it is the last part of something of that size; else 0. */
tide_status tide__network_hash_part(const tide__network *network, tide_id value, uint64_t size_bytes,
                                    uint64_t size_of_all, uint64_t *hash);
/* Those of a state; whether it lies in parts does not matter. After each part the hash passes through `far`, if that is not NULL. */
tide_status tide__network_hash_state(const tide__network *network, uint32_t state, const tide__far *far,
                                     uint64_t *hash);

/* Equal for states that are stored in the same way. */
tide_status tide__network_state_layout(const tide__network *network, uint32_t state, uint64_t *layout);

/* All states of `to`, which only looks, from those of `from` with the same names. */
tide_status tide__network_copy_states(tide__network *to, const tide__network *from);
/* Instead, for an inference step with client_weights: from now on they are read from `from`, which rests meanwhile. */
tide_status tide__network_borrow_states(tide__network *to, const tide__network *from);

#endif
