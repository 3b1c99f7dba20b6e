/* See exact.h: the optimum over moves, re-runs and variants, by depth-first search over decisions. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/evaluate.h"
#include "plan_exact/exact.h"

/* At most 3 reads per op, so as many gaps per run. */
enum { MAX_PAIRS = MAX_JOINT_OPS * MAX_JOINT_OPS, MAX_RUNS = MAX_PAIRS, MAX_GAPS = 3 * MAX_RUNS };
/* Nodes of the search over moves, some 0.3 us each, before it is given up. */
enum { MAX_NODES = 20 * 1000 * 1000 };

/* An op that runs, for the first time or again. */
typedef struct run {
    uint32_t slot, op;
} run;

/* A stretch between two uses of one instance of a value; the numbers of runs. */
typedef struct gap {
    uint32_t value, made, from, to;
    uint32_t before; /* the gap of the same instance before this; TIDE_NONE */
    bool moved, saves;
    uint32_t save_slot, load_slot; /* if it is moved, and saves */
} gap;

typedef struct search {
    const example *x;
    tide__policy_input in;
    tide_plan_options options;
    uint32_t budget; /* units */
    uint64_t save_ns[MAX_JOINT_OPS], load_ns[MAX_JOINT_OPS];
    uint64_t best_ns, nodes, drafts;
    /* The decisions at hand. */
    uint32_t variant[MAX_JOINT_OPS];
    uint64_t cost_ns[MAX_JOINT_OPS], total_ns; /* of that variant; of all runs */
    run pairs[MAX_PAIRS];                      /* what may run again */
    bool chosen[MAX_PAIRS];
    uint32_t n_pairs;
    /* What follows from them. */
    run runs[MAX_RUNS];
    uint32_t n_runs, begin[MAX_JOINT_OPS + 2]; /* per slot: its first run */
    gap gaps[MAX_GAPS];
    uint32_t n_gaps;
    uint32_t
        load[MAX_RUNS]; /* units; of gaps that are not decided yet, and moved ones, only what is there in any case */
} search;

/* ---- judging whole decisions ---- */

static void fill_decisions(const search *s, tide__decisions *d) {
    for (uint32_t i = 0; i < s->x->n_ops; i++) require(tide__vec_push(&d->variants, s->variant[i]));
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        tide__rerun r = {.slot = s->pairs[i].slot, .op = s->pairs[i].op};
        if (s->chosen[i]) require(tide__vec_push(&d->reruns, r));
    }
    for (uint32_t i = 0; i < s->n_gaps; i++) {
        const gap *g = &s->gaps[i];
        tide__swap w = {.tensor = g->value,
                        .save_slot = g->saves ? g->save_slot : TIDE_NONE,
                        .load_slot = g->load_slot,
                        .needed_slot = s->runs[g->to].slot};
        if (g->moved) require(tide__vec_push(&d->swaps, w));
    }
}

static void take(search *s, const tide_plan *plan) {
    bool fits = plan->arena_bytes <= s->options.budgets.arena_bytes;
    if (fits) s->best_ns = tide__min_u64(s->best_ns, plan->prediction.step_ns);
}

static void judge(search *s) {
    tide__decisions d = {0};
    tide_plan *plan;
    fill_decisions(s, &d);
    s->drafts++;
    require(tide__evaluate(
        &s->in, &d,
        &(tide__evaluate_options){.capacity_bytes = s->in.options->budgets.arena_bytes, .place_work = 0, .worth_ns = 0},
        &plan));
    bool care = plan->arena_bytes > s->options.budgets.arena_bytes && plan->prediction.step_ns < s->best_ns;
    take(s, plan);
    tide_plan_destroy(plan);
    if (care) {
        require(tide__evaluate(&s->in, &d,
                               &(tide__evaluate_options){.capacity_bytes = s->in.options->budgets.arena_bytes,
                                                         .place_work = 100000,
                                                         .worth_ns = UINT64_MAX},
                               &plan));
        take(s, plan);
        tide_plan_destroy(plan);
    }
    tide__decisions_free(&d);
}

/* ---- a bound on what the moves at hand come to ---- */

typedef struct queues {
    uint64_t compute, save, load; /* when each queue is free */
    uint64_t end[MAX_RUNS], saved[MAX_GAPS], loaded[MAX_GAPS];
} queues;

static uint32_t first_absent(const gap *g) { return g->from + 1; }

static void issue_saves(const search *s, uint32_t slot, queues *c) {
    for (uint32_t i = 0; i < s->n_gaps; i++) {
        const gap *g = &s->gaps[i];
        if (!g->moved || !g->saves || g->save_slot != slot) continue;
        c->save = tide__max_u64(c->save, c->end[g->made]) + s->save_ns[g->value];
        c->saved[i] = c->save;
    }
}

/* The end of the last run that leaves no room for these units: what is there while it runs has its bytes until then. */
static uint64_t room_for(const search *s, uint32_t slot, uint32_t units, const queues *c) {
    for (uint32_t r = s->begin[slot]; r-- > 0;)
        if (s->load[r] + units > s->budget) return c->end[r];
    return 0;
}

