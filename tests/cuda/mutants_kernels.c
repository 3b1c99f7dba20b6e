/* Kernels that are wrong: bounds, alignment, barriers, races. The lanes of a group are 64. */
#include "support/test.h"

#include "cuda/mutants.h"
#include "cuda/texts.h"

/* Runs one of two texts of a kernel "f" over 128 floats. */
static void run_one(bool broken, const char *wrong, const char *right, uint32_t groups) {
    CUdeviceptr at = get_bytes(512);
    assert_cu(cu.cuMemsetD8_v2(at, 0, 512));
    run_text(broken ? wrong : right, "f", groups, at, 0);
    drop_bytes(at);
}

/* ---- bounds ---- */

#define TEXT_AT(offset) TEXT_ONE("f", "ld.global.f32 %f1, [%rd1" offset "];\n")
static void read_beyond(bool broken) { run_one(broken, TEXT_AT("+260"), TEXT_AT("+256"), 1); }
static void read_before(bool broken) { run_one(broken, TEXT_AT("+-4"), TEXT_AT("+0"), 1); }
static void write_beyond(bool broken) {
    run_one(broken, TEXT_ONE("f", "st.global.f32 [%rd1+512], 0f00000000;\n"),
            TEXT_ONE("f", "st.global.f32 [%rd1], 0f00000000;\n"), 2);
}
static void vector_over_the_end(bool broken) {
    run_one(broken, TEXT_ONE("f", "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2+512];\n"),
            TEXT_ONE("f", "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2+496];\n"), 1);
}

static void kernel_after_free(bool broken) {
    CUdeviceptr at = get_bytes(512), freed = get_bytes(512);
    if (broken) drop_bytes(freed);
    run_text(TEXT_TWICE, "twice", 1, freed, 0);
    if (!broken) drop_bytes(freed);
    drop_bytes(at);
}

#define TEXT_SHARED(lines)                                                                       \
    PTX_HEAD ".visible .entry f(.param .u64 p0) {\n.shared .align 4 .b8 room[256];\n" TEXT_INDEX \
             "mov.u32 %r5, room;\nshl.b32 %r6, %r4, 2;\nadd.s32 %r7, %r5, %r6;\n" lines "ret;\n}\n"
static void shared_beyond(bool broken) {
    run_one(broken, TEXT_SHARED("st.shared.u32 [%r7+4], %r4;\n"), TEXT_SHARED("st.shared.u32 [%r7], %r4;\n"), 1);
}
static void generic_shared_beyond(bool broken) {
    run_one(broken, TEXT_SHARED("cvt.u64.u32 %rd9, %r7;\ncvta.shared.u64 %rd9, %rd9;\nst.u32 [%rd9+256], %r4;\n"),
            TEXT_SHARED("cvt.u64.u32 %rd9, %r7;\ncvta.shared.u64 %rd9, %rd9;\nst.u32 [%rd9], %r4;\n"), 1);
}

#define TEXT_LOCAL(at)                                                                          \
    PTX_HEAD ".visible .entry f(.param .u64 p0) {\n.local .align 8 .b8 depot[16];\n" TEXT_INDEX \
             "mov.u64 %rd9, depot;\nst.local.u32 [%rd9+" at "], %r4;\nret;\n}\n"
static void local_beyond(bool broken) { run_one(broken, TEXT_LOCAL("16"), TEXT_LOCAL("12"), 1); }

/* ---- alignment and traps ---- */

static void read_unaligned(bool broken) { run_one(broken, TEXT_AT("+2"), TEXT_AT("+4"), 1); }
static void vector_unaligned(bool broken) {
    run_one(broken, TEXT_ONE("f", "ld.global.v2.f32 {%f1, %f2}, [%rd2+4];\n"),
            TEXT_ONE("f", "ld.global.v2.f32 {%f1, %f2}, [%rd2+8];\n"), 1);
}
static void shared_unaligned(bool broken) {
    run_one(broken, TEXT_SHARED("ld.shared.f64 %d1, [room+4];\n"), TEXT_SHARED("ld.shared.f64 %d1, [room+8];\n"), 1);
}
static void trap(bool broken) {
    run_one(broken, TEXT_ONE("f", "setp.eq.s32 %p1, %r1, 5;\n@%p1 trap;\n"),
            TEXT_ONE("f", "setp.eq.s32 %p1, %r1, 64;\n@%p1 trap;\n"), 1);
}

/* ---- barriers ---- */

#define TEXT_HALF(limit) TEXT_ONE("f", "setp.lt.u32 %p1, %r4, " limit ";\n@!%p1 bra AWAY;\nbar.sync 0;\nAWAY:\n")
static void barrier_for_some(bool broken) { run_one(broken, TEXT_HALF("32"), TEXT_HALF("64"), 1); }
#define TEXT_LEAVE(limit) TEXT_ONE("f", "setp.ge.u32 %p1, %r4, " limit ";\n@%p1 exit;\nbar.sync 0;\n")
static void leave_before_the_barrier(bool broken) { run_one(broken, TEXT_LEAVE("63"), TEXT_LEAVE("64"), 1); }
#define TEXT_TWO_BARRIERS(limit) \
    TEXT_ONE("f", "setp.lt.u32 %p1, %r4, " limit ";\n@%p1 bra ONE;\nbar.sync 0;\nbra END;\nONE:\nbar.sync 0;\nEND:\n")
static void two_barriers(bool broken) { run_one(broken, TEXT_TWO_BARRIERS("32"), TEXT_TWO_BARRIERS("64"), 1); }

/* ---- races ---- */

