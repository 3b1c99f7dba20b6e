/* The bound for swapping, on small random steps: no choice of gaps gets below it, nor does any other order of transfers;
 * where one value is all there is, the bound is what can be reached; and it is not far from it where there are more. */
#include "support/test.h"

#include "plan_swap/bound.h"
#include "support/hand_made.h"
#include "support/random_program.h"

enum { MAX_OPS = 48, MAX_GAPS = 9 };

/* A step by its clock, loads and gaps; of the program only the number of ops counts. */
typedef struct instance {
    tide_program *program;
    tide_machine machine;
    tide_plan_options options;
    tide__policy_input in;
    uint64_t op_ns[MAX_OPS], loads[MAX_OPS + 1];
    tide__swap_gap gaps[MAX_GAPS];
    size_t n_gaps;
    tide__swaps swaps;
} instance;

/* One byte per ns each way; LOADs have a latency. */
static tide_machine slow_machine(void) {
    tide_machine m;
    tide_machine_init_default(&m);
    for (uint32_t i = 0; i < m.n_channels; i++) {
        m.channel[i].bytes_per_s = 1000 * 1000 * 1000;
        m.channel[i].latency_ns = m.channel[i].out ? 0 : 2;
        m.channel[i].share = 0;
    }
    return m;
}

/* Of a new value, or a further gap of the one before. */
static tide__swap_gap draw_gap(const instance *x, uint32_t n_ops, uint64_t *rng) {
    const tide__swap_gap *before = x->n_gaps ? &x->gaps[x->n_gaps - 1] : NULL;
    tide__swap_gap g = {.tensor = (tide_id)x->n_gaps, .head = TIDE_NONE, .across = TIDE_NONE};
    g.ready = 1 + (uint32_t)random_below(rng, n_ops / 2);
    g.from = g.ready + (uint32_t)random_below(rng, 3);
    g.size_bytes = 1 + random_below(rng, 60);
    if (before && before->to + 3 < n_ops && random_below(rng, 3) == 0) {
        g = *before;
        g.from = before->to + 1;
    }
    g.to = g.from + 1 + (uint32_t)random_below(rng, n_ops - g.from);
    g.moved_bytes = g.size_bytes;
    g.out_ns = g.size_bytes;
    g.in_ns = g.size_bytes + 2;
    return g;
}

static void begin(instance *x, uint64_t seed, size_t n_gaps, bool plain) {
    uint64_t rng = seed * 977 + 5;
    random_program_options o = random_program_defaults(seed);
    *x = (instance){.machine = slow_machine()};
    o.n_ops = 12 + (uint32_t)random_below(&rng, MAX_OPS - 12);
    x->program = random_program(&o);
    tide_plan_options_init(&x->options);
    x->in = (tide__policy_input){.program = x->program, .machine = &x->machine, .options = &x->options, .argument = ""};
    for (uint32_t k = 0; k < o.n_ops; k++) x->op_ns[k] = random_below(&rng, 20);
    for (uint32_t k = 0; k <= o.n_ops; k++) x->loads[k] = random_below(&rng, 20);
    while (x->n_gaps < n_gaps) {
        tide__swap_gap g = draw_gap(x, o.n_ops, &rng);
        bool again = x->n_gaps && x->gaps[x->n_gaps - 1].tensor == g.tensor;
        for (uint32_t k = again ? x->gaps[x->n_gaps - 1].to + 1 : g.ready - 1; k <= g.to; k++)
            x->loads[k] += g.size_bytes;
        x->gaps[x->n_gaps++] = g;
    }
    tide__swaps_options options = {.late_saves = plain, .always_save = plain};
    assert_ok(tide__swaps_init(&x->swaps, &x->in, &options));
    assert_int_equal(x->swaps.n_ops, o.n_ops);
    memcpy(x->swaps.op_ns, x->op_ns, o.n_ops * sizeof *x->op_ns);
    memcpy(x->swaps.base_loads, x->loads, (o.n_ops + (size_t)1) * sizeof *x->loads);
    x->swaps.gaps.count = 0;
    for (size_t i = 0; i < n_gaps; i++) assert_ok(tide__vec_push(&x->swaps.gaps, x->gaps[i]));
    assert_ok(tide__swaps_restart(&x->swaps));
}

static void end(instance *x) {
    tide__swaps_deinit(&x->swaps);
    tide_program_destroy(x->program);
}

