/* See ref_tokens.h. */
#include "support/ref_tokens.h"

#include <math.h>
#include <string.h>

static uint64_t size_of(const tide_shape *s) { return (uint64_t)(s->n * s->c * s->h * s->w); }

/* ---- operands ---- */

static void read_of(ref_spec *s, uint64_t elements) { s->elements[s->n_reads++] = elements; }
static void write_of(ref_spec *s, uint64_t elements) { s->elements[s->n_reads + s->n_writes++] = elements; }

#define READ(...) each(&s, read_of, (const uint64_t[]){__VA_ARGS__, UINT64_MAX})
#define WRITE(...) each(&s, write_of, (const uint64_t[]){__VA_ARGS__, UINT64_MAX})

static void each(ref_spec *s, void (*add)(ref_spec *, uint64_t), const uint64_t *list) {
    for (; *list != UINT64_MAX; list++) add(s, *list);
}

static ref_spec spec_of_lstm(const tide_op_desc *d) {
    ref_spec s = {0};
    uint64_t x = size_of(&d->x), y = size_of(&d->y), w = (uint64_t)(4 * d->y.c * (d->x.c + d->y.c)),
             bias = (uint64_t)(4 * d->y.c);
    switch (d->kind) {
    case TIDE_OP_LSTM_FWD:
        READ(x);
        if (d->has_prev) READ(y, y);
        READ(w, bias);
        WRITE(y, y, 4 * y);
        break;
    case TIDE_OP_LSTM_BWD_GATES:
        READ(4 * y, y);
        if (d->has_prev) READ(y);
        READ(y);
        if (d->has_next) READ(y);
        WRITE(4 * y);
        if (d->has_prev) WRITE(y);
        break;
    case TIDE_OP_LSTM_BWD_WEIGHTS:
        READ(x);
        if (d->has_prev) READ(y);
        READ(4 * y);
        WRITE(w, bias);
        break;
    default:
        READ(w, 4 * y);
        WRITE(x);
        if (d->has_prev) WRITE(y);
        break;
    }
    return s;
}

static ref_spec spec_of_embedding(const tide_op_desc *d) {
    ref_spec s = {0};
    uint64_t tokens = size_of(&d->x), y = size_of(&d->y), table = (uint64_t)(d->vocabulary * d->y.c),
             positions = (uint64_t)(d->x.c * d->y.c);
    READ(tokens);
    if (d->kind == TIDE_OP_EMBEDDING_FWD) {
        READ(table);
        if (d->bias) READ(positions);
        WRITE(y);
    } else {
        READ(y);
        WRITE(table);
        if (d->bias) WRITE(positions);
    }
    return s;
}

ref_spec ref_token_spec(const tide_op_desc *d) {
    ref_spec s = {0};
    uint64_t x = size_of(&d->x), y = size_of(&d->y), rows = (uint64_t)d->x.n, width = (uint64_t)d->x.c;
    switch (d->kind) {
    case TIDE_OP_LAYERNORM_FWD: READ(x, width, width), WRITE(x, rows, rows); break;
    case TIDE_OP_LAYERNORM_BWD: READ(x, x, width, rows, rows), WRITE(x, width, width); break;
    case TIDE_OP_GELU_FWD: READ(x), WRITE(x); break;
    case TIDE_OP_GELU_BWD: READ(x, x), WRITE(x); break;
    case TIDE_OP_EMBEDDING_FWD:
    case TIDE_OP_EMBEDDING_BWD: return spec_of_embedding(d);
    case TIDE_OP_SCORES_FWD: READ(x), WRITE(y); break;
    case TIDE_OP_SCORES_BWD: READ(x, x / 3, y), WRITE(x); break;
    case TIDE_OP_CAUSAL_SOFTMAX_FWD: READ(x), WRITE(x); break;
    case TIDE_OP_CAUSAL_SOFTMAX_BWD: READ(x, x), WRITE(x); break;
    case TIDE_OP_VALUES_FWD: READ(x, 3 * y), WRITE(y); break;
    case TIDE_OP_VALUES_BWD: READ(x, 3 * y, y), WRITE(x, y); break;
    case TIDE_OP_SLICE: READ(x), WRITE(y); break;
    case TIDE_OP_STACK:
        for (int32_t i = 0; i < d->steps; i++) READ(x);
        WRITE(y);
        break;
    default: return spec_of_lstm(d);
    }
    return s;
}

