/* See pool_client.h. */
#include "support/pool_client.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"

/* ---- ranges ---- */

static size_t find_range(const range_set *set, uintptr_t address) {
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->data[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool range_set_add(range_set *set, const void *begin, uint64_t size_bytes) {
    uintptr_t from = (uintptr_t)begin, to = from + size_bytes;
    size_t at = find_range(set, from);
    if (at < set->count && set->data[at].begin < to) return false;
    if (set->count == set->capacity) {
        set->capacity = set->capacity ? 2 * set->capacity : 64;
        set->data = realloc(set->data, set->capacity * sizeof *set->data);
        if (!set->data) abort();
    }
    memmove(&set->data[at + 1], &set->data[at], (set->count - at) * sizeof *set->data);
    set->data[at].begin = from;
    set->data[at].end = to;
    set->count++;
    return true;
}

bool range_set_remove(range_set *set, const void *begin, uint64_t *size_bytes) {
    size_t at = find_range(set, (uintptr_t)begin);
    if (at == set->count || set->data[at].begin != (uintptr_t)begin) return false;
    *size_bytes = set->data[at].end - set->data[at].begin;
    set->count--;
    memmove(&set->data[at], &set->data[at + 1], (set->count - at) * sizeof *set->data);
    return true;
}

void range_set_free(range_set *set) { free(set->data); }

/* ---- memory that is not there ---- */

static tide_status fake_alloc(void *context, uint64_t size_bytes, uint64_t alignment, void **out) {
    fake_memory *m = context;
    if (m->hand_out) {
        *out = m->hand_out;
        m->hand_out = NULL;
        return TIDE_OK;
    }
    if (m->limit_bytes && size_bytes > m->limit_bytes - m->held_bytes)
        return tide__fail(TIDE_E_FIT, "the fake memory is full");
    m->next = (m->next + (uintptr_t)alignment * 2 - 1) & ~((uintptr_t)alignment - 1);
    *out = (void *)m->next; /* NOLINT: an address, not memory */
    m->next += size_bytes;
    m->held_bytes += size_bytes;
    m->n_allocs++;
    m->n_errors += !range_set_add(&m->live, *out, size_bytes);
    return TIDE_OK;
}

static void fake_free(void *context, void *block, uint64_t size_bytes) {
    fake_memory *m = context;
    uint64_t known = 0;
    if (!range_set_remove(&m->live, block, &known) || known != size_bytes) m->n_errors++;
    m->held_bytes -= known;
}

tide_pool_backing fake_memory_backing(fake_memory *memory) {
    *memory = (fake_memory){.next = 4096};
    return (tide_pool_backing){.alloc = fake_alloc, .free = fake_free, .context = memory};
}

void fake_memory_free(fake_memory *memory) { range_set_free(&memory->live); }

/* ---- the client ---- */

void client_init(client *c, tide_pool *pool, uint64_t alignment) {
    *c = (client){.pool = pool, .alignment = alignment};
    pthread_mutex_init(&c->lock, NULL);
}

void client_deinit(client *c) {
    pthread_mutex_destroy(&c->lock);
    range_set_free(&c->live);
}

tide_status client_malloc(client *c, uint64_t size_bytes, void **out) {
    TIDE_TRY(tide_pool_malloc(c->pool, size_bytes, out));
    pthread_mutex_lock(&c->lock);
    if (!range_set_add(&c->live, *out, size_bytes) || (uintptr_t)*out % c->alignment != 0) c->n_errors++;
    pthread_mutex_unlock(&c->lock);
    return TIDE_OK;
}

/* A block leaves the set before the pool may hand it out again. */
tide_status client_free(client *c, void *block) {
    uint64_t size_bytes;
    pthread_mutex_lock(&c->lock);
    if (!range_set_remove(&c->live, block, &size_bytes)) c->n_errors++;
    pthread_mutex_unlock(&c->lock);
    tide_status status = tide_pool_free(c->pool, block);
    if (status != TIDE_OK) {
        pthread_mutex_lock(&c->lock);
        c->n_errors++;
        pthread_mutex_unlock(&c->lock);
    }
    return status;
}

/* ---- scripts ---- */

static void take(script *s, uint32_t slot, uint64_t size_bytes) {
    s->steps[s->n++] = (step){.slot = slot, .size_bytes = size_bytes};
}

static void give(script *s, uint32_t slot, uint32_t keep) { s->steps[s->n++] = (step){.slot = slot, .keep = keep}; }

/* Layers come in stages of three equal ones, as in real nets: iterations have loops inside. */
static uint64_t activation_bytes(uint32_t layer, uint32_t batch) {
    return (uint64_t)batch * 4096 * (40 / (layer / 3 + 1) + 1);
}
static uint64_t weight_bytes(uint32_t layer) { return 9u * 64 * 64 * (layer / 3 + 1); }

enum { SLOT_WORK, SLOT_LOSS, SLOT_GRADIENT, SLOT_FIRST };

static void forward(script *s, uint32_t layers, uint32_t batch) {
    for (uint32_t l = 0; l < layers; l++) {
        take(s, SLOT_FIRST + 3 * l, activation_bytes(l, batch));
        take(s, SLOT_WORK, activation_bytes(l, batch) / 2 + 512);
        give(s, SLOT_WORK, 0);
    }
    take(s, SLOT_LOSS, 400);
}

static void backward_layer(script *s, uint32_t l, uint32_t batch) {
    take(s, SLOT_GRADIENT, activation_bytes(l, batch)); /* of the input */
    take(s, SLOT_FIRST + 3 * l + 1, weight_bytes(l));   /* of the weights */
    give(s, SLOT_FIRST + 3 * l, 0);
    give(s, SLOT_GRADIENT, 1);
    take(s, SLOT_FIRST + 3 * l + 2, weight_bytes(l)); /* momentum: the new one, then the old one goes */
    give(s, SLOT_FIRST + 3 * l + 1, 0);
    give(s, SLOT_FIRST + 3 * l + 2, 1);
}

void script_training(script *s, uint32_t layers, uint32_t batch) {
    s->n = 0;
    s->n_slots = SLOT_FIRST + 3 * layers;
    forward(s, layers, batch);
    for (uint32_t l = layers; l-- > 0;) backward_layer(s, l, batch);
    give(s, SLOT_GRADIENT, 0);
    give(s, SLOT_LOSS, 0);
}

void script_evaluation(script *s, uint32_t layers, uint32_t batch) {
    s->n = 0;
    s->n_slots = SLOT_FIRST + 3 * layers;
    for (uint32_t l = 0; l < layers; l++) {
        take(s, SLOT_FIRST + 3 * l, activation_bytes(l, batch));
        if (l > 0) give(s, SLOT_FIRST + 3 * (l - 1), 0);
    }
    give(s, SLOT_FIRST + 3 * (layers - 1), 0);
}

/* ---- acting ---- */

void actor_init(actor *a, client *c, uint64_t seed) { *a = (actor){.client = c, .seed = seed}; }

uint64_t actor_draw(actor *a, uint64_t bound) { return tide__random_u64(a->seed, 1, a->drawn++) % bound; }

static void act(actor *a, const step *s) {
    uint32_t *queued = &a->queued[s->slot];
    void **queue = a->queue[s->slot];
    if (s->size_bytes > 0) {
        if (*queued < MAX_QUEUE && client_malloc(a->client, s->size_bytes, &queue[*queued]) == TIDE_OK)
            ++*queued;
        else
            a->n_failures++;
    } else if (*queued > s->keep) {
        uint32_t at = s->newest ? *queued - 1 : 0;
        a->n_failures += client_free(a->client, queue[at]) != TIDE_OK;
        --*queued;
        memmove(&queue[at], &queue[at + 1], (*queued - at) * sizeof *queue);
    }
}

static void act_extra(actor *a) {
    void **place = &a->extra[actor_draw(a, MAX_QUEUE)];
    if (*place) {
        a->n_failures += client_free(a->client, *place) != TIDE_OK;
        *place = NULL;
    }
    a->n_failures += client_malloc(a->client, 1 + actor_draw(a, 3 << 20), place) != TIDE_OK;
}

void actor_run(actor *a, const script *s, uint32_t n_extra, uint32_t n_missing) {
    for (size_t i = 0; i < s->n; i++) {
        uint64_t left = s->n - i;
        if (n_extra && actor_draw(a, left) < n_extra) {
            n_extra--;
            act_extra(a);
        }
        if (n_missing && s->steps[i].size_bytes > 0 && actor_draw(a, left) < 2 * (uint64_t)n_missing) {
            n_missing--;
            continue;
        }
        act(a, &s->steps[i]);
    }
}

void actor_finish(actor *a) {
    for (uint32_t slot = 0; slot < MAX_SLOTS; slot++)
        while (a->queued[slot] > 0) act(a, &(step){.slot = slot});
    for (uint32_t i = 0; i < MAX_QUEUE; i++) {
        if (a->extra[i]) client_free(a->client, a->extra[i]);
        a->extra[i] = NULL;
    }
}
