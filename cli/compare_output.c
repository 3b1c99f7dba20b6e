/* A comparison as a table and as the JSON that `tidemark report --compare` reads (docs/formats.md). */
#include <inttypes.h>
#include <string.h>

#include "compare.h"

static double percent(uint64_t part, uint64_t whole) { return whole ? 100 * (double)part / (double)whole : 0; }

/* ---- for people ---- */

/* Of the two columns whose entries come from the command line. */
typedef struct widths {
    int policy, budget;
} widths;

static widths measure(const comparison *c) {
    widths w = {16, 11};
    for (size_t i = 0; i < c->n_rows; i++) {
        int policy = (int)strlen(show_name(c->rows[i].policy)), budget = (int)strlen(show_name(c->rows[i].budget));
        if (policy > w.policy) w.policy = policy;
        if (budget > w.budget) w.budget = budget;
    }
    return w;
}

static void print_head(const comparison *c, widths w) {
    printf("%s on machine %s (%s); unconstrained: arena %s, step %s\n", show_name(tide_program_name(c->program)),
           show_name(c->machine->name), show_name(c->machine->source), show_bytes(c->whole.arena_bytes),
           show_ns(c->whole.step_ns));
    printf("%-*s %*s %12s %6s %12s %7s %11s %12s %9s %9s\n", w.policy, "policy", w.budget, "budget", "arena", "",
           "peak", "time", "recomputed", "moved", "exposed", "planning");
}

static bool knows_tier(const compare_row *r) { return r->tier_full && r->fit.tier_needed_bytes > 0; }

static void print_misfit(const comparison *c, const compare_row *r) {
    printf("does not fit");
    if (knows_tier(r))
        printf(": tier %s has %s and needs %s", show_name(c->machine->tier[r->fit.tier].name),
               show_bytes(r->fit.tier_has_bytes), show_bytes(r->fit.tier_needed_bytes));
    else if (r->tier_full)
        printf(": a tier is full");
    else if (r->fit.needed_bytes && r->fit.is_bound)
        printf(": proved to need %s, for %s", show_bytes(r->fit.needed_bytes), show_op(c->program, r->fit.op));
    else if (r->fit.needed_bytes)
        printf(": needs %s", show_bytes(r->fit.needed_bytes));
}

static void print_figures(const comparison *c, const compare_row *r) {
    const tide_prediction *p = &r->prediction;
    double ratio = c->whole.step_ns ? (double)p->step_ns / (double)c->whole.step_ns : 1;
    printf("%12s %5.1f%% %12s %7.3f %9.1f %% %12s %9s", show_bytes(r->arena_bytes),
           percent(r->arena_bytes, c->whole.arena_bytes), show_bytes(p->peak_bytes), ratio,
           percent(p->recomputed_ns, p->compute_ns - p->recomputed_ns), show_bytes(p->moved_bytes),
           show_ns(p->exposed_ns));
}

void print_comparison(const comparison *c) {
    widths w = measure(c);
    print_head(c, w);
    for (size_t i = 0; i < c->n_rows; i++) {
        const compare_row *r = &c->rows[i];
        bool again = i > 0 && strcmp(r[-1].policy, r->policy) == 0;
        printf("%-*s %*s ", w.policy, again ? "" : show_name(r->policy), w.budget, show_name(r->budget));
        if (r->fits) {
            print_figures(c, r);
            printf(" %9s", show_ns(r->planning_ns));
            putchar('\n');
        } else {
            print_misfit(c, r);
            putchar('\n');
        }
    }
}

/* ---- for programs ---- */

static void figures_json(json_out *j, const compare_row *r) {
    json_u64(j, "arena_bytes", r->arena_bytes);
    json_u64(j, "step_ns", r->prediction.step_ns);
    json_u64(j, "peak_bytes", r->prediction.peak_bytes);
    json_u64(j, "recomputed_ns", r->prediction.recomputed_ns);
    json_u64(j, "moved_bytes", r->prediction.moved_bytes);
    json_u64(j, "relocated_bytes", r->prediction.relocated_bytes);
    json_u64(j, "relocated_ns", r->prediction.relocated_ns);
    json_u64(j, "exposed_ns", r->prediction.exposed_ns);
}

static void row_json(json_out *j, const comparison *c, const compare_row *r) {
    json_open(j, NULL, '{');
    json_text(j, "policy", r->policy);
    json_bool(j, "fits", r->fits);
    json_text(j, "budget", r->budget);
    if (r->budget_bytes && r->budget_bytes < (uint64_t)1 << 62) json_u64(j, "budget_bytes", r->budget_bytes);
    if (r->fits)
        figures_json(j, r);
    else if (r->fit.needed_bytes)
        json_u64(j, r->fit.is_bound ? "bound_bytes" : "needed_bytes", r->fit.needed_bytes);
    if (!r->fits && knows_tier(r)) {
        json_text(j, "tier", c->machine->tier[r->fit.tier].name);
        json_u64(j, "tier_needed_bytes", r->fit.tier_needed_bytes);
        json_u64(j, "tier_has_bytes", r->fit.tier_has_bytes);
    }
    json_u64(j, "planning_ns", r->planning_ns);
    json_close(j, '{');
}

void print_comparison_json(const comparison *c) {
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "tidemark", "compare");
    json_u64(&j, "version", 1);
    json_text(&j, "program", tide_program_name(c->program));
    json_text(&j, "machine", c->machine->name);
    json_open(&j, "unconstrained", '{');
    json_u64(&j, "arena_bytes", c->whole.arena_bytes);
    json_u64(&j, "step_ns", c->whole.step_ns);
    json_close(&j, '{');
    json_open(&j, "points", '[');
    for (size_t i = 0; i < c->n_rows; i++) row_json(&j, c, &c->rows[i]);
    json_close(&j, '[');
    json_end(&j);
}
