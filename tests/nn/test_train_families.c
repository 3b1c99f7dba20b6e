/* Every family of models trains on the CPU device: to the same bits whatever the plan, and along its gradient. */
#include "support/test.h"

#include <math.h>
#include <tidemark/tidemark.h>
#include <unistd.h>

enum { STEPS = 3, MAX_SWAPS = 4 };

typedef struct family {
    const char *spec;
    uint32_t batch, size; /* images are size x size; 0: tokens */
    uint32_t classes;
    const char *rerun[2]; /* an op and the op before which it runs again */
    bool large;           /* trains on one number of threads only; too steep to follow */
    tide_dtype dtype;
} family;

static const family families[] = {
    {"gpt2:2,32,4,12,256", 3, 0, 0, {"h.0.mlp.gelu", "h.0.mlp.c_proj.bwd-weights"}, false, TIDE_F32},
    {"lstm:2,24,6,256", 4, 0, 0, {NULL, NULL}, false, TIDE_F32},
    {"unet:4", 2, 32, 2, {"down1.relu1", "down1.conv2.bwd-weights"}, false, TIDE_F32},
    {"densenet121", 2, 32, 10, {"denseblock1.denselayer1.norm1", "denseblock1.denselayer1.relu1.bwd"}, true, TIDE_F32},
    {"gpt2:2,32,4,12,256", 3, 0, 0, {"h.0.mlp.gelu", "h.0.mlp.c_proj.bwd-weights"}, true, TIDE_BF16},
    {"lstm:2,24,6,256", 4, 0, 0, {NULL, NULL}, true, TIDE_BF16},
    {"unet:4", 2, 32, 2, {"down1.relu1", "down1.conv2.bwd-weights"}, true, TIDE_BF16},
};
#define N_FAMILIES (sizeof families / sizeof *families)

/* ---- training ---- */

typedef struct result {
    float loss[STEPS];
    uint64_t hash, arena_bytes, saved_bytes;
    uint32_t n_reruns;
} result;

typedef struct setup {
    const family *family;
    const char *policy, *decisions;
    uint32_t threads;
    float learning_rate;
    tide_step_options step;
} setup;

static setup setup_of(const family *f, const char *policy, uint32_t threads) {
    setup s = {.family = f, .policy = policy, .threads = threads, .learning_rate = 0.01f};
    tide_step_options_init(&s.step);
    s.step.optimizer = TIDE_ADAMW;
    s.step.dtype = f->dtype;
    s.step.weight_decay = 0.01f;
    s.step.clip_norm = 1;
    return s;
}

static tide_model *open_model(const family *f) {
    tide_model_options o;
    tide_model *model;
    tide_model_options_init(&o);
    o.batch = f->batch;
    o.channels = f->size ? 1 : 0;
    o.height = o.width = f->size;
    o.classes = f->classes;
    assert_ok(tide_model_create(f->spec, &o, &model));
    return model;
}

/* An epoch is one batch, so that every step sees the same samples. */
typedef struct samples {
    tide_digits digits;
    tide_text text;
    tide_data data;
} samples;

static void open_samples(const tide_model *model, samples *s) {
    tide_shape in = tide_model_input(model);
    s->text = (tide_text){.seed = 3, .context = (uint32_t)in.c};
    s->digits = (tide_digits){3, (uint32_t)in.c, (uint32_t)in.h, (uint32_t)in.w, tide_model_labels(model) > 1};
    if (tide_model_takes_tokens(model))
        assert_ok(tide_data_text(&s->text, (uint64_t)in.n, &s->data));
    else
        assert_ok(tide_data_digits(&s->digits, (uint64_t)in.n, &s->data));
}

static result train(const setup *s) {
    result r = {.hash = 0};
    samples set;
    tide_device *device;
    tide_device_options d;
    tide_machine machine;
    tide_trainer_options o;
    tide_trainer *trainer;
    tide_model *model = open_model(s->family);
    tide_device_options_init(&d);
    d.threads = s->threads;
    assert_ok(tide_device_open("cpu", &d, &device));
    assert_ok(tide_machine_load("cpu", &machine));
    open_samples(model, &set);
    tide_trainer_options_init(&o);
    o.model = model;
    o.device = device;
    o.machine = &machine;
    o.data = &set.data;
    o.step = s->step;
    o.learning_rate = s->learning_rate;
    o.plan.policy = s->policy;
    o.plan.decisions = s->decisions;
    assert_ok(tide_trainer_create(&o, NULL, &trainer));
    for (int i = 0; i < STEPS; i++) {
        tide_step_report report;
        assert_ok(tide_trainer_step(trainer, &r.loss[i], &report));
        r.saved_bytes = report.saved_bytes;
        r.n_reruns = report.n_reruns;
    }
    assert_ok(tide_trainer_hash(trainer, &r.hash));
    r.arena_bytes = tide_plan_arena_bytes(tide_trainer_plan(trainer));
    tide_trainer_destroy(trainer);
    tide_device_close(device);
    tide_model_destroy(model);
    return r;
}

