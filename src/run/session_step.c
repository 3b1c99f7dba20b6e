/* What a step is made of: tensors, ops, releases, carries. An op is checked and recorded when it is submitted and
 * issued when the next one comes, because only then it is known what it was the last to use. */
#include <stdlib.h>
#include <string.h>

#include "run/session_data.h"

static tide_status check_stepping(const tide_session *s) {
    if (s->run->poisoned) return tide__fail(TIDE_E_POISONED, "this session failed half-way through a step");
    if (s->phase != TIDE__STEPPING) return tide__fail(TIDE_E_ARGUMENT, "no step has begun");
    return TIDE_OK;
}

/* ---- what the run calls ---- */

tide_status tide__session_call_op(void *context, const tide_call *call) {
    const tide_session *s = context;
    const tide__session_call *c = &s->calls.data[call->op];
    return c->fn(c->context, call);
}

/* On a copy thread; the inputs of a step do not change any more when the first one is wanted. */
tide_status tide__session_give_input(void *context, tide_id tensor, uint64_t position, void *data,
                                     uint64_t size_bytes) {
    const tide_session *s = context;
    size_t lo = 0, hi = s->inputs.count;
    while (lo + 1 < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (s->inputs.data[middle].tensor <= tensor)
            lo = middle;
        else
            hi = middle;
    }
    if (hi == 0 || s->inputs.data[lo].tensor != tensor)
        return tide__fail(TIDE_E_INTERNAL, "tensor %u is no input", tensor);
    if (size_bytes) memcpy(data, s->inputs.data[lo].data + position, size_bytes);
    return TIDE_OK;
}

/* ---- tensors ---- */

static tide_status leave_plan(tide_session *s) {
    tide_status status = tide__session_deviate(s);
    return status == TIDE_OK ? TIDE_OK : tide__session_fail(s, status);
}

static tide_status record_tensor(tide_session *s, const tide_tensor *tensor) {
    TIDE_TRY(tide__vec_reserve(&s->released, 1));
    TIDE_TRY(tide__vec_reserve(&s->kept, 1));
    return s->entry ? TIDE_OK : tide_program_builder_tensor(s->builder, tensor, NULL);
}

static tide_status add_tensor(tide_session *s, tide_tensor tensor, tide_id *out) {
    if (s->entry && !tide__session_expects_tensor(s, &tensor)) TIDE_TRY(leave_plan(s));
    TIDE_TRY(record_tensor(s, &tensor));
    *out = (tide_id)s->released.count;
    s->released.data[s->released.count++] = TIDE_NONE;
    s->kept.data[s->kept.count++] = tensor.keep;
    return TIDE_OK;
}

tide_status tide_session_tensor(tide_session *s, const tide_tensor *tensor, tide_id *out) {
    TIDE_NEED(s, tensor, out);
    tide_tensor copy = *tensor;
    copy.start = TIDE_START_ABSENT;
    TIDE_TRY(check_stepping(s));
    return add_tensor(s, copy, out);
}

tide_status tide_session_input(tide_session *s, const tide_tensor *tensor, const void *data, tide_id *out) {
    TIDE_NEED(s, tensor, data, out);
    tide__session_input input = {.data = data};
    tide_tensor copy = *tensor;
    copy.start = TIDE_START_CLIENT;
    copy.keep = false;
    TIDE_TRY(check_stepping(s));
    if (s->calls.count) return tide__fail(TIDE_E_ARGUMENT, "inputs are declared before the first op of a step");
    if (!data && tensor->size_bytes) return tide__fail(TIDE_E_ARGUMENT, "an input needs its data");
    TIDE_TRY(tide__vec_reserve(&s->inputs, 1));
    TIDE_TRY(add_tensor(s, copy, &input.tensor));
    s->inputs.data[s->inputs.count++] = input;
    *out = input.tensor;
    return TIDE_OK;
}

/* ---- releases ---- */

static tide_status release(tide_session *s, tide_id tensor) {
    TIDE_TRY(tide__vec_push(&s->dead, tensor));
    s->released.data[tensor] = s->calls.count ? (tide_id)s->calls.count - 1 : 0;
    return TIDE_OK;
}

static bool has_value(const tide_session *s, tide_id tensor) {
    const tide_program *p = s->run->options.program;
    tide_id producer = tide_program_producer(p, tensor);
    if (tide_program_tensor(p, tensor)->start != TIDE_START_ABSENT) return true;
    return producer != TIDE_NONE && producer < s->calls.count;
}

tide_status tide_session_release(tide_session *s, tide_id tensor) {
    TIDE_NEED(s);
    TIDE_TRY(check_stepping(s));
    if (tensor >= s->released.count) return tide__fail(TIDE_E_ARGUMENT, "there is no tensor %u to release", tensor);
    if (s->kept.data[tensor]) return tide__fail(TIDE_E_ARGUMENT, "tensor %u is kept or carried", tensor);
    if (s->released.data[tensor] != TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "tensor %u is released already", tensor);
    if (!has_value(s, tensor)) return tide__fail(TIDE_E_ARGUMENT, "tensor %u has no value to release", tensor);
    return release(s, tensor);
}

