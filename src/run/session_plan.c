/* Steps of a session that follow a plan. Which plan is decided at the first op, when the inputs are known: the one for the
 * step that usually comes now, or else the newest one that begins alike. From then on each call is compared with that
 * step; at the first that differs nothing more is issued, what is under way is awaited, and the online engine takes over
 * what there is (tide__session_deviate). */
#include "run/session_data.h"

#include <stdlib.h>

#include "base/size.h"

/* ---- deciding ---- */

static bool begins_alike(const tide_session *s, const tide__cached *entry, const tide_op *op) {
    const tide_program *mine = s->builder->program;
    if (!entry->plan || entry->hopeless || tide_program_op_count(entry->program) == 0) return false;
    if (tide_program_tensor_count(mine) > tide_program_tensor_count(entry->program)) return false;
    if (entry->n_inputs != s->inputs.count) return false; /* the plan may want any of them early */
    for (tide_id t = 0; t < tide_program_tensor_count(mine); t++) {
        const tide_tensor *a = tide_program_tensor(mine, t), *b = tide_program_tensor(entry->program, t);
        if (!tide__same_tensor(a, b) || a->keep > b->keep) return false;
    }
    return tide__same_op(op, tide_program_op(entry->program, 0));
}

static tide__cached *choose(const tide_session *s, const tide_op *op) {
    tide__cached *best = s->last ? s->last->next : NULL;
    if (best && begins_alike(s, best, op)) return best;
    best = NULL;
    for (size_t i = 0; i < s->cache.entries.count; i++) {
        tide__cached *e = s->cache.entries.data[i];
        if (begins_alike(s, e, op) && (!best || e->last_use > best->last_use)) best = e;
    }
    return best;
}

static tide_status start_online(tide_session *s) {
    TIDE_TRY(tide__run_online_begin(s->run->online, &s->args));
    return tide__online_begin(s->run->online->engine);
}

/* Tables are kept while the same plan is followed step after step. */
static tide_status prepare(tide_session *s, tide__cached *entry) {
    tide_run *run = s->run;
    run->options.plan = entry->plan;
    if (s->prepared == entry->plan_number) return TIDE_OK;
    s->prepared = 0;
    tide__run_forget_plan(run);
    TIDE_TRY(tide__run_prepare_plan(run));
    s->prepared = entry->plan_number;
    return TIDE_OK;
}

static tide_status start_planned(tide_session *s, tide__cached *entry) {
    s->run->options.program = entry->program;
    TIDE_TRY(prepare(s, entry));
    tide_program_builder_destroy(s->builder);
    s->builder = NULL;
    s->entry = entry;
    s->n_carries = s->cursor = 0;
    return tide__run_begin_step(s->run);
}

/* A plan that cannot be reached from here is not tried again. */
static tide_status decide(tide_session *s, const tide_op *op) {
    for (tide__cached *entry = op ? choose(s, op) : NULL; entry; entry = choose(s, op)) {
        tide_status status = tide__run_enter_plan(s->run->online, entry->plan);
        if (status == TIDE_OK) return start_planned(s, entry);
        if (!tide_status_is_misfit(status)) return status;
        entry->hopeless = true;
    }
    return start_online(s);
}

tide_status tide__session_decide(tide_session *s, const tide_op *op) {
    if (s->decided) return TIDE_OK;
    s->decided = true;
    tide_status status = decide(s, op);
    return status == TIDE_OK ? TIDE_OK : tide__session_fail(s, status);
}

/* ---- comparing ---- */

bool tide__session_expects_tensor(const tide_session *s, const tide_tensor *tensor) {
    const tide_tensor *t = tide_program_tensor(s->entry->program, (tide_id)s->released.count);
    return t && tide__same_tensor(t, tensor) && tensor->keep <= t->keep;
}

bool tide__session_expects_op(const tide_session *s, const tide_op *op) {
    const tide_op *o = tide_program_op(s->entry->program, (tide_id)s->calls.count);
    if (!o || !tide__same_op(o, op)) return false;
    for (uint32_t i = 0; i < o->n_reads + o->n_writes; i++)
        if ((i < o->n_reads ? o->reads[i] : o->writes[i - o->n_reads]) >= s->released.count) return false; /* as yet */
    return true;
}

bool tide__session_expects_carry(const tide_session *s, tide_carry carry) {
    const tide_carry *c = tide_program_carry(s->entry->program, s->n_carries);
    return c && c->from == carry.from && c->to == carry.to;
}

/* The plan gives up what the recorded step released with this op; so must this step. */
static bool expects_releases(const tide_session *s) {
    const tide_op *op = tide_program_op(s->entry->program, s->pending);
    for (uint32_t i = 0; i < op->n_reads + op->n_writes; i++) {
        tide_id t = i < op->n_reads ? op->reads[i] : op->writes[i - op->n_reads];
        if (s->entry->last_op[t] == s->pending && !tide_program_tensor(s->entry->program, t)->keep &&
            tide_program_tensor(s->entry->program, t)->start != TIDE_START_CLIENT && s->released.data[t] == TIDE_NONE)
            return false;
    }
    return true;
}

