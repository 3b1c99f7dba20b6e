/* See states.h. Invariant: of no state is more than a piece outside the arena and the tiers. */
#include "nn/states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/size.h"
#include "nn/step.h"

static uint64_t value_bytes(const tide__network *n, tide_id tensor) {
    return tide_program_tensor(n->program, tensor)->size_bytes;
}

static uint64_t stored_bytes(const tide__network *n, const tide_state *s) {
    uint64_t bytes = s->n_parts ? 0 : value_bytes(n, s->at_start);
    for (uint32_t i = 0; i < s->n_parts; i++) bytes += value_bytes(n, s->parts[i].to);
    return bytes;
}

/* ---- bytes as stored ---- */

/* From where the part ends on, the next one has them. Of a state in parts all but the last have the size of the first. */
static tide_status move_bytes(const tide__network *n, const tide_state *s, uint64_t position, char *data,
                              uint64_t size_bytes, bool write) {
    const uint64_t part_bytes = s->n_parts ? value_bytes(n, s->at_start) : UINT64_MAX;
    while (size_bytes > 0) {
        const uint64_t part = position / part_bytes, at = position % part_bytes;
        const uint64_t here = tide__min_u64(size_bytes, part_bytes - at);
        const tide_id tensor = s->n_parts ? s->parts[part].to : s->at_start;
        TIDE_TRY(write ? tide__network_write_part(n, tensor, at, data, here)
                       : tide__network_read_part(n, tensor, at, data, here));
        position += here;
        data += here;
        size_bytes -= here;
    }
    return TIDE_OK;
}

/* ---- pieces ---- */

static uint64_t box_elements(const tide_piece *piece) {
    uint64_t elements = 1;
    for (int i = 0; i < 4; i++) elements *= piece->to[i] - piece->from[i];
    return elements;
}

static tide_status next_piece(const tide__network *n, const tide_state *s, uint64_t position, tide_piece *out) {
    TIDE_TRY(tide_operand_piece(tide__step_kernel(n->step, s->op), s->operand, position, TIDE__PIECE_BYTES, out));
    if (out->size_bytes <= TIDE__PIECE_BYTES && box_elements(out) * sizeof(float) <= TIDE__PIECE_BYTES) return TIDE_OK;
    return tide__fail(TIDE_E_UNSUPPORTED, "state \"%s\" is stored in tiles of %llu bytes", s->name,
                      (unsigned long long)out->size_bytes);
}

/* Where one piece after the other is converted. */
typedef struct desk {
    void *stored;
    float *plain;
} desk;

static tide_status move_piece(tide__network *n, const tide_state *s, const tide_piece *piece, const desk *d,
                              tide__piece_fn fn, void *context, bool write) {
    tide_kernel *kernel = tide__step_kernel(n->step, s->op);
    if (write) {
        TIDE_TRY(fn(context, s, piece, d->plain));
        TIDE_TRY(tide_piece_pack(kernel, s->operand, piece, d->plain, d->stored));
        return move_bytes(n, s, piece->position_bytes, d->stored, piece->size_bytes, true);
    }
    TIDE_TRY(move_bytes(n, s, piece->position_bytes, d->stored, piece->size_bytes, false));
    TIDE_TRY(tide_piece_unpack(kernel, s->operand, piece, d->stored, d->plain));
    return fn(context, s, piece, d->plain);
}

static tide_status move_state(tide__network *n, uint32_t index, tide__piece_fn fn, void *context, bool write) {
    const tide_state *s = tide_step_state(n->step, index);
    const desk d = {malloc(TIDE__PIECE_BYTES), malloc(TIDE__PIECE_BYTES)};
    uint64_t size = stored_bytes(n, s);
    tide_piece piece = {0};
    tide_status status = d.stored && d.plain ? TIDE_OK : tide__fail_memory();
    for (uint64_t at = 0; at < size && status == TIDE_OK; at += piece.size_bytes) {
        status = next_piece(n, s, at, &piece);
        if (status == TIDE_OK) status = move_piece(n, s, &piece, &d, fn, context, write);
    }
    free(d.stored);
    free(d.plain);
    return status;
}

