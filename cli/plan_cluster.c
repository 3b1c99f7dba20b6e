/* See plan_cluster.h. All ranks of a job compute alike and own as many bytes but for the grain of a cut, so one is planned for all: the first.
 * It is assumed to meet its peers in time. */
#include "plan_cluster.h"

#include <string.h>

typedef struct row {
    tide_shard shard;
    const char *policy;
    uint32_t micro; /* samples of one micro-batch */
    bool fits;
    uint64_t arena_bytes, states_bytes, sent_bytes;
    tide_prediction prediction;
} row;

typedef struct inquiry {
    const char *spec;
    const model_args *model;
    const planning_args *planning;
    tide_cluster cluster;
    uint32_t n_ranks;
    uint64_t budget_bytes;
    row rows[32];
    uint32_t n_rows;
} inquiry;

/* ---- one row ---- */

static void count_bytes(const tide_program *p, row *r) {
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        if (tide_program_tensor(p, t)->start == TIDE_START_PRESENT)
            r->states_bytes += tide_program_tensor(p, t)->size_bytes;
    for (tide_id i = 0; i < tide_program_op_count(p); i++) {
        const tide_op *op = tide_program_op(p, i);
        if (op->message && !op->message->receives) r->sent_bytes += tide_program_tensor(p, op->reads[0])->size_bytes;
    }
}

/* Liveness alone where that fits and nothing else was asked for. */
static tide_status make_plan(const inquiry *q, const tide_program *p, const tide_machine *m, row *r) {
    tide_plan_options options;
    tide_plan *plan = NULL;
    planning_args args = *q->planning;
    args.budgets.arena = (size_arg){0};
    tide_status status = fill_plan_options(&args, p, m, &options);
    if (!args.effort) options.effort = TIDE_EFFORT_LOW;
    options.policy = r->policy ? r->policy : "liveness";
    options.budgets.arena_bytes = q->budget_bytes;
    if (status == TIDE_OK) status = tide_plan_create(p, m, &options, NULL, &plan);
    if (status == TIDE_E_FIT && !r->policy) {
        options.policy = "hybrid";
        status = tide_plan_create(p, m, &options, NULL, &plan);
    }
    r->policy = options.policy;
    r->fits = status == TIDE_OK;
    if (r->fits) r->arena_bytes = tide_plan_arena_bytes(plan), r->prediction = *tide_plan_prediction(plan);
    tide_plan_destroy(plan);
    return tide_status_is_misfit(status) ? TIDE_OK : status;
}

/* The step of the first rank; costs by the cluster's machine. */
static tide_status add_row(inquiry *q, row r) {
    tide_step_options o;
    tide_model *model = NULL;
    tide_step *step = NULL;
    tide_machine machine;
    model_args args = *q->model;
    if (q->n_rows == sizeof q->rows / sizeof *q->rows) return TIDE_OK;
    args.batch = r.micro;
    args.micro = args.accumulate = 0;
    tide_status status = load_model(q->spec, &args, &model);
    if (status == TIDE_OK) status = fill_step_options(&args, model, &o);
    if (status == TIDE_OK) status = tide_machine_load(q->cluster.machine, &machine);
    o.machine = &machine;
    o.shard = r.shard;
    o.accumulate = q->n_ranks;
    o.micro_count = q->n_ranks > 1 ? 1 : 0;
    if (status == TIDE_OK) status = tide_step_create(model, &o, &step);
    if (status == TIDE_OK) status = tide_cluster_machine(&q->cluster, tide_step_program(step), 0, &machine);
    if (status == TIDE_OK) count_bytes(tide_step_program(step), &r);
    if (status == TIDE_OK) status = make_plan(q, tide_step_program(step), &machine, &r);
    if (status == TIDE_OK) q->rows[q->n_rows++] = r;
    tide_step_destroy(step);
    tide_model_destroy(model);
    return status;
}

/* ---- the questions ---- */

