/* The gaps of a plan: what was decided for each, and the figures that speak for it. The report's choices say what a plan
 * decided; here they are laid beside the program's gaps, so that values that stay are told of, too. */
#include <stdlib.h>
#include <string.h>

#include "explain.h"

/* ---- costs of the two ways ---- */

/* Where values would go first: RAM if there is such a tier and a budget for it, else disk. */
static uint32_t first_tier(const tide_machine *m, const tide_budgets *budgets) {
    static const tide_tier_kind kinds[] = {TIDE_TIER_RAM, TIDE_TIER_LENT, TIDE_TIER_DISK};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t t = 0; t < m->n_tiers; t++)
            if (m->tier[t].kind == kinds[k] && m->tier[t].capacity_bytes && budgets->tier_bytes[t]) return t;
    return TIDE_NONE;
}

/* There and back. */
static uint64_t transfer_cost(const tide_machine *m, uint32_t tier, uint64_t bytes) {
    if (tier == TIDE_NONE) return UINT64_MAX;
    uint32_t out = tide_machine_queue(m, tier, true), in = tide_machine_queue(m, tier, false);
    if (out == TIDE_NONE || in == TIDE_NONE) return UINT64_MAX;
    return tide_machine_transfer_ns(m, out - 1, bytes) + tide_machine_transfer_ns(m, in - 1, bytes);
}

static uint64_t rerun_cost(const tide_program *p, tide_id tensor) {
    tide_id producer = tide_program_producer(p, tensor);
    if (producer == TIDE_NONE) return UINT64_MAX;
    const tide_op *op = tide_program_op(p, producer);
    return op->rerunnable ? op->variants[0].cost_ns : UINT64_MAX;
}

/* ---- what was decided ---- */

/* An absence that starts after the first use and ends by the second. */
static bool covers(const explained *r, const tide_choice *c, const tide_gap *g) {
    if (c->before == TIDE_NONE || c->after == TIDE_NONE) return false;
    uint32_t from = tide_plan_residency(r->plan, c->before)->end, to = tide_plan_residency(r->plan, c->after)->begin;
    return from > tide_report_first_run(r->report, g->after_op) && to <= tide_report_first_run(r->report, g->before_op);
}

/* What has to run again before action `last`, in the same slot, so that it finds its operands; it counts, too. `needed`
 * marks residencies with the number of the gap. */
static void follow_chain(const explained *r, uint32_t last, uint32_t mark, uint32_t *needed, gap_story *g) {
    g->rerun_ns = 0;
    for (uint32_t i = last + 1; i-- > 0;) {
        tide_action a = tide_plan_action(r->plan, i);
        if (a.kind != TIDE_RUN) continue;
        if (tide_report_first_run(r->report, a.op) == i) break;
        const tide_op *op = tide_program_op(r->program, a.op);
        bool is_needed = i == last;
        for (uint32_t k = 0; k < op->n_writes; k++) is_needed = is_needed || needed[a.uses[op->n_reads + k]] == mark;
        if (!is_needed) continue;
        for (uint32_t k = 0; k < op->n_reads; k++) needed[a.uses[k]] = mark;
        g->rerun_ns += r->timeline->end_ns[i] - r->timeline->start_ns[i];
        g->n_reruns++;
    }
}

static void decide(const explained *r, const tide_choice *c, uint32_t mark, uint32_t *needed, gap_story *g) {
    if (!covers(r, c, &g->gap)) return;
    if (c->kind == TIDE_CHOICE_RECOMPUTE && c->in != TIDE_NONE) follow_chain(r, c->in, mark, needed, g);
    g->fate = c->kind == TIDE_CHOICE_RECOMPUTE ? TIDE_FATE_DROP : TIDE_FATE_SWAP_OUT;
    g->tier = c->tier;
    g->wait_ns += c->wait_ns;
    if (c->kind == TIDE_CHOICE_SWAP && r->machine->tier[c->tier].kind != TIDE_TIER_CLIENT)
        g->transfer_ns = transfer_cost(r->machine, c->tier, tide_program_tensor(r->program, c->tensor)->size_bytes);
}