/* ---- layer norm, gelu ---- */

static void layernorm_forward(const tide_op_desc *d, double *const *v) {
    int64_t width = d->x.c;
    for (int64_t r = 0; r < d->x.n; r++) {
        double *x = v[0] + r * width, mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++) mean += x[i] / (double)width;
        for (int64_t i = 0; i < width; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)width;
        v[4][r] = mean;
        v[5][r] = 1 / sqrt(variance + (double)d->eps);
        for (int64_t i = 0; i < width; i++) v[3][r * width + i] = (x[i] - mean) * v[5][r] * v[1][i] + v[2][i];
    }
}

static void layernorm_backward(const tide_op_desc *d, double *const *v) {
    int64_t width = d->x.c;
    memset(v[6], 0, (size_t)width * sizeof(double));
    memset(v[7], 0, (size_t)width * sizeof(double));
    for (int64_t r = 0; r < d->x.n; r++) {
        double *x = v[0] + r * width, *dy = v[1] + r * width, a = 0, b = 0;
        for (int64_t i = 0; i < width; i++) {
            double hat = (x[i] - v[3][r]) * v[4][r];
            a += dy[i] * v[2][i] / (double)width;
            b += dy[i] * v[2][i] * hat / (double)width;
            v[6][i] += dy[i] * hat;
            v[7][i] += dy[i];
        }
        for (int64_t i = 0; i < width; i++)
            v[5][r * width + i] = v[4][r] * (dy[i] * v[2][i] - a - (x[i] - v[3][r]) * v[4][r] * b);
    }
}

static double gelu(double x) { return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))); }

