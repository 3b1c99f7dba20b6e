/* The rules of the verifier, one by one: two small plans that are right, and for each rule the smallest changes that
 * break it. The program is one training step in miniature; all tensors have 64 bytes.
 *
 *   op 0 f: in -> a     op 1 g: a -> b     op 2 h: b -> c (may share)     op 3 k: a, c -> d
 *   op 4 update: w, d -> w2 (must share w's bytes, cannot be re-run); w2 is carried to w
 */
#include "support/test.h"

#include <tidemark/plan.h>

#include "plan/plan_data.h"
#include "plan/verify/verify_rules.h"

enum { IN, W, A, B, C, D, W2, N_TENSORS };
enum { F, G, H, K, UPDATE };
enum { COMPUTE, RAM_OUT, RAM_IN, CLIENT_IN }; /* queues of the default machine */
enum { RAM, CLIENT };                         /* its tiers */

/* ---- the program ---- */
static void add_tensors(tide_program_builder *b) {
    static const char *names[] = {"in", "w", "a", "b", "c", "d", "w2"};
    for (tide_id i = 0; i < N_TENSORS; i++) {
        tide_start start = i == IN ? TIDE_START_CLIENT : i == W ? TIDE_START_PRESENT : TIDE_START_ABSENT;
        tide_tensor t = {.name = names[i], .size_bytes = 64, .start = start, .keep = i == W2};
        assert_ok(tide_program_builder_tensor(b, &t, NULL));
    }
}

typedef struct op_lists {
    uint32_t n_reads, n_inplace;
    tide_id reads[2], write;
    tide_inplace inplace;
} op_lists;

static void add_ops(tide_program_builder *b) {
    static const char *names[] = {"f", "g", "h", "k", "update"};
    static const op_lists lists[] = {{1, 0, {IN}, A, {0}},
                                     {1, 0, {A}, B, {0}},
                                     {1, 1, {B}, C, {0, 0, false}},
                                     {2, 0, {A, C}, D, {0}},
                                     {2, 1, {W, D}, W2, {0, 0, true}}};
    /* 0: default. 1: the same bits with a workspace. 2: other bits. */
    static const tide_variant variants[] = {{0, 10, 0}, {32, 5, 0}, {0, 1, 1}};
    for (tide_id i = 0; i <= UPDATE; i++) {
        tide_op op = {.name = names[i],
                      .rerunnable = i != UPDATE,
                      .n_reads = lists[i].n_reads,
                      .n_writes = 1,
                      .n_inplace = lists[i].n_inplace,
                      .n_variants = 3,
                      .reads = lists[i].reads,
                      .writes = &lists[i].write,
                      .inplace = &lists[i].inplace,
                      .variants = variants};
        assert_ok(tide_program_builder_op(b, &op, NULL));
    }
}

static tide_program *make_program(void) {
    tide_program_builder *b;
    tide_program *program;
    assert_ok(tide_program_builder_create("miniature", true, &b));
    add_tensors(b);
    add_ops(b);
    assert_ok(tide_program_builder_carry(b, (tide_carry){W2, W}));
    assert_ok(tide_program_builder_finish(b, &program));
    return program;
}

static tide_machine make_machine(void) {
    tide_machine m;
    tide_machine_init_default(&m);
    m.align_bytes = 16;
    m.tier[RAM].block_bytes = 32;
    m.tier[RAM].capacity_bytes = 1024;
    return m;
}

/* ---- writing plans down ---- */
static void residency(tide_plan *p, tide_id tensor, uint64_t offset, uint32_t begin, uint32_t end) {
    tide_residency r = {.tensor = tensor, .offset_bytes = offset, .size_bytes = 64, .begin = begin, .end = end};
    assert_ok(tide__vec_push(&p->residencies, r));
}

static void copy(tide_plan *p, tide_id tensor, uint32_t tier, uint64_t offset, uint32_t begin, uint32_t end) {
    tide_copy c = {tensor, tier, offset, 64, begin, end, false, false};
    assert_ok(tide__vec_push(&p->copies, c));
}

