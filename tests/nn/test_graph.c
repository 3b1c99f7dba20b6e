/* What a graph refuses, and that its first failure sticks. */
#include "support/test.h"

#include "nn/model.h"

static const tide_shape image = {2, 3, 8, 8};

static void assert_refused(tide__graph *g, tide_status expected, const char *text) {
    assert_status(tide__graph_finish(g), expected);
    assert_error_has(text);
    tide__graph_deinit(g);
}

static void shapes_are_inferred(void **state) {
    (void)state;
    tide__graph g = {0};
    uint32_t x = tide__graph_input(&g, (tide_shape){5, 3, 17, 9});
    x = tide__graph_conv(&g, "c", x, (tide__conv){.channels = 4, .kernel = 3, .stride = 2, .pad = 1});
    tide_shape y = tide__layer_shape(&g, x);
    assert_true(y.n == 5 && y.c == 4 && y.h == 9 && y.w == 5);
    tide__conv row = {.channels = 4, .kernel = 1, .stride = 1, .kernel_w = 3, .pad_w = 1};
    y = tide__layer_shape(&g, x = tide__graph_conv(&g, "row", x, row));
    assert_true(y.n == 5 && y.c == 4 && y.h == 9 && y.w == 5);
    y = tide__layer_shape(&g, x = tide__graph_avgpool(&g, "s", x, (tide__pool){.kernel = 3, .stride = 1, .pad = 1}));
    assert_true(y.n == 5 && y.c == 4 && y.h == 9 && y.w == 5);
    x = tide__graph_avgpool(&g, "a", x, (tide__pool){.kernel = 2, .stride = 2});
    y = tide__layer_shape(&g, x);
    assert_true(y.n == 5 && y.c == 4 && y.h == 4 && y.w == 2);
    x = tide__graph_softmax_loss(&g, "l", tide__graph_fc(&g, "f", x, 7));
    y = tide__layer_shape(&g, x);
    assert_true(y.n == 5 && y.c == 7 && y.h == 1 && y.w == 1);
    assert_ok(tide__graph_finish(&g));
    assert_int_equal(g.parameter_count, 4 * 3 * 9 + 4 * 4 * 3 + 7 * 32 + 7);
    tide__graph_deinit(&g);
}

static void windows_must_fit(void **state) {
    (void)state;
    tide__graph g = {0};
    tide__graph_prefix(&g, "block%d.", 3);
    uint32_t x = tide__graph_input(&g, image);
    x = tide__graph_conv(&g, "c", x, (tide__conv){.channels = 4, .kernel = 9, .stride = 1});
    tide__graph_softmax_loss(&g, "never", x);
    assert_refused(&g, TIDE_E_ARGUMENT, "layer block3.c: a kernel of 9 does not fit an input of 8");

    g = (tide__graph){0};
    tide__graph_maxpool(&g, "p", tide__graph_input(&g, image), (tide__pool){.kernel = 2});
    assert_refused(&g, TIDE_E_ARGUMENT, "stride 0");

    g = (tide__graph){0};
    x = tide__graph_input(&g, (tide_shape){2, 3, 64, 64});
    tide__graph_maxpool(&g, "p", x, (tide__pool){.kernel = 17, .stride = 1});
    assert_refused(&g, TIDE_E_ARGUMENT, "at most 16");

    g = (tide__graph){0};
    tide__graph_avgpool(&g, "p", tide__graph_input(&g, image), (tide__pool){.kernel = 3, .stride = 1, .pad = 3});
    assert_refused(&g, TIDE_E_ARGUMENT, "padding 3");

    g = (tide__graph){0};
    x = tide__graph_input(&g, image);
    tide__graph_conv(&g, "c", x, (tide__conv){.channels = 1, .kernel = 1, .stride = 1, .kernel_w = 9});
    assert_refused(&g, TIDE_E_ARGUMENT, "a kernel of 9 does not fit an input of 8");
}

static void joins_must_match(void **state) {
    (void)state;
    tide__graph g = {0};
    uint32_t x = tide__graph_input(&g, image);
    tide__graph_add(&g, "j", x, x);
    assert_refused(&g, TIDE_E_ARGUMENT, "layer j: joins two different outputs");

    g = (tide__graph){0};
    x = tide__graph_input(&g, image);
    tide__graph_add(&g, "j", x, tide__graph_global_avgpool(&g, "p", x));
    assert_refused(&g, TIDE_E_ARGUMENT, "same shape");
}

