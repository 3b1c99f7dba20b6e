/* Networks planned with the workspaces that cuDNN needs for their convolutions on GPUs that are not here: cuDNN answers by
 * a description of the GPU. Bytes are the library's, times are not: it gives none without a GPU. */
#ifndef TIDE_BENCH_CUDNN_PLANNED_H
#define TIDE_BENCH_CUDNN_PLANNED_H

#include <tidemark/tidemark.h>

#include "device/cuda/cudnn.h"

typedef struct planned_gpu {
    const char *machine;    /* its profile */
    const char *properties; /* as cuDNN reads them */
} planned_gpu;

enum { PLANNED_GPUS = 3 };
extern const planned_gpu planned_gpus[PLANNED_GPUS];

typedef struct planned {
    uint32_t n_convolutions;
    uint32_t n_answers;                                /* ways that cuDNN has for them, of TIDE__DNN_WAYS each */
    uint64_t least_bytes, fine_bytes, largest_bytes;   /* the largest workspace of an op: lean, fine, of all */
    uint32_t n_runs[TIDE__DNN_WAYS];                   /* of convolutions in the plan, re-runs included */
    uint64_t free_bytes, arena_bytes, workspace_bytes; /* arena without a budget, with it; largest workspace in it */
    uint64_t step_ns, lean_ns;                         /* predicted; and where every op has its leanest way */
    uint32_t n_different;                              /* workspaces in the plan that are not what cuDNN says */
} planned;

/* `share`: of the arena without a budget. */
tide_status planned_make(const tide__dnn *dnn, const planned_gpu *gpu, const char *model, uint32_t batch, double share,
                         planned *out);

#endif
