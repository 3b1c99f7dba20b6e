/* Out of host memory at every single allocation of a whole training, from its creation over steps on the CPU with a disk
 * tier, an evaluation and a checkpoint to its end: it says so or computes the same bits, and loses nothing. */
#include "support/test.h"

#include <unistd.h>

#include "base/error.h"
#include "support/short_memory.h"
#include "support/training.h"

typedef struct setting {
    training training;
    char decisions[64], checkpoint[64];
    int steps;
    bool replans;  /* a step that fails before it begins, because there is no new plan, leaves the old one */
    uint64_t hash; /* of the undisturbed training; 0: not known yet */
} setting;

static tide_status use(const setting *s, tide_trainer *trainer, uint64_t *hash) {
    float loss;
    double accuracy;
    for (int i = 0; i < s->steps; i++) {
        tide_status status = tide_trainer_step(trainer, &loss, NULL);
        if (status == TIDE_OK) continue;
        char text[256];
        snprintf(text, sizeof text, "%s", tide_last_error());
        tide_status next = tide_trainer_step(trainer, &loss, NULL);
        if (!s->replans || next != TIDE_OK) assert_status(next, TIDE_E_POISONED);
        return tide__fail(status, "%s", text);
    }
    TIDE_TRY(tide_trainer_evaluate(trainer, &s->training.data, 8, &accuracy));
    TIDE_TRY(tide_trainer_save(trainer, s->checkpoint));
    TIDE_TRY(tide_trainer_load(trainer, s->checkpoint));
    return tide_trainer_hash(trainer, hash);
}

static tide_status train(void *context) {
    setting *s = context;
    tide_trainer *trainer;
    uint64_t hash = 0;
    TIDE_TRY(tide_trainer_create(&s->training.options, NULL, &trainer));
    tide_status status = use(s, trainer, &hash);
    tide_trainer_destroy(trainer);
    if (status != TIDE_OK) return status;
    if (s->hash && s->hash != hash) fail_msg("a refused allocation changed the bits");
    s->hash = hash;
    return TIDE_OK;
}

static void test_every_allocation(void **state) {
    (void)state;
    setting s = {.steps = 2};
    char folder[] = "/tmp/tidemark-memory-XXXXXX";
    assert_non_null(mkdtemp(folder));
    snprintf(s.decisions, sizeof s.decisions, "%s/d", folder);
    snprintf(s.checkpoint, sizeof s.checkpoint, "%s/c", folder);
    FILE *f = fopen(s.decisions, "w");
    assert_non_null(f);
    fputs("{\"tidemark\":\"decisions\",\"version\":1}\n"
          "{\"swap\":\"relu1\",\"tier\":\"disk\",\"after\":\"fc2\",\"before\":\"fc2.bwd-weights\"}\n",
          f);
    fclose(f);
    training_open(&s.training, "mlp:784,4,10", 4);
    s.training.options.plan.policy = "manual";
    s.training.options.plan.decisions = s.decisions;
    exhaust(train, &s);
    training_close(&s.training);
    unlink(s.decisions);
    unlink(s.checkpoint);
    assert_int_equal(rmdir(folder), 0); /* no temporary is left */
}

/* The third step follows a plan from the times of the second: values move, and tiers change their sizes. */
static void test_plans_that_change(void **state) {
    (void)state;
    setting s = {.steps = 4, .replans = true, .checkpoint = "/tmp/tidemark-memory-XXXXXX"};
    int fd = mkstemp(s.checkpoint);
    assert_true(fd >= 0);
    close(fd);
    training_open(&s.training, "lenet", 4);
    tide_trainer *trainer = training_start(&s.training);
    s.training.options.plan.budgets.arena_bytes = tide_plan_arena_bytes(tide_trainer_plan(trainer)) * 8 / 10;
    tide_trainer_destroy(trainer);
    s.training.options.plan.policy = "hybrid";
    s.training.options.plan.effort = TIDE_EFFORT_LOW;
    exhaust_some(train, &s, (long)rounds(60));
    training_close(&s.training);
    unlink(s.checkpoint);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation),
                                       cmocka_unit_test(test_plans_that_change)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
