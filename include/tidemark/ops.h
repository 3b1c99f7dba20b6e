/* Op descriptors: what a kernel computes, independent of device and layout. Shared by `nn`, which writes them, and
 * by devices, which turn them into kernels. Shapes are logical (N, C, H, W; unused dimensions are 1); how a device
 * lays them out is its own business (see tide_kernel_info).
 *
 * Operands, in order:           reads                                   writes
 *   CONV_FWD                    x, w [, bias]                           y
 *   CONV_BWD_DATA               w, dy                                   dx
 *   CONV_BWD_WEIGHTS            x, dy                                   dw [, dbias]
 *   FC_FWD / _BWD_DATA / _BWD_WEIGHTS   as CONV; x is (N, C, H, W) flattened to C*H*W inputs
 *   BN_FWD                      x, scale, shift                         y, mean, inv_std  (batch statistics)
 *   BN_STATS                    mean, inv_std, run_mean, run_var        run_mean', run_var'   (must in place, no re-run)
 *   BN_INFER                    x, scale, shift, run_mean, run_var      y
 *   BN_BWD                      x, dy, scale, mean, inv_std             dx, dscale, dshift    (dx may in place dy)
 *   RELU_FWD                    x                                       y [, signs (u8)]      (y may in place x)
 *   RELU_BWD                    y (or signs), dy                        dx                    (may in place dy)
 *   MAXPOOL_FWD                 x                                       y, index
 *   MAXPOOL_BWD                 index, dy                               dx
 *   AVGPOOL_FWD                 x                                       y
 *   AVGPOOL_BWD                 dy                                      dx
 *   ADD                         a, b                                    y                     (may in place either)
 *   SOFTMAX_LOSS_FWD            x, label (i32 per pixel)                prob, loss (1 float: mean over pixels)
 *   SOFTMAX_LOSS_BWD            prob, label                             dx                    (may in place prob)
 *   DROPOUT_FWD                 x                                       y                     (random; may in place x)
 *   DROPOUT_BWD                 dy                                      dx                    (draws as forward did; may in place dy)
 *   LRN_FWD                     x                                       y
 *   LRN_BWD                     x, y, dy                                dx
 *   REORDER                     a                                       b     the same values in the layout of another use
 *   SGD                         w, dw                                   w'                    (must in place w)
 *   MOMENTUM                    w, v, dw                                w', v'                (must in place)
 *   ADAM, ADAMW                 w, m, v, dw                             w', m', v'            (must in place)
 *   GRAD_NORM                   dw... [, sum]                           scale (1 float: clip factor), or sum'
 *   *update ops with clipping*  one more read, `scale`, at the end
 *   *updates of a part*         the same; m and v have the floats of the part alone
 *   ACCUMULATE                  acc, dw                                 acc'                  (may in place acc)
 *   ZERO                        -                                       a
 *   CUT                         a                                       part  some of the floats of a, as stored
 *   PASTE                       [a,] part                               a'    with the part's floats in their place (must in place a)
 *   CONCAT_FWD                  a0, a1, ... (n_parts, along channels)   y
 *   CONCAT_BWD                  dy                                      da0, da1, ...
 *   UPCONV_FWD / _BWD_DATA / _BWD_WEIGHTS   as CONV; transposed, stride = kernel: y is kernel times as high and wide
 *   LAYERNORM_FWD               x, scale, shift                         y, mean, inv_std  (one per row, that is per n)
 *   LAYERNORM_BWD               x, dy, scale, mean, inv_std             dx, dscale, dshift    (dx may in place dy)
 *   GELU_FWD                    x                                       y                     (may in place)
 *   GELU_BWD                    x, dy                                   dx                    (may in place dy)
 *   EMBEDDING_FWD               tokens (i32), table [, positions]       y
 *   EMBEDDING_BWD               tokens, dy                              dtable [, dpositions]
 *   ATTENTION_FWD               qkv                                     y, lse (one per head and token)
 *   ATTENTION_BWD               qkv, y, lse, dy                         dqkv
 *   SLICE                       a                                       b     the rows of one step
 *   STACK                       a0, a1, ... (steps, all alike)          b     the rows of all steps
 *   LSTM_FWD                    x [, h, c], w, bias                     h', c', gates
 *   LSTM_BWD_GATES              gates, c' [, c], dh' [, dc']            dgates [, dc]         (dgates may in place gates)
 *   LSTM_BWD_WEIGHTS            x [, h], dgates                         dw, dbias
 *   LSTM_BWD_DATA               w, dgates                               dx [, dh]
 *   HEAD_LOSS                   x, w, label (i32 per row)               dx, dw, loss (1 float: mean over rows)
 *   HEAD_SCORE                  x, w, label                             score (2 floats per row), loss
 *
 * Language models: a token is a row, so the activations of N samples of T tokens are (N * T, C, 1, 1), rows of a
 * sample next to each other, and a fully connected layer works on each token. Attention goes over qkv, the queries,
 * keys and values side by side in (N * T, 3 C, 1, 1); lse has one float per sample, head and token.
 *
 * What the names leave open, the same on every device:
 *   BN_STATS      run' = (1 - momentum) run + momentum * of this batch; the variance unbiased (m / (m - 1));
 *                 channels of a batch that is not finite stay as they are
 *   RELU          signs: bit i % 8 of byte i / 8 says whether element i of y, as stored, is above zero
 *   MAXPOOL       index = row * kernel_w + column inside the window, u8; of equal maxima the first
 *   AVGPOOL       divides by kernel_h * kernel_w, padding included
 *   DROPOUT       element i in plain row-major order is kept iff random(seed, step, counter, i) >= drop_rate, then
 *                 scaled by 1 / (1 - drop_rate)
 *   LRN           y = x * (lrn_k + lrn_alpha / lrn_size * sum of x^2 over lrn_size channels around it) ^ -lrn_beta
 *   SOFTMAX_LOSS  over the channels of each pixel; a classifier's scores are images of one pixel
 *   GELU          the approximation by tanh
 *   EMBEDDING     y = table[token] + positions[place in its sample]; gradients are dense
 *   ATTENTION     softmax of the scores (query times key, divided by the root of C / heads) times the values; a token
 *                 sees itself and those before. lse = log(sum of e^score) of a row. Works in tiles: nothing has a float
 *                 for every pair of tokens
 *   SLICE, STACK  step s of S steps has rows s, s + S, s + 2 S ...: that token of each sample
 *   LSTM          gates is (N, 4 H): input, forget, candidate, output after their functions; w is (4 H, inputs + H)
 *                 over x and h. The first step has no h and c (they are zero), the last one no dc'
 *   HEAD_LOSS     a fully connected layer without bias to y.c classes, the cross-entropy loss of its softmax and both
 *                 gradients, in chunks of rows: the scores of all rows never exist at once
 *   HEAD_SCORE    of every row the logarithm of its label's probability and the likeliest class, of equals the first
 *   GRAD_NORM     min(1, clip_norm / (norm of all reads together + 1e-6)); NaN where the norm is not finite: updates with
 *                 that scale change nothing
 *                 with many gradients several groups of them, one after the other, hand on the sum of squares (a double)
 *   bf16          values are widened where they are read and rounded to the nearest (halves to even) where they are written;
 *                 everything between is float32, sums over rows or images from the first to the last. float32 stay: weights
 *                 and all their gradients and states, means, inv_std, lse, prob, loss and score
 *   SGD, MOMENTUM, ADAM add weight_decay * w to the gradient; ADAMW shrinks w by lr * weight_decay instead
 */
