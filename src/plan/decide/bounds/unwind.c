/* See unwind.h. Sets are searched depth first, the latest run first: where memory is not short that is how the program
 * made them, so that the first way leads to the end. Only sets within the level, the bound so far, are looked at; where
 * none is left the level rises to the least that a set beyond it needs. */
#include "plan/decide/bounds/unwind.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/hash.h"
#include "base/size.h"

/* A set that becomes larger, or an op that takes more steps, is taken for possible. */
enum { MAX_SET = 48, MAX_STEPS = 20 * 1000, MAX_SETS = 100 * 1000 };
/* Values below this part of the largest op's bytes are left out of sets: there are many of them, and more sets. Of those
 * that no run makes there is nothing to choose; they are left out when they hardly count. */
enum { SMALL_PART = 6, TINY_PART = 64 };

typedef struct value_set {
    size_t at;       /* in items */
    uint32_t n;      /* ascending tensors */
    uint32_t parent; /* the set that led here in the search that saw it last */
    uint32_t seen;   /* by this search */
    bool is_good;    /* can be unwound within the level */
} value_set;

typedef struct beyond { /* a set that needs more than the level */
    uint64_t bytes;
    uint32_t set, parent;
} beyond;

typedef struct unwinder {
    const tide__model *m;
    bool *resident, *outside; /* per tensor: there all the time, counted once for all; left out of sets */
    uint64_t resident_bytes;
    uint64_t level;
    tide_id op; /* that decided it */
    TIDE_VEC(tide_id) items;
    TIDE_VEC(value_set) sets;
    uint32_t *table; /* hash table of sets, n_table (a power of 2) places; TIDE_NONE: free */
    size_t n_table;
    TIDE_VEC(uint32_t) stack;
    TIDE_VEC(beyond) heap; /* the least first */
    uint32_t search;
    tide__arrays arrays; /* owns the arrays above */
} unwinder;

/* ---- what is there all the time ---- */

static void find_last_reads(const tide__model *m, uint32_t *last) {
    memset(last, 0xff, m->n_tensors * sizeof *last);
    for (tide_id o = 0; o < m->n_ops; o++)
        for (uint32_t i = m->read_at[o]; i < m->read_at[o + 1]; i++) last[m->reads[i]] = o;
}

/* Who takes a value's bytes over where it dies. */
static void find_heirs(const tide__model *m, const uint32_t *last, tide_id *heir) {
    memset(heir, 0xff, m->n_tensors * sizeof *heir);
    for (tide_id o = 0; o < m->n_ops; o++)
        for (uint32_t i = m->pair_at[o]; i < m->pair_at[o + 1]; i++) {
            tide_id read = m->pairs[i].read;
            if (heir[read] == TIDE_NONE && last[read] == o && !m->keep[read]) heir[read] = m->pairs[i].write;
        }
}

/* What is PRESENT and kept, itself or as its heirs, has its bytes for the whole step. */
static void follow_heirs(unwinder *u, tide_id start, const tide_id *heir) {
    tide_id end = start;
    while (heir[end] != TIDE_NONE) end = heir[end];
    if (!u->m->keep[end]) return;
    u->resident_bytes += u->m->size[start];
    for (tide_id t = start; t != TIDE_NONE; t = heir[t]) u->resident[t] = true;
}

static tide_status find_resident(unwinder *u) {
    size_t n = u->m->n_tensors + (size_t)1;
    uint32_t *last = malloc(n * sizeof *last);
    tide_id *heir = malloc(n * sizeof *heir);
    if (last && heir) {
        find_last_reads(u->m, last);
        find_heirs(u->m, last, heir);
        for (tide_id t = 0; t < u->m->n_tensors; t++)
            if (u->m->present[t]) follow_heirs(u, t, heir);
    }
    bool ok = last && heir;
    free(last);
    free(heir);
    return ok ? TIDE_OK : tide__fail_memory();
}

/* ---- loads ---- */

static bool has(const tide_id *set, uint32_t n, tide_id tensor) {
    for (uint32_t i = 0; i < n; i++)
        if (set[i] == tensor) return true;
    return false;
}

static bool is_read(const tide__model *m, tide_id op, tide_id tensor) {
    return has(m->reads + m->read_at[op], m->read_at[op + 1] - m->read_at[op], tensor);
}

static bool is_written(const tide__model *m, tide_id op, tide_id tensor) {
    return has(m->writes + m->write_at[op], m->write_at[op + 1] - m->write_at[op], tensor);
}

static uint64_t counted(const unwinder *u, tide_id tensor) { return u->resident[tensor] ? 0 : u->m->size[tensor]; }

/* Bytes that a pair of the op needs once only, because the read is not among what has to stay. */
static uint64_t shared_bytes(const unwinder *u, tide_id op, const tide_id *rest, uint32_t n) {
    const tide__model *m = u->m;
    uint64_t bytes = 0;
    for (uint32_t i = m->pair_at[op]; i < m->pair_at[op + 1]; i++) {
        tide_id read = m->pairs[i].read;
        bool again = i > m->pair_at[op] && m->pairs[i - 1].read == read;
        if (!again && !u->resident[read] && !u->resident[m->pairs[i].write] && !has(rest, n, read))
            bytes += m->size[read];
    }
    return bytes;
}

