/* Checkpoints: a training that stops and goes on computes the same bits as one that does not, under any policy; what is
 * written is a plain safetensors file; what is read may be anything. */
#include "support/test.h"

#include <unistd.h>

#include "nn/safetensors.h"
#include "support/edit_header.h"
#include "support/training.h"

static char folder[] = "/tmp/tidemark-checkpoint-XXXXXX";
static char path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/c.safetensors", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails if a temporary is left */
}

/* ---- stopping and going on ---- */

static void test_resume(void **state) {
    (void)state;
    static const tide_optimizer optimizers[] = {TIDE_SGD, TIDE_MOMENTUM, TIDE_ADAMW};
    for (size_t i = 0; i < 3; i++) {
        training t;
        training_open(&t, i == 1 ? "resnet-cifar:1" : "lenet", 8);
        t.options.step.optimizer = optimizers[i];
        tide_trainer *whole = training_start(&t), *first = training_start(&t);
        float loss = training_run(whole, 5);
        training_run(first, 2);
        uint64_t before = training_hash(first);
        assert_ok(tide_trainer_save(first, path));
        assert_true(training_hash(first) == before); /* saving changes nothing */
        tide_trainer_destroy(first);
        t.options.plan.policy = "none"; /* another plan, the same bits */
        tide_trainer *second = training_start(&t);
        training_run(second, 1);
        assert_ok(tide_trainer_load(second, path));
        assert_true(tide_trainer_steps_done(second) == 2 && training_hash(second) == before);
        assert_true(training_run(second, 3) == loss);
        assert_true(training_hash(second) == training_hash(whole));
        tide_trainer_destroy(second);
        tide_trainer_destroy(whole);
        training_close(&t);
    }
}

/* States in parts or whole: the same bits, and the same files. */
static void test_parts(void **state) {
    (void)state;
    training t;
    training_open(&t, "lenet", 8);
    t.options.step.optimizer = TIDE_ADAMW;
    tide_trainer *whole = training_start(&t);
    t.options.step.state_part_bytes = 12288;
    tide_trainer *parts = training_start(&t);
    assert_true(training_run(whole, 2) == training_run(parts, 2));
    assert_true(training_hash(whole) == training_hash(parts));
    assert_ok(tide_trainer_save(parts, path));
    training_run(whole, 1);
    assert_ok(tide_trainer_load(whole, path));
    assert_true(training_hash(whole) == training_hash(parts));
    assert_ok(tide_trainer_save(whole, path));
    training_run(parts, 1);
    assert_ok(tide_trainer_load(parts, path));
    assert_true(training_run(whole, 2) == training_run(parts, 2));
    assert_true(training_hash(whole) == training_hash(parts));
    tide_trainer_destroy(whole);
    tide_trainer_destroy(parts);
    training_close(&t);
}

/* An array of the file, plain. */
static float *read_array(const char *name, uint64_t *n) {
    tide__safetensors s;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_ok(tide__safetensors_open(f, path, &s));
    const tide__array *a = tide__safetensors_find(&s, name);
    assert_non_null(a);
    float *data = malloc(a->end - a->begin);
    *n = (a->end - a->begin) / sizeof *data;
    assert_int_equal(fseeko(f, (off_t)(s.data_at + a->begin), SEEK_SET), 0);
    assert_int_equal(fread(data, sizeof *data, *n, f), *n);
    tide__safetensors_close(&s);
    fclose(f);
    return data;
}

/* A step of momentum subtracts rate * momentum, element by element: both are in the same order, whatever the device's. */
static void test_order(void **state) {
    (void)state;
    static const char *const names[] = {"conv1.weight", "conv2.weight", "fc1.weight"};
    float *before[3], rate = 0.05f;
    uint64_t n;
    training t;
    training_open(&t, "lenet", 8);
    t.options.learning_rate = rate;
    tide_trainer *trainer = training_start(&t);
    assert_ok(tide_trainer_save(trainer, path));
    for (size_t i = 0; i < 3; i++) before[i] = read_array(names[i], &n);
    training_run(trainer, 1);
    assert_ok(tide_trainer_save(trainer, path));
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "optimizer.%s.momentum", names[i]);
        float *after = read_array(names[i], &n), *momentum = read_array(name, &n);
        for (uint64_t k = 0; k < n; k++) {
            assert_float_equal(after[k], before[i][k] - rate * momentum[k], 1e-6);
            assert_true(i > 0 || k > 0 || momentum[k] != 0);
        }
        free(after);
        free(momentum);
        free(before[i]);
    }
    tide_trainer_destroy(trainer);
    training_close(&t);
}

