/* The disk tier against a disk that misbehaves, request by request: benign faults leave no trace, the others fail the
 * transfer with a text and damage nothing else; both engines, with and without O_DIRECT and checksums. And the system
 * without io_uring. */
#include "support/test.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "support/faulty_disk.h"
#include "tier/tier.h"

enum { SLOT = 17 << 16, SLOTS = 3, ODD = 12345 };

typedef struct setup {
    const tide__disk_engine *engine;
    uint32_t block_bytes;
    bool checksums, packs;
} setup;

static tide__tier *open_tier(const setup *s, tide_status expected) {
    tide__tier *tier = NULL;
    const tide__tier_options o = {.kind = TIDE_TIER_DISK,
                                  .capacity_bytes = (uint64_t)SLOT * SLOTS,
                                  .block_bytes = s->block_bytes,
                                  .checksums = s->checksums,
                                  .packs = s->packs,
                                  .engines = faulty_disk_engines()};
    assert_status(tide__tier_open(&o, &tier), expected);
    return tier;
}

static void fill(char *data, uint64_t size, uint64_t seed) {
    for (uint64_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word = tide__random_u64(seed, 0, i);
        if (i / SLOT == 1 || (i / SLOT == 2 && word % 4 == 0))
            word &= UINT32_MAX; /* slots with zeros, with few, without */
        memcpy(data + i, &word, sizeof word);
    }
}

typedef struct memory {
    char *expected, *got; /* SLOT * SLOTS each */
} memory;

/* One transfer, whole or odd in every way. A fault that fired must show in the status if it is fatal, and only then. */
static bool try_transfer(tide__tier *tier, const memory *m, uint64_t slot, bool out, bool odd, fault_kind kind) {
    tide__tier_slot at = {tier, slot * SLOT};
    uint64_t position = odd ? 4097 : 0, size = odd ? SLOT - ODD : SLOT;
    char *data = (out ? m->expected : m->got) + at.offset + position;
    bool before = faulty_disk_fired();
    tide_status status = (out ? tide__tier_save : tide__tier_load)(&at, position, data, size);
    bool now = faulty_disk_fired() && !before;
    if (status == TIDE_OK) {
        bool harmless = fault_is_benign(kind) || (kind == FAULT_FLIP && out); /* beside what a first write changes */
        if (now && !harmless) fail_msg("%s had no effect", fault_name(kind));
        if (!out) assert_memory_equal(data, m->expected + at.offset + position, size);
        return true;
    }
    if (!now || fault_is_benign(kind)) fail_msg("%s: %s", fault_name(kind), tide_last_error());
    assert_status(status, TIDE_E_IO);
    assert_error_has("the spill file");
    return false;
}

/* Saves and loads everything with a fault at the n-th request. After a failed save the slot is saved again, after a
 * failed load loaded again: the disk is fine from then on, unless the fault says otherwise. */
static void try_all(const setup *s, const memory *m, fault_kind kind, long n) {
    faulty_disk_arm(s->engine, kind, n);
    if (kind == FAULT_RESERVE) {
        open_tier(s, TIDE_E_IO);
        assert_error_has("cannot reserve");
        return;
    }
    tide__tier *tier = open_tier(s, TIDE_OK);
    bool lasting = kind == FAULT_STUCK || kind == FAULT_LOST; /* of the lane: this direction is gone */
    bool dead[2] = {false, false};
    for (uint64_t k = 0; k < 2 * SLOTS; k++) {
        uint64_t slot = k % SLOTS;
        bool out = k < SLOTS;
        if (dead[out]) continue;
        if (!try_transfer(tier, m, slot, out, slot == 2, kind)) {
            dead[out] = lasting;
            if (!lasting && !try_transfer(tier, m, slot, out, slot == 2, kind)) fail_msg("it does not recover");
            if (out && lasting) break; /* nothing to load */
        }
    }
    tide__tier_destroy(tier);
}

static void test_every_request(void **state) {
    const setup *s = *state;
    memory m = {aligned_alloc(4096, (size_t)SLOT * SLOTS), aligned_alloc(4096, (size_t)SLOT * SLOTS)};
    fill(m.expected, (uint64_t)SLOT * SLOTS, 1);
    faulty_disk_arm(s->engine, FAULT_NONE, 0);
    try_all(s, &m, FAULT_NONE, 0);
    long total = faulty_disk_requests();
    assert_true(total > 2 * SLOTS);
    for (int kind = FAULT_NONE + 1; kind < FAULT_COUNT; kind++) {
        if (kind == FAULT_FLIP && !s->checksums) continue;
        if (kind == FAULT_LOST && s->engine == &tide__disk_uring) continue; /* the kernel would write to our heap */
        long stride =
            kind == FAULT_STUCK || kind == FAULT_LOST ? total / 2 : total / 40 + 1; /* STUCK: a hundred pauses each */
        for (long n = 0; n < (kind == FAULT_RESERVE ? 1 : total); n += stride) try_all(s, &m, (fault_kind)kind, n);
    }
    free(m.expected);
    free(m.got);
}

