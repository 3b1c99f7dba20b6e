/* A program's residencies as items of the placement engine: what policy liveness has to place. */
#ifndef TIDE_PLAN_PLACE_PLAN_H
#define TIDE_PLAN_PLACE_PLAN_H

#include <tidemark/plan.h>

#include "plan/place/place.h"

/* *items and *tensors (the tensor each item is called after; TIDE_NONE: a workspace) are freed with free(). */
tide_status tide__place_items(const tide_program *program, const tide_machine *machine, tide__place_item **items,
                              tide_id **tensors, size_t *n);

#endif
