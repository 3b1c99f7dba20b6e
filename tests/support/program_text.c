/* The writer behind program_text.h. */
#include "support/program_text.h"

#include "support/test.h"

static void print_list(FILE *f, const tide_program *p, const tide_id *ids, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) fprintf(f, " %s", tide_program_tensor(p, ids[i])->name);
}

static void print_op(FILE *f, const tide_program *p, const tide_op *op) {
    fprintf(f, "%s:", op->name);
    print_list(f, p, op->reads, op->n_reads);
    fprintf(f, " ->");
    print_list(f, p, op->writes, op->n_writes);
    for (uint32_t i = 0; i < op->n_inplace; i++)
        fprintf(f, " (%u%c%u)", op->inplace[i].read, op->inplace[i].must ? '=' : '>', op->inplace[i].write);
    if (!op->rerunnable) fprintf(f, " once");
    if (op->random) fprintf(f, " random %llu", (unsigned long long)op->counter);
    fprintf(f, "\n");
}

char *program_text(const tide_program *p) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    for (tide_id i = 0; i < tide_program_op_count(p); i++) print_op(f, p, tide_program_op(p, i));
    fclose(f);
    return text;
}