/* Doubles while it fits; the last that does stays, and the one that does not. */
static tide_status fit_rows(inquiry *q, tide_shard shard, uint32_t micro) {
    const uint32_t first = q->n_rows;
    const char *policy = q->planning->policy ? q->planning->policy : "liveness";
    tide_status status = TIDE_OK;
    for (int i = 0; i < 16 && micro < UINT32_MAX / 2 && status == TIDE_OK; i++, micro *= 2) {
        status = add_row(q, (row){.shard = shard, .policy = policy, .micro = micro});
        if (status != TIDE_OK || !q->rows[q->n_rows - 1].fits) break;
        if (i > 0) q->rows[first] = q->rows[--q->n_rows];
    }
    return status;
}

static tide_status compare_rows(inquiry *q, tide_shard shard, uint32_t micro) {
    static const char *const policies[] = {"liveness", "checkpoint", "superneurons", "hybrid"};
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < sizeof policies / sizeof *policies && status == TIDE_OK; i++)
        status = add_row(q, (row){.shard = shard, .policy = policies[i], .micro = micro});
    return status;
}

static tide_status ask(inquiry *q, cluster_question question, const char *only, uint32_t micro) {
    tide_shard least = TIDE_SHARD_NONE, most = TIDE_SHARD_ALL;
    tide_status status = TIDE_OK;
    if (only && !parse_shard(only, &least))
        return complain(TIDE_E_ARGUMENT, "--shard: \"%s\" is not none, optimizer or all", only);
    if (only) most = least;
    if (q->n_ranks == 1 && least != TIDE_SHARD_NONE)
        return complain(TIDE_E_ARGUMENT, "--shard %s is for several ranks", only);
    if (q->n_ranks == 1) most = TIDE_SHARD_NONE;
    for (tide_shard s = least; s <= most && status == TIDE_OK; s++)
        status = question == CLUSTER_FIT ? fit_rows(q, s, micro)
                 : question == CLUSTER_COMPARE
                     ? compare_rows(q, s, micro)
                     : add_row(q, (row){.shard = s, .policy = q->planning->policy, .micro = micro});
    return status;
}

/* ---- output ---- */

static double samples_per_s(const inquiry *q, const row *r) {
    return r->prediction.step_ns ? (double)r->micro * q->n_ranks * 1e9 / (double)r->prediction.step_ns : 0;
}

/* Of the time in which bytes move, the share in which compute does not wait. */
static double hidden(const row *r) {
    const tide_prediction *p = &r->prediction;
    return p->transfer_ns <= p->exposed_ns || p->transfer_ns == 0 ? 0
                                                                  : 1 - (double)p->exposed_ns / (double)p->transfer_ns;
}

static const row *fastest(const inquiry *q) {
    const row *best = NULL;
    for (const row *r = q->rows; r < q->rows + q->n_rows; r++)
        if (r->fits && (!best || samples_per_s(q, r) > samples_per_s(q, best))) best = r;
    return best;
}

static void print_rows(const inquiry *q) {
    printf("%s on %u ranks of cluster %s (%s), machine %s, %s per rank\n", show_name(q->spec), q->n_ranks,
           show_name(q->cluster.name), show_name(q->cluster.source), show_name(q->cluster.machine),
           show_bytes(q->budget_bytes));
    printf("  %-10s %-12s %6s %13s %13s %10s %8s %13s %12s\n", "shard", "policy", "micro", "arena", "states", "step",
           "hidden", "sent", "samples/s");
    for (const row *r = q->rows; r < q->rows + q->n_rows; r++)
        if (r->fits)
            printf("%c %-10s %-12s %6u %13s %13s %10s %6.0f %% %13s %12.1f\n", r == fastest(q) ? '*' : ' ',
                   shard_name(r->shard), r->policy, r->micro, show_bytes(r->arena_bytes), show_bytes(r->states_bytes),
                   show_ns(r->prediction.step_ns), 100 * hidden(r), show_bytes(r->sent_bytes), samples_per_s(q, r));
        else
            printf("  %-10s %-12s %6u %13s %13s\n", shard_name(r->shard), r->policy, r->micro, "does not fit",
                   show_bytes(r->states_bytes));
    printf(fastest(q) ? "* the fastest that fits\n" : "nothing fits\n");
}