static gap_story tell(const explained *r, uint32_t tier, const tide_gap *gap) {
    uint64_t from = r->timeline->end_ns[tide_report_first_run(r->report, gap->after_op)];
    uint64_t to = r->timeline->start_ns[tide_report_first_run(r->report, gap->before_op)];
    tide_id peak = r->liveness->peak_op;
    return (gap_story){.gap = *gap,
                       .idle_ns = to > from ? to - from : 0,
                       .transfer_ns =
                           transfer_cost(r->machine, tier, tide_program_tensor(r->program, gap->tensor)->size_bytes),
                       .rerun_ns = rerun_cost(r->program, gap->tensor),
                       .at_peak = gap->after_op < peak && peak < gap->before_op,
                       .fate = TIDE_FATE_KEEP,
                       .tier = TIDE_NONE};
}

/* Whether a choice is over before the gap begins, so that no later gap has to look at it. */
static bool is_past(const explained *r, const tide_choice *c, const tide_gap *g) {
    if (c->tensor != g->tensor) return c->tensor < g->tensor;
    return c->after != TIDE_NONE &&
           tide_plan_residency(r->plan, c->after)->begin <= tide_report_first_run(r->report, g->after_op);
}

static bool may_cover(const explained *r, const tide_choice *c, const tide_gap *g) {
    if (c->tensor != g->tensor) return false;
    return c->before == TIDE_NONE ||
           tide_plan_residency(r->plan, c->before)->end <= tide_report_first_run(r->report, g->before_op);
}

/* Both lists are ordered by tensor, then time. */
tide_status tell_gaps(const explained *r, const tide_budgets *budgets, story_list *out) {
    uint32_t tier = first_tier(r->machine, budgets);
    tide_gap *gaps;
    size_t n, c = 0;
    tide_status status = tide_liveness_gaps(r->program, &gaps, &n);
    if (status != TIDE_OK) return status;
    gap_story *items = calloc(n + 1, sizeof *items);
    uint32_t *needed = calloc(tide_plan_residency_count(r->plan) + (size_t)1, sizeof *needed);
    for (size_t i = 0; items && needed && i < n; i++) {
        items[i] = tell(r, tier, &gaps[i]);
        while (c < r->n_choices && is_past(r, &r->choices[c], &gaps[i])) c++;
        for (size_t k = c; k < r->n_choices && may_cover(r, &r->choices[k], &gaps[i]); k++)
            decide(r, &r->choices[k], (uint32_t)i + 1, needed, &items[i]);
    }
    free(gaps);
    free(needed);
    if (!items || !needed) return free(items), complain(TIDE_E_MEMORY, "out of host memory");
    *out = (story_list){items, n};
    return TIDE_OK;
}

/* ---- texts ---- */

static const char *show_cost(uint64_t ns) { return ns == UINT64_MAX ? "impossible" : show_ns(ns); }

/* Its own op is known; what that needs may have to run again, too. */
static const char *show_rerun(const gap_story *g) {
    static char text[64];
    if (g->rerun_ns == UINT64_MAX) return "impossible";
    snprintf(text, sizeof text, "at least %s", show_ns(g->rerun_ns));
    return text;
}

const char *show_decision(const explained *r, const gap_story *g) {
    static char text[TIDE_MACHINE_NAME_BYTES + 16];
    if (g->fate == TIDE_FATE_KEEP) return "stays";
    if (g->fate == TIDE_FATE_DROP) return "is run again";
    if (g->tier != TIDE_NONE && r->machine->tier[g->tier].kind == TIDE_TIER_CLIENT) return "is loaded again";
    snprintf(text, sizeof text, "moves to %s",
             g->tier == TIDE_NONE ? "a tier" : show_name(r->machine->tier[g->tier].name));
    return text;
}

static const char *reason_to_keep(const gap_story *g) {
    static char text[256];
    if (!g->at_peak) return "not in the way: the peak lies elsewhere";
    if (g->transfer_ns == UINT64_MAX && g->rerun_ns == UINT64_MAX) return "it can neither move nor be run again";
    if (g->transfer_ns > g->idle_ns && g->rerun_ns == UINT64_MAX) return "the gap is too short to move it";
    snprintf(text, sizeof text, "not needed, or others are cheaper: moving %s of %s, a re-run %s",
             show_cost(g->transfer_ns), show_ns(g->idle_ns), show_rerun(g));
    return text;
}

