/* Machines: the default, the rules, the profiles that ship, reading of broken profiles, writing and reading back. */
#include "support/test.h"

#include <tidemark/machine.h>

#include <sys/stat.h>
#include <unistd.h>

static const char PROFILE[] = "{\n"
                              "\"format\": \"tidemark-machine\", \"version\": 1, \"name\": \"n\", \"source\": \"s\",\n"
                              "\"memory_bytes\": 1000, \"reserve_bytes\": 10, \"align_bytes\": 64,\n"
                              "\"flops_per_s\": 1e12, \"bytes_per_s\": 2.5e9, \"launch_ns\": 5,\n"
                              "\"matrix_efficiency\": 0.5, \"vector_efficiency\": 1,\n"
                              "\"tiers\": [{\"name\": \"ram\", \"kind\": \"ram\", \"block_bytes\": 1}],\n"
                              "\"channels\": [{\"tier\": \"ram\", \"direction\": \"out\", \"bytes_per_s\": 100, "
                              "\"latency_ns\": 7}]\n"
                              "}\n";

/* Field by field, since padding bytes may differ. */
static void assert_same_machine(const tide_machine *a, const tide_machine *b) {
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->source, b->source);
    assert_int_equal(a->n_tiers, b->n_tiers);
    for (uint32_t i = 0; i < a->n_tiers; i++) assert_string_equal(a->tier[i].name, b->tier[i].name);
    assert_true(tide_machine_fingerprint(a) == tide_machine_fingerprint(b));
}

static void default_is_valid(void **state) {
    tide_machine m, same;
    tide_machine_init_default(&m);
    assert_ok(tide_machine_validate(&m));
    assert_ok(tide_machine_load("default", &same));
    assert_same_machine(&m, &same);
    assert_int_equal(m.align_bytes, 1);
    assert_int_equal(m.channel[tide_machine_queue(&m, 0, true) - 1].bytes_per_s, 12000000000);
    assert_int_equal(m.channel[tide_machine_queue(&m, 0, false) - 1].bytes_per_s, 12000000000);
    uint32_t client = tide_machine_find_tier(&m, TIDE_TIER_CLIENT);
    assert_int_not_equal(tide_machine_queue(&m, client, false), TIDE_NONE);
    assert_int_equal(tide_machine_queue(&m, client, true), TIDE_NONE);
    assert_int_equal(tide_machine_find_tier(&m, TIDE_TIER_DISK), TIDE_NONE);
}

static void transfer_times_round_up_and_saturate(void **state) {
    tide_machine m;
    tide_machine_init_default(&m);
    m.channel[0] = (tide_machine_channel){.out = true, .bytes_per_s = 3, .latency_ns = 5};
    assert_int_equal(tide_machine_transfer_ns(&m, 0, 0), 5);
    assert_int_equal(tide_machine_transfer_ns(&m, 0, 1), 5 + 333333334);
    assert_int_equal(tide_machine_transfer_ns(&m, 0, 3), 5 + 1000000000);
    assert_true(tide_machine_transfer_ns(&m, 0, UINT64_MAX) == UINT64_MAX);
    m.channel[0].bytes_per_s = UINT64_C(1) << 40;
    assert_true(tide_machine_transfer_ns(&m, 0, UINT64_C(1) << 60) == 5 + (UINT64_C(1) << 20) * 1000000000);
    m.channel[0].bytes_per_s = UINT64_MAX;
    m.channel[0].latency_ns = UINT64_MAX;
    assert_true(tide_machine_transfer_ns(&m, 0, 1) == UINT64_MAX);
}

static void copies_inside_memory_read_and_write_in_pieces(void **state) {
    tide_machine m;
    tide_machine_init_default(&m);
    m.bytes_per_s = 4e9;
    m.vector_efficiency = 0.5;
    m.launch_ns = 7;
    assert_int_equal(tide_machine_relocate_ns(&m, 0, 100), 0);
    assert_int_equal(tide_machine_relocate_ns(&m, 100, 0), 0);
    assert_int_equal(tide_machine_relocate_ns(&m, 1000, 1000), 1000 + 7);
    assert_int_equal(tide_machine_relocate_ns(&m, 1000, UINT64_MAX), 1000 + 7);
    assert_int_equal(tide_machine_relocate_ns(&m, 1000, 300), 1000 + 4 * 7);
    assert_true(tide_machine_relocate_ns(&m, UINT64_MAX, 1) == UINT64_MAX);
}

static void check_broken(tide_machine m, const char *text) {
    assert_status(tide_machine_validate(&m), TIDE_E_ARGUMENT);
    assert_error_has(text);
}

#define BROKEN(change, text)           \
    do {                               \
        tide_machine m;                \
        tide_machine_init_default(&m); \
        change;                        \
        check_broken(m, text);         \
    } while (0)

