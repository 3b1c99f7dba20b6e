/* Pictures from files: decoded, resized and normalised as promised; folders of them as data sets, the same for the same seed and
 * step; and files that are no pictures, or half of one. */
#include "support/test.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tidemark/pictures.h>

#include "support/png_file.h"
#include "support/training.h"

static char folder[] = "/tmp/tidemark-pictures-XXXXXX";

static const char *in_folder(const char *name) {
    static char path[4][256];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static uint32_t grey(uint32_t x, uint32_t y) { return (x * 10 + y) * 0x010101; }
static uint32_t halves(uint32_t x, uint32_t y) { return y < 8 ? (x < 8 ? 0xff0000 : 0x00ff00) : 0x0000ff; }
static uint32_t dark(uint32_t x, uint32_t y) { return (x + y) * 0x010000; }
static uint32_t light(uint32_t x, uint32_t y) { return 0xffffff - (x + y) * 0x010000; }

static bool has_pictures(void) {
    float pixels[3];
    put_png(in_folder("probe.png"), 1, 1, dark);
    bool has = tide_picture_read(in_folder("probe.png"), 3, 1, 1, pixels) != TIDE_E_UNSUPPORTED;
    unlink(in_folder("probe.png"));
    return has;
}

/* ---- one picture ---- */

/* Of the model's size it is taken byte by byte. */
static void test_as_it_is(void **state) {
    (void)state;
    static const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
    float pixels[3 * 8 * 8];
    put_png(in_folder("a.png"), 8, 8, grey);
    assert_ok(tide_picture_read(in_folder("a.png"), 3, 8, 8, pixels));
    for (uint32_t i = 0; i < 64; i++)
        for (uint32_t c = 0; c < 3; c++)
            assert_float_equal(pixels[64 * c + i], ((float)(i % 8 * 10 + i / 8) / 255 - mean[c]) / deviation[c], 1e-5);
    assert_ok(tide_picture_read(in_folder("a.png"), 1, 8, 8, pixels));
    assert_float_equal(pixels[9], (11.0f / 255 - 0.449f) / 0.226f, 1e-5);
}

/* Reduced, each quarter has the colour of its quarter of the picture: means, and no rows or columns mixed up. */
static void test_resized(void **state) {
    (void)state;
    float pixels[3 * 4 * 4];
    put_png(in_folder("b.png"), 16, 16, halves);
    assert_ok(tide_picture_read(in_folder("b.png"), 3, 4, 4, pixels));
    for (int i = 0; i < 16; i++) {
        bool top = i < 8, left = i % 4 < 2, corner = (i < 4 || i > 11) && (i % 4 == 0 || i % 4 == 3);
        if (!corner) continue;
        assert_float_equal(pixels[i], ((top && left) - 0.485f) / 0.229f, 1e-4);
        assert_float_equal(pixels[16 + i], ((top && !left) - 0.456f) / 0.224f, 1e-4);
        assert_float_equal(pixels[32 + i], (!top - 0.406f) / 0.225f, 1e-4);
    }
}

/* 48 x 32: red grows to the right, green downwards. Decoded at a quarter it is the same picture. */
static void test_jpeg(void **state) {
    (void)state;
    static const char path[] = TIDE_SOURCE_DIR "/tests/fuzz/corpus/pictures/gradient.jpg";
    float large[3 * 32 * 48], small[3 * 4 * 6];
    assert_ok(tide_picture_read(path, 3, 32, 48, large));
    for (int y = 4; y < 32; y += 8)
        for (int x = 4; x < 48; x += 8) {
            assert_float_equal(large[48 * y + x] * 0.229f + 0.485f, (float)(5 * x) / 255, 0.03);
            assert_float_equal(large[48 * 32 + 48 * y + x] * 0.224f + 0.456f, (float)(8 * y) / 255, 0.03);
        }
    assert_ok(tide_picture_read(path, 3, 4, 6, small));
    for (int x = 1; x < 6; x++) assert_true(small[6 + x] > small[6 + x - 1] + 0.3f);
    for (int y = 1; y < 4; y++) assert_true(small[24 + 6 * y] > small[24 + 6 * y - 6] + 0.5f);
}

static void refuse(const char *name, const void *bytes, size_t size, const char *text) {
    float pixels[3 * 4 * 4];
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    fwrite(bytes, 1, size, f);
    fclose(f);
    assert_status(tide_picture_read(in_folder(name), 3, 4, 4, pixels), TIDE_E_FORMAT);
    assert_error_has(in_folder(name));
    assert_error_has(text);
}

static size_t read_all(const char *path, unsigned char bytes[4096]) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, 4096, f);
    fclose(f);
    return n;
}

static void test_hostile(void **state) {
    (void)state;
    unsigned char bytes[4096];
    float pixels[3];
    refuse("x.png", "", 0, "neither a PNG nor a JPEG");
    refuse("x.png", "GIF89a", 6, "neither a PNG nor a JPEG");
    refuse("x.png", "\x89PNG\r\n\x1a\n", 8, "PNG: ");
    put_png(in_folder("a.png"), 8, 8, grey);
    size_t n = read_all(in_folder("a.png"), bytes);
    for (size_t cut = 9; cut < n - 16; cut += 7) refuse("x.png", bytes, cut, "PNG: ");
    bytes[n / 2] ^= 1;
    refuse("x.png", bytes, n, "PNG: ");
    n = read_all(TIDE_SOURCE_DIR "/tests/fuzz/corpus/pictures/gradient.jpg", bytes);
    for (size_t cut = 3; cut < n - 4; cut += 11) refuse("x.jpg", bytes, cut, "JPEG: ");
    assert_status(tide_picture_read(in_folder("nosuch.png"), 3, 1, 1, pixels), TIDE_E_IO);
    assert_status(tide_picture_read(folder, 3, 1, 1, pixels), TIDE_E_IO);
    assert_status(tide_picture_read(in_folder("a.png"), 2, 1, 1, pixels), TIDE_E_ARGUMENT);
}