/* uses and waits end with TIDE_NONE. */
static void action(tide_plan *p, tide__action a, const uint32_t *uses, const uint32_t *waits) {
    a.uses = p->uses.count;
    a.waits = p->waits.count;
    for (; *uses != TIDE_NONE; uses++, a.n_uses++) assert_ok(tide__vec_push(&p->uses, *uses));
    for (; *waits != TIDE_NONE; waits++, a.n_waits++) assert_ok(tide__vec_push(&p->waits, *waits));
    assert_ok(tide__vec_push(&p->actions, a));
}

#define NOTHING ((const uint32_t[]){TIDE_NONE})
#define LIST(...) ((const uint32_t[]){__VA_ARGS__, TIDE_NONE})
#define RUN(op, uses, waits) action(p, (tide__action){TIDE_RUN, COMPUTE, op, 0, TIDE_NONE, 0, 0, 0, 0}, uses, waits)
#define SAVE(queue, c, r, waits) \
    action(p, (tide__action){TIDE_SAVE, queue, TIDE_NONE, 0, c, 0, 0, 0, 0}, LIST(r), waits)
#define LOAD(queue, c, r, waits) \
    action(p, (tide__action){TIDE_LOAD, queue, TIDE_NONE, 0, c, 0, 0, 0, 0}, LIST(r), waits)

#define RELOCATE(from, to, waits) \
    action(p, (tide__action){TIDE_RELOCATE, COMPUTE, TIDE_NONE, 0, TIDE_NONE, 0, 0, 0, 0}, LIST(from, to), waits)

static tide_plan *new_plan(const tide_program *program, const tide_machine *machine) {
    tide_plan *p;
    assert_ok(tide__plan_new(&p));
    p->signature = tide_program_signature(program);
    p->n_queues = 1 + machine->n_channels;
    p->n_tiers = machine->n_tiers;
    p->arena_bytes = 256;
    p->tier_bytes[RAM] = 64;
    return p;
}

/* Residencies of the swapping plan, and its copies. */
enum { R_W, R_IN, R_A, R_B, R_C, R_A2, R_D, R_W2 };
enum { COPY_IN, COPY_A };

/*  offset    0    1    2    3    4    5    6    7     action
 *     0     [w...........................................w2]
 *    64     [in......][.   b.........|c........ ]            h updates in place
 *   128          [a............][.   a again    ]            a goes to RAM and back to its old bytes
 *   192                                    [d............]
 */
static tide_plan *swap_plan(const tide_program *program, const tide_machine *machine) {
    tide_plan *p = new_plan(program, machine);
    residency(p, W, 0, 0, 8);
    residency(p, IN, 64, 0, 2);
    residency(p, A, 128, 1, 4);
    residency(p, B, 64, 3, 5);
    residency(p, C, 64, 4, 7);
    residency(p, A, 128, 5, 7);
    residency(p, D, 192, 6, 8);
    residency(p, W2, 0, 7, 8);
    p->residencies.data[R_W].at_start = p->residencies.data[R_W2].at_end = true;
    copy(p, IN, CLIENT, 0, 0, 1);
    copy(p, A, RAM, 0, 2, 6);
    p->copies.data[COPY_IN].at_start = true;
    LOAD(CLIENT_IN, COPY_IN, R_IN, NOTHING);
    RUN(F, LIST(R_IN, R_A), LIST(0));
    SAVE(RAM_OUT, COPY_A, R_A, LIST(1));
    RUN(G, LIST(R_A, R_B), NOTHING);
    RUN(H, LIST(R_B, R_C), NOTHING);
    LOAD(RAM_IN, COPY_A, R_A2, LIST(2, 3));
    RUN(K, LIST(R_A2, R_C, R_D), LIST(5));
    RUN(UPDATE, LIST(R_W, R_D, R_W2), NOTHING);
    return p;
}

/* The same with a re-run of f instead of the swap, and a workspace for it: `in` stays. w waits in RAM at first. */
enum { Q_IN = 0, Q_A, Q_B, Q_C, Q_A2, Q_D, Q_W, Q_W2, Q_SPACE, Q_SPACE2 };
enum { COPY_W = 1, COPY_W2 };

