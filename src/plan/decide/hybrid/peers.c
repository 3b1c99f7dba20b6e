/* Asking the papers' policies (see ways.h). */
#include "base/size.h"
#include "plan/ask.h"
#include "plan/decide/draft.h"
#include "plan/decide/hybrid/effort.h"
#include "plan/decide/hybrid/ways.h"
#include "plan/decide/policies.h"

enum { MAX_POLICY_TRIES = 8 };

/* Another policy's decisions. Where placement missed the budget it is asked again for a smaller load, as the pipeline
 * does, while it could still be the fastest. */
static tide_status try_policy(tide__hybrid *h, tide__policy_fn decide, const char *argument) {
    uint64_t before = UINT64_MAX, step = 0;
    tide__policy_input in = h->judge.in;
    in.argument = argument;
    for (int i = 0; i < MAX_POLICY_TRIES; i++) {
        if (i > 0 && (tide__judge_is_slower(&h->judge) || tide__hybrid_is_spent(h))) break;
        tide__decisions d = {0};
        tide_status status = decide(&in, &d);
        if (status == TIDE_OK) status = tide__judge_draft(&h->judge, &d);
        tide__decisions_free(&d);
        TIDE_TRY(status);
        uint64_t over = tide__judge_over(&h->judge);
        step = tide__max_u64(over, h->judge.last_bytes >= before ? 2 * step : 0);
        if (over == 0 || step >= in.target_bytes / 2) break;
        before = h->judge.last_bytes;
        in.target_bytes -= step;
    }
    return TIDE_OK;
}

/* The slower ones are for programs so small that one wrong choice shows. */
enum { FEW = 300, MEDIUM = 3000, ANY = INT32_MAX };

typedef struct peer {
    tide__policy_fn decide;
    const char *argument;
    bool moves, reruns;
    uint32_t most_ops;
    tide__peer_kind kind;
} peer;

static const peer peers[] = {
    {tide__decide_delta, "", true, true, ANY, TIDE__PEERS_FIRST},
    {tide__decide_superneurons, "", true, true, ANY, TIDE__PEERS_SECOND},
    {tide__decide_superneurons, "norecompute", true, false, ANY, TIDE__PEERS_SLOW},
    {tide__decide_superneurons, "noswap", false, true, ANY, TIDE__PEERS_QUICK},
    {tide__decide_checkpoint, "", false, true, ANY, TIDE__PEERS_QUICK},
    {tide__decide_capuchin, "", true, true, ANY, TIDE__PEERS_SLOW},
    {tide__decide_autoswap, "swdoa", true, false, ANY, TIDE__PEERS_SLOW},
    {tide__decide_autoswap, "search", true, false, FEW, TIDE__PEERS_SLOW},
    {tide__decide_autoswap, "doa", true, false, FEW, TIDE__PEERS_SLOW},
    {tide__decide_autoswap, "aoa", true, false, FEW, TIDE__PEERS_SLOW},
    {tide__decide_autoswap, "wdoa", true, false, FEW, TIDE__PEERS_SLOW},
    {tide__decide_cache, "", true, false, FEW, TIDE__PEERS_SLOW},
    {tide__decide_dtr, "", false, true, MEDIUM, TIDE__PEERS_SLOW},
};

static bool may_help(const tide__hybrid *h, const peer *p) {
    bool small = h->model->n_ops <= TIDE__SMALL_OPS;
    if ((p->moves && !h->moves) || (p->reruns && !h->reruns)) return false;
    return h->model->n_ops <= p->most_ops && !(h->keeps && small && p->most_ops < ANY);
}

tide_status tide__try_policies(tide__hybrid *h, tide__peer_kind from, tide__peer_kind to) {
    for (size_t i = 0; i < sizeof peers / sizeof *peers && !tide__hybrid_is_spent(h); i++)
        if (peers[i].kind >= from && peers[i].kind <= to && may_help(h, &peers[i]))
            TIDE_TRY(try_policy(h, peers[i].decide, peers[i].argument));
    return TIDE_OK;
}

tide_status tide__try_others(tide__hybrid *h) {
    h->judge.care = true;
    tide_status status = tide__try_policies(h, TIDE__PEERS_FIRST, TIDE__PEERS_SLOW);
    h->judge.care = false;
    return status;
}

/* ---- as they are ---- */

/* By this part slower than the best, at the full budget: it will not be the fastest for less, either. */
enum { FAR_PART = 8 };

static tide_status is_far_slower(const tide__policy_input *in, const char *name, const tide_plan *best, bool *out) {
    tide__policy_input asked = *in;
    tide__decisions d = {0};
    tide_plan *draft = NULL;
    asked.argument = "";
    asked.target_bytes = in->options->budgets.arena_bytes;
    tide_status status = tide__policy_find(name)->decide(&asked, &d);
    if (status == TIDE_OK) status = tide__draft(&asked, &d, &draft);
    uint64_t least = best->prediction.step_ns;
    if (status == TIDE_OK) *out = draft->prediction.step_ns > tide__add_capped(least, least / FAR_PART);
    tide_plan_destroy(draft);
    tide__decisions_free(&d);
    return status;
}

static void take_faster(tide_plan **best, tide_plan *plan) {
    bool faster = !*best || plan->prediction.step_ns < (*best)->prediction.step_ns;
    if (faster && *best) plan->arena_bytes = tide__max_u64(plan->arena_bytes, (*best)->arena_bytes);
    tide_plan_destroy(faster ? *best : plan);
    if (faster) *best = plan;
}

tide_status tide__ask_peers(const tide__policy_input *in, tide_plan **best) {
    static const char *const names[] = {"delta", "superneurons", "checkpoint", "capuchin", "dtr", "autoswap", "cache"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tide_plan *plan = NULL;
        bool slower = false;
        if (*best) TIDE_TRY(is_far_slower(in, names[i], *best, &slower));
        if (!slower) TIDE_TRY(tide__ask_by_name(names[i], in, &plan));
        if (plan) take_faster(best, plan);
    }
    return TIDE_OK;
}