static void assert_same_bits(const char *what, const result *a, const result *b) {
    if (a->hash != b->hash || memcmp(a->loss, b->loss, sizeof a->loss) != 0)
        fail_msg("%s: other bits: losses %.9g and %.9g", what, (double)a->loss[STEPS - 1], (double)b->loss[STEPS - 1]);
}

/* ---- hand-made plans ---- */

/* Activations that wait longest between two ops, from the program as the device has it. */
typedef struct absence {
    tide_id tensor, after, before;
} absence;

static uint32_t find_absences(const tide_program *p, absence *out) {
    uint32_t n_tensors = tide_program_tensor_count(p), n = 0;
    tide_id *last = calloc(n_tensors, sizeof *last);
    assert_non_null(last);
    for (tide_id op = 0; op < tide_program_op_count(p); op++) {
        const tide_op *o = tide_program_op(p, op);
        for (uint32_t i = 0; i < o->n_writes; i++) last[o->writes[i]] = op;
        for (uint32_t i = 0; i < o->n_reads; i++) {
            tide_id t = o->reads[i];
            bool far = op - last[t] > 12 && tide_program_tensor(p, t)->cls == TIDE_CLASS_ACTIVATION;
            if (far && n < MAX_SWAPS) out[n++] = (absence){t, last[t], op};
            last[t] = op;
        }
    }
    free(last);
    return n;
}

static void write_decisions(const family *f, const char *path) {
    tide_device *device;
    tide_step_options o;
    tide_step *step;
    absence list[MAX_SWAPS];
    tide_model *model = open_model(f);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_ok(tide_device_open("cpu", NULL, &device));
    o = setup_of(f, "manual", 1).step;
    o.device = device;
    assert_ok(tide_step_create(model, &o, &step));
    const tide_program *p = tide_step_program(step);
    uint32_t n = find_absences(p, list);
    assert_int_equal(n, MAX_SWAPS);
    fprintf(file, "{\"tidemark\":\"decisions\",\"version\":1}\n");
    for (uint32_t i = 0; i < n; i++)
        fprintf(file, "{\"swap\":\"%s\",\"tier\":\"%s\",\"after\":\"%s\",\"before\":\"%s\"}\n",
                tide_program_tensor(p, list[i].tensor)->name, i % 2 ? "disk" : "ram",
                tide_program_op(p, list[i].after)->name, tide_program_op(p, list[i].before)->name);
    if (f->rerun[0]) fprintf(file, "{\"rerun\":\"%s\",\"before\":\"%s\"}\n", f->rerun[0], f->rerun[1]);
    assert_int_equal(fclose(file), 0);
    tide_step_destroy(step);
    tide_device_close(device);
    tide_model_destroy(model);
}

static void test_plans_agree(void **state) {
    const family *f = *state;
    char path[] = "/tmp/tide-decisions-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_decisions(f, path);
    for (uint32_t threads = f->large ? MAX_THREADS : 1; threads <= MAX_THREADS; threads++) {
        setup none = setup_of(f, "none", threads), live = setup_of(f, "liveness", threads),
              manual = setup_of(f, "manual", threads);
        manual.decisions = path;
        result a = train(&none), b = train(&live), c = train(&manual);
        assert_same_bits("liveness", &a, &b);
        assert_same_bits("manual", &a, &c);
        assert_true(b.arena_bytes < a.arena_bytes);
        assert_true(c.saved_bytes > 0);
        assert_int_equal(c.n_reruns, f->rerun[0] ? 1 : 0);
        assert_true(a.loss[STEPS - 1] < a.loss[0]);
    }
    unlink(path);
}

/* ---- gradients ---- */

/* Going a little along -g lowers the loss by rate * <slope, g>; along -g / |g|, by clipping, by rate * <slope, g> / |g|.
 * When g is the slope, the first is the square of the second. */