tide_status tide__network_write_state(tide__network *n, uint32_t state, tide__piece_fn fill, void *context) {
    return move_state(n, state, fill, context, true);
}

tide_status tide__network_read_state(tide__network *n, uint32_t state, tide__piece_fn take, void *context) {
    return move_state(n, state, take, context, false);
}

/* Dimensions from `whole` on are complete, so a row goes along the one before it and all of them. */
tide_status tide__piece_rows(const tide_piece *p, float *plain, tide__row_fn row, void *context) {
    uint64_t below[5] = {[4] = 1}, index[4];
    int whole = 3;
    for (int i = 3; i >= 0; i--) below[i] = below[i + 1] * p->dims[i];
    while (whole > 0 && p->to[whole] - p->from[whole] == p->dims[whole]) whole--;
    uint64_t length = (p->to[whole] - p->from[whole]) * below[whole + 1];
    for (index[0] = p->from[0]; index[0] < (whole > 0 ? p->to[0] : p->from[0] + 1); index[0]++)
        for (index[1] = p->from[1]; index[1] < (whole > 1 ? p->to[1] : p->from[1] + 1); index[1]++)
            for (index[2] = p->from[2]; index[2] < (whole > 2 ? p->to[2] : p->from[2] + 1); index[2]++) {
                uint64_t at = p->from[3];
                for (int i = 0; i < 3; i++) at += index[i] * below[i + 1];
                TIDE_TRY(row(context, at, plain, length));
                plain += length;
            }
    return TIDE_OK;
}

/* ---- first values ---- */

/* Two uniform numbers become one normal one (Box and Muller). */
static float normal(uint64_t seed, uint64_t stream, uint64_t i) {
    float u = 1 - tide__random_unit(seed, stream, 2 * i), v = tide__random_unit(seed, stream, 2 * i + 1);
    return sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
}

static float initial(const tide_state *s, uint64_t seed, uint64_t stream, uint64_t i) {
    switch (s->init) {
    case TIDE_INIT_ZERO: return 0;
    case TIDE_INIT_ONE: return 1;
    case TIDE_INIT_NORMAL: return s->init_scale * normal(seed, stream, i);
    case TIDE_INIT_UNIFORM: return s->init_scale * (2 * tide__random_unit(seed, stream, i) - 1);
    }
    return 0;
}

/* A state's randomness comes from its name, so that it does not depend on the order of states. */
typedef struct drawing {
    const tide_state *state;
    uint64_t seed, stream;
} drawing;

static tide_status draw_row(void *context, uint64_t at, float *row, uint64_t n) {
    const drawing *d = context;
    for (uint64_t i = 0; i < n; i++) row[i] = initial(d->state, d->seed, d->stream, at + i);
    return TIDE_OK;
}

static tide_status draw_piece(void *context, const tide_state *s, const tide_piece *piece, float *plain) {
    const uint64_t *seed = context;
    drawing d = {.state = s, .seed = *seed, .stream = tide__hash_bytes(0, s->name, strlen(s->name))};
    return tide__piece_rows(piece, plain, draw_row, &d);
}

tide_status tide__network_init_state(tide__network *n, uint32_t index, uint64_t seed) {
    if (tide_step_state(n->step, index)->at_start == TIDE_NONE) return TIDE_OK;
    tide_status status = tide__network_write_state(n, index, draw_piece, &seed);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "state \"%s\"", tide_step_state(n->step, index)->name);
}

/* ---- as stored ---- */

tide_status tide__network_hash(const tide__network *n, const tide_state *s, uint64_t size_bytes, uint64_t *hash) {
    uint64_t h = *hash, part = 0;
    char *bytes = malloc(TIDE__PIECE_BYTES);
    tide_status status = bytes ? TIDE_OK : tide__fail_memory();
    for (uint64_t at = 0; at < size_bytes && status == TIDE_OK; at += part) {
        part = tide__min_u64(size_bytes - at, TIDE__PIECE_BYTES);
        status = move_bytes(n, s, at, bytes, part, false);
        if (status == TIDE_OK) h = tide__hash_words(h, bytes, part);
    }
    if (status == TIDE_OK) *hash = tide__hash_end(h, bytes + part - part % 8, size_bytes);
    free(bytes);
    return status;
}

