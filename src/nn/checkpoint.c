/* Checkpoints: everything that decides how a training goes on, in one safetensors file. Weights, optimizer state and
 * running statistics are arrays of plain row-major float32; step, seed, the place in the data and the schedule of the
 * learning rate are metadata. All randomness is a function of these, so a resumed training computes the same bits.
 *
 * Invariant: the file at the path is the old one or the complete new one; a trainer that refuses a file is as before. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "nn/checkpoint_keys.h"
#include "nn/states.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors are little-endian");

/* ---- what a state looks like in the file ---- */

typedef struct plain_shape {
    uint32_t rank;
    uint64_t dim[4];
} plain_shape;

/* Vectors have one dimension and matrices two, as other tools expect; filters keep all four. */
static plain_shape shape_of(const tide_step *step, const tide_state *s) {
    tide_op_kind kind = tide_step_op_desc(step, s->op)->kind;
    bool filter = kind == TIDE_OP_CONV_FWD || kind == TIDE_OP_CONV_BWD_DATA;
    plain_shape p = {.rank = 4};
    const int64_t dims[] = {s->shape.n, s->shape.c, s->shape.h, s->shape.w};
    for (int i = 0; i < 4; i++) p.dim[i] = (uint64_t)dims[i];
    if (s->shape.h == 1 && s->shape.w == 1 && !filter) p.rank = s->shape.c == 1 ? 1 : 2;
    return p;
}

/* Ones at the end make no difference. */
static bool same_shape(const plain_shape *p, const tide__array *a) {
    for (uint32_t i = 0; i < a->rank || i < p->rank; i++)
        if ((i < a->rank ? a->shape[i] : 1) != (i < p->rank ? p->dim[i] : 1)) return false;
    return true;
}

/* ---- writing ---- */

static uint64_t write_entry(FILE *f, const tide_step *step, const tide_state *s, uint64_t at) {
    plain_shape p = shape_of(step, s);
    uint64_t end = at + tide__elements(s->shape) * sizeof(float);
    fputc(',', f);
    tide__json_write_string(f, s->name);
    fputs(":{\"dtype\":\"F32\",\"shape\":[", f);
    for (uint32_t i = 0; i < p.rank; i++) fprintf(f, "%s%" PRIu64, i ? "," : "", p.dim[i]);
    fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, end);
    return end;
}

/* Padded with blanks, so that the data starts on a multiple of eight bytes. */
static tide_status make_header(const tide_trainer *t, char **text, size_t *size) {
    const tide_step *step = t->network.step;
    uint64_t at = 0;
    *text = NULL;
    FILE *f = open_memstream(text, size);
    if (!f) return tide__fail_memory();
    fputc('{', f);
    tide__checkpoint_write_keys(f, t);
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) at = write_entry(f, step, tide_step_state(step, i), at);
    fputc('}', f);
    for (long length = ftell(f); length > 0 && length % 8 != 0; length++) fputc(' ', f);
    bool failed = ferror(f) != 0;
    if (fclose(f) == 0 && !failed) return TIDE_OK;
    free(*text);
    return tide__fail_memory();
}

static tide_status write_header(const tide_trainer *t, FILE *stream) {
    unsigned char length[8];
    char *text;
    size_t size;
    TIDE_TRY(make_header(t, &text, &size));
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)size >> (8 * i));
    fwrite(length, 1, sizeof length, stream);
    fwrite(text, 1, size, stream);
    free(text);
    return TIDE_OK;
}

/* Where the state at hand begins in a stream. */
typedef struct place {
    FILE *stream;
    const char *name;
    uint64_t at_bytes;
} place;

static tide_status seek(const place *p, uint64_t element) {
    off_t at = (off_t)(p->at_bytes + element * sizeof(float));
    return ftello(p->stream) == at || fseeko(p->stream, at, SEEK_SET) == 0
               ? TIDE_OK
               : tide__fail_errno(TIDE_E_IO, errno, "cannot seek");
}