bool tide__session_is_complete(const tide_session *s) {
    const tide_program *p = s->entry->program;
    return s->released.count == tide_program_tensor_count(p) && s->calls.count == tide_program_op_count(p) &&
           s->n_carries == tide_program_carry_count(p);
}

/* ---- issuing ---- */

/* Up to the first run of op `id`, and on to the next op's. */
static uint32_t find_stop(const tide_session *s, tide_id id) {
    uint32_t i = s->cursor;
    bool found = false;
    for (; i < s->run->n_actions; i++) {
        tide_action a = tide_plan_action(s->entry->plan, i);
        bool first_run = a.kind == TIDE_RUN && !s->run->rerun[i];
        if (first_run && found) break;
        found |= first_run && a.op == id;
    }
    return i;
}

tide_status tide__session_issue_planned(tide_session *s) {
    if (!expects_releases(s)) {
        TIDE_TRY(tide__session_deviate(s));
        return tide__session_issue_online(s);
    }
    uint32_t stop = find_stop(s, s->pending);
    TIDE_TRY(tide__run_issue(s->run, &s->args, s->cursor, stop));
    s->cursor = stop;
    return TIDE_OK;
}

/* ---- the end ---- */

/* Times far from what the plan was made for, step after step: the costs are measured anew, online. */
static void judge(tide_session *s, const tide_step_report *report) {
    if (!tide__run_drift_note(&s->entry->drift, s->entry->plan, report->step_ns)) return;
    s->stats.n_replans++;
    tide__plan_cache_forget_plan(s->entry);
}

tide_status tide__session_end_planned(tide_session *s, tide_step_report *report) {
    tide_step_report own;
    tide_status status = tide__run_issue(s->run, &s->args, s->cursor, s->run->n_actions);
    TIDE_TRY(tide__run_end_step(s->run, status));
    TIDE_TRY(tide__run_report_step(s->run, &own));
    TIDE_TRY(tide__run_leave_plan(s->run->online, s->run->n_actions));
    if (report) *report = own;
    s->stats.n_planned++;
    tide__plan_cache_touch(&s->cache, s->entry);
    judge(s, &own);
    return TIDE_OK;
}

/* ---- deviating ---- */

/* The step so far, as a program under construction. */
static tide_status record_again(tide_session *s, tide_program_builder *b) {
    const tide_program *p = s->entry->program;
    for (tide_id t = 0; t < s->released.count; t++) {
        tide_tensor tensor = *tide_program_tensor(p, t);
        tensor.keep = false; /* said below, when it exists */
        TIDE_TRY(tide_program_builder_tensor(b, &tensor, NULL));
    }
    for (tide_id op = 0; op < s->calls.count; op++) TIDE_TRY(tide_program_builder_op(b, tide_program_op(p, op), NULL));
    for (tide_id t = 0; t < s->released.count; t++)
        if (s->kept.data[t]) TIDE_TRY(tide_program_builder_keep(b, t));
    for (uint32_t i = 0; i < s->n_carries; i++) TIDE_TRY(tide_program_builder_carry(b, *tide_program_carry(p, i)));
    return TIDE_OK;
}

/* What is released with the pending op is still there. */
static tide_status resume(tide_session *s, tide_id n_ran, bool *resident, bool *released, uint32_t *tier) {
    struct tide__run_online *online = s->run->online;
    const tide__online_map map = {.resident = resident, .tier = tier, .released = released};
    TIDE_TRY(tide__run_online_begin(online, &s->args));
    tide__journal_close(online->journal); /* it has not seen the beginning */
    online->journal = NULL;
    for (tide_id t = 0; t < s->released.count; t++) {
        resident[t] = online->places.data[t].in_arena;
        tier[t] = online->places.data[t].tier;
        released[t] = s->released.data[t] != TIDE_NONE;
    }
    for (size_t i = 0; i < s->dead.count; i++) released[s->dead.data[i]] = false;
    return tide__online_resume(online->engine, n_ran, &map);
}

static tide_status take_over(tide_session *s, tide_id n_ran) {
    size_t n = s->released.count + 1;
    bool *resident = calloc(n, sizeof *resident), *released = calloc(n, sizeof *released);
    uint32_t *tier = calloc(n, sizeof *tier);
    tide_status status =
        resident && released && tier ? resume(s, n_ran, resident, released, tier) : tide__fail_memory();
    free(resident);
    free(released);
    free(tier);
    return status;
}

tide_status tide__session_deviate(tide_session *s) {
    tide_id n_ran = s->pending == TIDE_NONE ? (tide_id)s->calls.count : s->pending;
    tide_program_builder *b;
    TIDE_TRY(tide__run_sync(s->run, TIDE_OK));
    TIDE_TRY(tide_program_builder_create("step", true, &b));
    s->builder = b;
    TIDE_TRY(record_again(s, b));
    s->run->options.program = b->program;
    TIDE_TRY(tide__run_leave_plan(s->run->online, s->cursor));
    s->run->options.plan = NULL;
    s->entry = NULL;
    s->stats.n_deviations++;
    return take_over(s, n_ran);
}
