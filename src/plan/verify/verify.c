/* The verifier: proves that a plan is safe before it runs, whoever made it. It shares no code with what makes plans
 * and believes nothing but the program and the machine. docs/verify.md states the rules and why they suffice.
 *
 * Cost: O(n log n) for n = actions + uses + waits + residencies + copies; a constant number of queues and tiers. */
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "plan/verify/verify_state.h"

const char *tide__rule_name(tide__rule rule) {
    static const char *const names[] = {
#define NAME(id, name, text) name,
        TIDE__RULE_TABLE(NAME)
#undef NAME
    };
    return (unsigned)rule < TIDE__RULE_COUNT ? names[rule] : "";
}

tide_status tide__broken(tide__verifier *v, tide__rule rule, uint32_t action, const char *format, ...) {
    tide_verdict *verdict = v->verdict;
    verdict->action = action;
    snprintf(verdict->rule, sizeof verdict->rule, "%s", tide__rule_name(rule));
    va_list args;
    va_start(args, format);
    vsnprintf(verdict->message, sizeof verdict->message, format, args);
    va_end(args);
    if (action == TIDE_NONE) return tide__fail(TIDE_E_PLAN, "rule %s: %s", verdict->rule, verdict->message);
    return tide__fail(TIDE_E_PLAN, "action %u breaks rule %s: %s", action, verdict->rule, verdict->message);
}

tide__label tide__label_tensor(const tide__verifier *v, tide_id tensor) {
    tide__label label;
    const tide_tensor *t = tide_program_tensor(v->program, tensor);
    if (t)
        snprintf(label.text, sizeof label.text, "tensor %u \"%.32s\"", tensor, t->name);
    else
        snprintf(label.text, sizeof label.text, tensor == TIDE_NONE ? "a workspace" : "tensor %u", tensor);
    return label;
}

tide__label tide__label_op(const tide__verifier *v, tide_id op) {
    tide__label label;
    const tide_op *o = tide_program_op(v->program, op);
    snprintf(label.text, sizeof label.text, "op %u \"%.32s\"", op, o ? o->name : "?");
    return label;
}

tide__label tide__label_holding(const tide__verifier *v, uint32_t holding) {
    tide__label label, tensor = tide__label_tensor(v, v->holding[holding].tensor);
    bool is_copy = holding >= v->n_residencies;
    snprintf(label.text, sizeof label.text, "%s %u of %.64s", is_copy ? "copy" : "residency",
             is_copy ? holding - v->n_residencies : holding, tensor.text);
    return label;
}

static tide_status check_identity(tide__verifier *v) {
    tide_signature want = tide_program_signature(v->program), have = v->plan->signature;
    TIDE__DEMAND(want.word[0] == have.word[0] && want.word[1] == have.word[1], PROGRAM, TIDE_NONE,
                 "the plan is for another program than \"%.64s\"", tide_program_name(v->program));
    TIDE__DEMAND(v->plan->n_queues == v->n_queues && v->plan->n_tiers == v->machine->n_tiers, MACHINE, TIDE_NONE,
                 "the plan has %u queues and %u tiers, machine \"%.32s\" has %u and %u", v->plan->n_queues,
                 v->plan->n_tiers, v->machine->name, v->n_queues, v->machine->n_tiers);
    return TIDE_OK;
}

/* Ids are 32-bit and TIDE_NONE is none of them; residencies and copies share one numbering here. */
static tide_status count_entries(tide__verifier *v) {
    const tide_plan *plan = v->plan;
    size_t limit = TIDE_NONE / 2;
    TIDE__DEMAND(plan->actions.count <= limit && plan->residencies.count <= limit && plan->copies.count <= limit, TABLE,
                 TIDE_NONE, "%zu actions, %zu residencies or %zu copies are too many", plan->actions.count,
                 plan->residencies.count, plan->copies.count);
    v->n_actions = (uint32_t)plan->actions.count;
    v->n_residencies = (uint32_t)plan->residencies.count;
    v->n_holdings = v->n_residencies + (uint32_t)plan->copies.count;
    v->n_tensors = tide_program_tensor_count(v->program);
    v->n_ops = tide_program_op_count(v->program);
    return TIDE_OK;
}

static void fill_holdings(tide__verifier *v) {
    tide__holding *h = v->holding;
    for (uint32_t i = 0; i < v->n_residencies; i++) {
        const tide_residency *r = &v->plan->residencies.data[i];
        *h++ = (tide__holding){.tensor = r->tensor,
                               .offset = r->offset_bytes,
                               .size = r->size_bytes,
                               .begin = r->begin,
                               .end = r->end,
                               .at_start = r->at_start,
                               .at_end = r->at_end,
                               .creator = TIDE_NONE,
                               .partner = TIDE_NONE};
    }
    for (uint32_t i = 0; i < v->n_holdings - v->n_residencies; i++) {
        const tide_copy *c = &v->plan->copies.data[i];
        *h++ = (tide__holding){.tensor = c->tensor,
                               .space = c->tier < TIDE_NONE ? 1 + c->tier : TIDE_NONE,
                               .offset = c->offset_bytes,
                               .size = c->size_bytes,
                               .begin = c->begin,
                               .end = c->end,
                               .at_start = c->at_start,
                               .at_end = c->at_end,
                               .creator = TIDE_NONE,
                               .partner = TIDE_NONE};
    }
}

/* At least one element each: an empty plan is no lack of memory. */
static tide_status allocate(tide__verifier *v) {
    size_t queues = v->n_queues;
    v->holding = calloc((size_t)v->n_holdings + 1, sizeof *v->holding);
    v->first_variant = malloc(((size_t)v->n_ops + 1) * sizeof *v->first_variant);
    v->clock = calloc((size_t)v->n_actions * queues + 1, sizeof *v->clock);
    v->touched = calloc((size_t)v->n_holdings * queues + 1, sizeof *v->touched);
    if (!v->holding || !v->first_variant || !v->clock || !v->touched) return tide__fail_memory();
    memset(v->first_variant, 0xff, (size_t)v->n_ops * sizeof *v->first_variant);
    fill_holdings(v);
    return TIDE_OK;
}

static void release(tide__verifier *v) {
    free(v->holding);
    free(v->first_variant);
    free(v->clock);
    free(v->touched);
    for (size_t i = 0; i < sizeof v->space / sizeof v->space[0]; i++) tide__ranges_free(&v->space[i]);
}

static tide_status prove(tide__verifier *v) {
    TIDE_TRY(check_identity(v));
    TIDE_TRY(count_entries(v));
    TIDE_TRY(allocate(v));
    TIDE_TRY(tide__verify_shape(v));
    TIDE_TRY(tide__verify_start(v));
    TIDE_TRY(tide__verify_walk(v));
    return tide__verify_end(v);
}

tide_status tide_plan_verify(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                             const tide_budgets *budgets, tide_verdict *verdict) {
    TIDE_NEED(plan, program, machine);
    if (!plan || !program || !machine) return tide__fail(TIDE_E_ARGUMENT, "verify needs a plan, a program, a machine");
    TIDE_TRY(tide__machine_check(machine));
    tide_verdict found = {.action = TIDE_NONE};
    tide__verifier v = {.plan = plan,
                        .program = program,
                        .machine = machine,
                        .budgets = budgets,
                        .verdict = &found,
                        .n_queues = 1 + machine->n_channels};
    tide_status status = prove(&v);
    release(&v);
    if (verdict && (status == TIDE_OK || status == TIDE_E_PLAN)) *verdict = found;
    return status;
}
