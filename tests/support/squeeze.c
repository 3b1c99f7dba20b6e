/* See squeeze.h. */
#include "support/squeeze.h"

#include "plan/relocate/relocate_write.h"
#include "plan/schedule/schedule.h"
#include "support/test.h"

uint64_t plan_load(const tide_plan *plan, const tide_program *program, const tide_machine *machine) {
    tide_plan *copy;
    uint64_t *loads = calloc(plan->actions.count + 1, sizeof *loads), most = 0;
    assert_non_null(loads);
    assert_ok(tide__plan_clone(plan, &copy));
    assert_ok(tide__plan_load(program, machine, copy, loads));
    for (size_t i = 0; i < plan->actions.count; i++) most = loads[i] > most ? loads[i] : most;
    tide_plan_destroy(copy);
    free(loads);
    return most;
}

/* On success *made is the plan with relocations, placed, without waits. */
static bool squeeze(const tide_program *program, const tide_machine *machine, uint64_t capacity, const tide_plan *plan,
                    tide_plan **made) {
    uint64_t work = UINT64_MAX, *guides = malloc((plan->residencies.count + 1) * sizeof *guides);
    tide__walk_options o = {
        .capacity = capacity, .choice = TIDE__HOLE_LOWEST, .guides = guides, .limit_ns = UINT64_MAX, .work = &work};
    tide__relocate_blocks blocks;
    tide__layout layout;
    bool fits;
    assert_non_null(guides);
    memset(guides, 0xff, plan->residencies.count * sizeof *guides);
    assert_ok(tide__relocate_blocks_init(program, machine, plan, &blocks));
    assert_ok(tide__relocate_walk(plan, machine, &blocks, &o, &layout, &fits));
    if (fits) {
        assert_ok(tide__plan_clone(plan, made));
        assert_ok(tide__relocate_write(&blocks, &layout, plan, *made));
        tide__layout_deinit(&layout);
    }
    tide__relocate_blocks_deinit(&blocks);
    free(guides);
    return fits;
}

bool squeeze_plan(const tide_program *program, const tide_machine *machine, uint64_t capacity, tide_plan *plan) {
    tide_budgets budgets;
    tide_plan *made;
    tide_budgets_init(&budgets);
    budgets.arena_bytes = capacity;
    if (!squeeze(program, machine, capacity, plan, &made)) return false;
    assert_ok(tide__place_tiers(program, machine, &budgets, made));
    assert_ok(tide__sync(made));
    assert_ok(tide_plan_verify(made, program, machine, &budgets, NULL));
    tide_plan old = *plan;
    *plan = *made;
    *made = old;
    tide_plan_destroy(made);
    return true;
}
