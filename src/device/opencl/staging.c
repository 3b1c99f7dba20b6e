/* Copies where the host cannot see the arena: through a pinned buffer in two halves. While the tier works on one half,
 * the driver moves the other. */
#include "base/size.h"
#include "device/opencl/opencl.h"

#define HALF_BYTES (TIDE__OPENCL_STAGING_BYTES / 2)

typedef struct piece {
    uint64_t position, size_bytes;
    char *data;
    cl_event moved; /* NULL: nothing under way */
} piece;

static piece piece_at(const tide__opencl_queue *queue, const tide__command *command, uint64_t position) {
    uint64_t size = tide__min_u64(command->copy.size_bytes - position, HALF_BYTES);
    return (piece){position, size, queue->staging_bytes + position / HALF_BYTES % 2 * HALF_BYTES, NULL};
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
static tide_status copy_out(tide__opencl_queue *queue, const tide__command *command) {
    piece here = piece_at(queue, command, 0), next = {0};
    tide_status status = start_move(queue, command, &here);
    while (status == TIDE_OK) {
        uint64_t end = here.position + here.size_bytes;
        TIDE_TRY_GOTO(finish_move(queue, &here), settle);
        if (end < command->copy.size_bytes) {
            next = piece_at(queue, command, end);
            TIDE_TRY_GOTO(start_move(queue, command, &next), settle);
        }
        TIDE_TRY_GOTO(hand_over(command, &here), settle);
        if (end == command->copy.size_bytes) break;
        here = next;
        next.moved = NULL;
    }
settle:
    if (next.moved) finish_move(queue, &next);
    return status;
}

/* The driver writes piece i while the source fills piece i + 1. */
static tide_status copy_in(tide__opencl_queue *queue, const tide__command *command) {
    piece last[2] = {{0}, {0}};
    tide_status status = TIDE_OK;
    for (uint64_t at = 0; at < command->copy.size_bytes; at += HALF_BYTES) {
        piece *p = &last[at / HALF_BYTES % 2];
        TIDE_TRY_GOTO(finish_move(queue, p), settle);
        *p = piece_at(queue, command, at);
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
    return command->copy.out ? copy_out(queue, command) : copy_in(queue, command);
}
