/* See array_writer.h. Counters, of eight bytes each, come first: so every array lies on a multiple of its elements' size. */
#include "nn/array_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/vec.h"
#include "nn/array_file.h"
#include "nn/model.h"
#include "nn/owners.h"
#include "nn/step.h"

typedef enum entry_kind { COUNTER, STATE, COPY } entry_kind;

typedef struct entry {
    entry_kind kind;
    uint32_t state; /* that it is, is beside, or repeats */
} entry;
typedef TIDE_VEC(entry) entry_vec;

/* ---- which arrays ---- */

static tide_status list_counters(const tide__naming *naming, const tide_step *step, entry_vec *out) {
    char name[TIDE__PUBLISHED_NAME_BYTES];
    for (uint32_t i = 0; i < tide_step_state_count(step); i++)
        if (tide__publish_counter(naming, tide_step_state(step, i), name))
            TIDE_TRY(tide__vec_push(out, ((entry){COUNTER, i})));
    return TIDE_OK;
}

static tide_status list_states(const tide__naming *naming, const tide_step *step, bool whole, entry_vec *out) {
    tide__published p;
    uint32_t copied = TIDE_NONE;
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) {
        const tide_state *s = tide_step_state(step, i);
        if (s->cls == TIDE_CLASS_OPTIMIZER && !whole) continue;
        TIDE_TRY(tide__vec_push(out, ((entry){STATE, i})));
        tide__publish(naming, s, &p);
        if (naming->copied && strcmp(p.name, naming->copied) == 0) copied = i;
    }
    return whole || copied == TIDE_NONE ? TIDE_OK : tide__vec_push(out, ((entry){COPY, copied}));
}

/* ---- the header ---- */

static uint64_t entry_bytes(const tide_step *step, const entry *e) {
    if (e->kind == COUNTER) return sizeof(uint64_t);
    return tide__elements(tide_step_state(step, e->state)->shape) * sizeof(float);
}

static void describe(const tide__naming *naming, const tide_step *step, const entry *e, tide__published *out) {
    const tide_state *s = tide_step_state(step, e->state);
    tide__publish(naming, s, out);
    if (e->kind == COPY) snprintf(out->name, sizeof out->name, "%s", naming->copy);
    if (e->kind != COUNTER) return;
    out->rank = 0;
    (void)tide__publish_counter(naming, s, out->name);
}

static void write_entry(FILE *f, const tide__published *p, const char *dtype, uint64_t begin, uint64_t end) {
    fputc(',', f);
    tide__json_write_string(f, p->name);
    fprintf(f, ":{\"dtype\":\"%s\",\"shape\":[", dtype);
    for (uint32_t i = 0; i < p->rank; i++) fprintf(f, "%s%" PRIu64, i ? "," : "", p->dim[i]);
    fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, end);
}

/* Padded with blanks, so that the data starts on a multiple of eight bytes. */
static tide_status make_header(const tide_trainer *t, const entry_vec *entries, tide__metadata_fn metadata, char **text,
                               size_t *size) {
    const tide_step *step = t->network.step;
    uint64_t at = 0;
    tide__published p;
    *text = NULL;
    FILE *f = open_memstream(text, size);
    if (!f) return tide__fail_memory();
    fputc('{', f);
    metadata(f, t);
    for (size_t i = 0; i < entries->count; i++) {
        const entry *e = &entries->data[i];
        uint64_t begin = at;
        describe(t->options.model->naming, step, e, &p);
        at += entry_bytes(step, e);
        write_entry(f, &p, e->kind == COUNTER ? "I64" : "F32", begin, at);
    }
    fputc('}', f);
    for (long length = ftell(f); length > 0 && length % 8 != 0; length++) fputc(' ', f);
    bool failed = ferror(f) != 0;
    if (fclose(f) == 0 && !failed) return TIDE_OK;
    free(*text);
    return tide__fail_memory();
}