static void issue_loads(const search *s, uint32_t slot, queues *c) {
    for (uint32_t to = s->begin[slot]; to < s->n_runs; to++) /* by their next use */
        for (uint32_t i = 0; i < s->n_gaps; i++) {
            const gap *g = &s->gaps[i];
            if (!g->moved || g->load_slot != slot || g->to != to) continue;
            uint32_t saver = i;
            while (!s->gaps[saver].saves) saver = s->gaps[saver].before;
            uint64_t room = room_for(s, slot, s->x->units[g->value], c);
            c->load = tide__max_u64(tide__max_u64(c->load, c->saved[saver]), room) + s->load_ns[g->value];
            c->loaded[i] = c->load;
        }
}

/* When so many SAVEs are done that what they leave makes room for this run. LOADs for later runs may not have begun. */
static uint64_t room_after_saves(const search *s, uint32_t r, const queues *c) {
    uint64_t pending[MAX_GAPS];
    uint32_t bytes[MAX_GAPS], n = 0, there = s->load[r];
    for (uint32_t i = 0; i < s->n_gaps; i++) {
        const gap *g = &s->gaps[i];
        if (!g->moved) continue;
        bool away = first_absent(g) <= r && r < s->begin[g->load_slot];
        if (!away && s->begin[g->load_slot] <= r && r < g->to) there -= s->x->units[g->value];
        if (away && g->saves && s->begin[g->save_slot] > r) there += s->x->units[g->value];
        if (!away || !g->saves || s->begin[g->save_slot] > r || c->saved[i] <= c->compute) continue;
        uint32_t k = n++;
        for (; k > 0 && pending[k - 1] < c->saved[i]; k--) {
            pending[k] = pending[k - 1];
            bytes[k] = bytes[k - 1];
        }
        pending[k] = c->saved[i];
        bytes[k] = s->x->units[g->value];
    }
    for (uint32_t k = 0; k < n; k++) {
        there += bytes[k];
        if (there > s->budget) return pending[k];
    }
    return 0;
}

static void issue_run(const search *s, uint32_t r, queues *c) {
    for (uint32_t i = 0; i < s->n_gaps; i++)
        if (s->gaps[i].moved && s->gaps[i].to == r) c->compute = tide__max_u64(c->compute, c->loaded[i]);
    c->compute = tide__max_u64(c->compute, room_after_saves(s, r, c)) + s->cost_ns[s->runs[r].op];
    c->end[r] = c->compute;
}

/* No plan with these moves, and more, is faster. */
static uint64_t least_ns(const search *s) {
    queues c;
    c.compute = c.save = c.load = 0;
    for (uint32_t slot = 0; slot <= s->x->n_ops; slot++) {
        issue_saves(s, slot, &c);
        issue_loads(s, slot, &c);
        for (uint32_t r = s->begin[slot]; r < s->begin[slot + 1]; r++) issue_run(s, r, &c);
    }
    return c.compute;
}

/* ---- moves ---- */

static void decide_gap(search *s, uint32_t at);

/* The value is there from run `from` of the gap to its end: more load. */
static bool add_load(search *s, const gap *g, uint32_t from) {
    bool fits = true;
    for (uint32_t r = from; r < g->to; r++) {
        s->load[r] += s->x->units[g->value];
        fits = fits && s->load[r] <= s->budget;
    }
    return fits;
}

static void remove_load(search *s, const gap *g, uint32_t from) {
    for (uint32_t r = from; r < g->to; r++) s->load[r] -= s->x->units[g->value];
}

static bool is_promising(const search *s) { return least_ns(s) < s->best_ns; }

static void decide_load(search *s, uint32_t at, uint32_t first_slot) {
    gap *g = &s->gaps[at];
    for (uint32_t slot = first_slot; slot <= s->runs[g->to].slot; slot++) {
        if (s->begin[slot] <= first_absent(g)) continue; /* it would never be away */
        g->load_slot = slot;
        if (add_load(s, g, s->begin[slot]) && is_promising(s)) decide_gap(s, at + 1);
        remove_load(s, g, s->begin[slot]);
    }
}

/* Has this instance been saved for a gap before? */
static bool is_clean(const search *s, const gap *g) {
    for (uint32_t i = g->before; i != TIDE_NONE; i = s->gaps[i].before)
        if (s->gaps[i].moved) return true;
    return false;
}

static void decide_gap(search *s, uint32_t at) {
    if (s->nodes++ >= MAX_NODES) return;
    if (at == s->n_gaps) {
        judge(s);
        return;
    }
    gap *g = &s->gaps[at];
    if (add_load(s, g, first_absent(g)) && is_promising(s)) decide_gap(s, at + 1);
    remove_load(s, g, first_absent(g));
    g->moved = true;
    g->saves = !is_clean(s, g);
    uint32_t after = s->runs[g->from].slot + 1;
    if (!g->saves) decide_load(s, at, after);
    for (g->save_slot = s->runs[g->made].slot + 1; g->saves && g->save_slot <= after; g->save_slot++)
        decide_load(s, at, after);
    g->moved = g->saves = false;
}

