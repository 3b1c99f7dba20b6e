/* Pieces of operands: whatever their size, they are boxes of the plain array, one after the other in the stored one, and
 * converting piece by piece gives the bytes of converting all at once. */
#include "support/test.h"

#include "base/rng.h"
#include "device/piece.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const uint64_t limits[] = {1, 100, 4096, 20000, UINT64_MAX}; /* bytes; the first is less than any tile */

/* ---- layouts ---- */

/* Every element is in one piece. */
static void walk(const tide__operand_layout *l, uint64_t stored_bytes, uint64_t limit) {
    uint64_t elements = l->dims[0], seen = 0, at = 0;
    for (uint32_t i = 1; i < l->n_dims; i++) elements *= l->dims[i];
    while (at < stored_bytes) {
        tide_piece p, again;
        uint64_t box = 1;
        assert_ok(tide__operand_layout_piece(l, at, limit, &p));
        assert_ok(tide__operand_layout_piece(l, at, p.size_bytes, &again));
        assert_memory_equal(&p, &again, sizeof p);
        for (int i = 0; i < 4; i++) {
            assert_true(p.from[i] < p.to[i] && p.to[i] <= p.dims[i]);
            box *= p.to[i] - p.from[i];
        }
        assert_true(p.position_bytes == at && p.size_bytes > 0);
        seen += box;
        at += p.size_bytes;
    }
    assert_true(at == stored_bytes && seen == elements);
}

static void test_layouts(void **state) {
    (void)state;
    const tide__operand_layout blocked = {4, 4, {20, 6, 3, 3}, {8, 8, 1, 1}, {576, 576, 192, 64}};
    const tide__operand_layout turned = {2, 4, {70, 33}, {16, 1}, {16, 80}}; /* the second dimension is the slow one */
    const tide__operand_layout gaps = {2, 4, {4, 4}, {1, 1}, {5, 1}};
    tide__operand_layout plain;
    tide_piece p;
    tide__operand_layout_plain(1000, 1, &plain);
    for (size_t i = 0; i < COUNT(limits); i++) {
        walk(&blocked, UINT64_C(3) * 9 * 64 * 4, limits[i]);
        walk(&turned, UINT64_C(33) * 80 * 4, limits[i]);
        walk(&plain, 1000, limits[i]);
    }
    assert_ok(tide__operand_layout_piece(&turned, 0, 3 * 80 * 4, &p)); /* three columns */
    assert_true(p.from[0] == 0 && p.to[0] == 70 && p.from[1] == 0 && p.to[1] == 3);
    assert_status(tide__operand_layout_piece(&gaps, 0, 64, &p), TIDE_E_UNSUPPORTED);
    assert_status(tide__operand_layout_piece(&turned, 4, 64, &p), TIDE_E_ARGUMENT);
    assert_status(tide__operand_layout_piece(&turned, 33 * 80 * 4, 64, &p), TIDE_E_ARGUMENT);
}

/* ---- kernels ---- */

/* Between the box alone and the whole plain array. */
static void copy_box(const tide_piece *p, float *whole, float *box, bool out) {
    for (uint64_t n = p->from[0]; n < p->to[0]; n++)
        for (uint64_t c = p->from[1]; c < p->to[1]; c++)
            for (uint64_t h = p->from[2]; h < p->to[2]; h++)
                for (uint64_t w = p->from[3]; w < p->to[3]; w++, box++) {
                    float *element = whole + ((n * p->dims[1] + c) * p->dims[2] + h) * p->dims[3] + w;
                    *(out ? box : element) = *(out ? element : box);
                }
}

static void check_operand(tide_kernel *kernel, uint32_t operand, uint64_t size, uint64_t limit) {
    float *plain = calloc(size, 1), *back = calloc(size, 1), *box = calloc(size, 1);
    char *whole = malloc(size), *pieces = malloc(size);
    tide_piece p;
    assert_true(plain && back && box && whole && pieces);
    for (uint64_t i = 0; i < size / sizeof *plain; i++) plain[i] = tide__random_unit(1, operand, i);
    memset(whole, 0xff, size); /* padding is written, too */
    memset(pieces, 0xff, size);
    assert_ok(tide_operand_pack(kernel, operand, plain, whole));
    for (uint64_t at = 0; at < size; at += p.size_bytes) {
        assert_ok(tide_operand_piece(kernel, operand, at, limit, &p));
        copy_box(&p, plain, box, true);
        assert_ok(tide_piece_pack(kernel, operand, &p, box, pieces + at));
        assert_ok(tide_piece_unpack(kernel, operand, &p, whole + at, box));
        copy_box(&p, back, box, false);
    }
    assert_memory_equal(whole, pieces, size);
    memset(box, 0, size);
    assert_ok(tide_operand_unpack(kernel, operand, whole, box));
    assert_memory_equal(box, back, size);
    p.to[0]++;
    assert_status(tide_piece_pack(kernel, operand, &p, box, pieces), TIDE_E_ARGUMENT);
    free(plain);
    free(back);
    free(box);
    free(whole);
    free(pieces);
}

static void test_kernels(void **state) {
    (void)state;
    static const tide_op_desc ops[] = {
        {.kind = TIDE_OP_CONV_FWD, .x = {2, 20, 6, 6}, .y = {2, 50, 2, 2}, .kernel_h = 5, .kernel_w = 5, .stride = 1},
        {.kind = TIDE_OP_CONV_FWD, .x = {2, 3, 8, 8}, .y = {2, 16, 6, 6}, .kernel_h = 3, .kernel_w = 3, .stride = 1},
        {.kind = TIDE_OP_FC_FWD, .x = {3, 50, 4, 4}, .y = {3, 20, 1, 1}, .bias = 1},
        {.kind = TIDE_OP_FC_FWD, .x = {5, 784, 1, 1}, .y = {5, 32, 1, 1}},
    };
    tide_device_options options;
    tide_device *device;
    tide_device_options_init(&options);
    options.threads = 1;
    assert_ok(tide_device_open("cpu", &options, &device));
    for (size_t i = 0; i < COUNT(ops); i++) {
        tide_kernel *kernel;
        tide_kernel_info info;
        assert_ok(tide_kernel_create(device, &ops[i], &kernel));
        assert_ok(tide_kernel_get_info(kernel, &info));
        for (uint32_t k = 0; k < info.n_reads; k++)
            for (size_t l = 0; l < COUNT(limits); l++) check_operand(kernel, k, info.read[k].size_bytes, limits[l]);
        tide_kernel_destroy(kernel);
    }
    tide_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
