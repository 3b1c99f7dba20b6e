/* See exact.h. */
#include "plan_exact/exact.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t draw_below(uint64_t *state, uint32_t n) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % n);
}

example example_draw(uint64_t *state, uint32_t layers) {
    example x = {.n_ops = 2 * layers + 1, .input_units = 1 + draw_below(state, 4)};
    for (uint32_t i = 0; i < x.n_ops; i++) {
        uint32_t mirror = 2 * layers - i;
        x.reads[i] = i ? 1u << (i - 1) : 0;
        if (i > layers) x.reads[i] |= 1u << mirror | (mirror && draw_below(state, 3) ? 1u << (mirror - 1) : 0);
        if (i > 2 && i <= layers && draw_below(state, 4) == 0) x.reads[i] |= 1u << draw_below(state, i - 1);
        x.units[i] = i > layers ? x.units[mirror] : 1 + draw_below(state, 8);
        x.cost[i] = 1 + draw_below(state, 20);
    }
    return x;
}

example example_draw_joint(uint64_t *state, uint32_t layers) {
    example x = example_draw(state, layers);
    x.input_units = 0;
    for (uint32_t i = 0; i < x.n_ops; i++) {
        x.once[i] = draw_below(state, 5) == 0;
        if (draw_below(state, 4)) continue;
        x.workspace[i] = 1 + draw_below(state, 8);
        x.slow_cost[i] = x.cost[i] + 1 + draw_below(state, x.cost[i]);
    }
    return x;
}

static void add_op(tide_program_builder *b, const example *x, tide_id i, tide_id input) {
    tide_id reads[MAX_OPS + 1];
    uint32_t n = 0;
    for (tide_id t = 0; t < i; t++)
        if (x->reads[i] >> t & 1) reads[n++] = t;
    if (i == 0 && x->input_units) reads[n++] = input;
    tide_variant costs[] = {
        {.cost_ns = x->cost[i] * (uint64_t)UNIT_NS, .workspace_bytes = x->workspace[i] * (uint64_t)UNIT_BYTES},
        {.cost_ns = x->slow_cost[i] * (uint64_t)UNIT_NS}};
    tide_op op = {.rerunnable = !x->once[i],
                  .n_reads = n,
                  .reads = reads,
                  .n_writes = 1,
                  .writes = &i,
                  .n_variants = x->workspace[i] ? 2 : 1,
                  .variants = costs};
    require(tide_program_builder_op(b, &op, NULL));
}

tide_program *example_program(const example *x) {
    tide_program_builder *b;
    tide_program *p;
    tide_id input = TIDE_NONE;
    require(tide_program_builder_create("small", false, &b));
    for (uint32_t i = 0; i < x->n_ops; i++)
        require(tide_program_builder_tensor(
            b, &(tide_tensor){.size_bytes = x->units[i] * UNIT_BYTES, .keep = i + 1 == x->n_ops}, NULL));
    if (x->input_units)
        require(tide_program_builder_tensor(
            b, &(tide_tensor){.size_bytes = x->input_units * UNIT_BYTES, .start = TIDE_START_PRESENT, .keep = true},
            &input));
    for (tide_id i = 0; i < x->n_ops; i++) add_op(b, x, i, input);
    require(tide_program_builder_finish(b, &p));
    return p;
}
