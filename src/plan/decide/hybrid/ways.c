/* See ways.h. */
#include "plan/decide/hybrid/ways.h"

#include "base/size.h"
#include "plan/ask.h"
#include "plan/decide/hybrid/passes.h"
#include "plan/decide/hybrid/search.h"
#include "plan/decide/hybrid/shuttle.h"

static uint64_t percent_of(uint64_t bytes, uint32_t percent) {
    return tide__add_capped(bytes / 100 * percent, bytes % 100 * percent / 100);
}

/* The input with a budget for the arena; *options is what it points to. */
static tide__policy_input input_at(const tide__generation *g, uint64_t bytes, tide_plan_options *options) {
    tide__policy_input in = g->in;
    *options = *g->in.options;
    options->budgets.arena_bytes = in.target_bytes = bytes;
    in.options = options;
    return in;
}

/* ---- workspaces alone ---- */

tide_status tide__ways_keep(tide__generation *g) {
    static const uint32_t percents[] = {100, 105, 110, 120, 135, 150, 200, 300, 500, 1000};
    for (size_t i = 0; i <= sizeof percents / sizeof *percents; i++) {
        bool last = i == sizeof percents / sizeof *percents;
        uint64_t capacity = last ? UINT64_MAX : percent_of(g->whole_bytes, percents[i]);
        tide__decisions d = {0};
        tide__plans_outcome o;
        TIDE_TRY(tide__generation_propose(g, &d, capacity, &o));
        if (!g->has_variants || o.step_ns <= g->least_ns) break;
    }
    return TIDE_OK;
}

/* ---- the papers ---- */

typedef struct paper {
    const char *policy;
    bool moves, reruns;
    bool quick; /* decides in no time on programs of any size */
} paper;

static const paper papers[] = {
    {"checkpoint", false, true, false}, {"dtr", false, true, false},     {"autoswap", true, false, false},
    {"cache", true, false, false},      {"capuchin", true, true, false}, {"delta", true, true, true},
    {"superneurons", true, true, true},
};

/* How often a paper is asked for less where placement misses the budget. */
enum { MAX_ASKED = 8 };

static tide_status ask_paper(tide__generation *g, const tide__policy *policy, uint64_t bytes) {
    tide_plan_options options;
    tide__policy_input in = input_at(g, bytes, &options);
    tide__narrowing n = {.last_bytes = UINT64_MAX};
    in.argument = "";
    for (int i = 0; i < MAX_ASKED; i++) {
        tide__decisions d = {0};
        tide__plans_outcome o = {0};
        tide_status status = policy->decide(&in, &d);
        if (status == TIDE_OK) status = tide__generation_propose(g, &d, bytes, &o);
        tide__decisions_free(&d);
        if (status == TIDE_E_UNSUPPORTED) break;
        TIDE_TRY(status);
        if (o.arena_bytes <= bytes || !tide__narrow(&n, bytes, o.arena_bytes, &in.target_bytes)) break;
    }
    return TIDE_OK;
}

enum { TENTHS = 10 };

/* A step that takes less than this part more than its ops alone is left to the others. */
enum { SLOW_PART = 200 };

static bool is_slow(const tide__generation *g, uint64_t bytes) {
    return tide__plans_time(g->plans, bytes) > tide__add_capped(g->least_ns, g->least_ns / SLOW_PART);
}

static tide_status ask_papers(tide__generation *g, uint64_t floor_bytes, uint64_t ceiling_bytes, bool quick) {
    for (size_t i = 0; i < sizeof papers / sizeof *papers; i++) {
        const tide__policy *policy = tide__policy_find(papers[i].policy);
        if (papers[i].moves != g->moves || papers[i].reruns != g->reruns || (quick && !papers[i].quick)) continue;
        for (uint32_t t = TENTHS; t-- > 0 && !tide__generation_is_over(g);) {
            uint64_t bytes = tide__max_u64(percent_of(g->whole_bytes, 100 / TENTHS * t), g->floor_bytes);
            if (bytes < floor_bytes) break;
            if (bytes < ceiling_bytes && is_slow(g, bytes)) TIDE_TRY(ask_paper(g, policy, bytes));
            if (bytes == g->floor_bytes) break;
        }
    }
    return TIDE_OK;
}

