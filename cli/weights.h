/* Weights from files, for the commands that take them. */
#ifndef TIDE_CLI_WEIGHTS_H
#define TIDE_CLI_WEIGHTS_H

#include "cli.h"

typedef struct weights_args {
    const char *file; /* NULL: none */
    bool partial;
} weights_args;

/* The rows of weights_args for a command's table. */
#define WEIGHTS_OPTIONS(w)                                                           \
    {"--weights", ARG_TEXT, &(w).file, "FILE",                                       \
     "weights by name: safetensors of torchvision's, Hugging Face's or Tidemark's"}, \
    {                                                                                \
        "--partial-weights", ARG_FLAG, &(w).partial, NULL,                           \
            "take what fits of --weights; the rest begins fresh and is listed"       \
    }

tide_status check_weights_args(const weights_args *args);
/* For a load that says on stderr, line by line, what of the file does not fit. */
void fill_weights_options(weights_args *args, tide_weights_options *out);

#endif
