/* Policy `hybrid`: keep, move or re-run, per gap, jointly, for the least time inside the budget.
 *
 * A search over sketches (hybrid/): greedy re-runs by relief per time, pruning, large-neighbourhood search. */
#include <stdlib.h>

#include "plan/decide/hybrid/search.h"
#include "plan/decide/policies.h"

static uint64_t work_of(tide_effort effort) {
    static const uint64_t work[] = {
        [TIDE_EFFORT_LOW] = 1, [TIDE_EFFORT_NORMAL] = 10 * 1000 * 1000, [TIDE_EFFORT_HIGH] = 300 * 1000 * 1000};
    return work[effort];
}

static tide_status write_out(const tide__sketch *s, tide__decisions *out) {
    for (size_t i = 0; i < s->extra.count; i++) {
        uint64_t key = s->extra.data[i];
        tide__rerun rerun = {.slot = tide__event_slot(key), .op = tide__event_id(key)};
        if (tide__event_kind_of(key) == TIDE__EVENT_RUN) TIDE_TRY(tide__vec_push(&out->reruns, rerun));
    }
    return TIDE_OK;
}

tide_status tide__decide_hybrid(const tide__policy_input *in, tide__decisions *out) {
    tide__model *model = NULL;
    tide__sketch *sketch = NULL;
    bool fits;
    TIDE_TRY(tide__model_create(in->program, in->machine, &model));
    tide_status status = tide__sketch_create(model, in->target_bytes, &sketch);
    if (status == TIDE_OK) status = tide__search(sketch, work_of(in->options->effort), &fits);
    if (status == TIDE_OK) status = write_out(sketch, out);
    tide__sketch_destroy(sketch);
    tide__model_destroy(model);
    return status;
}
