/* Emission: descriptors become ops of a program. Looks up the recipe, brings operands into the layout that the op
 * expects (by REORDER ops, once per value and layout), creates what the op writes, applies the rules of rules.h.
 *
 * Invariant: every tensor knows whose operand its layout is (its origin), so a reorder can be described. */
#ifndef TIDE_NN_EMIT_H
#define TIDE_NN_EMIT_H

#include "nn/recipes.h"
#include "nn/rules.h"

#define TIDE__MAX_WRITES TIDE_KERNEL_MAX_OPERANDS

typedef struct tide__origin {
    const tide__recipe *recipe; /* its operand `operand` (reads first, then writes) has this tensor's layout */
    uint32_t operand;
    tide_id copy; /* the same value in another layout; a list */
    tide_class cls;
    uint64_t size_bytes;
} tide__origin;

typedef struct tide__emitter {
    tide_program_builder *builder;
    tide__recipes *recipes;
    TIDE_VEC(const tide__recipe *) ops; /* per op; NULL: a message */
    TIDE_VEC(tide__origin) tensors;     /* per tensor */
    uint64_t counter;                   /* of the next random op */
    uint32_t micro;                     /* micro-batch being unrolled; names of later ones end in "@1", "@2" ... */
    TIDE_VEC(char) name;                /* scratch */
    TIDE_VEC(tide_id) reads;            /* scratch */
} tide__emitter;

typedef struct tide__draft {
    const tide_op_desc *desc;
    tide_phase phase;
    const char *name; /* of the layer; for updates of the parameter */
    const tide_id *reads;
    uint32_t n_reads;
    uint32_t again; /* how often the layer has had such an op before; ends the names if not 0 */
    uint64_t draw;  /* backward of a random op: the counter of that op */
} tide__draft;

/* A tensor that exists at the start, in the layout of operand `operand` of the op to come. `tensor` says everything
 * but its size; its name is `name` followed by ".role" (unless role is NULL). */
typedef struct tide__leaf {
    const tide_op_desc *desc;
    uint32_t operand;
    const char *name, *role;
    tide_tensor tensor;
    uint64_t part_bytes; /* it is some of the bytes of a value in that layout; 0: all */
} tide__leaf;

void tide__emitter_deinit(tide__emitter *e); /* builder and recipes are borrowed */
tide_status tide__emit_leaf(tide__emitter *e, const tide__leaf *leaf, tide_id *out);
/* A leaf with the size and layout of `like`: optimizer state. */
tide_status tide__emit_leaf_like(tide__emitter *e, const tide__leaf *leaf, tide_id like, tide_id *out);
/* `writes` receives the ids in the order of ops.h. */
tide_status tide__emit(tide__emitter *e, const tide__draft *draft, tide_id writes[TIDE__MAX_WRITES]);
/* The value of `tensor` in the layout of `like`: itself or a reordered copy. */
tide_status tide__emit_in_layout_of(tide__emitter *e, const tide__draft *draft, tide_id tensor, tide_id like,
                                    tide_id *out);
/* Messages to and from another rank. draft->name, phase and again name them; the rest of it is not looked at. */
tide_status tide__emit_send(tide__emitter *e, const tide__draft *draft, tide_id tensor, uint32_t peer, uint64_t number);
/* What comes: in the layout of `like`, or where that is TIDE_NONE of operand `operand` (reads first, then writes) of draft->desc. */
typedef struct tide__arrival {
    tide_id like;
    uint32_t operand;
    tide_class cls;      /* where there is no `like` */
    uint64_t part_bytes; /* it is some of the bytes of a value in that layout; 0: all */
} tide__arrival;
tide_status tide__emit_receive(tide__emitter *e, const tide__draft *draft, const tide__arrival *as, uint32_t peer,
                               uint64_t number, tide_id *out);
/* Some floats of a value, as stored, and back: *whole of `floats` gets those of the part from `first` on. TIDE_NONE: it begins with them.
 * Of the draft desc and reads are not looked at. */
tide_status tide__emit_cut(tide__emitter *e, tide__draft draft, tide_id whole, uint64_t first, uint64_t floats,
                           tide_id *part);
tide_status tide__emit_paste(tide__emitter *e, tide__draft draft, tide_id part, uint64_t first, uint64_t floats,
                             tide_id *whole);
uint64_t tide__emitter_floats(const tide__emitter *e, tide_id tensor); /* as stored */

#endif
