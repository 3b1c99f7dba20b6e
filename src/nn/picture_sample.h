/* From a file to what a network takes: which part of a picture, decoded, resized and normalised. */
#ifndef TIDE_NN_PICTURE_SAMPLE_H
#define TIDE_NN_PICTURE_SAMPLE_H

#include <stdint.h>

#include <tidemark/status.h>

/* What becomes of the pictures. */
typedef struct tide__picture_rule {
    uint32_t channels, height, width;
    uint64_t seed;
    float least_area;
} tide__picture_rule;

/* channels are 1 or 3, sides at least 1. */
tide_status tide__picture_check_rule(const tide__picture_rule *rule);
/* The middle, to look at. Errors begin with the path. */
tide_status tide__picture_look(const char *path, const tide__picture_rule *rule, float *pixels);
/* A random part, perhaps flipped, to learn from: a function of the seed and `draw`. */
tide_status tide__picture_learn(const char *path, const tide__picture_rule *rule, uint64_t draw, float *pixels);

#endif
