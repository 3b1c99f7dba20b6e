/* Out of host memory at every single allocation of a session that runs online, moves values, plans, follows its plan and
 * leaves it: it must say so and give everything back. */
#include "support/test.h"

#include <tidemark/session.h>

#include "base/error.h"
#include "support/hand_made.h"
#include "support/short_memory.h"

enum { DEPTH = 5, BYTES = 1024 };

static tide_status do_nothing(void *context, void *const *operands) {
    (void)context, (void)operands;
    return TIDE_OK;
}

static tide_status launch(void *context, const tide_call *call) { return tide_call_launch(call, do_nothing, context); }

static tide_status submit(tide_session *s, tide_id read, tide_id other, tide_id *write, bool in_place) {
    const tide_inplace first = {.must = true};
    tide_id reads[] = {read, other};
    tide_op op = {.rerunnable = !in_place, .n_reads = 2, .reads = reads, .n_writes = 1, .writes = write};
    op.n_inplace = in_place;
    op.inplace = &first;
    TIDE_TRY(tide_session_tensor(s, &(tide_tensor){.size_bytes = BYTES}, write));
    return tide_session_op(s, &op, launch, NULL);
}

/* Forward over `depth` values and back; a new weight at the end. */
static tide_status step(tide_session *s, uint32_t depth) {
    static const char zeros[BYTES];
    tide_id value[DEPTH + 2], weight;
    TIDE_TRY(tide_session_begin(s, &(tide_step_args){0}));
    TIDE_TRY(tide_session_input(s, &(tide_tensor){.size_bytes = BYTES}, zeros, &value[0]));
    for (uint32_t i = 0; i < depth; i++) TIDE_TRY(submit(s, value[i], 0, &value[i + 1], false));
    for (uint32_t i = depth; i > 0; i--) {
        tide_id made;
        TIDE_TRY(submit(s, value[i], value[i - 1], &made, false));
        TIDE_TRY(tide_session_release(s, value[i]));
        value[i - 1] = made;
    }
    TIDE_TRY(submit(s, 0, value[0], &weight, true));
    TIDE_TRY(tide_session_release(s, value[0]));
    TIDE_TRY(tide_session_carry(s, weight, 0));
    return tide_session_end(s, NULL);
}

static tide_status use(tide_session *s) {
    static const uint32_t depth[] = {DEPTH, DEPTH, DEPTH, DEPTH - 1};
    char weight[BYTES] = {0};
    tide_id id;
    TIDE_TRY(tide_session_state(s, &(tide_tensor){.name = "w", .size_bytes = BYTES}, &id));
    TIDE_TRY(tide_session_write(s, id, weight, sizeof weight));
    for (int i = 0; i < 4; i++) TIDE_TRY(step(s, depth[i]));
    tide_session_stats stats = tide_session_get_stats(s);
    assert_int_equal(stats.n_planned, 1);
    assert_int_equal(stats.n_deviations, 1);
    return tide_session_set_budget(s, 8 * BYTES);
}

static tide_status open_and_use(const tide_machine *machine, tide_device *device) {
    tide_session_options o;
    tide_session *s;
    tide_session_options_init(&o);
    o.device = device;
    o.machine = machine;
    o.policy = "cache";
    o.journal = true;
    o.budgets.arena_bytes = 6 * BYTES;
    TIDE_TRY(tide_session_create(&o, &s));
    tide_status status = use(s);
    tide_session_destroy(s);
    return status;
}

/* The device is part of it: its virtual clock keeps what was never awaited. */
static tide_status task(void *context) {
    tide_device_options d;
    tide_device *device;
    tide_device_options_init(&d);
    d.machine = context;
    TIDE_TRY(tide_device_open("sim", &d, &device));
    tide_status status = open_and_use(d.machine, device);
    tide_device_close(device);
    return status;
}

static void test_every_allocation(void **state) {
    (void)state;
    tide_machine machine = machine_with_disk();
    exhaust(task, &machine);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
