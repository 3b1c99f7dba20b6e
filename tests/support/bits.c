/* See bits.h. */
#include "support/bits.h"

#include <tidemark/tidemark.h>

#include "support/test.h"

enum { STEPS = BITS_STEPS, BUDGETS = 5, TIERS = 3 };

/* ---- the axes ---- */

typedef struct family {
    const char *spec;
    uint32_t batch, size; /* images are size x size; 0: tokens */
    tide_optimizer optimizer;
    uint32_t accumulate;
    float clip_norm;
} family;

static const family families[] = {
    {"mlp:784,48,32,10", 8, 28, TIDE_SGD, 0, 0},    {"lenet", 3, 28, TIDE_MOMENTUM, 3, 0},
    {"resnet-cifar:1", 2, 28, TIDE_MOMENTUM, 4, 0}, {"unet:4", 2, 32, TIDE_ADAM, 0, 0},
    {"gpt2:2,32,4,12,256", 3, 0, TIDE_ADAMW, 0, 1}, {"lstm:2,24,6,256", 4, 0, TIDE_ADAM, 0, 0.5f},
    {"densenet121", 2, 32, TIDE_MOMENTUM, 0, 0}, /* from here on large */
    {"resnet50", 2, 32, TIDE_MOMENTUM, 0, 0},
};
enum { SMALL_FAMILIES = 6, FAMILIES = sizeof families / sizeof *families };

typedef struct way {
    const char *policy;
    tide_train_mode mode;
    uint32_t least; /* percent of the unconstrained arena that is always enough; 0: the policy's minimum */
} way;

