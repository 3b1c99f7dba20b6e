/* The policies of the table in decide.c, one file each. */
#ifndef TIDE_PLAN_DECIDE_POLICIES_H
#define TIDE_PLAN_DECIDE_POLICIES_H

#include "plan/decide/decide.h"

tide_status tide__decide_none(const tide__policy_input *in, tide__decisions *out);
tide_status tide__decide_liveness(const tide__policy_input *in, tide__decisions *out);
tide_status tide__decide_cache(const tide__policy_input *in, tide__decisions *out);
tide_status tide__decide_delta(const tide__policy_input *in, tide__decisions *out);
tide_status tide__decide_dtr(const tide__policy_input *in, tide__decisions *out);
tide_status tide__decide_autoswap(const tide__policy_input *in, tide__decisions *out);
tide_status tide__decide_capuchin(const tide__policy_input *in, tide__decisions *out);
tide_status tide__decide_manual(const tide__policy_input *in, tide__decisions *out);
tide_status tide__decide_checkpoint(const tide__policy_input *in, tide__decisions *out);
tide_status tide__decide_superneurons(const tide__policy_input *in, tide__decisions *out);
tide_status tide__generate_hybrid(const tide__policy_input *in, struct tide__plans *plans);

/* The reader behind `manual`; `name` stands in error texts. On failure *out holds part of it, to be freed. */
tide_status tide__decisions_read(const char *text, size_t size, const char *name, const tide_program *program,
                                 const tide_machine *machine, tide__decisions *out);

#endif
