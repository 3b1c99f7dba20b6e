/* See workspaces.h. */
#include "plan/decide/policies/workspaces.h"

#include <stdlib.h>

#include "base/size.h"

uint32_t tide__workspaces_pick(const tide_op *op, bool bits_any, uint64_t room) {
    uint32_t fastest = TIDE_NONE, smallest = 0;
    for (uint32_t i = 0; i < op->n_variants; i++) {
        const tide_variant *v = &op->variants[i];
        if (!bits_any && v->bits_class != op->variants[0].bits_class) continue;
        if (v->workspace_bytes < op->variants[smallest].workspace_bytes) smallest = i;
        if (v->workspace_bytes > room) continue;
        const tide_variant *best = fastest == TIDE_NONE ? NULL : &op->variants[fastest];
        if (!best || v->cost_ns < best->cost_ns ||
            (v->cost_ns == best->cost_ns && v->workspace_bytes < best->workspace_bytes))
            fastest = i;
    }
    return fastest == TIDE_NONE ? smallest : fastest;
}

tide_status tide__workspaces_shrink(const tide__policy_input *in, tide__decisions *out) {
    uint32_t n = tide_program_op_count(in->program);
    out->variants.count = 0;
    TIDE_TRY(tide__vec_reserve(&out->variants, n));
    for (tide_id i = 0; i < n; i++)
        out->variants.data[i] = tide__workspaces_pick(tide_program_op(in->program, i), in->options->bits_any, 0);
    out->variants.count = n;
    return TIDE_OK;
}

static uint64_t limit_of(const tide__policy_input *in, const uint64_t *loads, size_t n) {
    uint64_t peak = 0;
    for (size_t i = 0; i <= n; i++) peak = tide__max_u64(peak, loads[i]);
    return in->target_bytes == UINT64_MAX ? peak : in->target_bytes;
}

tide_status tide__workspaces_fill(const tide__policy_input *in, const uint64_t *loads, tide__decisions *out) {
    size_t n = out->variants.count;
    uint64_t limit = limit_of(in, loads, n);
    uint64_t *most = malloc((n + 1) * sizeof *most); /* per op: the largest load of the slots where it runs */
    if (!most) return tide__fail_memory();
    for (size_t i = 0; i < n; i++) most[i] = loads[i];
    for (size_t i = 0; i < out->reruns.count; i++) {
        const tide__rerun *r = &out->reruns.data[i];
        most[r->op] = tide__max_u64(most[r->op], loads[r->slot]);
    }
    for (tide_id i = 0; i < n; i++) {
        const tide_op *op = tide_program_op(in->program, i);
        uint64_t others = most[i] - tide__min_u64(most[i], op->variants[out->variants.data[i]].workspace_bytes);
        uint64_t room = limit - tide__min_u64(others, limit);
        out->variants.data[i] = tide__workspaces_pick(op, in->options->bits_any, room);
    }
    free(most);
    return TIDE_OK;
}