const char *show_reason(const gap_story *g) {
    static char text[256];
    if (g->fate == TIDE_FATE_KEEP) return reason_to_keep(g);
    const char *how = g->transfer_ns > g->idle_ns ? "exceed the gap of" : g->wait_ns ? "in a gap of" : "hide in";
    if (g->fate == TIDE_FATE_DROP)
        snprintf(text, sizeof text, "re-running %u %s costs %s; moving %s would %s the gap", g->n_reruns,
                 g->n_reruns == 1 ? "op" : "ops", show_cost(g->rerun_ns), show_cost(g->transfer_ns),
                 g->transfer_ns > g->idle_ns ? "exceed" : "fit");
    else if (g->wait_ns)
        snprintf(text, sizeof text, "%s of transfers %s %s, compute waits %s; a re-run %s", show_cost(g->transfer_ns),
                 how, show_ns(g->idle_ns), show_ns(g->wait_ns), show_rerun(g));
    else
        snprintf(text, sizeof text, "%s of transfers %s %s; a re-run %s", show_cost(g->transfer_ns), how,
                 show_ns(g->idle_ns), show_rerun(g));
    return text;
}

/* ---- the gaps that matter ---- */

static int by_weight(const void *a, const void *b, void *context) {
    const tide_program *program = *(const tide_program *const *)context;
    const gap_story *x = *(const gap_story *const *)a, *y = *(const gap_story *const *)b;
    if (x->at_peak != y->at_peak) return x->at_peak ? -1 : 1;
    uint64_t p = tide_program_tensor(program, x->gap.tensor)->size_bytes;
    uint64_t q = tide_program_tensor(program, y->gap.tensor)->size_bytes;
    if (p != q) return p > q ? -1 : 1;
    return x < y ? -1 : 1;
}

static void print_gap(const explained *r, const gap_story *g) {
    const tide_tensor *t = tide_program_tensor(r->program, g->gap.tensor);
    printf("  %11s  %-28s %-14s %s\n", show_bytes(t->size_bytes), show_name(t->name), show_decision(r, g),
           show_reason(g));
}

/* Absences that no gap has: a value that the step starts or ends without (weights, optimizer state). */
static void print_ends(const explained *r) {
    uint64_t bytes[TIDE_MACHINE_MAX_TIERS] = {0}, all = 0;
    uint32_t n = 0;
    for (size_t i = 0; i < r->n_choices; i++) {
        const tide_choice *c = &r->choices[i];
        if (c->kind != TIDE_CHOICE_SWAP || (c->before != TIDE_NONE && c->after != TIDE_NONE)) continue;
        uint64_t size = tide_program_tensor(r->program, c->tensor)->size_bytes;
        all += size;
        bytes[c->tier] += size;
        n++;
    }
    if (n == 0) return;
    printf("before their first or after their last use, %u values (%s) are in a tier, too:", n, show_bytes(all));
    for (uint32_t t = 0; t < r->machine->n_tiers; t++)
        if (bytes[t]) printf(" %s %s", show_name(r->machine->tier[t].name), show_bytes(bytes[t]));
    putchar('\n');
}

void print_gaps(const explained *r, const story_list *gaps, uint32_t top) {
    const gap_story **order = malloc((gaps->n + 1) * sizeof(const gap_story *));
    const tide_program *program = r->program;
    size_t kept = 0, moved = 0, rerun = 0;
    if (!order) return;
    for (size_t i = 0; i < gaps->n; i++) {
        order[i] = &gaps->items[i];
        kept += gaps->items[i].fate == TIDE_FATE_KEEP;
        moved += gaps->items[i].fate == TIDE_FATE_SWAP_OUT;
        rerun += gaps->items[i].fate == TIDE_FATE_DROP;
    }
    qsort_r(order, gaps->n, sizeof(const gap_story *), by_weight, &program);
    printf("\n%zu gaps between uses: in %zu the value stays, in %zu it moves, in %zu it is run again\n", gaps->n, kept,
           moved, rerun);
    print_ends(r);
    for (size_t i = 0; i < gaps->n && i < top; i++) print_gap(r, order[i]);
    if (gaps->n > top) printf("  ... and %zu more (--top N, --tensor NAME)\n", gaps->n - top);
    free(order);
}

