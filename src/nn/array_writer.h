/* A safetensors file of a trainer's states: a header, then the data, both from one list of arrays. Checkpoints and files of
 * weights are written by it. */
#ifndef TIDE_NN_ARRAY_WRITER_H
#define TIDE_NN_ARRAY_WRITER_H

#include <stdio.h>

#include "nn/trainer.h"

/* "__metadata__" with its value. */
typedef void (*tide__metadata_fn)(FILE *stream, const tide_trainer *t);

/* whole: with optimizer state, for a training that goes on. Else the weights alone, and the array that a library wants under
 * two names twice. The file at the path is the old one or the complete new one. path: NULL on
 * ranks that only send what they own to rank 0. */
tide_status tide__arrays_save(tide_trainer *t, const char *path, bool whole, tide__metadata_fn metadata);

#endif