static const way ways[] = {
    {"liveness", TIDE_MODE_PLANNED, 0}, {"checkpoint", TIDE_MODE_PLANNED, 0}, {"superneurons", TIDE_MODE_PLANNED, 0},
    {"autoswap", TIDE_MODE_PLANNED, 0}, {"capuchin", TIDE_MODE_PLANNED, 0},   {"cache", TIDE_MODE_PLANNED, 0},
    {"delta", TIDE_MODE_PLANNED, 0},    {"dtr", TIDE_MODE_PLANNED, 0},        {"hybrid", TIDE_MODE_PLANNED, 0},
    {"delta", TIDE_MODE_ONLINE, 60},    {"cache", TIDE_MODE_ONLINE, 60},      {"dtr", TIDE_MODE_ONLINE, 90},
    {"hybrid", TIDE_MODE_AUTO, 60},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Both: RAM has a tenth of the unconstrained arena, the rest goes to disk. */
enum { RAM, DISK, BOTH, RAM_PART = 10 };
static const char *const tier_names[TIERS] = {"ram", "disk", "ram and disk"};

static const char *mode_name(tide_train_mode mode) {
    return mode == TIDE_MODE_PLANNED ? "planned" : mode == TIDE_MODE_ONLINE ? "online" : "auto";
}

/* ---- one setting: a family on a number of threads with one tier ---- */

typedef struct setting {
    tide_device *device;
    tide_model *model;
    tide_machine machine;
    tide_digits digits;
    tide_text text;
    tide_data data;
    tide_trainer_options options;
} setting;

static void open_samples(setting *s) {
    tide_shape in = tide_model_input(s->model);
    s->text = (tide_text){.seed = 3, .context = (uint32_t)in.c};
    s->digits = (tide_digits){3, (uint32_t)in.c, (uint32_t)in.h, (uint32_t)in.w, tide_model_labels(s->model) > 1};
    if (tide_model_takes_tokens(s->model))
        assert_ok(tide_data_text(&s->text, 13, &s->data)); /* epochs end in the middle of a batch */
    else
        assert_ok(tide_data_digits(&s->digits, 13, &s->data));
}

static void open_setting(const char *device, const family *f, uint32_t tier, uint32_t threads, setting *s) {
    tide_device_options d;
    tide_device_info info;
    tide_model_options m;
    tide_machine all;
    tide_device_options_init(&d);
    d.threads = threads;
    tide_model_options_init(&m);
    m.batch = f->batch;
    m.channels = f->size ? 1 : 0;
    m.height = m.width = f->size;
    m.classes = f->size ? 10 : 0;
    if (strncmp(f->spec, "unet", 4) == 0) m.classes = 2;
    assert_ok(tide_device_open(device, &d, &s->device));
    assert_ok(tide_model_create(f->spec, &m, &s->model));
    assert_ok(tide_machine_load("cpu", &all));
    assert_ok(tide_device_get_info(s->device, &info));
    if (all.align_bytes < info.align_bytes) all.align_bytes = info.align_bytes; /* as the trainer does */
    s->machine = all;
    if (tier != BOTH) tide_machine_without(&all, tier == RAM ? TIDE_TIER_DISK : TIDE_TIER_RAM, &s->machine);
    open_samples(s);
    tide_trainer_options_init(&s->options);
    s->options.model = s->model;
    s->options.device = s->device;
    s->options.machine = &s->machine;
    s->options.data = &s->data;
    s->options.learning_rate = 0.01f;
    s->options.step.optimizer = f->optimizer;
    s->options.step.accumulate = f->accumulate;
    s->options.step.clip_norm = f->clip_norm;
    s->options.step.weight_decay = 0.001f;
    s->options.plan.effort = TIDE_EFFORT_LOW;
}

static void close_setting(setting *s) {
    tide_model_destroy(s->model);
    tide_device_close(s->device);
}

/* ---- one training ---- */

typedef struct result {
    float loss[STEPS];
    uint64_t hash, arena_bytes;
    uint64_t tier_bytes[TIDE_MACHINE_MAX_TIERS];
    bool moved, rerun;
} result;

static tide_status train(const setting *s, result *r) {
    tide_trainer *trainer;
    tide_status status = tide_trainer_create(&s->options, NULL, &trainer);
    if (status != TIDE_OK) return status;
    *r = (result){.hash = 0};
    for (int i = 0; i < STEPS && status == TIDE_OK; i++) {
        tide_step_report report = {0};
        status = tide_trainer_step(trainer, &r->loss[i], &report);
        r->moved = r->moved || report.saved_bytes > 0;
        r->rerun = r->rerun || report.n_reruns > 0;
        if (report.arena_bytes > r->arena_bytes) r->arena_bytes = report.arena_bytes;
        for (uint32_t t = 0; t < s->machine.n_tiers; t++)
            if (report.tier_bytes[t] > r->tier_bytes[t]) r->tier_bytes[t] = report.tier_bytes[t];
    }
    if (status == TIDE_OK) status = tide_trainer_hash(trainer, &r->hash);
    tide_trainer_destroy(trainer);
    return status;
}

/* ---- what is measured once ---- */

struct bits_memory {
    bool known[FAMILIES][MAX_THREADS];
    result reference[FAMILIES][MAX_THREADS]; /* policy none */
    uint64_t whole[FAMILIES][MAX_THREADS];   /* arena of liveness */
    uint64_t least[FAMILIES][WAYS][TIERS][MAX_THREADS];
};

static void find_reference(const setting *s, result *reference, uint64_t *whole) {
    setting none = *s, live = *s;
    result r;
    none.options.plan.policy = "none";
    assert_ok(train(&none, reference));
    live.options.plan.policy = "liveness";
    assert_ok(train(&live, &r));
    *whole = r.arena_bytes;
}

/* The smallest budget that the way can do, about. */
static uint64_t find_least(const setting *s, const way *w, uint64_t whole) {
    tide_step_options o = s->options.step;
    tide_plan_options plan = s->options.plan;
    tide_step *step;
    tide_smallest smallest;
    if (w->least) return whole / 100 * w->least;
    o.device = s->device;
    o.machine = &s->machine;
    plan.policy = w->policy;
    assert_ok(tide_step_create(s->model, &o, &step));
    assert_ok(tide_plan_smallest(tide_step_program(step), &s->machine, &plan, 0.05, &smallest));
    tide_step_destroy(step);
    return smallest.works_bytes;
}

/* ---- points ---- */

void bits_open(bits_matrix *m, const char *device, bool large) {
    uint32_t threads = strcmp(device, "cpu") == 0 ? MAX_THREADS : 1;
    *m = (bits_matrix){.device = device, .size = {large ? FAMILIES : SMALL_FAMILIES, WAYS, BUDGETS, TIERS, threads}};
    m->memory = calloc(1, sizeof *m->memory);
    assert_non_null(m->memory);
}

bool bits_is_large(bits_point p) { return p.at[BITS_FAMILY] >= SMALL_FAMILIES; }

void bits_close(bits_matrix *m) { free(m->memory); }

uint32_t bits_count(const bits_matrix *m) {
    uint32_t n = 1;
    for (int a = 0; a < BITS_AXES; a++) n *= m->size[a];
    return n;
}

bits_point bits_nth(const bits_matrix *m, uint32_t i) {
    bits_point p;
    for (int a = BITS_AXES; a-- > 0; i /= m->size[a]) p.at[a] = i % m->size[a];
    return p;
}

/* From the unconstrained arena down to the least, in equal steps. The least is looked for where it is needed: that
 * takes longer than a training. */
static uint64_t budget_at(const setting *s, const way *w, uint64_t whole, uint32_t index, uint64_t *least) {
    if (index == 0) return whole;
    if (!*least) *least = find_least(s, w, whole);
    return *least >= whole ? *least : whole - (whole - *least) * index / (BUDGETS - 1);
}

/* Policies that decide as they go, planned or not: what works in a budget need not work in a larger one. */
static bool is_shortsighted(const tide_trainer_options *o) {
    const char *policy = o->plan.policy;
    return o->mode != TIDE_MODE_PLANNED || strcmp(policy, "delta") == 0 || strcmp(policy, "cache") == 0 ||
           strcmp(policy, "dtr") == 0;
}

/* Such a policy may ask for more, up to a little above everything. */
static tide_status train_raised(bits_matrix *m, setting *s, uint64_t whole, result *r) {
    tide_budgets *b = &s->options.plan.budgets;
    tide_status status = train(s, r);
    bool raised = false;
    while (status == TIDE_E_FIT && is_shortsighted(&s->options) && b->arena_bytes < whole + whole / 4) {
        b->arena_bytes += whole / 10;
        raised = true;
        status = train(s, r);
    }
    m->n_raised += raised;
    return status;
}

static void limit_ram(setting *s, uint64_t bytes) {
    s->options.plan.budgets.tier_bytes[tide_machine_find_tier(&s->machine, TIDE_TIER_RAM)] = bytes;
}

static bool is_within(const result *r, const tide_budgets *b) {
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++)
        if (r->tier_bytes[t] > b->tier_bytes[t]) return false;
    return r->arena_bytes <= b->arena_bytes;
}

