/* Kernels of language models: as test_kernels.c. */
#include "support/test.h"

#include <math.h>

#include "support/kernel_modes.h"
#include "support/opencl.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- descriptors ---- */

static const tide_shape rows[] = {{1, 1, 1, 1}, {3, 5, 1, 1}, {40, 768, 1, 1}, {17, 9, 1, 1}, {130, 64, 1, 1}};

static tide_op_desc rows_desc(tide_op_kind kind, const tide_shape *s) {
    return (tide_op_desc){.kind = kind, .x = *s, .y = *s, .eps = 1e-5f};
}

typedef struct attention_case {
    int64_t samples, heads, context, head;
} attention_case;

static const attention_case attentions[] = {
    {1, 1, 1, 1},  {2, 3, 5, 4},   {2, 12, 16, 8},  {1, 2, 150, 64},
    {3, 1, 64, 7}, {1, 9, 65, 16}, {1, 2, 577, 24}, {1, 1, 20, 300}, /* several tiles of keys; a wide head */
};

static tide_op_desc attention_desc(tide_op_kind kind, const attention_case *a) {
    tide_shape y = {a->samples * a->context, a->heads * a->head, 1, 1}, qkv = {y.n, 3 * y.c, 1, 1};
    tide_op_desc d = {.kind = kind, .x = qkv, .y = y};
    d.heads = (int32_t)a->heads;
    d.context = (int32_t)a->context;
    return d;
}

/* Samples, tokens each, vocabulary, width. */
static const int64_t embeddings[][4] = {{1, 1, 1, 1}, {2, 7, 5, 12}, {3, 64, 100, 130}, {1, 3, 9, 8}};

static tide_op_desc embedding_desc(tide_op_kind kind, const int64_t e[4], int32_t positions) {
    tide_op_desc d = {.kind = kind, .x = {e[0], e[1], 1, 1}, .y = {e[0] * e[1], e[3], 1, 1}, .bias = positions};
    d.vocabulary = e[2];
    return d;
}

/* Rows, inputs, width. */
static const int64_t cells[][3] = {{1, 1, 1}, {4, 6, 5}, {3, 16, 8}, {33, 40, 70}};

static tide_op_desc cell_desc(tide_op_kind kind, const int64_t c[3], int32_t prev, int32_t next) {
    return (tide_op_desc){
        .kind = kind, .x = {c[0], c[1], 1, 1}, .y = {c[0], c[2], 1, 1}, .has_prev = prev, .has_next = next};
}

/* Rows of one step, width, steps. */
static const int64_t stacks[][3] = {{1, 1, 1}, {3, 5, 7}, {40, 64, 12}};

static tide_op_desc steps_desc(tide_op_kind kind, const int64_t s[3], int32_t step) {
    tide_shape part = {s[0], s[1], 1, 1}, all = {s[0] * s[2], s[1], 1, 1};
    bool slice = kind == TIDE_OP_SLICE;
    tide_op_desc d = {.kind = kind, .x = slice ? all : part, .y = slice ? part : all, .step = step};
    d.steps = (int32_t)s[2];
    return d;
}

/* Rows, width, classes; the last takes two chunks. */
static const int64_t heads[][3] = {{1, 1, 1}, {5, 7, 9}, {40, 24, 300}, {65, 1, 131073}};

static tide_op_desc head_desc(tide_op_kind kind, const int64_t h[3]) {
    return (tide_op_desc){.kind = kind, .x = {h[0], h[1], 1, 1}, .y = {h[0], h[2], 1, 1}, .loss_scale = 0.5f};
}

static const tide_op_kind row_kinds[] = {TIDE_OP_LAYERNORM_FWD, TIDE_OP_LAYERNORM_BWD, TIDE_OP_GELU_FWD,
                                         TIDE_OP_GELU_BWD};

