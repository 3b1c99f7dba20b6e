/* Policy `none`: everything is kept for the whole step, nothing is shared. The baseline of SuperNeurons: the sum of
 * all forward and backward tensors. */
#include "plan/decide/policies/policies.h"

tide_status tide__decide_none(const tide__policy_input *in, tide__decisions *out) {
    (void)in;
    out->keep_everything = true;
    return TIDE_OK;
}
