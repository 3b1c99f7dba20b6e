/* Several ranks in one process, a thread each, with messages through a hub: they train to the bits of one rank alone, with and
 * without budgets. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <tidemark/tidemark.h>

#include "support/test.h"

enum { MAX_RANKS = 4, STEPS = 3, WAIT_S = 60 };

/* ---- the hub: bytes go from one thread to another when both are there ---- */

typedef struct offer {
    uint32_t from, to;
    uint64_t number, position, size_bytes;
    const void *data;
    bool taken;
    struct offer *next;
} offer;

typedef struct hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    offer *offers;
    bool broken; /* a rank failed, or waited for too long */
} hub;

typedef struct port {
    hub *hub;
    uint32_t rank;
} port;

static tide_status wait_for_change(hub *h, const struct timespec *end) {
    if (!h->broken && pthread_cond_timedwait(&h->changed, &h->lock, end) == ETIMEDOUT) {
        h->broken = true;
        pthread_cond_broadcast(&h->changed);
    }
    return h->broken ? TIDE_E_IO : TIDE_OK;
}

static tide_status give(hub *h, offer *o, const struct timespec *end) {
    tide_status status = TIDE_OK;
    o->next = h->offers;
    h->offers = o;
    pthread_cond_broadcast(&h->changed);
    while (!o->taken && status == TIDE_OK) status = wait_for_change(h, end);
    for (offer **at = &h->offers; *at; at = &(*at)->next) {
        if (*at != o) continue;
        *at = o->next;
        break;
    }
    return status;
}

static tide_status take(hub *h, const offer *wanted, void *data, const struct timespec *end) {
    for (;;) {
        for (offer *o = h->offers; o; o = o->next) {
            if (o->taken || o->from != wanted->from || o->to != wanted->to || o->number != wanted->number ||
                o->position != wanted->position)
                continue;
            if (o->size_bytes != wanted->size_bytes) return TIDE_E_IO;
            memcpy(data, o->data, o->size_bytes);
            o->taken = true;
            pthread_cond_broadcast(&h->changed);
            return TIDE_OK;
        }
        tide_status status = wait_for_change(h, end);
        if (status != TIDE_OK) return status;
    }
}

static tide_status pass(void *context, const tide_message *m, uint64_t position, void *data, uint64_t size_bytes) {
    const port *p = context;
    struct timespec end;
    offer o = {.from = m->receives ? m->peer : p->rank,
               .to = m->receives ? p->rank : m->peer,
               .number = m->number,
               .position = position,
               .size_bytes = size_bytes,
               .data = data};
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += WAIT_S;
    pthread_mutex_lock(&p->hub->lock);
    tide_status status = m->receives ? take(p->hub, &o, data, &end) : give(p->hub, &o, &end);
    pthread_mutex_unlock(&p->hub->lock);
    return status;
}

/* ---- one rank ---- */

typedef struct setting {
    const char *spec;
    uint32_t batch, size, micros;
    tide_optimizer optimizer;
    float clip_norm;
    bool fused;
    double share; /* of the unconstrained arena; 0: no budget */
    tide_shard shard;
} setting;

typedef struct result {
    tide_status status;
    char why[256];
    uint64_t hash, arena_bytes;
    float loss[STEPS];
    double accuracy;
} result;

typedef struct job {
    const setting *setting;
    port port;
    uint32_t n_ranks;
    result result;
} job;

/* A save that fails at rank 0 leaves the ranks in step: what they send next is what the others take it for. */
static tide_status save_nowhere(tide_trainer *trainer, const job *j) {
    if (j->n_ranks == 1 || j->setting->shard == TIDE_SHARD_NONE) return TIDE_OK;
    const tide_status status = tide_trainer_save(trainer, j->port.rank == 0 ? "/nowhere/at/all/x.safetensors" : NULL);
    if (j->port.rank > 0) return status;
    return status == TIDE_E_IO ? TIDE_OK : TIDE_E_INTERNAL;
}

