/* What ops.h documents about each op kind, as data: names and classes of what it writes, which reads a write may or
 * must take over, whether it may run again. One table, so that differentiation only says who reads what. */
#ifndef TIDE_NN_RULES_H
#define TIDE_NN_RULES_H

#include <tidemark/ops.h>
#include <tidemark/program.h>

typedef struct tide__write_rule {
    const char *suffix; /* after the layer's (or, for updates, the parameter's) name */
    tide_class cls;
    tide_dtype dtype;
    bool keep;
} tide__write_rule;

typedef struct tide__op_rule {
    const char *suffix; /* of the op's name */
    tide__write_rule write[3];
    uint32_t n_writes; /* a convolution or fully connected layer without bias has one gradient less */
    uint32_t n_pairs;
    tide_inplace pair[3];
    bool once;       /* a side effect: not re-runnable */
    bool random;     /* draws from the counter-based generator; backward what forward drew */
    bool numbered;   /* any number of writes, all like the first one; "0", "1" ... ends their names */
    bool same_class; /* as what the write takes over */
    bool forgets;    /* of a layer's forward op: no backward op reads the layer's inputs */
    bool flat;       /* works on the stored floats: any layout will do, writes keep that of the read they take over */
} tide__op_rule;

/* NULL for a kind that no step contains. In the backward phase ADD sums gradients, SLICE and STACK move them;
 * in the forward phase ACCUMULATE sums losses. */
const tide__op_rule *tide__op_rule_of(tide_op_kind kind, tide_phase phase);

/* Writes of this op: the rule's number, less signs that nobody wants or the missing gradient of a bias, of positions or of the step
 * before; one per part of a concatenation. */
uint32_t tide__op_n_writes(const tide__op_rule *rule, const tide_op_desc *desc);

#endif
