/* Budgets from the command line: bytes, or percentages of the unconstrained arena; and the policies that keep them. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

const char *policies_text(void) {
    static char text[4096];
    const char *name, *summary;
    snprintf(text, sizeof text, "policies:");
    for (uint32_t i = 0; (name = tide_policy_name(i, &summary)) != NULL; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "\n  %-10s %s", name, summary);
    }
    return text;
}

const char *default_policy(const char *given, const budget_args *budgets) {
    return given ? given : budgets->arena.given ? "hybrid" : "liveness";
}

static const char *const shard_names[] = {
#define SHARD_NAME(e, name) [e] = name,
    TIDE_SHARD_TABLE(SHARD_NAME)
#undef SHARD_NAME
};

const char *shard_name(tide_shard shard) { return shard_names[shard]; }

bool parse_shard(const char *text, tide_shard *out) {
    for (size_t i = 0; i < sizeof shard_names / sizeof *shard_names; i++) {
        if (strcmp(shard_names[i], text) != 0) continue;
        *out = (tide_shard)i;
        return true;
    }
    return false;
}

bool parse_effort(const char *text, tide_effort *out) {
    static const char *const names[] = {
#define EFFORT_NAME(e, name) [e] = name,
        TIDE_EFFORT_TABLE(EFFORT_NAME)
#undef EFFORT_NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], text) != 0) continue;
        *out = (tide_effort)i;
        return true;
    }
    complain(TIDE_E_ARGUMENT, "--effort: \"%s\" is neither low, normal nor high", text);
    return false;
}

bool parse_order(const char *text, tide_order *out) {
    bool is_free = !text || strcmp(text, "free") == 0;
    if (!is_free && strcmp(text, "program") != 0) {
        complain(TIDE_E_ARGUMENT, "--order: \"%s\" is neither free nor program", text);
        return false;
    }
    *out = is_free ? TIDE_ORDER_FREE : TIDE_ORDER_PROGRAM;
    return true;
}

bool parse_bits(const char *text, bool *any) {
    bool is_same = !text || strcmp(text, "same") == 0;
    if (!is_same && strcmp(text, "any") != 0) {
        complain(TIDE_E_ARGUMENT, "--bits: \"%s\" is neither same nor any", text);
        return false;
    }
    *any = !is_same;
    return true;
}

tide_status plan_unconstrained(const tide_program *program, const tide_machine *machine, unconstrained *out) {
    tide_plan_options o;
    tide_plan *plan;
    tide_plan_options_init(&o);
    tide_status status = tide_plan_create(program, machine, &o, NULL, &plan);
    if (status != TIDE_OK) return status;
    *out = (unconstrained){tide_plan_arena_bytes(plan), tide_plan_prediction(plan)->step_ns};
    tide_plan_destroy(plan);
    return TIDE_OK;
}

void fill_budgets(const budget_args *args, tide_plan_options *out) {
    if (args->arena.given) out->arena_budget = args->arena.budget;
    if (args->host.given) out->host_budget = args->host.budget;
    if (args->disk.given) out->disk_budget = args->disk.budget;
}

/* ---- the smallest ---- */

/* Plans can take seconds; a terminal sees which budget is being tried. */
static void show_trying(void *self, uint64_t budget_bytes) {
    (void)self;
    if (budget_bytes == UINT64_MAX)
        fprintf(stderr, "\rsmallest budget: without one\x1b[K");
    else
        fprintf(stderr, "\rsmallest budget: trying %s\x1b[K", show_bytes(budget_bytes));
    fflush(stderr);
}

void watch_search(tide_plan_options *options) {
    if (isatty(STDERR_FILENO)) options->trying = show_trying;
}

void unwatch_search(tide_plan_options *options) {
    if (options->trying) fprintf(stderr, "\r\x1b[K");
    options->trying = NULL;
}

tide_status find_smallest(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                          tide_smallest *out) {
    tide_plan_options shown = *options;
    watch_search(&shown);
    tide_status status = tide_plan_smallest(program, machine, &shown, 0, out);
    unwatch_search(&shown);
    return status;
}

/* ---- one plan ---- */

