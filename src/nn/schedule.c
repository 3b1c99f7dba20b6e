/* The learning rate over the steps. Invariant: a pure function of the schedule and the step's number. */
#include <math.h>
#include <tidemark/train.h>

#include "nn/schedule.h"

void tide_schedule_init(tide_schedule *s) { *s = (tide_schedule){.curve = TIDE_CURVE_CONSTANT, .factor = 0.1f}; }

static bool is_share(float x) { return x >= 0 && x <= 1; }

tide_status tide__schedule_check(const tide_schedule *s) {
    if ((unsigned)s->curve > TIDE_CURVE_LINEAR)
        return tide__fail(TIDE_E_ARGUMENT, "unknown curve %d of the learning rate", (int)s->curve);
    if (!is_share(s->factor) || !is_share(s->final_share))
        return tide__fail(TIDE_E_ARGUMENT, "factor and final share of a schedule are numbers from 0 to 1");
    if (s->curve == TIDE_CURVE_STEP && !s->period_steps)
        return tide__fail(TIDE_E_ARGUMENT, "a rate that falls in steps needs to know after how many");
    bool ends = s->curve == TIDE_CURVE_COSINE || s->curve == TIDE_CURVE_LINEAR;
    if (ends && s->total_steps <= s->warmup_steps)
        return tide__fail(TIDE_E_ARGUMENT, "%llu steps leave nothing of the schedule after %llu of warm-up",
                          (unsigned long long)s->total_steps, (unsigned long long)s->warmup_steps);
    return TIDE_OK;
}

/* From 1 at the first step after the warm-up to final_share at the last. */
static double falling(const tide_schedule *s, uint64_t after) {
    uint64_t last = s->total_steps - s->warmup_steps - 1;
    double done = last == 0 ? 0 : after >= last ? 1 : (double)after / (double)last;
    double left = s->curve == TIDE_CURVE_COSINE ? 0.5 + 0.5 * cos(3.14159265358979323846 * done) : 1 - done;
    return (double)s->final_share + (1 - (double)s->final_share) * left;
}

float tide_schedule_rate(const tide_schedule *s, float rate, uint64_t step) {
    if (step < s->warmup_steps) return (float)((double)rate * (double)(step + 1) / ((double)s->warmup_steps + 1));
    uint64_t after = step - s->warmup_steps, falls = s->period_steps ? after / s->period_steps : 0;
    switch (s->curve) {
    case TIDE_CURVE_CONSTANT: break;
    case TIDE_CURVE_STEP: return (float)((double)rate * pow((double)s->factor, (double)falls));
    case TIDE_CURVE_COSINE:
    case TIDE_CURVE_LINEAR: return (float)((double)rate * falling(s, after));
    }
    return rate;
}
