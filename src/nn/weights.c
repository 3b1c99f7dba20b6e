/* Weights as PyTorch's libraries have them, in and out: see published.h for names and shapes, docs/weights.md for people.
 *
 * Invariant: a file is compared with the model as a whole, and every fault told, before a value changes. */
#include "nn/weights.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/size.h"
#include "nn/array_file.h"
#include "nn/array_writer.h"
#include "nn/checkpoint_keys.h"
#include "nn/model.h"
#include "nn/owners.h"

/* ---- what fits ---- */

typedef struct loading {
    tide__network *network;
    const tide__naming *naming;
    const tide_weights_options *options;
    bool before; /* the file is a checkpoint of a version whose arrays are called and shaped as here */
    bool *taken; /* per array of the file: a state has its name */
    uint32_t faults[TIDE_WEIGHTS_FAULTS];
} loading;

static void tell(loading *l, tide_weights_fault fault, const char *format, ...) TIDE_PRINTF(3, 4);
static void tell(loading *l, tide_weights_fault fault, const char *format, ...) {
    char text[2 * TIDE__DIMS_TEXT_BYTES + TIDE__PUBLISHED_NAME_BYTES];
    va_list args;
    l->faults[fault]++;
    if (!l->options->fault) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    l->options->fault(l->options->context, fault, text);
}

static const tide__array *find(const loading *l, const tide__safetensors *s, const tide_state *state,
                               tide__published *p) {
    if (l->before) {
        tide__publish_as_before(state, p);
        return tide__safetensors_find(s, p->name);
    }
    tide__publish(l->naming, state, p);
    return tide__published_find(l->naming, p, s);
}

/* The array of a state, if it can be read into it. */
static const tide__array *find_fitting(const loading *l, const tide__safetensors *s, const tide_state *state,
                                       bool *transposed) {
    tide__published p;
    const tide__array *a = find(l, s, state, &p);
    *transposed = p.transposed;
    return a && tide__published_fits(&p, a) && tide__array_is_readable(a->dtype) ? a : NULL;
}

static void compare_state(loading *l, const tide__safetensors *s, const tide_state *state) {
    tide__published p;
    char ours[TIDE__DIMS_TEXT_BYTES], theirs[TIDE__DIMS_TEXT_BYTES];
    const tide__array *a = find(l, s, state, &p);
    tide__dims_text(p.rank, p.dim, ours);
    if (!a) {
        tell(l, TIDE_WEIGHTS_MISSING, "%s (%s)", p.name, ours);
        return;
    }
    l->taken[a - s->arrays] = true;
    if (!tide__published_fits(&p, a)) {
        tide__dims_text(a->rank, a->shape, theirs);
        tell(l, TIDE_WEIGHTS_OTHER_SHAPE, "%s is %s in the file, %s in the model", p.name, theirs, ours);
    } else if (!tide__array_is_readable(a->dtype)) {
        tell(l, TIDE_WEIGHTS_OTHER_SHAPE, "%s is of %s in the file; F32, F16 and BF16 are read", p.name, a->dtype);
    }
}

/* An old checkpoint's optimizer state has no prefix to know it by. */
static void compare_array(loading *l, const tide__array *a, bool taken) {
    char dims[TIDE__DIMS_TEXT_BYTES];
    if (taken || l->before || tide__published_ignores(l->naming, a)) return;
    tide__dims_text(a->rank, a->shape, dims);
    tell(l, TIDE_WEIGHTS_UNEXPECTED, "%.*s (%s)", (int)tide__min_u64(a->name_length, TIDE__PUBLISHED_NAME_BYTES - 1),
         a->name, dims);
}

static bool is_weight(const tide_state *s) { return s->cls != TIDE_CLASS_OPTIMIZER; }

static tide_status compare(loading *l, const tide__safetensors *s) {
    const tide_step *step = l->network->step;
    for (uint32_t i = 0; i < tide_step_state_count(step); i++)
        if (is_weight(tide_step_state(step, i))) compare_state(l, s, tide_step_state(step, i));
    for (uint32_t i = 0; i < s->n_arrays; i++) compare_array(l, &s->arrays[i], l->taken[i]);
    const uint32_t *n = l->faults;
    if (l->options->partial || !(n[TIDE_WEIGHTS_MISSING] + n[TIDE_WEIGHTS_UNEXPECTED] + n[TIDE_WEIGHTS_OTHER_SHAPE]))
        return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "of its arrays %u are missing, %u unexpected and %u of another shape",
                      n[TIDE_WEIGHTS_MISSING], n[TIDE_WEIGHTS_UNEXPECTED], n[TIDE_WEIGHTS_OTHER_SHAPE]);
}

