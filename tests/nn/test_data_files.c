/* Data sets in files: idx, CIFAR-10 and text, written here; what comes out is what went in, and what is wrong is refused
 * with the place. */
#include "support/test.h"

#include <math.h>
#include <sys/stat.h>
#include <tidemark/train.h>
#include <unistd.h>

enum { CIFAR_RECORD = 3073, MAX_FILES = 8 };

static char folder[] = "/tmp/tidemark-data-XXXXXX";
static char names[MAX_FILES][128];
static int n_names;

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_files(void **state) {
    (void)state;
    for (int i = 0; i < n_names; i++) unlink(names[i]);
    n_names = 0;
    return 0;
}

static int remove_folder(void **state) {
    (void)remove_files(state);
    return rmdir(folder);
}

static const char *put_file(const char *name, const void *bytes, size_t size) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int known = 0;
    while (known < n_names && strcmp(names[known], path) != 0) known++;
    assert_true(known < MAX_FILES);
    memcpy(names[known], path, sizeof path);
    if (known == n_names) n_names++;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return names[known];
}

static void assert_refused(const char *path, tide_status status, const char *text) {
    tide_data_files *files = NULL;
    assert_status(tide_data_files_open(path, 0, 1, &files), status);
    assert_null(files);
    assert_error_has(text);
}

/* ---- idx ---- */

enum { SIDE = 3, PLANE = SIDE * SIDE };

/* n images of 3 x 3, of which image i has pixel values i * 7 + p; label i % 4. */
static void put_idx(const char *images, const char *labels, unsigned char n) {
    unsigned char image_file[16 + 255 * PLANE] = {0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    unsigned char label_file[8 + 255] = {0, 0, 8, 1, 0, 0, 0, n};
    for (int i = 0; i < n; i++) {
        for (int p = 0; p < PLANE; p++) image_file[16 + i * PLANE + p] = (unsigned char)(i * 7 + p);
        label_file[8 + i] = (unsigned char)(i % 4);
    }
    put_file(images, image_file, 16 + (size_t)n * PLANE);
    put_file(labels, label_file, 8 + (size_t)n);
}

/* Pixels are a straight line of the bytes. */
static void check_line(const tide_data *d, uint64_t index, int i) {
    float pixels[PLANE];
    int32_t label;
    assert_ok(d->sample(d->context, index, pixels, &label));
    assert_int_equal(label, i % 4);
    for (int p = 2; p < PLANE; p++) assert_true(fabsf(pixels[p] - pixels[p - 1] - (pixels[1] - pixels[0])) < 1e-4f);
    assert_true(pixels[1] > pixels[0]);
}

static void test_idx_folder(void **state) {
    (void)state;
    tide_data_files *files;
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 30);
    put_idx("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 5);
    assert_ok(tide_data_files_open(folder, 0, 1, &files));
    const tide_data *train = tide_data_files_train(files), *test = tide_data_files_test(files);
    assert_int_equal(train->n_samples, 30);
    assert_int_equal(test->n_samples, 5);
    assert_int_equal(train->channels, 1);
    assert_int_equal(train->height, SIDE);
    assert_int_equal(train->classes, 4);
    for (int i = 0; i < 30; i++) check_line(train, (uint64_t)i, i);
    for (int i = 0; i < 5; i++) check_line(test, (uint64_t)i, i);
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < 30; i++) {
        float pixels[PLANE];
        int32_t label;
        assert_ok(train->sample(train->context, i, pixels, &label));
        for (int p = 0; p < PLANE; p++) sum += (double)pixels[p], squares += (double)pixels[p] * (double)pixels[p];
    }
    assert_true(fabs(sum / (30 * PLANE)) < 1e-4 && fabs(squares / (30 * PLANE) - 1) < 1e-4);
    tide_data_files_close(files);
}

/* One file with its labels beside it: the last tenth is for testing. */
static void test_idx_file(void **state) {
    (void)state;
    tide_data_files *files;
    char path[128];
    put_idx("my-images.idx3-ubyte", "my-labels.idx1-ubyte", 25);
    snprintf(path, sizeof path, "%s/my-images.idx3-ubyte", folder);
    assert_ok(tide_data_files_open(path, 0, 1, &files));
    assert_int_equal(tide_data_files_train(files)->n_samples, 22);
    assert_int_equal(tide_data_files_test(files)->n_samples, 3);
    check_line(tide_data_files_test(files), 2, 24);
    tide_data_files_close(files);
}