static tide_plan *rerun_plan(const tide_program *program, const tide_machine *machine) {
    tide_plan *p = new_plan(program, machine);
    p->arena_bytes = 288;
    residency(p, IN, 0, 0, 5);
    residency(p, A, 64, 1, 3);
    residency(p, B, 128, 2, 4);
    residency(p, C, 128, 3, 6);
    residency(p, A, 64, 4, 6);
    residency(p, D, 192, 5, 8);
    residency(p, W, 0, 6, 8);
    residency(p, W2, 0, 7, 9);
    residency(p, TIDE_NONE, 256, 1, 2);
    residency(p, TIDE_NONE, 192, 4, 5);
    p->residencies.data[Q_SPACE].size_bytes = p->residencies.data[Q_SPACE2].size_bytes = 32;
    copy(p, IN, CLIENT, 0, 0, 1);
    copy(p, W, RAM, 0, 0, 7);
    copy(p, W2, RAM, 0, 8, 9);
    p->copies.data[COPY_IN].at_start = p->copies.data[COPY_W].at_start = p->copies.data[COPY_W2].at_end = true;
    LOAD(CLIENT_IN, COPY_IN, Q_IN, NOTHING);
    RUN(F, LIST(Q_IN, Q_A, Q_SPACE), LIST(0));
    RUN(G, LIST(Q_A, Q_B), NOTHING);
    RUN(H, LIST(Q_B, Q_C), NOTHING);
    RUN(F, LIST(Q_IN, Q_A2, Q_SPACE2), NOTHING);
    RUN(K, LIST(Q_A2, Q_C, Q_D), NOTHING);
    LOAD(RAM_IN, COPY_W, Q_W, LIST(4));
    RUN(UPDATE, LIST(Q_W, Q_D, Q_W2), LIST(6));
    SAVE(RAM_OUT, COPY_W2, Q_W2, LIST(7));
    p->actions.data[1].variant = p->actions.data[4].variant = 1;
    return p;
}

/* b moves over bytes of its own; a goes to where `in` was while it may still be being saved. */
enum { S_W, S_IN, S_A, S_B, S_B2, S_A2, S_C, S_D, S_W2 };

/*  offset    0    1    2    3    4    5    6    7    8     action
 *     0     [w..........................................w2]
 *    64     [in......]              [a moved.......]
 *   128          [a...................]      [d.........]
 *   192                         [b2.......|c.......]          h updates in place
 *   224                    [b.....]
 */
static tide_plan *slide_plan(const tide_program *program, const tide_machine *machine) {
    tide_plan *p = new_plan(program, machine);
    p->arena_bytes = 288;
    residency(p, W, 0, 0, 9);
    residency(p, IN, 64, 0, 2);
    residency(p, A, 128, 1, 6);
    residency(p, B, 224, 3, 5);
    residency(p, B, 192, 4, 7);
    residency(p, A, 64, 5, 8);
    residency(p, C, 192, 6, 8);
    residency(p, D, 128, 7, 9);
    residency(p, W2, 0, 8, 9);
    p->residencies.data[S_W].at_start = p->residencies.data[S_W2].at_end = true;
    copy(p, IN, CLIENT, 0, 0, 1);
    copy(p, A, RAM, 0, 2, 3);
    p->copies.data[COPY_IN].at_start = true;
    LOAD(CLIENT_IN, COPY_IN, S_IN, NOTHING);
    RUN(F, LIST(S_IN, S_A), LIST(0));
    SAVE(RAM_OUT, COPY_A, S_A, LIST(1));
    RUN(G, LIST(S_A, S_B), NOTHING);
    RELOCATE(S_B, S_B2, NOTHING);
    RELOCATE(S_A, S_A2, NOTHING);
    RUN(H, LIST(S_B2, S_C), NOTHING);
    RUN(K, LIST(S_A2, S_C, S_D), LIST(2));
    RUN(UPDATE, LIST(S_W, S_D, S_W2), NOTHING);
    return p;
}

/* ---- breaking them ---- */
typedef struct fixture {
    tide_plan *p;
    tide_machine machine;
    tide_budgets budgets;
    tide__action *a; /* shorthands into p */
    tide_residency *r;
    tide_copy *c;
} fixture;

