/* See model.h. */
#include "plan/decide/hybrid/model.h"

#include <stdlib.h>

#include "base/arrays.h"
#include "base/size.h"
#include "plan/decide/policies/workspaces.h"

void tide__model_destroy(tide__model *m) {
    if (!m) return;
    tide__arrays_free(&m->arrays);
    free(m);
}

static void count_lists(const tide_program *program, size_t *reads, size_t *writes, size_t *pairs) {
    *reads = *writes = *pairs = 0;
    for (tide_id o = 0; o < tide_program_op_count(program); o++) {
        const tide_op *op = tide_program_op(program, o);
        *reads += op->n_reads;
        *writes += op->n_writes;
        *pairs += op->n_inplace;
    }
}

tide_status tide__model_allocate(tide__model *m, size_t reads, size_t writes, size_t pairs) {
    size_t n = m->n_ops + (size_t)1, t = m->n_tensors + (size_t)1;
    tide__array(&m->arrays, m->read_at, n);
    tide__array(&m->arrays, m->write_at, n);
    tide__array(&m->arrays, m->pair_at, n);
    tide__array(&m->arrays, m->reads, reads + 1);
    tide__array(&m->arrays, m->writes, writes + 1);
    tide__array(&m->arrays, m->pairs, pairs + 1);
    tide__array(&m->arrays, m->variant, n);
    tide__array(&m->arrays, m->cost_ns, n);
    tide__array(&m->arrays, m->workspace_bytes, n);
    tide__array(&m->arrays, m->rerunnable, n);
    tide__array(&m->arrays, m->use_at, t);
    tide__array(&m->arrays, m->uses, reads + 1);
    tide__array(&m->arrays, m->size, t);
    tide__array(&m->arrays, m->producer, t);
    tide__array(&m->arrays, m->destroyer, t);
    tide__array(&m->arrays, m->present, t);
    tide__array(&m->arrays, m->client, t);
    tide__array(&m->arrays, m->keep, t);
    return tide__arrays_check(&m->arrays);
}

/* Ends come first, and become beginnings as the uses before them are listed, the last op first. */
void tide__model_list_uses(tide__model *m) {
    uint32_t n = m->read_at[m->n_ops];
    for (uint32_t i = 0; i < n; i++) m->use_at[m->reads[i]]++;
    for (tide_id t = 1; t < m->n_tensors; t++) m->use_at[t] += m->use_at[t - 1];
    m->use_at[m->n_tensors] = n;
    for (tide_id o = m->n_ops; o-- > 0;)
        for (uint32_t i = m->read_at[o + 1]; i-- > m->read_at[o];) m->uses[--m->use_at[m->reads[i]]] = o;
}

static uint64_t round_up(uint64_t bytes, uint32_t align) { return (bytes + align - 1) & ~((uint64_t)align - 1); }

static void fill_tensors(const tide_program *program, const tide_machine *machine, tide__model *m) {
    for (tide_id t = 0; t < m->n_tensors; t++) {
        const tide_tensor *tensor = tide_program_tensor(program, t);
        m->size[t] = round_up(tensor->size_bytes, machine->align_bytes);
        m->producer[t] = tide_program_producer(program, t);
        m->destroyer[t] = TIDE_NONE;
        m->present[t] = tensor->start == TIDE_START_PRESENT;
        m->client[t] = tensor->start == TIDE_START_CLIENT;
        m->keep[t] = tensor->keep;
    }
}

/* Whether the variant is another one then. */
static bool want(const tide__policy_input *in, tide_id o, uint64_t room_bytes, tide__model *m) {
    const tide_op *op = tide_program_op(in->program, o);
    uint32_t variant = tide__workspaces_pick(op, in->options->bits_any, room_bytes);
    const tide_variant *v = &op->variants[variant];
    uint64_t bytes = round_up(v->workspace_bytes, in->machine->align_bytes);
    bool other = m->cost_ns[o] != v->cost_ns || m->workspace_bytes[o] != bytes;
    m->variant[o] = variant;
    m->cost_ns[o] = v->cost_ns;
    m->workspace_bytes[o] = bytes;
    return other;
}

static uint64_t operand_bytes(const tide__model *m, tide_id o) {
    uint64_t sum = 0;
    for (uint32_t i = m->read_at[o]; i < m->read_at[o + 1]; i++) sum = tide__add_capped(sum, m->size[m->reads[i]]);
    for (uint32_t i = m->write_at[o]; i < m->write_at[o + 1]; i++) sum = tide__add_capped(sum, m->size[m->writes[i]]);
    return sum;
}

bool tide__model_want(const tide__policy_input *in, uint64_t room_bytes, tide__model *m) {
    bool any = false;
    for (tide_id o = 0; o < m->n_ops; o++) {
        uint64_t beside = in->target_bytes - tide__min_u64(operand_bytes(m, o), in->target_bytes);
        bool other = want(in, o, tide__min_u64(room_bytes, beside), m);
        any = any || other;
    }
    return any;
}

static void fill_op(const tide__policy_input *in, tide_id o, tide__model *m) {
    const tide_op *op = tide_program_op(in->program, o);
    uint32_t reads = m->read_at[o], writes = m->write_at[o], pairs = m->pair_at[o];
    (void)want(in, o, 0, m);
    m->rerunnable[o] = op->rerunnable;
    for (uint32_t i = 0; i < op->n_reads; i++) m->reads[reads++] = op->reads[i];
    for (uint32_t i = 0; i < op->n_writes; i++) m->writes[writes++] = op->writes[i];
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        tide_id read = op->reads[op->inplace[i].read], write = op->writes[op->inplace[i].write];
        m->pairs[pairs++] = (tide__pair){.read = read, .write = write};
        if (!op->inplace[i].must) continue;
        m->destroyer[read] = o;
        m->rerunnable[o] = false;
    }
    m->read_at[o + 1] = reads;
    m->write_at[o + 1] = writes;
    m->pair_at[o + 1] = pairs;
}

tide_status tide__model_create(const tide__policy_input *in, tide__model **out) {
    tide__model *m = calloc(1, sizeof *m);
    if (!m) return tide__fail_memory();
    m->n_ops = tide_program_op_count(in->program);
    m->n_tensors = tide_program_tensor_count(in->program);
    size_t reads, writes, pairs;
    count_lists(in->program, &reads, &writes, &pairs);
    tide_status status = tide__model_allocate(m, reads, writes, pairs);
    if (status == TIDE_OK) {
        fill_tensors(in->program, in->machine, m);
        for (tide_id o = 0; o < m->n_ops; o++) fill_op(in, o, m);
        tide__model_list_uses(m);
        *out = m;
    } else {
        tide__model_destroy(m);
    }
    return status;
}
