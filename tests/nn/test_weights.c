/* Weights by name: files as PyTorch's libraries write them come in, files that they load go out, and what does not fit is
 * told array by array. The libraries themselves are asked by python/tests/test_weights.py. */
#include "support/test.h"

#include "nn/safetensors.h"
#include "support/edit_header.h"
#include "support/scratch_file.h"
#include "support/training.h"

/* A language model of one block, whose data set is the built-in grammar. */
typedef struct reader {
    training base;
    tide_text text;
} reader;

static void reader_open(reader *r) {
    tide_model_options m;
    tide_model_options_init(&m);
    training_open(&r->base, "lenet", 4);
    tide_model_destroy(r->base.model);
    m.batch = 2;
    assert_ok(tide_model_create("gpt2:1,24,2,8,256", &m, &r->base.model));
    r->text = (tide_text){.seed = 1, .context = 8};
    assert_ok(tide_data_text(&r->text, 16, &r->base.data));
    r->base.options.model = r->base.model;
}

/* ---- what a file says ---- */

typedef struct faults {
    int n[TIDE_WEIGHTS_FAULTS];
    char all[1024];
} faults;

static void note_fault(void *context, tide_weights_fault fault, const char *text) {
    faults *f = context;
    f->n[fault]++;
    snprintf(f->all + strlen(f->all), sizeof f->all - strlen(f->all), "%s; ", text);
}

static tide_status load(tide_trainer *trainer, bool partial, faults *f) {
    tide_weights_options o;
    tide_weights_options_init(&o);
    *f = (faults){0};
    o.partial = partial;
    o.fault = note_fault;
    o.context = f;
    return tide_trainer_load_weights(trainer, scratch_path, &o);
}

static void assert_faults(const faults *f, int missing, int unexpected, int other_shape) {
    if (f->n[0] != missing || f->n[1] != unexpected || f->n[2] != other_shape)
        fail_msg("%d missing, %d unexpected, %d of another shape: %s", f->n[0], f->n[1], f->n[2], f->all);
}

/* "2,24" and the like of an array; "-" where there is none. */
static const char *shape_in_file(const char *name) {
    static char text[64];
    tide__safetensors s;
    FILE *f = fopen(scratch_path, "rb");
    assert_non_null(f);
    assert_ok(tide__safetensors_open(f, scratch_path, &s));
    const tide__array *a = tide__safetensors_find(&s, name);
    snprintf(text, sizeof text, "%s", a ? "" : "-");
    for (uint32_t i = 0; a && i < a->rank; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%llu", i ? "," : "",
                 (unsigned long long)a->shape[i]);
    tide__safetensors_close(&s);
    fclose(f);
    return text;
}

static void test_shapes(void **state) {
    (void)state;
    static const struct {
        const char *model, *array, *shape;
    } cases[] = {
        {"lenet", "conv1.weight", "6,1,5,5"},
        {"lenet", "conv1.bias", "6"},
        {"lenet", "fc1.weight", "120,400"},
        {"lenet", "optimizer.fc1.weight.momentum", "-"},
        {"resnet-cifar:1", "layer2.0.downsample.0.weight", "32,16,1,1"},
        {"resnet-cifar:1", "bn1.running_var", "16"},
        {"resnet-cifar:1", "bn1.num_batches_tracked", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        training t;
        training_open(&t, cases[i].model, 4);
        tide_trainer *trainer = training_start(&t);
        assert_ok(tide_trainer_save_weights(trainer, scratch_path));
        assert_string_equal(shape_in_file(cases[i].array), cases[i].shape);
        tide_trainer_destroy(trainer);
        training_close(&t);
    }
}

/* ---- in and out ---- */

/* Fresh trainers of two seeds: what the first saves makes the second the same. */
static void exchange(training *t) {
    faults f;
    tide_trainer *first = training_start(t);
    t->options.seed = 7;
    tide_trainer *second = training_start(t);
    assert_true(training_hash(first) != training_hash(second));
    assert_ok(tide_trainer_save_weights(first, scratch_path));
    assert_ok(load(second, false, &f));
    assert_faults(&f, 0, 0, 0);
    assert_true(training_hash(first) == training_hash(second));
    assert_ok(tide_trainer_save(first, scratch_path)); /* a checkpoint will do, too */
    training_run(second, 1);
    assert_ok(load(second, false, &f));
    assert_faults(&f, 0, 0, 0);
    tide_trainer_destroy(first);
    tide_trainer_destroy(second);
    t->options.seed = 1;
}

static void test_exchange(void **state) {
    (void)state;
    training t;
    reader r;
    training_open(&t, "resnet-cifar:1", 4);
    exchange(&t);
    training_close(&t);
    reader_open(&r);
    exchange(&r.base);
    training_close(&r.base);
}

/* Hugging Face's names, with and without their prefix; its matrices are inputs x outputs, its head is the token table. */
static void test_gpt2(void **state) {
    (void)state;
    reader r;
    faults f;
    reader_open(&r);
    tide_trainer *first = training_start(&r.base);
    assert_ok(tide_trainer_save_weights(first, scratch_path));
    assert_string_equal(shape_in_file("transformer.h.0.attn.c_attn.weight"), "24,72");
    assert_string_equal(shape_in_file("transformer.h.0.attn.c_attn.bias"), "72");
    assert_string_equal(shape_in_file("transformer.wpe.weight"), "8,24");
    assert_string_equal(shape_in_file("lm_head.weight"), "256,24");
    r.base.options.seed = 7;
    tide_trainer *second = training_start(&r.base);
    edit_header(scratch_path, "transformer.", "");
    assert_ok(load(second, false, &f));
    assert_faults(&f, 0, 0, 0);
    assert_true(training_hash(first) == training_hash(second));
    edit_header(scratch_path, "[24,72]", "[72,24]");
    assert_status(load(second, false, &f), TIDE_E_FORMAT);
    assert_faults(&f, 0, 0, 1);
    assert_non_null(strstr(f.all, "c_attn.weight is 72 x 24 in the file, 24 x 72 in the model"));
    tide_trainer_destroy(first);
    tide_trainer_destroy(second);
    training_close(&r.base);
}

/* A head that is not the table of tokens is another model. */
static void test_untied(void **state) {
    (void)state;
    reader r;
    faults f;
    reader_open(&r);
    tide_trainer *trainer = training_start(&r.base);
    assert_ok(tide_trainer_save_weights(trainer, scratch_path));
    FILE *file = fopen(scratch_path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -4, SEEK_END), 0); /* the copy comes last */
    fputc(1, file);
    fclose(file);
    uint64_t before = training_hash(trainer);
    assert_status(load(trainer, false, &f), TIDE_E_FORMAT);
    assert_error_has("lm_head.weight differs from transformer.wte.weight");
    assert_true(training_hash(trainer) == before);
    tide_trainer_destroy(trainer);
    training_close(&r.base);
}

