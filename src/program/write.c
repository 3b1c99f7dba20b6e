/* Writing program files; docs/formats.md describes them, read.c reads them. Defaults are left out, so that lines stay
 * short. Invariant: what is written is read back as an equal program (but bytes of names that are not UTF-8). */
#include "program/program_data.h"

#include <inttypes.h>

#include "base/file.h"
#include "base/json.h"
#include "program/names.h"

static void write_name(FILE *f, const char *name) {
    if (!*name) return;
    fputs(",\"name\":", f);
    tide__json_write_string(f, name);
}

static void write_header(FILE *f, const tide_program *p) {
    fputs("{\"tidemark\":\"program\",\"version\":1", f);
    write_name(f, p->name);
    fprintf(f, ",\"kind\":\"%s\"}\n", p->repeating ? "repeating" : "one-shot");
}

static void write_tensor(FILE *f, const tide_tensor *t, size_t id) {
    fprintf(f, "{\"tensor\":%zu", id);
    write_name(f, t->name);
    fprintf(f, ",\"bytes\":%" PRIu64, t->size_bytes);
    if (t->dtype != TIDE_F32) fprintf(f, ",\"dtype\":\"%s\"", tide__dtype_names.text[t->dtype]);
    if (t->cls != TIDE_CLASS_OTHER) fprintf(f, ",\"class\":\"%s\"", tide__class_names.text[t->cls]);
    if (t->start != TIDE_START_ABSENT) fprintf(f, ",\"start\":\"%s\"", tide__start_names.text[t->start]);
    if (t->keep) fputs(",\"keep\":true", f);
    fputs("}\n", f);
}

static void write_ids(FILE *f, const char *key, const tide_id *ids, uint32_t n) {
    if (n == 0) return;
    fprintf(f, ",\"%s\":[%u", key, ids[0]);
    for (uint32_t i = 1; i < n; i++) fprintf(f, ",%u", ids[i]);
    fputc(']', f);
}

static void write_pairs(FILE *f, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        const tide_inplace *pair = &op->inplace[i];
        fprintf(f, "%s[%u,%u,\"%s\"]", i == 0 ? ",\"inplace\":[" : ",", pair->read, pair->write,
                pair->must ? "must" : "may");
    }
    if (op->n_inplace > 0) fputc(']', f);
}

static void write_variants(FILE *f, const tide_op *op) {
    const tide_variant *v = op->variants;
    if (op->n_variants == 1 && v->workspace_bytes == 0 && v->bits_class == 0) {
        fprintf(f, ",\"cost\":%" PRIu64, v->cost_ns);
        return;
    }
    for (uint32_t i = 0; i < op->n_variants; i++)
        fprintf(f, "%s{\"workspace\":%" PRIu64 ",\"cost\":%" PRIu64 ",\"bits\":%u}", i == 0 ? ",\"variants\":[" : ",",
                v[i].workspace_bytes, v[i].cost_ns, v[i].bits_class);
    fputc(']', f);
}

static void write_alongs(FILE *f, const char *key, const tide_along *along, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        fprintf(f, i == 0 ? ",\"%s\":[\"%s\"" : "%.0s,\"%s\"", key, tide__along_names.text[along[i]]);
    if (n > 0) fputc(']', f);
}

static void write_split(FILE *f, const tide_op *op) {
    const tide_split *s = op->split;
    if (!s) return;
    fprintf(f, ",\"split\":{\"units\":%u", s->units);
    write_alongs(f, "reads", s->reads, op->n_reads);
    write_alongs(f, "writes", s->writes, op->n_writes);
    if (s->bits_class) fprintf(f, ",\"bits\":%u", s->bits_class);
    if (s->cut_workspace) fputs(",\"workspace\":\"cut\"", f);
    if (s->sum_cost_ns) fprintf(f, ",\"sum_cost\":%" PRIu64, s->sum_cost_ns);
    fputc('}', f);
}

static void write_op(FILE *f, const tide_op *op, size_t id) {
    fprintf(f, "{\"op\":%zu", id);
    write_name(f, op->name);
    fprintf(f, ",\"phase\":\"%s\"", tide__phase_names.text[op->phase]);
    write_ids(f, "reads", op->reads, op->n_reads);
    write_ids(f, "writes", op->writes, op->n_writes);
    write_pairs(f, op);
    write_variants(f, op);
    if (!op->rerunnable) fputs(",\"rerun\":false", f);
    if (op->random) fprintf(f, ",\"random\":%" PRIu64, op->counter);
    if (op->message)
        fprintf(f, ",\"%s\":[%u,%" PRIu64 "]", op->message->receives ? "receive" : "send", op->message->peer,
                op->message->number);
    write_split(f, op);
    fputs("}\n", f);
}

void tide__program_write_stream(const tide_program *p, FILE *f) {
    write_header(f, p);
    for (size_t i = 0; i < p->tensors.count; i++) write_tensor(f, &p->tensors.data[i], i);
    for (size_t i = 0; i < p->ops.count; i++) write_op(f, &p->ops.data[i], i);
    for (size_t i = 0; i < p->carries.count; i++)
        fprintf(f, "{\"carry\":[%u,%u]}\n", p->carries.data[i].from, p->carries.data[i].to);
    fprintf(f, "{\"end\":{\"tensors\":%zu,\"ops\":%zu,\"carries\":%zu}}\n", p->tensors.count, p->ops.count,
            p->carries.count);
}

tide_status tide_program_write(const tide_program *p, const char *path) {
    TIDE_NEED(p, path);
    tide__writer writer;
    TIDE_TRY(tide__writer_open(&writer, path));
    tide__program_write_stream(p, writer.stream);
    return tide__writer_commit(&writer);
}
