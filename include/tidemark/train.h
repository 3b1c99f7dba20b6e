/* Training: a model, a data set and a plan become steps. A client of the runtime like any other. */
#ifndef TIDEMARK_TRAIN_H
#define TIDEMARK_TRAIN_H

#include <tidemark/nn.h>
#include <tidemark/run.h>
#include <tidemark/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- data sets ---- */

/* A data set is a function from an index to a sample. It may be called from any thread. */
typedef struct tide_data {
    size_t size;        /* sizeof(tide_data) */
    const char *name;   /* static */
    uint64_t n_samples; /* indices are 0 to n_samples - 1 */
    uint32_t channels, height, width, classes;
    uint64_t labels; /* per sample: one (0 means that too), one per pixel or one per token */
    /* pixels: channels * height * width floats, row-major; about zero mean, unit variance. Tokens are floats here, too */
    tide_status (*sample)(void *context, uint64_t index, float *pixels, int32_t *label);
    void *context;
    /* The same to learn from, varied at random: a function of `draw`, the number of samples that the training saw before. NULL:
     * sample will do. */
    tide_status (*vary)(void *context, uint64_t index, uint64_t draw, float *pixels, int32_t *label);
    uint32_t threads; /* that make the samples of a batch, where they take long; 0: one */
} tide_data;

/* Drawn digits: strokes with affine jitter, varying width and noise; a pure function of (seed, index), so nothing is
 * stored or downloaded. Endless: n_samples says how many make an epoch. */
typedef struct tide_digits {
    uint64_t seed;
    uint32_t channels, height, width;
    bool by_pixel; /* a label per pixel instead: 1 where there is ink, else 0 */
} tide_digits;
/* `digits` is borrowed by the data set. */
TIDE_API tide_status tide_data_digits(tide_digits *digits, uint64_t n_samples, tide_data *out);

/* Text by bytes or tokens: samples of `context` of them, each with the one that follows as its label. */
typedef struct tide_text {
    uint64_t seed;
    uint32_t context;
    const unsigned char *bytes; /* NULL: sentences by a small built-in grammar, a pure function of (seed, index) */
    uint64_t n_bytes;           /* bytes, or tokens */
    const uint32_t *tokens;     /* in place of bytes; NULL: none */
    uint32_t vocabulary;        /* tokens are below this */
} tide_text;
/* `text` and its bytes are borrowed by the data set. Endless: n_samples says how many make an epoch. */
TIDE_API tide_status tide_data_text(tide_text *text, uint64_t n_samples, tide_data *out);

/* Data in files, recognised by names and contents:
 *   a folder with MNIST's idx files (train-images-idx3-ubyte ...), or an idx file of images with its labels beside it
 *   a folder with CIFAR-10's binary files (data_batch_1.bin ... test_batch.bin), or one of them
 *   a folder with CIFAR-100's binary files (train.bin, test.bin), whose fine labels are learned
 *   any other file: text by bytes
 * What was packed by gzip is unpacked. Pipes and devices are refused. Where there are no files to test with, the last tenth is for that. Everything is checked
 * when it is opened; the files are mapped and must not shrink until they are closed. */
typedef struct tide_data_files tide_data_files;
/* context: of a text, tokens of a sample; 0: images are wanted, a text is refused. seed: which windows of a text. */
TIDE_API tide_status tide_data_files_open(const char *path, uint32_t context, uint64_t seed, tide_data_files **out);
TIDE_API void tide_data_files_close(tide_data_files *files);
TIDE_API const tide_data *tide_data_files_train(const tide_data_files *files);
TIDE_API const tide_data *tide_data_files_test(const tide_data_files *files);

/* ---- the learning rate ---- */

#define TIDE_CURVE_TABLE(X)            \
    X(TIDE_CURVE_CONSTANT, "constant") \
    X(TIDE_CURVE_STEP, "step")         \
    X(TIDE_CURVE_COSINE, "cosine")     \
    X(TIDE_CURVE_LINEAR, "linear")
