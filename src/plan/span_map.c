/* See span_map.h. A treap over the spans' lower ends, nodes in one array, priorities hashed from the node index so
 * that runs repeat. Invariant: spans are disjoint and not empty. */
#include "plan/span_map.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/vec.h"

#define NIL UINT32_MAX

typedef struct node {
    uint64_t lo, hi;
    uint32_t owner, left, right;
} node;

struct tide__span_map {
    TIDE_VEC(node) nodes;
    TIDE_VEC(uint32_t) unused; /* freed node indices */
    uint32_t root;
};

tide_status tide__span_map_create(tide__span_map **out) {
    tide__span_map *m = calloc(1, sizeof *m);
    if (!m) return tide__fail_memory();
    m->root = NIL;
    *out = m;
    return TIDE_OK;
}

void tide__span_map_destroy(tide__span_map *m) {
    if (!m) return;
    tide__vec_free(&m->nodes);
    tide__vec_free(&m->unused);
    free(m);
}

static tide_status new_node(tide__span_map *m, uint64_t lo, uint64_t hi, uint32_t owner, uint32_t *out) {
    node n = {.lo = lo, .hi = hi, .owner = owner, .left = NIL, .right = NIL};
    if (m->unused.count) {
        *out = m->unused.data[--m->unused.count];
        m->nodes.data[*out] = n;
        return TIDE_OK;
    }
    *out = (uint32_t)m->nodes.count;
    return tide__vec_push(&m->nodes, n);
}

static uint64_t priority(uint32_t i) { return tide__mix(i + UINT64_C(1)); }

/* Nodes with lo < at to *left, the others to *right. */
static void split(tide__span_map *m, uint32_t tree, uint64_t at, uint32_t *left, uint32_t *right) {
    while (tree != NIL) {
        node *n = &m->nodes.data[tree];
        if (n->lo < at) {
            *left = tree;
            left = &n->right;
            tree = n->right;
        } else {
            *right = tree;
            right = &n->left;
            tree = n->left;
        }
    }
    *left = *right = NIL;
}

static uint32_t join(tide__span_map *m, uint32_t a, uint32_t b) {
    uint32_t root, *link = &root;
    while (a != NIL && b != NIL) {
        bool take_a = priority(a) > priority(b);
        uint32_t *next = take_a ? &m->nodes.data[a].right : &m->nodes.data[b].left;
        *link = take_a ? a : b;
        link = next;
        if (take_a)
            a = *next;
        else
            b = *next;
    }
    *link = a != NIL ? a : b;
    return root;
}

static uint32_t last_of(const tide__span_map *m, uint32_t tree) {
    while (m->nodes.data[tree].right != NIL) tree = m->nodes.data[tree].right;
    return tree;
}

/* The span that starts before `at` but reaches beyond it gives its part from `at` on to a node of its own. */
static tide_status cut(tide__span_map *m, uint64_t at) {
    uint32_t left, right, tail;
    split(m, m->root, at, &left, &right);
    tide_status status = TIDE_OK;
    uint32_t i = left == NIL ? NIL : last_of(m, left);
    if (i != NIL && m->nodes.data[i].hi > at) {
        status = new_node(m, at, m->nodes.data[i].hi, m->nodes.data[i].owner, &tail);
        if (status == TIDE_OK) {
            m->nodes.data[i].hi = at;
            right = join(m, tail, right);
        }
    }
    m->root = join(m, left, right);
    return status;
}

/* Reports and frees a whole tree: it is covered. Iterative, through the list of trees still to do. */
static tide_status drop(tide__span_map *m, uint32_t tree, tide__span_fn evicted, void *context) {
    size_t base = m->unused.count;
    if (tree == NIL) return TIDE_OK;
    TIDE_TRY(tide__vec_push(&m->unused, tree));
    for (size_t i = base; i < m->unused.count; i++) { /* `unused` doubles as the queue: all end up in it anyway */
        node n = m->nodes.data[m->unused.data[i]];
        if (evicted) evicted(context, n.owner);
        if (n.left != NIL) TIDE_TRY(tide__vec_push(&m->unused, n.left));
        if (n.right != NIL) TIDE_TRY(tide__vec_push(&m->unused, n.right));
    }
    return TIDE_OK;
}

tide_status tide__span_map_assign(tide__span_map *m, uint64_t lo, uint64_t hi, uint32_t owner, tide__span_fn evicted,
                                  void *context) {
    if (lo >= hi) return TIDE_OK;
    uint32_t left, middle, right, fresh;
    TIDE_TRY(cut(m, lo));
    TIDE_TRY(cut(m, hi));
    split(m, m->root, lo, &left, &middle);
    split(m, middle, hi, &middle, &right);
    TIDE_TRY(drop(m, middle, evicted, context));
    TIDE_TRY(new_node(m, lo, hi, owner, &fresh));
    m->root = join(m, join(m, left, fresh), right);
    return TIDE_OK;
}
