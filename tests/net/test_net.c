/* Ranks as threads of one process: messages of all sizes and orders, collectives, deadlines, and what becomes of a job
 * one of whose ranks is harmed. The job ends with one fault that names the rank, never with wrong bytes and never late. */
#include "support/test.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "net/frame.h"
#include "net/local.h"
#include "support/faulty_transport.h"

enum { MAX_RANKS = 4, MESSAGES = 12 };

typedef struct rank_job {
    tide_net *net;
    tide_status status;
    uint32_t rounds;
    bool wrong;
} rank_job;

static tide_net_options quick(void) {
    tide_net_options o;
    tide_net_options_init(&o);
    o.beat_ms = 20;
    o.silence_ms = 600 * SANITIZER_SHARE;
    return o;
}

static void *close_net(void *net) {
    tide_net_close(net);
    return NULL;
}

/* All together: a rank leaves when everybody does. */
static void close_all(tide_net **nets, uint32_t n) {
    pthread_t threads[MAX_RANKS];
    for (uint32_t r = 0; r < n; r++) assert_int_equal(pthread_create(&threads[r], NULL, close_net, nets[r]), 0);
    for (uint32_t r = 0; r < n; r++) pthread_join(threads[r], NULL);
}

static size_t size_of(uint32_t i) {
    static const size_t sizes[] = {0, 1, 4096, 4097, 70000, (1 << 20) + 3};
    return sizes[i % (sizeof sizes / sizeof *sizes)];
}

static void fill(unsigned char *bytes, size_t size, uint32_t seed) {
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 31 + i / 255 + seed);
}

/* MESSAGES to every rank and from every rank, posted in another order than they are received. */
static tide_status talk(rank_job *job) {
    tide_net *net = job->net;
    uint32_t n = tide_net_count(net), me = tide_net_rank(net), posted = 0;
    tide_net_ticket tickets[2 * MESSAGES * MAX_RANKS];
    unsigned char *out[MESSAGES * MAX_RANKS], *in[MESSAGES * MAX_RANKS], *expected = malloc(2 << 20);
    tide_status status = TIDE_OK;
    for (uint32_t k = 0; k < MESSAGES * n; k++) {
        out[k] = malloc(size_of(k / n) + 1);
        in[k] = malloc(size_of(k / n) + 1);
        fill(out[k], size_of(k / n), me * 100 + k / n);
    }
    for (uint32_t k = 0; k < MESSAGES * n && status == TIDE_OK; k++, posted += status == TIDE_OK)
        status = tide_net_send(net, k % n, k / n, out[k], size_of(k / n), NULL, NULL, &tickets[posted]);
    for (uint32_t k = MESSAGES * n; k-- > 0 && status == TIDE_OK; posted += status == TIDE_OK)
        status = tide_net_receive(net, k % n, k / n, in[k], size_of(k / n), NULL, NULL, &tickets[posted]);
    for (uint32_t i = 0; i < posted; i++) {
        tide_status waited = tide_net_wait(net, tickets[i]);
        if (status == TIDE_OK) status = waited;
    }
    for (uint32_t k = 0; k < MESSAGES * n; k++) {
        fill(expected, size_of(k / n), k % n * 100 + k / n);
        if (status == TIDE_OK && memcmp(expected, in[k], size_of(k / n)) != 0) job->wrong = true;
        free(out[k]);
        free(in[k]);
    }
    free(expected);
    return status;
}

static void *run_rank(void *context) {
    rank_job *job = context;
    for (uint32_t i = 0; i < job->rounds && job->status == TIDE_OK; i++) {
        tide_net_set_step(job->net, i);
        job->status = talk(job);
    }
    return NULL;
}

static void run_all(tide_net **nets, uint32_t n, uint32_t rounds, rank_job *jobs) {
    pthread_t threads[MAX_RANKS];
    for (uint32_t r = 0; r < n; r++) {
        jobs[r] = (rank_job){.net = nets[r], .rounds = rounds};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &jobs[r]), 0);
    }
    for (uint32_t r = 0; r < n; r++) pthread_join(threads[r], NULL);
}