static void write_u64(FILE *stream, uint64_t value) {
    for (int i = 0; i < 8; i++) fputc((int)(value >> (8 * i) & 0xff), stream);
}

static tide_status write_header(const tide_trainer *t, const entry_vec *entries, tide__metadata_fn metadata,
                                FILE *stream) {
    char *text;
    size_t size;
    TIDE_TRY(make_header(t, entries, metadata, &text, &size));
    write_u64(stream, size);
    fwrite(text, 1, size, stream);
    free(text);
    return TIDE_OK;
}

/* ---- the data ---- */

/* Batches that the statistics have seen: one per micro-batch. */
static uint64_t batches_done(const tide_trainer *t) { return t->step * tide__step_micros(&t->options.step); }

static tide_status write_array(tide_trainer *t, const entry *e, FILE *stream, uint64_t at_bytes) {
    tide__network *n = &t->network;
    tide__published p;
    if (!stream) return e->kind == COUNTER ? TIDE_OK : tide__owner_reads_state(t, e->state, NULL, NULL);
    if (fseeko(stream, (off_t)at_bytes, SEEK_SET) != 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot seek");
    if (e->kind == COUNTER) return write_u64(stream, batches_done(t)), TIDE_OK;
    describe(t->options.model->naming, n->step, e, &p);
    tide__array_place place = {.stream = stream, .name = p.name, .name_length = (int)strlen(p.name), .dtype = "F32"};
    place.at_bytes = at_bytes;
    place.transposed = p.transposed;
    return tide__owner_reads_state(t, e->state, tide__array_write, &place);
}

/* What owners send of the entries from `first` on, after a failure here: they know nothing of it. */
static void drop_arrays(tide_trainer *t, const entry_vec *entries, size_t first) {
    for (size_t i = first; i < entries->count; i++)
        if (entries->data[i].kind != COUNTER) (void)tide__owner_reads_state(t, entries->data[i].state, NULL, NULL);
}

/* stream: NULL where another rank writes. A failed write of the header is sticky and reported when the file is committed, if not before. */
static tide_status write_arrays(tide_trainer *t, const entry_vec *entries, FILE *stream) {
    off_t begin = stream ? ftello(stream) : 0;
    tide_status status = begin < 0 ? tide__fail_errno(TIDE_E_IO, errno, "cannot write") : TIDE_OK;
    uint64_t at = (uint64_t)begin;
    size_t i = 0;
    for (; i < entries->count && status == TIDE_OK; i++) {
        status = write_array(t, &entries->data[i], stream, at);
        at += entry_bytes(t->network.step, &entries->data[i]);
    }
    if (status != TIDE_OK) drop_arrays(t, entries, i);
    return status;
}

static tide_status write_file(tide_trainer *t, const char *path, const entry_vec *entries, tide__metadata_fn metadata) {
    tide__writer w;
    tide_status status = tide__writer_open_regular(&w, path);
    const bool is_open = status == TIDE_OK;
    if (is_open) status = write_header(t, entries, metadata, w.stream);
    if (status != TIDE_OK) drop_arrays(t, entries, 0);
    if (status == TIDE_OK) status = write_arrays(t, entries, w.stream);
    if (status == TIDE_OK) return tide__writer_commit(&w);
    if (is_open) tide__writer_abort(&w);
    return is_open ? tide__fail_in(status, "%s", path) : status;
}

tide_status tide__arrays_save(tide_trainer *t, const char *path, bool whole, tide__metadata_fn metadata) {
    entry_vec entries = {0};
    if (t->spoiled) return tide__fail(TIDE_E_POISONED, "the trainer's values come from half a file");
    tide_status status = list_counters(t->options.model->naming, t->network.step, &entries);
    if (status == TIDE_OK) status = list_states(t->options.model->naming, t->network.step, whole, &entries);
    if (status == TIDE_OK) status = path ? write_file(t, path, &entries, metadata) : write_arrays(t, &entries, NULL);
    tide__vec_free(&entries);
    return status;
}
