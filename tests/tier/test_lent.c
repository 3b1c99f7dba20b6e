/* Memory that another rank lends as a tier, over threads of one process: every byte comes back, several tiers and threads at
 * once, budgets hold, and what a lost or damaged rank does to it is a fault of the job, never other bytes. */
#include "support/test.h"

#include <pthread.h>

#include "base/clock.h"
#include "net/local.h"
#include "support/faulty_transport.h"
#include "tier/lend.h"
#include "tier/tier.h"

enum { BORROWERS = 2, LENDER = 2, RANKS = 3, BIG = (9 << 20) + 5 };

static tide_net_options quick(void) {
    tide_net_options o;
    tide_net_options_init(&o);
    o.beat_ms = 20;
    o.silence_ms = 600 * SANITIZER_SHARE;
    return o;
}

typedef struct job {
    tide_net *nets[RANKS];
    tide_lender *lender;
} job;

static void start(job *j, const tide__net_transport *transport, uint64_t budget) {
    const uint64_t budgets[RANKS] = {budget, budget, 0};
    tide_net_options o = quick();
    assert_ok(tide__net_open_seats(RANKS, &o, transport, j->nets));
    assert_ok(tide_lender_open(j->nets[LENDER], budgets, &j->lender));
}

static void *close_net(void *net) {
    tide_net_close(net);
    return NULL;
}

