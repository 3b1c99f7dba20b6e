/* No state is ever on the heap as a whole: while weights get their first values, a training steps, is evaluated, saved, loaded and
 * hashed in an arena that has no room to spare, no allocation is as large as its largest weight. The allocator's calls are
 * wrapped by the linker. */
#include "support/test.h"

#include <stdatomic.h>
#include <unistd.h>

#include "support/training.h"

#define WEIGHT_BYTES (UINT64_C(784) * 4096 * 4)

static _Atomic size_t largest;

static void note(size_t size) {
    size_t before = atomic_load(&largest);
    while (size > before && !atomic_compare_exchange_weak(&largest, &before, size)) {
    }
}

void *__real_malloc(size_t size);              /* NOLINT: the linker's names */
void *__real_calloc(size_t n, size_t size);    /* NOLINT */
void *__real_realloc(void *data, size_t size); /* NOLINT */
void *__wrap_malloc(size_t size);              /* NOLINT */
void *__wrap_calloc(size_t n, size_t size);    /* NOLINT */
void *__wrap_realloc(void *data, size_t size); /* NOLINT */

void *__wrap_malloc(size_t size) { /* NOLINT */
    note(size);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) { /* NOLINT */
    note(n * size);
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *data, size_t size) { /* NOLINT */
    note(size);
    return __real_realloc(data, size);
}

static void check(const char *after) {
    printf("%s: at most %.1f MiB at once\n", after, (double)largest / 0x1p20);
    assert_true(largest < WEIGHT_BYTES / 2);
}

static void test_states_are_never_whole(void **state) {
    (void)state;
    char path[] = "/tmp/tidemark-heap-XXXXXX";
    double accuracy;
    training t;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    training_open(&t, "mlp:784,4096,10", 4);
    tide_trainer *trainer = training_start(&t);
    t.options.plan.budgets.arena_bytes = tide_plan_arena_bytes(tide_trainer_plan(trainer));
    tide_trainer_destroy(trainer);
    largest = 0;
    trainer = training_start(&t);
    check("first values");
    training_run(trainer, 1);
    assert_ok(tide_trainer_evaluate(trainer, &t.data, 8, &accuracy));
    check("evaluation");
    uint64_t hash = training_hash(trainer);
    assert_ok(tide_trainer_save(trainer, path));
    check("saving");
    training_run(trainer, 1);
    assert_ok(tide_trainer_load(trainer, path));
    assert_true(training_hash(trainer) == hash);
    check("loading");
    tide_trainer_destroy(trainer);
    training_close(&t);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states_are_never_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