static void visit_rows(visit_fn visit, void *context) {
    static const tide_shape images[] = {{2, 12, 3, 3}, {1, 3, 5, 2}};
    tide_op_desc d;
    for (size_t k = 0; k < COUNT(row_kinds); k++)
        for (size_t i = 0; i < COUNT(rows); i++) d = rows_desc(row_kinds[k], &rows[i]), visit(&d, context);
    for (size_t k = 2; k < COUNT(row_kinds); k++)
        for (size_t i = 0; i < COUNT(images); i++) d = rows_desc(row_kinds[k], &images[i]), visit(&d, context);
}

static const tide_op_kind attention_kinds[] = {TIDE_OP_ATTENTION_FWD, TIDE_OP_ATTENTION_BWD};

static void visit_attention(visit_fn visit, void *context) {
    tide_op_desc d;
    for (size_t k = 0; k < COUNT(attention_kinds); k++)
        for (size_t i = 0; i < COUNT(attentions); i++)
            d = attention_desc(attention_kinds[k], &attentions[i]), visit(&d, context);
}

static void visit_embeddings(visit_fn visit, void *context) {
    tide_op_desc d;
    for (size_t i = 0; i < COUNT(embeddings); i++)
        for (int32_t positions = 0; positions < 2; positions++) {
            d = embedding_desc(TIDE_OP_EMBEDDING_FWD, embeddings[i], positions), visit(&d, context);
            d = embedding_desc(TIDE_OP_EMBEDDING_BWD, embeddings[i], positions), visit(&d, context);
        }
}

static void visit_steps(visit_fn visit, void *context) {
    static const tide_op_kind kinds[] = {TIDE_OP_LSTM_FWD, TIDE_OP_LSTM_BWD_GATES, TIDE_OP_LSTM_BWD_WEIGHTS,
                                         TIDE_OP_LSTM_BWD_DATA};
    tide_op_desc d;
    for (size_t i = 0; i < COUNT(stacks); i++) {
        d = steps_desc(TIDE_OP_STACK, stacks[i], 0), visit(&d, context);
        d = steps_desc(TIDE_OP_SLICE, stacks[i], 0), visit(&d, context);
        d = steps_desc(TIDE_OP_SLICE, stacks[i], (int32_t)stacks[i][2] - 1), visit(&d, context);
    }
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t i = 0; i < COUNT(cells); i++)
            for (int32_t ends = 0; ends < 4; ends++)
                d = cell_desc(kinds[k], cells[i], ends & 1, ends >> 1), visit(&d, context);
}

static void visit_heads(visit_fn visit, void *context) {
    tide_op_desc d;
    for (size_t i = 0; i < COUNT(heads); i++) {
        d = head_desc(TIDE_OP_HEAD_LOSS, heads[i]), visit(&d, context);
        d = head_desc(TIDE_OP_HEAD_SCORE, heads[i]), visit(&d, context);
    }
}

static void visit_all(visit_fn visit, void *context) {
    visit_heads(visit, context);
    visit_rows(visit, context);
    visit_attention(visit, context);
    visit_embeddings(visit, context);
    visit_steps(visit, context);
}

/* ---- every descriptor against every check ---- */

static void test_reference(void **state) { check_all_on(*state, visit_all, check_reference); }
static void test_same_bits(void **state) { check_all_on(*state, visit_all, check_repeat); }
static void test_in_place(void **state) { check_all_on(*state, visit_all, check_in_place); }

#ifndef __SANITIZE_THREAD__
static void test_same_bits_on_any_threads(void **state) {
    (void)state;
    check_all_threads(visit_all);
}
#endif

/* ---- finite differences ---- */