static void test_messages(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= MAX_RANKS; n++) {
        tide_net *nets[MAX_RANKS];
        rank_job jobs[MAX_RANKS];
        tide_net_options o = quick();
        assert_ok(tide__net_open_local(n, &o, nets));
        run_all(nets, n, 2, jobs);
        for (uint32_t r = 0; r < n; r++) {
            assert_int_equal(tide_net_rank(nets[r]), r);
            assert_string_not_equal(tide_net_host(nets[0], r), "");
            assert_ok(jobs[r].status);
            assert_false(jobs[r].wrong);
        }
        close_all(nets, n);
    }
}

/* ---- collectives ---- */

static void *collect(void *context) {
    rank_job *job = context;
    uint32_t n = tide_net_count(job->net), mine = tide_net_rank(job->net) + 10, all[MAX_RANKS] = {0};
    char text[8000] = "";
    job->status = tide_net_allgather(job->net, &mine, sizeof mine, all);
    for (uint32_t r = 0; r < n; r++) job->wrong |= all[r] != r + 10;
    if (tide_net_rank(job->net) == n - 1) memset(text, 'x', sizeof text);
    if (job->status == TIDE_OK) job->status = tide_net_broadcast(job->net, n - 1, text, sizeof text);
    job->wrong |= text[0] != 'x' || text[sizeof text - 1] != 'x';
    if (job->status == TIDE_OK) job->status = tide_net_barrier(job->net);
    return NULL;
}

