/* A small network trained without a budget and inside three: the same bits, and losses as on the CPU. And an arena that
 * does not fit: refused, without harm. */
#include "selftest.h"

#include <inttypes.h>
#include <math.h>

enum { STEPS = 3, BATCH = 16, SIDE = 28, CLASSES = 10 };
static const double shares[] = {0.8, 0.6, 0.5};

typedef struct trained {
    uint64_t hash, arena_bytes;
    float loss;
} trained;

typedef struct course {
    tide_machine machine;
    tide_model *model;
    tide_digits digits;
    tide_data data;
} course;

static tide_status open_course(course *c) {
    tide_model_options m;
    tide_model_options_init(&m);
    m.batch = BATCH;
    m.channels = 1;
    m.height = m.width = SIDE;
    m.classes = CLASSES;
    c->digits = (tide_digits){.seed = 3, .channels = 1, .height = SIDE, .width = SIDE};
    tide_status status = tide_machine_load("default", &c->machine);
    if (status == TIDE_OK) status = tide_data_digits(&c->digits, STEPS * BATCH, &c->data);
    return status == TIDE_OK ? tide_model_create("lenet", &m, &c->model) : status;
}

/* share 0: without a budget. */
static tide_status train(const course *c, tide_device *device, double share, trained *out) {
    tide_trainer_options o;
    tide_trainer *trainer = NULL;
    tide_step_report report = {0};
    tide_trainer_options_init(&o);
    o.model = c->model;
    o.device = device;
    o.machine = &c->machine;
    o.data = &c->data;
    o.learning_rate = 0.05f;
    o.plan.effort = TIDE_EFFORT_LOW;
    o.plan.policy = share > 0 ? "hybrid" : "liveness";
    if (share > 0) o.plan.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = share};
    tide_status status = tide_trainer_create(&o, NULL, &trainer);
    for (int i = 0; i < STEPS && status == TIDE_OK; i++) status = tide_trainer_step(trainer, &out->loss, &report);
    if (status == TIDE_OK) status = tide_trainer_hash(trainer, &out->hash);
    out->arena_bytes = report.arena_bytes;
    if (trainer) tide_trainer_destroy(trainer);
    return status;
}

static void compare_losses(selftest *s, const course *c, const trained *reference) {
    tide_device *cpu = NULL;
    tide_device_options options;
    trained there = {0};
    tide_device_options_init(&options);
    options.threads = 1;
    tide_status status = tide_device_open("cpu", &options, &cpu);
    if (status == TIDE_OK) status = train(c, cpu, 0, &there);
    const double apart = fabs((double)reference->loss - (double)there.loss);
    selftest_check(s, "the loss is the CPU's within 0.1 %", status, apart <= 1e-3 * fabs((double)there.loss));
    tide_device_close(cpu);
}

static void compare_budgets(selftest *s, const course *c, const trained *reference) {
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        trained inside = {0};
        char what[96];
        tide_status status = train(c, s->device, shares[i], &inside);
        snprintf(what, sizeof what, "%.0f %% of the memory (%.2f of %.2f MiB): the same bits", 100 * shares[i],
                 (double)inside.arena_bytes / 0x1p20, (double)reference->arena_bytes / 0x1p20);
        selftest_check(s, what, status, inside.hash == reference->hash && inside.arena_bytes < reference->arena_bytes);
    }
}

void selftest_training(selftest *s) {
    course c = {0};
    trained reference = {0};
    selftest_head(s, "training, three steps of lenet");
    tide_status status = open_course(&c);
    if (status == TIDE_OK) status = train(&c, s->device, 0, &reference);
    selftest_check(s, "without a budget", status, isfinite(reference.loss));
    if (status == TIDE_OK) {
        selftest_say(s, "loss %.6f, weights %016" PRIx64, (double)reference.loss, reference.hash);
        compare_losses(s, &c, &reference);
        compare_budgets(s, &c, &reference);
    }
    tide_model_destroy(c.model);
}

/* ---- memory ---- */

/* Memory of the host is promised before it is there; a size that no address can have is refused everywhere. */
void selftest_memory(selftest *s) {
    const uint64_t too_much = s->info.host_visible ? UINT64_C(1) << 60 : s->info.memory_bytes + (UINT64_C(256) << 20);
    tide_arena *arena = NULL;
    selftest_head(s, "memory");
    tide_status status = tide_arena_create(s->device, too_much, &arena);
    selftest_check(s, "an arena larger than the memory is refused", TIDE_OK, status == TIDE_E_MEMORY);
    if (status == TIDE_E_MEMORY) selftest_say(s, "%s", tide_last_error());
    tide_arena_destroy(arena);
    arena = NULL;
    status = tide_arena_create(s->device, 1 << 20, &arena);
    selftest_check(s, "a smaller one is there afterwards", status, true);
    tide_arena_destroy(arena);
}
