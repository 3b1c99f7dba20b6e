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
    case TIDE_OP_ATTENTION_FWD: READ(x), WRITE(y, rows * (uint64_t)d->heads); break;
    case TIDE_OP_ATTENTION_BWD: READ(x, y, rows * (uint64_t)d->heads, y), WRITE(x); break;
    case TIDE_OP_HEAD_LOSS: READ(x, (uint64_t)(d->y.c * d->x.c), rows), WRITE(x, (uint64_t)(d->y.c * d->x.c), 1); break;
    case TIDE_OP_HEAD_SCORE: READ(x, (uint64_t)(d->y.c * d->x.c), rows), WRITE(2 * rows, 1); break;
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

/* Token i of a head: where its query, key and value begin in qkv, its head in y, its place among the sums. */
typedef struct seat {
    int64_t q, k, v, y, row;
} seat;

static seat seat_of(const tide_op_desc *d, int64_t head_of_sample, int64_t token) {
    int64_t width = d->y.c, head = width / d->heads, row = head_of_sample / d->heads * d->context + token;
    int64_t q = row * 3 * width + head_of_sample % d->heads * head;
    return (seat){q, q + width, q + 2 * width, row * width + head_of_sample % d->heads * head,
                  head_of_sample * d->context + token};
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Query i of a head. */
static void attend(const tide_op_desc *d, int64_t a, int64_t i, double *const *v) {
    const int64_t head = d->y.c / d->heads;
    const seat at = seat_of(d, a, i);
    double sum = 0;
    for (int64_t e = 0; e < head; e++) v[1][at.y + e] = 0;
    for (int64_t j = 0; j <= i; j++) {
        const seat to = seat_of(d, a, j);
        double p = exp(dot(v[0] + at.q, v[0] + to.k, head) / sqrt((double)head));
        for (int64_t e = 0; e < head; e++) v[1][at.y + e] += p * v[0][to.v + e];
        sum += p;
    }
    for (int64_t e = 0; e < head; e++) v[1][at.y + e] /= sum;
    v[2][at.row] = log(sum);
}

static void attend_backward(const tide_op_desc *d, int64_t a, int64_t i, double *const *v) {
    const int64_t head = d->y.c / d->heads;
    const double scale = 1 / sqrt((double)head);
    const seat at = seat_of(d, a, i);
    const double own = dot(v[3] + at.y, v[1] + at.y, head);
    for (int64_t j = 0; j <= i; j++) {
        const seat to = seat_of(d, a, j);
        double p = exp(dot(v[0] + at.q, v[0] + to.k, head) * scale - v[2][at.row]);
        double ds = p * (dot(v[3] + at.y, v[0] + to.v, head) - own) * scale;
        for (int64_t e = 0; e < head; e++) {
            v[4][at.q + e] += ds * v[0][to.k + e];
            v[4][to.k + e] += ds * v[0][at.q + e];
            v[4][to.v + e] += p * v[3][at.y + e];
        }
    }
}

static void attention(const tide_op_desc *d, double *const *v) {
    bool forward = d->kind == TIDE_OP_ATTENTION_FWD;
    if (!forward) memset(v[4], 0, size_of(&d->x) * sizeof(double));
    for (int64_t a = 0; a < d->x.n / d->context * d->heads; a++)
        for (int64_t i = 0; i < d->context; i++) (forward ? attend : attend_backward)(d, a, i, v);
}

/* ---- the head of a language model ---- */

/* The score of class c in row r. */
static double class_score(const tide_op_desc *d, double *const *v, int64_t r, int64_t c) {
    return dot(v[0] + r * d->x.c, v[1] + c * d->x.c, d->x.c);
}

static void head_row(const tide_op_desc *d, double *const *v, int64_t r) {
    const int64_t width = d->x.c, label = (int64_t)v[2][r];
    const bool loss = d->kind == TIDE_OP_HEAD_LOSS;
    double sum = 0, best = -INFINITY, scale = (d->loss_scale != 0 ? (double)d->loss_scale : 1) / (double)d->x.n;
    for (int64_t c = 0; c < d->y.c; c++) {
        double score = class_score(d, v, r, c);
        sum += exp(score);
        if (!loss && score > best) best = score, v[3][2 * r + 1] = (double)c;
    }
    double own = class_score(d, v, r, label) - log(sum > 0 ? sum : 1); /* there are classes: sum is above 0 */
    v[loss ? 5 : 4][0] -= own / (double)d->x.n;
    if (!loss) v[3][2 * r] = own;
    for (int64_t c = 0; loss && c < d->y.c; c++) {
        double g = (exp(class_score(d, v, r, c)) / sum - (c == label)) * scale;
        for (int64_t i = 0; i < width; i++) {
            v[3][r * width + i] += g * v[1][c * width + i];
            v[4][c * width + i] += g * v[0][r * width + i];
        }
    }
}

static void head(const tide_op_desc *d, double *const *v) {
    ref_spec s = ref_token_spec(d);
    for (uint32_t i = s.n_reads; i < s.n_reads + s.n_writes; i++) memset(v[i], 0, s.elements[i] * sizeof(double));
    for (int64_t r = 0; r < d->x.n; r++) head_row(d, v, r);
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
    case TIDE_OP_SLICE:
    case TIDE_OP_STACK: steps(d, v); break;
    case TIDE_OP_HEAD_LOSS:
    case TIDE_OP_HEAD_SCORE: head(d, v); break;
    case TIDE_OP_LSTM_FWD: lstm_forward(d, v); break;
    case TIDE_OP_LSTM_BWD_GATES: lstm_gates(d, v); break;
    case TIDE_OP_LSTM_BWD_WEIGHTS:
    case TIDE_OP_LSTM_BWD_DATA: lstm_linear(d, v); break;
    default: attention(d, v); break;
    }
}
