/* A machine: the cost model of a device, its tiers and its channels; measured, or from a profile file.
 *
 *      arena ──out──▶ tier "ram"        queue 0   compute
 *      arena ◀──in─── tier "ram"        queue 1+i channel i, in the order of this machine
 *
 * Formats in docs/formats.md; the profiles that ship are in machines/. */
#ifndef TIDEMARK_MACHINE_H
#define TIDEMARK_MACHINE_H

#include <tidemark/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Room in arrays. A machine has one tier and two channels less at most, 8 and 16: journals of online steps need those. */
#define TIDE_MACHINE_MAX_TIERS 9
#define TIDE_MACHINE_MAX_CHANNELS 18
#define TIDE_MACHINE_NAME_BYTES 64

#define TIDE_TIER_TABLE(X)                                                                                \
    X(TIDE_TIER_RAM, "ram")                                                                               \
    X(TIDE_TIER_DISK, "disk")                                                                             \
    X(TIDE_TIER_CLIENT, "client") /* read-only: where inputs come from */                                 \
    X(TIDE_TIER_PEER, "peer")     /* other ranks: messages go there and come from there, no bytes stay */ \
    X(TIDE_TIER_LENT, "lent")     /* memory that another rank lends */

typedef enum tide_tier_kind {
#define TIDE_ENUM_MEMBER(e, name) e,
    TIDE_TIER_TABLE(TIDE_ENUM_MEMBER)
#undef TIDE_ENUM_MEMBER
} tide_tier_kind;

typedef struct tide_machine_tier {
    char name[TIDE_MACHINE_NAME_BYTES];
    tide_tier_kind kind;
    uint64_t capacity_bytes; /* UINT64_MAX: unlimited */
    uint32_t block_bytes;    /* offsets and sizes that move to this tier are multiples of it; a power of two, >= 1 */
} tide_machine_tier;

/* One direction to one tier. A transfer of n bytes takes latency_ns + n / bytes_per_s; channels with the same
 * `share` (0 = shares with nobody) split bytes_per_s while they are active at the same time. While bytes move, the
 * compute queue runs slower by drag_percent, at most 90: copies by the cores that compute, or memory both need. */
typedef struct tide_machine_channel {
    uint32_t tier;
    bool out; /* true: arena to tier (SAVE); false: tier to arena (LOAD) */
    uint64_t bytes_per_s;
    uint64_t latency_ns;
    uint32_t share;
    uint32_t drag_percent;
} tide_machine_channel;

/* Roofline: an op of f flops and b bytes costs launch_ns + max(f / (flops * eff), b / (bytes_per_s * eff)); the
 * efficiencies of op kinds stand in docs/costs.md. */
typedef struct tide_machine {
    char name[TIDE_MACHINE_NAME_BYTES];
    char source[TIDE_MACHINE_NAME_BYTES]; /* "data sheet", "measured", ... shown with every figure */
    uint64_t memory_bytes;                /* of the device */
    uint64_t reserve_bytes;               /* what libraries allocate behind our back */
    uint32_t align_bytes;                 /* of every arena offset; a power of two, >= 1 */
    double flops_per_s;                   /* float32 peak, multiply-add = 2 flops */
    double bytes_per_s;                   /* device memory */
    uint64_t launch_ns;                   /* per op */
    double matrix_efficiency;             /* of flops_per_s, in (0, 1]: convolutions and matrix products */
    double vector_efficiency;             /* of bytes_per_s, in (0, 1]: everything else */
    double half_flops_per_s; /* peak of products of bf16 or f16 added up in float32; 0: none, they run as float32 */
    uint32_t n_tiers, n_channels;
    tide_machine_tier tier[TIDE_MACHINE_MAX_TIERS];
    tide_machine_channel channel[TIDE_MACHINE_MAX_CHANNELS];
} tide_machine;

/* A machine with one compute queue, an unlimited RAM tier "ram" (12 GB/s each way) and a client tier, 1 TFLOP/s:
 * a neutral default for tests and for programs whose costs are given. align_bytes = 1. */
