/* An MLP written by hand trains inside a budget and skips layers at random. Usage: mlp [KiB of the arena] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tidemark/tidemark.h>

enum { BATCH = 128, WIDTH = 32, LAYERS = 8, STEPS = 400, WEIGHTS = WIDTH * WIDTH, VALUES = BATCH * WIDTH };

static void check(tide_status status) {
    if (status != TIDE_OK) exit((puts(tide_last_error()), 1));
}

/* y = x + tanh(x w) of x, w */
static tide_status forward(void *context, void *const *at) {
    const float *x = at[0], *w = at[1];
    for (int k = 0; k < VALUES; k++) {
        float sum = 0;
        for (int i = 0; i < WIDTH; i++) sum += x[k / WIDTH * WIDTH + i] * w[i * WIDTH + k % WIDTH];
        ((float *)at[2])[k] = x[k] + tanhf(sum);
    }
    return TIDE_OK;
}

/* dy and the mean squared error of y, label; column 0 is the prediction */
static tide_status compare(void *context, void *const *at) {
    float *y = at[0], *label = at[1], *dy = at[2], *error = at[3];
    for (int k = 0; k < VALUES; k++) {
        float miss = k % WIDTH ? 0 : y[k] - label[k / WIDTH];
        dy[k] = 2 * miss / BATCH;
        *error = (k ? *error : 0) + miss * miss / BATCH;
    }
    return TIDE_OK;
}

/* w, in place, and dx of w, x, y, dy */
static tide_status learn(void *context, void *const *at) {
    const float *x = at[1], *y = at[2], *dy = at[3];
    float *w = at[4], *dx = at[5];
    for (int k = 0; k < VALUES; k++) dx[k] = dy[k];
    for (int k = 0; k < VALUES; k++)
        for (int i = k % WIDTH, row = k / WIDTH * WIDTH, n = 0; n < WIDTH; n++, i += WIDTH) {
            float slope = dy[k] * (1 - (y[k] - x[k]) * (y[k] - x[k]));
            dx[row + n] += slope * w[i];
            w[i] -= 0.02f * slope * x[row + n];
        }
    return TIDE_OK;
}

/* Closures enqueue; the functions above run later, with the addresses of that moment. */
static tide_status do_forward(void *c, const tide_call *call) { return tide_call_launch(call, forward, c); }
static tide_status do_compare(void *c, const tide_call *call) { return tide_call_launch(call, compare, c); }
static tide_status do_learn(void *c, const tide_call *call) { return tide_call_launch(call, learn, c); }

static void submit(tide_session *s, tide_op_fn fn, uint32_t n_reads, uint32_t n_writes, const tide_id *ids) {
    tide_op op = {.rerunnable = fn != do_learn, .n_reads = n_reads, .reads = ids, .n_writes = n_writes};
    op.writes = ids + n_reads, op.n_inplace = fn == do_learn, op.inplace = &(tide_inplace){.must = true};
    check(tide_session_op(s, &op, fn, NULL));
}

static tide_id tensor(tide_session *s, const float *input, int n) {
    tide_tensor t = {.size_bytes = (uint64_t)n * sizeof(float), .keep = n == 1};
    tide_id id;
    check(input ? tide_session_input(s, &t, input, &id) : tide_session_tensor(s, &t, &id));
    return id;
}

static float step(tide_session *s, const tide_id *w, const float *points, const float *labels, unsigned skipped) {
    tide_id y[LAYERS + 1], label, dy, loss;
    check(tide_session_begin(s, &(tide_step_args){0}));
    y[0] = tensor(s, points, VALUES), label = tensor(s, labels, BATCH);
    for (int l = 0; l < LAYERS; l++) {
        y[l + 1] = skipped >> l & 1 ? y[l] : tensor(s, NULL, VALUES);
        if (y[l + 1] != y[l]) submit(s, do_forward, 2, 1, (tide_id[]){y[l], w[l], y[l + 1]});
    }
    dy = tensor(s, NULL, VALUES), loss = tensor(s, NULL, 1);
    submit(s, do_compare, 2, 2, (tide_id[]){y[LAYERS], label, dy, loss});
    for (int l = LAYERS; l-- > 0;) {
        if (y[l + 1] == y[l]) continue;
        tide_id dx = tensor(s, NULL, VALUES), better = tensor(s, NULL, WEIGHTS);
        submit(s, do_learn, 4, 2, (tide_id[]){w[l], y[l], y[l + 1], dy, better, dx});
        check(tide_session_release(s, y[l + 1])); /* nothing will read it any more: optional, but it saves room */
        check(tide_session_release(s, dy));
        check(tide_session_carry(s, better, w[l]));
        dy = dx;
    }
    check(tide_session_end(s, NULL));
    float error = 0;
    check(tide_session_read(s, loss, &error, sizeof error));
    return error;
}

int main(int argc, char **argv) {
    static float points[VALUES], labels[BATCH], first[WEIGHTS];
    tide_session_options options;
    tide_machine machine;
    tide_session *s;
    tide_id w[LAYERS];
    tide_session_options_init(&options);
    options.machine = &machine;
    options.budgets.arena_bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 96) << 10;
    check(tide_machine_load("cpu", &machine));
    check(tide_device_open("cpu", NULL, &options.device));
    check(tide_session_create(&options, &s));
    for (int l = 0; l < LAYERS; l++) {
        for (int k = 0; k < WEIGHTS; k++) first[k] = (float)((k * 7919 + l * 104729) % 2001 - 1000) * 3e-4f;
        check(tide_session_state(s, &(tide_tensor){.size_bytes = sizeof first}, &w[l]));
        check(tide_session_write(s, w[l], first, sizeof first));
    }
    for (int n = 0; n < BATCH; n++) { /* a spiral over the disk */
        float r = (float)(n % 16) / 10, *x = points + n * WIDTH;
        x[1] = r * cosf((float)n), x[2] = r * sinf((float)n), x[3] = 1, labels[n] = x[2] > x[1] * x[1] - 0.5f ? 1 : -1;
    }
    for (unsigned i = 1, r = 1; i <= STEPS; i++, r = r * 1664525 + 1013904223) {
        float error = step(s, w, points, labels, i % 100 ? r >> 24 & r >> 16 : 0); /* skips a layer in four */
        if (i % 100 == 0) printf("step %u: error %.6f\n", i, (double)error);
    }
    tide_session_destroy(s);
    tide_device_close(options.device);
}
