/* Recipes: every family begins with about equally likely classes and learns by its own recipe, from the first weights on. */
#include "support/test.h"

#include <math.h>
#include <tidemark/tidemark.h>

typedef struct family {
    const char *spec;
    uint32_t batch, size, classes; /* images of 1 x size x size; 0: tokens */
    int steps;
    double share; /* of the first loss, at most, is left at the end */
} family;

typedef struct lesson {
    tide_model *model;
    tide_digits digits;
    tide_text text;
    tide_data data;
    tide_machine machine;
    tide_device *device;
    tide_trainer *trainer;
} lesson;

static void open_data(lesson *l, const family *f) {
    l->digits = (tide_digits){3, 1, f->size, f->size, tide_model_labels(l->model) > 1};
    l->text = (tide_text){.seed = 3, .context = (uint32_t)tide_model_input(l->model).c};
    assert_ok(f->size ? tide_data_digits(&l->digits, 4096, &l->data) : tide_data_text(&l->text, 4096, &l->data));
}

static tide_trainer_options options_of(const lesson *l, const family *f) {
    const tide_training_recipe *r = tide_model_recipe(l->model);
    tide_trainer_options o;
    tide_trainer_options_init(&o);
    o.model = l->model;
    o.device = l->device;
    o.machine = &l->machine;
    o.data = &l->data;
    o.step.optimizer = r->optimizer;
    o.step.weight_decay = r->weight_decay;
    o.step.clip_norm = r->clip_norm;
    o.learning_rate = tide_recipe_rate(r, f->batch);
    o.schedule.warmup_steps = r->warmup_steps < (uint64_t)f->steps / 10 ? r->warmup_steps : (uint64_t)f->steps / 10;
    o.plan.policy = "liveness";
    return o;
}

static void open_lesson(lesson *l, const family *f) {
    tide_model_options m;
    tide_device_options d;
    tide_model_options_init(&m);
    tide_device_options_init(&d);
    m.batch = f->batch;
    m.channels = f->size ? 1 : 0;
    m.height = m.width = f->size;
    m.classes = f->classes;
    d.threads = 1;
    assert_ok(tide_model_create(f->spec, &m, &l->model));
    assert_ok(tide_machine_load("cpu", &l->machine));
    assert_ok(tide_device_open("cpu", &d, &l->device));
    open_data(l, f);
    tide_trainer_options o = options_of(l, f);
    assert_ok(tide_trainer_create(&o, NULL, &l->trainer));
}

static void close_lesson(lesson *l) {
    tide_trainer_destroy(l->trainer);
    tide_device_close(l->device);
    tide_model_destroy(l->model);
}

static void test_learning(void **state) {
    (void)state;
    static const family families[] = {
        {"mlp:784,64,10", 16, 28, 10, 80, 0.4},   {"lenet", 16, 28, 10, 80, 0.4},
        {"resnet-cifar:1", 32, 28, 10, 60, 0.7},  {"unet:4", 4, 32, 2, 60, 0.6},
        {"gpt2:2,32,2,32,256", 8, 0, 0, 80, 0.8}, {"lstm:1,48,16,256", 16, 0, 0, 80, 0.7},
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        lesson l = {0};
        float first, loss = 0;
        double sum = 0;
        open_lesson(&l, &families[i]);
        assert_ok(tide_trainer_step(l.trainer, &first, NULL));
        for (int k = 1; k < families[i].steps; k++) {
            assert_ok(tide_trainer_step(l.trainer, &loss, NULL));
            if (k >= families[i].steps - 10) sum += (double)loss / 10;
        }
        if (!(sum < families[i].share * (double)first))
            fail_msg("%s: from %g to %g in %d steps", families[i].spec, (double)first, sum, families[i].steps);
        close_lesson(&l);
    }
}

/* Scores of several units at the start are what made deep networks diverge. */
static void test_first_loss(void **state) {
    (void)state;
    static const family families[] = {
        {"vgg11", 2, 32, 10, 10, 0}, {"resnet18", 4, 32, 10, 10, 0}, {"densenet121", 4, 32, 10, 10, 0}};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        lesson l = {0};
        float loss;
        open_lesson(&l, &families[i]);
        assert_ok(tide_trainer_step(l.trainer, &loss, NULL));
        if (fabs((double)loss - log(10)) > 0.6) fail_msg("%s: the first loss is %g", families[i].spec, (double)loss);
        close_lesson(&l);
    }
}

static void test_rates(void **state) {
    (void)state;
    const tide_training_recipe sgd = {.optimizer = TIDE_MOMENTUM, .learning_rate = 0.1f, .base_batch = 256},
                               adam = {.optimizer = TIDE_ADAMW,
                                       .learning_rate = 0.1f,
                                       .base_batch = 256,
                                       .rate_by_root = true};
    assert_true(tide_recipe_rate(&sgd, 256) == 0.1f && tide_recipe_rate(&adam, 256) == 0.1f);
    assert_true(fabs((double)tide_recipe_rate(&sgd, 64) - 0.025) < 1e-8);
    assert_true(fabs((double)tide_recipe_rate(&adam, 64) - 0.05) < 1e-8);
    /* Enough for plain networks to begin with a small batch, and not too much with a large one. */
    static const char *const plain[] = {"alexnet", "alexnet-owt", "vgg16"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        tide_model *model;
        assert_ok(tide_model_create(plain[i], NULL, &model));
        const tide_training_recipe *r = tide_model_recipe(model);
        assert_true(fabs((double)tide_recipe_rate(r, 16) - 0.005) < 1e-8);
        assert_true(fabs((double)tide_recipe_rate(r, 256) - 0.02) < 1e-8);
        tide_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_first_loss),
        cmocka_unit_test(test_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
