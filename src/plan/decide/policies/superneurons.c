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

#include "base/arrays.h"
#include "base/size.h"
#include "plan/evaluate.h"
#include "plan/decide/policies/policies.h"
#include "plan/decide/policies/segments.h"
#include "plan/decide/policies/workspaces.h"
#include "plan/decide/swaps/gap_heap.h"
#include "plan/decide/swaps/swap_choice.h"

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

/* ---- the tensor cache ---- */

enum { SMALL_SHARE = 100 }; /* below 1/100 of the mean a value is not worth a transfer */

static uint64_t smallest_worth_moving(const tide_program *p) {
    uint32_t n = tide_program_tensor_count(p);
    double sum = 0;
    for (tide_id t = 0; t < n; t++) sum += (double)tide_program_tensor(p, t)->size_bytes;
    return n ? (uint64_t)(sum / n / SMALL_SHARE) : 0;
}

/* Weights stay, as in the paper. */
static tide_status init_swaps(const tide__policy_input *in, const settings *s, const tide__decisions *d,
                              tide__swaps *out) {
    tide__swaps_options options = {.min_bytes = smallest_worth_moving(in->program),
                                   .weights_stay = true,
                                   .fast_ops = !s->noworkspace,
                                   .beside = d};
    return tide__swaps_init(out, in, &options);
}

/* It rests from forward to after it. */
static bool is_long(const tide__swaps *s, const tide__swap_gap *g) {
    const tide_program *p = s->in->program;
    return g->from > 0 && tide_program_op(p, g->from - 1)->phase == TIDE_FORWARD && g->to < s->n_ops &&
           tide_program_op(p, g->to)->phase != TIDE_FORWARD;
}

/* Nobody uses a value in its gap: so the order in which gaps begin is the list of the least recently used. What is there longest
 * leaves when a slot is short, or, if eager, everything that rests for long. back: zero, n_ops + 1 entries. Returns how many
 * left; `order` has them. */
static size_t evict(const tide__swaps *s, tide__scored_gap *list, bool eager, uint64_t *back, uint32_t *order) {
    const tide__swap_gap *gaps = s->gaps.data;
    size_t n = s->gaps.count, n_order = 0;
    uint64_t away = 0;
    tide__gap_heap_make(list, n);
    for (uint32_t k = 0; k <= s->n_ops; k++) {
        away -= back[k];
        while (n > 0 && gaps[list[0].gap].from <= k) {
            const tide__swap_gap *g = &gaps[list[0].gap];
            bool wanted = eager ? is_long(s, g) : s->base_loads[k] > tide__add_capped(s->in->target_bytes, away);
            if (!wanted && !g->forced && !eager) break;
            if (g->to > k && (wanted || g->forced)) {
                order[n_order++] = list[0].gap;
                away += g->size_bytes;
                back[g->to] += g->size_bytes;
            }
            tide__gap_heap_pop(list, &n);
        }
    }
    return n_order;
}

static tide_status choose(tide__swaps *s, bool eager, bool *chosen) {
    bool fits;
    tide__arrays arrays = {0};
    tide__scored_gap *list;
    uint64_t *back;
    uint32_t *order;
    tide__array(&arrays, list, s->gaps.count + 1);
    tide__array(&arrays, back, s->n_ops + (size_t)1);
    tide__array(&arrays, order, s->gaps.count + 1);
    tide_status status = tide__arrays_check(&arrays);
    if (status == TIDE_OK) {
        for (uint32_t i = 0; i < s->gaps.count; i++) list[i] = (tide__scored_gap){-(double)s->gaps.data[i].from, i};
        size_t n = evict(s, list, eager, back, order);
        for (size_t i = 0; i < n; i++) chosen[order[i]] = true;
        status = tide__swaps_wait(s, order, n, s->in->target_bytes, chosen, &fits);
    }
    tide__arrays_free(&arrays);
    return status;
}

/* Appends the moves that keep the loads within the target, as far as moves can; loads become what they are then. */
static tide_status add_moves(const tide__policy_input *in, const settings *s, uint64_t *loads, tide__decisions *d) {
    tide__swaps swaps;
    TIDE_TRY(init_swaps(in, s, d, &swaps));
    bool *chosen = calloc(swaps.gaps.count + 1, sizeof *chosen);
    tide_status status = chosen ? choose(&swaps, s->eager, chosen) : tide__fail_memory();
    if (status == TIDE_OK) {
        memcpy(loads, swaps.loads, (swaps.n_ops + (size_t)1) * sizeof *loads);
        status = tide__swaps_decide(&swaps, chosen, d);
    }
    free(chosen);
    tide__swaps_deinit(&swaps);
    return status;
}

/* ---- recomputation ---- */

/* Loads of the decisions without what could be away: what rests from forward to backward. */
static tide_status essential_loads(const tide__policy_input *in, const settings *s, const tide__decisions *d,
                                   uint64_t *loads) {
    tide__swaps swaps;
    if (s->noswap) return tide__evaluate_loads(in, d, loads);
    TIDE_TRY(init_swaps(in, s, d, &swaps));
    memset(loads, 0, (swaps.n_ops + (size_t)1) * sizeof *loads);
    for (size_t i = 0; i < swaps.gaps.count; i++) {
        const tide__swap_gap *g = &swaps.gaps.data[i];
        if (!g->forced && !is_long(&swaps, g)) continue;
        loads[g->from] += g->size_bytes; /* sums modulo 2^64: what comes back is subtracted */
        loads[g->to] -= g->size_bytes;
    }
    uint64_t away = 0;
    for (uint32_t k = 0; k <= swaps.n_ops; k++) loads[k] = swaps.base_loads[k] - (away += loads[k]);
    tide__swaps_deinit(&swaps);
    return TIDE_OK;
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
    if (!s->noswap) TIDE_TRY(add_moves(in, s, loads, out));
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