/* While the op runs and `rest` stays. */
static uint64_t load_of(const unwinder *u, tide_id op, const tide_id *rest, uint32_t n) {
    const tide__model *m = u->m;
    uint64_t bytes = u->resident_bytes + m->workspace_bytes[op];
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++) bytes += counted(u, m->reads[i]);
    for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++) bytes += counted(u, m->writes[i]);
    for (uint32_t i = 0; i < n; i++)
        if (!is_read(m, op, rest[i])) bytes += m->size[rest[i]];
    return bytes - shared_bytes(u, op, rest, n);
}

/* ---- sets ---- */

static uint64_t hash_set(const tide_id *set, uint32_t n) {
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) hash = tide__hash_word(hash, set[i]);
    return hash;
}

static bool is_set(const unwinder *u, uint32_t i, const tide_id *set, uint32_t n) {
    const value_set *s = &u->sets.data[i];
    return s->n == n && (n == 0 || memcmp(u->items.data + s->at, set, n * sizeof *set) == 0);
}

/* The number of a set, which is new if need be. */
static tide_status intern(unwinder *u, const tide_id *set, uint32_t n, uint32_t *out) {
    size_t place = hash_set(set, n) & (u->n_table - 1);
    while (u->table[place] != TIDE_NONE && !is_set(u, u->table[place], set, n)) place = (place + 1) & (u->n_table - 1);
    if (u->table[place] == TIDE_NONE) {
        value_set fresh = {.at = u->items.count, .n = n};
        TIDE_TRY(tide__vec_reserve(&u->items, n));
        TIDE_TRY(tide__vec_push(&u->sets, fresh));
        if (n) memcpy(u->items.data + u->items.count, set, n * sizeof *set);
        u->items.count += n;
        u->table[place] = (uint32_t)u->sets.count - 1;
    }
    *out = u->table[place];
    return TIDE_OK;
}

/* Adds to a sorted set of up to MAX_SET; *n is MAX_SET + 1 when there is no room. */
static void insert(tide_id *set, uint32_t *n, tide_id tensor) {
    uint32_t i = *n;
    if (*n > MAX_SET || has(set, *n, tensor)) return;
    if (*n == MAX_SET) {
        *n = MAX_SET + 1;
        return;
    }
    for (; i > 0 && set[i - 1] > tensor; i--) set[i] = set[i - 1];
    set[i] = tensor;
    ++*n;
}

static void insert_reads(const unwinder *u, tide_id op, tide_id *set, uint32_t *n) {
    for (uint32_t i = u->m->read_at[op]; i < u->m->read_at[op + 1]; i++)
        if (!u->outside[u->m->reads[i]]) insert(set, n, u->m->reads[i]);
}

/* ---- the search ---- */

static tide_status push_beyond(unwinder *u, beyond b) {
    TIDE_TRY(tide__vec_push(&u->heap, b));
    beyond *heap = u->heap.data;
    for (size_t i = u->heap.count - 1; i > 0 && heap[(i - 1) / 2].bytes > heap[i].bytes; i = (i - 1) / 2) {
        beyond swap = heap[i];
        heap[i] = heap[(i - 1) / 2];
        heap[(i - 1) / 2] = swap;
    }
    return TIDE_OK;
}

static beyond pop_beyond(unwinder *u) {
    beyond *heap = u->heap.data, top = heap[0];
    size_t n = --u->heap.count, i = 0;
    heap[0] = heap[n];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1].bytes < heap[child].bytes) child++;
        if (heap[i].bytes <= heap[child].bytes) break;
        beyond swap = heap[i];
        heap[i] = heap[child];
        heap[child] = swap;
    }
    return top;
}

static tide_status visit(unwinder *u, uint32_t set, uint32_t parent) {
    value_set *s = &u->sets.data[set];
    if (s->seen == u->search) return TIDE_OK;
    s->seen = u->search;
    s->parent = parent;
    return tide__vec_push(&u->stack, set);
}

/* The set before the op ran last; *done: it is too large to follow. */
static tide_status unwind_by(unwinder *u, uint32_t from, tide_id op, bool *done) {
    const value_set *s = &u->sets.data[from];
    tide_id set[MAX_SET + 1];
    uint32_t n = 0, to;
    for (uint32_t i = 0; i < s->n; i++)
        if (!is_written(u->m, op, u->items.data[s->at + i])) set[n++] = u->items.data[s->at + i];
    uint64_t bytes = load_of(u, op, set, n);
    insert_reads(u, op, set, &n);
    if ((*done = n > MAX_SET)) return TIDE_OK;
    TIDE_TRY(intern(u, set, n, &to));
    if (u->sets.data[to].seen == u->search) return TIDE_OK;
    return bytes <= u->level ? visit(u, to, from) : push_beyond(u, (beyond){.bytes = bytes, .set = to, .parent = from});
}

