/* See train_schedule.h. */
#include "train_schedule.h"

#include <float.h>
#include <string.h>

static bool find_curve(const char *name, tide_curve *out) {
    static const char *const names[] = {
#define CURVE_NAME(e, text) [e] = text,
        TIDE_CURVE_TABLE(CURVE_NAME)
#undef CURVE_NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (name && strcmp(names[i], name) != 0) continue;
        *out = (tide_curve)i;
        return true;
    }
    return false;
}

bool schedule_given(const schedule_args *a) {
    return a->rate >= 0 || a->factor >= 0 || a->curve || a->warmup != UINT64_MAX || a->every;
}

float rate_of(const schedule_args *a, const tide_training_recipe *recipe, tide_optimizer optimizer, uint64_t batch) {
    if (a->rate >= 0) return (float)a->rate;
    if (optimizer == recipe->optimizer) return tide_recipe_rate(recipe, batch);
    return optimizer == TIDE_ADAM || optimizer == TIDE_ADAMW ? 1e-3f : 0.01f;
}

/* A short training would spend itself on warming up. */
static uint64_t warmup_of(const schedule_args *a, const tide_training_recipe *recipe, uint64_t steps) {
    if (a->warmup != UINT64_MAX) return a->warmup;
    return recipe->warmup_steps < steps / 10 ? recipe->warmup_steps : steps / 10;
}

tide_status check_schedule_args(const schedule_args *a) {
    tide_curve curve;
    if (!find_curve(a->curve, &curve))
        return complain(TIDE_E_ARGUMENT, "--schedule: \"%s\" is not constant, step, cosine or linear", a->curve);
    if (a->rate > (double)FLT_MAX) return complain(TIDE_E_ARGUMENT, "--learning-rate must fit a float");
    if ((curve == TIDE_CURVE_STEP) != (a->every > 0))
        return complain(TIDE_E_ARGUMENT, "--schedule step and --decay-every go together");
    if (a->factor > 1) return complain(TIDE_E_ARGUMENT, "--decay-factor is a share from 0 to 1");
    return TIDE_OK;
}

void fill_schedule(const schedule_args *a, const tide_training_recipe *recipe, uint64_t steps, tide_schedule *out) {
    tide_schedule_init(out);
    (void)find_curve(a->curve, &out->curve); /* checked before */
    out->warmup_steps = warmup_of(a, recipe, steps);
    out->period_steps = a->every;
    if (a->factor >= 0) out->factor = (float)a->factor;
    out->total_steps = steps;
}