/* The least peak of all choices, by the engine's own order of transfers. */
static uint64_t try_all(tide__swaps *s) {
    bool chosen[MAX_GAPS];
    uint64_t least = UINT64_MAX;
    for (uint32_t mask = 0; mask < 1u << s->gaps.count; mask++) {
        for (uint32_t i = 0; i < s->gaps.count; i++) chosen[i] = (mask >> i & 1) || s->gaps.data[i].forced;
        uint64_t peak = tide__swaps_settle(s, chosen, 0).peak_bytes;
        if (peak < least) least = peak;
    }
    return least;
}

/* ---- other orders of transfers ---- */

static void shuffle(uint32_t *order, size_t n, uint64_t *rng) {
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)random_below(rng, i);
        uint32_t swapped = order[i - 1];
        order[i - 1] = order[k];
        order[k] = swapped;
    }
}

/* A schedule: random gaps, transfers in random order with random pauses. */
typedef struct schedule {
    uint32_t order[MAX_GAPS], free_slot[MAX_GAPS], load_slot[MAX_GAPS];
    bool chosen[MAX_GAPS];
} schedule;

/* When the op before a slot is over. */
static uint64_t end_ns(const tide__swaps *s, uint32_t slot) { return s->slot_ns[slot] - s->wait_ns[slot]; }

/* One SAVE of a value at most, unless all absences save. */
static void save_all(const tide__swaps *s, schedule *x, uint64_t *rng) {
    uint64_t now = 0, saved_ns[MAX_GAPS] = {0};
    if (s->options.always_save || random_below(rng, 2)) shuffle(x->order, s->gaps.count, rng);
    for (size_t i = 0; i < s->gaps.count; i++) {
        uint32_t gap = x->order[i], *slot = &x->free_slot[gap];
        const tide__swap_gap *g = &s->gaps.data[gap];
        uint64_t ready = end_ns(s, s->options.late_saves ? g->from : g->ready);
        if (!x->chosen[gap]) continue;
        if (s->options.always_save || saved_ns[g->tensor] == 0) {
            now = (now > ready ? now : ready) + random_below(rng, 2) * random_below(rng, 10) + g->out_ns;
            saved_ns[g->tensor] = now;
        }
        for (*slot = g->from; *slot < s->n_ops && s->slot_ns[*slot] < saved_ns[g->tensor]; (*slot)++) {
        }
        x->chosen[gap] = saved_ns[g->tensor] <= s->slot_ns[s->n_ops];
    }
}

static void load_all(const tide__swaps *s, schedule *x, uint64_t *rng) {
    uint64_t until = s->slot_ns[s->n_ops];
    shuffle(x->order, s->gaps.count, rng);
    for (size_t i = 0; i < s->gaps.count; i++) {
        uint32_t gap = x->order[i], *slot = &x->load_slot[gap];
        const tide__swap_gap *g = &s->gaps.data[gap];
        uint64_t by = s->slot_ns[g->to] < until ? s->slot_ns[g->to] : until;
        x->chosen[gap] = x->chosen[gap] && by >= g->in_ns;
        if (!x->chosen[gap]) continue;
        until = by - g->in_ns;
        for (*slot = g->to; end_ns(s, *slot) > until; (*slot)--) {
        }
    }
}

static uint64_t try_order(const tide__swaps *s, uint64_t *rng) {
    schedule x = {0};
    uint64_t peak = 0;
    for (uint32_t i = 0; i < s->gaps.count; i++) x.order[i] = i, x.chosen[i] = random_below(rng, 4) > 0;
    save_all(s, &x, rng);
    load_all(s, &x, rng);
    for (uint32_t k = 0; k <= s->n_ops; k++) {
        uint64_t load = s->base_loads[k];
        for (uint32_t i = 0; i < s->gaps.count; i++)
            if (x.chosen[i] && x.free_slot[i] <= k && k < x.load_slot[i]) load -= s->gaps.data[i].size_bytes;
        peak = load > peak ? load : peak;
    }
    return peak;
}

static void test_small_steps(void **state) {
    (void)state;
    double ratio = 0;
    uint32_t n = 0, reached = 0;
    for (uint64_t seed = 0; seed < 120; seed++, n++) {
        instance x;
        uint64_t bound, rng = seed + 1;
        begin(&x, seed, 2 + seed % (MAX_GAPS - 1), seed % 2);
        assert_ok(swap_bound(&x.swaps, 0, &bound));
        uint64_t least = try_all(&x.swaps);
        if (bound > least) fail_msg("seed %u: bound %u, reached %u", (unsigned)seed, (unsigned)bound, (unsigned)least);
        for (int i = 0; i < 300; i++) {
            uint64_t peak = try_order(&x.swaps, &rng);
            if (bound > peak) fail_msg("seed %u: bound %u, order %u", (unsigned)seed, (unsigned)bound, (unsigned)peak);
        }
        ratio += (double)bound / (double)least;
        reached += bound + 1 >= least;
        end(&x);
    }
    assert_true(ratio > 0.97 * n && reached > n * 3 / 4);
}