static void parts_must_match(void **state) {
    (void)state;
    tide__graph g = {0};
    uint32_t x = tide__graph_input(&g, image), r = tide__graph_relu(&g, "r", x);
    tide_shape y = tide__layer_shape(&g, tide__graph_concat(&g, "j", (uint32_t[]){r, x}, 2));
    assert_true(y.n == 2 && y.c == 6 && y.h == 8 && y.w == 8);
    tide__graph_concat(&g, "k", (uint32_t[]){x, r, x}, 3);
    assert_refused(&g, TIDE_E_ARGUMENT, "layer k: joins different outputs");

    g = (tide__graph){0};
    x = tide__graph_input(&g, image);
    tide__graph_concat(&g, "j", (uint32_t[]){x, tide__graph_global_avgpool(&g, "p", x)}, 2);
    assert_refused(&g, TIDE_E_ARGUMENT, "one height and width");

    g = (tide__graph){0};
    x = tide__graph_input(&g, image);
    tide__graph_concat(&g, "j", &x, 1);
    assert_refused(&g, TIDE_E_ARGUMENT, "2 to 64 parts");
}

static void token_layers_must_match(void **state) {
    (void)state;
    const tide_shape tokens = {2, 6, 1, 1};
    tide__graph g = {0};
    uint32_t e = tide__graph_embedding(&g, "e", tide__graph_input(&g, tokens), 10, 12, false);
    tide_shape y = tide__layer_shape(&g, e);
    assert_true(y.n == 12 && y.c == 12 && y.h == 1 && y.w == 1);
    tide__graph_attention(&g, "s", e, 3, 6);
    assert_refused(&g, TIDE_E_ARGUMENT, "layer s: 3 heads over 12 rows of 12 for samples of 6");

    g = (tide__graph){0};
    e = tide__graph_embedding(&g, "e", tide__graph_input(&g, tokens), 10, 12, false);
    tide__graph_tied_fc(&g, "out", tide__graph_fc(&g, "f", e, 5), e);
    assert_refused(&g, TIDE_E_ARGUMENT, "layer out: the weight of layer e has another width");

    g = (tide__graph){0};
    uint32_t steps[7];
    e = tide__graph_embedding(&g, "e", tide__graph_input(&g, tokens), 10, 12, false);
    tide__graph_slices(&g, "t", e, 7, steps);
    assert_refused(&g, TIDE_E_ARGUMENT, "layer t0: 7 steps do not divide 12 rows");

    g = (tide__graph){0};
    tide__graph_upconv(&g, "u", tide__graph_input(&g, image), 4, 0);
    assert_refused(&g, TIDE_E_ARGUMENT, "layer u: a factor of 0");
}

static void networks_are_whole(void **state) {
    (void)state;
    tide__graph g = {0};
    assert_refused(&g, TIDE_E_ARGUMENT, "starts with its input");

    g = (tide__graph){0};
    uint32_t x = tide__graph_fc(&g, "f", tide__graph_input(&g, image), 4);
    tide__graph_relu(&g, "unused", x);
    tide__graph_softmax_loss(&g, "l", x);
    assert_refused(&g, TIDE_E_ARGUMENT, "layer unused");

    g = (tide__graph){0};
    tide__graph_relu(&g, "r", tide__graph_input(&g, image));
    assert_refused(&g, TIDE_E_ARGUMENT, "the loss comes last");

    g = (tide__graph){0};
    tide__graph_softmax_loss(&g, "l", tide__graph_input(&g, image));
    assert_refused(&g, TIDE_E_ARGUMENT, "one score per class");
}

/* r reaches two nested joins as it is: its gradient would be the same value twice. */
static void doubled_gradients_are_refused(void **state) {
    (void)state;
    tide_model model = {.name = (char *)(uintptr_t) "doubled"};
    tide__graph *g = &model.graph;
    uint32_t x = tide__graph_fc(g, "f", tide__graph_input(g, image), 4);
    uint32_t r = tide__graph_relu(g, "r", x);
    uint32_t inner = tide__graph_add(g, "inner", x, r);
    tide__graph_softmax_loss(g, "l", tide__graph_add(g, "outer", inner, r));
    assert_ok(tide__graph_finish(g));
    tide_step *step = NULL;
    assert_status(tide_step_create(&model, NULL, &step), TIDE_E_UNSUPPORTED);
    assert_error_has("layer r");
    tide__graph_deinit(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_inferred),
        cmocka_unit_test(windows_must_fit),
        cmocka_unit_test(joins_must_match),
        cmocka_unit_test(parts_must_match),
        cmocka_unit_test(token_layers_must_match),
        cmocka_unit_test(networks_are_whole),
        cmocka_unit_test(doubled_gradients_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
