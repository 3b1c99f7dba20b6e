/* What tidemark train learns from: data sets from the command line. */
#ifndef TIDE_CLI_TRAIN_DATA_H
#define TIDE_CLI_TRAIN_DATA_H

#include "cli.h"

typedef struct data_args {
    const char *data;               /* digits, grammar or a path; NULL: what suits the model */
    uint32_t samples, test_samples; /* 0: 8192 and 1000, of files all and at most 1000 */
    uint64_t seed;
    bool no_augment; /* of pictures */
} data_args;

/* Borrows from itself: it stays where it is. */
typedef struct train_data {
    tide_data_files *files;        /* NULL: none */
    tide_picture_folder *pictures; /* NULL: none */
    tide_digits train_digits, test_digits;
    tide_text train_text, test_text;
    tide_data train, test;
} train_data;

tide_status check_data_args(const data_args *args);
/* Opens files of images, and fills in what the command line leaves open of the model's shape. */
tide_status prepare_data(const data_args *args, const char *spec, model_args *model, train_data *data);
tide_status open_data(const data_args *args, const tide_model *model, train_data *data);
void close_data(train_data *data);

#endif