static double gelu_slope(double x) {
    double root = sqrt(2 / acos(-1)), t = tanh(root * (x + 0.044715 * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

/* ---- embedding ---- */

static void embedding(const tide_op_desc *d, double *const *v) {
    bool forward = d->kind == TIDE_OP_EMBEDDING_FWD;
    double *table = v[forward ? 1 : 2], *positions = d->bias ? v[forward ? 2 : 3] : NULL, *y = v[1];
    if (forward) y = v[d->bias ? 3 : 2];
    if (!forward) memset(table, 0, (size_t)(d->vocabulary * d->y.c) * sizeof *table);
    if (!forward && positions) memset(positions, 0, (size_t)(d->x.c * d->y.c) * sizeof *positions);
    for (int64_t r = 0; r < d->y.n; r++)
        for (int64_t i = 0; i < d->y.c; i++) {
            double *row = &table[(int64_t)v[0][r] * d->y.c + i];
            double *place = positions ? &positions[r % d->x.c * d->y.c + i] : NULL;
            if (forward) {
                y[r * d->y.c + i] = *row + (place ? *place : 0);
                continue;
            }
            *row += y[r * d->y.c + i];
            if (place) *place += y[r * d->y.c + i];
        }
}

/* ---- attention ---- */

/* Calls fn for every pair (token i, token j <= i) of every head: where its score lies, where its q, k, v and y begin. */
typedef struct pair {
    int64_t score, q, k, v, y_i, y_j, head;
    double scale;
} pair;

static void for_pairs(const tide_shape *square, int64_t width, void (*fn)(const pair *, double *const *),
                      double *const *v) {
    int64_t t = square->h, head = width / square->c;
    for (int64_t a = 0; a < square->n * square->c; a++)
        for (int64_t i = 0; i < t; i++)
            for (int64_t j = 0; j <= i; j++) {
                int64_t row = a / square->c * t, column = a % square->c * head;
                pair p = {.score = (a * t + i) * t + j, .head = head, .scale = 1 / sqrt((double)head)};
                p.q = (row + i) * 3 * width + column;
                p.k = (row + j) * 3 * width + width + column;
                p.v = (row + j) * 3 * width + 2 * width + column;
                p.y_i = (row + i) * width + column;
                p.y_j = (row + j) * width + column;
                fn(&p, v);
            }
}

static void score(const pair *p, double *const *v) {
    for (int64_t e = 0; e < p->head; e++) v[1][p->score] += p->scale * v[0][p->q + e] * v[0][p->k + e];
}

static void score_backward(const pair *p, double *const *v) {
    for (int64_t e = 0; e < p->head; e++) {
        v[3][p->q + e] += p->scale * v[2][p->score] * v[0][p->k + e];
        v[3][p->k + e] += p->scale * v[2][p->score] * v[0][p->q + e];
        v[3][p->v + e] = v[1][p->y_j + e];
    }
}

static void value(const pair *p, double *const *v) {
    for (int64_t e = 0; e < p->head; e++) v[2][p->y_i + e] += v[0][p->score] * v[1][p->v + e];
}

static void value_backward(const pair *p, double *const *v) {
    for (int64_t e = 0; e < p->head; e++) {
        v[3][p->score] += v[2][p->y_i + e] * v[1][p->v + e];
        v[4][p->y_j + e] += v[0][p->score] * v[2][p->y_i + e];
    }
}

static void attention(const tide_op_desc *d, double *const *v) {
    ref_spec s = ref_token_spec(d);
    for (uint32_t i = s.n_reads; i < s.n_reads + s.n_writes; i++) memset(v[i], 0, s.elements[i] * sizeof(double));
    switch (d->kind) {
    case TIDE_OP_SCORES_FWD: for_pairs(&d->y, d->x.c / 3, score, v); break;
    case TIDE_OP_SCORES_BWD: for_pairs(&d->y, d->x.c / 3, score_backward, v); break;
    case TIDE_OP_VALUES_FWD: for_pairs(&d->x, d->y.c, value, v); break;
    default: for_pairs(&d->x, d->y.c, value_backward, v); break;
    }
}

static void causal_softmax(const tide_op_desc *d, double *const *v) {
    bool forward = d->kind == TIDE_OP_CAUSAL_SOFTMAX_FWD;
    for (int64_t r = 0; r < d->x.n * d->x.c * d->x.h; r++) {
        int64_t at = r * d->x.w, n = r % d->x.h + 1;
        double sum = 0, *out = v[forward ? 1 : 2] + at;
        for (int64_t i = 0; i < n; i++) sum += forward ? exp(v[0][at + i]) : v[0][at + i] * v[1][at + i];
        for (int64_t i = 0; i < d->x.w; i++) {
            if (i >= n)
                out[i] = 0;
            else
                out[i] = forward ? exp(v[0][at + i]) / sum : v[0][at + i] * (v[1][at + i] - sum);
        }
    }
}

/* ---- steps ---- */

static void steps(const tide_op_desc *d, double *const *v) {
    bool slice = d->kind == TIDE_OP_SLICE;
    for (int32_t s = 0; s < d->steps; s++)
        for (int64_t i = 0; i < (slice ? d->y.n : d->x.n) * d->x.c; i++) {
            int64_t row = i / d->x.c, all = (row * d->steps + s) * d->x.c + i % d->x.c;
            if (!slice)
                v[d->steps][all] = v[s][i];
            else if (s == d->step)
                v[1][i] = v[0][all];
        }
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Row r of gates before their functions. */
static double gate(const tide_op_desc *d, const double *x, const double *h, const double *w, int64_t r, int64_t o) {
    int64_t all = d->x.c + d->y.c;
    double sum = 0;
    for (int64_t i = 0; i < d->x.c; i++) sum += x[r * d->x.c + i] * w[o * all + i];
    for (int64_t i = 0; h && i < d->y.c; i++) sum += h[r * d->y.c + i] * w[o * all + d->x.c + i];
    return sum;
}

static void lstm_forward(const tide_op_desc *d, double *const *v) {
    int64_t n = d->y.c, at = d->has_prev ? 3 : 1;
    double *w = v[at], *bias = v[at + 1], *h_out = v[at + 2], *c_out = v[at + 3], *gates = v[at + 4];
    for (int64_t r = 0; r < d->x.n; r++)
        for (int64_t i = 0; i < n; i++) {
            double *g = gates + r * 4 * n + i, a[4];
            for (int64_t k = 0; k < 4; k++)
                a[k] = gate(d, v[0], d->has_prev ? v[1] : NULL, w, r, k * n + i) + bias[k * n + i];
            for (int64_t k = 0; k < 4; k++) g[k * n] = k == 2 ? tanh(a[k]) : sigmoid(a[k]);
            c_out[r * n + i] = g[0] * g[2 * n] + (d->has_prev ? g[n] * v[2][r * n + i] : 0);
            h_out[r * n + i] = g[3 * n] * tanh(c_out[r * n + i]);
        }
}

static void lstm_gates(const tide_op_desc *d, double *const *v) {
    int64_t n = d->y.c, at = 2;
    double *c = d->has_prev ? v[at++] : NULL, *dh = v[at++], *next = d->has_next ? v[at++] : NULL, *out = v[at++];
    for (int64_t r = 0; r < d->y.n; r++)
        for (int64_t i = 0; i < n; i++) {
            int64_t k = r * n + i;
            double *g = v[0] + r * 4 * n + i, *dg = out + r * 4 * n + i, t = tanh(v[1][k]);
            double e = (next ? next[k] : 0) + dh[k] * g[3 * n] * (1 - t * t);
            dg[0] = e * g[2 * n] * g[0] * (1 - g[0]);
            dg[n] = c ? e * c[k] * g[n] * (1 - g[n]) : 0;
            dg[2 * n] = e * g[0] * (1 - g[2 * n] * g[2 * n]);
            dg[3 * n] = dh[k] * t * g[3 * n] * (1 - g[3 * n]);
            if (c) v[at][k] = e * g[n];
        }
}

static void lstm_linear(const tide_op_desc *d, double *const *v) {
    ref_spec s = ref_token_spec(d);
    bool weights = d->kind == TIDE_OP_LSTM_BWD_WEIGHTS;
    int64_t n = d->y.c, in = d->x.c;
    double *x = v[weights ? 0 : 2], *h = d->has_prev ? v[weights ? 1 : 3] : NULL, *w = v[weights ? s.n_reads : 0],
           *dgates = v[weights ? s.n_reads - 1 : 1];
    for (uint32_t i = s.n_reads; i < s.n_reads + s.n_writes; i++) memset(v[i], 0, s.elements[i] * sizeof(double));
    for (int64_t r = 0; r < d->x.n; r++)
        for (int64_t o = 0; o < 4 * n; o++) {
            double slope = dgates[r * 4 * n + o];
            for (int64_t i = 0; i < in + (h ? n : 0); i++) {
                double *from = i < in ? &x[r * in + i] : &h[r * n + i - in], *to = &w[o * (in + n) + i];
                if (weights)
                    *to += slope * *from;
                else
                    *from += slope * *to;
            }
            if (weights) v[s.n_reads + 1][o] += slope;
        }
}

void ref_token_run(const tide_op_desc *d, double *const *v) {
    switch (d->kind) {
    case TIDE_OP_LAYERNORM_FWD: layernorm_forward(d, v); break;
    case TIDE_OP_LAYERNORM_BWD: layernorm_backward(d, v); break;
    case TIDE_OP_GELU_FWD:
        for (uint64_t i = 0; i < size_of(&d->x); i++) v[1][i] = gelu(v[0][i]);
        break;
    case TIDE_OP_GELU_BWD:
        for (uint64_t i = 0; i < size_of(&d->x); i++) v[2][i] = v[1][i] * gelu_slope(v[0][i]);
        break;
    case TIDE_OP_EMBEDDING_FWD:
    case TIDE_OP_EMBEDDING_BWD: embedding(d, v); break;
    case TIDE_OP_CAUSAL_SOFTMAX_FWD:
    case TIDE_OP_CAUSAL_SOFTMAX_BWD: causal_softmax(d, v); break;
    case TIDE_OP_SLICE:
    case TIDE_OP_STACK: steps(d, v); break;
    case TIDE_OP_LSTM_FWD: lstm_forward(d, v); break;
    case TIDE_OP_LSTM_BWD_GATES: lstm_gates(d, v); break;
    case TIDE_OP_LSTM_BWD_WEIGHTS:
    case TIDE_OP_LSTM_BWD_DATA: lstm_linear(d, v); break;
    default: attention(d, v); break;
    }
}
