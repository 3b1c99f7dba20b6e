/* The journal can say no: an op and moves that are noted as the runtime does them are accepted, the same without what the
 * host waited for is refused. That real online steps are accepted is what every other test of them shows. */
#include "support/test.h"

#include "run/online.h"

enum { A, B, DISK = 1, OUT = 3, IN = 4, BYTES = 4096 };

typedef enum fault { NONE, UNSEEN_RUN, UNSEEN_SAVE, EARLY_REUSE, N_FAULTS } fault;

static tide_program *small_program(void) {
    tide_program_builder *b;
    tide_program *p;
    tide_variant v = {.cost_ns = 1};
    tide_id first = A, second = B;
    tide_op make = {.n_writes = 1, .writes = &first, .n_variants = 1, .variants = &v};
    tide_op use = {.n_reads = 1, .reads = &first, .n_writes = 1, .writes = &second, .n_variants = 1, .variants = &v};
    assert_ok(tide_program_builder_create("small", false, &b));
    for (int i = 0; i < 2; i++)
        assert_ok(tide_program_builder_tensor(b, &(tide_tensor){.size_bytes = BYTES, .keep = i == B}, NULL));
    assert_ok(tide_program_builder_op(b, &make, NULL));
    assert_ok(tide_program_builder_op(b, &use, NULL));
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

/* A is made, leaves to the disk, comes back to other bytes, and B is made where A was. */
static void note_step(tide__journal *j, tide__place *places, fault f) {
    places[A] = (tide__place){.in_arena = true, .bytes = BYTES, .tier = DISK};
    uint32_t made = tide__journal_run(j, 0);
    if (f == NONE) tide__journal_saw_run(j, made);
    if (f != NONE && f != UNSEEN_RUN) tide__journal_wait_run(j, OUT, made); /* as good */
    tide__journal_move(j, A, DISK, OUT, true);
    tide__journal_release(j, A);
    places[A].offset = BYTES;
    if (f != UNSEEN_SAVE) tide__journal_wait(j, IN, A);
    tide__journal_move(j, A, DISK, IN, false);
    if (f != EARLY_REUSE) tide__journal_saw_move(j, A);
    places[B] = (tide__place){.in_arena = true, .bytes = BYTES, .tier = TIDE_NONE};
    tide__journal_saw_run(j, tide__journal_run(j, 1));
}

/* As many tiers and channels as a machine may have: a journal needs more. */
static void fill_up(tide_machine *m) {
    for (; m->n_tiers < 8; m->n_tiers++) {
        m->tier[m->n_tiers] = m->tier[DISK];
        snprintf(m->tier[m->n_tiers].name, sizeof m->tier[m->n_tiers].name, "disk%u", m->n_tiers);
        for (int out = 0; out < 2 && m->n_channels < 16; out++, m->n_channels++) {
            m->channel[m->n_channels] = m->channel[(out ? OUT : IN) - 1];
            m->channel[m->n_channels].tier = m->n_tiers;
        }
    }
    assert_int_equal(m->n_channels, 16 - 1);
    assert_ok(tide_machine_validate(m));
}

static void test_verdicts(void **state) {
    (void)state;
    tide_program *p = small_program();
    tide_machine m;
    assert_ok(tide_machine_load("cpu", &m));
    fill_up(&m);
    for (int f = NONE; f < N_FAULTS; f++) {
        tide__place places[2] = {{.tier = TIDE_NONE}, {.tier = TIDE_NONE}};
        tide_run run = {.options = {.program = p, .machine = &m}};
        struct tide__run_online online = {.run = &run, .arena_bytes = 2 * BYTES, .n_storages = 2};
        tide__journal *j;
        tide_budgets_init(&run.options.budgets);
        online.places.data = places;
        online.tier_bytes[DISK] = BYTES;
        assert_ok(tide__journal_open(&online, &j));
        note_step(j, places, (fault)f);
        assert_status(tide__journal_check(j, p), f == NONE ? TIDE_OK : TIDE_E_INTERNAL);
        if (f != NONE) assert_error_has("is refused");
        tide__journal_close(j);
    }
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
