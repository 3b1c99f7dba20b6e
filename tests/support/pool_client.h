/* What the pool's tests stand on: a backing that hands out addresses without memory behind them (the pool must never
 * touch a block), a client that checks every block against all live ones, and scripts that allocate like training. */
#ifndef TIDE_TESTS_POOL_CLIENT_H
#define TIDE_TESTS_POOL_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tidemark/pool.h>

/* Disjoint ranges of addresses, sorted. */
typedef struct range_set {
    struct range {
        uintptr_t begin, end;
    } * data;
    size_t count, capacity;
} range_set;
bool range_set_add(range_set *set, const void *begin, uint64_t size_bytes);     /* false: it overlaps one */
bool range_set_remove(range_set *set, const void *begin, uint64_t *size_bytes); /* false: there is none */
void range_set_free(range_set *set);

typedef struct fake_memory {
    range_set live;
    uintptr_t next;
    uint64_t held_bytes, limit_bytes; /* limit 0: none */
    uint64_t n_allocs, n_errors;      /* errors: frees of what was not handed out, or with another size */
    void *hand_out;                   /* if not NULL: the next alloc returns this, whatever it is */
} fake_memory;
tide_pool_backing fake_memory_backing(fake_memory *memory);
void fake_memory_free(fake_memory *memory);

typedef struct client {
    tide_pool *pool;
    uint64_t alignment;
    pthread_mutex_t lock;
    range_set live;
    uint64_t n_errors; /* overlaps, misaligned addresses, failing frees */
} client;
void client_init(client *c, tide_pool *pool, uint64_t alignment);
void client_deinit(client *c);
/* Any thread. The status is the pool's. */
tide_status client_malloc(client *c, uint64_t size_bytes, void **out);
tide_status client_free(client *c, void *block);

/* One iteration. size > 0: malloc into the slot's queue; 0: free its oldest (or newest), if it holds more than `keep`. */
typedef struct step {
    uint64_t size_bytes;
    uint32_t slot, keep;
    bool newest;
} step;
enum { MAX_STEPS = 4096, MAX_SLOTS = 512, MAX_QUEUE = 8 };
typedef struct script {
    step steps[MAX_STEPS];
    size_t n;
    uint32_t n_slots;
} script;

/* Forward, backward, update of a convolution net; `batch` scales the activations. Momentum outlives the iteration. */
void script_training(script *s, uint32_t layers, uint32_t batch);
/* Forward only. */
void script_evaluation(script *s, uint32_t layers, uint32_t batch);

typedef struct actor {
    client *client;
    void *queue[MAX_SLOTS][MAX_QUEUE];
    uint32_t queued[MAX_SLOTS];
    void *extra[MAX_QUEUE]; /* blocks beside the script */
    uint64_t seed, drawn;
    uint64_t n_failures; /* mallocs and frees that the pool refused */
} actor;
void actor_init(actor *a, client *c, uint64_t seed);
uint64_t actor_draw(actor *a, uint64_t bound); /* uniform below `bound` */
/* Runs one iteration; `n_extra` mallocs are added (and freed some iterations later), `n_missing` left out. */
void actor_run(actor *a, const script *s, uint32_t n_extra, uint32_t n_missing);
/* Frees everything. */
void actor_finish(actor *a);

#endif