static void test_idx_refused(void **state) {
    (void)state;
    unsigned char file[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4},
                  labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 1, 1};
    put_file("train-labels-idx1-ubyte", labels, sizeof labels);
    put_file("train-images-idx3-ubyte", file, sizeof file);
    assert_refused(folder, TIDE_E_FORMAT, "train-labels-idx1-ubyte: byte 4: 3 labels for 2 images");
    put_file("train-images-idx3-ubyte", file, sizeof file - 1);
    assert_refused(folder, TIDE_E_FORMAT, "byte 16: 3 bytes of data, the dimensions say 4");
    put_file("train-images-idx3-ubyte", file, 9);
    assert_refused(folder, TIDE_E_FORMAT, "byte 9: the file ends");
    file[2] = 13;
    put_file("train-images-idx3-ubyte", file, sizeof file);
    assert_refused(folder, TIDE_E_FORMAT, "byte 2: type 0x0d");
    file[2] = 8;
    memset(file + 4, 0xff, 12);
    put_file("train-images-idx3-ubyte", file, sizeof file);
    assert_refused(folder, TIDE_E_FORMAT, "byte 12: too large");
    file[15] = file[14] = file[13] = file[12] = 0;
    put_file("train-images-idx3-ubyte", file, sizeof file);
    assert_refused(folder, TIDE_E_FORMAT, "byte 12: a dimension of 0");
    put_file("train-images-idx3-ubyte", "\x1f\x8b\x08", 3);
    assert_refused(folder, TIDE_E_FORMAT, "train-images-idx3-ubyte: byte 3: gzip: the file is cut off");
    put_file("train-images-idx3-ubyte", "", 0);
    assert_refused(folder, TIDE_E_FORMAT, "byte 0: the file ends");
    assert_refused("/nonexistent/x", TIDE_E_IO, "cannot open");
}

static void test_idx_lonely(void **state) {
    (void)state;
    put_idx("train-images-idx3-ubyte", "elsewhere", 3);
    assert_refused(folder, TIDE_E_IO, "no train-labels-idx1-ubyte");
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 1);
    assert_refused(folder, TIDE_E_FORMAT, "one sample is not enough");
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 3);
    put_idx("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 4);
    assert_refused(folder, TIDE_E_FORMAT, "label 3 is only in");
}

/* ---- CIFAR-10 ---- */

static const char *put_cifar(const char *name, int n, unsigned char first_label) {
    unsigned char *bytes = calloc((size_t)n, CIFAR_RECORD);
    assert_non_null(bytes);
    for (int i = 0; i < n; i++) {
        bytes[i * CIFAR_RECORD] = (unsigned char)(first_label + i);
        for (int p = 1; p < CIFAR_RECORD; p++) bytes[i * CIFAR_RECORD + p] = (unsigned char)(p * 31 + i);
    }
    const char *path = put_file(name, bytes, (size_t)n * CIFAR_RECORD);
    free(bytes);
    return path;
}

static void test_cifar(void **state) {
    (void)state;
    tide_data_files *files;
    float pixels[CIFAR_RECORD - 1];
    int32_t label;
    put_cifar("data_batch_1.bin", 4, 0);
    put_cifar("data_batch_2.bin", 6, 4);
    put_cifar("test_batch.bin", 3, 2);
    assert_ok(tide_data_files_open(folder, 0, 1, &files));
    const tide_data *train = tide_data_files_train(files), *test = tide_data_files_test(files);
    assert_string_equal(train->name, "cifar10");
    assert_int_equal(train->n_samples, 10);
    assert_int_equal(test->n_samples, 3);
    assert_int_equal(train->channels, 3);
    assert_int_equal(train->width, 32);
    for (int i = 0; i < 10; i++) {
        assert_ok(train->sample(train->context, (uint64_t)i, pixels, &label));
        assert_int_equal(label, i);
    }
    assert_ok(test->sample(test->context, 2, pixels, &label));
    assert_int_equal(label, 4);
    tide_data_files_close(files);
    const char *single = put_cifar("some.bin", 7, 0);
    assert_ok(tide_data_files_open(single, 0, 1, &files));
    assert_int_equal(tide_data_files_train(files)->n_samples, 6);
    tide_data_files_close(files);
    put_cifar("data_batch_2.bin", 3, 8);
    assert_refused(folder, TIDE_E_FORMAT, "data_batch_2.bin: byte 6146: record 2 has label 10");
    put_file("data_batch_2.bin", "abc", 3);
    assert_refused(folder, TIDE_E_FORMAT, "data_batch_2.bin: byte 0: no whole number of records");
}

/* Two labels before every image: the second counts. */
static void test_cifar_100(void **state) {
    (void)state;
    enum { RECORD = CIFAR_RECORD + 1, N = 3 };
    static unsigned char bytes[N * RECORD];
    tide_data_files *files;
    float pixels[CIFAR_RECORD - 1];
    int32_t label;
    for (int i = 0; i < N; i++) {
        bytes[i * RECORD] = 19;
        bytes[i * RECORD + 1] = (unsigned char)(97 + i);
        for (int p = 2; p < RECORD; p++) bytes[i * RECORD + p] = (unsigned char)(p * 31 + i);
    }
    put_file("train.bin", bytes, sizeof bytes);
    put_file("test.bin", bytes, RECORD);
    assert_ok(tide_data_files_open(folder, 0, 1, &files));
    const tide_data *train = tide_data_files_train(files);
    assert_string_equal(train->name, "cifar100");
    assert_true(train->n_samples == N && train->classes == 100 && tide_data_files_test(files)->n_samples == 1);
    assert_ok(train->sample(train->context, 2, pixels, &label));
    assert_int_equal(label, 99);
    tide_data_files_close(files);
    bytes[1] = 100;
    put_file("train.bin", bytes, sizeof bytes);
    assert_refused(folder, TIDE_E_FORMAT, "train.bin: byte 1: record 0 has label 100, there are 100 classes");
}

