/* See weights.h. */
#include "weights.h"

static const char *const kinds[TIDE_WEIGHTS_FAULTS] = {[TIDE_WEIGHTS_MISSING] = "missing",
                                                       [TIDE_WEIGHTS_UNEXPECTED] = "unexpected",
                                                       [TIDE_WEIGHTS_OTHER_SHAPE] = "another shape"};

static void print_fault(void *context, tide_weights_fault fault, const char *text) {
    const weights_args *args = context;
    fprintf(stderr, "tidemark: %s: %s: %s\n", args->file, kinds[fault], show_name(text));
}

tide_status check_weights_args(const weights_args *a) {
    return a->partial && !a->file ? complain(TIDE_E_ARGUMENT, "--partial-weights needs --weights") : TIDE_OK;
}

void fill_weights_options(weights_args *args, tide_weights_options *out) {
    tide_weights_options_init(out);
    out->partial = args->partial;
    out->fault = print_fault;
    out->context = args;
}