static void sum_without_barriers(bool broken) {
    CUdeviceptr at = get_bytes(512);
    assert_cu(cu.cuMemsetD8_v2(at, 0, 512));
    run_text(broken ? TEXT_SUM("") : TEXT_SUM("bar.sync 0;\n"), "sum", 2, at, 256);
    drop_bytes(at);
}
static void shared_written_by_all(bool broken) {
    run_one(broken, TEXT_SHARED("st.shared.u32 [room], %r4;\n"), TEXT_SHARED("st.shared.u32 [%r7], %r4;\n"), 1);
}
static void shared_read_too_early(bool broken) {
    run_one(broken, TEXT_SHARED("st.shared.u32 [%r7], %r4;\nld.shared.u32 %r9, [room];\n"),
            TEXT_SHARED("st.shared.u32 [%r7], %r4;\nbar.sync 0;\nld.shared.u32 %r9, [room];\n"), 1);
}
static void shared_byte_written_by_all(bool broken) {
    run_one(broken, TEXT_SHARED("st.shared.u8 [room+1], %r4;\n"),
            TEXT_SHARED("add.s32 %r8, %r5, %r4;\nst.shared.u8 [%r8], %r4;\n"), 1);
}

static void global_written_by_all(bool broken) {
    run_one(broken, TEXT_ONE("f", "st.global.u32 [%rd2], %r4;\n"), TEXT_ONE("f", "st.global.u32 [%rd1], %r4;\n"), 1);
}
static void counted_without_atomics(bool broken) {
    run_one(broken, TEXT_ONE("f", "ld.global.u32 %r5, [%rd2];\nadd.s32 %r5, %r5, 1;\nst.global.u32 [%rd2], %r5;\n"),
            TEXT_ONE("f", "atom.global.add.u32 %r5, [%rd2], 1;\n"), 1);
}
/* A group reads what another one writes: no barrier reaches that far. */
static void groups_that_meet(bool broken) {
    run_one(broken,
            TEXT_ONE("f", "xor.b32 %r5, %r1, 64;\nmul.wide.s32 %rd4, %r5, 4;\nadd.s64 %rd5, %rd2, %rd4;\n"
                          "st.global.u32 [%rd1], %r1;\nbar.sync 0;\nld.global.u32 %r6, [%rd5];\n"),
            TEXT_ONE("f", "xor.b32 %r5, %r1, 32;\nmul.wide.s32 %rd4, %r5, 4;\nadd.s64 %rd5, %rd2, %rd4;\n"
                          "st.global.u32 [%rd1], %r1;\nbar.sync 0;\nld.global.u32 %r6, [%rd5];\n"),
            2);
}
static void read_then_written_by_another(bool broken) {
    run_one(broken,
            TEXT_ONE("f", "xor.b32 %r5, %r1, 1;\nmul.wide.s32 %rd4, %r5, 4;\nadd.s64 %rd5, %rd2, %rd4;\n"
                          "ld.global.u32 %r6, [%rd5];\nst.global.u32 [%rd1], %r6;\n"),
            TEXT_ONE("f", "xor.b32 %r5, %r1, 1;\nmul.wide.s32 %rd4, %r5, 4;\nadd.s64 %rd5, %rd2, %rd4;\n"
                          "ld.global.u32 %r6, [%rd5];\nbar.sync 0;\nst.global.u32 [%rd1], %r6;\n"),
            1);
}

#define MUTANT(function, kind) \
    { #function, kind, function, false }
const mutant kernel_mutants[] = {
    MUTANT(read_beyond, MISUSE_KERNEL_BOUNDS),
    MUTANT(read_before, MISUSE_KERNEL_BOUNDS),
    MUTANT(write_beyond, MISUSE_KERNEL_BOUNDS),
    MUTANT(vector_over_the_end, MISUSE_KERNEL_BOUNDS),
    MUTANT(kernel_after_free, MISUSE_KERNEL_AFTER_FREE),
    MUTANT(shared_beyond, MISUSE_KERNEL_SHARED),
    MUTANT(generic_shared_beyond, MISUSE_KERNEL_SHARED),
    MUTANT(local_beyond, MISUSE_KERNEL_LOCAL),
    MUTANT(read_unaligned, MISUSE_KERNEL_ALIGNMENT),
    MUTANT(vector_unaligned, MISUSE_KERNEL_ALIGNMENT),
    MUTANT(shared_unaligned, MISUSE_KERNEL_ALIGNMENT),
    MUTANT(trap, MISUSE_KERNEL_TRAP),
    MUTANT(barrier_for_some, MISUSE_KERNEL_BARRIER),
    MUTANT(leave_before_the_barrier, MISUSE_KERNEL_BARRIER),
    MUTANT(two_barriers, MISUSE_KERNEL_BARRIER),
    MUTANT(sum_without_barriers, MISUSE_KERNEL_SHARED_RACE),
    MUTANT(shared_written_by_all, MISUSE_KERNEL_SHARED_RACE),
    MUTANT(shared_read_too_early, MISUSE_KERNEL_SHARED_RACE),
    MUTANT(shared_byte_written_by_all, MISUSE_KERNEL_SHARED_RACE),
    MUTANT(global_written_by_all, MISUSE_KERNEL_GLOBAL_RACE),
    MUTANT(counted_without_atomics, MISUSE_KERNEL_GLOBAL_RACE),
    MUTANT(groups_that_meet, MISUSE_KERNEL_GLOBAL_RACE),
    MUTANT(read_then_written_by_another, MISUSE_KERNEL_GLOBAL_RACE),
    {NULL, MISUSES, NULL, false},
};