tide_status tide__ways_papers(tide__generation *g, uint64_t floor_bytes, uint64_t ceiling_bytes, bool quick) {
    uint64_t place_work = g->place_work;
    g->place_work = TIDE__ASK_PLACE_WORK; /* more than at a rung: nobody comes by with another plan */
    tide_status status = ask_papers(g, floor_bytes, ceiling_bytes, quick);
    g->place_work = place_work;
    return status;
}

/* ---- the shuttle ---- */

/* A step that takes less than this many times its ops alone is left to the others. */
enum { SLOW_TIMES = 2 };

static tide_status shuttle_at(tide__generation *g, uint64_t bytes) {
    tide_plan_options options;
    tide__policy_input in = input_at(g, bytes, &options);
    tide_plan *plan;
    TIDE_TRY(tide__shuttle(&in, &plan));
    return plan ? tide__plans_offer_whole(g->plans, &plan) : TIDE_OK;
}

tide_status tide__ways_shuttle(tide__generation *g, uint64_t floor_bytes, uint64_t ceiling_bytes) {
    uint64_t align = g->in.machine->align_bytes, bytes;
    if (!tide__align_up(g->floor_bytes, align, &bytes)) return TIDE_OK;
    ceiling_bytes = tide__min_u64(ceiling_bytes, g->whole_bytes);
    for (uint64_t step = bytes / 64 + 1; bytes < ceiling_bytes; bytes += step, step += step / 2) {
        if (bytes < floor_bytes) continue;
        if (tide__plans_time(g->plans, bytes) / SLOW_TIMES <= g->least_ns) break;
        TIDE_TRY(shuttle_at(g, bytes));
    }
    return TIDE_OK;
}

/* ---- passes ---- */

enum { MAX_TRIES = 5 };

/* The step with its passes, for a load of the target, and for less where placement misses it. */
static tide_status search_passes(tide__generation *g, const tide__passes *p, uint64_t target, uint64_t work) {
    tide__sketch *s;
    bool found = true;
    TIDE_TRY(tide__sketch_create(p->model, target, &s));
    tide_status status = TIDE_OK;
    for (int i = 0; i < MAX_TRIES && status == TIDE_OK && found; i++) {
        tide__decisions d = {0};
        tide__plans_outcome o = {0};
        tide__sketch_clear(s);
        status = tide__search_by_walks(s, work, &found);
        if (status == TIDE_OK && found) status = tide__passes_decide(p, s, &d);
        if (status == TIDE_OK && found) status = tide__generation_propose(g, &d, target, &o);
        tide__decisions_free(&d);
        if (o.arena_bytes <= target) break;
        s->target_bytes -= tide__min_u64(s->target_bytes, o.arena_bytes - target);
    }
    tide__sketch_destroy(s);
    return status;
}

/* How much room passes need beside what is kept is tried. */
static tide_status pass_at(tide__generation *g, uint64_t target, uint64_t work) {
    static const uint32_t spare_parts[] = {64, 40, 24, 12};
    for (size_t i = 0; i < sizeof spare_parts / sizeof *spare_parts; i++) {
        tide__passes p;
        if (tide__plans_smallest(g->plans) <= target) break;
        TIDE_TRY(tide__passes_init(g->model, target, target / spare_parts[i], &p));
        tide_status status = p.model ? search_passes(g, &p, target, work) : TIDE_OK;
        tide__passes_deinit(&p);
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

/* Each attempt between what is proved and what works, until they are near. */
enum { MAX_PASSES = 6, NEAR_PART = 64 };

tide_status tide__ways_pass(tide__generation *g, uint64_t work) {
    uint64_t low = g->floor_bytes, high = tide__min_u64(tide__plans_smallest(g->plans), g->whole_bytes);
    for (int i = 0; i < MAX_PASSES && high > low && high - low > high / NEAR_PART; i++) {
        uint64_t middle = low + (high - low) / 2;
        TIDE_TRY(pass_at(g, middle, work));
        if (tide__plans_smallest(g->plans) <= middle)
            high = tide__plans_smallest(g->plans);
        else
            low = middle;
    }
    return TIDE_OK;
}
