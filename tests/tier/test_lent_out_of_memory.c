/* Out of host memory at every single allocation of a rank that borrows and of one that lends: the tier does what it is asked, or the job
 * ends with a text, in time. */
#include "support/test.h"

#include <pthread.h>

#include "net/local.h"
#include "support/short_memory.h"
#include "tier/lend.h"
#include "tier/tier.h"

enum { BORROWER, LENDER, RANKS, BYTES = 100000 };

typedef struct job {
    tide_net *nets[RANKS];
    tide_lender *lender;
    char bytes[BYTES];
} job;

static tide_status borrow(job *j) {
    const tide_loan loan = {j->nets[BORROWER], LENDER};
    const tide__tier_options o = {.kind = TIDE_TIER_LENT, .capacity_bytes = BYTES, .block_bytes = 1, .loan = &loan};
    tide__tier *tier;
    TIDE_TRY(tide__tier_open(&o, &tier));
    tide__tier_slot slot = {.tier = tier};
    memset(j->bytes, 5, BYTES);
    tide_status status = tide__tier_save(&slot, 0, j->bytes, BYTES);
    memset(j->bytes, 0, BYTES);
    if (status == TIDE_OK) status = tide__tier_load(&slot, 0, j->bytes, BYTES);
    for (uint32_t i = 0; i < BYTES && status == TIDE_OK; i++) assert_int_equal(j->bytes[i], 5);
    tide__tier_destroy(tier);
    return status;
}

static void *close_net(void *net) {
    tide_net_close(net);
    return NULL;
}

static tide_status use(job *j) {
    const uint64_t budgets[RANKS] = {BYTES, 0};
    TIDE_TRY(tide_lender_open(j->nets[LENDER], budgets, &j->lender));
    tide_status status = borrow(j);
    tide_status returned = tide_loan_return(&(tide_loan){j->nets[BORROWER], LENDER});
    if (returned != TIDE_OK) tide_net_fail(j->nets[BORROWER], returned, "it does not return what it borrows");
    tide_status closed = tide_lender_close(j->lender);
    if (status == TIDE_OK) status = returned;
    return status == TIDE_OK ? closed : status;
}

/* Whoever it was that had no memory, also the threads that are the network here: nobody waits for ever. */
static bool disturb(long after) {
    static job j;
    pthread_t thread;
    tide_net_options o;
    tide_net_options_init(&o);
    assert_ok(tide__net_open_local(RANKS, &o, j.nets));
    refuse_one(after);
    tide_status status = use(&j);
    refuse_one(-1);
    if (status != TIDE_OK && status != TIDE_E_PEER) assert_status(status, TIDE_E_MEMORY);
    assert_int_equal(pthread_create(&thread, NULL, close_net, j.nets[LENDER]), 0);
    close_net(j.nets[BORROWER]);
    pthread_join(thread, NULL);
    return status != TIDE_OK;
}

static void test_every_allocation(void **state) {
    (void)state;
    uint32_t n = 0;
    for (long after = 0; after < 50; after++) n += disturb(after);
    assert_false(disturb(-1));
    print_message("%u of 50 refusals ended the job\n", n);
    assert_true(n >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