/* A save without zeros over one with zeros, with a fault at every request: what is read afterwards may be old, new or an error,
 * but stays in its place, and the next save mends it. Then parts of what is packed, which change nothing in the file. */
static void test_packed_over(void **state) {
    const setup *s = *state;
    memory m = {aligned_alloc(4096, (size_t)SLOT * SLOTS), aligned_alloc(4096, (size_t)SLOT * SLOTS)};
    fill(m.expected, (uint64_t)SLOT * SLOTS, 2);
    char *zeros = m.expected + SLOT, *dense = m.expected, *guard = m.got + 2 * SLOT;
    for (long n = 0;; n++) {
        faulty_disk_arm(s->engine, FAULT_NONE, 0);
        tide__tier *tier = open_tier(s, TIDE_OK);
        tide__tier_slot at = {tier, 0};
        assert_ok(tide__tier_save(&at, 0, zeros, SLOT));
        faulty_disk_arm(s->engine, FAULT_EIO, n);
        const tide_status status = tide__tier_save(&at, 0, dense, SLOT);
        const bool fired = faulty_disk_fired();
        faulty_disk_arm(s->engine, FAULT_NONE, 0);
        memset(guard, 7, SLOT);
        if (status != TIDE_OK) (void)tide__tier_load(&at, 0, m.got + SLOT, SLOT);
        for (size_t i = 0; i < SLOT; i++) assert_int_equal(guard[i], 7);
        assert_ok(tide__tier_save(&at, 0, zeros, SLOT));
        const uint64_t written = tide__tier_get_stats(tier).written_bytes;
        for (uint64_t part = 8192; part < SLOT - 40000; part += 77777) {
            assert_ok(tide__tier_load(&at, part, m.got, 40000));
            assert_memory_equal(m.got, zeros + part, 40000);
        }
        assert_int_equal(tide__tier_get_stats(tier).written_bytes, written);
        tide__tier_destroy(tier);
        if (!fired) break;
    }
    free(m.expected);
    free(m.got);
}

/* ---- without io_uring ---- */

/* In a child: io_uring_setup answers EPERM, as container runtimes make it. */
static int refused_child(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 0;
    tide__tier *tier;
    char a[5000] = "spilled", b[5000] = "";
    if (tide__tier_create(TIDE_TIER_DISK, 8192, 4096, NULL, &tier) != TIDE_OK) return 1;
    if (strcmp(tide__tier_get_stats(tier).engine, "threads") != 0) return 2;
    tide__tier_slot slot = {tier, 0};
    if (tide__tier_save(&slot, 0, a, sizeof a) != TIDE_OK || tide__tier_load(&slot, 0, b, sizeof b) != TIDE_OK)
        return 3;
    tide__tier_destroy(tier);
    return memcmp(a, b, sizeof a) ? 4 : 0;
}

static void test_refused(void **state) {
    (void)state;
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(refused_child());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A child gives back what it was born with, without the threads of its parent, whose tier goes on. */
static void test_destroyed_in_a_child(void **state) {
    const setup *s = *state;
    char a[5000] = "spilled", b[5000] = "";
    int status = 0;
    faulty_disk_arm(s->engine, FAULT_NONE, 0);
    tide__tier *tier = open_tier(s, TIDE_OK);
    tide__tier_slot slot = {tier, 0};
    assert_ok(tide__tier_save(&slot, 0, a, sizeof a));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        tide__tier_destroy(tier);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(tide__tier_load(&slot, 0, b, sizeof b));
    assert_memory_equal(a, b, sizeof a);
    tide__tier_destroy(tier);
}

int main(void) {
    static setup setups[] = {{&tide__disk_threads, 4096, true, true},
                             {&tide__disk_threads, 64, false},
                             {&tide__disk_uring, 4096, false, true},
                             {&tide__disk_uring, 64, true}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test_prestate(test_destroyed_in_a_child, &setups[0]),
        cmocka_unit_test_prestate(test_destroyed_in_a_child, &setups[2]),
        cmocka_unit_test_prestate(test_every_request, &setups[0]),
        cmocka_unit_test_prestate(test_every_request, &setups[1]),
        cmocka_unit_test_prestate(test_every_request, &setups[2]),
        cmocka_unit_test_prestate(test_every_request, &setups[3]),
        cmocka_unit_test_prestate(test_packed_over, &setups[0]),
        cmocka_unit_test_prestate(test_packed_over, &setups[2]),
    };
    void *lane;
    bool uring = tide__disk_uring.open(-1, 8, &lane) == 0;
    if (uring) tide__disk_uring.close(lane);
    for (size_t i = 2; i < 4 && !uring; i++) setups[i].engine = &tide__disk_threads; /* this system has no io_uring */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