typedef enum tide_curve {
#define TIDE_ENUM_MEMBER(e, name) e,
    TIDE_CURVE_TABLE(TIDE_ENUM_MEMBER)
#undef TIDE_ENUM_MEMBER
} tide_curve;

/* A warm-up along a straight line, then a curve. The rate is a function of the step's number, so a training that resumes
 * goes on along the same curve. */
typedef struct tide_schedule {
    tide_curve curve;
    uint64_t warmup_steps; /* step i < warmup_steps has the share (i + 1) / (warmup_steps + 1) of the rate */
    uint64_t period_steps; /* step: after so many the rate is multiplied by `factor`, again and again */
    float factor;
    uint64_t total_steps; /* cosine, linear: how many steps the curve takes, warm-up included */
    float final_share;    /* cosine, linear: of the rate, at the last step and after it */
} tide_schedule;
TIDE_API void tide_schedule_init(tide_schedule *schedule); /* constant */
/* Of step `step`, counted from 0; for a schedule that a trainer would accept. */
TIDE_API float tide_schedule_rate(const tide_schedule *schedule, float rate, uint64_t step);

/* ---- training ---- */

typedef struct tide_trainer tide_trainer;

typedef enum tide_train_mode {
    TIDE_MODE_PLANNED, /* from a plan that is proved before the first step; under a budget the second step is timed, and
                          from the third on another plan is followed, made with the costs measured there */
    TIDE_MODE_ONLINE,  /* no plan: plan.policy, an online one (NULL: "delta"), decides as it goes */
    TIDE_MODE_AUTO     /* the first step online, by "delta"; then from a plan made with the costs measured there; online
                          all the way if no plan fits */
} tide_train_mode;

/* One of several ranks that train together, each with a trainer of its own and the same options: they share the micro-batches of
 * a step (docs/micro.md), and all end up with the bits that one alone would have. Trainings from plans only. */
typedef struct tide_peers {
    uint32_t rank, count; /* a power of two that divides step.accumulate into powers of two */
    tide_message_fn message;
    void *context;
} tide_peers;

typedef struct tide_trainer_options {
    size_t size; /* sizeof(tide_trainer_options) */
    const tide_model *model;
    /* A network that changes: each step trains one of these parts of the model (blocks left out, shorter samples), drawn by
     * seed and step; one may stand here more than once. Their parameters are the model's, which is what is saved and
     * evaluated. Steps are online until a part comes up again, then planned (see tide_session); no micro-batches, no
     * traces. Borrowed until tide_trainer_destroy. */
    const tide_model *const *parts;
    uint32_t n_parts;            /* 0: the whole model, always */
    tide_device *device;         /* one with kernels */
    const tide_machine *machine; /* tiers and channels; align_bytes is raised to the device's */
    tide_step_options step;      /* device and machine are filled in here */
    tide_plan_options plan;      /* policy, decisions, budgets */
    const tide_data *data;       /* borrowed */
    uint64_t seed;               /* of weights, order and dropout */
    float learning_rate;
    tide_schedule schedule;
    bool own_schedule;     /* tide_trainer_load leaves these two as they are; else they are the checkpoint's then */
    const char *disk_path; /* folder for spilled bytes; NULL: the system's temporary folder */
    bool disk_checksums;   /* see tide_run_options [true] */
    tide_train_mode mode;
    const char *plan_folder; /* where plans made with measured costs are kept for the next training; NULL: nowhere */
    const tide_peers *peers; /* borrowed; NULL: none */
    bool disk_packing;       /* see tide_run_options [true] */
    const tide_loan *loan;   /* see tide_run_options; borrowed */
} tide_trainer_options;
TIDE_API void tide_trainer_options_init(tide_trainer_options *options);
/* TIDE_E_FIT fills *fit (may be NULL). */
TIDE_API tide_status tide_trainer_create(const tide_trainer_options *options, tide_fit_report *fit, tide_trainer **out);
TIDE_API void tide_trainer_destroy(tide_trainer *trainer);

