/* Tiers: round trips of every alignment, the budget, reservation that fails, and nothing left behind. */
#include "support/test.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "tier/tier.h"

/* ---- a folder of our own ---- */

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tidemark-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder); /* fails if anything is left in it */
}

static int count_files(void) {
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* ---- helpers ---- */

typedef struct setup {
    tide_tier_kind kind;
    uint32_t block_bytes;
} setup;

static setup ram = {TIDE_TIER_RAM, 64}, disk = {TIDE_TIER_DISK, 4096}, buffered = {TIDE_TIER_DISK, 64};

static tide__tier *new_tier(const setup *s, uint64_t capacity) {
    tide__tier *tier = NULL;
    assert_ok(tide__tier_create(s->kind, capacity, s->block_bytes, folder, &tier));
    return tier;
}

static void fill(char *data, uint64_t size, uint64_t seed) {
    for (uint64_t i = 0; i < size; i++) data[i] = (char)tide__random_u64(seed, 0, i);
}

/* ---- tests ---- */

static void test_round_trip(void **state) {
    enum { SIZE = 300000 };
    tide__tier *tier = new_tier(*state, 1 << 20);
    char *memory = aligned_alloc(4096, 2 * 303104), *a = memory, *b = memory + 303104;
    static const uint64_t shifts[] = {0, 64, 1};
    for (size_t i = 0; i < 3; i++) {
        tide__tier_slot slot = {tier, 4096 * (1 + i * 80)};
        fill(a + shifts[i], SIZE, i);
        assert_ok(tide__tier_save(&slot, 0, a + shifts[i], SIZE));
        assert_ok(tide__tier_load(&slot, 0, b + shifts[i], SIZE));
        assert_memory_equal(a + shifts[i], b + shifts[i], SIZE);
    }
    tide__tier_stats stats = tide__tier_get_stats(tier);
    assert_true(stats.saved_bytes == 3 * SIZE && stats.loaded_bytes == 3 * SIZE && stats.capacity_bytes == 1 << 20);
    free(memory);
    tide__tier_destroy(tier);
}

/* Random pieces of random alignment against a plain array: neighbours are never touched. */
static void test_pieces(void **state) {
    enum { SLOT = 65536, SLOTS = 4, SIZE = SLOT * SLOTS };
    tide__tier *tier = new_tier(*state, SIZE);
    char *model = calloc(1, SIZE), *memory = aligned_alloc(4096, SIZE + 4096), *zero = calloc(1, SIZE);
    tide__tier_slot all = {tier, 0};
    assert_ok(tide__tier_save(&all, 0, zero, SIZE));
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t r = tide__random_u64(9, 1, i), position = r % SLOT, size = (r >> 20) % (SLOT - position + 1);
        tide__tier_slot slot = {tier, SLOT * ((r >> 40) % SLOTS)};
        char *data = memory + (r >> 44) % 3 * 64; /* sometimes on a disk block, mostly not */
        if (i % 3 == 0) position &= ~UINT64_C(4095);
        fill(data, size, i);
        memcpy(model + slot.offset + position, data, size);
        assert_ok(tide__tier_save(&slot, position, data, size));
        memset(data, 0, size);
        assert_ok(tide__tier_load(&slot, position, data, size));
        assert_memory_equal(model + slot.offset + position, data, size);
    }
    assert_ok(tide__tier_load(&all, 0, memory, SIZE));
    assert_memory_equal(model, memory, SIZE);
    free(model);
    free(memory);
    free(zero);
    tide__tier_destroy(tier);
}

/* What is there stays, what is new can be used, and beyond that nothing. */
static void test_grow(void **state) {
    enum { SMALL = 20000, LARGE = 300000 };
    tide__tier *tier = new_tier(*state, SMALL);
    char *a = malloc(LARGE), *b = malloc(LARGE);
    tide__tier_slot first = {tier, 0}, second = {tier, 20480};
    fill(a, LARGE, 7);
    assert_ok(tide__tier_save(&first, 0, a, SMALL));
    assert_status(tide__tier_save(&second, 0, a, LARGE), TIDE_E_TIER_FULL);
    assert_ok(tide__tier_grow(tier, 20480 + LARGE));
    assert_ok(tide__tier_grow(tier, 1)); /* it has more already */
    assert_int_equal(tide__tier_get_stats(tier).capacity_bytes, 20480 + LARGE);
    assert_ok(tide__tier_load(&first, 0, b, SMALL));
    assert_memory_equal(a, b, SMALL);
    assert_ok(tide__tier_save(&second, 0, a, LARGE));
    assert_ok(tide__tier_load(&second, 0, b, LARGE));
    assert_memory_equal(a, b, LARGE);
    assert_status(tide__tier_save(&second, 0, a, LARGE + 1), TIDE_E_TIER_FULL);
    tide__tier_shrink(tier, SMALL);
    tide__tier_shrink(tier, LARGE); /* it has less already */
    assert_int_equal(tide__tier_get_stats(tier).capacity_bytes, SMALL);
    assert_status(tide__tier_load(&second, 0, b, 1), TIDE_E_TIER_FULL);
    assert_ok(tide__tier_grow(tier, 20480 + LARGE));
    assert_ok(tide__tier_save(&second, 0, a, LARGE));
    assert_ok(tide__tier_load(&second, 0, b, LARGE));
    assert_memory_equal(a, b, LARGE);
    assert_ok(tide__tier_load(&first, 0, b, SMALL));
    assert_memory_equal(a, b, SMALL);
    tide__tier_destroy(tier);
    free(a);
    free(b);
}

