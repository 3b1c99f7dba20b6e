/* Transitions: values go from random places to random places, in an arena and tiers with more or less room to spare, and
 * every byte arrives; where there is no way, the values are still whole where they are said to be. */
#include "support/test.h"

#include "base/hash.h"
#include "device/opencl/opencl.h"
#include "run/transition.h"
#include "support/opencl.h"
#include "support/random_program.h"

enum { MAX_VALUES = 24, BLOCK = 4096, N_SPACES = 1 + TIDE_MACHINE_MAX_TIERS };

typedef struct rig {
    tide_device *device;
    tide_machine machine;
    tide_run run;
    uint64_t room[N_SPACES];
    tide__haul hauls[MAX_VALUES];
    size_t n;
} rig;

static void fill(unsigned char *bytes, uint64_t size, uint64_t seed) {
    for (uint64_t i = 0; i < size; i++) bytes[i] = (unsigned char)tide__hash_word(seed, i);
}

static tide_device *open_cpu(void) {
    tide_device *device;
    tide_device_options o;
    tide_device_options_init(&o);
    o.threads = 1;
    assert_ok(tide_device_open("cpu", &o, &device));
    return device;
}

/* Its arena is as one on a card: the host cannot see it. */
static tide_device *open_remote(void) {
    tide_device *device;
    assert_ok(tide_device_open("opencl", NULL, &device));
    ((tide__opencl *)device)->host_visible = false;
    return device;
}

static void rig_open(rig *r, tide_device *device, uint64_t arena_blocks, uint64_t tier_blocks) {
    *r = (rig){.device = device, .room = {arena_blocks * BLOCK}};
    assert_ok(tide_machine_load("cpu", &r->machine));
    r->run.options.machine = &r->machine;
    assert_ok(tide_arena_create(r->device, r->room[0], &r->run.arena));
    assert_ok(tide_queue_create(r->device, TIDE_QUEUE_COMPUTE, &r->run.queue[0]));
    for (uint32_t t = 0; t < 2 && tier_blocks; t++) r->room[1 + t] = tier_blocks * BLOCK;
}

static void rig_close(rig *r) {
    for (uint32_t t = 0; t < 2; t++) tide__tier_destroy(r->run.tier[t]);
    tide_queue_destroy(r->run.queue[0]);
    tide_arena_destroy(r->run.arena);
}

/* Values side by side, in random order, with gaps where there is room; false: they do not fit. */
static bool draw_sites(const rig *r, uint64_t *seed, bool target, tide__haul *hauls) {
    uint64_t at[3] = {0};
    for (size_t k = 0, first = random_below(seed, r->n); k < r->n; k++) {
        tide__haul *h = &hauls[(k * 29 + first) % r->n];
        uint32_t space = (uint32_t)random_below(seed, r->room[1] ? 6 : 1) % 3;
        uint64_t size = (h->size_bytes + BLOCK - 1) / BLOCK * BLOCK, gap = random_below(seed, 2) * BLOCK;
        for (uint32_t tries = 0; tries < 3 && at[space] + size > r->room[space]; tries++) space = (space + 1) % 3;
        if (at[space] + size > r->room[space]) return false;
        if (at[space] + gap + size > r->room[space]) gap = 0;
        *(target ? &h->to : &h->from) = (tide__site){space, at[space] + gap};
        at[space] += gap + size;
    }
    return true;
}

static tide_status give(void *bytes, uint64_t position, void *data, uint64_t size) {
    memcpy(data, (char *)bytes + position, size);
    return TIDE_OK;
}

static tide_status take(void *bytes, uint64_t position, void *data, uint64_t size) {
    memcpy((char *)bytes + position, data, size);
    return TIDE_OK;
}

