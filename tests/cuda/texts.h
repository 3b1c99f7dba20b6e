/* Kernels for tests, written by hand, so that they need no compiler of NVIDIA's. Groups have 64 lanes unless a text says
 * otherwise. */
#ifndef TIDE_TESTS_CUDA_TEXTS_H
#define TIDE_TESTS_CUDA_TEXTS_H

#include "cuda/loaded.h"

/* i = group * size of a group + lane, in %r1; %rd1 = address of float i of parameter 0. */
#define TEXT_INDEX                     \
    ".reg .pred %p<8>;\n"              \
    ".reg .b16 %h<8>;\n"               \
    ".reg .b32 %r<32>;\n"              \
    ".reg .f32 %f<16>;\n"              \
    ".reg .f64 %d<16>;\n"              \
    ".reg .b64 %rd<32>;\n"             \
    "mov.u32 %r2, %ctaid.x;\n"         \
    "mov.u32 %r3, %ntid.x;\n"          \
    "mov.u32 %r4, %tid.x;\n"           \
    "mad.lo.s32 %r1, %r2, %r3, %r4;\n" \
    "ld.param.u64 %rd2, [p0];\n"       \
    "cvta.to.global.u64 %rd2, %rd2;\n" \
    "mul.wide.s32 %rd3, %r1, 4;\n"     \
    "add.s64 %rd1, %rd2, %rd3;\n"
#define TEXT_ONE(name, body) PTX_HEAD ".visible .entry " name "(.param .u64 p0) {\n" TEXT_INDEX body "ret;\n}\n"
#define TEXT_TWO(name, body) \
    PTX_HEAD ".visible .entry " name "(.param .u64 p0, .param .u32 p1) {\n" TEXT_INDEX body "ret;\n}\n"

/* x[i] = 2 x[i] + 1 for i < n. */
#define TEXT_TWICE                                                                                 \
    TEXT_TWO("twice", "ld.param.u32 %r5, [p1];\nsetp.ge.u32 %p1, %r1, %r5;\n@%p1 bra DONE;\n"      \
                      "ld.global.f32 %f1, [%rd1];\nfma.rn.f32 %f1, %f1, 0f40000000, 0f3F800000;\n" \
                      "st.global.f32 [%rd1], %f1;\nDONE:\n")

/* The first of a group's 64 floats becomes their sum; `wait` stands where lanes must meet. */
#define TEXT_SUM(wait)                                                                                        \
    PTX_HEAD ".extern .shared .align 4 .b8 room[];\n"                                                         \
             ".visible .entry sum(.param .u64 p0) {\n" TEXT_INDEX                                             \
             "mov.u32 %r5, room;\nshl.b32 %r6, %r4, 2;\nadd.s32 %r7, %r5, %r6;\nld.global.f32 %f1, [%rd1];\n" \
             "st.shared.f32 [%r7], %f1;\nmov.u32 %r8, 32;\n"                                                  \
             "AGAIN:\n" wait "setp.ge.u32 %p1, %r4, %r8;\n@%p1 bra NEXT;\nshl.b32 %r9, %r8, 2;\n"             \
             "add.s32 %r10, %r7, %r9;\nld.shared.f32 %f2, [%r10];\nld.shared.f32 %f3, [%r7];\n"               \
             "add.rn.f32 %f3, %f3, %f2;\nst.shared.f32 [%r7], %f3;\n"                                         \
             "NEXT:\nshr.u32 %r8, %r8, 1;\nsetp.ne.s32 %p2, %r8, 0;\n@%p2 bra AGAIN;\n"                       \
             "setp.ne.s32 %p3, %r4, 0;\n@%p3 bra DONE;\nld.shared.f32 %f4, [room];\n"                         \
             "st.global.f32 [%rd1], %f4;\nDONE:\nret;\n}\n"

#endif