static void test_finite_differences(void **state) {
    static const gradient_case norms[] = {
        {TIDE_OP_LAYERNORM_FWD, TIDE_OP_LAYERNORM_BWD, 0, 0, 1, 0, {{0, 0}, {2, 1}, {3, 4}, {4, 5}, {-1}}, 0},
        {TIDE_OP_LAYERNORM_FWD, TIDE_OP_LAYERNORM_BWD, 1, 0, 1, 1, {{0, 0}, {2, 1}, {3, 4}, {4, 5}, {-1}}, 0},
        {TIDE_OP_LAYERNORM_FWD, TIDE_OP_LAYERNORM_BWD, 2, 0, 1, 2, {{0, 0}, {2, 1}, {3, 4}, {4, 5}, {-1}}, 0},
        {TIDE_OP_GELU_FWD, TIDE_OP_GELU_BWD, 0, 0, 1, 0, {{0, 0}, {-1}}, 0},
    };
    static const gradient_case pairs[] = {
        {TIDE_OP_ATTENTION_FWD, TIDE_OP_ATTENTION_BWD, 0, 0, 3, 0, {{0, 0}, {1, 1}, {2, 2}, {-1}}, 0},
    };
    static const gradient_case tables[] = {
        {TIDE_OP_EMBEDDING_FWD, TIDE_OP_EMBEDDING_BWD, 1, 0, 1, 0, {{0, 0}, {-1}}, 0},
        {TIDE_OP_EMBEDDING_FWD, TIDE_OP_EMBEDDING_BWD, 2, 0, 1, 1, {{0, 0}, {-1}}, 0},
    };
    static const gradient_case losses[] = {
        {TIDE_OP_HEAD_LOSS, TIDE_OP_HEAD_LOSS, 0, 2, -1, 0, {{0, 0}, {1, 1}, {2, 2}, {-1}}, 0},
        {TIDE_OP_HEAD_LOSS, TIDE_OP_HEAD_LOSS, 1, 2, -1, 1, {{0, 0}, {1, 1}, {2, 2}, {-1}}, 0},
    };
    static const gradient_case state_gradient = {
        TIDE_OP_LSTM_FWD, TIDE_OP_LSTM_BWD_GATES, 2, 0, 3, 1, {{0, 7}, {1, 6}, {2, 2}, {-1}}, 0};
    kernel_rig rig;
    rig_open(&rig, *state);
    for (size_t i = 0; i < COUNT(norms); i++) {
        tide_op_desc f = rows_desc(norms[i].forward, &rows[1]), b = rows_desc(norms[i].backward, &rows[1]);
        check_gradient(&rig, &norms[i], &f, &b);
    }
    for (size_t i = 0; i < COUNT(pairs); i++) {
        tide_op_desc f = attention_desc(pairs[i].forward, &attentions[1]),
                     b = attention_desc(pairs[i].backward, &attentions[1]);
        check_gradient(&rig, &pairs[i], &f, &b);
    }
    for (size_t i = 0; i < COUNT(tables); i++) {
        tide_op_desc f = embedding_desc(tables[i].forward, embeddings[1], 1),
                     b = embedding_desc(tables[i].backward, embeddings[1], 1);
        check_gradient(&rig, &tables[i], &f, &b);
    }
    for (size_t i = 0; i < COUNT(losses); i++) {
        tide_op_desc whole = head_desc(TIDE_OP_HEAD_LOSS, heads[1]);
        whole.loss_scale = 1;
        check_gradient(&rig, &losses[i], &whole, &whole);
    }
    tide_op_desc f = cell_desc(TIDE_OP_LSTM_FWD, cells[1], 1, 0), b = cell_desc(TIDE_OP_LSTM_BWD_GATES, cells[1], 1, 0);
    check_gradient(&rig, &state_gradient, &f, &b);
    rig_close(&rig);
}

/* ---- layouts ---- */

/* A token table is also the weight of the last layer: no reorder between them. */
static void test_tied_table(void **state) {
    kernel_rig rig;
    rig_open(&rig, *state);
    for (size_t i = 0; i < COUNT(embeddings); i++) {
        const int64_t *e = embeddings[i];
        tide_op_desc look = embedding_desc(TIDE_OP_EMBEDDING_FWD, e, 1), learn = look, out = {.kind = TIDE_OP_FC_FWD};
        learn.kind = TIDE_OP_EMBEDDING_BWD;
        out.x = look.y;
        out.y = (tide_shape){look.y.n, e[2], 1, 1};
        tide_op_desc out_weights = out, out_data = out;
        out_weights.kind = TIDE_OP_FC_BWD_WEIGHTS;
        out_data.kind = TIDE_OP_FC_BWD_DATA;
        uint64_t layout = info_of(&rig, &look).read[1].layout;
        assert_true(layout == info_of(&rig, &out).read[1].layout);
        assert_true(layout == info_of(&rig, &learn).write[0].layout);
        assert_true(layout == info_of(&rig, &out_weights).write[0].layout);
        assert_true(layout == info_of(&rig, &out_data).read[0].layout);
    }
    rig_close(&rig);
}

