/* Placement by itself: offsets for buffers with lifetimes, so that all fit into as few bytes as their load allows.
 *
 *    offset ▲        ┌──────┐
 *           │ ┌──────┤  c   │        two buffers that are alive at the same time do not overlap
 *           │ │  b   ├──────┴───┐
 *           │ ├──────┴──┐   d   │
 *           │ │    a    └───────┘
 *           └─┴────────────────────▶ time
 */
#ifndef TIDEMARK_PLACE_H
#define TIDEMARK_PLACE_H

#include <tidemark/machine.h>
#include <tidemark/program.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_buffers tide_buffers;

typedef struct tide_buffer {
    const char *name;
    uint64_t size_bytes;
    uint64_t align_bytes;  /* a power of two */
    uint64_t fixed_offset; /* UINT64_MAX: free */
    uint32_t begin, end;   /* half-open, in any unit of time */
    uint32_t begin2, end2; /* a second lifetime at the same offset, after the first; begin2 == end2: none */
} tide_buffer;

/* Copies of these, names too (NULL is an empty one). What makes no sense is refused when they are placed. */
TIDE_API tide_status tide_buffers_create(const tide_buffer *buffers, size_t n, tide_buffers **out);
/* A CSV file (docs/formats.md); errors name file and line. */
TIDE_API tide_status tide_buffers_read_csv(const char *path, tide_buffers **out);
/* What policy liveness has to place; the program is borrowed until tide_buffers_destroy. */
TIDE_API tide_status tide_buffers_of_program(const tide_program *program, const tide_machine *machine,
                                             tide_buffers **out);
TIDE_API void tide_buffers_destroy(tide_buffers *buffers); /* NULL is fine */
TIDE_API size_t tide_buffers_count(const tide_buffers *buffers);
TIDE_API tide_buffer tide_buffers_get(const tide_buffers *buffers, size_t i); /* i must be in range */

/* auto: the heuristics, then the exact search if they miss the bound. exact: the same, but an error where the search cannot
 * be used. */
#define TIDE_PLACE_ALGORITHMS "auto, smartpool, first-fit, skyline, exact"

typedef struct tide_place_options {
    size_t size;             /* sizeof(tide_place_options) */
    uint64_t capacity_bytes; /* stop as soon as all fit; 0: as low as possible */
    uint64_t seed;
    double seconds;        /* of processor time, for the search after the quick heuristics; 0: none */
    const char *algorithm; /* one of TIDE_PLACE_ALGORITHMS; NULL: "auto" */
} tide_place_options;
TIDE_API void tide_place_options_init(tide_place_options *options);

typedef struct tide_place_result {
    size_t size;                /* sizeof(tide_place_result) */
    uint64_t height_bytes;      /* most of offset + size */
    uint64_t lower_bound_bytes; /* proved: no placement is lower */
    bool optimal;               /* the two are equal */
    const char *algorithm;      /* which one found it: a static string */
} tide_place_result;

/* offsets: one per buffer. result->size is set. The same for a seed wherever no time limit strikes. */
TIDE_API tide_status tide_buffers_place(const tide_buffers *buffers, const tide_place_options *options,
                                        uint64_t *offsets, tide_place_result *result);

#ifdef __cplusplus
}
#endif
#endif