/* The producers of a set's values, ascending, each once. */
static uint32_t list_producers(const unwinder *u, const value_set *s, tide_id *ops) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        tide_id producer = u->m->producer[u->items.data[s->at + i]];
        if (producer != TIDE_NONE) insert(ops, &n, producer);
    }
    return n;
}

/* All ways on from a set, the latest run last, which is on top of the stack; *done: nothing to unwind. */
static tide_status expand(unwinder *u, uint32_t set, bool *done) {
    tide_id ops[MAX_SET + 1];
    uint32_t n = list_producers(u, &u->sets.data[set], ops);
    *done = n == 0 || u->sets.data[set].is_good;
    for (uint32_t i = 0; i < n && !*done; i++) TIDE_TRY(unwind_by(u, set, ops[i], done));
    return TIDE_OK;
}

static void mark_good(unwinder *u, uint32_t set) {
    for (; set != TIDE_NONE && !u->sets.data[set].is_good; set = u->sets.data[set].parent)
        u->sets.data[set].is_good = true;
}

/* The level rises to the least set beyond it, and all that are within it then join. */
static tide_status rise(unwinder *u, tide_id op) {
    if (u->heap.data[0].bytes > u->level) {
        u->level = u->heap.data[0].bytes;
        u->op = op;
    }
    while (u->heap.count && u->heap.data[0].bytes <= u->level) {
        beyond b = pop_beyond(u);
        TIDE_TRY(visit(u, b.set, b.parent));
    }
    return TIDE_OK;
}

/* Raises the level to what it takes to have the op's reads together and run it. */
static tide_status unwind_op(unwinder *u, tide_id op) {
    tide_id set[MAX_SET + 1];
    uint32_t n = 0, root;
    uint64_t bytes = load_of(u, op, NULL, 0);
    if (bytes > u->level) u->level = bytes, u->op = op;
    insert_reads(u, op, set, &n);
    if (n > MAX_SET) return TIDE_OK;
    u->search++;
    u->stack.count = u->heap.count = 0;
    TIDE_TRY(intern(u, set, n, &root));
    TIDE_TRY(visit(u, root, TIDE_NONE));
    for (uint32_t steps = 0; u->stack.count || u->heap.count; steps++) {
        bool done;
        if (u->stack.count == 0) TIDE_TRY(rise(u, op));
        if (u->stack.count == 0) continue;
        if (steps == MAX_STEPS || u->sets.count > MAX_SETS) return TIDE_OK;
        uint32_t top = u->stack.data[--u->stack.count];
        TIDE_TRY(expand(u, top, &done));
        if (done) return mark_good(u, top), TIDE_OK;
    }
    return TIDE_OK;
}

/* ---- the whole ---- */

static tide_status begin(unwinder *u) {
    size_t n = u->m->n_tensors + (size_t)1;
    u->n_table = 1;
    while (u->n_table < 2 * (MAX_SETS + (size_t)MAX_SET)) u->n_table *= 2;
    tide__array(&u->arrays, u->resident, n);
    tide__array(&u->arrays, u->outside, n);
    tide__array_ones(&u->arrays, u->table, u->n_table);
    TIDE_TRY(tide__arrays_check(&u->arrays));
    return find_resident(u);
}

static void end(unwinder *u) {
    tide__arrays_free(&u->arrays);
    tide__vec_free(&u->items);
    tide__vec_free(&u->sets);
    tide__vec_free(&u->stack);
    tide__vec_free(&u->heap);
}

/* Inputs come from the client's tier when they are needed. */
static void find_outside(unwinder *u) {
    uint64_t most = 0;
    for (tide_id o = 0; o < u->m->n_ops; o++) most = tide__max_u64(most, load_of(u, o, NULL, 0) - u->resident_bytes);
    for (tide_id t = 0; t < u->m->n_tensors; t++) {
        uint64_t least = most / (u->m->producer[t] == TIDE_NONE ? TINY_PART : SMALL_PART);
        u->outside[t] = u->resident[t] || u->m->client[t] || u->m->size[t] < least;
    }
}

/* At the end of the step. */
static uint64_t kept_bytes(const unwinder *u) {
    uint64_t bytes = u->resident_bytes;
    for (tide_id t = 0; t < u->m->n_tensors; t++)
        if (u->m->keep[t]) bytes += counted(u, t);
    return bytes;
}

tide_status tide__unwind(const tide__model *m, uint64_t enough, uint64_t *bytes, tide_id *op) {
    unwinder u = {.m = m, .op = TIDE_NONE};
    uint64_t kept = 0;
    tide_status status = begin(&u);
    if (status == TIDE_OK) {
        find_outside(&u);
        kept = kept_bytes(&u);
        u.level = tide__max_u64(kept, enough);
    }
    for (tide_id o = 0; status == TIDE_OK && o < m->n_ops && u.sets.count <= MAX_SETS; o++) status = unwind_op(&u, o);
    if (status == TIDE_OK) {
        *bytes = u.op == TIDE_NONE ? kept : u.level;
        *op = u.op;
    }
    end(&u);
    return status;
}