/* ---- memory ---- */

static uint64_t bytes_of(kernel_rig *rig, const tide_op_desc *d) {
    const tide_kernel_info info = info_of(rig, d);
    uint64_t bytes = info.variant[0].workspace_bytes;
    for (uint32_t i = 0; i < info.n_reads; i++) bytes += info.read[i].size_bytes;
    for (uint32_t i = 0; i < info.n_writes; i++) bytes += info.write[i].size_bytes;
    return bytes;
}

/* Twice the length, at most twice the bytes: nothing has an element for every pair of tokens. */
static void test_attention_is_linear(void **state) {
    kernel_rig rig;
    rig_open(&rig, *state);
    for (size_t k = 0; k < COUNT(attention_kinds); k++)
        for (int64_t context = 512; context <= 8192; context *= 2) {
            tide_op_desc d = attention_desc(attention_kinds[k], &(attention_case){1, 2, context, 8}),
                         twice = attention_desc(attention_kinds[k], &(attention_case){1, 2, 2 * context, 8});
            assert_true(bytes_of(&rig, &twice) <= 2 * bytes_of(&rig, &d));
        }
    rig_close(&rig);
}

/* ---- special values ---- */

/* Far from zero the functions have their limits, and a run that diverges looks like one. */
static void test_extremes(void **state) {
    static const tide_shape s = {1, 8, 1, 1};
    static const float x[8] = {-1e30f, -100, -20, 0, 1e-20f, 20, 100, 1e30f};
    kernel_rig rig;
    rig_case c;
    tide_op_desc d = rows_desc(TIDE_OP_GELU_FWD, &s);
    rig_open(&rig, *state);
    rig_case_init(&c, &d, 1);
    memcpy(c.plain[0], x, sizeof x);
    rig_run(&rig, &c, &(rig_options){.in_place_read = -1});
    for (int i = 0; i < 5; i++) assert_true(fabsf(c.plain[1][i]) < 1e-5f);
    for (int i = 5; i < 8; i++) assert_true(c.plain[1][i] == x[i]);
    c.plain[0][3] = NAN;
    rig_run(&rig, &c, &(rig_options){.in_place_read = -1});
    assert_true(isnan(c.plain[1][3]) && !isnan(c.plain[1][4]));
    rig_case_deinit(&c);
    rig_close(&rig);
}

/* In units in the last place. */
static double units_apart(float found, double right) {
    const float near = (float)right;
    return fabs((double)found - right) / ((double)nextafterf(fabsf(near), INFINITY) - fabs((double)near));
}

/* The gates of cells with one input: sigmoid of it, or tanh of a part. Far below zero a sigmoid is e^x. */
static void test_exp_and_tanh(void **state) {
    enum { N = 4000 };
    const tide_op_desc d = cell_desc(TIDE_OP_LSTM_FWD, (const int64_t[3]){N, 1, 1}, 0, 0);
    const float part = 1.0f / 32;
    kernel_rig rig;
    rig_case c;
    rig_open(&rig, *state);
    rig_case_init(&c, &d, 1);
    for (int i = 0; i < N; i++) c.plain[0][i] = (float)(i - N / 2) * 0.0433f;
    for (int k = 0; k < 4; k++) c.plain[1][2 * k] = k == 2 ? part : 1, c.plain[2][k] = 0;
    rig_run(&rig, &c, &(rig_options){.in_place_read = -1});
    for (int i = 0; i < 4 * N; i++) {
        const double x = (double)c.plain[0][i / 4];
        assert_true(units_apart(c.plain[5][i], i % 4 == 2 ? tanh(x * (double)part) : 1 / (1 + exp(-x))) < 2);
    }
    rig_case_deinit(&c);
    rig_close(&rig);
}

