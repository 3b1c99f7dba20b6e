/* Policy `delta`: DELTA (Tang et al. 2022, arXiv 2203.15980), decided online, per storage.
 *
 * Filter: of the storages that may leave and have at least 1 % of the mean size, the one with the largest bytes x
 * staleness. Director: how it leaves. Swapping costs what compute would wait for: the rest of the way out, and the way
 * back as far as earlier loads were not hidden. Recomputing costs the whole chain that would have to run, not the
 * last op alone. Both in ns. Prefetch: once something that was swapped had to be waited for, backward has begun; what
 * left last is wanted first, so storages come back in the reverse order of their leaving while there is room.
 *
 * Above MANY residents a sample of them is scored. */
#include "plan/decide/policies/policies.h"

#include <stdlib.h>

#include "base/rng.h"
#include "base/size.h"
#include "plan/decide/online/online_sim.h"

enum { MANY = 2000, SAMPLE = 400, MAX_CHAIN = 256 };

typedef struct delta {
    TIDE_VEC(tide_id) swapped; /* in the order of leaving; some are back or gone */
    bool prefetching;
    double exposed; /* share of recent LOADs that compute waited for, in [0, 1] */
    uint32_t *seen; /* per storage, of searches */
    uint32_t stamp;
    uint64_t draws;
} delta;

/* ---- the director ---- */

static uint64_t way_ns(const tide__online *o, uint32_t tier, bool out, uint64_t bytes) {
    return tide_machine_transfer_ns(o->machine, tide_machine_queue(o->machine, tier, out) - 1, bytes);
}

/* What compute waits for if it leaves to a tier now and is wanted again. */
static uint64_t swap_cost(const delta *d, const tide__online *o, tide_id id) {
    const tide__storage *s = &o->storages[id];
    uint32_t tier = tide__online_tier(o, id);
    uint64_t now = tide__online_now(o), out = 0;
    if (tier == TIDE_NONE) return UINT64_MAX;
    if (s->tier == TIDE_NONE) {
        uint64_t begin = o->device->channel_free_ns(o->device_self, tier, true);
        out = tide__add_capped(way_ns(o, tier, true, s->bytes), begin > now ? begin - now : 0);
    }
    return tide__add_capped(out, (uint64_t)(d->exposed * (double)way_ns(o, tier, false, s->bytes)));
}

/* One more op of a chain: its own cost and what brings its reads back; false when the chain is too long. */
static bool add_op(delta *d, const tide__online *o, tide_id id, tide_id *queue, uint32_t *count, uint64_t *cost) {
    const tide_op *op = tide_program_op(o->program, id);
    *cost = tide__add_capped(*cost, o->ops[id].cost_ns);
    for (uint32_t i = 0; i < op->n_reads; i++) {
        const tide__storage *s = &o->storages[op->reads[i]];
        if (s->resident || d->seen[op->reads[i]] == d->stamp) continue;
        d->seen[op->reads[i]] = d->stamp;
        if (s->tier != TIDE_NONE) {
            *cost = tide__add_capped(*cost, way_ns(o, s->tier, false, s->bytes));
        } else {
            if (*count == MAX_CHAIN) return false;
            queue[(*count)++] = op->reads[i];
        }
    }
    return true;
}

/* Everything that would run to make it again as things are now. */
static uint64_t chain_cost(delta *d, const tide__online *o, tide_id id) {
    tide_id queue[MAX_CHAIN] = {id};
    uint32_t count = 1;
    uint64_t cost = 0;
    if (!tide__online_can_drop(o, id)) return UINT64_MAX;
    d->stamp++;
    d->seen[id] = d->stamp;
    for (uint32_t i = 0; i < count; i++)
        if (!add_op(d, o, o->storages[queue[i]].producer, queue, &count, &cost)) return UINT64_MAX;
    return cost;
}

static tide__way direct(delta *d, const tide__online *o, tide_id id) {
    uint64_t swap = swap_cost(d, o, id), chain = chain_cost(d, o, id);
    if (swap == UINT64_MAX && chain == UINT64_MAX) return tide__online_can_drop(o, id) ? TIDE__DROP : TIDE__SWAP;
    return chain <= swap ? TIDE__DROP : TIDE__SWAP;
}