/* ---- folders ---- */

static void put_classes(const char *root, int n) {
    static const char *const classes[] = {"cats", "ants"};
    char name[64];
    mkdir(in_folder(root), 0700);
    for (int c = 0; c < 2; c++) {
        snprintf(name, sizeof name, "%s/%s", root, classes[c]);
        mkdir(in_folder(name), 0700);
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "%s/%s/%02d.%s", root, classes[c], i, i % 2 ? "PNG" : "png");
            put_png(in_folder(name), 20, 16, c ? dark : light);
        }
    }
}

static tide_picture_folder *open_folder(const char *root, bool no_augment) {
    tide_picture_folder_options o;
    tide_picture_folder *f;
    tide_picture_folder_options_init(&o);
    o.channels = 1;
    o.height = o.width = 28;
    o.no_augment = no_augment;
    assert_true(tide_picture_folder_is(in_folder(root)));
    assert_ok(tide_picture_folder_open(in_folder(root), &o, &f));
    return f;
}

static void test_folder(void **state) {
    (void)state;
    float pixels[784], again[784];
    int32_t label;
    put_classes("flat", 10);
    tide_picture_folder *f = open_folder("flat", false);
    const tide_data *train = tide_picture_folder_train(f), *test = tide_picture_folder_test(f);
    assert_int_equal(tide_picture_folder_classes(f), 2);
    assert_string_equal(tide_picture_folder_class(f, 0), "ants");
    assert_null(tide_picture_folder_class(f, 2));
    assert_true(train->n_samples == 18 && test->n_samples == 2 && train->classes == 2);
    assert_ok(test->sample(test->context, 1, pixels, &label)); /* one of each class */
    assert_true(label == 1 && pixels[0] > 1);
    assert_ok(train->vary(train->context, 3, 7, pixels, &label));
    assert_true(label == 0 && pixels[0] < 0);
    assert_ok(train->vary(train->context, 3, 7, again, &label));
    assert_memory_equal(pixels, again, sizeof pixels);
    assert_ok(train->vary(train->context, 3, 8, again, &label));
    assert_memory_not_equal(pixels, again, sizeof pixels);
    tide_picture_folder_close(f);
}

static void test_parts_of_a_folder(void **state) {
    (void)state;
    tide_picture_folder_options o;
    tide_picture_folder *f;
    mkdir(in_folder("split"), 0700);
    put_classes("split/train", 3);
    put_classes("split/val", 1);
    f = open_folder("split", true);
    assert_true(tide_picture_folder_train(f)->n_samples == 6 && tide_picture_folder_test(f)->n_samples == 2);
    assert_null(tide_picture_folder_train(f)->vary);
    tide_picture_folder_close(f);
    mkdir(in_folder("split/val/dogs"), 0700);
    tide_picture_folder_options_init(&o);
    o.channels = o.height = o.width = 1;
    assert_status(tide_picture_folder_open(in_folder("split"), &o, &f), TIDE_E_FORMAT);
    assert_error_has("split/val/dogs: there is no class of this name");
    assert_false(tide_picture_folder_is(in_folder("nosuch")));
    mkdir(in_folder("empty"), 0700);
    assert_false(tide_picture_folder_is(in_folder("empty")));
    assert_status(tide_picture_folder_open(in_folder("empty"), &o, &f), TIDE_E_FORMAT);
    assert_error_has("0 classes");
}

/* ---- training ---- */

/* The same bits whether it stops in between or not, however many threads decode, and others with another seed; a picture that breaks ends it by name. */
static void test_training(void **state) {
    (void)state;
    training t;
    float loss;
    put_classes("learn", 10);
    tide_picture_folder *f = open_folder("learn", false);
    training_open(&t, "lenet", 4);
    t.options.data = tide_picture_folder_train(f);
    tide_trainer *whole = training_start(&t), *first = training_start(&t);
    tide_data by_three = *t.options.data;
    by_three.threads = 3;
    t.options.data = &by_three;
    tide_trainer *second = training_start(&t);
    training_run(whole, 6);
    training_run(first, 2);
    assert_ok(tide_trainer_save(first, in_folder("c")));
    assert_ok(tide_trainer_load(second, in_folder("c")));
    training_run(second, 4);
    assert_true(training_hash(second) == training_hash(whole));
    FILE *file = fopen(in_folder("learn/cats/03.PNG"), "wb");
    fclose(file);
    tide_status status = TIDE_OK;
    for (int i = 0; i < 6 && status == TIDE_OK; i++) status = tide_trainer_step(whole, &loss, NULL);
    assert_status(status, TIDE_E_FORMAT);
    assert_error_has("learn/cats/03.PNG: byte 0: neither a PNG nor a JPEG file");
    tide_trainer_destroy(whole);
    tide_trainer_destroy(first);
    tide_trainer_destroy(second);
    training_close(&t);
    tide_picture_folder_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_it_is), cmocka_unit_test(test_resized), cmocka_unit_test(test_jpeg),
        cmocka_unit_test(test_hostile),  cmocka_unit_test(test_folder),  cmocka_unit_test(test_parts_of_a_folder),
        cmocka_unit_test(test_training),
    };
    if (make_folder(NULL) != 0) return 1;
    if (!has_pictures()) return rmdir(folder) == 0 ? 77 : 1;
    return cmocka_run_group_tests(tests, NULL, remove_folder);
}