static tide_status release_overwritten(tide_session *s, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) TIDE_TRY(release(s, op->reads[op->inplace[i].read]));
    return TIDE_OK;
}

/* ---- ops ---- */

tide_status tide__session_issue_online(tide_session *s) {
    struct tide__run_online *online = s->run->online;
    TIDE_TRY(tide__run_online_grow(online));
    TIDE_TRY(tide__online_grow(online->engine));
    return tide__online_run_op(online->engine, s->pending, s->dead.data, (uint32_t)s->dead.count);
}

tide_status tide__session_flush(tide_session *s) {
    if (s->pending == TIDE_NONE) return TIDE_OK;
    tide_status status = s->entry ? tide__session_issue_planned(s) : tide__session_issue_online(s);
    s->pending = TIDE_NONE;
    s->dead.count = 0;
    return status == TIDE_OK ? TIDE_OK : tide__session_fail(s, status);
}

static tide_status check_op(const tide_session *s, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_reads; i++)
        if (op->reads[i] < s->released.count && s->released.data[op->reads[i]] != TIDE_NONE)
            return tide__fail(TIDE_E_ARGUMENT, "op \"%s\" reads tensor %u, which is released", op->name ? op->name : "",
                              op->reads[i]);
    return TIDE_OK;
}

tide_status tide_session_op(tide_session *s, const tide_op *op, tide_op_fn fn, void *context) {
    TIDE_NEED(s, op);
    static const tide_variant unknown = {.cost_ns = 0};
    tide__session_call call = {.fn = fn, .context = context};
    TIDE_TRY(check_stepping(s));
    if (!fn) return tide__fail(TIDE_E_ARGUMENT, "an op needs a closure");
    if (op->message) return tide__fail(TIDE_E_UNSUPPORTED, "a session has no messages");
    tide_op copy = *op;
    if (copy.n_variants == 0) {
        copy.variants = &unknown;
        copy.n_variants = 1;
    }
    TIDE_TRY(check_op(s, &copy));
    TIDE_TRY(tide__session_flush(s)); /* the op before this one */
    TIDE_TRY(tide__session_decide(s, &copy));
    if (s->entry && !tide__session_expects_op(s, &copy)) TIDE_TRY(leave_plan(s));
    TIDE_TRY(tide__vec_reserve(&s->calls, 1));
    if (!s->entry) TIDE_TRY(tide_program_builder_op(s->builder, &copy, NULL));
    s->calls.data[s->calls.count++] = call;
    s->pending = (tide_id)s->calls.count - 1;
    return release_overwritten(s, &copy);
}

tide_status tide__session_check_kept(const tide_session *s) {
    for (tide_id t = 0; t < s->kept.count; t++)
        if (s->kept.data[t] && !has_value(s, t))
            return tide__fail(TIDE_E_ARGUMENT, "tensor %u is kept, but no op has written it", t);
    return TIDE_OK;
}

/* ---- carries ---- */

tide_status tide__session_add_carry(tide_session *s, tide_carry carry) {
    if (s->entry && !tide__session_expects_carry(s, carry)) TIDE_TRY(leave_plan(s));
    if (s->entry) {
        s->n_carries++;
    } else {
        TIDE_TRY(tide__check_carry(s->builder, carry));
        TIDE_TRY(tide_program_builder_keep(s->builder, carry.from));
        TIDE_TRY(tide_program_builder_carry(s->builder, carry));
    }
    s->kept.data[carry.from] = s->carried.data[carry.to] = true;
    return TIDE_OK;
}

tide_status tide_session_carry(tide_session *s, tide_id from, tide_id to) {
    TIDE_NEED(s);
    TIDE_TRY(check_stepping(s));
    if (to >= s->states.count) return tide__fail(TIDE_E_ARGUMENT, "there is no state %u to carry to", to);
    if (from >= s->released.count) return tide__fail(TIDE_E_ARGUMENT, "there is no tensor %u to carry", from);
    if (s->released.data[from] != TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "tensor %u cannot be carried: it is released", from);
    if (!has_value(s, from)) return tide__fail(TIDE_E_ARGUMENT, "tensor %u has no value to carry", from);
    TIDE_TRY(tide__session_add_carry(s, (tide_carry){from, to}));
    return s->kept.data[to] || s->released.data[to] != TIDE_NONE ? TIDE_OK : release(s, to);
}

/* ---- the recorded step ---- */

tide_status tide__session_keep_unreleased(tide_session *s) {
    const tide_program *p = s->builder->program;
    tide_status status = TIDE_OK;
    tide_id *last;
    TIDE_TRY(tide__find_last_ops(p, &last));
    for (tide_id t = 0; t < s->released.count && status == TIDE_OK; t++) {
        bool prompt = s->released.data[t] != TIDE_NONE && s->released.data[t] == last[t];
        bool overwritten = s->builder->states.data[t].destroyed_by != TIDE_NONE;
        bool client = tide_program_tensor(p, t)->start == TIDE_START_CLIENT;
        if (!prompt && !overwritten && !client && has_value(s, t)) status = tide_program_builder_keep(s->builder, t);
    }
    free(last);
    return status;
}
