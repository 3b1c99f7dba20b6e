/* Policy `cache`: SuperNeurons' tensor cache (Wang et al., PPoPP 2018). Nothing moves until memory is short; then the
 * least recently used storage that no op at hand has locked goes to a tier, and comes back when it is wanted.
 *
 * The list is doubly linked through arrays, so every event costs O(1); a victim is found by walking past what is
 * locked or has no place to go. */
#include "plan/decide/policies/policies.h"

#include <stdlib.h>

#include "plan/decide/online/online_sim.h"

typedef struct cache {
    tide_id *next, *previous; /* of storage i at i + 1; at HEAD that of the ring. next: more recently used */
} cache;
enum { HEAD = 0 };

static void unlink_storage(cache *c, tide_id id) {
    id++;
    c->next[c->previous[id]] = c->next[id];
    c->previous[c->next[id]] = c->previous[id];
    c->next[id] = c->previous[id] = TIDE_NONE;
}

static void append(cache *c, tide_id id) {
    tide_id last = c->previous[HEAD];
    id++;
    c->next[last] = id;
    c->previous[id] = last;
    c->next[id] = HEAD;
    c->previous[HEAD] = id;
}

static void destroy(void *self) {
    cache *c = self;
    free(c->next);
    free(c->previous);
    free(c);
}

static tide_status create(const tide__online *o, const char *argument, void **self) {
    (void)o, (void)argument;
    *self = calloc(1, sizeof(cache));
    return *self ? TIDE_OK : tide__fail_memory();
}

static tide_status grow(void *self, const tide__online *o, uint32_t n_before) {
    cache *c = self;
    uint32_t known = n_before ? n_before + 1 : 0;
    TIDE_TRY(tide__online_widen(&c->next, known, o->n_storages + 1, 0xff));
    TIDE_TRY(tide__online_widen(&c->previous, known, o->n_storages + 1, 0xff));
    if (!known) c->next[HEAD] = c->previous[HEAD] = HEAD;
    return TIDE_OK;
}

static tide_status arrived(void *self, const tide__online *o, tide_id id) {
    (void)o;
    append(self, id);
    return TIDE_OK;
}

static tide_status left(void *self, const tide__online *o, tide_id id, tide__way way) {
    (void)o, (void)way;
    unlink_storage(self, id);
    return TIDE_OK;
}

static void used(void *self, const tide__online *o, tide_id id) {
    (void)o;
    cache *c = self;
    unlink_storage(c, id);
    append(c, id);
}

static tide__victim choose(void *self, const tide__online *o) {
    const cache *c = self;
    for (tide_id at = c->next[HEAD]; at != HEAD; at = c->next[at]) {
        tide_id id = at - 1;
        if (o->storages[id].locks == 0 && o->storages[id].bytes > 0 && tide__online_can_swap(o, id))
            return (tide__victim){id, TIDE__SWAP};
    }
    return (tide__victim){TIDE_NONE, TIDE__SWAP};
}

const tide__online_policy tide__online_cache = {.name = "cache",
                                                .swaps = true,
                                                .create = create,
                                                .destroy = destroy,
                                                .grow = grow,
                                                .choose = choose,
                                                .arrived = arrived,
                                                .left = left,
                                                .used = used};

tide_status tide__decide_cache(const tide__policy_input *in, tide__decisions *out) {
    return tide__decide_online(in, &tide__online_cache, out);
}
