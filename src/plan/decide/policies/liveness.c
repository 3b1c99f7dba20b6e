/* Policy `liveness` (SuperNeurons): a value leaves the arena after its last use. That is what a schedule does when
 * nothing is decided, so there is nothing to decide. "Unconstrained" means this policy without a budget. */
#include "plan/decide/policies/policies.h"

tide_status tide__decide_liveness(const tide__policy_input *in, tide__decisions *out) {
    (void)in, (void)out;
    return TIDE_OK;
}