/* ---- text ---- */

static void test_text(void **state) {
    (void)state;
    enum { CONTEXT = 8 };
    tide_data_files *files;
    char text[400];
    for (int i = 0; i < 400; i++) text[i] = (char)(i < 360 ? 'a' + i % 26 : 'A' + i % 26);
    const char *path = put_file("some.txt", text, sizeof text);
    assert_ok(tide_data_files_open(path, CONTEXT, 1, &files));
    for (int part = 0; part < 2; part++) {
        const tide_data *d = part ? tide_data_files_test(files) : tide_data_files_train(files);
        float tokens[CONTEXT];
        int32_t labels[CONTEXT];
        assert_int_equal(d->n_samples, part ? 5 : 45);
        for (uint64_t i = 0; i < d->n_samples; i++) {
            assert_ok(d->sample(d->context, i, tokens, labels));
            for (int k = 0; k < CONTEXT; k++) assert_true(part ? labels[k] < 'a' : labels[k] >= 'a');
            assert_int_equal(labels[0], (int)tokens[1]);
        }
    }
    tide_data_files_close(files);
    assert_refused(path, TIDE_E_FORMAT, "a text is for language models");
    assert_status(tide_data_files_open(path, 40, 1, &files), TIDE_E_FORMAT);
    assert_error_has("too short");
    assert_status(tide_data_files_open(folder, 40, 1, &files), TIDE_E_ARGUMENT);
    assert_error_has("is a folder; a language model learns from one file of text");
    assert_refused(folder, TIDE_E_FORMAT, "PNG or JPEG pictures");
    assert_refused(folder, TIDE_E_FORMAT, "neither train-images-idx3-ubyte (MNIST), data_batch_1.bin (CIFAR-10)");
}

/* ---- memory ---- */

/* Pages of files that are resident; 0 where the system does not tell. */
static long file_pages(void) {
    long size, resident, shared = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld %ld", &size, &resident, &shared) != 3) shared = 0;
    if (f) fclose(f);
    return shared;
}

/* An epoch of 24 MB does not leave them in memory, nor does opening them. */
static void test_epoch_in_little_memory(void **state) {
    (void)state;
    enum { RECORDS = 8000, MOST_BYTES = 8 << 20 };
    float pixels[3072];
    int32_t label;
    tide_data_files *files;
    unsigned char *bytes = calloc(RECORDS, CIFAR_RECORD);
    assert_non_null(bytes);
    for (size_t i = 0; i < RECORDS; i++) bytes[i * CIFAR_RECORD] = i % 2;
    const char *path = put_file("large.bin", bytes, (size_t)RECORDS * CIFAR_RECORD);
    free(bytes);
    long before = file_pages(), page = sysconf(_SC_PAGESIZE);
    assert_status(tide_data_files_open(path, 0, 1, &files), TIDE_OK);
    assert_true((file_pages() - before) * page < MOST_BYTES);
    const tide_data *train = tide_data_files_train(files);
    for (uint64_t i = 0; i < train->n_samples; i++) {
        assert_status(train->sample(train->context, i * 4999 % train->n_samples, pixels, &label), TIDE_OK);
        assert_int_equal(label, i * 4999 % train->n_samples % 2);
        assert_true((file_pages() - before) * page < MOST_BYTES);
    }
    tide_data_files_close(files);
}

/* ---- what is no file ---- */

static void test_special_files(void **state) {
    (void)state;
    const char *path = put_file("pipe", "", 0);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, TIDE_E_IO, "it is not a regular file"); /* and does not wait for a writer */
    assert_refused("/dev/zero", TIDE_E_IO, "it is a device");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_idx_folder, remove_files),
        cmocka_unit_test_teardown(test_idx_file, remove_files),
        cmocka_unit_test_teardown(test_idx_refused, remove_files),
        cmocka_unit_test_teardown(test_idx_lonely, remove_files),
        cmocka_unit_test_teardown(test_cifar, remove_files),
        cmocka_unit_test_teardown(test_cifar_100, remove_files),
        cmocka_unit_test_teardown(test_text, remove_files),
        cmocka_unit_test_teardown(test_epoch_in_little_memory, remove_files),
        cmocka_unit_test_teardown(test_special_files, remove_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