TIDE_API void tide_machine_init_default(tide_machine *m);
TIDE_API tide_status tide_machine_validate(const tide_machine *m);
/* `name` is a path (contains '/' or ends in ".json") or the name of a shipped profile ("k40c", "default"). */
TIDE_API tide_status tide_machine_load(const char *name, tide_machine *out);
TIDE_API tide_status tide_machine_read_memory(const void *text, size_t size, const char *name_in_errors,
                                              tide_machine *out);
TIDE_API tide_status tide_machine_write(const tide_machine *m, const char *path);
/* The same text; the caller frees it. */
TIDE_API tide_status tide_machine_write_memory(const tide_machine *m, char **text, size_t *size);
/* Hash of everything but the names; part of a plan's identity. */
TIDE_API uint64_t tide_machine_fingerprint(const tide_machine *m);
/* The queue that moves `out` or in between the arena and this tier; TIDE_NONE if there is none. */
TIDE_API uint32_t tide_machine_queue(const tide_machine *m, uint32_t tier, bool out);
/* latency + bytes / rate, alone on its share group, rounded up. */
TIDE_API uint64_t tide_machine_transfer_ns(const tide_machine *m, uint32_t channel, uint64_t bytes);
/* A copy inside the device's memory, on the compute queue: every byte is read and written at the bandwidth of vector ops.
 * Over a distance shorter than the bytes it goes in pieces of that distance, so that none overlaps itself; each is a launch.
 * 0 bytes, or no distance: 0. */
TIDE_API uint64_t tide_machine_relocate_ns(const tide_machine *m, uint64_t bytes, uint64_t distance_bytes);
/* The same machine without its tiers of a kind and their channels. `out` may be `m`. */
TIDE_API void tide_machine_without(const tide_machine *m, tide_tier_kind kind, tide_machine *out);
/* The same machine with channels to the other ranks of a job, at this rate each way; as it was if it has such. TIDE_E_ARGUMENT: it has
 * no room for another tier. */
TIDE_API tide_status tide_machine_add_peers(tide_machine *m, uint64_t bytes_per_s, uint64_t latency_ns);
/* The same machine with a tier in the memory of another rank (net.h), and its channels, which share their rates with those to the other
 * ranks. TIDE_E_ARGUMENT: no room for it. */
TIDE_API tide_status tide_machine_add_lent(tide_machine *m, uint64_t capacity_bytes, uint64_t out_bytes_per_s,
                                           uint64_t in_bytes_per_s, uint64_t latency_ns);
/* ---- clusters: hosts with ranks of one kind (docs/cluster.md) ---- */

typedef struct tide_cluster_link {
    uint64_t bytes_per_s; /* each way */
    uint64_t latency_ns;
} tide_cluster_link;

typedef struct tide_cluster {
    char name[TIDE_MACHINE_NAME_BYTES], source[TIDE_MACHINE_NAME_BYTES];
    char machine[TIDE_MACHINE_NAME_BYTES]; /* of every rank; as tide_machine_load takes it */
    uint32_t hosts, ranks_per_host;        /* powers of two; neighbours are on one host */
    tide_cluster_link inside;              /* of one rank, to others of its host */
    tide_cluster_link between;             /* of one host, to other hosts; its ranks share it */
} tide_cluster;

/* `name` is that of a shipped profile ("8xa100-nvlink") or a path. */
TIDE_API tide_status tide_cluster_load(const char *name, tide_cluster *out);
/* The machine that one rank sees: its channels to the others have the mean rate and latency that the messages of its program meet. */
TIDE_API tide_status tide_cluster_machine(const tide_cluster *cluster, const tide_program *program, uint32_t rank,
                                          tide_machine *out);

/* First tier of a kind; TIDE_NONE if there is none. */
TIDE_API uint32_t tide_machine_find_tier(const tide_machine *m, tide_tier_kind kind);

#ifdef __cplusplus
}
#endif
#endif