static void rules_are_checked(void **state) {
    BROKEN(m.name[0] = 0, "name");
    BROKEN(memset(m.source, 'x', sizeof m.source), "source");
    BROKEN(m.memory_bytes = 0, "memory_bytes");
    BROKEN(m.reserve_bytes = m.memory_bytes, "reserve_bytes");
    BROKEN(m.align_bytes = 0, "align_bytes");
    BROKEN(m.align_bytes = 24, "align_bytes");
    BROKEN(m.flops_per_s = 0, "flops_per_s");
    BROKEN(m.flops_per_s = strtod("nan", NULL), "flops_per_s");
    BROKEN(m.bytes_per_s = strtod("inf", NULL), "bytes_per_s");
    BROKEN(m.matrix_efficiency = 1.5, "matrix_efficiency");
    BROKEN(m.half_flops_per_s = -1, "half_flops_per_s");
    BROKEN(m.vector_efficiency = 0, "vector_efficiency");
    BROKEN(m.n_tiers = TIDE_MACHINE_MAX_TIERS, "tiers");
    BROKEN(m.n_channels = TIDE_MACHINE_MAX_CHANNELS - 1, "channels");
    BROKEN(m.tier[1].name[0] = 0, "tiers[1]");
    BROKEN(strcpy(m.tier[1].name, "ram"), "two tiers");
    BROKEN(m.tier[0].kind = (tide_tier_kind)9, "kind");
    BROKEN(m.tier[0].block_bytes = 3, "block_bytes");
    BROKEN(m.channel[2].tier = 2, "no such tier");
    BROKEN(m.channel[1].bytes_per_s = 0, "bytes_per_s");
    BROKEN(m.channel[2].out = true, "read-only");
    BROKEN(m.channel[1].out = true, "second channel");
    assert_status(tide_machine_validate(NULL), TIDE_E_ARGUMENT);
}

static void shipped_profiles_load(void **state) {
    static const struct {
        const char *name;
        uint64_t gib;
    } shipped[] = {{"k40c", 12},   {"v100-16gb-pcie", 16}, {"rtx3090", 24}, {"a100", 40},    {"t4", 16},
                   {"rtx4060", 8}, {"rtx4060-laptop", 8},  {"rtx4070", 12}, {"rtx4090", 24}, {"rtx5090", 32},
                   {"l4", 24},     {"l40s", 48},           {"h100", 80}};
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
        tide_machine m;
        char path[512];
        snprintf(path, sizeof path, "%s/machines/%s.json", TIDE_SOURCE_DIR, shipped[i].name);
        assert_ok(tide_machine_load(path, &m));
        assert_string_equal(m.name, shipped[i].name);
        assert_string_equal(m.source, "data sheet");
        assert_int_equal(m.memory_bytes, shipped[i].gib << 30);
        bool has_tensor_cores = strcmp(m.name, "k40c") != 0;
        assert_true(has_tensor_cores ? m.half_flops_per_s > 1.5 * m.flops_per_s : m.half_flops_per_s == 0);
        uint32_t ram = tide_machine_find_tier(&m, TIDE_TIER_RAM), client = tide_machine_find_tier(&m, TIDE_TIER_CLIENT);
        uint32_t disk = tide_machine_find_tier(&m, TIDE_TIER_DISK);
        assert_int_equal(m.tier[disk].block_bytes, 4096);
        uint32_t in = tide_machine_queue(&m, ram, false), from_client = tide_machine_queue(&m, client, false);
        assert_int_not_equal(tide_machine_queue(&m, ram, true), TIDE_NONE);
        assert_int_equal(m.channel[in - 1].share, m.channel[from_client - 1].share);
        assert_int_not_equal(m.channel[in - 1].share, 0);
        tide_machine by_name;
        assert_ok(tide_machine_load(shipped[i].name, &by_name));
        assert_true(tide_machine_fingerprint(&m) == tide_machine_fingerprint(&by_name));
    }
}

static void lookup_goes_through_the_environment(void **state) {
    char folder[] = "/tmp/tide-machine-XXXXXX", path[128];
    tide_machine m, found;
    assert_non_null(mkdtemp(folder));
    assert_ok(tide_machine_load("k40c", &m));
    strcpy(m.name, "mine");
    m.memory_bytes = 12345678900;
    snprintf(path, sizeof path, "%s/k40c.json", folder);
    assert_ok(tide_machine_write(&m, path));
    assert_int_equal(setenv("TIDEMARK_MACHINES", folder, 1), 0);
    assert_ok(tide_machine_load("k40c", &found));
    assert_same_machine(&m, &found);
    assert_ok(tide_machine_load("a100", &found)); /* not in that folder: the next one has it */
    assert_status(tide_machine_load("no-such-device", &found), TIDE_E_ARGUMENT);
    assert_error_has("named \"no-such-device\"; known: default, k40c, a100, cpu, h100, l4, l40s, rtx3090, rtx4060");
    unsetenv("TIDEMARK_MACHINES");
    assert_status(tide_machine_load("no-such-device", &found), TIDE_E_ARGUMENT);
    assert_error_has("known: default, a100, cpu, h100, k40c, ");
    assert_status(tide_machine_load("/nowhere/x.json", &found), TIDE_E_IO);
    unlink(path);
    rmdir(folder);
}

