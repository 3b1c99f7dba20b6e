/* See <tidemark/place.h>: the placement engine for clients, with buffers by name. */
#include <tidemark/place.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "plan/place/csv.h"
#include "plan/place_plan.h"

_Static_assert(sizeof TIDE_PLACE_ALGORITHMS == sizeof TIDE__PLACE_ALGORITHMS, "the same list");

struct tide_buffers {
    tide__place_table table; /* of a CSV file or a client's: it owns the items then */
    tide__place_item *items;
    size_t n;
    const tide_program *program; /* else: and the tensor of each item; TIDE_NONE: a workspace */
    tide_id *tensors;
};

static tide_status fill_from_csv(const char *path, tide_buffers *b) {
    TIDE_TRY(tide__place_csv_read(path, &b->table));
    b->items = b->table.items;
    b->n = b->table.n;
    return TIDE_OK;
}

/* Bytes of all names, each with its 0. */
static size_t names_bytes(const tide_buffer *from, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += (from[i].name ? strlen(from[i].name) : 0) + 1;
    return bytes;
}

static tide_status fill_from_client(const tide_buffer *from, size_t n, tide_buffers *b) {
    tide__place_table *t = &b->table;
    t->items = calloc(n + 1, sizeof *t->items);
    t->ids = calloc(n + 1, sizeof *t->ids);
    t->id_bytes = malloc(names_bytes(from, n) + 1);
    if (!t->items || !t->ids || !t->id_bytes) return tide__fail_memory();
    char *at = t->id_bytes;
    for (size_t i = 0; i < n; i++) {
        const tide_buffer *f = &from[i];
        t->items[i] = (tide__place_item){.size = f->size_bytes,
                                         .align = f->align_bytes,
                                         .fixed = f->fixed_offset,
                                         .begin = f->begin,
                                         .end = f->end,
                                         .begin2 = f->begin2,
                                         .end2 = f->end2};
        const char *name = f->name ? f->name : "";
        t->ids[i] = memcpy(at, name, strlen(name) + 1);
        at += strlen(name) + 1;
    }
    b->items = t->items;
    b->n = t->n = n;
    return TIDE_OK;
}

static tide_status fill_from_program(const tide_program *program, const tide_machine *machine, tide_buffers *b) {
    b->program = program;
    return tide__place_items(program, machine, &b->items, &b->tensors, &b->n);
}

static tide_status finish(tide_buffers *b, tide_status status, tide_buffers **out) {
    if (status == TIDE_OK)
        *out = b;
    else
        tide_buffers_destroy(b);
    return status;
}

tide_status tide_buffers_read_csv(const char *path, tide_buffers **out) {
    if (!path || !out) return tide__fail(TIDE_E_ARGUMENT, "buffers need a path and a place for their handle");
    tide_buffers *b = calloc(1, sizeof *b);
    return b ? finish(b, fill_from_csv(path, b), out) : tide__fail_memory();
}

tide_status tide_buffers_create(const tide_buffer *buffers, size_t n, tide_buffers **out) {
    if ((n && !buffers) || !out) return tide__fail(TIDE_E_ARGUMENT, "buffers need a list and a place for their handle");
    if (n > UINT32_MAX) return tide__fail(TIDE_E_ARGUMENT, "%zu buffers are too many", n);
    tide_buffers *b = calloc(1, sizeof *b);
    return b ? finish(b, fill_from_client(buffers, n, b), out) : tide__fail_memory();
}

tide_status tide_buffers_of_program(const tide_program *program, const tide_machine *machine, tide_buffers **out) {
    if (!program || !out) return tide__fail(TIDE_E_ARGUMENT, "buffers need a program and a place for their handle");
    TIDE_TRY(tide_machine_validate(machine));
    tide_buffers *b = calloc(1, sizeof *b);
    return b ? finish(b, fill_from_program(program, machine, b), out) : tide__fail_memory();
}

void tide_buffers_destroy(tide_buffers *b) {
    if (!b) return;
    if (b->program) free(b->items);
    tide__place_table_free(&b->table);
    free(b->tensors);
    free(b);
}

size_t tide_buffers_count(const tide_buffers *b) { return b->n; }

static const char *name_of(const tide_buffers *b, size_t i) {
    if (!b->program) return b->table.ids[i];
    return b->tensors[i] == TIDE_NONE ? "(workspace)" : tide_program_tensor(b->program, b->tensors[i])->name;
}

tide_buffer tide_buffers_get(const tide_buffers *b, size_t i) {
    const tide__place_item *item = &b->items[i];
    return (tide_buffer){.name = name_of(b, i),
                         .size_bytes = item->size,
                         .align_bytes = item->align,
                         .fixed_offset = item->fixed,
                         .begin = item->begin,
                         .end = item->end,
                         .begin2 = item->begin2,
                         .end2 = item->end2};
}

void tide_place_options_init(tide_place_options *options) {
    *options = (tide_place_options){.size = sizeof *options, .seconds = 1};
}

tide_status tide_buffers_place(const tide_buffers *b, const tide_place_options *options, uint64_t *offsets,
                               tide_place_result *result) {
    tide_place_options o;
    tide__place_result placed;
    tide_place_options_init(&o);
    if (!b || !offsets) return tide__fail(TIDE_E_ARGUMENT, "placement needs buffers, and room for their offsets");
    TIDE_TRY(tide__options_take("tide_place_options", options, sizeof o, &o));
    TIDE_TRY(tide__result_check("tide_place_result", result, sizeof *result));
    if (!(o.seconds >= 0) || isinf(o.seconds))
        return tide__fail(TIDE_E_ARGUMENT, "tide_place_options: seconds are no number from 0 up");
    const tide__place_options engine = {
        .capacity = o.capacity_bytes, .seed = o.seed, .time_limit_s = o.seconds, .algorithm = o.algorithm};
    TIDE_TRY(tide__place(b->items, b->n, &engine, offsets, &placed));
    const tide_place_result made = {.height_bytes = placed.height,
                                    .lower_bound_bytes = placed.lower_bound,
                                    .optimal = placed.optimal,
                                    .algorithm = placed.algorithm};
    tide__result_give(&made, result);
    return TIDE_OK;
}
