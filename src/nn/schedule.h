/* What a trainer asks about a schedule before it follows one. */
#ifndef TIDE_NN_SCHEDULE_H
#define TIDE_NN_SCHEDULE_H

#include <tidemark/train.h>

#include "base/error.h"

tide_status tide__schedule_check(const tide_schedule *s);

#endif
