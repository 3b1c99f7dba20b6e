/* Families: parameter counts against published ones, every option builds a valid program, hostile specs. */
#include "support/test.h"

#include <tidemark/nn.h>

typedef struct published {
    const char *spec;
    uint64_t parameters; /* torchvision's; lenet and alexnet by hand */
    uint32_t layers;
} published;

/* U-Net by hand: 3 x 3 convolutions with bias in pairs, down from 3 over 64 to 1024 channels and up again; on the way up
 * a 2 x 2 up-convolution from 2 C to C and a pair that starts from 2 C; 1 x 1 to 2 classes. */
#define CONV3(i, o) (9 * (i) * (o) + (o))
#define PAIR(i, o) (CONV3(i, o) + CONV3(o, o))
#define UP(c) (4 * 2 * (c) * (c) + (c) + PAIR(2 * (c), c))
#define UNET_PARAMETERS                                                                                              \
    (PAIR(3, 64) + PAIR(64, 128) + PAIR(128, 256) + PAIR(256, 512) + PAIR(512, 1024) + UP(512) + UP(256) + UP(128) + \
     UP(64) + 2 * 64 + 2)

/* GPT-2: token and position tables; per layer four matrices of 12 C^2 in all with biases of 9 C, and two norms of 2 C;
 * the last norm. The output projection is the token table. */
#define GPT2_PARAMETERS(l, c, t, v) ((v) * (c) + (t) * (c) + (l) * (12 * (c) * (c) + 13 * (c)) + 2 * (c))

/* LSTM: token table; per layer a weight of four gates over input and state, and a bias; an output projection. */
#define LSTM_PARAMETERS(l, h, v) ((v) * (h) + (l) * (4 * (h)*2 * (h) + 4 * (h)) + (v) * (h) + (v))

static const published models[] = {
    {"mlp:784,512,10", 784 * 512 + 512 + 512 * 10 + 10, 4},
    {"lenet", 61706, 12},
    {"alexnet", 62378344, 23},
    {"alexnet-owt", 61100840, 21},
    {"vgg11", 132863336, 29},
    {"vgg13", 133047848, 33},
    {"vgg16", 138357544, 39},
    {"vgg19", 143667240, 45},
    {"resnet18", 11689512, 69},
    {"resnet34", 21797672, 0},
    {"resnet50", 25557032, 175},
    {"resnet101", 44549160, 0},
    {"resnet152", 60192808, 0},
    {"resnet:3,4,6,3", 25557032, 175},
    {"resnet:3,8,36,3", 60192808, 0},
    {"resnet-cifar:3", 0, 0},
    {"densenet121", 7978856, 0},
    {"densenet169", 14149480, 0},
    {"densenet201", 20013928, 0},
    {"inception-v4", 42679816, 0}, /* timm's */
    {"unet", UNET_PARAMETERS, 0},
    {"gpt2", 124439808, 0}, /* the published ones */
    {"gpt2:nano", GPT2_PARAMETERS(6, 384, 256, 50257), 0},
    {"gpt2:small", 124439808, 0},
    {"gpt2:medium", 354823168, 0},
    {"gpt2:large", 774030080, 0},
    {"gpt2:xl", 1557611200, 0},
    {"gpt2:2,64,4,32,100", GPT2_PARAMETERS(2, 64, 32, 100), 1 + 2 * 10 + 3},
    {"lstm:2,64,100", LSTM_PARAMETERS(2, 64, 10000), 1 + 100 + 2 * 100 + 3},
    {"lstm:1,8,1,5", LSTM_PARAMETERS(1, 8, 5), 1 + 1 + 1 + 3},
};
#define N_MODELS (sizeof models / sizeof models[0])

static void parameter_counts(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++) {
        tide_model *model;
        assert_ok(tide_model_create(models[i].spec, NULL, &model));
        if (models[i].parameters) assert_int_equal(tide_model_parameter_count(model), models[i].parameters);
        if (models[i].layers) assert_int_equal(tide_model_layer_count(model), models[i].layers);
        assert_string_equal(tide_model_name(model), models[i].spec);
        tide_model_destroy(model);
    }
}

