/* ResNet-50 and VGG-16 planned with the workspaces that cuDNN needs for their convolutions on an A100, an RTX 4090 and a T4.
 * No GPU is needed: cuDNN answers by a description of it. Every workspace in a plan is compared with what cuDNN answers
 * when it is asked again. Bytes are the library's; times are the roofline's, with assumed shares for faster ways.
 *
 *   bench_cudnn            batch 32, at 60 % of the arena without a budget
 *
 * Exit code 1 if a workspace differs. Skipped, with a line, where there is no cuDNN. */
#include "common.h"
#include "cudnn/planned.h"

static double mib(uint64_t bytes) { return (double)bytes / 0x1p20; }

/* Whether its workspaces are cuDNN's. */
static bool print_row(const tide__dnn *dnn, const planned_gpu *gpu, const char *model) {
    enum { BATCH = 32 };
    planned r;
    require(planned_make(dnn, gpu, model, BATCH, 0.6, &r));
    printf("%-9s %-9s %5u %5u %8.1f %8.1f %8.1f %9.1f %9.1f %8.1f  %4u/%u/%-4u %6.2f  %s\n", model, gpu->machine,
           r.n_convolutions, r.n_answers, mib(r.least_bytes), mib(r.fine_bytes), mib(r.largest_bytes),
           mib(r.free_bytes), mib(r.arena_bytes), mib(r.workspace_bytes), r.n_runs[TIDE__DNN_LEAN],
           r.n_runs[TIDE__DNN_FINE], r.n_runs[TIDE__DNN_COARSE], (double)r.step_ns / (double)r.lean_ns,
           r.n_different ? "DIFFERENT" : "as cuDNN says");
    return r.n_different == 0;
}

int main(void) {
    static const char *const models[] = {"resnet50", "vgg16"};
    tide__dnn dnn;
    bool same = true;
    if (tide__dnn_load(&dnn) != TIDE_OK) {
        printf("skipped: plans with cuDNN's workspaces: %s\n", tide_last_error());
        return 0;
    }
    printf(
        "cuDNN %zu; batch 32; MiB. Largest workspace of an op: leanest, fastest float32, all; arena without a budget,\n"
        "planned in 60 %% of it; largest workspace in the plan; runs of convolutions lean/float32/tensor cores; step "
        "against all lean\n\n"
        "model     GPU       convs  ways    least     fine  largest     arena   planned workspace  runs       step\n",
        dnn.GetVersion());
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (int g = 0; g < PLANNED_GPUS; g++) same = print_row(&dnn, &planned_gpus[g], models[m]) && same;
    return same ? 0 : 1;
}