/* ---- what does not fit ---- */

static void test_faults(void **state) {
    (void)state;
    training t;
    faults f;
    training_open(&t, "mlp:784,4,10", 4);
    tide_trainer *trainer = training_start(&t);
    t.options.seed = 7;
    tide_trainer *other = training_start(&t);
    assert_ok(tide_trainer_save_weights(other, scratch_path));
    edit_header(scratch_path, "fc1.bias", "fc9.bias");
    edit_header(scratch_path, "[10,4]", "[4,10]");
    uint64_t before = training_hash(trainer);
    assert_status(load(trainer, false, &f), TIDE_E_FORMAT);
    assert_faults(&f, 1, 1, 1);
    assert_string_equal(f.all, "fc1.bias (4); fc2.weight is 4 x 10 in the file, 10 x 4 in the model; fc9.bias (4); ");
    assert_error_has("1 are missing, 1 unexpected and 1 of another shape");
    assert_true(training_hash(trainer) == before);
    assert_ok(load(trainer, true, &f)); /* fc1.weight and fc2.bias, then */
    assert_faults(&f, 1, 1, 1);
    assert_true(training_hash(trainer) != before && training_hash(trainer) != training_hash(other));
    edit_header(scratch_path, "\"F32\",\"shape\":[10]", "\"I32\",\"shape\":[10]");
    assert_status(load(trainer, false, &f), TIDE_E_FORMAT);
    assert_faults(&f, 1, 1, 2);
    assert_status(tide_trainer_load_weights(trainer, scratch_folder, NULL), TIDE_E_IO);
    assert_status(tide_trainer_load_weights(trainer, "/no/such/file", NULL), TIDE_E_IO);
    tide_trainer_destroy(other);
    tide_trainer_destroy(trainer);
    training_close(&t);
}

/* ---- half floats ---- */

static void write_halves(const char *dtype, const uint16_t *values, size_t n) {
    char header[256];
    snprintf(header, sizeof header,
             "{\"fc1.weight\":{\"dtype\":\"%s\",\"shape\":[2,%zu],\"data_offsets\":[0,%zu]},"
             "\"fc1.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[%zu,%zu]}}",
             dtype, n / 2, 2 * n, 2 * n, 2 * n + 8);
    FILE *f = fopen(scratch_path, "wb");
    assert_non_null(f);
    for (int i = 0; i < 8; i++) fputc((int)(strlen(header) >> (8 * i) & 255), f);
    fputs(header, f);
    fwrite(values, sizeof *values, n, f);
    fwrite((float[]){0, 0}, sizeof(float), 2, f);
    fclose(f);
}

static void test_halves(void **state) {
    (void)state;
    static const uint16_t f16[8] = {0x3c00, 0xc000, 0x3555, 0x0001, 0x8001, 0x7bff, 0x0400, 0x0000},
                          bf16[8] = {0x3f80, 0xc000, 0x3eab, 0x0001, 0x8001, 0x7f7f, 0x0080, 0x0000};
    static const float from_f16[8] = {1, -2, 0.333251953125f, 0x1p-24f, -0x1p-24f, 65504, 0x1p-14f, 0},
                       from_bf16[8] = {1, -2, 0.333984375f, 0x1p-133f, -0x1p-133f, 0x1.fep127f, 0x1p-126f, 0};
    for (int half = 0; half < 2; half++) {
        training t;
        float values[8];
        training_open(&t, "lenet", 4);
        tide_model_destroy(t.model);
        tide_model_options m;
        tide_model_options_init(&m);
        m.batch = 4;
        m.channels = 1;
        m.height = m.width = 2;
        assert_ok(tide_model_create("mlp:4,2", &m, &t.model));
        t.options.model = t.model;
        t.digits.height = t.digits.width = 2;
        assert_ok(tide_data_digits(&t.digits, 16, &t.data));
        t.data.classes = 2;
        tide_trainer *trainer = training_start(&t);
        write_halves(half ? "BF16" : "F16", half ? bf16 : f16, 8);
        assert_ok(tide_trainer_load_weights(trainer, scratch_path, NULL));
        assert_ok(tide_trainer_save_weights(trainer, scratch_path));
        FILE *f = fopen(scratch_path, "rb");
        assert_int_equal(fseek(f, -(long)(sizeof values + 2 * sizeof(float)), SEEK_END), 0);
        assert_int_equal(fread(values, sizeof(float), 8, f), 8);
        fclose(f);
        assert_memory_equal(values, half ? from_bf16 : from_f16, sizeof values);
        tide_trainer_destroy(trainer);
        training_close(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_exchange), cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_untied), cmocka_unit_test(test_faults),   cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
