/* Zeros left out: every bit comes back, both ways give the same bytes, damage is found; and a disk tier that packs is to
 * its users like one that does not. */
#include "support/test.h"

#include "base/rng.h"
#include "tier/tier.h"
#include "tier/zeros.h"

enum { SIZE = TIDE__ZEROS_MOST };

/* Words of which `share` in 256 are zero; among the others -0.0, NaNs with payloads and denormals. */
static void fill(char *data, uint64_t size, unsigned share, uint64_t seed) {
    static const uint32_t odd[] = {0x80000000, 0x7fc00001, 0xffffffff, 1, 0x7f800000, 0x80000001};
    for (uint64_t i = 0; i + 4 <= size; i += 4) {
        uint64_t r = tide__random_u64(seed, 0, i);
        uint32_t word = r % 256 < share ? 0 : r >> 8 & 15 ? (uint32_t)(r >> 32) : odd[(r >> 12) % 6];
        memcpy(data + i, &word, sizeof word);
    }
}

static void test_every_bit(void **state) {
    (void)state;
    static char raw[SIZE], back[SIZE], packed[2][TIDE__ZEROS_BUFFER];
    for (unsigned share = 0; share <= 256; share += 32) {
        fill(raw, SIZE, share, share);
        size_t size[2];
        for (int wide = 0; wide < 2; wide++) {
            bool is_wide = wide && tide__zeros_is_wide();
            size[wide] = tide__zeros_pack(raw, SIZE, packed[wide], is_wide);
            assert_true(size[wide] <= TIDE__ZEROS_BUFFER - 32 && size[wide] % TIDE__ZEROS_BLOCK == 0);
            memset(back, 0x5a, SIZE);
            assert_true(tide__zeros_unpack(packed[wide], size[wide], back, SIZE, is_wide));
            assert_memory_equal(raw, back, SIZE);
            if (size[wide] > SIZE) continue;
            char *tail = back + SIZE - size[wide];
            memcpy(tail, packed[wide], size[wide]);
            assert_true(tide__zeros_unpack(tail, size[wide], back, SIZE, is_wide)); /* in place */
            assert_memory_equal(raw, back, SIZE);
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(packed[0], packed[1], size[0]);
        if (share != 32) assert_int_equal(tide__zeros_pay(raw, SIZE), share > 32);
    }
    assert_false(tide__zeros_pay(raw, 0));
}

/* One bit of the head or the mask changed, or bytes missing: refused, and nothing is written. */
static void test_damage(void **state) {
    (void)state;
    enum { SMALL = 4096, HEAD = 8 + SMALL / 32 };
    static char raw[SMALL], back[SMALL], untouched[SMALL], packed[TIDE__ZEROS_BUFFER];
    fill(raw, SMALL, 100, 1);
    size_t size = tide__zeros_pack(raw, SMALL, packed, false);
    for (size_t bit = 0; bit < 8 * HEAD; bit++) {
        packed[bit / 8] = (char)(packed[bit / 8] ^ 1 << bit % 8);
        assert_false(tide__zeros_unpack(packed, size, back, SMALL, bit % 2 && tide__zeros_is_wide()));
        packed[bit / 8] = (char)(packed[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t less = 0; less < HEAD; less += 3) assert_false(tide__zeros_unpack(packed, less, back, SMALL, false));
    assert_false(tide__zeros_unpack(packed, HEAD + 8, back, SMALL, false));
    assert_false(tide__zeros_unpack(packed, size, back, 2 * SMALL, false));
    assert_false(tide__zeros_unpack(packed, size, back, 2 * TIDE__ZEROS_MOST, false));
    assert_false(tide__zeros_unpack(packed, size, back, SMALL - 4, false));
    assert_memory_equal(back, untouched, SMALL);
    assert_true(tide__zeros_unpack(packed, size, back, SMALL, false));
}

/* ---- in a tier ---- */

static tide__tier *open_tier(uint64_t capacity, bool checksums, bool packs) {
    tide__tier *tier = NULL;
    const tide__tier_options o = {.kind = TIDE_TIER_DISK,
                                  .capacity_bytes = capacity,
                                  .block_bytes = 4096,
                                  .checksums = checksums,
                                  .packs = packs};
    assert_ok(tide__tier_open(&o, &tier));
    return tier;
}

/* Saves and loads of any range and alignment, over and across each other, against a plain array. */
static void test_any_range(void **state) {
    const bool checksums = *state != NULL;
    enum { CAPACITY = 2 << 20, ROUNDS = 60 };
    tide__tier *tier = open_tier(CAPACITY, checksums, true);
    char *model = aligned_alloc(4096, CAPACITY), *memory = aligned_alloc(4096, CAPACITY + 4096);
    tide__tier_slot all = {tier, 0};
    memset(memory, 0, CAPACITY + 4096); /* fill leaves up to three bytes at the end of a range */
    fill(model, CAPACITY, 128, 2);
    assert_ok(tide__tier_save(&all, 0, model, CAPACITY));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t r = tide__random_u64(3, 1, i), position = r % CAPACITY, size = (r >> 24) % (CAPACITY - position) + 1;
        if (i % 4 != 0) position &= ~UINT64_C(4095);
        if (i % 8 > 4) size = size % (64 << 10) + 1; /* parts of extents */
        if (position + size > CAPACITY) size = CAPACITY - position;
        char *data = memory + (i % 5 == 0 ? 64 : 0);
        if (i % 2 == 0) {
            fill(data, size, i % 3 == 0 ? 20 : 160, i);
            memcpy(model + position, data, size);
            assert_ok(tide__tier_save(&all, position, data, size));
        } else {
            assert_ok(tide__tier_load(&all, position, data, size));
            assert_memory_equal(model + position, data, size);
        }
    }
    assert_ok(tide__tier_load(&all, 0, memory, CAPACITY));
    assert_memory_equal(model, memory, CAPACITY);
    free(model);
    free(memory);
    tide__tier_destroy(tier);
}

/* What is written, against what is saved: half of the words are zero; or none, which costs nothing. */
static void test_gain(void **state) {
    (void)state;
    enum { CAPACITY = 4 << 20 };
    char *data = aligned_alloc(4096, CAPACITY), *back = aligned_alloc(4096, CAPACITY);
    for (int zeros = 0; zeros < 2; zeros++) {
        tide__tier *tier = open_tier(CAPACITY, true, true);
        tide__tier_slot slot = {tier, 0};
        fill(data, CAPACITY, zeros ? 128 : 0, 4);
        assert_ok(tide__tier_save(&slot, 0, data, CAPACITY));
        assert_ok(tide__tier_load(&slot, 0, back, CAPACITY));
        assert_memory_equal(data, back, CAPACITY);
        tide__tier_stats stats = tide__tier_get_stats(tier);
        assert_true(stats.saved_bytes == CAPACITY && stats.loaded_bytes == CAPACITY);
        assert_true(zeros ? stats.written_bytes < CAPACITY * 9 / 16 : stats.written_bytes == CAPACITY);
        assert_true(stats.read_bytes == stats.written_bytes);
        tide__tier_destroy(tier);
    }
    free(data);
    free(back);
}

/* A file that is cut within an extent and grows again: what is saved later is there, what lay below the cut, too. */
static void test_cut(void **state) {
    (void)state;
    enum { EXTENT = TIDE__ZEROS_MOST, CAPACITY = 4 * EXTENT };
    tide__tier *tier = open_tier(CAPACITY, true, true);
    char *data = aligned_alloc(4096, CAPACITY), *back = aligned_alloc(4096, CAPACITY);
    tide__tier_slot slot = {tier, 0}, late = {tier, EXTENT + 4096};
    fill(data, CAPACITY, 128, 5);
    assert_ok(tide__tier_save(&slot, 0, data, CAPACITY));
    tide__tier_shrink(tier, EXTENT + 8192);
    assert_ok(tide__tier_grow(tier, CAPACITY));
    assert_ok(tide__tier_load(&slot, 0, back, EXTENT));
    assert_memory_equal(data, back, EXTENT);
    assert_ok(tide__tier_save(&late, 0, data, EXTENT));
    assert_ok(tide__tier_load(&late, 0, back, EXTENT));
    assert_memory_equal(data, back, EXTENT);
    tide__tier_destroy(tier);
    free(data);
    free(back);
}

int main(void) {
    static bool checksums = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_bit), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_any_range), cmocka_unit_test_prestate(test_any_range, &checksums),
        cmocka_unit_test(test_gain),      cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
