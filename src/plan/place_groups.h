/* Which places of a plan share an offset.
 *
 * In-place pairs do (`must` always, `may` where the read dies at that op), and so do the end of a carried value and its
 * start in the next step: residencies in the arena, copies in a tier. */
#ifndef TIDE_PLAN_PLACE_GROUPS_H
#define TIDE_PLAN_PLACE_GROUPS_H

#include "plan/plan_data.h"

/* Disjoint sets over the residencies, or the copies, of a plan. What is carried occupies its place at the start of
 * the step, until `head`, and again at its end, from `tail`; other groups from `head` to `tail`:
 *
 *     carried   0 ████████ head        tail ██████ n
 *     other            head ████████ tail
 */
typedef struct tide__span_ends {
    uint32_t head, tail;
} tide__span_ends;

typedef struct tide__groups {
    uint32_t *parent;
    tide__span_ends *spans; /* per root */
    bool *carried;          /* per root: a member is carried over the end of the step */
    bool *joined;           /* per root: it has more than one member */
    size_t count;
} tide__groups;

tide_status tide__groups_init(tide__groups *g, size_t n); /* n groups of one */
void tide__groups_deinit(tide__groups *g);                /* after a failed init, too */

/* The root of a member's group. */
static inline uint32_t tide__groups_find(tide__groups *g, uint32_t i) {
    while (g->parent[i] != i) i = g->parent[i] = g->parent[g->parent[i]];
    return i;
}

/* Joins residencies; share: `may` pairs, too. gave: per residency, false; afterwards true where it hands its bytes
 * over. */
tide_status tide__join_residencies(const tide_program *program, const tide_plan *plan, bool share, tide__groups *g,
                                   bool *gave);
/* Joins copies: the end copy of a carried value and the start copy of its successor lie in one slot. */
tide_status tide__join_copies(const tide_program *program, const tide_plan *plan, tide__groups *g);

#endif