/* One step on the next batch; *loss is the mean over the batch(es). report may be NULL. A loss that is not finite is
 * TIDE_E_DIVERGED, after the update. With step.skip_nonfinite such a step updates nothing and is TIDE_OK, unless it is the
 * 16th in a row: then skipping does not help. */
TIDE_API tide_status tide_trainer_step(tide_trainer *trainer, float *loss, tide_step_report *report);
/* The same, timed op by op on the device: op_ns[i] is the time of op i's first run, report->compute_ns (report may be
 * NULL) that of all runs, re-runs included. For tide_program_with_costs. */
TIDE_API tide_status tide_trainer_step_timed(tide_trainer *trainer, float *loss, tide_step_report *report,
                                             uint64_t *op_ns);
/* The same, with the time of every action of the plan; see tide_run_step_traced. */
TIDE_API tide_status tide_trainer_step_traced(tide_trainer *trainer, float *loss, tide_step_report *report,
                                              tide_timeline **out);
typedef struct tide_evaluation {
    double accuracy; /* share of the labels that are predicted rightly */
    double loss; /* mean over the labels of -log(probability), in nats; at most 104 each, where the probability is 0 */
} tide_evaluation;
/* Of `n_samples` samples of `data` (from index 0), with the weights as they are now. Runs a forward-only step of its own in
 * the same arena, so within the same budget; what is in its way waits on the disk tier. */
TIDE_API tide_status tide_trainer_test(tide_trainer *trainer, const tide_data *data, uint64_t n_samples,
                                       tide_evaluation *out);
/* Its accuracy alone. */
TIDE_API tide_status tide_trainer_evaluate(tide_trainer *trainer, const tide_data *data, uint64_t n_samples,
                                           double *accuracy);
/* Hash of all bytes of weights, optimizer state and running statistics: equal bits, equal hash. */
TIDE_API tide_status tide_trainer_hash(tide_trainer *trainer, uint64_t *hash);

/* ---- checkpoints (safetensors files, docs/formats.md) ---- */

/* Weights, optimizer state, running statistics and counters, between two steps. Where ranks own states (step.shard) all of them call it,
 * rank 0 with the path and the others with NULL: they send what they own. So it is with tide_trainer_save_weights; tide_trainer_hash and with
 * TIDE_SHARD_ALL tide_trainer_test are called by all ranks, too. The file at `path` is replaced when the
 * new one is complete and on disk, so that it is whole at any time. A value that is not finite is TIDE_E_DIVERGED: the
 * file stays as it is. */
TIDE_API tide_status tide_trainer_save(tide_trainer *trainer, const char *path);
/* Goes on where the saved training stood, to the same bits: model, optimizer, weight decay, clipping, batch, micro-batches,
 * data set and seed must be the same, and for the same bits the threads; policy and budgets need not. The learning rate and
 * its schedule come from the file, unless options.own_schedule says otherwise. A file that does not fit is refused with
 * TIDE_E_FORMAT and changes nothing; after TIDE_E_IO in the middle of its arrays the trainer refuses to step until another
 * is loaded. */
TIDE_API tide_status tide_trainer_load(tide_trainer *trainer, const char *path);
/* How many steps the training in a file was to have; 0: its schedule did not say. */
TIDE_API tide_status tide_checkpoint_total_steps(const char *path, uint64_t *steps);

/* ---- weights by name, as PyTorch's libraries have them (docs/weights.md) ---- */

typedef enum tide_weights_fault {
    TIDE_WEIGHTS_MISSING,     /* the model has it, the file has not */
    TIDE_WEIGHTS_UNEXPECTED,  /* the other way round */
    TIDE_WEIGHTS_OTHER_SHAPE, /* or of another type */
    TIDE_WEIGHTS_FAULTS       /* how many kinds there are */
} tide_weights_fault;

