/* See relocate.h: the walk in several ways, and the cheapest of what they find written into the plan. */
#include "plan/relocate/relocate.h"

#include <stdlib.h>

#include "plan/relocate/relocate_write.h"
#include "plan/schedule/schedule.h"

typedef struct search {
    const tide_plan *plan;
    const tide_machine *machine;
    const tide__relocate_blocks *blocks;
    tide__walk_options o;
    uint64_t *guides;
    tide__layout best;
    bool found;
} search;

/* One walk, which finds only what is cheaper than the best so far. */
static tide_status walk_once(search *s) {
    tide__layout layout;
    bool fits;
    if (s->found && s->best.price_ns == 0) return TIDE_OK;
    TIDE_TRY(tide__relocate_walk(s->plan, s->machine, s->blocks, &s->o, &layout, &fits));
    if (!fits) return TIDE_OK;
    tide__layout_deinit(&s->best);
    s->best = layout;
    s->found = true;
    s->o.limit_ns = layout.price_ns - (layout.price_ns > 0);
    return TIDE_OK;
}

static void set_guides(search *s, bool guided) {
    for (uint32_t i = 0; i < s->blocks->count; i++) s->guides[i] = guided ? s->blocks->data[i].guide : UINT64_MAX;
}

/* Every way to choose holes, with placement's guide and without; then by lot, which often finds something cheaper. */
enum { LOTS = 32 };
static tide_status find_layout(search *s) {
    for (int i = 0; i < 4 * TIDE__N_HOLE_CHOICES; i++) {
        s->o.choice = (tide__hole_choice)(i / 4);
        s->o.keeps_homes = i & 1;
        set_guides(s, i & 2);
        TIDE_TRY(walk_once(s));
    }
    s->o.choice = TIDE__HOLE_BY_DEATH;
    set_guides(s, false);
    for (s->o.seed = 1; s->o.seed <= LOTS; s->o.seed++) {
        s->o.keeps_homes = s->o.seed & 1;
        TIDE_TRY(walk_once(s));
    }
    return TIDE_OK;
}

static bool is_within(const tide_machine *machine, const tide_budgets *budgets, const tide_plan *plan) {
    if (plan->arena_bytes > budgets->arena_bytes) return false;
    for (uint32_t t = 0; t < machine->n_tiers; t++)
        if (plan->tier_bytes[t] > tide__tier_limit(machine, budgets, t)) return false;
    return true;
}

/* Writes the layout into the plan, unless a tier is then too small. */
static tide_status apply(const tide_program *program, const tide_machine *machine, const tide_budgets *budgets,
                         const tide__relocate_blocks *blocks, const tide__layout *layout, tide_plan *plan, bool *fits) {
    tide_plan *made;
    TIDE_TRY(tide__plan_clone(plan, &made));
    tide_status status = tide__relocate_write(blocks, layout, plan, made);
    if (status == TIDE_OK) status = tide__place_tiers(program, machine, budgets, made);
    if (status == TIDE_OK && is_within(machine, budgets, made)) {
        tide_plan old = *plan;
        *plan = *made;
        *made = old;
        *fits = true;
    }
    tide_plan_destroy(made);
    return status;
}

tide_status tide__relocate_fit(const tide_program *program, const tide_machine *machine, const tide_budgets *budgets,
                               uint64_t limit_ns, uint64_t work, tide_plan *plan, bool *fits) {
    tide__relocate_blocks blocks;
    bool applied = false;
    search s = {.plan = plan,
                .machine = machine,
                .blocks = &blocks,
                .guides = malloc((plan->residencies.count + 1) * sizeof *s.guides),
                .o = {.capacity = budgets->arena_bytes, .limit_ns = limit_ns, .work = &work}};
    s.o.guides = s.guides;
    tide_status status = tide__relocate_blocks_init(program, machine, plan, &blocks);
    if (status == TIDE_OK && !s.guides) status = tide__fail_memory();
    if (status == TIDE_OK) status = find_layout(&s);
    if (status == TIDE_OK && s.found) status = apply(program, machine, budgets, &blocks, &s.best, plan, &applied);
    tide__layout_deinit(&s.best);
    tide__relocate_blocks_deinit(&blocks);
    free(s.guides);
    if (status == TIDE_OK) *fits = applied;
    return status;
}