static void check_step(const tide_model *model, const tide_step_options *options) {
    tide_step *step;
    assert_ok(tide_step_create(model, options, &step));
    const tide_program *p = tide_step_program(step);
    uint32_t n = tide_program_op_count(p);
    assert_true(n > tide_model_layer_count(model) / 2);
    for (tide_id op = 0; op < n; op++) {
        assert_non_null(tide_step_op_desc(step, op));
        assert_true(tide_step_op_bytes(step, op) > 0);
    }
    assert_null(tide_step_op_desc(step, n));
    tide_step_destroy(step);
}

/* family x optimizer x {at the end, fused, clipped} x {1, 3 micro-batches}, and inference. The builder validates. */
static void every_combination_builds(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++) {
        tide_model *model;
        assert_ok(tide_model_create(models[i].spec, NULL, &model));
        for (int k = 0; k < 4 * 3 * 2 + 1; k++) {
            tide_step_options o;
            tide_step_options_init(&o);
            o.optimizer = (tide_optimizer)(k % 4);
            o.fused_update = k / 4 % 3 == 1;
            o.clip_norm = k / 4 % 3 == 2 ? 1.0f : 0.0f;
            o.accumulate = k / 12 == 1 ? 3 : 1;
            o.inference = k == 24;
            check_step(model, &o);
        }
        tide_model_destroy(model);
    }
}

static void options(void **state) {
    (void)state;
    tide_model_options o;
    tide_model_options_init(&o);
    o.batch = 7;
    o.channels = 1;
    o.height = o.width = 28;
    tide_model *model;
    assert_ok(tide_model_create("resnet-cifar:1", &o, &model));
    tide_shape in = tide_model_input(model);
    assert_true(in.n == 7 && in.c == 1 && in.h == 28 && in.w == 28);
    assert_int_equal(tide_model_classes(model), 10);
    tide_model_destroy(model);

    assert_ok(tide_model_create("mlp:784,32,10", &o, &model));
    in = tide_model_input(model);
    assert_true(in.n == 7 && in.c == 1 && in.h == 28 && in.w == 28);
    tide_model_destroy(model);
    assert_ok(tide_model_create("mlp:784,32,10", NULL, &model));
    in = tide_model_input(model);
    assert_true(in.n == 32 && in.c == 784 && in.h == 1 && in.w == 1);
    tide_model_destroy(model);

    tide_model_options_init(&o);
    o.height = o.width = 448; /* features of 14 x 14, averaged to 7 x 7 */
    o.classes = 10;
    assert_ok(tide_model_create("vgg16", &o, &model));
    assert_int_equal(tide_model_parameter_count(model), 138357544 - 990 * 4097);
    tide_model_destroy(model);
}

static void refuse(const char *spec, const tide_model_options *o, tide_status expected, const char *text) {
    tide_model *model = NULL;
    assert_status(tide_model_create(spec, o, &model), expected);
    assert_error_has(text);
    assert_null(model);
}

