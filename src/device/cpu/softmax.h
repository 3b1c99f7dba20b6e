/* What losses share: rows of scores, and labels, which are data from outside. */
#ifndef TIDE_DEVICE_CPU_SOFTMAX_H
#define TIDE_DEVICE_CPU_SOFTMAX_H

#include "device/cpu/kernel.h"

/* TIDE_E_ARGUMENT for the first label that is not a class. */
tide_status tide__check_labels(const int32_t *label, int64_t samples, int64_t pixels, int64_t classes);
/* Returns the row's loss; prob may lie on x. */
double tide__softmax_row(const float *x, int64_t classes, int32_t label, float *prob);

#endif
