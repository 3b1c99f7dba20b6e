/* A small training to test with: a device, a model, drawn digits and the options of a trainer, ready to be changed. */
#ifndef TIDE_TESTS_TRAINING_H
#define TIDE_TESTS_TRAINING_H

#include <tidemark/tidemark.h>

typedef struct training {
    tide_device *device;
    tide_model *model;
    tide_machine machine; /* the profile "cpu" */
    tide_digits digits;
    tide_data data; /* 100 samples */
    tide_trainer_options options;
} training;

/* One thread; images of 1 x 28 x 28, ten classes. Fails the test on error. */
void training_open(training *t, const char *model, uint32_t batch);
void training_open_on(training *t, const char *device, const char *model, uint32_t batch);
void training_close(training *t);

tide_trainer *training_start(const training *t);
/* Steps the trainer; the last loss. */
float training_run(tide_trainer *trainer, int steps);
uint64_t training_hash(tide_trainer *trainer);

#endif