#ifndef TIDEMARK_OPS_H
#define TIDEMARK_OPS_H

#include <stddef.h>
#include <stdint.h>

#include <tidemark/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_OP_TABLE(X)                                \
    X(TIDE_OP_CONV_FWD, "conv")                         \
    X(TIDE_OP_CONV_BWD_DATA, "conv.bwd-data")           \
    X(TIDE_OP_CONV_BWD_WEIGHTS, "conv.bwd-weights")     \
    X(TIDE_OP_FC_FWD, "fc")                             \
    X(TIDE_OP_FC_BWD_DATA, "fc.bwd-data")               \
    X(TIDE_OP_FC_BWD_WEIGHTS, "fc.bwd-weights")         \
    X(TIDE_OP_BN_FWD, "bn")                             \
    X(TIDE_OP_BN_STATS, "bn.stats")                     \
    X(TIDE_OP_BN_INFER, "bn.infer")                     \
    X(TIDE_OP_BN_BWD, "bn.bwd")                         \
    X(TIDE_OP_RELU_FWD, "relu")                         \
    X(TIDE_OP_RELU_BWD, "relu.bwd")                     \
    X(TIDE_OP_MAXPOOL_FWD, "maxpool")                   \
    X(TIDE_OP_MAXPOOL_BWD, "maxpool.bwd")               \
    X(TIDE_OP_AVGPOOL_FWD, "avgpool")                   \
    X(TIDE_OP_AVGPOOL_BWD, "avgpool.bwd")               \
    X(TIDE_OP_ADD, "add")                               \
    X(TIDE_OP_SOFTMAX_LOSS_FWD, "softmax-loss")         \
    X(TIDE_OP_SOFTMAX_LOSS_BWD, "softmax-loss.bwd")     \
    X(TIDE_OP_DROPOUT_FWD, "dropout")                   \
    X(TIDE_OP_DROPOUT_BWD, "dropout.bwd")               \
    X(TIDE_OP_LRN_FWD, "lrn")                           \
    X(TIDE_OP_LRN_BWD, "lrn.bwd")                       \
    X(TIDE_OP_REORDER, "reorder")                       \
    X(TIDE_OP_SGD, "sgd")                               \
    X(TIDE_OP_MOMENTUM, "momentum")                     \
    X(TIDE_OP_ADAM, "adam")                             \
    X(TIDE_OP_ADAMW, "adamw")                           \
    X(TIDE_OP_GRAD_NORM, "grad-norm")                   \
    X(TIDE_OP_ACCUMULATE, "accumulate")                 \
    X(TIDE_OP_ZERO, "zero")                             \
    X(TIDE_OP_CONCAT_FWD, "concat")                     \
    X(TIDE_OP_CONCAT_BWD, "concat.bwd")                 \
    X(TIDE_OP_UPCONV_FWD, "upconv")                     \
    X(TIDE_OP_UPCONV_BWD_DATA, "upconv.bwd-data")       \
    X(TIDE_OP_UPCONV_BWD_WEIGHTS, "upconv.bwd-weights") \
    X(TIDE_OP_LAYERNORM_FWD, "layernorm")               \
    X(TIDE_OP_LAYERNORM_BWD, "layernorm.bwd")           \
    X(TIDE_OP_GELU_FWD, "gelu")                         \
    X(TIDE_OP_GELU_BWD, "gelu.bwd")                     \
    X(TIDE_OP_EMBEDDING_FWD, "embedding")               \
    X(TIDE_OP_EMBEDDING_BWD, "embedding.bwd")           \
    X(TIDE_OP_ATTENTION_FWD, "attention")               \
    X(TIDE_OP_ATTENTION_BWD, "attention.bwd")           \
    X(TIDE_OP_SLICE, "slice")                           \
    X(TIDE_OP_STACK, "stack")                           \
    X(TIDE_OP_LSTM_FWD, "lstm")                         \
    X(TIDE_OP_LSTM_BWD_GATES, "lstm.bwd-gates")         \
    X(TIDE_OP_LSTM_BWD_WEIGHTS, "lstm.bwd-weights")     \
    X(TIDE_OP_LSTM_BWD_DATA, "lstm.bwd-data")           \
    X(TIDE_OP_HEAD_LOSS, "head-loss")                   \
    X(TIDE_OP_HEAD_SCORE, "head-score")                 \
    X(TIDE_OP_CUT, "cut")                               \
    X(TIDE_OP_PASTE, "paste")

