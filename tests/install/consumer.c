/* What an outside program does with the installed library: builds a small step, plans, proves and predicts it, and is
 * refused when the budget is too small. Valid as C17 and as C++17; prints the library's version. */
#include <tidemark/tidemark.h>

#include <stdio.h>
#include <string.h>

static tide_tensor tensor(const char *name, uint64_t size_bytes, bool keep) {
    tide_tensor t;
    memset(&t, 0, sizeof t);
    t.name = name;
    t.size_bytes = size_bytes;
    t.cls = TIDE_CLASS_ACTIVATION;
    t.keep = keep;
    return t;
}

static tide_status add_op(tide_program_builder *b, const char *name, const tide_id *read, const tide_id *write) {
    tide_variant variant = {0, 1000, 0};
    tide_op op;
    memset(&op, 0, sizeof op);
    op.name = name;
    op.rerunnable = true;
    op.n_reads = read ? 1 : 0;
    op.reads = read;
    op.n_writes = 1;
    op.writes = write;
    op.n_variants = 1;
    op.variants = &variant;
    return tide_program_builder_op(b, &op, NULL);
}

/* a -> b -> c of 1000 bytes each: two are alive at a time. */
static tide_status build(tide_program **out) {
    tide_program_builder *b = NULL;
    tide_id id[3];
    tide_status status = tide_program_builder_create("chain", false, &b);
    for (int i = 0; i < 3 && status == TIDE_OK; i++) {
        tide_tensor t = tensor("t", 1000, i == 2);
        status = tide_program_builder_tensor(b, &t, &id[i]);
    }
    for (int i = 0; i < 3 && status == TIDE_OK; i++) status = add_op(b, "op", i ? &id[i - 1] : NULL, &id[i]);
    if (status == TIDE_OK) status = tide_program_builder_finish(b, out);
    if (status != TIDE_OK) tide_program_builder_destroy(b);
    return status;
}

static tide_status use(const tide_program *program) {
    tide_machine machine;
    tide_plan_options options;
    tide_fit_report fit;
    tide_plan *plan = NULL;
    tide_verdict verdict;
    tide_machine_init_default(&machine);
    tide_plan_options_init(&options);
    options.budgets.arena_bytes = 1999;
    if (tide_plan_create(program, &machine, &options, &fit, &plan) != TIDE_E_FIT || fit.needed_bytes != 2000)
        return TIDE_E_INTERNAL;
    options.budgets.arena_bytes = 2000;
    tide_status status = tide_plan_create(program, &machine, &options, &fit, &plan);
    if (status == TIDE_OK) status = tide_plan_verify(plan, program, &machine, &options.budgets, &verdict);
    if (status == TIDE_OK && tide_plan_prediction(plan)->step_ns != 3000) status = TIDE_E_INTERNAL;
    tide_plan_destroy(plan);
    return status;
}

int main(void) {
    tide_program *program = NULL;
    tide_status status = build(&program);
    if (status == TIDE_OK) status = use(program);
    tide_program_destroy(program);
    if (status != TIDE_OK) {
        printf("%s: %s\n", tide_status_name(status), tide_last_error());
        return tide_status_exit_code(status);
    }
    printf("%s\n", tide_version());
    return 0;
}
