/* Edits of decisions: what may change, one at a time (see polish.h). */
#ifndef TIDE_PLAN_DECIDE_HYBRID_POLISH_EDITS_H
#define TIDE_PLAN_DECIDE_HYBRID_POLISH_EDITS_H

#include "plan/decide/decide.h"

typedef enum tide__edit_kind {
    TIDE__EDIT_VARIANT, /* of op `index`: `slot` */
    TIDE__EDIT_SWAP,    /* number `index` becomes `swap`; tensor TIDE_NONE: goes */
    TIDE__EDIT_RERUN,   /* number `index` goes to `slot`; TIDE_NONE: goes */
    TIDE__EDIT_MOVE,    /* one more: `swap` */
    TIDE__EDIT_REPEAT   /* one more: op `index` in `slot` */
} tide__edit_kind;

typedef struct tide__edit {
    tide__edit_kind kind;
    uint32_t index, slot;
    tide__swap swap;
} tide__edit;
typedef TIDE_VEC(tide__edit) tide__edits;

/* All of them, those of what is decided first; d can be carried out and has a variant for each op. New moves of
 * inputs are from the client, others go to the first tier with room. */
tide_status tide__edits_list(const tide__policy_input *in, const tide__decisions *d, bool moves, bool reruns,
                             tide__edits *out);
/* Both change the same thing. */
bool tide__edits_clash(const tide__edit *a, const tide__edit *b);

/* Numbers stay as they are, so that two edits can be applied; then clean takes out what is to go. */
tide_status tide__edit_apply(const tide__edit *e, tide__decisions *d);
void tide__edits_clean(tide__decisions *d);

#endif
