/* What scripts cannot check about the command: that its JSON is JSON, by the strict reader, and that a plan which was
 * broken and then fingerprinted anew is refused by the verifier and not by the reader. The command is found beside the
 * folder of this program. */
#include "support/test.h"

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidemark/nn.h>
#include <tidemark/plan.h>

#include "base/json.h"
#include "plan/plan_data.h"

static char command_path[PATH_MAX];
static char folder[] = "/tmp/tide-command-XXXXXX";

static int set_up(void **state) {
    ssize_t n = readlink("/proc/self/exe", command_path, sizeof command_path - 32);
    if (n < 0 || !mkdtemp(folder)) return -1;
    command_path[n] = '\0';
    for (int i = 0; i < 2; i++) *strrchr(command_path, '/') = '\0';
    snprintf(command_path + strlen(command_path), 32, "/tidemark");
    return 0;
}

static int tear_down(void **state) { return rmdir(folder); }

/* Runs `tidemark arguments` in a shell; stdout and the exit code. */
static int run(const char *arguments, char **text, size_t *size) {
    char line[2 * PATH_MAX];
    *text = NULL;
    *size = 0;
    snprintf(line, sizeof line, "'%s' %s 2>/dev/null", command_path, arguments);
    FILE *pipe = popen(line, "r"), *memory = open_memstream(text, size);
    assert_non_null(pipe);
    assert_non_null(memory);
    for (int c; (c = getc(pipe)) != EOF;) putc(c, memory);
    fclose(memory);
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Its stdout is one JSON object with this key. */
static void check_json(const char *arguments, int exit_code, const char *key) {
    char *text;
    size_t size;
    tide__json doc = {0};
    assert_int_equal(run(arguments, &text, &size), exit_code);
    if (tide__json_parse(&doc, text, size) != TIDE_OK) fail_msg("%s: %s in\n%s", arguments, tide_last_error(), text);
    assert_int_equal(doc.nodes.data[0].type, TIDE__JSON_OBJECT);
    if (!tide__json_get(&doc, 0, key)) fail_msg("%s: no \"%s\" in\n%s", arguments, key, text);
    tide__json_free(&doc);
    free(text);
}

static void json_is_json(void **state) {
    check_json("model lenet --json", 0, "alive_at_peak");
    check_json("plan lenet --json", 0, "arena_bytes");
    check_json("plan lenet --budget 1 --json", 4, "needed_bytes");
    check_json("devices --json", 0, "devices");
    check_json("train lenet --steps 1 --batch 2 --test-samples 2 --threads 1 --json", 0, "runs");
    char *text; /* a training that diverges has no results */
    size_t size;
    assert_int_equal(run("train lenet --steps 2 --batch 2 --threads 1 --learning-rate 1e38 --json", &text, &size), 12);
    assert_int_equal(size, 0);
    free(text);
    check_json("train lenet --steps 1 --budget 1 --json", 4, "needed_bytes");
}

/* Names that need escapes, and one that is longer than any buffer. */
static void json_survives_names(void **state) {
    char path[64], arguments[128];
    snprintf(path, sizeof path, "%s/names.jsonl", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"tidemark\":\"program\",\"version\":1,\"name\":\"\\\"\\\\\\u0001\",\"kind\":\"one-shot\"}\n", f);
    fputs("{\"tensor\":0,\"name\":\"", f);
    for (int i = 0; i < 300; i++) fputs("\xe6\xb0\xb4", f);
    fputs("\",\"bytes\":64,\"start\":\"present\",\"keep\":true}\n{\"end\":{\"tensors\":1,\"ops\":0,\"carries\":0}}\n",
          f);
    fclose(f);
    snprintf(arguments, sizeof arguments, "model %s --json", path);
    check_json(arguments, 0, "name");
    snprintf(arguments, sizeof arguments, "plan %s --json", path);
    check_json(arguments, 0, "program");
    unlink(path);
}

/* One offset of a good plan is moved; the fingerprint is right again. */
static void write_broken_plan(const char *path) {
    tide_model *model;
    tide_step *step;
    tide_machine machine;
    tide_plan *plan;
    tide_plan_options plan_options;
    tide_step_options step_options;
    tide_step_options_init(&step_options);
    step_options.optimizer = TIDE_MOMENTUM;
    tide_plan_options_init(&plan_options);
    tide_machine_init_default(&machine);
    step_options.machine = &machine;
    assert_ok(tide_model_create("lenet", NULL, &model));
    assert_ok(tide_step_create(model, &step_options, &step));
    assert_ok(tide_plan_create(tide_step_program(step), &machine, &plan_options, NULL, &plan));
    plan->residencies.data[0].offset_bytes = plan->residencies.data[1].offset_bytes;
    assert_ok(tide_plan_write(plan, path));
    tide_plan_destroy(plan);
    tide_step_destroy(step);
    tide_model_destroy(model);
}

static void broken_plans_reach_the_verifier(void **state) {
    char path[64], arguments[128];
    snprintf(path, sizeof path, "%s/broken.plan", folder);
    write_broken_plan(path);
    snprintf(arguments, sizeof arguments, "verify %s lenet --json", path);
    check_json(arguments, 5, "rule");
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_json),
        cmocka_unit_test(json_survives_names),
        cmocka_unit_test(broken_plans_reach_the_verifier),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
