/* Swapping on SINGA's recorded steps, against the figures of AutoSwap (Zhang et al. 2019) and our bars.
 *
 *   bench_plan_swap DIR      DIR holds access_vgg.txt and access_resnet.txt; without it only networks of our own are run
 *
 * The streams' own times include some 3.8 ms of logging per op, behind which any transfer would hide. So every op takes
 * the same time: 81.57 ms per iteration of VGG, as measured without the log. For ResNet no such time is known; both the
 * same time per iteration and the same time per op (106.57 ms) are shown, and they differ much. Transfers as the paper measured them: out 0.0756
 * ns/B + 47.2 us, in 0.0823 ns/B + 9.7 us. Each way of swapping has its own bound, which no order of transfers gets below
 * (plan_swap/bound.c). Loads in MiB; "arena" and "waits" are those of a real plan, placed
 * in a capacity that has a bar of its own, verified and simulated; "relocated" is the same plan in 2 % more than its load, by copies inside the arena. The step
 * ends with a barrier: no transfer crosses it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidemark/nn.h>
#include <tidemark/tidemark.h>

#include "common.h"
#include "plan/decide/policies/autoswap_scores.h"
#include "plan/evaluate.h"
#include "plan/decide/swaps/swap_choice.h"
#include "plan/decide/swaps/swap_search.h"
#include "plan/relocate/relocate.h"
#include "plan/schedule/schedule.h"
#include "plan_swap/bound.h"

static double mib(uint64_t bytes) { return (double)bytes / 0x1p20; }

/* The machine of the paper: only its transfers matter here. */
static tide_machine paper_machine(void) {
    tide_machine m;
    tide_machine_init_default(&m);
    for (uint32_t i = 0; i < m.n_channels; i++) {
        m.channel[i].bytes_per_s = m.channel[i].out ? UINT64_C(13227513228) : UINT64_C(12150668287);
        m.channel[i].latency_ns = m.channel[i].out ? 47200 : 9700;
        m.channel[i].share = 0;
    }
    return m;
}

enum { VGG_NS = 81570000 };

/* One way of swapping. */
typedef struct mode {
    const char *name;
    bool plain;       /* a SAVE starts after the last use, and every absence saves */
    bool drop_unread; /* of the import */
    double overhead;  /* for which compute may wait, as a part of the step: where is up to the search */
    uint64_t step_ns; /* of one iteration */
    double bar_mib;   /* for the search */
    double arena_mib; /* for the plan's arena; 0: none, it is as small as can be */
} mode;

enum { PLACE_WORK = 5000000 }; /* to get into that arena: some 5 s */

typedef struct experiment {
    const tide_program *program;
    tide_machine machine;
    tide_plan_options options;
    tide__policy_input in;
    tide__swaps swaps;
    bool *chosen;
    double *scores;
} experiment;

static void begin(experiment *x, const tide_program *program, const tide_machine *machine, bool plain) {
    x->program = program;
    x->machine = *machine;
    tide_plan_options_init(&x->options);
    x->in = (tide__policy_input){.program = program, .machine = &x->machine, .options = &x->options, .argument = ""};
    x->in.target_bytes = UINT64_MAX;
    tide__swaps_options o = {.min_bytes = 1 << 20, .late_saves = plain, .always_save = plain};
    require(tide__swaps_init(&x->swaps, &x->in, &o));
    x->chosen = calloc(x->swaps.gaps.count + 1, sizeof *x->chosen);
    x->scores = calloc(x->swaps.gaps.count + 1, sizeof *x->scores);
    if (!x->chosen || !x->scores) exit(1);
}

static void end(experiment *x) {
    tide__swaps_deinit(&x->swaps);
    free(x->chosen);
    free(x->scores);
}

/* The least load, to 1 MiB, at which a score's choice needs no waiting; the choice is left in x->chosen. */
static uint64_t least_load(experiment *x, tide__swap_score kind) {
    tide__swaps_outcome o = {0}, best = {.peak_bytes = UINT64_MAX};
    uint64_t target = UINT64_MAX;
    require(tide__swap_scores(&x->swaps, kind, x->scores));
    for (;;) {
        require(tide__swaps_choose_prefix(&x->swaps, x->scores, target, x->chosen, &o));
        if (o.excess > 0 || o.peak_bytes < 2 << 20) break;
        best = o;
        target = o.peak_bytes - (1 << 20);
    }
    require(tide__swaps_choose_prefix(&x->swaps, x->scores, best.peak_bytes, x->chosen, &o));
    return best.peak_bytes;
}