/* Words of the table below. */
#define RES(field, i) f->r[i].field
static void add_residency(fixture *f, uint32_t i) {
    tide_residency twin = f->r[i]; /* first: the push may move what f->r points to */
    assert_ok(tide__vec_push(&f->p->residencies, twin));
    f->r = f->p->residencies.data;
}
static void add_copy(fixture *f, uint32_t i) {
    tide_copy twin = f->c[i];
    assert_ok(tide__vec_push(&f->p->copies, twin));
    f->c = f->p->copies.data;
}
static void drop_waits(fixture *f, uint32_t i) { f->a[i].n_waits = 0; }
static void set_wait(fixture *f, uint32_t i, uint32_t wait) { f->p->waits.data[f->a[i].waits] = wait; }
static void set_use(fixture *f, uint32_t i, uint32_t k, uint32_t r) { f->p->uses.data[f->a[i].uses + k] = r; }
static void exchange(fixture *f, uint32_t i, uint32_t j) {
    tide__action a = f->a[i];
    f->a[i] = f->a[j];
    f->a[j] = a;
}

static void drop_last_action(fixture *f) {
    f->p->actions.count = 7;
    f->p->residencies.count = R_W2;
    RES(end, R_W) = RES(end, R_D) = 7;
}

static void update_again(fixture *f) {
    tide__action a = {.kind = TIDE_RUN, .op = UPDATE, .copy = TIDE_NONE};
    RES(end, R_W2) = 9;
    action(f->p, a, LIST(R_W, R_D, R_W2), NOTHING);
}

/* LOAD a comes where SAVE a was, and the other way round. */
static void load_before_save(fixture *f) {
    exchange(f, 2, 5);
    drop_waits(f, 2);
    RES(begin, R_A2) = 2;
}

