/* The address x time map of a placement as SVG. */
#ifndef TIDE_CLI_PLACE_SVG_H
#define TIDE_CLI_PLACE_SVG_H

#include <tidemark/place.h>

typedef struct place_picture {
    const tide_buffers *buffers;
    const uint64_t *offsets;
    size_t n;
    uint64_t height, capacity; /* capacity 0: none to draw */
} place_picture;

tide_status write_place_svg(const place_picture *picture, const char *path);

#endif
