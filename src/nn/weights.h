/* Weights by name from a safetensors file, for a network that trains or only looks. */
#ifndef TIDE_NN_WEIGHTS_H
#define TIDE_NN_WEIGHTS_H

#include "nn/network.h"
#include "nn/published.h"

/* All faults are told before anything changes. Where the last error is TIDE_E_FORMAT nothing has. options: NULL for none. */
tide_status tide__network_load_weights(tide__network *network, const tide__naming *naming, const char *path,
                                       const tide_weights_options *options);

#endif