/* X(name, the plan it starts from, the rule that is broken, the action of the verdict, the change) */
#define BREAK_TABLE(X)                                                                                                 \
    X(other_program, swap, PROGRAM, TIDE_NONE, f->p->signature.word[1]++)                                              \
    X(other_queues, swap, MACHINE, TIDE_NONE, f->p->n_queues++)                                                        \
    X(other_tiers, swap, MACHINE, TIDE_NONE, f->p->n_tiers--)                                                          \
    X(unknown_kind, swap, TABLE, 4, f->a[4].kind = (tide_action_kind)7)                                                \
    X(op_out_of_range, swap, TABLE, 3, f->a[3].op = 5)                                                                 \
    X(copy_out_of_range, swap, TABLE, 5, f->a[5].copy = TIDE_NONE)                                                     \
    X(run_with_copy, swap, TABLE, 3, f->a[3].copy = 0)                                                                 \
    X(move_with_op, swap, TABLE, 5, f->a[5].op = 0)                                                                    \
    X(residency_out_of_range, swap, TABLE, 6, set_use(f, 6, 1, 8))                                                     \
    X(tensor_out_of_range, swap, TABLE, TIDE_NONE, RES(tensor, R_B) = N_TENSORS)                                       \
    X(tier_out_of_range, swap, TABLE, TIDE_NONE, f->c[COPY_A].tier = TIDE_NONE)                                        \
    X(too_few_uses, swap, TABLE, 6, f->a[6].n_uses = 2)                                                                \
    X(missing_workspace, rerun, TABLE, 1, f->a[1].n_uses = 2)                                                          \
    X(uses_outside, swap, TABLE, 7, f->a[7].uses = SIZE_MAX)                                                           \
    X(waits_outside, swap, TABLE, 7, f->a[7].n_waits = UINT32_MAX)                                                     \
    X(waits_shared, swap, TABLE, 7, (f->a[7].waits = 0, f->a[7].n_waits = 2))                                          \
    X(run_on_channel, swap, QUEUE, 3, f->a[3].queue = RAM_OUT)                                                         \
    X(save_on_in_channel, swap, QUEUE, 2, f->a[2].queue = RAM_IN)                                                      \
    X(load_on_compute, swap, QUEUE, 5, f->a[5].queue = COMPUTE)                                                        \
    X(load_from_other_tier, swap, QUEUE, 5, f->a[5].queue = CLIENT_IN)                                                 \
    X(queue_out_of_range, swap, QUEUE, 5, f->a[5].queue = UINT32_MAX)                                                  \
    X(relocate_on_channel, slide, QUEUE, 4, f->a[4].queue = RAM_OUT)                                                   \
    X(relocate_with_copy, slide, TABLE, 4, f->a[4].copy = 0)                                                           \
    X(relocate_with_op, slide, TABLE, 4, f->a[4].op = 0)                                                               \
    X(relocate_of_one, slide, TABLE, 4, f->a[4].n_uses = 1)                                                            \
    X(relocate_to_nowhere, slide, TABLE, 4, set_use(f, 4, 1, 99))                                                      \
    X(relocate_to_other, slide, BINDING, 4, set_use(f, 4, 1, S_A2))                                                    \
    X(relocate_workspace, slide, BINDING, 4, (add_residency(f, S_B), RES(tensor, 9) = TIDE_NONE, set_use(f, 4, 0, 9))) \
    X(relocate_changes_size, slide, SIZE, 4, (RES(size_bytes, S_B) = 80, f->p->arena_bytes = 304))                     \
    X(relocate_dead, slide, LIFETIME, 5, RES(end, S_A) = 5)                                                            \
    X(relocate_to_itself, slide, CREATE, 4, set_use(f, 4, 1, S_B))                                                     \
    X(relocate_over_living, slide, OVERLAP, 4, RES(end, S_B) = 6)                                                      \
    X(relocate_over_kept, slide, OVERLAP, 4, (RES(at_end, S_B) = true, RES(end, S_B) = 9))                             \
    X(relocate_over_other, slide, OVERLAP, 5, RES(offset_bytes, S_A2) = 192)                                           \
    X(relocate_not_awaited, slide, REUSE, 7, drop_waits(f, 7))                                                         \
    X(wait_for_itself, swap, WAIT, 6, set_wait(f, 6, 6))                                                               \
    X(wait_forward, swap, WAIT, 6, set_wait(f, 6, 7))                                                                  \
    X(waits_descend, swap, WAIT, 5, set_wait(f, 5, 4))                                                                 \
    X(waits_twice, swap, WAIT, 5, set_wait(f, 5, 3))                                                                   \
    X(wrong_read, swap, BINDING, 6, set_use(f, 6, 0, R_B))                                                             \
    X(wrong_write, swap, BINDING, 3, set_use(f, 3, 1, R_C))                                                            \
    X(save_of_other_tensor, swap, BINDING, 2, set_use(f, 2, 0, R_IN))                                                  \
    X(tensor_as_workspace, rerun, BINDING, 4, set_use(f, 4, 2, Q_D))                                                   \
    X(no_such_variant, swap, VARIANT, 3, f->a[3].variant = 3)                                                          \
    X(other_bits, swap, VARIANT, 3, f->a[3].variant = 2)                                                               \
    X(rerun_other_variant, rerun, VARIANT, 4, (f->a[4].variant = 0, f->a[4].n_uses = 2))                               \
    X(residency_too_small, swap, SIZE, TIDE_NONE, RES(size_bytes, R_B) = 63)                                           \
    X(copy_too_small, swap, SIZE, TIDE_NONE, f->c[COPY_A].size_bytes = 32)                                             \
    X(move_changes_size, swap, SIZE, 5, RES(size_bytes, R_A2) = 80)                                                    \
    X(workspace_too_small, rerun, SIZE, 4, RES(size_bytes, Q_SPACE2) = 16)                                             \
    X(misaligned, swap, ALIGN, TIDE_NONE, RES(offset_bytes, R_D) = 184)                                                \
    X(moved_off_block, swap, ALIGN, 5, RES(offset_bytes, R_A2) = 144)                                                  \
    X(copy_off_block, swap, ALIGN, TIDE_NONE, (f->c[COPY_A].offset_bytes = 16, f->p->tier_bytes[RAM] = 96))            \
    X(copy_part_block, swap, ALIGN, TIDE_NONE, f->c[COPY_A].size_bytes = 80)                                           \
    X(arena_over_budget, swap, BUDGET, TIDE_NONE, f->budgets.arena_bytes = 255)                                        \
    X(tier_over_budget, swap, BUDGET, TIDE_NONE, f->budgets.tier_bytes[RAM] = 63)                                      \
    X(tier_over_capacity, swap, BUDGET, TIDE_NONE, f->machine.tier[RAM].capacity_bytes = 63)                           \
    X(outside_arena, swap, BUDGET, TIDE_NONE, RES(offset_bytes, R_D) = 208)                                            \
    X(outside_tier, swap, BUDGET, TIDE_NONE, f->c[COPY_A].offset_bytes = 32)                                           \
    X(offset_wraps, swap, BUDGET, TIDE_NONE, RES(offset_bytes, R_D) = UINT64_MAX - 15)                                 \
    X(begin_after_end, swap, LIFETIME, TIDE_NONE, RES(begin, R_B) = 6)                                                 \
    X(end_after_plan, swap, LIFETIME, TIDE_NONE, RES(end, R_D) = 9)                                                    \
    X(starts_late, swap, LIFETIME, TIDE_NONE, RES(begin, R_W) = 1)                                                     \
    X(ends_early, rerun, LIFETIME, TIDE_NONE, f->c[COPY_W2].end = 8)                                                   \
    X(read_after_end, swap, LIFETIME, 6, RES(end, R_C) = 6)                                                            \
    X(load_after_end, swap, LIFETIME, 5, f->c[COPY_A].end = 5)                                                         \
    X(made_after_end, swap, LIFETIME, 6, RES(end, R_D) = 6)                                                            \
    X(client_at_end, swap, CLIENT, TIDE_NONE, (f->c[COPY_IN].at_end = true, f->c[COPY_IN].end = 8))                    \
    X(client_not_at_start, swap, CLIENT, TIDE_NONE, f->c[COPY_IN].at_start = false)                                    \
    X(client_holds_result, swap, CLIENT, TIDE_NONE, f->c[COPY_A].tier = CLIENT)                                        \
    X(client_saved_to, swap, CLIENT, 0, f->a[0].kind = TIDE_SAVE)                                                      \
    X(client_twice, swap, START_MAP, TIDE_NONE, add_copy(f, COPY_IN))                                                  \
    X(present_nowhere, swap, START_MAP, TIDE_NONE, RES(at_start, R_W) = false)                                         \
    X(absent_at_start, swap, START_MAP, TIDE_NONE, (RES(at_start, R_A) = true, RES(begin, R_A) = 0))                   \
    X(client_in_arena, swap, START_MAP, TIDE_NONE, RES(at_start, R_IN) = true)                                         \
    X(workspace_at_start, rerun, START_MAP, TIDE_NONE, (RES(at_start, Q_SPACE) = true, RES(begin, Q_SPACE) = 0))       \
    X(ops_exchanged, swap, ORDER, 3, exchange(f, 3, 4))                                                                \
    X(own_order_too_early, swap, CREATE, 3, (exchange(f, 3, 4), f->p->reordered = true))                               \
    X(own_order_op_missing, swap, ORDER, TIDE_NONE, (drop_last_action(f), f->p->reordered = true))                     \
    X(op_missing, swap, ORDER, TIDE_NONE, drop_last_action(f))                                                         \
    X(update_twice, swap, RERUN, 8, update_again(f))                                                                   \
    X(made_twice, rerun, CREATE, 4, (set_use(f, 4, 1, Q_A), RES(end, Q_A) = 6))                                        \
    X(made_elsewhere, swap, CREATE, 6, RES(begin, R_D) = 5)                                                            \
    X(never_made, swap, CREATE, TIDE_NONE, add_residency(f, R_B))                                                      \
    X(load_first, swap, CREATE, 2, load_before_save(f))                                                                \
    X(run_before_load, swap, READY, 1, drop_waits(f, 1))                                                               \
    X(save_before_run, swap, READY, 2, drop_waits(f, 2))                                                               \
    X(load_races_save, swap, READY, 5, (f->a[5].n_waits = 1, set_wait(f, 5, 3)))                                       \
    X(two_at_once, swap, OVERLAP, 6, RES(offset_bytes, R_D) = 80)                                                      \
    X(two_at_start, rerun, OVERLAP, TIDE_NONE, add_copy(f, COPY_W))                                                    \
    X(pair_not_dead, swap, OVERLAP, 4, RES(end, R_B) = 6)                                                              \
    X(pair_shifted, swap, OVERLAP, 4, RES(offset_bytes, R_C) = 80)                                                     \
    X(no_pair, swap, OVERLAP, 3, RES(offset_bytes, R_B) = 128)                                                         \
    X(pair_needed_at_end, swap, OVERLAP, 7, RES(at_end, R_W) = true)                                                   \
    X(load_over_read, swap, REUSE, 5, f->a[5].n_waits = 1)                                                             \
    X(load_over_other, rerun, REUSE, 6, drop_waits(f, 6))                                                              \
    X(must_moved, swap, INPLACE, 7, (f->p->arena_bytes = 320, RES(offset_bytes, R_W2) = 256))                          \
    X(kept_nowhere, swap, END_MAP, TIDE_NONE, RES(at_end, R_W2) = false)                                               \
    X(workspace_at_end, rerun, END_MAP, TIDE_NONE, (RES(at_end, Q_SPACE) = true, RES(end, Q_SPACE) = 9))               \
    X(ends_elsewhere, rerun, CARRY, TIDE_NONE, (f->p->tier_bytes[RAM] = 128, f->c[COPY_W2].offset_bytes = 64))         \
    X(ends_in_arena, rerun, CARRY, TIDE_NONE, (f->c[COPY_W2].at_end = false, RES(at_end, Q_W2) = true))