static void capacity_and_doubles_survive_a_file(void **state) {
    char path[] = "/tmp/tide-machine-XXXXXX.json";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    close(fd);
    tide_machine m, again;
    tide_machine_init_default(&m);
    m.flops_per_s = 1e12 / 3;
    m.tier[0].capacity_bytes = UINT64_MAX - 1;
    strcpy(m.tier[0].name, "a \"quoted\" \\ name");
    assert_ok(tide_machine_write(&m, path));
    assert_ok(tide_machine_load(path, &again));
    assert_same_machine(&m, &again);
    unlink(path);
    assert_status(tide_machine_write(&m, "/nowhere/at/all.json"), TIDE_E_IO);
}

static void fingerprint_ignores_names_only(void **state) {
    tide_machine m, other;
    tide_machine_init_default(&m);
    other = m;
    strcpy(other.name, "x");
    strcpy(other.source, "y");
    strcpy(other.tier[0].name, "z");
    assert_true(tide_machine_fingerprint(&m) == tide_machine_fingerprint(&other));
    uint64_t *words[] = {&other.memory_bytes,           &other.reserve_bytes,          &other.launch_ns,
                         &other.tier[1].capacity_bytes, &other.channel[2].bytes_per_s, &other.channel[0].latency_ns};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ++*words[i];
        assert_true(tide_machine_fingerprint(&m) != tide_machine_fingerprint(&other));
        --*words[i];
    }
    other.channel[1].share = 1;
    assert_true(tide_machine_fingerprint(&other) != tide_machine_fingerprint(&m));
    other = m;
    other.channel[1].drag_percent = 1;
    assert_true(tide_machine_fingerprint(&m) != tide_machine_fingerprint(&other));
}

/* The profile with `from` replaced by `to` is refused with a text that has `text`. */
static void refuse(const char *from, const char *to, const char *text) {
    char edited[2048];
    const char *at = strstr(PROFILE, from);
    assert_non_null(at);
    snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - PROFILE), PROFILE, to, at + strlen(from));
    tide_machine m = {.launch_ns = 77};
    assert_status(tide_machine_read_memory(edited, strlen(edited), "p.json", &m), TIDE_E_FORMAT);
    assert_error_has("p.json");
    assert_error_has(text);
    assert_int_equal(m.launch_ns, 77);
}

static void broken_profiles_are_refused(void **state) {
    tide_machine m;
    assert_ok(tide_machine_read_memory(PROFILE, strlen(PROFILE), "p.json", &m));
    assert_int_equal(m.align_bytes, 64);
    assert_true(m.tier[0].capacity_bytes == UINT64_MAX);
    refuse("tidemark-machine", "other", "not a machine profile");
    refuse("\"version\": 1", "\"version\": 2", "version 2");
    refuse("\"version\": 1, ", "", "version is missing");
    refuse("\"launch_ns\"", "\"launch\"", "launch");
    refuse("\"memory_bytes\": 1000", "\"memory_bytes\": -1", "memory_bytes");
    refuse("\"memory_bytes\": 1000", "\"memory_bytes\": 18446744073709551616", "memory_bytes");
    refuse("\"align_bytes\": 64", "\"align_bytes\": 4294967296", "align_bytes");
    refuse("1e12", "1e999", "flops_per_s");
    refuse("1e12", "\"fast\"", "flops_per_s");
    refuse("\"name\": \"n\"", "\"name\": \"\"", "name");
    refuse("\"name\": \"n\"", "\"name\": 5", "name");
    refuse("\"kind\": \"ram\"", "\"kind\": \"tape\"", "tiers[0]");
    refuse("\"kind\": \"ram\"", "\"kind\": \"tape\"", "\"peer\" or \"lent\"");
    refuse("\"tier\": \"ram\"", "\"tier\": \"disk\"", "channels[0]");
    refuse("\"direction\": \"out\"", "\"direction\": \"up\"", "channels[0]");
    refuse("\"bytes_per_s\": 100", "\"bytes_per_s\": 0", "channels[0]");
    refuse("\"latency_ns\": 7", "\"latency_ns\": 7, \"speed\": 1", "speed");
    refuse("\"latency_ns\": 7}", "\"latency_ns\": 7}, 3", "channels[1]");
    refuse("\"latency_ns\": 7", "\"latency_ns\": 7, \"drag_percent\": 91", "drag_percent above 90");
    refuse("\"reserve_bytes\": 10", "\"memory_bytes\": 10", "p.json:3");
    refuse("]\n}\n", "]\n", "p.json:");
    assert_status(tide_machine_read_memory("", 0, "empty", &m), TIDE_E_FORMAT);
    assert_status(tide_machine_read_memory("[]", 2, "list", &m), TIDE_E_FORMAT);
}

