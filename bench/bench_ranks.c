/* What the simulator says of ranks beside what they did: `bench_ranks RECORD`, of `mpirun ... tidemark train --record RECORD`.
 * Compute costs what it took in the recorded step, so what differs is the network: its rates, measured at the start of the job, and
 * ranks that wait for each other, of which the simulation of one rank knows nothing. */
#include <stdio.h>
#include <stdlib.h>

#include <tidemark/file.h>

#include "report/run_file.h"

static int failed(const char *what) {
    fprintf(stderr, "bench_ranks: %s: %s\n", what, tide_last_error());
    return 1;
}

typedef struct step {
    double step_ns, compute_ns, messages_ns, exposed_ns; /* messages_ns: of both directions */
} step;

static bool computes(const tide_action *a) { return a->queue == 0; }

/* Of one rank: what happened, and per op the time that it took. */
static step measured(const tide_record *r, uint64_t *costs) {
    step s = {0};
    for (uint32_t i = 0; i < r->start_ns.count; i++) {
        const tide_action a = tide_plan_action(r->plan, i);
        const uint64_t took = r->end_ns.data[i] - r->start_ns.data[i];
        if ((double)r->end_ns.data[i] > s.step_ns) s.step_ns = (double)r->end_ns.data[i];
        if (computes(&a)) s.compute_ns += (double)took;
        if (computes(&a) && a.kind == TIDE_RUN) costs[a.op] = took;
        if (!computes(&a) && a.kind == TIDE_RUN) s.messages_ns += (double)took;
    }
    s.exposed_ns = s.step_ns - s.compute_ns;
    return s;
}

static tide_status simulated(const tide_record *r, const uint64_t *costs, step *out) {
    tide_program *program;
    tide_timeline *t;
    TIDE_TRY(tide_program_with_costs(r->program, costs, &program));
    tide_status status = tide_plan_simulate(r->plan, program, &r->machine, &t);
    if (status == TIDE_OK) {
        *out = (step){.step_ns = (double)t->prediction.step_ns, .exposed_ns = (double)t->prediction.exposed_ns};
        for (uint32_t i = 0; i < t->n_actions; i++) {
            const tide_action a = tide_plan_action(r->plan, i);
            if (!computes(&a) && a.kind == TIDE_RUN) out->messages_ns += (double)(t->end_ns[i] - t->start_ns[i]);
        }
        tide_timeline_destroy(t);
    }
    tide_program_destroy(program);
    return status;
}

/* Both directions move at once, so what could be waited for is half of their sum. */
static double hidden(const step *s) {
    const double one_way_ns = s->messages_ns / 2;
    return one_way_ns > s->exposed_ns ? 100 * (1 - s->exposed_ns / one_way_ns) : 0;
}

static int show(const tide_record *whole) {
    for (uint32_t i = 0; i < tide_record_rank_count(whole); i++) {
        const tide_record *r = tide_record_of_rank(whole, i);
        step said;
        uint64_t *costs = calloc(tide_program_op_count(r->program) + 1, sizeof *costs);
        if (!costs) return failed("memory");
        const step did = measured(r, costs);
        const tide_status status = simulated(r, costs, &said);
        free(costs);
        if (status != TIDE_OK) return failed("simulating");
        printf("rank %u: step %.1f ms, simulated %.1f (%+.0f %%); compute %.1f, messages each way %.1f, simulated "
               "%.1f; hidden %.0f %%, "
               "simulated %.0f %%\n",
               i, did.step_ns / 1e6, said.step_ns / 1e6, 100 * (said.step_ns / did.step_ns - 1), did.compute_ns / 1e6,
               did.messages_ns / 2e6, said.messages_ns / 2e6, hidden(&did), hidden(&said));
    }
    return 0;
}

int main(int argc, char **argv) {
    tide_file *file;
    tide_record *record;
    if (argc != 2) {
        fprintf(stderr, "usage: bench_ranks RECORD\n");
        return 2;
    }
    if (tide_file_open(argv[1], &file) != TIDE_OK) return failed("reading");
    tide_status status = tide_record_read_memory(tide_file_text(file), tide_file_size(file), argv[1], &record);
    tide_file_close(file);
    if (status != TIDE_OK) return failed("reading");
    int code = show(record);
    tide_record_destroy(record);
    return code;
}
