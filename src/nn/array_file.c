/* See array_file.h. Invariant: whatever the size of an array, a few KiB of it are in memory beside the piece at hand. */
#include "nn/array_file.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors are little-endian");

enum { CHUNK = 2048 }; /* elements converted at a time */

/* ---- numbers ---- */

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float from_bf16(uint16_t half) { return from_bits((uint32_t)half << 16); }

/* Sign, five bits of exponent, ten of fraction. All that has an exponent is scaled by 2^112 into float32's. */
static float from_f16(uint16_t half) {
    const float scale = 0x1p112f;
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    if ((half & 0x7c00) == 0x7c00) return from_bits(sign | UINT32_C(0x7f800000) | rest);
    float magnitude = from_bits(rest) * scale;
    return sign ? -magnitude : magnitude;
}

static const struct {
    const char *name;
    float (*widen)(uint16_t half); /* NULL: it is float32 */
} readable[] = {{"F32", NULL}, {"F16", from_f16}, {"BF16", from_bf16}};

static int find_dtype(const char *name) {
    int i = (int)(sizeof readable / sizeof *readable);
    while (i-- > 0 && strcmp(readable[i].name, name) != 0) {
    }
    return i;
}

bool tide__array_is_readable(const char *dtype) { return find_dtype(dtype) >= 0; }

static bool all_finite(const float *data, uint64_t n) {
    const uint32_t exponent = UINT32_C(0x7f800000); /* all ones: infinite or no number */
    uint32_t bits, found = 0;
    for (uint64_t i = 0; i < n; i++) {
        memcpy(&bits, &data[i], sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return !found;
}

/* ---- stretches of the array ---- */

static tide_status seek(const tide__array_place *p, uint64_t element, size_t element_bytes) {
    off_t at = (off_t)(p->at_bytes + element * element_bytes);
    return ftello(p->stream) == at || fseeko(p->stream, at, SEEK_SET) == 0
               ? TIDE_OK
               : tide__fail_errno(TIDE_E_IO, errno, "cannot seek");
}

static tide_status read_exactly(const tide__array_place *p, void *data, size_t element_bytes, uint64_t n) {
    errno = 0;
    if (fread(data, element_bytes, n, p->stream) == n) return TIDE_OK;
    return tide__fail_errno(TIDE_E_IO, errno ? errno : EIO, "cannot read");
}

static tide_status read_row(void *context, uint64_t at, float *row, uint64_t n) {
    const tide__array_place *p = context;
    float (*widen)(uint16_t) = readable[find_dtype(p->dtype)].widen;
    uint16_t halves[CHUNK];
    TIDE_TRY(seek(p, at, widen ? sizeof *halves : sizeof *row));
    if (!widen) return read_exactly(p, row, sizeof *row, n);
    for (uint64_t done = 0; done < n; done += CHUNK) {
        uint64_t part = tide__min_u64(n - done, CHUNK);
        TIDE_TRY(read_exactly(p, halves, sizeof *halves, part));
        for (uint64_t i = 0; i < part; i++) row[done + i] = widen(halves[i]);
    }
    return TIDE_OK;
}

static tide_status write_row(void *context, uint64_t at, float *row, uint64_t n) {
    const tide__array_place *p = context;
    if (!all_finite(row, n)) return tide__fail(TIDE_E_DIVERGED, "it is not finite; the file stays as it is");
    TIDE_TRY(seek(p, at, sizeof *row));
    errno = 0;
    if (fwrite(row, sizeof *row, n, p->stream) == n) return TIDE_OK;
    return tide__fail_errno(TIDE_E_IO, errno ? errno : EIO, "cannot write");
}

/* ---- matrices the other way round ---- */

/* Those of a piece that lie in one column of the matrix: a stretch of the file. */
typedef struct column {
    uint64_t first, n;   /* rows */
    uint64_t at, stride; /* in the piece, row-major */
} column;

/* How many elements of column i lie before element `end` of a row-major matrix of this width. */
static uint64_t rows_before(uint64_t end, uint64_t i, uint64_t width) {
    return end <= i ? 0 : (end - i - 1) / width + 1;
}

/* A piece is a box of the matrix, or a stretch of it where the device stores it row-major. */
static column find_column(const tide_piece *p, uint64_t width, uint64_t i) {
    bool box = p->dims[1] == width;
    if (box && (i < p->from[1] || i >= p->to[1])) return (column){0};
    if (box) return (column){p->from[0], p->to[0] - p->from[0], i - p->from[1], p->to[1] - p->from[1]};
    uint64_t first = rows_before(p->from[0], i, width), end = rows_before(p->to[0], i, width);
    return (column){first, end - first, first * width + i - p->from[0], width};
}

static tide_status move_chunk(tide__array_place *p, uint64_t at, float *values, uint64_t n, bool write) {
    return write ? write_row(p, at, values, n) : read_row(p, at, values, n);
}

static tide_status move_column(tide__array_place *p, uint64_t at, const column *c, float *plain, bool write) {
    float values[CHUNK];
    for (uint64_t done = 0; done < c->n; done += CHUNK) {
        uint64_t part = tide__min_u64(c->n - done, CHUNK);
        float *element = plain + c->at + done * c->stride;
        for (uint64_t k = 0; write && k < part; k++) values[k] = element[k * c->stride];
        TIDE_TRY(move_chunk(p, at + done, values, part, write));
        for (uint64_t k = 0; !write && k < part; k++) element[k * c->stride] = values[k];
    }
    return TIDE_OK;
}

static tide_status move_transposed(tide__array_place *p, const tide_state *s, const tide_piece *piece, float *plain,
                                   bool write) {
    uint64_t height = (uint64_t)s->shape.n, width = tide__elements(s->shape) / height;
    for (uint64_t i = 0; i < width; i++) {
        column c = find_column(piece, width, i);
        TIDE_TRY(move_column(p, i * height + c.first, &c, plain, write));
    }
    return TIDE_OK;
}

/* ---- pieces ---- */

static tide_status move(tide__array_place *p, const tide_state *s, const tide_piece *piece, float *plain, bool write) {
    tide_status status = p->transposed ? move_transposed(p, s, piece, plain, write)
                                       : tide__piece_rows(piece, plain, write ? write_row : read_row, p);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "array \"%.*s\"", p->name_length, p->name);
}

tide_status tide__array_read(void *place, const tide_state *s, const tide_piece *piece, float *plain) {
    return move(place, s, piece, plain, false);
}

tide_status tide__array_write(void *place, const tide_state *s, const tide_piece *piece, float *plain) {
    return move(place, s, piece, plain, true);
}

tide_status tide__network_load_array(tide__network *n, uint32_t state, FILE *stream, const tide__safetensors *s,
                                     const tide__array *a, bool transposed) {
    tide__array_place place = {.stream = stream, .name = a->name, .name_length = (int)a->name_length};
    place.at_bytes = s->data_at + a->begin;
    place.dtype = a->dtype;
    place.transposed = transposed;
    return tide__network_write_state(n, state, tide__array_read, &place);
}