static void tiers_can_be_left_out(void **state) {
    (void)state;
    tide_machine m, without;
    assert_ok(tide_machine_load("cpu", &m));
    tide_machine_without(&m, TIDE_TIER_RAM, &without);
    assert_ok(tide_machine_validate(&without));
    assert_int_equal(without.n_tiers, m.n_tiers - 1);
    assert_int_equal(without.n_channels, m.n_channels - 2);
    assert_true(tide_machine_find_tier(&without, TIDE_TIER_RAM) == TIDE_NONE);
    uint32_t disk = tide_machine_find_tier(&without, TIDE_TIER_DISK), was = tide_machine_find_tier(&m, TIDE_TIER_DISK);
    assert_string_equal(without.tier[disk].name, "disk");
    for (int out = 0; out < 2; out++) /* queue 0 computes, channel c has queue c + 1 */
        assert_true(without.channel[tide_machine_queue(&without, disk, out) - 1].bytes_per_s ==
                    m.channel[tide_machine_queue(&m, was, out) - 1].bytes_per_s);
    tide_machine_without(&without, TIDE_TIER_RAM, &without);
    assert_int_equal(without.n_tiers, m.n_tiers - 1);
}

/* Whichever comes first: what goes to other ranks and what goes to their memory split the network between them. */
static void lent_memory_shares_the_network(void **state) {
    (void)state;
    for (int peers_first = 0; peers_first < 2; peers_first++) {
        tide_machine m;
        assert_ok(tide_machine_load("cpu", &m));
        if (peers_first) assert_ok(tide_machine_add_peers(&m, 1000, 7));
        assert_ok(tide_machine_add_lent(&m, 4096, 300, 200, 5));
        assert_ok(tide_machine_add_peers(&m, 1000, 7));
        uint32_t lent = tide_machine_find_tier(&m, TIDE_TIER_LENT), peers = tide_machine_find_tier(&m, TIDE_TIER_PEER);
        uint32_t shares[2];
        assert_int_equal(m.tier[lent].capacity_bytes, 4096);
        for (int out = 0; out < 2; out++) {
            const tide_machine_channel *c = &m.channel[tide_machine_queue(&m, lent, out) - 1];
            assert_int_equal(c->bytes_per_s, out ? 300 : 200);
            assert_int_equal(c->latency_ns, 5);
            shares[out] = c->share;
            assert_int_equal(m.channel[tide_machine_queue(&m, peers, out) - 1].share, shares[out]);
        }
        assert_true(shares[0] && shares[1] && shares[0] != shares[1]);
    }
}

static void clusters_of_nothing_are_refused(void **state) {
    (void)state;
    tide_cluster c, other;
    tide_machine m;
    tide_program_builder *b;
    tide_program *p;
    assert_ok(tide_program_builder_create("empty", false, &b));
    assert_ok(tide_program_builder_finish(b, &p));
    assert_ok(tide_cluster_load("8xa100-nvlink", &c));
    assert_ok(tide_cluster_machine(&c, p, 0, &m));
    other = c, other.ranks_per_host = 0;
    assert_status(tide_cluster_machine(&other, p, 0, &m), TIDE_E_ARGUMENT);
    other = c, other.inside.bytes_per_s = 0;
    assert_status(tide_cluster_machine(&other, p, 0, &m), TIDE_E_ARGUMENT);
    other = c, other.between.bytes_per_s = 0;
    assert_status(tide_cluster_machine(&other, p, 0, &m), TIDE_E_ARGUMENT);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_is_valid),
        cmocka_unit_test(transfer_times_round_up_and_saturate),
        cmocka_unit_test(copies_inside_memory_read_and_write_in_pieces),
        cmocka_unit_test(rules_are_checked),
        cmocka_unit_test(shipped_profiles_load),
        cmocka_unit_test(lookup_goes_through_the_environment),
        cmocka_unit_test(capacity_and_doubles_survive_a_file),
        cmocka_unit_test(fingerprint_ignores_names_only),
        cmocka_unit_test(broken_profiles_are_refused),
        cmocka_unit_test(tiers_can_be_left_out),
        cmocka_unit_test(lent_memory_shares_the_network),
        cmocka_unit_test(clusters_of_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