/* A transfer in one piece, the bytes there until it ends: not a byte below what can be done. */
static void test_one_value(void **state) {
    (void)state;
    uint32_t gained = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        instance x;
        uint64_t bound, base = 0;
        begin(&x, seed, 1, seed % 2);
        assert_ok(swap_bound(&x.swaps, 0, &bound));
        uint64_t least = try_all(&x.swaps);
        for (uint32_t k = 0; k <= x.swaps.n_ops; k++) base = x.loads[k] > base ? x.loads[k] : base;
        if (bound > least || bound + 1 < least)
            fail_msg("seed %u: bound %u, reached %u", (unsigned)seed, (unsigned)bound, (unsigned)least);
        gained += least < base;
        end(&x);
    }
    assert_true(gained > 5);
}

/* Stretches the clock by waits of wait_ns in all, in front of a few slots. */
static void wait_anywhere(tide__swaps *s, uint64_t wait_ns, uint64_t *rng) {
    tide__swaps_reset_times(s);
    for (int i = 0; i < 3; i++) {
        uint32_t slot = (uint32_t)random_below(rng, s->n_ops + 1);
        uint64_t ns = i < 2 ? random_below(rng, wait_ns + 1) : wait_ns;
        s->wait_ns[slot] += ns;
        wait_ns -= ns;
        for (uint32_t k = slot; k <= s->n_ops; k++) s->slot_ns[k] += ns;
    }
}

/* Wherever compute waits, and whatever is moved then. */
static void test_waits(void **state) {
    (void)state;
    double ratio = 0;
    uint32_t n = 0;
    for (uint64_t seed = 0; seed < 100; seed++, n++) {
        instance x;
        uint64_t bound, rng = seed + 1, wait_ns = 1 + seed * 2 % 70, least = UINT64_MAX;
        begin(&x, seed, 1 + seed % 6, seed % 2);
        assert_ok(swap_bound(&x.swaps, wait_ns, &bound));
        for (int i = 0; i < 40; i++) {
            wait_anywhere(&x.swaps, wait_ns, &rng);
            uint64_t peak = try_all(&x.swaps), other = try_order(&x.swaps, &rng);
            least = peak < least ? peak : least;
            if (bound > peak || bound > other)
                fail_msg("seed %u: bound %u, reached %u, %u", (unsigned)seed, (unsigned)bound, (unsigned)peak,
                         (unsigned)other);
        }
        ratio += (double)bound / (double)least;
        end(&x);
    }
    assert_true(ratio > 0.88 * n);
}

/* Carried values, inputs, several tiers: of programs. */
static void test_programs(void **state) {
    (void)state;
    double ratio = 0;
    uint32_t n = 0;
    tide_plan_options options;
    tide_plan_options_init(&options);
    for (uint64_t seed = 0; seed < 300; seed++) {
        tide_machine m = seed % 3 ? slow_machine() : machine_with_disk();
        random_program_options o = random_program_defaults(seed);
        o.n_ops = 5 + (uint32_t)(seed % 12);
        o.n_weights = 1 + (uint32_t)(seed % 2);
        o.max_cost_ns = 20 + 2000 * (seed % 4);
        tide_program *p = random_program(&o);
        tide__policy_input in = {.program = p, .machine = &m, .options = &options, .argument = ""};
        tide__swaps s;
        tide__swaps_options modes = {.min_bytes = 200, .late_saves = seed % 5 == 0, .always_save = seed % 5 == 0};
        assert_ok(tide__swaps_init(&s, &in, &modes));
        if (s.gaps.count <= MAX_GAPS) {
            uint64_t bound, least = try_all(&s);
            assert_ok(swap_bound(&s, 0, &bound));
            if (bound > least)
                fail_msg("seed %u: bound %u, reached %u", (unsigned)seed, (unsigned)bound, (unsigned)least);
            ratio += (double)bound / (double)least;
            n++;
        }
        tide__swaps_deinit(&s);
        tide_program_destroy(p);
    }
    assert_true(n > 100 && ratio > 0.98 * n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_steps),
        cmocka_unit_test(test_one_value),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