/* ---- the filter ---- */

static uint64_t mean_bytes(const tide__online *o) {
    uint64_t sum = 0;
    for (size_t i = 0; i < o->residents.count; i++) sum += o->storages[o->residents.data[i]].bytes;
    return o->residents.count ? sum / o->residents.count : 0;
}

static bool is_candidate(const tide__online *o, tide_id id, uint64_t min_bytes) {
    const tide__storage *s = &o->storages[id];
    if (s->locks > 0 || s->bytes == 0 || s->bytes < min_bytes) return false;
    return tide__online_can_drop(o, id) || tide__online_can_swap(o, id);
}

/* Ties go to the smaller id. */
static tide_id filter(delta *d, const tide__online *o, uint64_t min_bytes, bool sample) {
    tide_id best = TIDE_NONE;
    double best_score = 0;
    uint64_t now = tide__online_now(o);
    size_t n = o->residents.count, looks = sample && n > MANY ? SAMPLE : n;
    for (size_t i = 0; i < looks; i++) {
        tide_id id = o->residents.data[looks == n ? i : (size_t)(tide__random_u64(0, 0, d->draws++) % n)];
        if (!is_candidate(o, id, min_bytes)) continue;
        const tide__storage *s = &o->storages[id];
        double score = (double)s->bytes * (double)(now - tide__min_u64(now, s->last_used_ns));
        if (best != TIDE_NONE && (score < best_score || (score == best_score && id > best))) continue;
        best = id;
        best_score = score;
    }
    return best;
}

static tide__victim choose(void *self, const tide__online *o) {
    delta *d = self;
    tide_id id = filter(d, o, mean_bytes(o) / 100, true);
    if (id == TIDE_NONE) id = filter(d, o, 0, false);
    return (tide__victim){id, id == TIDE_NONE ? TIDE__DROP : direct(d, o, id)};
}

/* ---- prefetch ---- */

static tide_status left(void *self, const tide__online *o, tide_id id, tide__way way) {
    delta *d = self;
    if (way != TIDE__SWAP || !o->storages[id].live) return TIDE_OK;
    d->prefetching = false;
    return tide__vec_push(&d->swapped, id);
}

static void loaded(void *self, const tide__online *o, uint64_t transfer_ns, uint64_t exposed_ns) {
    (void)o;
    delta *d = self;
    if (transfer_ns == 0) return;
    if (exposed_ns > 0) d->prefetching = true;
    d->exposed += ((double)exposed_ns / (double)transfer_ns - d->exposed) / 8;
}

/* The newest that is still away; one LOAD at a time, so that a miss does not queue behind guesses. */
static tide_id prefetch(void *self, const tide__online *o) {
    delta *d = self;
    while (d->prefetching && d->swapped.count) {
        tide_id id = d->swapped.data[d->swapped.count - 1];
        const tide__storage *s = &o->storages[id];
        if (!s->resident && s->live && s->tier != TIDE_NONE) {
            bool idle = o->device->channel_free_ns(o->device_self, s->tier, false) <= tide__online_now(o);
            return idle ? id : TIDE_NONE;
        }
        d->swapped.count--;
    }
    return TIDE_NONE;
}

/* ---- the whole ---- */

static void destroy(void *self) {
    delta *d = self;
    tide__vec_free(&d->swapped);
    free(d->seen);
    free(d);
}

static tide_status create(const tide__online *o, const char *argument, void **self) {
    (void)o, (void)argument;
    delta *d = calloc(1, sizeof *d);
    if (!d) return tide__fail_memory();
    d->exposed = 1; /* until loads tell */
    *self = d;
    return TIDE_OK;
}

static tide_status grow(void *self, const tide__online *o, uint32_t n_before) {
    return tide__online_widen(&((delta *)self)->seen, n_before, o->n_storages, 0);
}

const tide__online_policy tide__online_delta = {.name = "delta",
                                                .swaps = true,
                                                .create = create,
                                                .destroy = destroy,
                                                .grow = grow,
                                                .choose = choose,
                                                .prefetch = prefetch,
                                                .left = left,
                                                .loaded = loaded};

tide_status tide__decide_delta(const tide__policy_input *in, tide__decisions *out) {
    return tide__decide_online(in, &tide__online_delta, out);
}