/* ---- what follows from re-runs ---- */

static bool reads(const search *s, uint32_t r, uint32_t value) { return s->x->reads[s->runs[r].op] >> value & 1; }

static void list_runs(search *s) {
    s->n_runs = 0;
    for (uint32_t slot = 0; slot <= s->x->n_ops; slot++) {
        s->begin[slot] = s->n_runs;
        for (uint32_t i = 0; i < s->n_pairs; i++) /* by ascending op in each slot */
            if (s->chosen[i] && s->pairs[i].slot == slot) s->runs[s->n_runs++] = s->pairs[i];
        if (slot < s->x->n_ops) s->runs[s->n_runs++] = (run){slot, slot};
    }
    s->begin[s->x->n_ops + 1] = s->n_runs;
}

/* The instance that run `made` makes: its uses count for the load, what is between them is a gap. false: nobody uses it. */
static bool list_gaps(search *s, uint32_t made) {
    uint32_t value = s->runs[made].op, last = made, before = TIDE_NONE;
    s->load[made] += s->x->units[value] + (s->variant[value] == 0 ? s->x->workspace[value] : 0);
    for (uint32_t r = made + 1; r < s->n_runs && s->runs[r].op != value; r++) {
        if (!reads(s, r, value)) continue;
        s->load[r] += s->x->units[value];
        if (r > last + 1) {
            s->gaps[s->n_gaps] = (gap){.value = value, .made = made, .from = last, .to = r, .before = before};
            before = s->n_gaps++;
        }
        last = r;
    }
    return last > made || value + 1 == s->x->n_ops;
}

static void decide_moves(search *s) {
    bool fits = true, used = true;
    list_runs(s);
    s->n_gaps = 0;
    memset(s->load, 0, sizeof s->load);
    for (uint32_t r = 0; r < s->n_runs && used; r++) used = list_gaps(s, r);
    for (uint32_t r = 0; r < s->n_runs; r++) fits = fits && s->load[r] <= s->budget;
    if (used && fits) decide_gap(s, 0);
}

/* ---- re-runs and variants ---- */

static void decide_reruns(search *s, uint32_t at) {
    if (s->total_ns >= s->best_ns || s->nodes >= MAX_NODES) return;
    if (at == s->n_pairs) {
        decide_moves(s);
        return;
    }
    uint64_t cost = s->cost_ns[s->pairs[at].op];
    decide_reruns(s, at + 1);
    s->chosen[at] = true;
    s->total_ns += cost;
    decide_reruns(s, at + 1);
    s->total_ns -= cost;
    s->chosen[at] = false;
}

static void decide_variants(search *s, uint32_t op) {
    const example *x = s->x;
    if (op == x->n_ops) {
        decide_reruns(s, 0);
        return;
    }
    for (uint32_t v = 0; v < (x->workspace[op] ? 2 : 1); v++) {
        s->variant[op] = v;
        s->cost_ns[op] = (v ? x->slow_cost[op] : x->cost[op]) * (uint64_t)UNIT_NS;
        s->total_ns += s->cost_ns[op];
        decide_variants(s, op + 1);
        s->total_ns -= s->cost_ns[op];
    }
}

/* A re-run right after the op itself, or of the last op, helps nothing. */
static void list_pairs(search *s) {
    for (uint32_t slot = 2; slot < s->x->n_ops; slot++)
        for (uint32_t op = 0; op + 1 < slot; op++)
            if (!s->x->once[op]) s->pairs[s->n_pairs++] = (run){slot, op};
}

joint_answer optimum_by_decisions(const example *x, const tide_program *p, const tide_machine *machine,
                                  uint32_t budget_units, uint64_t known_ns) {
    search *s = calloc(1, sizeof *s);
    if (!s) exit(1);
    s->x = x;
    s->budget = budget_units;
    s->best_ns = known_ns;
    tide_plan_options_init(&s->options);
    s->options.budgets.arena_bytes = budget_units * (uint64_t)UNIT_BYTES;
    s->in = (tide__policy_input){.program = p,
                                 .machine = machine,
                                 .options = &s->options,
                                 .argument = "",
                                 .target_bytes = s->options.budgets.arena_bytes};
    for (uint32_t i = 0; i < x->n_ops; i++) {
        s->save_ns[i] = tide_machine_transfer_ns(machine, 0, x->units[i] * (uint64_t)UNIT_BYTES);
        s->load_ns[i] = tide_machine_transfer_ns(machine, 1, x->units[i] * (uint64_t)UNIT_BYTES);
    }
    list_pairs(s);
    decide_variants(s, 0);
    joint_answer a = {.complete = s->nodes < MAX_NODES, .ns = s->best_ns, .drafts = s->drafts};
    free(s);
    return a;
}
