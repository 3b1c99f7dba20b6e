/* See max_flow.h. Depth-first without recursion: a path may be as long as the graph has nodes. */
#include "plan/decide/max_flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

static const uint32_t none = UINT32_MAX;

static tide_status prepare(tide__flow *f) {
    if (f->first) return TIDE_OK;
    uint32_t *rows = malloc(5 * (f->n_nodes + (size_t)1) * sizeof *rows);
    if (!rows) return tide__fail_memory();
    f->first = rows;
    f->level = rows + f->n_nodes;
    f->current = f->level + f->n_nodes;
    f->path = f->current + f->n_nodes;
    f->queue = f->path + f->n_nodes;
    memset(f->first, 0xff, f->n_nodes * sizeof *f->first);
    return TIDE_OK;
}

tide_status tide__flow_arc(tide__flow *f, uint32_t from, uint32_t to, uint64_t capacity) {
    TIDE_TRY(prepare(f));
    TIDE_TRY(tide__vec_reserve(&f->edges, 2));
    uint32_t i = (uint32_t)f->edges.count;
    f->edges.data[i] = (tide__flow_edge){.to = to, .next = f->first[from], .capacity = capacity};
    f->first[from] = i;
    f->edges.data[i + 1] = (tide__flow_edge){.to = from, .next = f->first[to]};
    f->first[to] = i + 1;
    f->edges.count += 2;
    return TIDE_OK;
}

void tide__flow_set(tide__flow *f, uint32_t arc, uint64_t capacity) {
    f->edges.data[2 * (size_t)arc].capacity = capacity;
}

/* Distances from the source; is the sink within reach? */
static bool measure(tide__flow *f, uint32_t source, uint32_t sink) {
    uint32_t head = 0, tail = 0;
    memset(f->level, 0xff, f->n_nodes * sizeof *f->level);
    f->level[source] = 0;
    f->queue[tail++] = source;
    while (head < tail) {
        uint32_t node = f->queue[head++];
        for (uint32_t e = f->first[node]; e != none; e = f->edges.data[e].next) {
            const tide__flow_edge *edge = &f->edges.data[e];
            if (edge->left == 0 || f->level[edge->to] != none) continue;
            f->level[edge->to] = f->level[node] + 1;
            f->queue[tail++] = edge->to;
        }
    }
    return f->level[sink] != none;
}

/* The next edge of a node that leads one level on. */
static uint32_t advance(tide__flow *f, uint32_t node) {
    uint32_t e = f->current[node];
    for (; e != none; e = f->edges.data[e].next)
        if (f->edges.data[e].left && f->level[f->edges.data[e].to] == f->level[node] + 1) break;
    return f->current[node] = e;
}

/* Fills the path; returns how many of its edges come before the first that is now full. */
static uint32_t push(tide__flow *f, uint32_t length, uint64_t *flow) {
    uint64_t room = UINT64_MAX;
    uint32_t full = 0;
    for (uint32_t i = length; i-- > 0;) room = tide__min_u64(room, f->edges.data[f->path[i]].left);
    for (uint32_t i = length; i-- > 0;) {
        f->edges.data[f->path[i]].left -= room;
        f->edges.data[f->path[i] ^ 1].left += room;
        if (f->edges.data[f->path[i]].left == 0) full = i;
    }
    *flow += room;
    return full;
}

static void block(tide__flow *f, uint32_t source, uint32_t sink, uint64_t *flow) {
    uint32_t node = source, length = 0;
    memcpy(f->current, f->first, f->n_nodes * sizeof *f->current);
    for (;;) {
        uint32_t e = node == sink ? none : advance(f, node);
        if (e != none) {
            f->path[length++] = e;
            node = f->edges.data[e].to;
        } else if (node == sink) {
            length = push(f, length, flow);
            node = f->edges.data[f->path[length] ^ 1].to;
        } else if (length > 0) {
            f->level[node] = none; /* a dead end */
            node = f->edges.data[f->path[--length] ^ 1].to;
        } else {
            return;
        }
    }
}

tide_status tide__flow_solve(tide__flow *f, uint32_t source, uint32_t sink, uint64_t *flow) {
    TIDE_TRY(prepare(f));
    uint64_t total = 0;
    for (size_t i = 0; i < f->edges.count; i++) f->edges.data[i].left = f->edges.data[i].capacity;
    while (measure(f, source, sink)) block(f, source, sink, &total);
    *flow = total;
    return TIDE_OK;
}

void tide__flow_free(tide__flow *f) {
    free(f->first);
    f->first = NULL;
    tide__vec_free(&f->edges);
}