static uint32_t tiers_used(const result *r) {
    uint32_t n = 0;
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) n += r->tier_bytes[t] > 0;
    return n;
}

void bits_check(bits_matrix *m, bits_point p) {
    uint32_t fi = p.at[BITS_FAMILY], wi = p.at[BITS_WAY], ti = p.at[BITS_TIER], threads = p.at[BITS_THREADS];
    const way *w = &ways[wi];
    struct bits_memory *k = m->memory;
    setting s;
    result r;
    open_setting(m->device, &families[fi], ti, threads + 1, &s);
    if (!k->known[fi][threads]) find_reference(&s, &k->reference[fi][threads], &k->whole[fi][threads]);
    k->known[fi][threads] = true;
    uint64_t whole = k->whole[fi][threads], *least = &k->least[fi][wi][ti][threads];
    if (ti == BOTH) limit_ram(&s, whole / RAM_PART);
    s.options.plan.policy = w->policy;
    s.options.mode = w->mode;
    s.options.plan.budgets.arena_bytes = budget_at(&s, w, whole, p.at[BITS_BUDGET], least);
    tide_status status = train_raised(m, &s, whole, &r);
    const result *expected = &k->reference[fi][threads];
    bool same = status == TIDE_OK && r.hash == expected->hash && memcmp(r.loss, expected->loss, sizeof r.loss) == 0;
    uint64_t budget = s.options.plan.budgets.arena_bytes;
    bool within = is_within(&r, &s.options.plan.budgets);
    close_setting(&s);
    if (!same || !within)
        fail_msg("%s: %s, %s by %s, %.0f %% of the arena, %s, %u threads: %s", m->device, families[fi].spec,
                 mode_name(w->mode), w->policy, 100 * (double)budget / (double)whole, tier_names[ti], threads + 1,
                 status != TIDE_OK ? tide_last_error()
                 : same            ? "over a budget"
                                   : "other bits");
    m->n_done++;
    m->n_moved += r.moved;
    m->n_rerun += r.rerun;
    m->n_both += tiers_used(&r) > 1;
}

const char *bits_losses(const bits_matrix *m, uint32_t fi, float loss[BITS_STEPS]) {
    setting s;
    result r;
    open_setting(m->device, &families[fi], RAM, 1, &s);
    s.options.plan.policy = "none";
    assert_ok(train(&s, &r));
    close_setting(&s);
    memcpy(loss, r.loss, sizeof r.loss);
    return families[fi].spec;
}