static void cost_json(json_out *j, const char *key, uint64_t ns) {
    if (ns != UINT64_MAX) json_u64(j, key, ns);
}

/* TIDE_NONE: of every tensor. */
void gaps_json(json_out *j, const explained *r, const story_list *gaps, tide_id tensor) {
    json_open(j, "gaps", '[');
    for (size_t i = 0; i < gaps->n; i++) {
        const gap_story *g = &gaps->items[i];
        if (tensor != TIDE_NONE && g->gap.tensor != tensor) continue;
        json_open(j, NULL, '{');
        json_u64(j, "tensor", g->gap.tensor);
        json_text(j, "name", tide_program_tensor(r->program, g->gap.tensor)->name);
        json_u64(j, "bytes", tide_program_tensor(r->program, g->gap.tensor)->size_bytes);
        json_u64(j, "after_op", g->gap.after_op);
        json_u64(j, "before_op", g->gap.before_op);
        json_bool(j, "at_peak", g->at_peak);
        json_text(j, "decision", g->fate == TIDE_FATE_KEEP ? "keep" : g->fate == TIDE_FATE_DROP ? "rerun" : "swap");
        if (g->tier != TIDE_NONE) json_text(j, "tier", r->machine->tier[g->tier].name);
        json_u64(j, "idle_ns", g->idle_ns);
        cost_json(j, "transfer_ns", g->transfer_ns);
        cost_json(j, "rerun_ns", g->rerun_ns);
        if (g->n_reruns) json_u64(j, "reruns", g->n_reruns);
        json_u64(j, "wait_ns", g->wait_ns);
        json_text(j, "reason", show_reason(g));
        json_close(j, '{');
    }
    json_close(j, '[');
}

/* ---- one tensor ---- */

static bool reads(const tide_op *op, tide_id tensor) {
    for (uint32_t k = 0; k < op->n_reads; k++)
        if (op->reads[k] == tensor) return true;
    return false;
}

static void print_uses(const explained *r, tide_id tensor) {
    tide_id producer = tide_program_producer(r->program, tensor);
    if (producer != TIDE_NONE) printf("  made by     %s\n", show_op(r->program, producer));
    for (tide_id i = 0; i < tide_program_op_count(r->program); i++)
        if (reads(tide_program_op(r->program, i), tensor)) printf("  read by     %s\n", show_op(r->program, i));
}

void print_tensor(const explained *r, const story_list *gaps, tide_id tensor) {
    const tide_tensor *t = tide_program_tensor(r->program, tensor);
    printf("\ntensor %u %s: %s, %s%s%s\n", tensor, show_name(t->name), show_bytes(t->size_bytes),
           tide_class_name(t->cls), t->start == TIDE_START_ABSENT ? "" : ", there from the start",
           t->keep ? ", kept to the end" : "");
    print_uses(r, tensor);
    for (size_t i = 0; i < gaps->n; i++) {
        const gap_story *g = &gaps->items[i];
        if (g->gap.tensor != tensor) continue;
        printf("  gap         ops %u to %u, %s%s: %s", g->gap.after_op, g->gap.before_op, show_ns(g->idle_ns),
               g->at_peak ? ", over the peak" : "", show_decision(r, g));
        printf("; %s", show_reason(g));
        putchar('\n');
    }
}

static void uses_json(json_out *j, const explained *r, tide_id tensor) {
    tide_id producer = tide_program_producer(r->program, tensor);
    if (producer != TIDE_NONE) json_u64(j, "made_by", producer);
    json_open(j, "read_by", '[');
    for (tide_id i = 0; i < tide_program_op_count(r->program); i++)
        if (reads(tide_program_op(r->program, i), tensor)) json_u64(j, NULL, i);
    json_close(j, '[');
}

void tensor_json(json_out *j, const explained *r, const story_list *gaps, tide_id tensor) {
    const tide_tensor *t = tide_program_tensor(r->program, tensor);
    json_open(j, NULL, '{');
    json_u64(j, "tensor", tensor);
    json_text(j, "name", t->name);
    json_u64(j, "bytes", t->size_bytes);
    json_text(j, "class", tide_class_name(t->cls));
    uses_json(j, r, tensor);
    gaps_json(j, r, gaps, tensor);
    json_close(j, '{');
}
