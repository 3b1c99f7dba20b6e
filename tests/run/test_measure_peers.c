/* Rates of messages: every rank that takes part gets channels to the others; what is harmed ends it for all. */
#include "support/test.h"

#include <pthread.h>

#include <tidemark/run.h>

#include "net/local.h"
#include "support/faulty_transport.h"

enum { RANKS = 4, TRAINERS = 2 };

typedef struct rank {
    tide_net *net;
    uint32_t n_ranks;
    tide_machine machine;
    tide_status status;
} rank;

static void *measure(void *context) {
    rank *r = context;
    assert_ok(tide_machine_load("cpu", &r->machine));
    r->status = tide_machine_measure_peers(r->net, r->n_ranks, &r->machine);
    return NULL;
}

static void *close_net(void *net) {
    tide_net_close(net);
    return NULL;
}

static void on_all(void *(*run)(void *), void *const *contexts, uint32_t n) {
    pthread_t threads[RANKS];
    for (uint32_t r = 0; r < n; r++) assert_int_equal(pthread_create(&threads[r], NULL, run, contexts[r]), 0);
    for (uint32_t r = 0; r < n; r++) pthread_join(threads[r], NULL);
}

static tide_net_options quick(void) {
    tide_net_options o;
    tide_net_options_init(&o);
    o.beat_ms = 20;
    o.silence_ms = 600 * SANITIZER_SHARE;
    return o;
}

/* Of `n_ranks` among four. */
static void measure_all(const tide__net_transport *transport, uint32_t n_ranks, rank *ranks) {
    const tide_net_options o = quick();
    tide_net *nets[RANKS];
    void *contexts[RANKS], *closed[RANKS];
    assert_ok(tide__net_open_seats(RANKS, &o, transport, nets));
    for (uint32_t r = 0; r < RANKS; r++) {
        ranks[r] = (rank){.net = nets[r], .n_ranks = n_ranks};
        contexts[r] = &ranks[r];
        closed[r] = nets[r];
    }
    on_all(measure, contexts, n_ranks);
    on_all(close_net, closed, RANKS);
}

static void test_channels(void **state) {
    (void)state;
    rank ranks[RANKS];
    for (uint32_t n = 2; n <= RANKS; n *= 2) {
        measure_all(&tide__net_local, n, ranks);
        for (uint32_t r = 0; r < n; r++) {
            const tide_machine *m = &ranks[r].machine;
            assert_ok(ranks[r].status);
            uint32_t peers = tide_machine_find_tier(m, TIDE_TIER_PEER);
            assert_true(peers != TIDE_NONE);
            assert_ok(tide_machine_validate(m));
            for (int out = 0; out < 2; out++) {
                const tide_machine_channel *c = &m->channel[tide_machine_queue(m, peers, out) - 1];
                assert_true(c->bytes_per_s > 1000000); /* it took less than a quarter of a minute */
                assert_in_range(c->latency_ns, 1, 1000000000);
            }
        }
    }
}

static void test_refusals(void **state) {
    (void)state;
    tide_net *nets[RANKS];
    tide_machine machine;
    void *closed[RANKS];
    assert_ok(tide_machine_load("cpu", &machine));
    const tide_net_options o = quick();
    assert_ok(tide__net_open_local(RANKS, &o, nets));
    const struct { uint32_t rank, n_ranks; } bad[] = {{0, 0}, {0, 1}, {0, 3}, {0, 8}, {2, TRAINERS}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tide_machine_measure_peers(nets[bad[i].rank], bad[i].n_ranks, &machine), TIDE_E_ARGUMENT);
    assert_int_equal(tide_machine_find_tier(&machine, TIDE_TIER_PEER), TIDE_NONE);
    for (uint32_t r = 0; r < RANKS; r++) closed[r] = nets[r];
    on_all(close_net, closed, RANKS);
}

/* Whatever is harmed, nobody waits for ever, and the machine is as it was. */
static void test_harm(void **state) {
    (void)state;
    rank ranks[RANKS];
    for (int h = HARM_DAMAGE; h < N_HARMS; h++) {
        plan_harm(&(harm_plan){.harm = (harm)h, .rank = 1, .after = 3, .bit = 77});
        measure_all(&faulty_transport, RANKS, ranks);
        for (uint32_t r = 0; r < RANKS; r++) {
            bool has = tide_machine_find_tier(&ranks[r].machine, TIDE_TIER_PEER) != TIDE_NONE;
            assert_true(ranks[r].status == TIDE_OK ? has : !has && ranks[r].status == TIDE_E_PEER);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
