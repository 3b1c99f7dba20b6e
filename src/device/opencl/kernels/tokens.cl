/* What language models have beside matrix products: embeddings, the causal softmax, the gates of LSTM cells. */
#define COLUMNS_OF_ITEM 64 /* also in tokens.c */

/* A token that is not in the vocabulary is reported; its row is zero, and it has no gradient. Group: a row of y. */
KERNEL void embed(ARENA, ulong token_at, ulong table_at, ulong positions_at,
                  ulong y_at, int width, int context, int vocabulary, int has_positions) {
    SKIP_AFTER_FAULT;
    const long row = (long)get_group_id(0);
    const int token = INTS(token_at)[row], known = token >= 0 && token < vocabulary;
    global const float *from = FLOATS(table_at) + (known ? (long)token * width : 0);
    global const float *position = FLOATS(positions_at) + row % context * width;
    global float *y = FLOATS(y_at) + row * width;
    if (!known) report(faults, 2, token, (int)row, vocabulary);
    for (int i = LANE; i < width; i += LANES) y[i] = (known ? from[i] : 0) + (has_positions ? position[i] : 0);
}

/* All rows of dy to the rows of their tokens, which are zero before, in order. Group: a range of columns. */
KERNEL void embed_backward(ARENA, ulong token_at, ulong dy_at, ulong table_at,
                           ulong positions_at, int rows, int width, int context, int vocabulary, int has_positions) {
    SKIP_AFTER_FAULT;
    const int first = (int)get_group_id(0) * COLUMNS_OF_ITEM, n = min(COLUMNS_OF_ITEM, width - first);
    for (long row = 0; row < rows; row++) {
        const int token = INTS(token_at)[row];
        global const float *dy = FLOATS(dy_at) + row * width + first;
        if (token < 0 || token >= vocabulary) {
            report(faults, 2, token, (int)row, vocabulary);
            continue;
        }
        global float *to = FLOATS(table_at) + (long)token * width + first;
        for (int i = LANE; i < n; i += LANES) to[i] += dy[i];
        global float *position = FLOATS(positions_at) + row % context * width + first;
        for (int i = LANE; i < n && has_positions; i += LANES) position[i] += dy[i];
    }
}

/* ---- causal softmax: row r of a square sees r + 1 elements, the others are zero. Group: a row ---- */

KERNEL void causal_softmax(ARENA, ulong x_at, ulong prob_at, int context) {
    SKIP_AFTER_FAULT;
    const long row = (long)get_group_id(0);
    const int n = (int)(row % context) + 1;
    global const float *x = FLOATS(x_at) + row * context;
    global float *prob = FLOATS(prob_at) + row * context;
    local float scratch[LANES];
    local wide wide_scratch[LANES];
    float largest;
    row_softmax(x, n, prob, scratch, wide_scratch, &largest);
    FOR_RANGE(n, context, vstore8((float8)(0), 0, prob + i), prob[i] = 0);
}

KERNEL void causal_softmax_backward(ARENA, ulong prob_at, ulong dprob_at, ulong dx_at, int context) {
    SKIP_AFTER_FAULT;
    const long row = (long)get_group_id(0);
    const int n = (int)(row % context) + 1;
    global const float *prob = FLOATS(prob_at) + row * context, *dprob = FLOATS(dprob_at) + row * context;
    global float *dx = FLOATS(dx_at) + row * context;
    local wide scratch[LANES];
    wide8 lanes = 0;
    wide rest = 0;
    FOR_ROW(n, lanes += WIDE8(vload8(0, prob + i)) * WIDE8(vload8(0, dprob + i)),
            rest += (wide)prob[i] * (wide)dprob[i]);
    const float sum = (float)group_sum(sum8(lanes) + rest, scratch);
    FOR_ROW(n, vstore8(vload8(0, prob + i) * (vload8(0, dprob + i) - sum), 0, dx + i),
            dx[i] = prob[i] * (dprob[i] - sum));
    FOR_RANGE(n, context, vstore8((float8)(0), 0, dx + i), dx[i] = 0);
}

/* ---- LSTM cells: gates (rows, 4 n) are input, forget, candidate, output. Group: a row ---- */

inline float sigmoid(float x) { return 1 / (1 + exp(-x)); }

/* Before their functions, and then after. */
KERNEL void finish_gates(ARENA, ulong c_at, ulong h_out_at, ulong c_out_at, ulong gates_at, int n,
                         int has_prev) {
    SKIP_AFTER_FAULT;
    const long row = (long)get_group_id(0);
    global const float *c = FLOATS(c_at) + row * n;
    global float *h_out = FLOATS(h_out_at) + row * n, *c_out = FLOATS(c_out_at) + row * n;
    global float *gates = FLOATS(gates_at) + row * 4 * n;
    for (int k = LANE; k < n; k += LANES) {
        const float i = sigmoid(gates[k]), f = sigmoid(gates[n + k]), g = tanh(gates[2 * n + k]);
        const float o = sigmoid(gates[3 * n + k]), fresh = i * g + (has_prev ? f * c[k] : 0);
        gates[k] = i;
        gates[n + k] = f;
        gates[2 * n + k] = g;
        gates[3 * n + k] = o;
        c_out[k] = fresh;
        h_out[k] = o * tanh(fresh);
    }
}

/* dgates may lie on gates. */
KERNEL void gates_backward(ARENA, ulong gates_at, ulong c_out_at, ulong c_at, ulong dh_at, ulong dc_next_at,
                           ulong dgates_at, ulong dc_at, int n, int has_prev, int has_next) {
    SKIP_AFTER_FAULT;
    const long row = (long)get_group_id(0);
    global const float *gates = FLOATS(gates_at) + row * 4 * n, *c_out = FLOATS(c_out_at) + row * n;
    global const float *c = FLOATS(c_at) + row * n, *dh = FLOATS(dh_at) + row * n;
    global const float *dc_next = FLOATS(dc_next_at) + row * n;
    global float *dgates = FLOATS(dgates_at) + row * 4 * n, *dc = FLOATS(dc_at) + row * n;
    for (int k = LANE; k < n; k += LANES) {
        const float i = gates[k], f = gates[n + k], g = gates[2 * n + k], o = gates[3 * n + k];
        const float t = tanh(c_out[k]), d = dh[k], e = (has_next ? dc_next[k] : 0) + d * o * (1 - t * t);
        dgates[k] = e * g * i * (1 - i);
        dgates[n + k] = has_prev ? e * c[k] * f * (1 - f) : 0;
        dgates[2 * n + k] = e * i * (1 - g * g);
        dgates[3 * n + k] = d * t * o * (1 - o);
        if (has_prev) dc[k] = e * f;
    }
}
