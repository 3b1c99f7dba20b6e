/* See least.h. */
#include "plan/decide/bounds/least.h"

#include "base/size.h"
#include "plan/decide/swaps/tiers.h"
#include "plan/decide/bounds/unwind.h"
#include "plan/decide/policies/workspaces.h"

/* ---- operands ---- */

/* Blocks of the arena begin at multiples of the alignment, so all but the topmost take up whole ones. */
typedef struct pile {
    uint64_t bytes, padding; /* rounded up; the most that one of them was rounded up by */
    uint32_t align;
} pile;

static void add(pile *p, uint64_t bytes) {
    uint64_t rounded = (bytes + p->align - 1) & ~((uint64_t)p->align - 1);
    p->bytes += rounded;
    p->padding = tide__max_u64(p->padding, rounded - bytes);
}

static bool is_read_before(const tide_op *op, uint32_t pair) {
    for (uint32_t k = 0; k < pair; k++)
        if (op->inplace[k].read == op->inplace[pair].read) return true;
    return false;
}

/* A pair may need its bytes once only, even if the read lives on in a tier. */
static void add_operands(const tide_program *program, const tide_op *op, pile *p) {
    uint64_t shared = 0;
    for (uint32_t k = 0; k < op->n_reads; k++) add(p, tide_program_tensor(program, op->reads[k])->size_bytes);
    for (uint32_t k = 0; k < op->n_writes; k++) add(p, tide_program_tensor(program, op->writes[k])->size_bytes);
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        pile one = {.align = p->align};
        if (is_read_before(op, k)) continue;
        add(&one, tide_program_tensor(program, op->reads[op->inplace[k].read])->size_bytes);
        shared += one.bytes;
    }
    p->bytes -= shared;
}

static tide__least find_largest_op(const tide__policy_input *in) {
    tide__least least = {.op = TIDE_NONE};
    for (tide_id o = 0; o < tide_program_op_count(in->program); o++) {
        const tide_op *op = tide_program_op(in->program, o);
        pile p = {.align = in->machine->align_bytes};
        uint32_t variant = tide__workspaces_pick(op, in->options->bits_any, 0);
        add_operands(in->program, op, &p);
        if (op->variants[variant].workspace_bytes) add(&p, op->variants[variant].workspace_bytes);
        if (least.op != TIDE_NONE && p.bytes - p.padding <= least.bytes) continue;
        least.op = o;
        least.bytes = p.bytes - p.padding;
    }
    return least;
}

/* ---- everything ---- */

/* Tiers do not round up as the arena does, and what lies on top there need not. */
static tide_status raise_by_unwinding(const tide__policy_input *in, uint64_t tier_bytes, tide__least *least) {
    tide__model *model;
    tide_machine machine = *in->machine;
    tide__policy_input plain = *in;
    uint64_t bytes;
    tide_id op;
    if (tier_bytes) machine.align_bytes = 1;
    plain.machine = &machine;
    TIDE_TRY(tide__model_create(&plain, &model));
    uint64_t beside = tide__add_capped(tier_bytes, machine.align_bytes - UINT64_C(1));
    tide_status status =
        tide__unwind(model, in->target_bytes ? tide__add_capped(in->target_bytes, beside) : 0, &bytes, &op);
    tide__model_destroy(model);
    TIDE_TRY(status);
    bytes -= tide__min_u64(bytes, machine.align_bytes - UINT64_C(1));
    bytes -= tide__min_u64(bytes, tier_bytes);
    if (bytes <= least->bytes) return TIDE_OK;
    *least = (tide__least){.bytes = bytes, .op = op, .is_whole = true, .tier_bytes = tier_bytes};
    return TIDE_OK;
}

static uint64_t tier_bytes_of(const tide__policy_input *in) {
    tide__tiers tiers = tide__tiers_with_room(in);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < tiers.n; i++) bytes = tide__add_capped(bytes, tide__tier_room(in, tiers.tier[i]));
    return bytes;
}

/* More than all values together cannot be in the way. */
static uint64_t total_bytes(const tide_program *program) {
    uint64_t bytes = 0;
    for (tide_id t = 0; t < tide_program_tensor_count(program); t++)
        bytes = tide__add_capped(bytes, tide_program_tensor(program, t)->size_bytes);
    return bytes;
}

bool tide__policy_moves(const tide__policy *policy, const char *argument) {
    return !policy->stays && !tide__policy_has(argument, "nomove");
}

tide_status tide__policy_least(const tide__policy *policy, const tide__policy_input *in, tide__least *out) {
    tide__least least = find_largest_op(in);
    uint64_t tier_bytes = tide__policy_moves(policy, in->argument) ? tier_bytes_of(in) : 0;
    if (tier_bytes < total_bytes(in->program)) TIDE_TRY(raise_by_unwinding(in, tier_bytes, &least));
    *out = least;
    return TIDE_OK;
}