static void hostile_specs(void **state) {
    (void)state;
    refuse("resnet51", NULL, TIDE_E_ARGUMENT, "resnet-cifar:N");
    refuse("", NULL, TIDE_E_ARGUMENT, "known: mlp");
    refuse("lenet:3", NULL, TIDE_E_ARGUMENT, "no numbers");
    refuse("lenet ", NULL, TIDE_E_ARGUMENT, "unknown");
    refuse("mlp", NULL, TIDE_E_ARGUMENT, "at least 2 numbers");
    refuse("mlp:784", NULL, TIDE_E_ARGUMENT, "at least 2 numbers");
    refuse("mlp:784,", NULL, TIDE_E_ARGUMENT, "\"\" is not a number");
    refuse("mlp:784,-1", NULL, TIDE_E_ARGUMENT, "\"-1\" is not a number");
    refuse("mlp:784,0", NULL, TIDE_E_ARGUMENT, "\"0\" is not a number");
    refuse("mlp:784,1e3", NULL, TIDE_E_ARGUMENT, "not a number");
    refuse("mlp:784, 10", NULL, TIDE_E_ARGUMENT, "not a number");
    refuse("mlp:99999999999999999999,10", NULL, TIDE_E_ARGUMENT, "not a number");
    refuse("mlp:2147483647,2147483647", NULL, TIDE_E_OVERFLOW, "fc1");
    refuse("resnet:1,2,3", NULL, TIDE_E_ARGUMENT, "at least 4");
    refuse("resnet:1,2,3,4,5", NULL, TIDE_E_ARGUMENT, "too many");
    refuse("resnet:1,2,2000000000,4", NULL, TIDE_E_ARGUMENT, "at most");
    refuse("resnet-cifar:2147483647", NULL, TIDE_E_ARGUMENT, "at most");
    refuse("resnet-cifar:4294967297", NULL, TIDE_E_ARGUMENT, "not a number");
    tide_model_options o;
    tide_model_options_init(&o);
    o.height = 40;
    refuse("alexnet", &o, TIDE_E_ARGUMENT, "pool5");
    tide_model_options_init(&o);
    o.batch = UINT32_MAX;
    refuse("lenet", &o, TIDE_E_OVERFLOW, "too large");
    o.batch = INT32_MAX;
    o.height = o.width = INT32_MAX;
    refuse("resnet50", &o, TIDE_E_OVERFLOW, "too large");
    tide_model_options_init(&o);
    o.classes = 11;
    refuse("mlp:784,10", &o, TIDE_E_ARGUMENT, "11 classes");
    tide_model_options_init(&o);
    o.height = 100; /* not a multiple of 16: what comes up is smaller than what went down */
    refuse("unet", &o, TIDE_E_ARGUMENT, "up3.concat");
    tide_model_options_init(&o);
    o.classes = 11;
    refuse("gpt2:2,64,4,32,100", &o, TIDE_E_ARGUMENT, "the vocabulary is 100");
    refuse("lstm:1,8,4,5", &o, TIDE_E_ARGUMENT, "the vocabulary is 5");
    refuse("lstm:1,8", NULL, TIDE_E_ARGUMENT, "at least 3");
    refuse("lstm:1,8,2147483647", NULL, TIDE_E_ARGUMENT, "too large");
    refuse("lstm:2147483647,8,4", NULL, TIDE_E_ARGUMENT, "at most");
    refuse("gpt2:tiny", NULL, TIDE_E_ARGUMENT, "\"tiny\" is not a number");
    refuse("gpt2:small,3", NULL, TIDE_E_ARGUMENT, "\"small\" is not a number");
    refuse("gpt2:2,64", NULL, TIDE_E_ARGUMENT, "at least 3");
    refuse("gpt2:2,64,3", NULL, TIDE_E_ARGUMENT, "3 heads do not divide a width of 64");
    refuse("gpt2:2,2147483647,1", NULL, TIDE_E_OVERFLOW, "too large");
    refuse("gpt2:2,64,4,2147483647", NULL, TIDE_E_OVERFLOW, "wte");
    refuse("gpt2:2147483647,4,1", NULL, TIDE_E_ARGUMENT, "at most");
    tide_model_options_init(&o);
    o.height = 28;
    refuse("gpt2", &o, TIDE_E_ARGUMENT, "takes tokens");
    refuse("mlp:784,10", &o, TIDE_E_ARGUMENT, "first width");
    o.size = 1;
    refuse("lenet", &o, TIDE_E_ARGUMENT, "size");
}

static void family_list(void **state) {
    (void)state;
    uint32_t n = 0;
    const char *summary = NULL;
    while (tide_model_family(n, &summary)) {
        assert_true(strlen(summary) > 0);
        n++;
    }
    assert_int_equal(n, 27);
}

/* Very deep networks are ordinary ones; how long they take is a benchmark's business (bench_plan). */
static void depth_is_free(void **state) {
    (void)state;
    tide_model *model;
    assert_ok(tide_model_create("resnet:6,32,900,6", NULL, &model));
    assert_true(tide_model_layer_count(model) > 9000);
    check_step(model, NULL);
    tide_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameter_counts), cmocka_unit_test(every_combination_builds),
        cmocka_unit_test(options),          cmocka_unit_test(hostile_specs),
        cmocka_unit_test(family_list),      cmocka_unit_test(depth_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