static void refuse(tide_trainer *trainer, const char *text) {
    uint64_t before = training_hash(trainer), steps = tide_trainer_steps_done(trainer);
    assert_status(tide_trainer_load(trainer, path), TIDE_E_FORMAT);
    assert_error_has(path);
    assert_error_has(text);
    assert_true(training_hash(trainer) == before && tide_trainer_steps_done(trainer) == steps);
}

static void test_other_trainings(void **state) {
    (void)state;
    training t, other;
    training_open(&t, "lenet", 8);
    training_open(&other, "mlp:784,16,10", 8);
    tide_trainer *trainer = training_start(&t), *wrong;
    training_run(trainer, 1);
    assert_ok(tide_trainer_save(trainer, path));
    wrong = training_start(&other);
    refuse(wrong, "its model is \"lenet");
    tide_trainer_destroy(wrong);
    t.options.seed = 2;
    wrong = training_start(&t);
    refuse(wrong, "its seed is 1, here it is 2");
    tide_trainer_destroy(wrong);
    t.options.seed = 1;
    t.options.step.optimizer = TIDE_ADAM;
    wrong = training_start(&t);
    refuse(wrong, "optimizer");
    assert_status(tide_trainer_load(wrong, "/no/such/file"), TIDE_E_IO);
    assert_status(tide_trainer_load(wrong, folder), TIDE_E_IO);
    assert_status(tide_trainer_save(wrong, "/no/such/folder/file"), TIDE_E_IO);
    tide_trainer_destroy(wrong);
    tide_trainer_destroy(trainer);
    training_close(&t);
    training_close(&other);
}

/* A file that lies in one place after the other never changes a trainer and never crashes it. */
static void test_damaged(void **state) {
    (void)state;
    training t;
    training_open(&t, "mlp:784,4,10", 4);
    tide_trainer *trainer = training_start(&t);
    assert_ok(tide_trainer_save(trainer, path));
    FILE *f = fopen(path, "rb");
    static char bytes[1 << 16];
    size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_true(size > 1000 && size < sizeof bytes);
    uint64_t before = training_hash(trainer), header = (unsigned char)bytes[0] | (uint64_t)(unsigned char)bytes[1] << 8;
    for (size_t i = 0; i < 8 + header; i += 3) {
        char old = bytes[i];
        bytes[i] = (char)(old ^ 1);
        f = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, size, f), size);
        fclose(f);
        bytes[i] = old;
        bool refused = tide_trainer_load(trainer, path) != TIDE_OK; /* or a counter is another number now */
        if (refused) assert_true(training_hash(trainer) == before);
        before = training_hash(trainer);
    }
    for (size_t cut = 0; cut < size; cut += size / 50) {
        assert_int_equal(truncate(path, 0), 0);
        f = fopen(path, "wb");
        fwrite(bytes, 1, cut, f);
        fclose(f);
        assert_status(tide_trainer_load(trainer, path), TIDE_E_FORMAT);
    }
    tide_trainer_destroy(trainer);
    training_close(&t);
}

/* A network that does not change, and a file whose word about that is no number. */
static void test_strange_parts(void **state) {
    (void)state;
    training t;
    training_open(&t, "mlp:784,4,10", 4);
    tide_trainer *trainer = training_start(&t);
    assert_ok(tide_trainer_save(trainer, path));
    edit_header(path, "\"version\":\"4\"", "\"version\":\"4\",\"parts\":\"00000000000000000000000000000000\"");
    refuse(trainer, "\"parts\" of \"__metadata__\" is too long");
    tide_trainer_destroy(trainer);
    training_close(&t);
}

