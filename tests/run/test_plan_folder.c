/* Plans in a folder: what was planned under one set of options is not found under another. */
#include "support/test.h"

#include <dirent.h>
#include <unistd.h>

#include <tidemark/nn.h>
#include <tidemark/run.h>

static char folder[] = "/tmp/tidemark-plans-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir) closedir(dir);
    return rmdir(folder);
}

static void test_options_are_told_apart(void **state) {
    (void)state;
    tide_machine machine;
    tide_model_options m;
    tide_model *model;
    tide_step_options s;
    tide_step *step;
    tide_plan_options o;
    tide_plan *plan;
    tide_machine_init_default(&machine);
    tide_model_options_init(&m);
    assert_ok(tide_model_create("lenet", &m, &model));
    tide_step_options_init(&s);
    assert_ok(tide_step_create(model, &s, &step));
    const tide_program *program = tide_step_program(step);
    tide_plan_options_init(&o);
    assert_ok(tide_plan_create(program, &machine, &o, NULL, &plan));
    assert_ok(tide_plan_remember(folder, program, &machine, &o, plan));
    tide_plan *found = tide_plan_recall(folder, program, &machine, &o);
    assert_non_null(found);
    assert_true(tide_plan_fingerprint(found) == tide_plan_fingerprint(plan));
    tide_plan_destroy(found);
    tide_plan_options other = o;
    other.bits_any = true;
    assert_null(tide_plan_recall(folder, program, &machine, &other));
    other = o;
    other.effort = TIDE_EFFORT_HIGH;
    assert_null(tide_plan_recall(folder, program, &machine, &other));
    other = o;
    other.budgets.arena_bytes = tide_plan_arena_bytes(plan);
    assert_null(tide_plan_recall(folder, program, &machine, &other));
    tide_plan_destroy(plan);
    tide_step_destroy(step);
    tide_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_options_are_told_apart)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
