/* Checkpoints: everything that decides how a training goes on, in one safetensors file. Weights, optimizer state and
 * running statistics are arrays of plain row-major float32, named and shaped as PyTorch has them (published.h); step, seed,
 * the place in the data and the schedule of the learning rate are metadata. All randomness is a function of these, so a
 * resumed training computes the same bits.
 *
 * Invariant: the file at the path is the old one or the complete new one; a trainer that refuses a file is as before. */
#include <string.h>

#include "base/error.h"
#include "nn/array_file.h"
#include "nn/array_writer.h"
#include "nn/checkpoint_keys.h"
#include "nn/model.h"
#include "nn/owners.h"

tide_status tide_trainer_save(tide_trainer *t, const char *path) {
    TIDE_NEED(t);
    TIDE_TRY(tide__owner_check_path(t, path));
    return tide__arrays_save(t, path, true, tide__checkpoint_write_keys);
}

/* ---- reading ---- */

/* How the file has a state. */
static void publish(const tide_trainer *t, uint64_t version, const tide_state *state, tide__published *out) {
    if (version < TIDE__CHECKPOINT_PUBLISHED)
        tide__publish_as_before(state, out);
    else
        tide__publish(t->options.model->naming, state, out);
}

static tide_status check_state(const tide_trainer *t, const tide__safetensors *s, uint64_t version,
                               const tide_state *state) {
    tide__published p;
    publish(t, version, state, &p);
    const tide__array *a = tide__safetensors_find(s, p.name);
    if (!a) return tide__fail(TIDE_E_FORMAT, "there is no array \"%s\"", p.name);
    if (strcmp(a->dtype, "F32") != 0)
        return tide__fail(TIDE_E_FORMAT, "array \"%s\" is of %s, not F32", p.name, a->dtype);
    if (!tide__published_fits(&p, a)) return tide__fail(TIDE_E_FORMAT, "array \"%s\" has another shape", p.name);
    return TIDE_OK;
}

/* The counters beside some of them are not looked at: the steps say how many batches there were. */
static tide_status check_states(const tide_trainer *t, const tide__safetensors *s, uint64_t version) {
    const tide_step *step = t->network.step;
    uint32_t n = tide_step_state_count(step), counters = 0;
    char name[TIDE__PUBLISHED_NAME_BYTES];
    for (uint32_t i = 0; i < n; i++) {
        const tide_state *state = tide_step_state(step, i);
        TIDE_TRY(check_state(t, s, version, state));
        bool counted = tide__publish_counter(t->options.model->naming, state, name);
        counters += counted && tide__safetensors_find(s, name) != NULL;
    }
    if (s->n_arrays == n + counters) return TIDE_OK; /* names are distinct on both sides */
    return tide__fail(TIDE_E_FORMAT, "%u arrays, the model has %u", s->n_arrays, n + counters);
}

static tide_status read_states(tide_trainer *t, FILE *stream, const tide__safetensors *s, uint64_t version) {
    tide__network *n = &t->network;
    tide__published p;
    t->spoiled = true; /* until all are there */
    for (uint32_t i = 0; i < tide_step_state_count(n->step); i++) {
        publish(t, version, tide_step_state(n->step, i), &p);
        TIDE_TRY(tide__network_load_array(n, i, stream, s, tide__safetensors_find(s, p.name), p.transposed));
    }
    t->spoiled = false;
    return TIDE_OK;
}

static tide_status load(void *trainer, FILE *stream, const tide__safetensors *s) {
    tide_trainer *t = trainer;
    tide__checkpoint_state state;
    TIDE_TRY(tide__checkpoint_check_keys(t, s));
    TIDE_TRY(tide__checkpoint_read_keys(s, &state));
    TIDE_TRY(check_states(t, s, state.version));
    TIDE_TRY(read_states(t, stream, s, state.version));
    t->step = state.step;
    t->seen = state.seen;
    if (t->options.own_schedule) return TIDE_OK;
    t->options.learning_rate = state.learning_rate;
    t->options.schedule = state.schedule;
    return TIDE_OK;
}

tide_status tide_trainer_load(tide_trainer *t, const char *path) {
    TIDE_NEED(t, path);
    if (!t->network.run && !t->parts) return tide__fail(TIDE_E_POISONED, "the trainer has no run to load into");
    return tide__safetensors_visit(path, load, t);
}

static tide_status read_total(void *steps, FILE *stream, const tide__safetensors *s) {
    (void)stream;
    return tide__safetensors_u64(s, "total_steps", steps);
}

tide_status tide_checkpoint_total_steps(const char *path, uint64_t *steps) {
    TIDE_NEED(path, steps);
    return tide__safetensors_visit(path, read_total, steps);
}

uint64_t tide_trainer_steps_done(const tide_trainer *t) { return t->step; }
uint64_t tide_trainer_steps_skipped(const tide_trainer *t) { return t->skipped; }
const tide_schedule *tide_trainer_schedule(const tide_trainer *t) { return &t->options.schedule; }
