/* One step of a network of the library on a machine profile: what tests of plans plan for. */
#ifndef TIDE_TESTS_NETWORK_H
#define TIDE_TESTS_NETWORK_H

#include <tidemark/tidemark.h>

typedef struct network {
    tide_machine machine;
    tide_model *model;
    tide_step *step;
    const tide_program *program; /* of the step */
} network;

/* Ends the test on failure. machine: a profile's name. */
network network_make(const char *spec, uint32_t batch, const char *machine);
void network_free(network *n);

#endif