static void test_follows_the_slope(void **state) {
    const family *f = *state;
    setup plain = setup_of(f, "liveness", 1), clipped;
    plain.step.optimizer = TIDE_SGD;
    plain.step.weight_decay = 0;
    plain.step.clip_norm = 0;
    plain.learning_rate = 1e-4f;
    clipped = plain;
    clipped.step.clip_norm = 1e-3f; /* far below any norm here */
    clipped.learning_rate = 1;
    result a = train(&plain), b = train(&clipped);
    double along = (double)(a.loss[0] - a.loss[1]) / 1e-4,
           unit = (double)(b.loss[0] - b.loss[1]) / (double)clipped.step.clip_norm;
    if (fabs(along - unit * unit) > 0.1 * along)
        fail_msg("%s: <slope, g> is %g, its square over |g|^2 %g", f->spec, along, unit * unit);
}

/* ---- data ---- */

static void test_text(void **state) {
    (void)state;
    enum { CONTEXT = 40 };
    static const unsigned char bytes[] = "all that glitters is not gold; often have you heard that told";
    tide_text grammar = {.seed = 1, .context = CONTEXT}, window = {1, CONTEXT, bytes, sizeof bytes - 1},
              other = grammar;
    tide_text all[] = {grammar, window};
    other.seed = 2;
    for (int k = 0; k < 2; k++) {
        tide_data data;
        float tokens[CONTEXT], again[CONTEXT];
        int32_t labels[CONTEXT];
        assert_ok(tide_data_text(&all[k], 10, &data));
        assert_int_equal(data.labels, CONTEXT);
        for (uint64_t i = 0; i < 10; i++) {
            assert_ok(data.sample(data.context, i, tokens, labels));
            assert_ok(data.sample(data.context, i, again, labels));
            assert_memory_equal(tokens, again, sizeof tokens);
            for (int j = 0; j + 1 < CONTEXT; j++) assert_int_equal(labels[j], (int32_t)tokens[j + 1]);
            for (int j = 0; j < CONTEXT; j++) assert_in_range(labels[j], 1, 255);
        }
    }
    window.context = sizeof bytes - 1;
    tide_data data;
    assert_status(tide_data_text(&window, 10, &data), TIDE_E_ARGUMENT);
    other.context = 0;
    assert_status(tide_data_text(&other, 10, &data), TIDE_E_ARGUMENT);
}

/* A model that learns a label per token does not take digits. */
static void test_refused_labels(void **state) {
    (void)state;
    static const family f = {"unet:4", 1, 16, 2, {NULL, NULL}, false, TIDE_F32};
    tide_model *model = open_model(&f);
    tide_digits digits = {1, 1, 16, 16, false};
    tide_data data;
    tide_device *device;
    tide_machine machine;
    tide_trainer_options o;
    tide_trainer *trainer = NULL;
    assert_ok(tide_data_digits(&digits, 4, &data));
    data.classes = 2;
    assert_ok(tide_device_open("cpu", NULL, &device));
    assert_ok(tide_machine_load("cpu", &machine));
    tide_trainer_options_init(&o);
    o.model = model;
    o.device = device;
    o.machine = &machine;
    o.data = &data;
    assert_status(tide_trainer_create(&o, NULL, &trainer), TIDE_E_ARGUMENT);
    assert_error_has("256 labels per sample");
    tide_device_close(device);
    tide_model_destroy(model);
}

static void copy_name(char *to, size_t size, const char *test, const char *spec) {
    snprintf(to, size, "%s %s", test, spec);
}

int main(void) {
    static struct CMUnitTest tests[2 * N_FAMILIES + 2];
    static char names[2 * N_FAMILIES][64];
    static family list[N_FAMILIES];
    size_t n = 0;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        family *f = &list[i];
        *f = families[i];
        copy_name(names[n], sizeof names[n], f->dtype ? "plans agree, bf16:" : "plans agree:", f->spec);
        tests[n] = (struct CMUnitTest){names[n], test_plans_agree, NULL, NULL, f};
        n++;
        if (f->large) continue;
        copy_name(names[n], sizeof names[n], "follows the slope:", f->spec);
        tests[n] = (struct CMUnitTest){names[n], test_follows_the_slope, NULL, NULL, f};
        n++;
    }
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_text);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_refused_labels);
    return _cmocka_run_group_tests("families", tests, n, NULL, NULL);
}