/* ---- what is refused ---- */

static void test_refused_descriptors(void **state) {
    kernel_rig rig;
    tide_op_desc d;
    rig_open(&rig, *state);
    d = rows_desc(TIDE_OP_LAYERNORM_FWD, &rows[1]), d.eps = 0;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = rows_desc(TIDE_OP_LAYERNORM_FWD, &rows[1]), d.x.h = 2;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = attention_desc(TIDE_OP_ATTENTION_FWD, &attentions[1]), d.x.c++;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = attention_desc(TIDE_OP_ATTENTION_FWD, &attentions[1]), d.heads = 5;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = attention_desc(TIDE_OP_ATTENTION_BWD, &attentions[1]), d.context = 3;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = attention_desc(TIDE_OP_ATTENTION_BWD, &attentions[1]), d.context = 0;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = attention_desc(TIDE_OP_ATTENTION_FWD, &attentions[1]), d.y.n++;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = embedding_desc(TIDE_OP_EMBEDDING_FWD, embeddings[1], 0), d.vocabulary = 0;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = embedding_desc(TIDE_OP_EMBEDDING_FWD, embeddings[1], 0), d.y.n--;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = cell_desc(TIDE_OP_LSTM_FWD, cells[1], 1, 1), d.y.n++;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = cell_desc(TIDE_OP_LSTM_BWD_DATA, cells[1], 1, 1), d.y.c = INT32_MAX;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = steps_desc(TIDE_OP_SLICE, stacks[1], 7);
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = steps_desc(TIDE_OP_STACK, stacks[1], 0), d.steps = 6;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    rig_close(&rig);
}

/* Tokens are data: a wrong one fails the queue and says which. */
static void check_wrong_token(const rig_config *config, int32_t wrong, const char *finding) {
    kernel_rig rig;
    tide_kernel *kernel = NULL;
    const int32_t token[3] = {3, wrong, 0};
    tide_op_desc d = embedding_desc(TIDE_OP_EMBEDDING_FWD, (const int64_t[]){1, 3, 4, 2}, 0);
    const uint64_t offsets[] = {0, 4096, 8192};
    rig_open(&rig, config);
    memcpy(rig.bytes, token, sizeof token);
    rig_put(&rig, 0, 4096);
    assert_ok(tide_kernel_create(rig.device, &d, &kernel));
    assert_ok(tide_kernel_enqueue(kernel, 0, rig.queue, rig.arena, offsets, 3, NULL));
    assert_status(tide_queue_sync(rig.queue), TIDE_E_ARGUMENT);
    assert_error_has(finding);
    tide_kernel_destroy(kernel);
    rig_close(&rig);
}

static void test_wrong_token(void **state) {
    check_wrong_token(*state, 4, "token 4 at 1");
    check_wrong_token(*state, -1, "token -1 at 1");
}

/* ---- perf: one of a size that takes a while for every kind ---- */

static void visit_large(visit_fn visit, void *context) {
    static const tide_shape wide = {512, 768, 1, 1};
    static const attention_case attention = {4, 8, 128, 64};
    static const int64_t embedding[4] = {4, 128, 5000, 512}, cell[3] = {64, 256, 256}, stack[3] = {64, 256, 16};
    tide_op_desc d;
    for (size_t k = 0; k < COUNT(row_kinds); k++) d = rows_desc(row_kinds[k], &wide), visit(&d, context);
    for (size_t k = 0; k < COUNT(attention_kinds); k++)
        d = attention_desc(attention_kinds[k], &attention), visit(&d, context);
    d = embedding_desc(TIDE_OP_EMBEDDING_FWD, embedding, 1), visit(&d, context);
    d = embedding_desc(TIDE_OP_EMBEDDING_BWD, embedding, 1), visit(&d, context);
    for (int k = 0; k < 4; k++) d = cell_desc((tide_op_kind)(TIDE_OP_LSTM_FWD + k), cell, 1, 1), visit(&d, context);
    d = steps_desc(TIDE_OP_SLICE, stack, 3), visit(&d, context);
    d = steps_desc(TIDE_OP_STACK, stack, 0), visit(&d, context);
}