static tide_status train(tide_trainer *trainer, const tide_data *data, job *j) {
    result *r = &j->result;
    tide_status status = save_nowhere(trainer, j);
    for (int i = 0; i < STEPS && status == TIDE_OK; i++) {
        tide_step_report report;
        status = tide_trainer_step(trainer, &r->loss[i], &report);
        if (status == TIDE_OK) r->arena_bytes = report.arena_bytes;
    }
    if (status == TIDE_OK) status = tide_trainer_hash(trainer, &r->hash);
    return status == TIDE_OK ? tide_trainer_evaluate(trainer, data, 8, &r->accuracy) : status;
}

static tide_status open_and_train(job *j) {
    const setting *s = j->setting;
    tide_device_options d;
    tide_device *device = NULL;
    tide_model_options m;
    tide_model *model = NULL;
    tide_machine machine;
    tide_digits digits;
    tide_text text;
    tide_data data;
    tide_trainer_options o;
    tide_trainer *trainer = NULL;
    const tide_peers peers = {j->port.rank, j->n_ranks, pass, &j->port};
    tide_device_options_init(&d);
    d.threads = 1;
    tide_model_options_init(&m);
    m.batch = s->batch;
    m.channels = s->size ? 1 : 0;
    m.height = m.width = s->size;
    m.classes = s->size ? 10 : 0;
    tide_trainer_options_init(&o);
    tide_status status = tide_device_open("cpu", &d, &device);
    if (status == TIDE_OK) status = tide_model_create(s->spec, &m, &model);
    if (status == TIDE_OK) status = tide_machine_load("cpu", &machine);
    if (status == TIDE_OK) {
        tide_shape in = tide_model_input(model);
        digits = (tide_digits){3, (uint32_t)in.c, (uint32_t)in.h, (uint32_t)in.w, false};
        text = (tide_text){.seed = 3, .context = (uint32_t)in.c};
        status = s->size ? tide_data_digits(&digits, 13, &data) : tide_data_text(&text, 13, &data);
    }
    o.model = model;
    o.device = device;
    o.machine = &machine;
    o.data = &data;
    o.learning_rate = 0.01f;
    o.step.optimizer = s->optimizer;
    o.step.accumulate = s->micros;
    o.step.clip_norm = s->clip_norm;
    o.step.fused_update = s->fused;
    o.step.shard = s->shard;
    o.plan.effort = TIDE_EFFORT_LOW;
    if (s->share > 0) {
        o.plan.policy = "hybrid";
        o.plan.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = s->share};
    }
    if (j->n_ranks > 1) o.peers = &peers;
    if (status == TIDE_OK) status = tide_trainer_create(&o, NULL, &trainer);
    if (status == TIDE_OK) status = train(trainer, &data, j);
    tide_trainer_destroy(trainer);
    tide_model_destroy(model);
    tide_device_close(device);
    return status;
}

static void *run_rank(void *context) {
    job *j = context;
    j->result.status = open_and_train(j);
    if (j->result.status == TIDE_OK) return NULL;
    snprintf(j->result.why, sizeof j->result.why, "%s", tide_last_error());
    pthread_mutex_lock(&j->port.hub->lock);
    j->port.hub->broken = true;
    pthread_cond_broadcast(&j->port.hub->changed);
    pthread_mutex_unlock(&j->port.hub->lock);
    return NULL;
}

static void run_job(const setting *s, uint32_t n_ranks, result *results) {
    hub h = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    job jobs[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    for (uint32_t r = 0; r < n_ranks; r++) {
        jobs[r] = (job){.setting = s, .port = {&h, r}, .n_ranks = n_ranks};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &jobs[r]), 0);
    }
    for (uint32_t r = 0; r < n_ranks; r++) assert_int_equal(pthread_join(threads[r], NULL), 0);
    for (uint32_t r = 0; r < n_ranks; r++) results[r] = jobs[r].result;
}

/* ---- the tests ---- */

