/* What tidemark train learns from: data sets from the command line. */
#ifndef TIDE_CLI_TRAIN_DATA_H
#define TIDE_CLI_TRAIN_DATA_H

#include "cli.h"

typedef struct data_args {
    const char *data;               /* digits, grammar or a path; NULL: what suits the model */
    uint32_t samples, test_samples; /* 0: 8192 and 1000, of files all and at most 1000 */
    const char *tokenizer;          /* of a text: a folder; NULL: bytes are the tokens */
    uint64_t seed;
    bool no_augment;  /* of pictures */
    uint32_t threads; /* that decode pictures; 0: as many as there are cores */
} data_args;

/* The rows of data_args for a command's table. */
#define DATA_OPTIONS(d)                                                                                                \
    {"--data", ARG_TEXT, &(d).data, "NAME|PATH",                                                                       \
     "digits (drawn), grammar (sentences), a folder of pictures (PNG, JPEG; a folder per class), of MNIST, "           \
     "CIFAR-10 or "                                                                                                    \
     "CIFAR-100, a file of these or of text [by model]"},                                                              \
        {"--tokenizer", ARG_TEXT, &(d).tokenizer, "FOLDER",                                                            \
         "GPT-2's vocab.json and merges.txt, for a file of text [bytes]"},                                             \
        {"--no-augment", ARG_FLAG, &(d).no_augment, NULL,                                                              \
         "take pictures as they are, without random crops and flips"},                                                 \
        {"--decode-threads", ARG_COUNT, &(d).threads, "N", "that decode pictures; they change no sample [all cores]"}, \
        {"--samples", ARG_COUNT, &(d).samples, "N", "samples of an epoch [8192, of files all]"}, {                     \
        "--test-samples", ARG_COUNT, &(d).test_samples, "N",                                                           \
            "samples of the evaluation at the end [1000; 100 of large images]"                                         \
    }

/* Borrows from itself: it stays where it is. */
typedef struct train_data {
    tide_data_files *files;        /* NULL: none */
    tide_tokenizer *tokenizer;     /* NULL: none */
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
