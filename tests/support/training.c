/* See training.h. */
#include "support/training.h"

#include "support/test.h"

void training_open(training *t, const char *model, uint32_t batch) { training_open_on(t, "cpu", model, batch); }

void training_open_on(training *t, const char *device, const char *model, uint32_t batch) {
    tide_device_options d;
    tide_model_options m;
    tide_device_options_init(&d);
    tide_model_options_init(&m);
    d.threads = 1;
    m.batch = batch;
    m.channels = 1;
    m.height = m.width = 28;
    m.classes = 10;
    assert_ok(tide_machine_load("cpu", &t->machine));
    assert_ok(tide_device_open(device, &d, &t->device));
    assert_ok(tide_model_create(model, &m, &t->model));
    t->digits = (tide_digits){.seed = 3, .channels = 1, .height = 28, .width = 28};
    assert_ok(tide_data_digits(&t->digits, 100, &t->data));
    tide_trainer_options_init(&t->options);
    t->options.model = t->model;
    t->options.device = t->device;
    t->options.machine = &t->machine;
    t->options.data = &t->data;
    t->options.plan.effort = TIDE_EFFORT_LOW; /* any plan will do */
}

void training_close(training *t) {
    tide_model_destroy(t->model);
    tide_device_close(t->device);
}

tide_trainer *training_start(const training *t) {
    tide_trainer *trainer;
    assert_ok(tide_trainer_create(&t->options, NULL, &trainer));
    return trainer;
}

float training_run(tide_trainer *trainer, int steps) {
    float loss = 0;
    for (int i = 0; i < steps; i++) assert_ok(tide_trainer_step(trainer, &loss, NULL));
    return loss;
}

uint64_t training_hash(tide_trainer *trainer) {
    uint64_t hash;
    assert_ok(tide_trainer_hash(trainer, &hash));
    return hash;
}