static void test_budget(void **state) {
    const setup *s = *state;
    tide__tier *tier = new_tier(s, 10000);
    static char data[10001];
    tide__tier_slot start = {tier, 0}, last = {tier, 8192}, beyond = {tier, UINT64_MAX & ~UINT64_C(4095)};
    tide__tier_slot odd = {tier, 32};
    assert_ok(tide__tier_save(&start, 0, data, 10000));
    assert_status(tide__tier_save(&start, 0, data, 10001), TIDE_E_TIER_FULL);
    assert_error_has("exceed the tier's 10000 bytes");
    assert_status(tide__tier_save(&start, 1, data, 10000), TIDE_E_TIER_FULL);
    assert_status(tide__tier_load(&start, UINT64_MAX, data, 2), TIDE_E_TIER_FULL);
    assert_ok(tide__tier_save(&last, 0, data, 10000 - 8192));
    assert_status(tide__tier_save(&last, 0, data, 10001 - 8192), TIDE_E_TIER_FULL);
    assert_status(tide__tier_load(&beyond, 4096, data, 1), TIDE_E_TIER_FULL);
    assert_status(tide__tier_save(&odd, 0, data, 1), TIDE_E_ARGUMENT);
    assert_true(tide__tier_get_stats(tier).saved_bytes == 10000 + 1808);
    tide__tier_destroy(tier);
}

static void test_empty(void **state) {
    tide__tier *tier = new_tier(*state, 0);
    tide__tier_slot slot = {tier, 0};
    char byte = 1;
    assert_ok(tide__tier_save(&slot, 0, &byte, 0));
    assert_status(tide__tier_save(&slot, 0, &byte, 1), TIDE_E_TIER_FULL);
    tide__tier_destroy(tier);
}

static void test_refused(void **state) {
    (void)state;
    tide__tier *tier = NULL;
    assert_status(tide__tier_create(TIDE_TIER_CLIENT, 10, 1, folder, &tier), TIDE_E_ARGUMENT);
    assert_status(tide__tier_create(TIDE_TIER_RAM, 10, 3, folder, &tier), TIDE_E_ARGUMENT);
    assert_status(tide__tier_create(TIDE_TIER_RAM, UINT64_C(1) << 60, 64, folder, &tier), TIDE_E_MEMORY);
    assert_status(tide__tier_create(TIDE_TIER_RAM, UINT64_MAX, 64, folder, &tier), TIDE_E_MEMORY);
    assert_status(tide__tier_create(TIDE_TIER_DISK, UINT64_MAX, 4096, folder, &tier), TIDE_E_OVERFLOW);
    assert_status(tide__tier_create(TIDE_TIER_DISK, UINT64_C(1) << 63, 4096, folder, &tier), TIDE_E_IO);
    assert_status(tide__tier_create(TIDE_TIER_DISK, UINT64_C(1) << 60, 4096, folder, &tier), TIDE_E_IO);
    assert_error_has("cannot reserve 1152921504606846976 bytes for the spill file");
    assert_error_has(folder);
    assert_status(tide__tier_create(TIDE_TIER_DISK, 10, 4096, "/no/such/folder", &tier), TIDE_E_IO);
    assert_error_has("/no/such/folder/tidemark-spill-");
    assert_null(tier);
    assert_int_equal(count_files(), 0);
    tide__tier_destroy(NULL);
}

/* The file has no name while it is in use. */
static void test_nothing_left_behind(void **state) {
    tide__tier *tier = new_tier(*state, 1 << 20);
    assert_int_equal(count_files(), 0);
    tide__tier_destroy(tier);
    assert_int_equal(count_files(), 0);
}

