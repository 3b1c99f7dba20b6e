/* Budgets of RAM and disk, in planning: every policy that moves bytes keeps them, fills RAM before disk, and moves nothing
 * where it has neither. Random programs and budgets; then a network, on which the tiers' speeds are seen. */
#include "support/test.h"

#include <tidemark/nn.h>

#include "plan/plan_data.h"
#include "support/hand_made.h"
#include "support/interpreter.h"
#include "support/network.h"
#include "support/random_program.h"
#include "support/try_policies.h"

static const char *const policies[] = {"cache",    "delta",        "autoswap",           "autoswap:swdoa",
                                       "capuchin", "superneurons", "superneurons:eager", "hybrid"};
enum { N_POLICIES = sizeof policies / sizeof *policies };

typedef struct tiers {
    uint32_t ram, disk;
} tiers;

static tiers tiers_of(const tide_machine *m) {
    tiers t = {tide_machine_find_tier(m, TIDE_TIER_RAM), tide_machine_find_tier(m, TIDE_TIER_DISK)};
    assert_true(t.ram != TIDE_NONE && t.disk != TIDE_NONE);
    return t;
}

/* ---- random programs ---- */

typedef struct tally {
    uint32_t made, refused, ram, disk, both;
} tally;

static void try_budgets(const tide_program *p, const tide_machine *m, tide_plan_options *o, uint64_t seed, tally *sum) {
    tiers t = tiers_of(m);
    tide_plan *plan = NULL;
    tide_status status = tide_plan_create(p, m, o, NULL, &plan);
    if (tide_status_is_misfit(status)) {
        sum->refused++;
        return;
    }
    if (status != TIDE_OK) fail_msg("%s, seed %llu: %s", o->policy, (unsigned long long)seed, tide_last_error());
    uint64_t ram = tide_plan_tier_bytes(plan, t.ram), disk = tide_plan_tier_bytes(plan, t.disk);
    assert_true(ram <= o->budgets.tier_bytes[t.ram] && disk <= o->budgets.tier_bytes[t.disk]);
    assert_ok(tide_plan_verify(plan, p, m, &o->budgets, NULL));
    if (plan->arena_bytes <= 8192) {
        interpretation result = interpret(plan, p, m, &o->budgets, seed);
        if (!result.ok) fail_msg("seed %llu: action %u %s", (unsigned long long)seed, result.action, result.why);
    }
    sum->made++;
    sum->ram += ram > 0;
    sum->disk += disk > 0;
    sum->both += ram > 0 && disk > 0;
    tide_plan_destroy(plan);
}

/* Nothing, a little or a lot. */
static uint64_t draw_budget(uint64_t *rng, uint64_t most) {
    switch (random_below(rng, 3)) {
    case 0: return 0;
    case 1: return random_below(rng, most / 8 + 1);
    default: return random_below(rng, most + 1);
    }
}

static void random_budgets(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tiers t = tiers_of(&m);
    tally sum = {0};
    for (uint64_t seed = 0; seed < rounds(700); seed++) {
        uint64_t rng = seed * 31 + 7;
        random_program_options ro = random_program_varied(seed);
        tide_program *p = random_program(&ro);
        tide_plan *live = NULL;
        tide_plan_options o;
        tide_plan_options_init(&o);
        o.policy = policies[seed % N_POLICIES];
        o.effort = TIDE_EFFORT_LOW;
        if (try_policy(p, &m, "liveness", TIDE_EFFORT_LOW, UINT64_MAX, &live) == TIDE_OK) {
            uint64_t most = tide_plan_arena_bytes(live) + 1;
            o.budgets.arena_bytes = most / 3 + random_below(&rng, most);
            o.budgets.tier_bytes[t.ram] = draw_budget(&rng, most);
            o.budgets.tier_bytes[t.disk] = draw_budget(&rng, most);
            try_budgets(p, &m, &o, seed, &sum);
        }
        tide_plan_destroy(live);
        tide_program_destroy(p);
    }
    print_message("%u plans, %u with RAM, %u with disk, %u with both; %u do not fit\n", sum.made, sum.ram, sum.disk,
                  sum.both, sum.refused);
    assert_true(sum.made > rounds(250) && sum.ram > rounds(50) && sum.disk > rounds(60) && sum.both > rounds(20) &&
                sum.refused > rounds(50));
}