#define FUNCTION(name, plan, rule, where, change) \
    static void name(fixture *f) { (void)(change); }
BREAK_TABLE(FUNCTION)
#undef FUNCTION

typedef struct breakage {
    const char *name;
    tide_plan *(*plan)(const tide_program *program, const tide_machine *machine);
    tide__rule rule;
    uint32_t action;
    void (*change)(fixture *f);
} breakage;

static const breakage breakages[] = {
#define LINE(name, plan, rule, where, change) {#name, plan##_plan, TIDE__RULE_##rule, where, name},
    BREAK_TABLE(LINE)
#undef LINE
};
enum { N_BREAKAGES = sizeof breakages / sizeof breakages[0] };

static fixture make_fixture(const tide_program *program, const breakage *b) {
    fixture f = {.machine = make_machine()};
    f.p = b->plan(program, &f.machine);
    tide_budgets_init(&f.budgets);
    f.budgets.arena_bytes = f.p->arena_bytes + 64;
    f.a = f.p->actions.data;
    f.r = f.p->residencies.data;
    f.c = f.p->copies.data;
    return f;
}

static void check_breakage(const tide_program *program, const breakage *b) {
    fixture f = make_fixture(program, b);
    tide_verdict verdict;
    b->change(&f);
    tide_status status = tide_plan_verify(f.p, program, &f.machine, &f.budgets, &verdict);
    if (status != TIDE_E_PLAN) fail_msg("%s: %s", b->name, tide_status_name(status));
    if (strcmp(verdict.rule, tide__rule_name(b->rule)) != 0 || verdict.action != b->action)
        fail_msg("%s: rule %s at action %u: %s", b->name, verdict.rule, verdict.action, verdict.message);
    assert_error_has(verdict.message);
    assert_true(strlen(verdict.message) > 10);
    tide_plan_destroy(f.p);
}