/* The same plan in 2 % more than its load, by copies inside the arena. */
static void print_relocated(experiment *x, uint64_t load, tide_plan *plan) {
    tide_budgets budgets;
    bool fits = false;
    tide_budgets_init(&budgets);
    budgets.arena_bytes = load + load / 50;
    double t = cpu_seconds();
    require(tide__relocate_fit(x->program, &x->machine, &budgets, UINT64_MAX, UINT64_MAX, plan, &fits));
    t = cpu_seconds() - t;
    if (!fits) {
        printf("\n%36s no relocations make it fit in %.1f", "", mib(budgets.arena_bytes));
        return;
    }
    require(tide__sync(plan));
    require(tide_plan_verify(plan, x->program, &x->machine, &budgets, NULL));
    require(tide__plan_predict_times(plan, x->program, &x->machine, &plan->prediction));
    const tide_prediction *p = tide_plan_prediction(plan);
    printf("\n%36s relocated in %.1f s: arena %.1f, %.1f MiB copied in %.2f %% of the step, waits %.2f %%", "", t,
           mib(tide_plan_arena_bytes(plan)), mib(p->relocated_bytes),
           100 * (double)p->relocated_ns / (double)p->compute_ns, 100 * (double)p->exposed_ns / (double)p->compute_ns);
}

/* true: the arena is within its bar. */
static bool print_plan(experiment *x, uint64_t load, double arena_mib) {
    tide__decisions d = {0};
    tide_plan *plan;
    require(tide__swaps_decide(&x->swaps, x->chosen, &d));
    uint64_t capacity = arena_mib > 0 ? (uint64_t)(arena_mib * 0x1p20) : UINT64_MAX;
    tide__evaluate_options o = {.capacity_bytes = capacity, .place_work = PLACE_WORK, .worth_ns = UINT64_MAX};
    require(tide__evaluate(&x->in, &d, &o, &plan));
    require(tide_plan_verify(plan, x->program, &x->machine, NULL, NULL));
    const tide_prediction *p = tide_plan_prediction(plan);
    bool is_within = tide_plan_arena_bytes(plan) <= capacity;
    printf("  arena %6.1f, waits %.2f %%", mib(tide_plan_arena_bytes(plan)),
           100 * (double)p->exposed_ns / (double)p->compute_ns);
    if (arena_mib > 0) printf(" (bar %.0f: %s)", arena_mib, is_within ? "reached" : "MISSED");
    print_relocated(x, load, plan);
    tide_plan_destroy(plan);
    tide__decisions_free(&d);
    return is_within;
}

/* What became of a bar. */
static const char *judge(double reached_mib, double bound_mib, double bar_mib) {
    if (reached_mib <= bar_mib) return "reached";
    return bound_mib > bar_mib ? "proved out of reach" : "MISSED";
}

/* From the best start; how many bars are missed that the bound leaves room for. */
static int run_mode(const tide_program *program, const mode *m, uint64_t work) {
    static const char *const names[] = {"DOA", "AOA", "WDOA", "SWDOA"};
    experiment x;
    uint64_t bound, wait_ns, least = UINT64_MAX;
    tide__swap_score best = TIDE__SWAP_DOA;
    tide_machine machine = paper_machine();
    begin(&x, program, &machine, m->plain);
    wait_ns = (uint64_t)(m->overhead * (double)x.swaps.slot_ns[x.swaps.n_ops]);
    require(swap_bound(&x.swaps, wait_ns, &bound));
    printf("%-36s", m->name);
    for (int k = 0; k < TIDE__SWAP_N_SCORES; k++) {
        uint64_t load = least_load(&x, (tide__swap_score)k);
        if (load < least) least = load, best = (tide__swap_score)k;
        printf(" %s %.1f", names[k], mib(load));
    }
    least_load(&x, best);
    tide__swap_search_options o = {.work = work, .wait_ns = wait_ns, .seed = 1};
    tide__swaps_outcome out;
    double t = cpu_seconds();
    require(tide__swap_search(&x.swaps, &o, x.chosen, &out));
    double reached = mib(out.peak_bytes), least_mib = mib(bound);
    printf("\n%36s search %.1f in %.1f s (bar %.0f: %s), bound %.1f, %.1f %% below", "", reached, cpu_seconds() - t,
           m->bar_mib, judge(reached, least_mib, m->bar_mib), least_mib, 100 * (1 - least_mib / reached));
    bool is_within = print_plan(&x, out.peak_bytes, m->arena_mib);
    printf("\n");
    fflush(stdout);
    end(&x);
    return (reached > m->bar_mib && least_mib <= m->bar_mib) + !is_within;
}

