/* Policy `none`: everything is kept for the whole step, nothing is shared. The baseline of SuperNeurons: the sum of
 * all forward and backward tensors. */
#include "plan/decide/policies.h"

tide_status tide__decide_none(const tide_program *program, const tide_machine *machine,
                              const tide_plan_options *options, tide__decisions *out) {
    (void)program, (void)machine, (void)options;
    out->keep_everything = true;
    return TIDE_OK;
}
