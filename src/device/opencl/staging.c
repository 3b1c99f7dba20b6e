/* Copies where the host cannot see the arena: through pinned memory. A copy takes a slot, and waits for one while all
 * are in use. Who has one waits for another copy only if its io function does (device.h), which one at a time may: the
 * others then give theirs back in the end, and there are several. While the tier works on one half of the slot, the driver moves the
 * other. The pinned memory has one size, however many queues there are, and counts as the host's (device_info). */
#include "base/size.h"
#include "device/opencl/opencl.h"

#define HALF_BYTES (TIDE__OPENCL_SLOT_BYTES / 2)

/* ---- the pinned memory ---- */

/* Mapped as long as the device is open. Any queue of the driver can map and unmap it. */
static void *map(const tide__opencl *opencl, cl_mem buffer, void *mapped, cl_int *error) {
    const tide__cl *cl = &opencl->cl;
    cl_command_queue queue = cl->CreateCommandQueue(opencl->context, opencl->id, 0, error);
    if (*error != CL_SUCCESS) return NULL;
    if (mapped)
        *error = cl->EnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL);
    else
        mapped = cl->EnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, TIDE__OPENCL_STAGING_BYTES,
                                      0, NULL, NULL, error);
    cl->Finish(queue);
    cl->ReleaseCommandQueue(queue);
    return mapped;
}

tide_status tide__opencl_staging_open(tide__opencl *opencl) {
    tide__opencl_staging *s = &opencl->staging;
    cl_int error = CL_SUCCESS;
    if (s->buffer) return TIDE_OK;
    cl_mem buffer = opencl->cl.CreateBuffer(opencl->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                            TIDE__OPENCL_STAGING_BYTES, NULL, &error);
    TIDE_TRY(tide__cl_check(error, "create a pinned buffer"));
    char *bytes = map(opencl, buffer, NULL, &error);
    if (error != CL_SUCCESS) {
        opencl->cl.ReleaseMemObject(buffer);
        return tide__cl_check(error, "map a pinned buffer");
    }
    *s = (tide__opencl_staging){.buffer = buffer, .bytes = bytes};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->freed, NULL);
    return TIDE_OK;
}

void tide__opencl_staging_close(tide__opencl *opencl) {
    tide__opencl_staging *s = &opencl->staging;
    cl_int error = CL_SUCCESS;
    if (!s->buffer) return;
    (void)map(opencl, s->buffer, s->bytes, &error);
    opencl->cl.ReleaseMemObject(s->buffer);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->freed);
}

static int find_free(const tide__opencl_staging *s) {
    for (int i = 0; i < TIDE__OPENCL_SLOTS; i++)
        if (!s->taken[i]) return i;
    return -1;
}

static int take_slot(tide__opencl_staging *s) {
    int slot;
    pthread_mutex_lock(&s->lock);
    while ((slot = find_free(s)) < 0) pthread_cond_wait(&s->freed, &s->lock);
    s->taken[slot] = true;
    pthread_mutex_unlock(&s->lock);
    return slot;
}

static void give_slot(tide__opencl_staging *s, int slot) {
    pthread_mutex_lock(&s->lock);
    s->taken[slot] = false;
    pthread_cond_signal(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- pieces ---- */

typedef struct piece {
    uint64_t position, size_bytes;
    char *data;
    cl_event moved; /* NULL: nothing under way */
} piece;

static piece piece_at(char *slot, const tide__command *command, uint64_t position) {
    uint64_t size = tide__min_u64(command->copy.size_bytes - position, HALF_BYTES);
    return (piece){position, size, slot + position / HALF_BYTES % 2 * HALF_BYTES, NULL};
}

static tide_status start_move(tide__opencl_queue *queue, const tide__command *command, piece *p) {
    const tide__cl *cl = &((tide__opencl *)queue->host.base.device)->cl;
    cl_mem buffer = ((tide__opencl_arena *)command->copy.arena)->buffer;
    uint64_t at = command->copy.offset + p->position;
    cl_int error =
        command->copy.out
            ? cl->EnqueueReadBuffer(queue->cl, buffer, CL_FALSE, at, p->size_bytes, p->data, 0, NULL, &p->moved)
            : cl->EnqueueWriteBuffer(queue->cl, buffer, CL_FALSE, at, p->size_bytes, p->data, 0, NULL, &p->moved);
    TIDE_TRY(tide__cl_check(error, "copy"));
    return tide__cl_check(cl->Flush(queue->cl), "start a copy");
}

static tide_status finish_move(tide__opencl_queue *queue, piece *p) {
    const tide__cl *cl = &((tide__opencl *)queue->host.base.device)->cl;
    if (!p->moved) return TIDE_OK;
    cl_int error = cl->WaitForEvents(1, &p->moved);
    cl->ReleaseEvent(p->moved);
    p->moved = NULL;
    return tide__cl_check(error, "copy");
}

static tide_status hand_over(const tide__command *command, const piece *p) {
    const tide_io *io = &command->copy.io;
    return io->fn(io->context, p->position, p->data, p->size_bytes);
}

/* The driver reads piece i + 1 while the sink has piece i. */
static tide_status copy_out(tide__opencl_queue *queue, const tide__command *command, char *slot) {
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
        next.moved = NULL;
    }
settle: /* what the driver has begun still writes to the slot */
    (void)finish_move(queue, &here);
    (void)finish_move(queue, &next);
    return status;
}

/* The driver writes piece i while the source fills piece i + 1. */
static tide_status copy_in(tide__opencl_queue *queue, const tide__command *command, char *slot) {
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

tide_status tide__opencl_run_copy(tide__host_queue *base, const tide__command *command) {
    tide__opencl_queue *queue = (tide__opencl_queue *)base;
    tide__opencl_staging *s = &((tide__opencl *)base->base.device)->staging;
    const int number = take_slot(s);
    char *slot = s->bytes + (uint64_t)number * TIDE__OPENCL_SLOT_BYTES;
    tide_status status = command->copy.out ? copy_out(queue, command, slot) : copy_in(queue, command, slot);
    give_slot(s, number);
    return status;
}