/* The products of this file, by CLBlast. */
static void test_products(void **state) {
    check_all_on(*state, visit_steps, check_reference);
    check_all_on(*state, visit_steps, check_repeat);
}

static void test_bf16(void **state) { check_all_bf16(*state, visit_all); }

static int run_checks(const kernel_modes *modes) {
    static rig_config one = {.device = "cpu", .threads = 1};
    static rig_config two = {.device = "cpu", .threads = MAX_THREADS};
    static rig_config opencl = {.device = "opencl"}, clblast = {.device = "opencl", .products = "clblast"};
    static rig_config lanes = {.device = "opencl", .lanes = "8"}; /* the kernels of GPUs */
    static rig_config cuda = {.device = "cuda"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_reference, &one),
        cmocka_unit_test_prestate(test_same_bits, &one),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test_prestate(test_reference, &two),
        cmocka_unit_test_prestate(test_same_bits, &two),
        cmocka_unit_test(test_same_bits_on_any_threads),
#endif
        cmocka_unit_test_prestate(test_in_place, &two),
        cmocka_unit_test_prestate(test_tied_table, &one),
        cmocka_unit_test_prestate(test_bf16, &two),
        cmocka_unit_test_prestate(test_extremes, &one),
        cmocka_unit_test_prestate(test_refused_descriptors, &one),
        cmocka_unit_test_prestate(test_wrong_token, &one),
        cmocka_unit_test_prestate(test_attention_is_linear, &one),
    };
    const struct CMUnitTest opencl_tests[] = {
        cmocka_unit_test_prestate(test_reference, &opencl),
        cmocka_unit_test_prestate(test_same_bits, &opencl),
        cmocka_unit_test_prestate(test_in_place, &opencl),
        cmocka_unit_test_prestate(test_tied_table, &opencl),
        cmocka_unit_test_prestate(test_extremes, &opencl),
        cmocka_unit_test_prestate(test_refused_descriptors, &opencl),
        cmocka_unit_test_prestate(test_wrong_token, &opencl),
        cmocka_unit_test_prestate(test_reference, &lanes),
        cmocka_unit_test_prestate(test_same_bits, &lanes),
        cmocka_unit_test_prestate(test_in_place, &lanes),
        cmocka_unit_test_prestate(test_extremes, &lanes),
        cmocka_unit_test_prestate(test_exp_and_tanh, &lanes),
        cmocka_unit_test_prestate(test_wrong_token, &lanes),
        cmocka_unit_test_prestate(test_attention_is_linear, &lanes),
    };
    const struct CMUnitTest cuda_tests[] = {
        cmocka_unit_test_prestate(test_reference, &cuda),   cmocka_unit_test_prestate(test_same_bits, &cuda),
        cmocka_unit_test_prestate(test_in_place, &cuda),    cmocka_unit_test_prestate(test_tied_table, &cuda),
        cmocka_unit_test_prestate(test_extremes, &cuda),    cmocka_unit_test_prestate(test_refused_descriptors, &cuda),
        cmocka_unit_test_prestate(test_wrong_token, &cuda), cmocka_unit_test_prestate(test_exp_and_tanh, &cuda),
    };
    const struct CMUnitTest clblast_tests[] = {cmocka_unit_test_prestate(test_products, &clblast)};
    int failed = 0;
    if (modes->cpu) failed += cmocka_run_group_tests(tests, NULL, NULL);
    if (modes->opencl) failed += cmocka_run_group_tests(opencl_tests, NULL, NULL);
    if (modes->cuda) failed += cmocka_run_group_tests(cuda_tests, NULL, NULL);
    if (modes->opencl && has_clblast()) failed += cmocka_run_group_tests(clblast_tests, NULL, NULL);
    return failed;
}

int main(int argc, char **argv) {
    return kernel_modes_run(argc, argv, run_checks, test_finite_differences, visit_all, visit_large);
}
