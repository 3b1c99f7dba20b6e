/* See swap_cover.h. A walk over the slots: where the load is above the target, the gap goes that relieves the most from there on per
 * time of its transfers (Belady's rule, if all were alike). In the end, the dearest first, those go back that others have made
 * needless. */
#include "plan/decide/swaps/swap_cover.h"

#include <stdlib.h>

/* The slots [begin, end) of a gap. One across the end of the step has two. */
typedef struct piece {
    uint32_t gap, begin, end;
} piece;

typedef struct coverer {
    const tide__swaps *s;
    uint32_t *gaps; /* the cover: n of them */
    size_t n;
    int64_t *need;          /* per slot: bytes above the target; below zero: room */
    bool *taken;            /* per gap */
    TIDE_VEC(piece) pieces; /* by ascending begin */
    uint32_t *open;         /* pieces that have begun, n_open of them */
    size_t n_open, next;
} coverer;

/* ---- pieces ---- */

/* The slots of a gap: the number of pieces. */
static int slots_of(const tide__swaps *s, uint32_t gap, piece out[2]) {
    const tide__swap_gap *g = &s->gaps.data[gap];
    if (g->head == TIDE_NONE) {
        out[0] = (piece){gap, g->from, tide__swap_gap_end(s, g)};
        return 1;
    }
    out[0] = (piece){gap, 0, g->to == TIDE_NONE ? g->from : g->to};
    out[1] = (piece){gap, g->from, s->n_ops + 1};
    return 2;
}

static void add_bytes(coverer *c, uint32_t gap, int64_t bytes) {
    piece pieces[2];
    int n = slots_of(c->s, gap, pieces);
    for (int i = 0; i < n; i++)
        for (uint32_t k = pieces[i].begin; k < pieces[i].end; k++) c->need[k] += bytes;
}

static int by_begin(const void *a, const void *b) {
    const piece *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->gap < y->gap ? -1 : x->gap > y->gap;
}

static tide_status begin(coverer *c, uint64_t target_bytes) {
    const tide__swaps *s = c->s;
    c->need = malloc((s->n_ops + (size_t)1) * sizeof *c->need);
    c->taken = calloc(s->gaps.count + 1, sizeof *c->taken);
    c->open = malloc((2 * s->gaps.count + 1) * sizeof *c->open);
    if (!c->need || !c->taken || !c->open) return tide__fail_memory();
    for (uint32_t k = 0; k <= s->n_ops; k++) c->need[k] = (int64_t)s->base_loads[k] - (int64_t)target_bytes;
    for (uint32_t i = 0; i < s->gaps.count; i++) {
        piece pieces[2];
        int n = slots_of(s, i, pieces);
        if (s->gaps.data[i].forced) add_bytes(c, i, -(int64_t)s->gaps.data[i].size_bytes);
        for (int k = 0; k < n && !s->gaps.data[i].forced; k++) TIDE_TRY(tide__vec_push(&c->pieces, pieces[k]));
    }
    if (c->pieces.count) qsort(c->pieces.data, c->pieces.count, sizeof *c->pieces.data, by_begin);
    return TIDE_OK;
}

static void end(coverer *c) {
    free(c->need);
    free(c->taken);
    free(c->open);
    tide__vec_free(&c->pieces);
}

/* ---- the walk ---- */

static uint64_t transfer_ns(const tide__swap_gap *g) { return g->in_ns + (g->clean ? 0 : g->out_ns); }

/* Relief from a slot on, as if all others needed as much, per time. */
static double score(const coverer *c, const piece *p, uint32_t k) {
    const tide__swap_gap *g = &c->s->gaps.data[p->gap];
    int64_t bytes = (int64_t)g->size_bytes < c->need[k] ? (int64_t)g->size_bytes : c->need[k];
    uint32_t length = p->end - k;
    if (g->head != TIDE_NONE && p->begin < g->from) length += c->s->n_ops - g->from;
    return (double)bytes * (double)length / (double)(transfer_ns(g) + 1);
}

static void open_pieces(coverer *c, uint32_t k) {
    size_t kept = 0;
    for (; c->next < c->pieces.count && c->pieces.data[c->next].begin <= k; c->next++)
        c->open[c->n_open++] = (uint32_t)c->next;
    for (size_t i = 0; i < c->n_open; i++) {
        const piece *p = &c->pieces.data[c->open[i]];
        if (p->end > k && !c->taken[p->gap]) c->open[kept++] = c->open[i];
    }
    c->n_open = kept;
}

static bool take_best(coverer *c, uint32_t k) {
    const piece *best = NULL;
    double most = 0;
    for (size_t i = 0; i < c->n_open; i++) {
        const piece *p = &c->pieces.data[c->open[i]];
        double value = c->taken[p->gap] ? 0 : score(c, p, k);
        if (value > most) most = value, best = p;
    }
    if (!best) return false;
    c->taken[best->gap] = true;
    c->gaps[c->n++] = best->gap;
    add_bytes(c, best->gap, -(int64_t)c->s->gaps.data[best->gap].size_bytes);
    return true;
}

static void walk(coverer *c) {
    for (uint32_t k = 0; k <= c->s->n_ops; k++) {
        open_pieces(c, k);
        while (c->need[k] > 0 && take_best(c, k)) {
        }
    }
}

/* ---- what is needless ---- */

static bool is_needless(const coverer *c, uint32_t gap) {
    piece pieces[2];
    int n = slots_of(c->s, gap, pieces);
    int64_t bytes = (int64_t)c->s->gaps.data[gap].size_bytes;
    for (int i = 0; i < n; i++)
        for (uint32_t k = pieces[i].begin; k < pieces[i].end; k++)
            if (c->need[k] + bytes > 0) return false;
    return true;
}

static void prune(coverer *c) {
    for (size_t left = c->n; left > 0; left--) { /* selection of the dearest: covers are short */
        size_t dearest = 0;
        for (size_t i = 1; i < left; i++)
            if (transfer_ns(&c->s->gaps.data[c->gaps[i]]) > transfer_ns(&c->s->gaps.data[c->gaps[dearest]]))
                dearest = i;
        uint32_t gap = c->gaps[dearest];
        c->gaps[dearest] = c->gaps[left - 1];
        c->gaps[left - 1] = gap;
        if (!is_needless(c, gap)) continue;
        add_bytes(c, gap, (int64_t)c->s->gaps.data[gap].size_bytes);
        c->gaps[left - 1] = c->gaps[--c->n];
    }
}

tide_status tide__swaps_cover(const tide__swaps *s, uint64_t target_bytes, uint32_t *gaps, size_t *n) {
    coverer c = {.s = s, .gaps = gaps};
    tide_status status = begin(&c, target_bytes);
    if (status == TIDE_OK) {
        walk(&c);
        prune(&c);
        *n = c.n;
    }
    end(&c);
    return status;
}