/* ---- a network ---- */

/* The arena of liveness. */
static uint64_t whole_of(const network *n) {
    tide_plan *plan;
    assert_ok(try_policy(n->program, &n->machine, "liveness", TIDE_EFFORT_LOW, UINT64_MAX, &plan));
    uint64_t bytes = tide_plan_arena_bytes(plan);
    tide_plan_destroy(plan);
    return bytes;
}

typedef struct figures {
    uint64_t ram, disk, step_ns, moved;
} figures;

static tide_status plan_network(const network *n, const char *policy, uint64_t ram, uint64_t disk, figures *out) {
    tiers t = tiers_of(&n->machine);
    tide_plan_options o;
    tide_plan *plan;
    tide_plan_options_init(&o);
    o.policy = policy;
    o.effort = TIDE_EFFORT_LOW;
    o.budgets.arena_bytes = whole_of(n) * 6 / 10;
    o.budgets.tier_bytes[t.ram] = ram;
    o.budgets.tier_bytes[t.disk] = disk;
    tide_status status = tide_plan_create(n->program, &n->machine, &o, NULL, &plan);
    if (status != TIDE_OK) return status;
    const tide_prediction *p = tide_plan_prediction(plan);
    *out = (figures){tide_plan_tier_bytes(plan, t.ram), tide_plan_tier_bytes(plan, t.disk), p->step_ns, p->moved_bytes};
    tide_plan_destroy(plan);
    return TIDE_OK;
}

/* With all the RAM there is no disk; with less, both; without, disk alone. Half of the RAM is worth something, but a
 * policy that chooses by scores may by chance choose a little better for disk alone. */
static void ram_before_disk(void **state) {
    (void)state;
    static const char *const movers[] = {"cache", "autoswap:swdoa", "superneurons:norecompute", "hybrid:norerun"};
    network n = network_make("resnet-cifar:3", 32, "rtx3090");
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++) {
        figures ram, both, disk;
        assert_ok(plan_network(&n, movers[i], UINT64_MAX, UINT64_MAX, &ram));
        assert_true(ram.ram > 0 && ram.disk == 0);
        assert_ok(plan_network(&n, movers[i], ram.ram / 2, UINT64_MAX, &both));
        assert_true(both.ram > 0 && both.ram <= ram.ram / 2 && both.disk > 0);
        assert_ok(plan_network(&n, movers[i], 0, UINT64_MAX, &disk));
        assert_true(disk.ram == 0 && disk.disk > 0);
        if (ram.step_ns >= both.step_ns || both.step_ns >= disk.step_ns + disk.step_ns / 4)
            fail_msg("%s: %llu ns with RAM, %llu with both, %llu with disk", movers[i], (unsigned long long)ram.step_ns,
                     (unsigned long long)both.step_ns, (unsigned long long)disk.step_ns);
        assert_status(plan_network(&n, movers[i], 0, 0, &disk), TIDE_E_FIT);
        tide_status status = plan_network(&n, movers[i], ram.ram / 4, ram.ram / 8, &disk);
        assert_true(tide_status_is_misfit(status));
    }
    network_free(&n);
}

/* Re-runs do what moves cannot. */
static void reruns_instead(void **state) {
    (void)state;
    static const char *const mixed[] = {"delta", "hybrid"};
    network n = network_make("resnet-cifar:3", 32, "rtx3090");
    uint64_t whole = whole_of(&n);
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        figures f;
        assert_ok(plan_network(&n, mixed[i], 0, 0, &f));
        assert_true(f.ram == 0 && f.disk == 0 && f.moved == 0);
        assert_ok(plan_network(&n, mixed[i], whole / 20, whole / 20, &f));
        assert_true(f.ram <= whole / 20 && f.disk <= whole / 20);
    }
    network_free(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_budgets), cmocka_unit_test(ram_before_disk),
                                       cmocka_unit_test(reruns_instead)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