/* In a child: the disk is full when the file is reserved, and when it is written later. */
static int full_disk_child(void) {
    tide__tier *tier = NULL, *late = NULL;
    static char data[1 << 16];
    const struct rlimit small = {.rlim_cur = 1 << 16, .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    if (tide__tier_create(TIDE_TIER_DISK, 1 << 20, 64, folder, &late) != TIDE_OK) return 1;
    setrlimit(RLIMIT_FSIZE, &small);
    if (tide__tier_create(TIDE_TIER_DISK, 1 << 20, 4096, folder, &tier) != TIDE_E_IO) return 2;
    if (tier || !strstr(tide_last_error(), "cannot reserve 1048576 bytes") || count_files() != 0) return 3;
    tide__tier_slot slot = {late, 1 << 17};
    if (tide__tier_save(&slot, 0, data, sizeof data) != TIDE_E_IO) return 4;
    if (!strstr(tide_last_error(), "cannot write the spill file") || !strstr(tide_last_error(), "File too large"))
        return 5;
    if (tide__tier_get_stats(late).saved_bytes != 0) return 6;
    tide__tier_destroy(late);
    return 0;
}

static void test_full_disk(void **state) {
    (void)state;
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(full_disk_child());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(count_files(), 0);
}

/* Two threads, two slots of one tier. */
static void *hammer(void *context) {
    tide__tier_slot *slot = context;
    enum { SIZE = 20001 };
    char *data = malloc(SIZE), *back = malloc(SIZE);
    bool bad = false;
    for (uint64_t i = 0; i < 50; i++) {
        fill(data, SIZE, slot->offset + i);
        bad |= tide__tier_save(slot, 0, data, SIZE) != TIDE_OK;
        bad |= tide__tier_load(slot, 0, back, SIZE) != TIDE_OK;
        bad |= memcmp(data, back, SIZE) != 0;
    }
    free(data);
    free(back);
    return bad ? slot : NULL;
}

static void test_two_threads(void **state) {
    tide__tier *tier = new_tier(*state, 2 * 20480);
    tide__tier_slot slots[2] = {{tier, 0}, {tier, 20480}};
    pthread_t thread;
    void *bad = NULL;
    assert_int_equal(pthread_create(&thread, NULL, hammer, &slots[0]), 0);
    assert_null(hammer(&slots[1]));
    pthread_join(thread, &bad);
    assert_null(bad);
    assert_true(tide__tier_get_stats(tier).saved_bytes == 100 * 20001);
    tide__tier_destroy(tier);
}

/* Slots that share a disk block, with checksums, which are of whole disk blocks: a save of one is no damage to the other,
 * whose bytes a load has just read. */
enum { LOADS = 1000, LOADED_BYTES = (256 << 10) - 512 };
static atomic_bool loads_are_done;

static void *save_again(void *context) {
    char data[512];
    for (int i = 0; !loads_are_done; i++) {
        memset(data, i, sizeof data);
        if (tide__tier_save(context, 0, data, sizeof data) != TIDE_OK) return context;
    }
    return NULL;
}

static void test_neighbours_with_checksums(void **state) {
    (void)state;
    tide__tier *tier = NULL;
    const tide__tier_options o = {
        .kind = TIDE_TIER_DISK, .capacity_bytes = 256 << 10, .block_bytes = 512, .path = folder, .checksums = true};
    assert_ok(tide__tier_open(&o, &tier));
    tide__tier_slot saved = {tier, 0}, loaded = {tier, 512};
    static char expected[LOADED_BYTES], got[LOADED_BYTES];
    pthread_t thread;
    void *bad = NULL;
    fill(expected, sizeof expected, 3);
    assert_ok(tide__tier_save(&loaded, 0, expected, sizeof expected));
    assert_int_equal(pthread_create(&thread, NULL, save_again, &saved), 0);
    for (int i = 0; i < LOADS; i++) {
        assert_ok(tide__tier_load(&loaded, 0, got, sizeof got));
        assert_memory_equal(got, expected, sizeof got);
    }
    loads_are_done = true;
    pthread_join(thread, &bad);
    assert_null(bad);
    tide__tier_destroy(tier);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_round_trip, &ram),
        cmocka_unit_test_prestate(test_round_trip, &disk),
        cmocka_unit_test_prestate(test_round_trip, &buffered),
        cmocka_unit_test_prestate(test_pieces, &ram),
        cmocka_unit_test_prestate(test_pieces, &disk),
        cmocka_unit_test_prestate(test_pieces, &buffered),
        cmocka_unit_test_prestate(test_grow, &ram),
        cmocka_unit_test_prestate(test_grow, &disk),
        cmocka_unit_test_prestate(test_grow, &buffered),
        cmocka_unit_test_prestate(test_budget, &ram),
        cmocka_unit_test_prestate(test_budget, &disk),
        cmocka_unit_test_prestate(test_empty, &ram),
        cmocka_unit_test_prestate(test_empty, &disk),
        cmocka_unit_test(test_refused),
        cmocka_unit_test_prestate(test_nothing_left_behind, &disk),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test_prestate(test_two_threads, &ram),
        cmocka_unit_test_prestate(test_two_threads, &disk),
        cmocka_unit_test(test_neighbours_with_checksums),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