static void test_collectives(void **state) {
    (void)state;
    tide_net *nets[MAX_RANKS];
    rank_job jobs[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    tide_net_options o = quick();
    assert_ok(tide__net_open_local(MAX_RANKS, &o, nets));
    for (uint32_t r = 0; r < MAX_RANKS; r++) {
        jobs[r] = (rank_job){.net = nets[r]};
        pthread_create(&threads[r], NULL, collect, &jobs[r]);
    }
    for (uint32_t r = 0; r < MAX_RANKS; r++) {
        pthread_join(threads[r], NULL);
        assert_ok(jobs[r].status);
        assert_false(jobs[r].wrong);
    }
    close_all(nets, MAX_RANKS);
}

/* ---- faults ---- */

static void check_fault(const rank_job *job, uint32_t rank) {
    tide_net_fault_info fault = tide_net_fault(job->net);
    assert_status(job->status, TIDE_E_PEER);
    assert_status(fault.status, TIDE_E_PEER);
    assert_int_equal(fault.rank, rank);
    assert_string_not_equal(fault.why, "");
}

/* Every harm, at several places: all ranks report the rank that was harmed, or nothing was harmed and all is well. */
static void test_harm(void **state) {
    (void)state;
    uint32_t n_struck = 0, n_rounds = harm_rounds(40);
    for (uint32_t i = 0; i < n_rounds; i++) {
        tide_net *nets[3];
        rank_job jobs[3];
        tide_net_options o = quick();
        harm_plan plan = {.harm = (harm)(1 + i % (N_HARMS - 1)), .rank = 1, .after = 5 + i * 7 % 31, .bit = i * 977};
        if (plan.harm == HARM_DATA) plan.after = i % 3;
        plan_harm(&plan);
        uint64_t begin = tide__now_ns();
        assert_ok(tide__net_open_seats(3, &o, &faulty_transport, nets));
        run_all(nets, 3, 50, jobs);
        assert_true(harm_done());
        for (uint32_t r = 0; r < 3; r++) {
            assert_false(jobs[r].wrong);
            if (plan.harm != HARM_CUT) check_fault(&jobs[r], 1);
            assert_status(jobs[r].status, TIDE_E_PEER);
        }
        n_struck++;
        close_all(nets, 3);
        assert_true(tide__now_ns() - begin < UINT64_C(10000000000));
    }
    assert_int_equal(n_struck, n_rounds);
}

static void test_fail(void **state) {
    (void)state;
    tide_net *nets[2];
    tide_net_options o = quick();
    tide_net_ticket ticket;
    char bytes[10000];
    assert_ok(tide__net_open_local(2, &o, nets));
    assert_ok(tide_net_receive(nets[0], 1, 5, bytes, sizeof bytes, NULL, NULL, &ticket));
    tide_net_set_step(nets[1], 17);
    tide_net_fail(nets[1], TIDE_E_IO, "its disk is full");
    assert_status(tide_net_wait(nets[0], ticket), TIDE_E_PEER);
    assert_error_has("rank 1 on ");
    assert_error_has("last in step 17: its disk is full");
    assert_status(tide_net_fault(nets[0]).status, TIDE_E_IO);
    assert_status(tide_net_send(nets[0], 1, 5, bytes, sizeof bytes, NULL, NULL, &ticket), TIDE_E_PEER);
    close_all(nets, 2);
}

static void test_deadline(void **state) {
    (void)state;
    tide_net *nets[2];
    tide_net_options o = quick();
    tide_net_ticket ticket;
    char byte;
    o.deadline_ms = 200;
    assert_ok(tide__net_open_local(2, &o, nets));
    assert_ok(tide_net_receive(nets[0], 1, 5, &byte, 1, NULL, NULL, &ticket));
    assert_status(tide_net_wait(nets[0], ticket), TIDE_E_PEER);
    assert_error_has("not complete after 200 ms");
    close_all(nets, 2);
}

static void test_sizes_differ(void **state) {
    (void)state;
    tide_net *nets[2];
    tide_net_options o = quick();
    tide_net_ticket send, receive;
    char bytes[10000] = "";
    assert_ok(tide__net_open_local(2, &o, nets));
    assert_ok(tide_net_send(nets[1], 0, 5, bytes, 9000, NULL, NULL, &send));
    assert_ok(tide_net_receive(nets[0], 1, 5, bytes, 9001, NULL, NULL, &receive));
    assert_status(tide_net_wait(nets[0], receive), TIDE_E_PEER);
    assert_error_has("sends 9000 bytes where rank 0 expects 9001");
    assert_status(tide_net_wait(nets[1], send), TIDE_E_PEER);
    close_all(nets, 2);
}

/* A small message of a rank that has left meanwhile is still there; another one never comes. */
static void test_last_words(void **state) {
    (void)state;
    tide_net *nets[2];
    tide_net_options o = quick();
    tide_net_ticket ticket;
    pthread_t thread;
    char byte = 0;
    assert_ok(tide__net_open_local(2, &o, nets));
    assert_ok(tide_net_send(nets[1], 0, 5, "x", 1, NULL, NULL, &ticket));
    assert_ok(tide_net_wait(nets[1], ticket));
    pthread_create(&thread, NULL, close_net, nets[1]);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_ok(tide_net_receive(nets[0], 1, 5, &byte, 1, NULL, NULL, &ticket));
    assert_ok(tide_net_wait(nets[0], ticket));
    assert_int_equal(byte, 'x');
    assert_ok(tide_net_receive(nets[0], 1, 5, &byte, 1, NULL, NULL, &ticket));
    assert_status(tide_net_wait(nets[0], ticket), TIDE_E_PEER);
    assert_error_has("has left the job");
    tide_net_close(nets[0]);
    pthread_join(thread, NULL);
}

/* A rank that leaves while another expects a message of its. */
static void test_left_alone(void **state) {
    (void)state;
    tide_net *nets[2];
    tide_net_options o = quick();
    tide_net_ticket ticket;
    pthread_t thread;
    char byte;
    assert_ok(tide__net_open_local(2, &o, nets));
    assert_ok(tide_net_receive(nets[0], 1, 5, &byte, 1, NULL, NULL, &ticket));
    pthread_create(&thread, NULL, close_net, nets[1]);
    assert_status(tide_net_wait(nets[0], ticket), TIDE_E_PEER);
    assert_error_has("left the job");
    tide_net_close(nets[0]);
    pthread_join(thread, NULL);
}

/* ---- functions instead of tickets ---- */

typedef struct tally {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t n_ok;
} tally;

static void count(void *context, tide_status status) {
    tally *t = context;
    pthread_mutex_lock(&t->lock);
    t->n_ok += status == TIDE_OK;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void test_functions(void **state) {
    (void)state;
    tide_net *nets[2];
    tide_net_options o = quick();
    static char out[50000], in[50000];
    tally t = {.n_ok = 0};
    pthread_mutex_init(&t.lock, NULL);
    pthread_cond_init(&t.changed, NULL);
    memset(out, 7, sizeof out);
    assert_ok(tide__net_open_local(2, &o, nets));
    assert_ok(tide_net_receive(nets[0], 1, 5, in, sizeof in, count, &t, NULL));
    assert_ok(tide_net_send(nets[1], 0, 5, out, sizeof out, count, &t, NULL));
    pthread_mutex_lock(&t.lock);
    while (t.n_ok < 2) pthread_cond_wait(&t.changed, &t.lock);
    pthread_mutex_unlock(&t.lock);
    assert_memory_equal(in, out, sizeof in);
    close_all(nets, 2);
    pthread_cond_destroy(&t.changed);
    pthread_mutex_destroy(&t.lock);
}

static void test_refusals(void **state) {
    (void)state;
    tide_net *net;
    tide_net_ticket ticket;
    tide_net_options o = quick();
    char byte = 0;
    assert_ok(tide__net_open_local(1, &o, &net));
    assert_status(tide_net_send(net, 1, 0, &byte, 1, NULL, NULL, &ticket), TIDE_E_ARGUMENT);
    assert_error_has("no rank 1 among 1");
    assert_status(tide_net_send(net, 0, UINT64_C(1) << 63, &byte, 1, NULL, NULL, &ticket), TIDE_E_ARGUMENT);
    assert_status(tide_net_send(net, 0, 0, &byte, 1, NULL, NULL, NULL), TIDE_E_ARGUMENT);
    assert_status(tide_net_broadcast(net, 1, &byte, 1), TIDE_E_ARGUMENT);
    tide_net_close(net);
    o.silence_ms = o.beat_ms;
    assert_status(tide__net_open_local(1, &o, &net), TIDE_E_ARGUMENT);
    assert_int_equal(tide_net_job_ranks(), 1);
}

/* Bytes that a frame promises and does not carry would be taken from wherever it was put. */
static void test_frames(void **state) {
    (void)state;
    static const struct {
        tide__net_kind kind;
        uint64_t says;
        uint32_t carries;
        bool good;
    } frames[] = {
        {TIDE__NET_BEAT, 0, 0, true},
        {TIDE__NET_OFFER, 8, 8, true},
        {TIDE__NET_OFFER, 8, 0, false},
        {TIDE__NET_OFFER, TIDE_NET_SMALL + 1, 0, true},
        {TIDE__NET_OFFER, TIDE_NET_SMALL + 1, 8, false},
        {TIDE__NET_FAULT, 8, 0, false},
        {TIDE__NET_CLEAR, 0, 8, false},
    };
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        tide__net_frame frame = {.kind = (uint32_t)frames[i].kind, .size_bytes = frames[i].says};
        uint32_t size_bytes = tide__net_frame_seal(&frame, frames[i].carries);
        assert_int_equal(tide__net_frame_check(&frame, size_bytes, 0) == NULL, frames[i].good);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),   cmocka_unit_test(test_collectives), cmocka_unit_test(test_harm),
        cmocka_unit_test(test_fail),       cmocka_unit_test(test_deadline),    cmocka_unit_test(test_sizes_differ),
        cmocka_unit_test(test_left_alone), cmocka_unit_test(test_last_words),  cmocka_unit_test(test_functions),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