typedef struct tide_weights_options {
    size_t size;  /* sizeof(tide_weights_options) */
    bool partial; /* what is missing or of another shape stays as it is, what is unexpected is left alone */
    /* Called once per fault, before anything changes; may be NULL. text: "fc.weight (10 x 512)" and the like. */
    void (*fault)(void *context, tide_weights_fault fault, const char *text);
    void *context;
} tide_weights_options;
TIDE_API void tide_weights_options_init(tide_weights_options *options);
/* Parameters and running statistics from a safetensors file of torchvision's, Hugging Face's or ours, a checkpoint included;
 * options may be NULL. Optimizer state and counters stay as they are. Without `partial` any fault is TIDE_E_FORMAT and changes
 * nothing. After TIDE_E_IO in the middle of its arrays the trainer refuses to step until a checkpoint is loaded. */
TIDE_API tide_status tide_trainer_load_weights(tide_trainer *trainer, const char *path,
                                               const tide_weights_options *options);
/* Parameters and running statistics alone, which torchvision and transformers load as they are (strict=True). The rest as
 * tide_trainer_save. */
TIDE_API tide_status tide_trainer_save_weights(tide_trainer *trainer, const char *path);

/* What the steps from here on follow. */
TIDE_API const tide_schedule *tide_trainer_schedule(const tide_trainer *trainer);
TIDE_API float tide_trainer_rate(const tide_trainer *trainer, uint64_t step); /* of a step, counted from 0 */
TIDE_API uint64_t tide_trainer_steps_done(const tide_trainer *trainer);       /* those before a checkpoint included */
TIDE_API uint64_t tide_trainer_steps_skipped(const tide_trainer *trainer);    /* since it was created */

/* That of the last step, or of the first to come; until the next step. NULL: online, as yet. */
TIDE_API const tide_plan *tide_trainer_plan(const tide_trainer *trainer);
TIDE_API const tide_step *tide_trainer_step_program(const tide_trainer *trainer);
/* What plans are made for: the machine aligned as the device is, and the budgets in bytes. */
TIDE_API const tide_machine *tide_trainer_machine(const tide_trainer *trainer);
TIDE_API const tide_budgets *tide_trainer_budgets(const tide_trainer *trainer);

/* ---- networks that change from step to step ---- */

/* Trains a network that may be another one at every step (stochastic depth, sequences of any length): each step names the
 * model, and models share the parameters that have the same name. Ops go one by one through a session, so what
 * tide_session promises holds here: the budgets are hard, the bits are those of an arena without limits, and models that
 * come up again are planned. */
typedef struct tide_dynamic tide_dynamic;

typedef struct tide_dynamic_options {
    size_t size;                  /* sizeof(tide_dynamic_options) */
    tide_session_options session; /* device, machine, budgets, policies */
    tide_step_options step;       /* one micro-batch; device and machine are filled in */
    uint64_t seed;                /* of weights and dropout */
    float learning_rate;
} tide_dynamic_options;
TIDE_API void tide_dynamic_options_init(tide_dynamic_options *options);
TIDE_API tide_status tide_dynamic_create(const tide_dynamic_options *options, tide_dynamic **out);
TIDE_API void tide_dynamic_destroy(tide_dynamic *dynamic); /* NULL is fine */

/* One step of this model, which is prepared when it comes up for the first time and borrowed until tide_dynamic_destroy.
 * The 64 models that came up last stay prepared; an older one is prepared again, with the parameters as they are now.
 * plain: its input, row-major (tokens as floats); labels as tide_model_labels says, per sample. Parameters that are new get
 * their first value. report may be NULL. */
TIDE_API tide_status tide_dynamic_step(tide_dynamic *dynamic, const tide_model *model, const float *plain,
                                       const int32_t *labels, float *loss, tide_step_report *report);
/* Of all parameters and states that have come up: equal bits, equal hash. */
TIDE_API tide_status tide_dynamic_hash(tide_dynamic *dynamic, uint64_t *hash);
TIDE_API tide_session_stats tide_dynamic_get_stats(const tide_dynamic *dynamic);

#ifdef __cplusplus
}
#endif
#endif