/* Version 3 had optimizer state without its prefix, and vectors and matrices of four dimensions. */
static void test_version_3(void **state) {
    (void)state;
    training t;
    training_open(&t, "mlp:784,4,10", 4);
    tide_trainer *first = training_start(&t), *second = training_start(&t);
    training_run(first, 2);
    assert_ok(tide_trainer_save(first, path));
    edit_header(path, "\"version\":\"4\"", "\"version\":\"3\"");
    edit_header(path, "optimizer.", "");
    edit_header(path, "[4,784]", "[4,1,28,28]");
    edit_header(path, "[4]", "[4,1,1,1]");
    assert_ok(tide_trainer_load(second, path));
    assert_true(training_hash(second) == training_hash(first));
    edit_header(path, "\"version\":\"3\"", "\"version\":\"2\"");
    refuse(second, "its version is 2, here it is 4");
    tide_trainer_destroy(second);
    tide_trainer_destroy(first);
    training_close(&t);
}

/* ---- hostile headers ---- */

static void parse(const char *header, size_t data_bytes, const char *text) {
    char file[1024] = {0};
    size_t length = strlen(header);
    tide__safetensors s;
    file[0] = (char)(length & 255);
    file[1] = (char)(length >> 8);
    memcpy(file + 8, header, length);
    tide_status status = tide__safetensors_parse(file, 8 + length + data_bytes, "f", &s);
    if (!text) {
        assert_ok(status);
        tide__safetensors_close(&s);
        return;
    }
    assert_status(status, TIDE_E_FORMAT);
    assert_error_has("f: ");
    assert_error_has(text);
}

#define ARRAY(name, type, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void test_headers(void **state) {
    (void)state;
    parse("{}", 0, NULL);
    parse("{}  ", 0, NULL);
    parse("{" ARRAY("a", "F32", "[2]", "0", "8") "," ARRAY("b", "U8", "[]", "8", "9") "}", 9, NULL);
    parse("{\"__metadata__\":{\"x\":\"y\"}," ARRAY("b", "F16", "[0,5]", "0", "0") "}", 0, NULL);
    parse("[]", 0, "not an object");
    parse("{", 0, "header");
    parse("{}", 1, "the arrays have 0 bytes, the file 1");
    parse("{" ARRAY("a", "F32", "[2]", "0", "8") "," ARRAY("a", "F32", "[2]", "8", "16") "}", 16, "duplicate");
    parse("{" ARRAY("a", "F32", "[2]", "0", "8") "," ARRAY("b", "F32", "[2]", "4", "12") "}", 12, "begins at 4");
    parse("{" ARRAY("a", "F32", "[2]", "0", "8") "," ARRAY("b", "F32", "[2]", "0", "8") "}", 8, "begins at 0");
    parse("{" ARRAY("a", "F32", "[2]", "4", "12") "}", 12, "begins at 4");
    parse("{" ARRAY("a", "F32", "[2]", "0", "8") "}", 7, "leave the 7 bytes");
    parse("{" ARRAY("a", "F32", "[2]", "8", "0") "}", 8, "leave the 8 bytes");
    parse("{" ARRAY("a", "F32", "[3]", "0", "8") "}", 8, "make 12");
    parse("{" ARRAY("a", "F31", "[2]", "0", "8") "}", 8, "dtype");
    parse("{" ARRAY("a", "F32", "[4294967296,4294967296]", "0", "0") "}", 0, "too large");
    parse("{" ARRAY("a", "F32", "[-1]", "0", "8") "}", 8, "shape");
    parse("{" ARRAY("a", "U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1, "at most 8");
    parse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "two numbers");
    parse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "data_offsets");
    parse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1, "x");
    parse("{\"a\":7}", 0, "not an object");
    parse("{\"__metadata__\":{\"x\":1}}", 0, "not a string");
    parse("{\"__metadata__\":1}", 0, "not an object");
}

static void test_lengths(void **state) {
    (void)state;
    static const unsigned char huge[] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
    static const unsigned char three[] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    tide__safetensors s;
    assert_status(tide__safetensors_parse(huge, sizeof huge, "f", &s), TIDE_E_FORMAT);
    assert_error_has("a header of 18446744073709551615 bytes in a file of 10");
    assert_status(tide__safetensors_parse(three, sizeof three, "f", &s), TIDE_E_FORMAT);
    assert_status(tide__safetensors_parse(three, 7, "f", &s), TIDE_E_FORMAT);
    assert_error_has("too early");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),          cmocka_unit_test(test_parts),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_other_trainings), cmocka_unit_test(test_damaged), cmocka_unit_test(test_strange_parts),
        cmocka_unit_test(test_version_3),       cmocka_unit_test(test_headers), cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