/* Planning takes minutes under ThreadSanitizer, which is here for what runs. */
static void assert_ranks_agree(const setting *given, uint32_t n_ranks) {
    setting with = *given, alone = *given;
    const setting *s = &with;
    if (QUICK_POLICY) with.share = 0;
    result one, all[MAX_RANKS];
    alone.share = 0;
    run_job(&alone, 1, &one);
    assert_int_equal(one.status, TIDE_OK);
    run_job(s, n_ranks, all);
    for (uint32_t r = 0; r < n_ranks; r++) /* who fails first is not told to be broken off */
        if (all[r].status != TIDE_OK && all[r].status != TIDE_E_IO) fail_msg("%s, rank %u: %s", s->spec, r, all[r].why);
    for (uint32_t r = 0; r < n_ranks; r++) {
        if (all[r].status != TIDE_OK) fail_msg("%s, rank %u of %u: %s", s->spec, r, n_ranks, all[r].why);
        for (int i = 0; i < STEPS; i++) assert_true(all[r].loss[i] == one.loss[i]);
        assert_true(all[r].hash == one.hash);
        assert_true(all[r].accuracy == one.accuracy);
        if (s->share > 0) assert_true(all[r].arena_bytes < one.arena_bytes);
    }
}

static void two_ranks_train_to_the_bits_of_one(void **state) {
    (void)state;
    static const setting settings[] = {
        {"lenet", 2, 28, 4, TIDE_ADAM, 0.5f, false, 0.7, TIDE_SHARD_OPTIMIZER},
        {"lenet", 2, 28, 4, TIDE_ADAM, 0.5f, false, 0, TIDE_SHARD_ALL},
        {"resnet-cifar:1", 2, 28, 2, TIDE_MOMENTUM, 0, true, 0.6, TIDE_SHARD_NONE},
        {"resnet-cifar:1", 2, 28, 4, TIDE_MOMENTUM, 0, true, 0.7, TIDE_SHARD_ALL},
        {"alexnet", 1, 67, 2, TIDE_SGD, 0, true, 0, TIDE_SHARD_OPTIMIZER}, /* dropout */
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) assert_ranks_agree(&settings[i], 2);
}

static void four_ranks_train_to_the_bits_of_one(void **state) {
    (void)state;
    static const setting settings[] = {
        {"resnet-cifar:1", 1, 28, 8, TIDE_MOMENTUM, 0.5f, false, 0, TIDE_SHARD_OPTIMIZER},
        {"gpt2:1,16,2,6,256", 1, 0, 4, TIDE_ADAMW, 1, false, 0.6, TIDE_SHARD_NONE}, /* tied weights */
        {"gpt2:1,16,2,6,256", 1, 0, 4, TIDE_ADAMW, 1, false, 0.9, TIDE_SHARD_ALL},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) assert_ranks_agree(&settings[i], 4);
}

/* Every message has its other side, for any number of ranks; one that is changed has none. */
static void match_all(const tide_model *model, uint32_t n, tide_shard shard) {
    tide_step *steps[MAX_RANKS];
    const tide_program *programs[MAX_RANKS], *swapped[MAX_RANKS];
    for (uint32_t r = 0; r < n; r++) {
        tide_step_options o;
        tide_step_options_init(&o);
        o.accumulate = 8;
        o.micro_count = 8 / n;
        o.first_micro = r * o.micro_count;
        o.shard = shard;
        o.clip_norm = 1;
        assert_ok(tide_step_create(model, &o, &steps[r]));
        programs[r] = tide_step_program(steps[r]);
        assert_true(tide_program_message_count(programs[r]) > 0);
    }
    assert_ok(tide_program_match_messages(programs, n));
    for (uint32_t r = 0; r < n; r++) swapped[r] = programs[r ^ 1];
    assert_status(tide_program_match_messages(swapped, n), TIDE_E_ARGUMENT);
    assert_status(tide_program_match_messages(programs, n - 1), TIDE_E_ARGUMENT);
    for (uint32_t r = 0; r < n; r++) tide_step_destroy(steps[r]);
}

static void messages_match(void **state) {
    (void)state;
    tide_model *model;
    assert_ok(tide_model_create("resnet-cifar:1", NULL, &model));
    for (uint32_t n = 2; n <= MAX_RANKS; n *= 2)
        for (tide_shard shard = TIDE_SHARD_NONE; shard <= TIDE_SHARD_ALL; shard++) match_all(model, n, shard);
    tide_model_destroy(model);
}

