/* How own loops see a stored activation: images of groups of pixels of lanes.
 *
 *     element (n, g, p, l) lies at ((n * groups + g) * pixels + p) * lanes + l, channel = g * lanes + l
 *
 * nChw8c has 8 lanes, plain row-major 1. Channels from `channels` on are padding. */
#ifndef TIDE_DEVICE_CPU_VIEW_H
#define TIDE_DEVICE_CPU_VIEW_H

#include "device/cpu/kernel.h"

typedef struct tide__view {
    int64_t n, channels, groups, h, w, pixels;
    int lanes; /* 1 or 8 */
} tide__view;

static inline tide__view tide__view_of(const tide_shape *s) {
    int lanes = tide__is_blocked(s) ? 8 : 1;
    return (tide__view){s->n, s->c, (s->c + lanes - 1) / lanes, s->h, s->w, s->h * s->w, lanes};
}

/* Floats as stored, padding included. */
static inline int64_t tide__view_size(const tide__view *v) { return v->n * v->groups * v->pixels * v->lanes; }

/* First float of pixel 0 of group g of image n. */
static inline int64_t tide__view_at(const tide__view *v, int64_t n, int64_t g) {
    return (n * v->groups + g) * v->pixels * v->lanes;
}

/* First float of channel c of image n; those of its other pixels follow at a distance of `lanes`. */
static inline int64_t tide__view_channel(const tide__view *v, int64_t n, int64_t c) {
    return tide__view_at(v, n, c / v->lanes) + c % v->lanes;
}

/* Loops below this many floats run on one thread: waking the others would cost more. Changes no bits. */
#define TIDE__PARALLEL_FLOATS 16384

#endif