typedef enum tide_op_kind {
#define TIDE_ENUM_MEMBER(e, name) e,
    TIDE_OP_TABLE(TIDE_ENUM_MEMBER)
#undef TIDE_ENUM_MEMBER
        TIDE_OP_KIND_COUNT
} tide_op_kind;

typedef struct tide_shape {
    int64_t n, c, h, w;
} tide_shape;

typedef struct tide_op_desc {
    tide_op_kind kind;
    tide_shape x, y; /* of the layer's input and output (gradients have the same shapes) */
    int32_t kernel_h, kernel_w, stride, pad_h, pad_w; /* conv, pool; padding on either side */
    int32_t bias;                                     /* conv, fc: has a bias operand; embedding: has positions */
    int32_t needs_dx;    /* informative: 0 for the first layer, whose backward yields no dx */
    float eps, momentum; /* bn, layernorm: eps, share of the new value; adam: eps, 0 means 1e-8 */
    float drop_rate;     /* dropout */
    float loss_scale;    /* softmax-loss.bwd, head-loss: a factor on dx (1 / micro-batches of the step); 0 means 1 */
    int32_t lrn_size;
    float lrn_alpha, lrn_beta, lrn_k;
    uint64_t elements; /* update, accumulate, zero, grad-norm, cut, paste: floats of the (whole) operand as stored */
    uint32_t n_grads;  /* grad-norm: number of reads */
    const uint64_t *grad_elements; /* grad-norm: floats of each read as stored; owned by the caller, copied */
    int64_t vocabulary;            /* embedding: rows of the table */
    int64_t positions;             /* embedding with positions: rows of their table, at least x.c; 0: x.c */
    int32_t heads, context;        /* attention: heads of a token; tokens of a sample */
    int32_t steps, step;           /* slice, stack: number of steps; slice: which one */
    int32_t has_prev,
        has_next; /* lstm, grad-norm: there is a step, or a group, before, after this one; paste: others came before */
    uint32_t n_parts;             /* concat: number of parts, at most TIDE_KERNEL_MAX_OPERANDS */
    const int64_t *part_channels; /* concat: channels of each part, y.c in sum; owned by the caller, copied */
    float beta1, beta2, weight_decay, clip_norm; /* optimizers (momentum's mu is beta1) */
    /* update of some of the weight's floats, as stored: part_elements of them from part_first on. Its state has that many; w and
     * dw have all `elements`, and the other floats of w stay as they are. 0: all of them.
     * cut, paste: the floats of the part. A first paste leaves the other floats of its result open. */
    uint64_t part_first, part_elements;
    int32_t clipped; /* update: has the extra `scale` read */
    int32_t bf16;    /* activations and their gradients are stored as bf16; see below */
    int32_t signs;   /* relu: backward reads a bit per element, which forward writes, in place of y */
    /* REORDER: from the layout of operand `from_operand` of `from` to that of `to_operand` of `to`
     * (operands numbered reads first, then writes). */
    const struct tide_op_desc *from, *to; /* owned by the caller, must outlive kernel creation only */
    uint32_t from_operand, to_operand;
} tide_op_desc;

/* "conv.bwd-data" */
TIDE_API const char *tide_op_kind_name(tide_op_kind kind);

#ifdef __cplusplus
}
#endif
#endif
