/* See train_vary.h. The parts are drawn beforehand and few, so that each comes up again and is planned, and so that none
 * has to be prepared twice: a trainer keeps 64 models ready. */
#include "train_vary.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTHS = 32, LENGTHS = 16 };
#define DEPTH_STREAM UINT64_C(0x6465707468) /* of the draws; the part's number is added */

bool varies(const vary_args *a) { return a->drop_path >= 0 || a->min_length; }

tide_status check_vary_args(const vary_args *a) {
    if (a->drop_path > 1) return complain(TIDE_E_ARGUMENT, "--drop-path is a probability from 0 to 1");
    if (a->drop_path >= 0 && a->min_length)
        return complain(TIDE_E_ARGUMENT, "--drop-path is for ResNets, --min-length for language models");
    return TIDE_OK;
}

static tide_status open_list(model_parts *p, uint32_t n) {
    p->models = calloc(n, sizeof *p->models);
    p->parts = calloc(n, sizeof *p->parts);
    return p->models && p->parts ? TIDE_OK : complain(TIDE_E_MEMORY, "out of host memory");
}

static tide_status add_model(model_parts *p, const char *spec, const model_args *args, const model_variation *v) {
    tide_status status = load_variation(spec, args, v, &p->models[p->n_models]);
    if (status == TIDE_OK) p->parts[p->n_parts++] = p->models[p->n_models++];
    return status;
}

/* ---- stochastic depth (Huang et al. 2016): the deeper a block, the likelier it is left out ---- */

static void draw_skips(const tide_model *whole, double drop_path, uint64_t seed, uint32_t part, uint8_t *skip) {
    uint32_t n = tide_model_block_count(whole);
    for (uint32_t i = 0; i < n; i++) {
        double p = drop_path * (i + 1) / n;
        bool drop = (double)tide_random_unit(seed, DEPTH_STREAM + part, i) < p;
        skip[i] = drop && !tide_model_block_is_fixed(whole, i);
    }
}

/* The one with the same blocks; NULL: none. */
static const tide_model *find_skips(const model_parts *p, const uint8_t *skip, uint32_t n) {
    for (uint32_t k = 0; k < p->n_models; k++) {
        uint32_t i = 0;
        while (i < n && tide_model_skips(p->models[k], i) == (skip[i] != 0)) i++;
        if (i == n) return p->models[k];
    }
    return NULL;
}

static tide_status add_depths(const vary_args *a, const char *spec, const model_args *args, const tide_model *whole,
                              uint64_t seed, model_parts *p) {
    uint32_t n = tide_model_block_count(whole);
    if (n == 0) return complain(TIDE_E_ARGUMENT, "--drop-path: %s has no residual blocks to leave out", spec);
    uint8_t *skip = calloc(n, 1);
    if (!skip) return complain(TIDE_E_MEMORY, "out of host memory");
    tide_status status = open_list(p, DEPTHS);
    while (status == TIDE_OK && p->n_parts < DEPTHS) {
        draw_skips(whole, a->drop_path, seed, p->n_parts, skip);
        const tide_model *same = find_skips(p, skip, n);
        if (same)
            p->parts[p->n_parts++] = same;
        else
            status = add_model(p, spec, args, &(model_variation){.skip = skip, .n_skip = n});
    }
    free(skip);
    return status;
}

/* ---- lengths, evenly from the shortest to the context ---- */

static tide_status add_lengths(const vary_args *a, const char *spec, const model_args *args, const tide_model *whole,
                               model_parts *p) {
    uint32_t most = (uint32_t)tide_model_input(whole).c, last = 0;
    if (!tide_model_takes_tokens(whole))
        return complain(TIDE_E_ARGUMENT, "--min-length: %s takes images, which have no length", spec);
    if (a->min_length > most) return complain(TIDE_E_ARGUMENT, "--min-length: the context of %s is %u", spec, most);
    tide_status status = open_list(p, LENGTHS);
    for (uint32_t i = 0; i < LENGTHS && status == TIDE_OK; i++) {
        uint32_t length = a->min_length + (uint32_t)((uint64_t)(most - a->min_length) * i / (LENGTHS - 1));
        if (length != last) status = add_model(p, spec, args, &(model_variation){.length = length});
        last = length;
    }
    return status;
}

tide_status make_parts(const vary_args *a, const char *spec, const model_args *args, const tide_model *whole,
                       uint64_t seed, model_parts *out) {
    *out = (model_parts){0};
    if (a->min_length) return add_lengths(a, spec, args, whole, out);
    return a->drop_path >= 0 ? add_depths(a, spec, args, whole, seed, out) : TIDE_OK;
}

void free_parts(model_parts *p) {
    for (uint32_t i = 0; i < p->n_models; i++) tide_model_destroy(p->models[i]);
    free(p->models);
    free(p->parts);
    *p = (model_parts){0};
}
