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

static uint32_t part_count(const tide_state *s) { return s->n_parts ? s->n_parts : 1; }

/* A state that is one value is its only part. */
static tide_state_part part_of(const tide__network *n, const tide_state *s, uint32_t part) {
    if (s->n_parts) return s->parts[part];
    return (tide_state_part){s->at_end, s->at_start, value_bytes(n, s->at_start), TIDE_NONE};
}

static uint64_t stored_bytes(const tide__network *n, const tide_state *s) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < part_count(s); i++) bytes += part_of(n, s, i).size_bytes;
    return bytes;
}

/* ---- bytes as stored ---- */

/* Bytes on their way: in or out, and past other ranks, if there is somebody to ask. */
typedef struct passage {
    bool write;
    const tide__far *far; /* NULL: what is not here is left out */
} passage;

static tide_status move_within(const tide__network *n, const tide_state_part *p, uint64_t at, char *data,
                               uint64_t bytes, const passage *way) {
    if (p->to != TIDE_NONE)
        TIDE_TRY(way->write ? tide__network_write_part(n, p->to, at, data, bytes)
                            : tide__network_read_part(n, p->to, at, data, bytes));
    return way->far ? way->far->pass(way->far->context, p->owner, data, bytes) : TIDE_OK;
}

static tide_status move_bytes(const tide__network *n, const tide_state *s, uint64_t position, char *data,
                              uint64_t size_bytes, const passage *way) {
    uint64_t begin = 0;
    for (uint32_t i = 0; i < part_count(s) && size_bytes > 0; i++) {
        const tide_state_part p = part_of(n, s, i);
        const uint64_t end = begin + p.size_bytes;
        if (position < end) {
            const uint64_t here = tide__min_u64(size_bytes, end - position);
            TIDE_TRY(move_within(n, &p, position - begin, data, here, way));
            position += here;
            data += here;
            size_bytes -= here;
        }
        begin = end;
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

/* One direction for all pieces of a state. `given`: how `fn` took those that were read. */
typedef struct moving {
    passage way;
    tide__piece_fn fn; /* NULL: they are read for another rank */
    void *context;
    tide_status given;
} moving;

/* All of it is read, whatever `fn` says: else ranks would be out of step. */
static tide_status move_piece(tide__network *n, const tide_state *s, const tide_piece *piece, const desk *d,
                              moving *m) {
    tide_kernel *kernel = tide__step_kernel(n->step, s->op);
    if (m->way.write) {
        TIDE_TRY(m->fn(m->context, s, piece, d->plain));
        TIDE_TRY(tide_piece_pack(kernel, s->operand, piece, d->plain, d->stored));
        return move_bytes(n, s, piece->position_bytes, d->stored, piece->size_bytes, &m->way);
    }
    TIDE_TRY(move_bytes(n, s, piece->position_bytes, d->stored, piece->size_bytes, &m->way));
    if (!m->fn || m->given != TIDE_OK) return TIDE_OK;
    m->given = tide_piece_unpack(kernel, s->operand, piece, d->stored, d->plain);
    if (m->given == TIDE_OK) m->given = m->fn(m->context, s, piece, d->plain);
    return TIDE_OK;
}

static tide_status move_state(tide__network *n, uint32_t index, moving m) {
    const tide_state *s = tide_step_state(n->step, index);
    const desk d = {malloc(TIDE__PIECE_BYTES), malloc(TIDE__PIECE_BYTES)};
    uint64_t size = stored_bytes(n, s);
    tide_piece piece = {0};
    tide_status status = d.stored && d.plain ? TIDE_OK : tide__fail_memory();
    for (uint64_t at = 0; at < size && status == TIDE_OK; at += piece.size_bytes) {
        status = next_piece(n, s, at, &piece);
        if (status == TIDE_OK) status = move_piece(n, s, &piece, &d, &m);
    }
    free(d.stored);
    free(d.plain);
    return status == TIDE_OK ? m.given : status;
}

tide_status tide__network_write_state(tide__network *n, uint32_t state, tide__piece_fn fill, void *context) {
    if (tide_step_state(n->step, state)->at_start == TIDE_NONE) return TIDE_OK;
    return move_state(n, state, (moving){.way.write = true, .fn = fill, .context = context});
}

tide_status tide__network_read_state(tide__network *n, uint32_t state, const tide__far *far, tide__piece_fn take,
                                     void *context) {
    return move_state(n, state, (moving){.way.far = far, .fn = take, .context = context});
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
    tide_status status = tide__network_write_state(n, index, draw_piece, &seed);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "state \"%s\"", tide_step_state(n->step, index)->name);
}

/* ---- as stored ---- */

tide_status tide__network_hash_part(const tide__network *n, tide_id value, uint64_t size_bytes, uint64_t size_of_all,
                                    uint64_t *hash) {
    uint64_t h = *hash, part = 0;
    char *bytes = malloc(TIDE__PIECE_BYTES);
    tide_status status = bytes ? TIDE_OK : tide__fail_memory();
    for (uint64_t at = 0; at < size_bytes && status == TIDE_OK; at += part) {
        part = tide__min_u64(size_bytes - at, TIDE__PIECE_BYTES);
        status = tide__network_read_part(n, value, at, bytes, part);
        if (status == TIDE_OK) h = tide__hash_words(h, bytes, part);
    }
    if (status == TIDE_OK) *hash = size_of_all ? tide__hash_end(h, bytes + part - part % 8, size_of_all) : h;
    free(bytes);
    return status;
}

tide_status tide__network_hash_state(const tide__network *n, uint32_t index, const tide__far *far, uint64_t *hash) {
    const tide_state *s = tide_step_state(n->step, index);
    const uint32_t last = part_count(s) - 1;
    const uint64_t size = stored_bytes(n, s);
    for (uint32_t i = 0; i <= last; i++) {
        const tide_state_part p = part_of(n, s, i);
        if (p.to != TIDE_NONE) TIDE_TRY(tide__network_hash_part(n, p.to, p.size_bytes, i == last ? size : 0, hash));
        if (far) TIDE_TRY(far->pass(far->context, p.owner, hash, sizeof *hash));
    }
    return TIDE_OK;
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

/* Where `from` has the state of this name. The two store it in the same way, because the op that reads it first is the same in both,
 * and in the same parts. */
static tide_status find_source(const tide__network *to, uint32_t state, const tide__network *from, uint32_t *source) {
    const tide_state *mine = tide_step_state(to->step, state), *its;
    uint64_t my_layout, its_layout;
    if (!tide__step_find_state(from->step, mine->name, source))
        return tide__fail(TIDE_E_INTERNAL, "the training step has no state \"%s\"", mine->name);
    TIDE_TRY(tide__network_state_layout(to, state, &my_layout));
    TIDE_TRY(tide__network_state_layout(from, *source, &its_layout));
    its = tide_step_state(from->step, *source);
    if (my_layout != its_layout || mine->n_parts != its->n_parts)
        return tide__fail(TIDE_E_INTERNAL, "the training step stores \"%s\" in another way", mine->name);
    return TIDE_OK;
}

/* With each value here of `to` that of `from` that it comes from. */
typedef tide_status (*value_fn)(tide__network *to, tide_id mine, const tide__network *from, tide_id its, void *context);

static tide_status visit_values(tide__network *to, const tide__network *from, value_fn visit, void *context) {
    uint32_t source = 0;
    for (uint32_t i = 0; i < tide_step_state_count(to->step); i++) {
        const tide_state *s = tide_step_state(to->step, i);
        if (s->at_start == TIDE_NONE) continue;
        TIDE_TRY(find_source(to, i, from, &source));
        const tide_state *its = tide_step_state(from->step, source);
        for (uint32_t k = 0; k < part_count(s); k++) {
            const tide_id mine = part_of(to, s, k).to;
            if (mine != TIDE_NONE) TIDE_TRY(visit(to, mine, from, part_of(from, its, k).to, context));
        }
    }
    return TIDE_OK;
}

static tide_status copy_value(tide__network *to, tide_id mine, const tide__network *from, tide_id its, void *bytes) {
    const uint64_t size = value_bytes(to, mine);
    for (uint64_t at = 0; at < size; at += TIDE__PIECE_BYTES) {
        uint64_t part = tide__min_u64(size - at, TIDE__PIECE_BYTES);
        TIDE_TRY(tide__network_read_part(from, its, at, bytes, part));
        TIDE_TRY(tide__network_write_part(to, mine, at, bytes, part));
    }
    return TIDE_OK;
}

tide_status tide__network_copy_states(tide__network *to, const tide__network *from) {
    void *bytes = malloc(TIDE__PIECE_BYTES);
    tide_status status = bytes ? visit_values(to, from, copy_value, bytes) : tide__fail_memory();
    free(bytes);
    return status;
}

static tide_status borrow_value(tide__network *to, tide_id mine, const tide__network *from, tide_id its,
                                void *context) {
    (void)from;
    (void)context;
    to->lent[mine] = its;
    return TIDE_OK;
}

tide_status tide__network_borrow_states(tide__network *to, const tide__network *from) {
    size_t tensors = tide_program_tensor_count(to->program);
    to->lender = from;
    to->lent = malloc((tensors + 1) * sizeof *to->lent);
    if (!to->lent) return tide__fail_memory();
    memset(to->lent, 0xff, tensors * sizeof *to->lent); /* TIDE_NONE in each */
    return visit_values(to, from, borrow_value, NULL);
}