/* Networks of our own, at several rates of the channels, on this machine: is the search near the bound there, too? */
static void run_network(const char *spec, uint32_t batch, double rate, uint64_t work) {
    tide_machine machine;
    tide_model_options m;
    tide_step_options s;
    tide_model *model;
    tide_step *step;
    experiment x;
    uint64_t bound;
    require(tide_machine_load("v100-16gb-pcie", &machine));
    for (uint32_t i = 0; i < machine.n_channels; i++)
        machine.channel[i].bytes_per_s = (uint64_t)(rate * (double)machine.channel[i].bytes_per_s);
    tide_model_options_init(&m);
    tide_step_options_init(&s);
    m.batch = batch;
    s.machine = &machine;
    require(tide_model_create(spec, &m, &model));
    require(tide_step_create(model, &s, &step));
    begin(&x, tide_step_program(step), &machine, false);
    require(swap_bound(&x.swaps, 0, &bound));
    uint64_t by_score = least_load(&x, TIDE__SWAP_DOA);
    tide__swap_search_options o = {.work = work, .seed = 1};
    tide__swaps_outcome out;
    require(tide__swap_search(&x.swaps, &o, x.chosen, &out));
    printf("%-12s %5u %5.1f %9.1f %9.1f %9.1f %6.1f %%\n", spec, batch, rate, mib(by_score), mib(out.peak_bytes),
           mib(bound), 100 * (1 - (double)bound / (double)out.peak_bytes));
    fflush(stdout);
    end(&x);
    tide_step_destroy(step);
    tide_model_destroy(model);
}

static void run_networks(uint64_t work) {
    printf("networks on v100-16gb-pcie, early and clean copies, no waits, MiB\n");
    printf("%-12s %5s %5s %9s %9s %9s %8s\n", "network", "batch", "rate", "DOA", "search", "bound", "between");
    run_network("resnet50", 64, 0.3, work);
    run_network("resnet50", 64, 1, work);
    run_network("resnet50", 64, 3, work);
    run_network("vgg16", 32, 1, work);
    run_network("unet", 4, 1, work);
    run_network("gpt2:small", 4, 1, work);
}

static tide_program *import(const char *folder, const char *file, const mode *m) {
    char path[4096];
    tide_import_options o = {.size = sizeof o, .iteration_time_ns = m->step_ns, .drop_unread = m->drop_unread};
    tide_program *program;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    require(tide_program_import(path, &o, &program));
    return program;
}

static int run_file(const char *folder, const char *file, const mode *modes, size_t n, uint64_t work) {
    int missed = 0;
    for (size_t i = 0; i < n; i++) {
        tide_program *program = import(folder, file, &modes[i]);
        tide_liveness *l;
        require(tide_liveness_create(program, &l));
        if (i == 0) printf("%s: peak %.1f MiB\n", file, mib(l->peak_bytes));
        tide_liveness_destroy(l);
        missed += run_mode(program, &modes[i], work);
        tide_program_destroy(program);
    }
    return missed;
}

int main(int argc, char **argv) {
    static const mode vgg[] = {
        {"plain", true, false, 0, VGG_NS, 355, 358},
        {"early and clean copies", false, false, 0, VGG_NS, 346, 347},
        {"and blocks never read dropped", false, true, 0, VGG_NS, 300, 296},
        {"early and clean, 5 % overhead", false, false, 0.05, VGG_NS, 305},
        {"dropped, 5 % overhead", false, true, 0.05, VGG_NS, 250},
    };
    static const mode resnet[] = {
        {"dropped, time per iteration as VGG", false, true, 0, VGG_NS, 49},
        {"dropped, time per op as VGG", false, true, 0, 106570000, 49},
    };
    uint64_t work = argc > 2 ? strtoull(argv[2], NULL, 10) : UINT64_C(1000000000);
    run_networks(work / 10);
    if (argc < 2) {
        printf("no folder of SINGA streams given (make bench-plan SINGA_DIR=DIR): no more to measure\n");
        return 0;
    }
    int missed = run_file(argv[1], "access_vgg.txt", vgg, sizeof vgg / sizeof *vgg, work);
    printf("ResNet: its time without the log is not known; VGG's per iteration and VGG's per op are both assumed\n");
    missed += run_file(argv[1], "access_resnet.txt", resnet, sizeof resnet / sizeof *resnet, work);
    printf("%d bars missed\n", missed);
    return missed > 0;
}
