/* Policy `superneurons` (Wang et al., PPoPP 2018): liveness, a tensor cache over the unified tensor pool, cost-aware
 * recomputation and dynamic convolution workspaces. docs/policies/superneurons.md says what is the paper's and what
 * is not.
 *
 *   argument   speed, memory, cost   how segments are recomputed [cost]; norecompute: not at all
 *              eager                 offload checkpoints always, not only when memory is short
 *              noswap, noworkspace   without the tensor cache; without choosing variants
 */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/evaluate.h"
#include "plan/decide/policies/policies.h"
#include "plan/decide/policies/segments.h"
#include "plan/decide/policies/superneurons_cache.h"
#include "plan/decide/policies/workspaces.h"

typedef struct settings {
    bool speed, memory, norecompute, eager, noswap, noworkspace;
} settings;

static tide_status read_settings(const char *argument, settings *s) {
    static const char *const known[] = {"speed", "memory", "cost", "norecompute", "eager", "noswap", "noworkspace"};
    for (const char *word = argument; *word;) {
        size_t length = strcspn(word, ","), i = 0, n = sizeof known / sizeof *known;
        while (i < n && (strlen(known[i]) != length || strncmp(known[i], word, length) != 0)) i++;
        if (i == n)
            return tide__fail(TIDE_E_ARGUMENT,
                              "superneurons has no \"%.*s\" (known: speed, memory, cost, norecompute, eager, noswap, "
                              "noworkspace)",
                              (int)(length < 64 ? length : 64), word);
        word += length + (word[length] == ',');
    }
    *s = (settings){.speed = tide__policy_has(argument, "speed"),
                    .memory = tide__policy_has(argument, "memory"),
                    .norecompute = tide__policy_has(argument, "norecompute"),
                    .eager = tide__policy_has(argument, "eager"),
                    .noswap = tide__policy_has(argument, "noswap"),
                    .noworkspace = tide__policy_has(argument, "noworkspace")};
    if (s->speed + s->memory + s->norecompute + tide__policy_has(argument, "cost") > 1)
        return tide__fail(TIDE_E_ARGUMENT, "superneurons: one of speed, memory, cost and norecompute");
    return TIDE_OK;
}

/* ---- recomputation ---- */

/* Loads of the decisions without what the cache could take away: bytes that rest from forward to backward. */
static tide_status essential_loads(const tide__policy_input *in, const settings *s, const tide__decisions *d,
                                   uint64_t *loads) {
    TIDE_TRY(tide__evaluate_loads(in, d, loads));
    return s->noswap ? TIDE_OK : tide__superneurons_subtract(in, d, loads);
}

static tide_status all_in_mode(const tide__policy_input *in, const settings *s, tide__segments *segments, bool memory,
                               tide__decisions *d, uint64_t *loads) {
    for (size_t i = 0; i < segments->list.count; i++) segments->list.data[i].memory_centric = memory;
    d->reruns.count = 0;
    TIDE_TRY(tide__segments_rerun(in->program, segments, d));
    return essential_loads(in, s, d, loads);
}

/* Speed-centric where that stays within the target, or within what memory-centric recomputation needs in any case
 * (the paper's l_peak); memory-centric where it does not. */
static tide_status choose_modes(const tide__policy_input *in, const settings *s, tide__segments *segments,
                                tide__decisions *d, uint64_t *loads) {
    uint32_t n = tide_program_op_count(in->program);
    uint64_t limit = in->target_bytes == UINT64_MAX ? 0 : in->target_bytes;
    TIDE_TRY(all_in_mode(in, s, segments, true, d, loads));
    for (uint32_t k = 0; k <= n; k++) limit = tide__max_u64(limit, loads[k]);
    TIDE_TRY(all_in_mode(in, s, segments, false, d, loads));
    for (uint32_t k = 0; k <= n; k++) loads[k] = (k ? loads[k - 1] : 0) + (loads[k] > limit); /* so far too large */
    for (size_t i = 0; i < segments->list.count; i++) {
        tide__segment *segment = &segments->list.data[i]; /* needs come after forward, so first_need > 0 */
        segment->memory_centric = loads[segment->last_need] > loads[segment->first_need - 1];
    }
    d->reruns.count = 0;
    return tide__segments_rerun(in->program, segments, d);
}

static tide_status recompute(const tide__policy_input *in, const settings *s, uint64_t *loads, tide__decisions *out) {
    tide__segments segments;
    TIDE_TRY(tide__segments_create(in->program, &segments));
    for (size_t i = 0; i < segments.list.count; i++) segments.list.data[i].memory_centric = s->memory;
    tide_status status = s->speed || s->memory ? tide__segments_rerun(in->program, &segments, out)
                                               : choose_modes(in, s, &segments, out, loads);
    tide__segments_free(&segments);
    return status;
}

/* ---- the stages ---- */

static tide_status decide(const tide__policy_input *in, const settings *s, uint64_t *loads, tide__decisions *out) {
    if (!s->noworkspace) TIDE_TRY(tide__workspaces_shrink(in, out));
    if (!s->norecompute) TIDE_TRY(recompute(in, s, loads, out));
    TIDE_TRY(tide__evaluate_loads(in, out, loads));
    if (!s->noswap) TIDE_TRY(tide__superneurons_decide(in, s->eager, loads, out));
    return s->noworkspace ? TIDE_OK : tide__workspaces_fill(in, loads, out);
}

tide_status tide__decide_superneurons(const tide__policy_input *in, tide__decisions *out) {
    settings s;
    TIDE_TRY(read_settings(in->argument, &s));
    uint64_t *loads = calloc(tide_program_op_count(in->program) + (size_t)1, sizeof *loads);
    if (!loads) return tide__fail_memory();
    tide_status status = decide(in, &s, loads, out);
    free(loads);
    return status;
}
