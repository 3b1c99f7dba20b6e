/* Copies where the host cannot see the arena: through pinned memory. A copy takes a slot, and waits for one while all
 * are in use. Who has one waits for another copy only if its io function does (device.h), which one at a time may: the
 * others then give theirs back in the end, and there are several. While the tier works on one half of the slot, the driver moves the
 * other. The pinned memory has one size, however many queues there are, and counts as the host's (device_info). */
#include "base/size.h"
#include "device/gpu/gpu.h"

#define HALF_BYTES (TIDE__GPU_SLOT_BYTES / 2)

/* ---- the pinned memory ---- */

tide_status tide__gpu_staging_open(tide__gpu *gpu) {
    tide__gpu_staging *s = &gpu->staging;
    void *bytes = NULL;
    if (s->bytes) return TIDE_OK;
    TIDE_TRY(gpu->backend->pin(gpu, TIDE__GPU_STAGING_BYTES, &bytes));
    *s = (tide__gpu_staging){.bytes = bytes};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->freed, NULL);
    return TIDE_OK;
}

void tide__gpu_staging_close(tide__gpu *gpu) {
    tide__gpu_staging *s = &gpu->staging;
    if (!s->bytes) return;
    gpu->backend->unpin(gpu, s->bytes);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->freed);
}

static int find_free(const tide__gpu_staging *s) {
    for (int i = 0; i < TIDE__GPU_SLOTS; i++)
        if (!s->taken[i]) return i;
    return -1;
}

static int take_slot(tide__gpu_staging *s) {
    int slot;
    pthread_mutex_lock(&s->lock);
    while ((slot = find_free(s)) < 0) pthread_cond_wait(&s->freed, &s->lock);
    s->taken[slot] = true;
    pthread_mutex_unlock(&s->lock);
    return slot;
}

static void give_slot(tide__gpu_staging *s, int slot) {
    pthread_mutex_lock(&s->lock);
    s->taken[slot] = false;
    pthread_cond_signal(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- pieces ---- */

typedef struct piece {
    uint64_t position, size_bytes;
    char *data;
    bool moving;
} piece;

static int half_of(const piece *p) { return (int)(p->position / HALF_BYTES % 2); }

static piece piece_at(char *slot, const tide__command *command, uint64_t position) {
    piece p = {.position = position, .size_bytes = tide__min_u64(command->copy.size_bytes - position, HALF_BYTES)};
    p.data = slot + (uint64_t)half_of(&p) * HALF_BYTES;
    return p;
}

static const tide__gpu_backend *backend_of(const tide__host_queue *queue) {
    return ((const tide__gpu *)queue->base.device)->backend;
}

/* A move that fails to start may still be under way: it is waited for, too. */
static tide_status start_move(tide__host_queue *queue, const tide__command *command, piece *p) {
    p->moving = true;
    return backend_of(queue)->move_start(queue, &(tide__gpu_move){.arena = command->copy.arena,
                                                                  .offset = command->copy.offset + p->position,
                                                                  .size_bytes = p->size_bytes,
                                                                  .data = p->data,
                                                                  .out = command->copy.out,
                                                                  .half = half_of(p)});
}

static tide_status finish_move(tide__host_queue *queue, piece *p) {
    if (!p->moving) return TIDE_OK;
    p->moving = false;
    return backend_of(queue)->move_finish(queue, half_of(p));
}

static tide_status hand_over(const tide__command *command, const piece *p) {
    const tide_io *io = &command->copy.io;
    return io->fn(io->context, p->position, p->data, p->size_bytes);
}

/* The driver reads piece i + 1 while the sink has piece i. */
static tide_status copy_out(tide__host_queue *queue, const tide__command *command, char *slot) {
    piece here = piece_at(slot, command, 0), next = {0};
    tide_status status;
    TIDE_TRY_GOTO(start_move(queue, command, &here), settle);
    for (;;) {
        uint64_t end = here.position + here.size_bytes;
        TIDE_TRY_GOTO(finish_move(queue, &here), settle);
        if (end < command->copy.size_bytes) {
            next = piece_at(slot, command, end);
            TIDE_TRY_GOTO(start_move(queue, command, &next), settle);
        }
        TIDE_TRY_GOTO(hand_over(command, &here), settle);
        if (end == command->copy.size_bytes) break;
        here = next;
        next.moving = false;
    }
settle: /* what the driver has begun still writes to the slot */
    (void)finish_move(queue, &here);
    (void)finish_move(queue, &next);
    return status;
}

/* The driver writes piece i while the source fills piece i + 1. */
static tide_status copy_in(tide__host_queue *queue, const tide__command *command, char *slot) {
    piece last[2] = {{0}, {0}};
    tide_status status = TIDE_OK;
    for (uint64_t at = 0; at < command->copy.size_bytes; at += HALF_BYTES) {
        piece *p = &last[at / HALF_BYTES % 2];
        TIDE_TRY_GOTO(finish_move(queue, p), settle);
        *p = piece_at(slot, command, at);
        TIDE_TRY_GOTO(hand_over(command, p), settle);
        TIDE_TRY_GOTO(start_move(queue, command, p), settle);
    }
settle:
    for (int i = 0; i < 2; i++) {
        tide_status moved = finish_move(queue, &last[i]);
        if (status == TIDE_OK) status = moved;
    }
    return status;
}

tide_status tide__gpu_run_copy(tide__host_queue *queue, const tide__command *command) {
    tide__gpu_staging *s = &((tide__gpu *)queue->base.device)->staging;
    const int number = take_slot(s);
    char *slot = s->bytes + (uint64_t)number * TIDE__GPU_SLOT_BYTES;
    tide_status status = command->copy.out ? copy_out(queue, command, slot) : copy_in(queue, command, slot);
    give_slot(s, number);
    return status;
}