static void print_json(const inquiry *q) {
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "model", q->spec);
    json_text(&j, "cluster", q->cluster.name);
    json_u64(&j, "ranks", q->n_ranks);
    json_u64(&j, "budget_bytes", q->budget_bytes);
    json_open(&j, "plans", '[');
    for (const row *r = q->rows; r < q->rows + q->n_rows; r++) {
        json_open(&j, NULL, '{');
        json_text(&j, "shard", shard_name(r->shard));
        json_text(&j, "policy", r->policy);
        json_u64(&j, "micro", r->micro);
        json_bool(&j, "fits", r->fits);
        json_bool(&j, "fastest", r == fastest(q));
        json_u64(&j, "arena_bytes", r->arena_bytes);
        json_u64(&j, "states_bytes", r->states_bytes);
        json_u64(&j, "sent_bytes", r->sent_bytes);
        json_u64(&j, "step_ns", r->prediction.step_ns);
        json_u64(&j, "compute_ns", r->prediction.compute_ns);
        json_u64(&j, "exposed_ns", r->prediction.exposed_ns);
        json_number(&j, "hidden", hidden(r));
        json_close(&j, '{');
    }
    json_close(&j, '[');
    json_end(&j);
}

/* ---- the command ---- */

tide_status refuse_beside_cluster(const cluster_args *c, const char *option, bool given) {
    if (!c->file || !given) return TIDE_OK;
    return complain(TIDE_E_ARGUMENT, "%s does not go with --cluster", option);
}

tide_status check_cluster_args(const cluster_args *c) {
    if (!c->file && (c->shard || c->ranks)) return complain(TIDE_E_ARGUMENT, "--shard and --ranks need --cluster");
    return TIDE_OK;
}

#define MAX_RANKS (1u << 20)

/* Each rank has one micro-batch: --micro, or its share of --batch. */
static tide_status choose_micro(const inquiry *q, uint32_t *micro) {
    if (q->n_ranks == 0 || q->n_ranks > MAX_RANKS || (q->n_ranks & (q->n_ranks - 1)))
        return complain(TIDE_E_ARGUMENT, "%u ranks: their number has to be a power of two up to %u", q->n_ranks,
                        MAX_RANKS);
    const uint32_t batch = q->model->batch ? q->model->batch : 32 * q->n_ranks;
    *micro = q->model->micro ? q->model->micro : batch / q->n_ranks;
    if (!q->model->micro && batch % q->n_ranks)
        return complain(TIDE_E_ARGUMENT, "a batch of %u cannot be shared among %u ranks; give --micro", batch,
                        q->n_ranks);
    return TIDE_OK;
}

static tide_status set_budget(inquiry *q) {
    tide_machine m;
    const tide_budget *given = &q->planning->budgets.arena.budget;
    tide_status status = tide_machine_load(q->cluster.machine, &m);
    if (status != TIDE_OK) return status;
    q->budget_bytes = m.memory_bytes > m.reserve_bytes ? m.memory_bytes - m.reserve_bytes : UINT64_MAX;
    if (!q->planning->budgets.arena.given) return TIDE_OK;
    if (given->kind != TIDE_BUDGET_BYTES) return complain(TIDE_E_ARGUMENT, "--budget of a cluster's rank is in bytes");
    q->budget_bytes = given->bytes;
    return TIDE_OK;
}

int plan_cluster(cluster_question question, const char *spec, const model_args *model, const planning_args *planning,
                 const cluster_args *c, bool json) {
    inquiry q = {.spec = spec, .model = model, .planning = planning};
    uint32_t micro = 0;
    tide_status status = refuse_beside_cluster(c, "--machine", planning->machine);
    if (status == TIDE_OK) status = tide_cluster_load(c->file, &q.cluster);
    q.n_ranks = c->ranks ? c->ranks : q.cluster.hosts * q.cluster.ranks_per_host;
    if (status == TIDE_OK) status = choose_micro(&q, &micro);
    if (status == TIDE_OK) status = set_budget(&q);
    if (status == TIDE_OK) status = ask(&q, question, c->shard, micro);
    if (status != TIDE_OK) return report_failure(status);
    if (json)
        print_json(&q);
    else
        print_rows(&q);
    return fastest(&q) ? 0 : tide_status_exit_code(TIDE_E_FIT);
}
