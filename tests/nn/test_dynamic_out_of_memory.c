/* Out of host memory at every single allocation of a first step of a network that changes. Whoever tries again gets what
 * an undisturbed first step computes, or a refusal: a parameter that got no first value is never used. */
#include "support/test.h"

#include "base/error.h"
#include "support/short_memory.h"
#include "support/training.h"

enum { VALUES = 28 * 28 };

typedef struct setting {
    training training;
    float loss; /* of an undisturbed step; 0: not known yet */
} setting;

static tide_status step(const setting *s, tide_dynamic *d, float *loss) {
    static const float plain[VALUES] = {[5] = 1, [300] = 2, [783] = -1};
    static const int32_t label = 3;
    return tide_dynamic_step(d, s->training.model, plain, &label, loss, NULL);
}

static tide_status use(setting *s, tide_dynamic *d) {
    float loss = 0, again;
    char text[256];
    tide_status status = step(s, d, &loss);
    snprintf(text, sizeof text, "%s", tide_last_error());
    if (status != TIDE_OK && step(s, d, &again) == TIDE_OK && again != s->loss)
        fail_msg("another loss after: %s", text);
    if (status != TIDE_OK) return tide__fail(status, "%s", text);
    if (s->loss == 0) s->loss = loss;
    assert_true(loss == s->loss);
    return TIDE_OK;
}

static tide_status task(void *context) {
    setting *s = context;
    tide_dynamic_options o;
    tide_dynamic *d;
    tide_dynamic_options_init(&o);
    o.session.device = s->training.device;
    o.session.machine = &s->training.machine;
    o.session.budgets.arena_bytes = 1 << 22;
    o.session.policy = "";
    TIDE_TRY(tide_dynamic_create(&o, &d));
    tide_status status = use(s, d);
    tide_dynamic_destroy(d);
    return status;
}

static void test_every_allocation(void **state) {
    (void)state;
    setting s = {.loss = 0};
    training_open(&s.training, "mlp:784,4,10", 1);
    exhaust(task, &s);
    training_close(&s.training);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
