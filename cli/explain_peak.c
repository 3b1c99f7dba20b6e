/* Why the peak is where it is: the op, what lies in the arena while it runs, by class and by size, and which op each of
 * these waits for. */
#include <stdlib.h>

#include "explain.h"

enum { N_CLASSES = TIDE_CLASS_OTHER + 1 };

/* A residency at the peak. */
typedef struct present {
    tide_id residency;
    uint64_t bytes;
    tide_id next_op, last_op; /* that use it from the peak on; TIDE_NONE: none does */
} present;

typedef struct peak {
    present *list; /* largest first */
    size_t n;
    uint64_t bytes, class_bytes[N_CLASSES];
    size_t class_n[N_CLASSES];
    tide_id op; /* that runs, or ran last */
} peak;

static int by_bytes(const void *a, const void *b) {
    const present *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->residency < y->residency ? -1 : 1;
}

static bool is_present(const explained *r, tide_id residency) {
    return r->stays[residency].begin <= r->peak_action && r->peak_action < r->stays[residency].end;
}

static void count(const explained *r, tide_id residency, uint64_t bytes, peak *p) {
    tide_class cls = tide_report_stay_class(r->report, residency);
    p->bytes += bytes;
    p->class_bytes[cls] += bytes;
    p->class_n[cls]++;
}

/* index[residency]: its place in the list + 1. */
static void find_users(const explained *r, const uint32_t *index, peak *p) {
    for (uint32_t i = r->peak_action; i < tide_plan_action_count(r->plan); i++) {
        tide_action a = tide_plan_action(r->plan, i);
        for (uint32_t k = 0; a.kind == TIDE_RUN && k < a.n_uses; k++) {
            if (!index[a.uses[k]]) continue;
            present *q = &p->list[index[a.uses[k]] - 1];
            if (q->next_op == TIDE_NONE) q->next_op = a.op;
            q->last_op = a.op;
        }
    }
}

static tide_id op_at(const explained *r) {
    for (uint32_t i = r->peak_action; i != TIDE_NONE; i--) { /* below 0 is TIDE_NONE */
        tide_action a = tide_plan_action(r->plan, i);
        if (a.kind == TIDE_RUN) return a.op;
    }
    return TIDE_NONE;
}

static bool find_peak(const explained *r, peak *p) {
    uint32_t n = tide_plan_residency_count(r->plan);
    uint32_t *index = calloc((size_t)n + 1, sizeof *index);
    *p = (peak){.list = malloc(((size_t)n + 1) * sizeof *p->list), .op = TIDE_NONE};
    if (index && p->list && r->peak_action != TIDE_NONE) {
        for (tide_id i = 0; i < n; i++) {
            if (!is_present(r, i)) continue;
            uint64_t bytes = tide_plan_residency(r->plan, i)->size_bytes;
            p->list[p->n++] = (present){i, bytes, TIDE_NONE, TIDE_NONE};
            index[i] = (uint32_t)p->n;
            count(r, i, bytes, p);
        }
        find_users(r, index, p);
        p->op = op_at(r);
        qsort(p->list, p->n, sizeof *p->list, by_bytes);
    }
    bool done = index && p->list;
    free(index);
    return done;
}

static void print_present(const explained *r, const peak *p, const present *q) {
    bool to_end = tide_plan_residency(r->plan, q->residency)->at_end;
    printf("  %11s  %-20s %-28s ", show_bytes(q->bytes),
           tide_class_name(tide_report_stay_class(r->report, q->residency)),
           show_name(tide_report_stay_name(r->report, q->residency)));
    if (q->next_op == p->op)
        printf("in use%s", q->last_op == p->op ? "" : ", ");
    else if (q->next_op == TIDE_NONE)
        printf("%s", to_end ? "" : "on its way out");
    else
        printf("waits for %s%s", show_op(r->program, q->next_op), q->last_op == q->next_op ? "" : ", ");
    if (q->last_op != q->next_op) printf("needed up to %s", show_op(r->program, q->last_op));
    printf("%s\n", to_end ? (q->next_op == TIDE_NONE ? "kept to the end" : ", kept to the end") : "");
}

void print_peak(const explained *r, uint32_t top) {
    peak p;
    if (find_peak(r, &p)) {
        printf("\nthe peak: %s at %s\n", show_bytes(p.bytes), show_op(r->program, p.op));
        for (int c = 0; c < N_CLASSES; c++)
            if (p.class_n[c])
                printf("  %11s  %5.1f %%  %s (%zu)\n", show_bytes(p.class_bytes[c]),
                       100 * (double)p.class_bytes[c] / (double)(p.bytes ? p.bytes : 1), tide_class_name((tide_class)c),
                       p.class_n[c]);
        printf("largest there:\n");
        for (size_t i = 0; i < p.n && i < top; i++) print_present(r, &p, &p.list[i]);
        if (p.n > top) printf("  ... and %zu more (--top N)\n", p.n - top);
    }
    free(p.list);
}

static void present_json(json_out *j, const explained *r, const present *q) {
    tide_id tensor = tide_plan_residency(r->plan, q->residency)->tensor;
    json_open(j, NULL, '{');
    if (tensor != TIDE_NONE) json_u64(j, "tensor", tensor);
    json_text(j, "name", tide_report_stay_name(r->report, q->residency));
    json_text(j, "class", tide_class_name(tide_report_stay_class(r->report, q->residency)));
    json_u64(j, "bytes", q->bytes);
    if (q->next_op != TIDE_NONE) json_u64(j, "next_op", q->next_op);
    if (q->last_op != TIDE_NONE) json_u64(j, "last_op", q->last_op);
    json_bool(j, "kept", tide_plan_residency(r->plan, q->residency)->at_end);
    json_close(j, '{');
}

void peak_json(json_out *j, const explained *r, uint32_t top) {
    peak p;
    if (find_peak(r, &p)) {
        json_open(j, "peak", '{');
        json_u64(j, "bytes", p.bytes);
        if (p.op != TIDE_NONE) json_u64(j, "op", p.op);
        if (p.op != TIDE_NONE) json_text(j, "op_name", tide_program_op(r->program, p.op)->name);
        json_open(j, "classes", '{');
        for (int c = 0; c < N_CLASSES; c++)
            if (p.class_n[c]) json_u64(j, tide_class_name((tide_class)c), p.class_bytes[c]);
        json_close(j, '{');
        json_open(j, "there", '[');
        for (size_t i = 0; i < p.n && i < top; i++) present_json(j, r, &p.list[i]);
        json_close(j, '[');
        json_close(j, '{');
    }
    free(p.list);
}