static tide_status stop(job *j) {
    pthread_t threads[RANKS];
    for (uint32_t r = 0; r < BORROWERS; r++) (void)tide_loan_return(&(tide_loan){j->nets[r], LENDER});
    tide_status status = tide_lender_close(j->lender);
    for (uint32_t r = 0; r < RANKS; r++) pthread_create(&threads[r], NULL, close_net, j->nets[r]);
    for (uint32_t r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
    return status;
}

static tide_status open_tier(tide_net *net, uint64_t bytes, tide__tier **out) {
    const tide_loan loan = {net, LENDER};
    const tide__tier_options o = {.kind = TIDE_TIER_LENT, .capacity_bytes = bytes, .block_bytes = 1, .loan = &loan};
    return tide__tier_open(&o, out);
}

/* ---- bytes ---- */

typedef struct stretch {
    tide__tier *tier;
    uint64_t offset, size;
    uint32_t seed;
    tide_status status;
    bool wrong;
} stretch;

static unsigned char byte_at(uint32_t seed, uint64_t i) { return (unsigned char)(i * 131 + i / 509 + seed * 17); }

/* Rounds of save, load and comparison in a stretch of its own. */
static void *use(void *context) {
    stretch *s = context;
    tide__tier_slot slot = {.tier = s->tier, .offset = s->offset};
    unsigned char *bytes = malloc(s->size + 1);
    for (uint32_t round = 0; round < 3 && s->status == TIDE_OK; round++) {
        for (uint64_t i = 0; i < s->size; i++) bytes[i] = byte_at(s->seed + round, i);
        s->status = tide__tier_save(&slot, 0, bytes, s->size);
        memset(bytes, 0, s->size);
        if (s->status == TIDE_OK) s->status = tide__tier_load(&slot, 0, bytes, s->size);
        for (uint64_t i = 0; i < s->size && s->status == TIDE_OK; i++)
            s->wrong |= bytes[i] != byte_at(s->seed + round, i);
    }
    free(bytes);
    return NULL;
}

static void use_all(stretch *s, uint32_t n) {
    pthread_t threads[8];
    for (uint32_t i = 0; i < n; i++) pthread_create(&threads[i], NULL, use, &s[i]);
    for (uint32_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static void test_bytes(void **state) {
    (void)state;
    job j;
    tide__tier *tier[4];
    start(&j, &tide__net_local, UINT64_C(64) << 20);
    for (uint32_t i = 0; i < 4; i++) assert_ok(open_tier(j.nets[i % BORROWERS], BIG + 8192, &tier[i]));
    stretch s[8];
    for (uint32_t i = 0; i < 8; i++) {
        static const uint64_t sizes[] = {BIG, 4097};
        s[i] = (stretch){
            .tier = tier[i / 2], .offset = i % 2 ? BIG + (uint64_t)3 : 0, .size = sizes[i % 2], .seed = i * 10};
    }
    use_all(s, 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_ok(s[i].status);
        assert_false(s[i].wrong);
    }
    assert_int_equal(tide__tier_get_stats(tier[0]).saved_bytes, 3 * ((uint64_t)BIG + 4097));
    for (uint32_t i = 0; i < 4; i++) tide__tier_destroy(tier[i]);
    assert_ok(stop(&j));
}

static void test_budget(void **state) {
    (void)state;
    job j;
    tide__tier *a, *b;
    char bytes[100];
    memset(bytes, 7, sizeof bytes);
    start(&j, &tide__net_local, 10000);
    assert_status(open_tier(j.nets[0], 10001, &a), TIDE_E_TIER_FULL);
    assert_ok(open_tier(j.nets[0], 6000, &a));
    assert_status(open_tier(j.nets[0], 4001, &b), TIDE_E_TIER_FULL);
    assert_ok(open_tier(j.nets[0], 4000, &b)); /* another one of the same borrower */
    tide__tier_slot slot = {.tier = a, .offset = 2900};
    assert_ok(tide__tier_save(&slot, 0, bytes, sizeof bytes));
    assert_status(tide__tier_grow(a, 6001), TIDE_E_TIER_FULL);
    tide__tier_shrink(a, 3000);
    tide__tier_destroy(b);
    assert_ok(tide__tier_grow(a, 10000));
    memset(bytes, 0, sizeof bytes);
    assert_ok(tide__tier_load(&slot, 0, bytes, sizeof bytes)); /* what was there stays there */
    assert_int_equal(bytes[0] + bytes[99], 14);
    assert_status(tide__tier_load(&slot, 7100, bytes, 1), TIDE_E_TIER_FULL);
    assert_ok(open_tier(j.nets[1], 10000, &b)); /* others have their own share */
    tide__tier_destroy(a);
    tide__tier_destroy(b);
    assert_ok(stop(&j));
}

static void test_no_lender(void **state) {
    (void)state;
    tide__tier *tier;
    assert_status(tide__tier_create(TIDE_TIER_LENT, 100, 1, NULL, &tier), TIDE_E_UNSUPPORTED);
}

/* ---- what goes wrong ---- */

/* A borrower that asks for what it does not have ends the job: the lender touches nothing. */
static void test_misuse(void **state) {
    (void)state;
    const tide__lend_ask asks[] = {
        {.kind = TIDE__LEND_LOAD, .region = 0, .size_bytes = 1},
        {.kind = TIDE__LEND_SAVE, .region = TIDE__LEND_REGIONS, .size_bytes = 1},
        {.kind = TIDE__LEND_CLOSE, .region = 3},
        {.kind = 0},
        {.kind = TIDE__LEND_OPEN, .number = TIDE__LEND_MAX_NUMBER + 1},
        {.kind = TIDE__LEND_RETURN + 1},
        {.kind = TIDE__LEND_LOAD, .region = 0, .offset = UINT64_MAX, .size_bytes = 2},
        {.kind = TIDE__LEND_LOAD, .region = 0, .offset = 99, .size_bytes = 2},
    };
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        job j;
        tide__tier *tier = NULL;
        tide_net_ticket ticket;
        start(&j, &tide__net_local, 1000);
        if (i >= 6) assert_ok(open_tier(j.nets[0], 100, &tier));
        const tide__net_post ask = {.is_send = true,
                                    .peer = LENDER,
                                    .tag = TIDE__LEND_ASK,
                                    .data = (char *)(uintptr_t)&asks[i],
                                    .size_bytes = sizeof asks[i]};
        assert_ok(tide__net_post_message(j.nets[0], &ask, &ticket));
        (void)tide_net_wait(j.nets[0], ticket);
        assert_status(tide_lender_close(j.lender), TIDE_E_PEER);
        assert_error_has("memory that it was not lent");
        assert_int_equal(tide_net_fault(j.nets[LENDER]).rank, 0);
        j.lender = NULL;
        tide__tier_destroy(tier);
        (void)stop(&j);
    }
}

/* Harm to frames and bytes, of the borrower and of the lender: an end in time, with the rank that it was, or the right bytes. */
static void test_harm(void **state) {
    (void)state;
    uint32_t n_rounds = harm_rounds(40), n_faults = 0;
    for (uint32_t i = 0; i < n_rounds; i++) {
        job j;
        tide__tier *tier[BORROWERS] = {NULL};
        harm_plan plan = {.harm = (harm)(1 + i % (N_HARMS - 1)), .rank = i / 7 % RANKS, .after = 8 + i * 5 % 23};
        plan.bit = i * 977;
        if (plan.harm == HARM_DATA) plan.after = i % 3;
        plan_harm(&plan);
        uint64_t begin = tide__now_ns();
        start(&j, &faulty_transport, UINT64_C(16) << 20);
        stretch s[BORROWERS];
        for (uint32_t r = 0; r < BORROWERS; r++) {
            s[r] = (stretch){.size = 1000000, .seed = r * 10};
            s[r].status = open_tier(j.nets[r], s[r].size, &tier[r]);
            s[r].tier = tier[r];
        }
        use_all(s, BORROWERS);
        for (uint32_t r = 0; r < BORROWERS; r++) {
            assert_false(s[r].wrong);
            if (s[r].status != TIDE_OK) assert_status(s[r].status, TIDE_E_PEER);
            n_faults += s[r].status != TIDE_OK;
            tide__tier_destroy(tier[r]);
        }
        (void)stop(&j);
        assert_true(tide__now_ns() - begin < UINT64_C(10000000000));
    }
    print_message("%u of %u borrowers met a fault in %u jobs\n", n_faults, BORROWERS * n_rounds, n_rounds);
    assert_true(n_faults > n_rounds / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),  cmocka_unit_test(test_budget), cmocka_unit_test(test_no_lender),
        cmocka_unit_test(test_misuse), cmocka_unit_test(test_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