static void test_each_break_is_caught_by_its_rule(void **state) {
    (void)state;
    tide_program *program = make_program();
    for (size_t i = 0; i < N_BREAKAGES; i++) check_breakage(program, &breakages[i]);
    tide_program_destroy(program);
}

static void test_each_rule_is_broken_and_documented(void **state) {
    (void)state;
    static char text[1 << 16];
    FILE *file = fopen(TIDE_SOURCE_DIR "/docs/verify.md", "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (int rule = 0; rule < TIDE__RULE_COUNT; rule++) {
        char quoted[40];
        size_t n = 0;
        for (size_t i = 0; i < N_BREAKAGES; i++) n += breakages[i].rule == (tide__rule)rule;
        n += rule == TIDE__RULE_MESSAGE; /* test_verify_messages.c */
        snprintf(quoted, sizeof quoted, "`%s`", tide__rule_name((tide__rule)rule));
        if (n == 0 || !strstr(text, quoted)) fail_msg("rule %s: %zu cases, or not in docs/verify.md", quoted, n);
    }
    assert_string_equal(tide__rule_name(TIDE__RULE_COUNT), "");
}

/* ---- what must be accepted ---- */
static void accept(tide_plan *p, const tide_program *program, const tide_machine *machine,
                   const tide_budgets *budgets) {
    tide_verdict verdict = {.action = 7, .rule = "x"};
    assert_ok(tide_plan_verify(p, program, machine, budgets, &verdict));
    assert_string_equal(verdict.rule, "");
    assert_int_equal(verdict.action, TIDE_NONE);
    tide_plan_destroy(p);
}

