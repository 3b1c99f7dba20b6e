/* Online: what may be dropped, and what still depends on what.
 *
 * A *source* cannot be made again: it was there at the start, or an op made it that runs once or has lost an input
 * for good. Invariant: every read of an op that is not dead is resident, in a tier, or can be made again. So a source
 * stays while something dropped and still wanted comes from it; once it goes, the ops that read it are dead, and what
 * they made counts as sources from then on. */
#include "plan/decide/online/online.h"

bool tide__online_is_source(const tide__online *o, tide_id storage) {
    tide_id producer = o->storages[storage].producer;
    if (tide_program_tensor(o->program, storage)->start == TIDE_START_CLIENT) return false;
    return producer == TIDE_NONE || !tide_program_op(o->program, producer)->rerunnable || o->ops[producer].dead;
}

bool tide__online_can_drop(const tide__online *o, tide_id storage) {
    tide_id producer = o->storages[storage].producer;
    if (producer == TIDE_NONE || o->ops[producer].dead || o->ops[producer].fixed || o->storages[storage].ended)
        return false;
    return tide_program_op(o->program, producer)->rerunnable && o->ops[producer].ran;
}

/* Would be missed if its producer could not run again: nobody has it, or only a leftover that may go any time. */
static bool may_be_missing(const tide__storage *s) { return s->tier == TIDE_NONE && !(s->resident && s->live); }

/* The next op that read a storage and that this search has not seen; from *at on. */
static bool next_consumer(tide__online *o, uint32_t *at, tide_id *op) {
    while (*at != TIDE_NONE) {
        *op = o->consumers.data[*at].op;
        *at = o->consumers.data[*at].next;
        if (!o->ops[*op].ran || o->ops[*op].dead || o->ops[*op].stamp == o->stamp) continue;
        o->ops[*op].stamp = o->stamp;
        return true;
    }
    return false;
}

/* Puts what `op` made and may be missing on the stack; *wanted if somebody still refers to one of them. */
static tide_status push_missing(tide__online *o, tide_id op, bool *wanted) {
    const tide_op *p = tide_program_op(o->program, op);
    for (uint32_t i = 0; i < p->n_writes; i++) {
        const tide__storage *s = &o->storages[p->writes[i]];
        if (!may_be_missing(s)) continue;
        *wanted |= s->live;
        TIDE_TRY(tide__vec_push(&o->stack, p->writes[i]));
    }
    return TIDE_OK;
}

tide_status tide__online_is_needed(tide__online *o, tide_id source, bool *out) {
    size_t bottom = o->stack.count;
    bool wanted = false;
    tide_status status = tide__vec_push(&o->stack, source);
    o->stamp++;
    while (status == TIDE_OK && !wanted && o->stack.count > bottom) {
        tide_id storage = o->stack.data[--o->stack.count], op;
        uint32_t at = o->storages[storage].first_consumer;
        while (status == TIDE_OK && !wanted && next_consumer(o, &at, &op)) status = push_missing(o, op, &wanted);
    }
    o->stack.count = bottom;
    *out = wanted;
    return status;
}

tide_status tide__online_find_wanted(tide__online *o, tide_id source, size_t *first) {
    *first = o->stack.count;
    TIDE_TRY(tide__vec_push(&o->stack, source));
    o->stamp++;
    for (size_t i = *first; i < o->stack.count; i++) { /* the stack as a queue: all that is reached stays on it */
        tide_id storage = o->stack.data[i], op;
        uint32_t at = o->storages[storage].first_consumer;
        bool ignored = false;
        while (next_consumer(o, &at, &op)) {
            o->ops[op].fixed = true;
            TIDE_TRY(push_missing(o, op, &ignored));
        }
    }
    size_t kept = *first;
    for (size_t i = *first; i < o->stack.count; i++)
        if (o->storages[o->stack.data[i]].live && o->stack.data[i] != source) o->stack.data[kept++] = o->stack.data[i];
    o->stack.count = kept;
    return TIDE_OK;
}

tide_status tide__online_bury(tide__online *o, tide_id source) {
    size_t bottom = o->stack.count;
    bool ignored = false;
    tide_status status = tide__vec_push(&o->stack, source);
    o->stamp++;
    while (status == TIDE_OK && o->stack.count > bottom) {
        tide_id storage = o->stack.data[--o->stack.count], op;
        uint32_t at = o->storages[storage].first_consumer;
        while (status == TIDE_OK && next_consumer(o, &at, &op)) {
            o->ops[op].dead = true;
            status = push_missing(o, op, &ignored);
        }
    }
    o->stack.count = bottom;
    return status;
}
