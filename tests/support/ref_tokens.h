/* The part of ref_ops.h that language models need. */
#ifndef TIDE_TESTS_REF_TOKENS_H
#define TIDE_TESTS_REF_TOKENS_H

#include "support/ref_ops.h"

ref_spec ref_token_spec(const tide_op_desc *d);
void ref_token_run(const tide_op_desc *d, double *const *operand);

#endif