static void test_right_plans_are_accepted(void **state) {
    (void)state;
    tide_program *program = make_program();
    tide_machine machine = make_machine();
    tide_budgets tight;
    tide_budgets_init(&tight);
    tight.arena_bytes = 256;
    tight.tier_bytes[RAM] = 64;
    accept(swap_plan(program, &machine), program, &machine, &tight);
    accept(swap_plan(program, &machine), program, &machine, NULL);
    accept(rerun_plan(program, &machine), program, &machine, NULL);
    accept(slide_plan(program, &machine), program, &machine, NULL);
    tide_program_destroy(program);
}

static void test_other_bits_may_be_allowed(void **state) {
    (void)state;
    tide_program *program = make_program();
    tide_machine machine = make_machine();
    tide_plan *p = swap_plan(program, &machine);
    p->actions.data[3].variant = 2;
    p->bits_any = true;
    accept(p, program, &machine, NULL);
    tide_program_destroy(program);
}

/* A value at the start that ends before action 0 leaves its bytes to action 0. */
static void test_start_value_may_end_at_once(void **state) {
    (void)state;
    tide_program *program = make_program();
    tide_machine machine = make_machine();
    tide_plan *p = rerun_plan(program, &machine);
    residency(p, W, 0, 0, 0);
    residency(p, W2, 0, 9, 9);
    tide_verdict verdict;
    p->residencies.data[p->residencies.count - 2].at_start = true;
    assert_status(tide_plan_verify(p, program, &machine, NULL, &verdict), TIDE_E_PLAN);
    assert_string_equal(verdict.rule, "create"); /* of the empty W2: nothing makes it */
    p->residencies.count--;
    p->residencies.data[Q_W2].at_end = true;
    accept(p, program, &machine, NULL);
    tide_program_destroy(program);
}

static void test_empty_plan_of_empty_program(void **state) {
    (void)state;
    tide_program_builder *b;
    tide_program *program;
    assert_ok(tide_program_builder_create("empty", false, &b));
    assert_ok(tide_program_builder_finish(b, &program));
    tide_machine machine = make_machine();
    accept(new_plan(program, &machine), program, &machine, NULL);
    tide_program_destroy(program);
}

static void test_wrong_arguments(void **state) {
    (void)state;
    tide_program *program = make_program();
    tide_machine machine = make_machine();
    tide_plan *p = swap_plan(program, &machine);
    tide_verdict verdict = {.rule = "untouched"};
    assert_status(tide_plan_verify(NULL, program, &machine, NULL, &verdict), TIDE_E_ARGUMENT);
    machine.align_bytes = 0;
    assert_status(tide_plan_verify(p, program, &machine, NULL, &verdict), TIDE_E_ARGUMENT);
    assert_string_equal(verdict.rule, "untouched");
    p->n_queues = 0;
    machine.align_bytes = 16;
    assert_status(tide_plan_verify(p, program, &machine, NULL, NULL), TIDE_E_PLAN);
    tide_plan_destroy(p);
    tide_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_plans_are_accepted),
        cmocka_unit_test(test_each_break_is_caught_by_its_rule),
        cmocka_unit_test(test_each_rule_is_broken_and_documented),
        cmocka_unit_test(test_other_bits_may_be_allowed),
        cmocka_unit_test(test_start_value_may_end_at_once),
        cmocka_unit_test(test_empty_plan_of_empty_program),
        cmocka_unit_test(test_wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