static void access(rig *r, size_t i, tide__site site, unsigned char *bytes, bool write) {
    uint64_t size = r->hauls[i].size_bytes;
    tide__tier_slot slot = {.offset = site.offset};
    if (site.space == 0) {
        tide_io io = {.fn = write ? give : take, .context = bytes, .channel = TIDE_NONE};
        assert_ok((write ? tide_copy_in : tide_copy_out)(r->run.queue[0], r->run.arena, site.offset, size, io));
        assert_ok(tide_queue_sync(r->run.queue[0]));
        return;
    }
    if (!r->run.tier[site.space - 1]) assert_ok(tide__run_open_tier(&r->run, site.space - 1, r->room[site.space]));
    slot.tier = r->run.tier[site.space - 1];
    assert_ok(write ? tide__tier_save(&slot, 0, bytes, size) : tide__tier_load(&slot, 0, bytes, size));
}

static void check_all(rig *r, bool arrived) {
    static unsigned char want[20 * BLOCK], got[20 * BLOCK];
    for (size_t i = 0; i < r->n; i++) {
        if (arrived) assert_memory_equal(&r->hauls[i].from, &r->hauls[i].to, sizeof(tide__site));
        fill(want, r->hauls[i].size_bytes, i);
        access(r, i, r->hauls[i].from, got, false);
        assert_memory_equal(want, got, r->hauls[i].size_bytes);
    }
}

static void start_values(rig *r) {
    static unsigned char bytes[20 * BLOCK];
    for (size_t i = 0; i < r->n; i++) {
        fill(bytes, r->hauls[i].size_bytes, i);
        access(r, i, r->hauls[i].from, bytes, true);
    }
}

static void random_transitions(tide_device *device, uint32_t n) {
    uint32_t n_arrived = 0, n_stuck = 0;
    for (uint64_t seed = 1; seed < n; seed++) {
        uint64_t draw = seed;
        rig r;
        rig_open(&r, device, 16 + random_below(&draw, 60), seed % 3 ? 8 + random_below(&draw, 50) : 0);
        r.n = 1 + random_below(&draw, MAX_VALUES - 1);
        memset(r.hauls, 0, sizeof r.hauls); /* padding, too: sites are compared as bytes */
        for (size_t i = 0; i < r.n; i++) r.hauls[i].size_bytes = random_below(&draw, 6 * BLOCK);
        if (draw_sites(&r, &draw, false, r.hauls) && draw_sites(&r, &draw, true, r.hauls)) {
            start_values(&r);
            tide_status status = tide__transition(&r.run, r.room, r.hauls, r.n);
            if (status != TIDE_E_FIT) assert_ok(status);
            check_all(&r, status == TIDE_OK);
            *(status == TIDE_OK ? &n_arrived : &n_stuck) += 1;
        }
        rig_close(&r);
    }
    assert_true(n_arrived > n / 3);
    assert_true(n_stuck > 0 && n_stuck < n_arrived);
    tide_device_close(device);
}

static void test_random(void **state) {
    (void)state;
    random_transitions(open_cpu(), rounds(400));
}

static void test_remote(void **state) {
    (void)state;
    if (has_opencl()) random_transitions(open_remote(), 60);
}

/* Two values change places: with no room beside them there is no way, with some there is. */
static void test_circle(void **state) {
    (void)state;
    tide_device *device = open_cpu();
    for (uint64_t spare = 0; spare < 2; spare++) {
        rig r;
        rig_open(&r, device, 8 + 4 * spare, 0);
        r.n = 2;
        for (size_t i = 0; i < 2; i++)
            r.hauls[i] =
                (tide__haul){.size_bytes = 4 * BLOCK, .from = {0, 4 * BLOCK * i}, .to = {0, 4 * BLOCK * (1 - i)}};
        start_values(&r);
        assert_status(tide__transition(&r.run, r.room, r.hauls, r.n), spare ? TIDE_OK : TIDE_E_FIT);
        check_all(&r, false);
        rig_close(&r);
    }
    tide_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_remote),
        cmocka_unit_test(test_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