static bool all_finite(const float *data, uint64_t n) {
    const uint32_t exponent = UINT32_C(0x7f800000); /* all ones: infinite or no number */
    uint32_t bits, found = 0;
    for (uint64_t i = 0; i < n; i++) {
        memcpy(&bits, &data[i], sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return !found;
}

static tide_status write_row(void *context, uint64_t at, float *row, uint64_t n) {
    const place *p = context;
    if (!all_finite(row, n))
        return tide__fail(TIDE_E_DIVERGED, "array \"%s\" is not finite; the checkpoint stays as it is", p->name);
    TIDE_TRY(seek(p, at));
    errno = 0;
    if (fwrite(row, sizeof *row, n, p->stream) == n) return TIDE_OK;
    return tide__fail_errno(TIDE_E_IO, errno ? errno : EIO, "cannot write");
}

static tide_status write_piece(void *context, const tide_state *s, const tide_piece *piece, float *plain) {
    (void)s;
    return tide__piece_rows(piece, plain, write_row, context);
}

/* A failed write of the header is sticky and reported when the file is committed, if not before. */
static tide_status write_states(tide_trainer *t, FILE *stream) {
    tide__network *n = &t->network;
    off_t begin = ftello(stream);
    if (begin < 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot write");
    place p = {.stream = stream, .at_bytes = (uint64_t)begin};
    for (uint32_t i = 0; i < tide_step_state_count(n->step); i++) {
        const tide_state *s = tide_step_state(n->step, i);
        p.name = s->name;
        TIDE_TRY(tide__network_read_state(n, i, write_piece, &p));
        p.at_bytes += tide__elements(s->shape) * sizeof(float);
    }
    return TIDE_OK;
}

tide_status tide_trainer_save(tide_trainer *t, const char *path) {
    TIDE_NEED(t, path);
    tide__writer w;
    if (t->spoiled) return tide__fail(TIDE_E_POISONED, "the trainer's values come from half a checkpoint");
    TIDE_TRY(tide__writer_open_regular(&w, path));
    tide_status status = write_header(t, w.stream);
    if (status == TIDE_OK) status = write_states(t, w.stream);
    if (status == TIDE_OK) return tide__writer_commit(&w);
    tide__writer_abort(&w);
    return tide__fail_in(status, "%s", path);
}

/* ---- reading ---- */

static tide_status check_states(const tide_trainer *t, const tide__safetensors *s) {
    const tide_step *step = t->network.step;
    uint32_t n = tide_step_state_count(step);
    for (uint32_t i = 0; i < n; i++) {
        const tide_state *state = tide_step_state(step, i);
        const tide__array *a = tide__safetensors_find(s, state->name);
        plain_shape p = shape_of(step, state);
        if (!a) return tide__fail(TIDE_E_FORMAT, "there is no array \"%s\"", state->name);
        if (strcmp(a->dtype, "F32") != 0)
            return tide__fail(TIDE_E_FORMAT, "array \"%s\" is of %s, not F32", state->name, a->dtype);
        if (!same_shape(&p, a)) return tide__fail(TIDE_E_FORMAT, "array \"%s\" has another shape", state->name);
    }
    if (s->n_arrays == n) return TIDE_OK; /* names are distinct on both sides */
    return tide__fail(TIDE_E_FORMAT, "%u arrays, the model has %u", s->n_arrays, n);
}

static tide_status read_row(void *context, uint64_t at, float *row, uint64_t n) {
    const place *p = context;
    TIDE_TRY(seek(p, at));
    errno = 0;
    if (fread(row, sizeof *row, n, p->stream) == n) return TIDE_OK;
    return tide__fail_errno(TIDE_E_IO, errno ? errno : EIO, "cannot read");
}

static tide_status read_piece(void *context, const tide_state *s, const tide_piece *piece, float *plain) {
    tide_status status = tide__piece_rows(piece, plain, read_row, context);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "array \"%s\"", s->name);
}

static tide_status read_states(tide_trainer *t, FILE *stream, const tide__safetensors *s) {
    tide__network *n = &t->network;
    t->spoiled = true; /* until all are there */
    for (uint32_t i = 0; i < tide_step_state_count(n->step); i++) {
        const tide__array *a = tide__safetensors_find(s, tide_step_state(n->step, i)->name);
        place p = {.stream = stream, .name = a->name, .at_bytes = s->data_at + a->begin};
        TIDE_TRY(tide__network_write_state(n, i, read_piece, &p));
    }
    t->spoiled = false;
    return TIDE_OK;
}

static tide_status load(void *trainer, FILE *stream, const tide__safetensors *s) {
    tide_trainer *t = trainer;
    tide__checkpoint_state state;
    TIDE_TRY(tide__checkpoint_check_keys(t, s));
    TIDE_TRY(check_states(t, s));
    TIDE_TRY(tide__checkpoint_read_keys(s, &state));
    TIDE_TRY(read_states(t, stream, s));
    t->step = state.step;
    t->seen = state.seen;
    if (t->options.own_schedule) return TIDE_OK;
    t->options.learning_rate = state.learning_rate;
    t->options.schedule = state.schedule;
    return TIDE_OK;
}

/* What to do with an open file. */
typedef tide_status (*visit_fn)(void *context, FILE *stream, const tide__safetensors *s);

static tide_status visit(const char *path, visit_fn fn, void *context) {
    tide__safetensors s;
    FILE *stream;
    TIDE_TRY(tide__stream_open_regular(path, &stream));
    tide_status status = tide__safetensors_open(stream, path, &s);
    if (status == TIDE_OK) {
        status = fn(context, stream, &s);
        if (status != TIDE_OK) status = tide__fail_in(status, "%s", path);
        tide__safetensors_close(&s);
    }
    fclose(stream);
    return status;
}

tide_status tide_trainer_load(tide_trainer *t, const char *path) {
    TIDE_NEED(t, path);
    if (!t->network.run && !t->parts) return tide__fail(TIDE_E_POISONED, "the trainer has no run to load into");
    return visit(path, load, t);
}

static tide_status read_total(void *steps, FILE *stream, const tide__safetensors *s) {
    (void)stream;
    return tide__safetensors_u64(s, "total_steps", steps);
}

tide_status tide_checkpoint_total_steps(const char *path, uint64_t *steps) {
    TIDE_NEED(path, steps);
    return visit(path, read_total, steps);
}

uint64_t tide_trainer_steps_done(const tide_trainer *t) { return t->step; }
uint64_t tide_trainer_steps_skipped(const tide_trainer *t) { return t->skipped; }
const tide_schedule *tide_trainer_schedule(const tide_trainer *t) { return &t->options.schedule; }