tide_status check_planning(const planning_args *args) {
    tide_effort effort;
    if (args->decisions && (!args->policy || strcmp(args->policy, "manual") != 0))
        return complain(TIDE_E_ARGUMENT, "--decisions is for --policy manual");
    tide_order order;
    if (!parse_order(args->order, &order)) return TIDE_E_ARGUMENT;
    return !args->effort || parse_effort(args->effort, &effort) ? TIDE_OK : TIDE_E_ARGUMENT;
}

tide_status load_machine(const planning_args *args, tide_machine *out) {
    return tide_machine_load(args->machine ? args->machine : "default", out);
}

tide_status fill_plan_options(const planning_args *args, const tide_program *program, const tide_machine *machine,
                              tide_plan_options *out) {
    tide_plan_options_init(out);
    out->policy = default_policy(args->policy, &args->budgets);
    out->decisions = args->decisions;
    if (!parse_effort(args->effort ? args->effort : "normal", &out->effort)) return TIDE_E_ARGUMENT;
    if (!parse_order(args->order, &out->order)) return TIDE_E_ARGUMENT;
    fill_budgets(&args->budgets, out);
    if (args->budgets.arena.budget.kind == TIDE_BUDGET_SMALLEST) watch_search(out);
    tide_status status = tide_plan_settle_budgets(program, machine, out);
    unwatch_search(out);
    return status;
}

/* ---- what does not fit ---- */

static void op_json(json_out *j, const char *key, const tide_program *program, tide_id op) {
    char name[64];
    if (op == TIDE_NONE) return;
    json_u64(j, key, op);
    snprintf(name, sizeof name, "%s_name", key);
    if (program) json_text(j, name, tide_program_op(program, op)->name);
}

static void tier_json(json_out *j, const tide_fit_report *fit, const tide_program *program,
                      const tide_machine *machine) {
    if (machine) json_text(j, "tier", machine->tier[fit->tier].name);
    json_u64(j, "tier_needed_bytes", fit->tier_needed_bytes);
    json_u64(j, "tier_has_bytes", fit->tier_has_bytes);
    if (program && fit->tier_tensor != TIDE_NONE)
        json_text(j, "tier_tensor", tide_program_tensor(program, fit->tier_tensor)->name);
}

/* What a program reads where there is no plan: whether it is the arena or a tier that is too small, and the reason. */
static void misfit_json(tide_status status, const tide_fit_report *fit, const tide_program *program,
                        const tide_machine *machine) {
    json_out j;
    json_begin(&j, stdout);
    json_bool(&j, "fits", false);
    json_bool(&j, "tier_full", status == TIDE_E_TIER_FULL);
    json_text(&j, "reason", tide_last_error());
    if (fit->needed_bytes) {
        json_u64(&j, "needed_bytes", fit->needed_bytes);
        json_bool(&j, "is_bound", fit->is_bound);
    }
    op_json(&j, "peak_op", program, fit->op);
    if (fit->bound_bytes) {
        json_u64(&j, "bound_bytes", fit->bound_bytes);
        op_json(&j, "bound_op", program, fit->bound_op);
    }
    if (status == TIDE_E_TIER_FULL && fit->tier_needed_bytes) tier_json(&j, fit, program, machine);
    json_end(&j);
}

int report_misfit(tide_status status, const tide_fit_report *fit, const tide_program *program,
                  const tide_machine *machine, bool json) {
    if (!tide_status_is_misfit(status)) return report_failure(status);
    if (json) misfit_json(status, fit, program, machine);
    char known[128] = "";
    if (fit->needed_bytes)
        snprintf(known, sizeof known, "; %s %" PRIu64 " (%s)",
                 fit->is_bound ? "no budget works below" : "the smallest found to work is", fit->needed_bytes,
                 show_bytes(fit->needed_bytes));
    return report_failure(complain(status, "does not fit: %s%s", tide_last_error(), known));
}

tide_status drop_ram(const budget_args *budgets, const tide_device *device, tide_machine *machine) {
    tide_device_info info;
    tide_status status = tide_device_get_info(device, &info);
    if (status == TIDE_OK && info.host_visible && budgets->arena.given && !budgets->host.given)
        tide_machine_without(machine, TIDE_TIER_RAM, machine);
    return status;
}
