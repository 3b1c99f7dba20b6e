/* States as PyTorch's libraries have them: names, shapes and the way round that matrices lie, family by family.
 *
 * Most families are called here as they are there. The others have a naming: rules that turn a name here into one there. The
 * same rules go for optimizer state, which nobody else knows and which stands under a prefix of its own. */
#ifndef TIDE_NN_PUBLISHED_H
#define TIDE_NN_PUBLISHED_H

#include <tidemark/nn.h>

#include "nn/safetensors.h"

/* A name that begins with `from` begins with `to` there. */
typedef struct tide__name_rule {
    const char *from, *to;
    bool transposed; /* matrices are stored as inputs x outputs */
} tide__name_rule;

typedef struct tide__naming {
    const tide__name_rule *rules; /* the first that fits counts; the last fits all */
    const char *optional;         /* a prefix of `to` that files may leave out */
    const char *copy, *copied;    /* an array that is there a second time under another name */
    const char *const *ignored;   /* ends of names that hold no weights; NULL after the last */
} tide__naming;
extern const tide__naming tide__naming_plain, tide__naming_densenet, tide__naming_gpt2;

#define TIDE__OPTIMIZER_PREFIX "optimizer."
#define TIDE__PUBLISHED_NAME_BYTES 192

typedef struct tide__published {
    char name[TIDE__PUBLISHED_NAME_BYTES];
    uint32_t rank;
    uint64_t dim[4];
    bool transposed;
} tide__published;

/* A state as it is saved today. */
void tide__publish(const tide__naming *naming, const tide_state *state, tide__published *out);
/* As checkpoints of version 3 have it: called as here, dimensions of 1 at the end left out or not. */
void tide__publish_as_before(const tide_state *state, tide__published *out);
/* Batch norms count their batches there: the name of the counter beside this state. False: there is none. */
bool tide__publish_counter(const tide__naming *naming, const tide_state *state, char out[TIDE__PUBLISHED_NAME_BYTES]);

/* Ones at the end make no difference. */
bool tide__published_fits(const tide__published *p, const tide__array *array);
/* Where it is in a file: under its name, or that without the optional prefix; NULL: it is not there. */
const tide__array *tide__published_find(const tide__naming *naming, const tide__published *p,
                                        const tide__safetensors *s);
/* An array that no state has but that belongs there: a counter, a mask, optimizer state, the copy. */
bool tide__published_ignores(const tide__naming *naming, const tide__array *array);

/* "10 x 512", into `out`; "one number" for a rank of 0. */
#define TIDE__DIMS_TEXT_BYTES 192
void tide__dims_text(uint32_t rank, const uint64_t *dims, char out[TIDE__DIMS_TEXT_BYTES]);

#endif