/* An evaluation for which a small arena has no room borrows the weights of the training: each rank has those that it owns. */
static void weights_at_owners_are_borrowed(void **state) {
    (void)state;
    tide_model *model;
    tide_step *steps[2];
    const tide_program *programs[2];
    assert_ok(tide_model_create("lenet", NULL, &model));
    for (uint32_t r = 0; r < 2; r++) {
        tide_step_options o;
        tide_step_options_init(&o);
        o.inference = o.client_weights = true;
        o.accumulate = 2;
        o.micro_count = 1;
        o.first_micro = r;
        o.shard = TIDE_SHARD_ALL;
        assert_ok(tide_step_create(model, &o, &steps[r]));
        programs[r] = tide_step_program(steps[r]);
        for (tide_id t = 0; t < tide_program_tensor_count(programs[r]); t++)
            assert_true(tide_program_tensor(programs[r], t)->start != TIDE_START_PRESENT);
    }
    assert_ok(tide_program_match_messages(programs, 2));
    for (uint32_t r = 0; r < 2; r++) tide_step_destroy(steps[r]);
    tide_model_destroy(model);
}

/* Bytes of a rank's weights and optimizer states. */
static uint64_t bytes_of_rank(const tide_model *model, uint32_t rank, uint32_t n, tide_shard shard) {
    tide_step_options o;
    tide_step *step;
    uint64_t bytes = 0;
    tide_step_options_init(&o);
    o.optimizer = TIDE_ADAM;
    o.accumulate = n;
    o.micro_count = 1;
    o.first_micro = rank;
    o.shard = shard;
    assert_ok(tide_step_create(model, &o, &step));
    const tide_program *p = tide_step_program(step);
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        if (tide_program_tensor(p, t)->start == TIDE_START_PRESENT) bytes += tide_program_tensor(p, t)->size_bytes;
    tide_step_destroy(step);
    return bytes;
}

static void assert_about(uint64_t got, double wanted) {
    if ((double)got < 0.98 * wanted || (double)got > 1.02 * wanted)
        fail_msg("%llu bytes, not about %.0f", (unsigned long long)got, wanted);
}

/* Of one large weight and two small ones each of eight ranks has an eighth: 12 bytes per element, or 4 and an eighth of 8. */
static void ranks_own_equal_shares(void **state) {
    (void)state;
    tide_model_options m;
    tide_model *model;
    tide_model_options_init(&m);
    m.batch = 1;
    assert_ok(tide_model_create("mlp:3072,2048,512,10", &m, &model));
    const double elements = 3073.0 * 2048 + 2049.0 * 512 + 513.0 * 10;
    for (uint32_t r = 0; r < 8; r++) {
        assert_about(bytes_of_rank(model, r, 8, TIDE_SHARD_NONE), 12 * elements);
        assert_about(bytes_of_rank(model, r, 8, TIDE_SHARD_OPTIMIZER), (4 + 8 / 8.0) * elements);
        assert_about(bytes_of_rank(model, r, 8, TIDE_SHARD_ALL), 12 / 8.0 * elements);
    }
    tide_model_destroy(model);
}

static void shares_that_are_refused(void **state) {
    (void)state;
    static const struct {
        uint32_t all, first, count;
    } shares[] = {{8, 0, 3}, {8, 2, 4}, {8, 8, 4}, {12, 0, 4}, {6, 0, 3}};
    tide_model *model;
    tide_step *step;
    assert_ok(tide_model_create("lenet", NULL, &model));
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        tide_step_options o;
        tide_step_options_init(&o);
        o.accumulate = shares[i].all;
        o.first_micro = shares[i].first;
        o.micro_count = shares[i].count;
        assert_status(tide_step_create(model, &o, &step), TIDE_E_ARGUMENT);
    }
    tide_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_at_owners_are_borrowed),
        cmocka_unit_test(messages_match),
        cmocka_unit_test(ranks_own_equal_shares),
        cmocka_unit_test(shares_that_are_refused),
        cmocka_unit_test(two_ranks_train_to_the_bits_of_one),
        cmocka_unit_test(four_ranks_train_to_the_bits_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