tide_status tide__network_hash_state(const tide__network *n, uint32_t index, uint64_t *hash) {
    const tide_state *s = tide_step_state(n->step, index);
    return tide__network_hash(n, s, stored_bytes(n, s), hash);
}

tide_status tide__network_state_layout(const tide__network *n, uint32_t index, uint64_t *layout) {
    const tide_state *s = tide_step_state(n->step, index);
    tide_kernel_info *info = malloc(sizeof *info);
    if (!info) return tide__fail_memory();
    tide_status status = tide_kernel_get_info(tide__step_kernel(n->step, s->op), info);
    if (status == TIDE_OK) *layout = info->read[s->operand < TIDE_KERNEL_MAX_OPERANDS ? s->operand : 0].layout;
    free(info);
    return status;
}

/* ---- from another network ---- */

/* *tensor: where `from` has the state of this name. The two store it in the same way, because the op that reads it first is
 * the same in both. */
static tide_status find_source(const tide__network *to, uint32_t state, const tide__network *from, uint32_t *source,
                               tide_id *tensor) {
    const char *name = tide_step_state(to->step, state)->name;
    uint64_t mine, its;
    if (!tide__step_find_state(from->step, name, source))
        return tide__fail(TIDE_E_INTERNAL, "the training step has no state \"%s\"", name);
    TIDE_TRY(tide__network_state_layout(to, state, &mine));
    TIDE_TRY(tide__network_state_layout(from, *source, &its));
    if (mine != its) return tide__fail(TIDE_E_INTERNAL, "the training step stores \"%s\" in another way", name);
    *tensor = tide_step_state(from->step, *source)->at_start;
    return TIDE_OK;
}

static tide_status copy_value(tide__network *to, tide_id target, const tide__network *from, tide_id source,
                              uint64_t size_bytes, void *bytes) {
    for (uint64_t at = 0; at < size_bytes; at += TIDE__PIECE_BYTES) {
        uint64_t part = tide__min_u64(size_bytes - at, TIDE__PIECE_BYTES);
        TIDE_TRY(tide__network_read_part(from, source, at, bytes, part));
        TIDE_TRY(tide__network_write_part(to, target, at, bytes, part));
    }
    return TIDE_OK;
}

tide_status tide__network_copy_states(tide__network *to, const tide__network *from) {
    void *bytes = malloc(TIDE__PIECE_BYTES);
    tide_status status = bytes ? TIDE_OK : tide__fail_memory();
    uint32_t source = 0;
    tide_id tensor;
    for (uint32_t i = 0; i < tide_step_state_count(to->step) && status == TIDE_OK; i++) {
        const tide_state *s = tide_step_state(to->step, i);
        if (s->at_start == TIDE_NONE) continue;
        status = find_source(to, i, from, &source, &tensor);
        if (status == TIDE_OK) status = copy_value(to, s->at_start, from, tensor, stored_bytes(to, s), bytes);
    }
    free(bytes);
    return status;
}

tide_status tide__network_borrow_states(tide__network *to, const tide__network *from) {
    size_t tensors = tide_program_tensor_count(to->program);
    uint32_t source = 0;
    to->lender = from;
    to->lent = malloc((tensors + 1) * sizeof *to->lent);
    if (!to->lent) return tide__fail_memory();
    memset(to->lent, 0xff, tensors * sizeof *to->lent); /* TIDE_NONE in each */
    for (uint32_t i = 0; i < tide_step_state_count(to->step); i++) {
        tide_id mine = tide_step_state(to->step, i)->at_start;
        if (mine != TIDE_NONE) TIDE_TRY(find_source(to, i, from, &source, &to->lent[mine]));
    }
    return TIDE_OK;
}