/* ---- an array that is there twice ---- */

static tide_status read_chunk(FILE *stream, uint64_t at, void *bytes, size_t size) {
    errno = 0;
    if (fseeko(stream, (off_t)at, SEEK_SET) == 0 && fread(bytes, 1, size, stream) == size) return TIDE_OK;
    return tide__fail_errno(TIDE_E_IO, errno ? errno : EIO, "cannot read");
}

static tide_status compare_bytes(FILE *stream, uint64_t a, uint64_t b, uint64_t size, bool *same) {
    char ours[4096], theirs[4096];
    *same = true;
    for (uint64_t at = 0; at < size && *same; at += sizeof ours) {
        size_t part = (size_t)tide__min_u64(size - at, sizeof ours);
        TIDE_TRY(read_chunk(stream, a + at, ours, part));
        TIDE_TRY(read_chunk(stream, b + at, theirs, part));
        *same = memcmp(ours, theirs, part) == 0;
    }
    return TIDE_OK;
}

/* Here the two are one: a file in which they differ holds another model. */
static tide_status check_copy(const loading *l, FILE *stream, const tide__safetensors *s) {
    tide__published original = {0};
    const tide__array *copy = l->naming->copy ? tide__safetensors_find(s, l->naming->copy) : NULL;
    if (!copy) return TIDE_OK;
    snprintf(original.name, sizeof original.name, "%s", l->naming->copied);
    const tide__array *a = tide__published_find(l->naming, &original, s);
    bool same = a && a->end - a->begin == copy->end - copy->begin;
    if (same)
        TIDE_TRY(compare_bytes(stream, s->data_at + a->begin, s->data_at + copy->begin, a->end - a->begin, &same));
    if (same) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "%s differs from %s; here the two are one", l->naming->copy, l->naming->copied);
}

/* ---- loading ---- */

static tide_status read_weights(const loading *l, FILE *stream, const tide__safetensors *s) {
    tide__network *n = l->network;
    bool transposed;
    for (uint32_t i = 0; i < tide_step_state_count(n->step); i++) {
        const tide_state *state = tide_step_state(n->step, i);
        const tide__array *a = is_weight(state) ? find_fitting(l, s, state, &transposed) : NULL;
        if (a) TIDE_TRY(tide__network_load_array(n, i, stream, s, a, transposed));
    }
    return TIDE_OK;
}

static tide_status load(void *context, FILE *stream, const tide__safetensors *s) {
    loading *l = context;
    l->before = tide__checkpoint_is_before(s);
    l->taken = calloc((size_t)s->n_arrays + 1, sizeof *l->taken);
    if (!l->taken) return tide__fail_memory();
    tide_status status = compare(l, s);
    if (status == TIDE_OK) status = check_copy(l, stream, s);
    if (status == TIDE_OK) status = read_weights(l, stream, s);
    free(l->taken);
    return status;
}

void tide_weights_options_init(tide_weights_options *options) { *options = (tide_weights_options){sizeof *options}; }

tide_status tide__network_load_weights(tide__network *n, const tide__naming *naming, const char *path,
                                       const tide_weights_options *options) {
    tide_weights_options taken;
    tide_weights_options_init(&taken);
    if (options) TIDE_TRY(tide__options_take("tide_weights_options", options, sizeof taken, &taken));
    loading l = {.network = n, .naming = naming, .options = &taken};
    return tide__safetensors_visit(path, load, &l);
}

tide_status tide_trainer_load_weights(tide_trainer *t, const char *path, const tide_weights_options *options) {
    TIDE_NEED(t, path);
    if (!t->network.run && !t->parts) return tide__fail(TIDE_E_POISONED, "the trainer has no run to load into");
    tide_status status = tide__network_load_weights(&t->network, t->options.model->naming, path, options);
    if (status != TIDE_OK && status != TIDE_E_FORMAT && status != TIDE_E_ARGUMENT) t->spoiled = true;
    return status;
}

/* ---- saving ---- */

/* "pt" is what Hugging Face's loader asks for. */
static void write_metadata(FILE *f, const tide_trainer *t) {
    fputs("\"__metadata__\":{\"format\":\"pt\",\"model\":", f);
    tide__json_write_string(f, tide_model_name(t->options.model));
    fputc('}', f);
}

tide_status tide_trainer_save_weights(tide_trainer *t, const char *path) {
    TIDE_NEED(t);
    TIDE_TRY(tide__owner_check_path(t, path));
    return tide__arrays_save(t, path, false, write_metadata);
}
