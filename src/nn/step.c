/* One whole step from a model: forward and backward per micro-batch, then the update. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "nn/model.h"
#include "nn/step.h"
#include "nn/tape.h"

/* Unrolled layers of all micro-batches together: keeps ids and memory sane for hostile options. */
#define MAX_UNROLLED_LAYERS (UINT32_C(1) << 22)

struct tide_step {
    tide_program *program;
    tide__recipes recipes;
    const tide__recipe **ops; /* per op */
    tide__micro *micros;
    uint32_t n_micros;
    tide_id loss, update_scale;
    tide_state *states;
    uint32_t n_states;
    char **names; /* of states that are elsewhere */
    size_t n_names;
};

void tide_step_options_init(tide_step_options *options) { *options = (tide_step_options){.size = sizeof *options}; }

static bool is_plain(float value) { return isfinite(value) && value >= 0; }

static bool is_power_of_two(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

uint32_t tide__step_micros(const tide_step_options *o) { return o->accumulate > 1 ? o->accumulate : 1; }

/* The micro-batches of one rank are a subtree of all, and so are those of each pair of ranks, and so on. */
static tide_status check_share(const tide_step_options *o) {
    uint32_t all = tide__step_micros(o), own = o->micro_count ? o->micro_count : all;
    if (own == all && o->first_micro == 0) return TIDE_OK;
    if (all % own != 0 || o->first_micro >= all || o->first_micro % own != 0)
        return tide__fail(TIDE_E_ARGUMENT, "%u micro-batches from %u on are not the share of one rank of %u", own,
                          o->first_micro, all);
    if (!is_power_of_two(own) || !is_power_of_two(all / own))
        return tide__fail(TIDE_E_ARGUMENT, "%u ranks with %u micro-batches each: both must be powers of two", all / own,
                          own);
    return o->inference && o->shard != TIDE_SHARD_ALL
               ? tide__fail(TIDE_E_ARGUMENT, "only steps of training are shared by ranks")
               : TIDE_OK;
}

tide__share tide__step_share(const tide_step_options *o) {
    uint32_t all = tide__step_micros(o), own = o->micro_count ? o->micro_count : all;
    tide__share share = {.rank = o->first_micro / own, .n_ranks = all / own, .first = o->first_micro, .count = own};
    if (!o->inference || share.n_ranks == 1) return share;
    share.first = 0;
    share.count = 1;
    return share;
}

static tide_status check_options(const tide_step_options *o, const tide__graph *g) {
    if ((unsigned)o->optimizer > TIDE_ADAMW)
        return tide__fail(TIDE_E_ARGUMENT, "unknown optimizer %d", (int)o->optimizer);
    if (!is_plain(o->weight_decay) || !is_plain(o->clip_norm))
        return tide__fail(TIDE_E_ARGUMENT, "weight decay and clip norm are finite numbers from 0");
    if (o->client_weights && !o->inference)
        return tide__fail(TIDE_E_ARGUMENT, "only steps of inference have their parameters as inputs");
    if (o->fused_update && o->clip_norm > 0)
        return tide__fail(TIDE_E_ARGUMENT, "an update fused into backward cannot wait for the global gradient norm: "
                                           "choose one of fused update and norm clipping");
    if (o->fused_update && o->skip_nonfinite)
        return tide__fail(TIDE_E_ARGUMENT, "an update fused into backward cannot be skipped: gradients of other layers "
                                           "may still turn out not to be finite");
    if ((unsigned)o->shard > TIDE_SHARD_ALL) return tide__fail(TIDE_E_ARGUMENT, "unknown shard %d", (int)o->shard);
    if (o->dtype != TIDE_F32 && o->dtype != TIDE_BF16 && o->dtype != TIDE_F16)
        return tide__fail(TIDE_E_ARGUMENT, "activations are of f32, bf16 or f16");
    if (o->dtype == TIDE_F16 && o->device)
        return tide__fail(TIDE_E_UNSUPPORTED, "no device stores f16: it is for plans without a device");
    if (o->state_part_bytes != UINT64_MAX && o->state_part_bytes % 4096 != 0)
        return tide__fail(TIDE_E_ARGUMENT, "parts of states are multiples of 4096 bytes");
    if (o->accumulate > MAX_UNROLLED_LAYERS / g->layers.count)
        return tide__fail(TIDE_E_ARGUMENT, "%u micro-batches of %zu layers are too many", o->accumulate,
                          g->layers.count);
    TIDE_TRY(check_share(o));
    return o->machine ? tide_machine_validate(o->machine) : TIDE_OK;
}

/* ---- building ---- */

/* A projection without bias that nothing but the loss reads: its scores, a row per token and a column per word, would be
 * the largest values of a language model. They exist only where their probabilities are asked for. */
static uint32_t find_head(const tide__graph *g, const tide_step_options *o) {
    const uint32_t last = (uint32_t)g->layers.count - 1, before = tide__layer_input(g, last, 0);
    const tide__layer *layer = &g->layers.data[before];
    const bool plain = layer->desc.kind == TIDE_OP_FC_FWD && !layer->desc.bias && layer->n_consumers == 1;
    if (!plain || layer->desc.x.h != 1 || layer->desc.x.w != 1) return TIDE_NONE;
    return o->inference ? (o->scores_only ? before : TIDE_NONE) : before;
}

static tide_status tape_init(tide__tape *tape, const tide__graph *graph, const tide_step_options *options) {
    *tape = (tide__tape){.graph = graph, .options = options, .clip_scale = TIDE_NONE};
    tape->head = find_head(graph, options);
    const tide__share share = tide__step_share(options);
    tape->n_all = tide__step_micros(options);
    tape->n_micros = share.count;
    tape->first_micro = share.first;
    tape->rank = share.rank;
    tape->n_ranks = share.n_ranks;
    tape->nodes = malloc(graph->layers.count * sizeof *tape->nodes);
    tape->weights = malloc((graph->params.count + 1) * sizeof *tape->weights);
    tape->micros = malloc(tape->n_micros * sizeof *tape->micros);
    while (tape->n_micros >> tape->n_levels) tape->n_levels++;
    tape->partials = malloc((graph->params.count + 1) * tape->n_levels * sizeof *tape->partials);
    if (!tape->nodes || !tape->weights || !tape->micros || !tape->partials) return tide__fail_memory();
    for (size_t i = 0; i < graph->params.count; i++)
        tape->weights[i] = (tide__weight){.start = TIDE_NONE,
                                          .now = TIDE_NONE,
                                          .grad = TIDE_NONE,
                                          .state = TIDE_NONE,
                                          .optimizer = TIDE_NONE,
                                          .like = TIDE_NONE};
    tide__tape_count_elements(tape);
    return TIDE_OK;
}

static void free_names(char **names, size_t n) {
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

static void free_states(tide_state *states, size_t n) {
    for (size_t i = 0; i < n; i++) free(states[i].parts);
    free(states);
}

static void tape_deinit(tide__tape *tape) {
    free_names(tape->names.data, tape->names.count);
    tide__emitter_deinit(&tape->emit);
    free(tape->nodes);
    free(tape->weights);
    free(tape->micros);
    free(tape->partials);
    free_states(tape->states.data, tape->states.count);
    tide__vec_free(&tape->state_param);
    tide__vec_free(&tape->stakes);
    tide__vec_free(&tape->reads);
    tide__vec_free(&tape->pending);
    tide__vec_free(&tape->statistics);
}

/* Random ops of one micro-batch. */
static uint32_t count_draws(const tide__graph *graph) {
    uint32_t n = 0;
    for (size_t i = 1; i < graph->layers.count; i++)
        n += tide__op_rule_of(graph->layers.data[i].desc.kind, TIDE_FORWARD)->random;
    return n;
}

static tide_status unroll(tide__tape *tape) {
    uint32_t draws = count_draws(tape->graph);
    for (uint32_t micro = 0; micro < tape->n_micros; micro++) {
        tape->emit.micro = tape->first_micro + micro;
        tape->emit.counter = (uint64_t)tape->emit.micro * draws;
        TIDE_TRY(tide__tape_forward(tape));
        if (!tape->options->inference) TIDE_TRY(tide__tape_backward(tape));
    }
    TIDE_TRY(tide__tape_share_rest(tape));
    if (tape->n_ranks > 1 && !tape->options->inference) TIDE_TRY(tide__tape_chain_statistics(tape));
    if (tape->options->inference || tape->options->fused_update) return TIDE_OK;
    return tide__tape_update(tape);
}

static tide_status keep(const tide__tape *tape, tide_id value) {
    return tape->options->client_weights ? TIDE_OK : tide_program_builder_keep(tape->emit.builder, value);
}

/* Of weights at their owners the parts that are here. */
static tide_status keep_owned(tide__tape *tape, const tide__weight *weight) {
    tide_state *state = &tape->states.data[weight->state];
    for (uint32_t i = 0; i < weight->n_stakes; i++) {
        const tide_id now = tape->stakes.data[weight->first_stake + i].now;
        state->parts[i].from = now;
        if (now == TIDE_NONE) continue;
        if (state->at_end == TIDE_NONE) state->at_end = now;
        TIDE_TRY(keep(tape, now));
    }
    return TIDE_OK;
}

static tide_status carry(const tide__tape *tape, tide_id from, tide_id to) {
    return to == TIDE_NONE ? TIDE_OK
                           : tide_program_builder_carry(tape->emit.builder, (tide_carry){.from = from, .to = to});
}

/* The newest value of everything that was there at the start is there at the end. */
static tide_status carry_states(tide__tape *tape) {
    for (size_t i = 0; i < tape->graph->params.count; i++) {
        tide__weight *weight = &tape->weights[i];
        if (weight->state == TIDE_NONE) continue;
        if (tide__tape_is_gathered(tape, (uint32_t)i)) {
            TIDE_TRY(keep_owned(tape, weight));
        } else {
            tape->states.data[weight->state].at_end = weight->now;
            TIDE_TRY(keep(tape, weight->now));
        }
    }
    for (size_t i = 0; i < tape->states.count && !tape->options->client_weights; i++) {
        const tide_state *s = &tape->states.data[i];
        if (s->n_parts == 0) TIDE_TRY(carry(tape, s->at_end, s->at_start));
        for (uint32_t k = 0; k < s->n_parts; k++) TIDE_TRY(carry(tape, s->parts[k].from, s->parts[k].to));
    }
    return TIDE_OK;
}

static bool is_owned(const tide_state *s) { return s->n_parts > 0 && s->parts[0].owner != TIDE_NONE; }

/* An optimizer state is stored like the parameter that its update reads first. */
static void describe_optimizer_states(tide_step *step, const uint32_t *state_of) {
    for (uint32_t i = 0; i < step->n_states; i++) {
        tide_state *s = &step->states[i];
        if (s->cls != TIDE_CLASS_OPTIMIZER || is_owned(s)) continue;
        const tide_state *parameter = &step->states[state_of[tide_program_op(step->program, s->op)->reads[0]]];
        s->op = parameter->op;
        s->operand = parameter->operand;
    }
}

/* Names and the first op that reads each state: the op in whose layout it was created. */
static tide_status describe_states(tide_step *step) {
    uint32_t n_tensors = tide_program_tensor_count(step->program);
    uint32_t *state_of = malloc((n_tensors + 1) * sizeof *state_of);
    if (!state_of) return tide__fail_memory();
    memset(state_of, 0xff, n_tensors * sizeof *state_of);
    for (uint32_t i = 0; i < step->n_states; i++) {
        if (is_owned(&step->states[i])) continue;
        state_of[step->states[i].at_start] = i;
        step->states[i].name = tide_program_tensor(step->program, step->states[i].at_start)->name;
    }
    for (tide_id op = tide_program_op_count(step->program); op-- > 0;) {
        const tide_op *o = tide_program_op(step->program, op);
        for (uint32_t k = 0; k < o->n_reads && !o->message; k++) {
            if (state_of[o->reads[k]] == TIDE_NONE) continue;
            step->states[state_of[o->reads[k]]].op = op;
            step->states[state_of[o->reads[k]]].operand = k;
        }
    }
    describe_optimizer_states(step, state_of);
    free(state_of);
    return TIDE_OK;
}

/* A state with owners is stored like the values of its parameter, which is read by an op of this kind at every rank. */
static void describe_owned(const tide__tape *tape, tide_state *s, uint32_t param) {
    const tide__origin *origin = &tape->emit.tensors.data[tape->weights[param].like];
    tide_id op = 0;
    while (op < tape->emit.ops.count && tape->emit.ops.data[op] != origin->recipe) op++;
    s->op = op;
    s->operand = origin->operand;
}

/* Hands the vectors of the tape over to the step. */
static void take_over(tide_step *step, tide__tape *tape) {
    step->ops = tape->emit.ops.data;
    tape->emit.ops.data = NULL;
    step->states = tape->states.data;
    step->n_states = (uint32_t)tape->states.count;
    tape->states.data = NULL;
    tape->states.count = 0;
    step->names = tape->names.data;
    step->n_names = tape->names.count;
    tape->names.data = NULL;
    tape->names.count = 0;
    step->micros = tape->micros;
    step->n_micros = tape->n_micros;
    step->loss = tape->loss;
    step->update_scale = tape->options->skip_nonfinite ? tape->clip_scale : TIDE_NONE;
    tape->micros = NULL;
}

static tide_status build(const tide_model *model, const tide_step_options *options, tide_step *step) {
    tide__tape tape;
    tide_program_builder *builder = NULL;
    tide_status status;
    TIDE_TRY_GOTO(tape_init(&tape, &model->graph, options), done);
    TIDE_TRY_GOTO(tide_program_builder_create(model->name, true, &builder), done);
    tape.emit.builder = builder;
    tape.emit.recipes = &step->recipes;
    TIDE_TRY_GOTO(unroll(&tape), done);
    TIDE_TRY_GOTO(carry_states(&tape), done);
    TIDE_TRY_GOTO(tide_program_builder_finish(builder, &step->program), done);
    builder = NULL;
    for (size_t i = 0; i < tape.states.count; i++)
        if (is_owned(&tape.states.data[i])) describe_owned(&tape, &tape.states.data[i], tape.state_param.data[i]);
    take_over(step, &tape);
    status = describe_states(step);
done:
    tide_program_builder_destroy(builder);
    tape_deinit(&tape);
    return status;
}

tide_status tide__step_create_runnable(const tide_model *model, const tide_step_options *options, tide_step **out) {
    tide_step_options taken;
    tide_step_options_init(&taken);
    if (!model || !out) return tide__fail(TIDE_E_ARGUMENT, "a step needs a model and a place for its handle");
    TIDE_TRY(tide__options_take("tide_step_options", options, sizeof taken, &taken));
    options = &taken;
    TIDE_TRY(check_options(options, &model->graph));
    tide_step *step = calloc(1, sizeof *step);
    if (!step) return tide__fail_memory();
    tide__recipes_init(&step->recipes, options->device, options->machine, options->dtype);
    tide_status status = build(model, options, step);
    if (status != TIDE_OK) {
        tide_step_destroy(step);
        return tide__fail_in(status, "%s", model->name);
    }
    step->recipes.machine = NULL; /* borrowed until here */
    *out = step;
    return TIDE_OK;
}

tide_status tide_step_create(const tide_model *model, const tide_step_options *options, tide_step **out) {
    TIDE_TRY(tide__step_create_runnable(model, options, out));
    tide__recipes_drop_kernels(&(*out)->recipes);
    (*out)->recipes.device = NULL; /* borrowed until here */
    return TIDE_OK;
}

void tide_step_destroy(tide_step *step) {
    if (!step) return;
    tide_program_destroy(step->program);
    tide__recipes_deinit(&step->recipes);
    free(step->ops);
    free(step->micros);
    free_states(step->states, step->n_states);
    free_names(step->names, step->n_names);
    free(step);
}

/* ---- reading ---- */

const tide_program *tide_step_program(const tide_step *step) { return step->program; }

static const tide__recipe *recipe_of(const tide_step *step, tide_id op) {
    return op < tide_program_op_count(step->program) ? step->ops[op] : NULL;
}

tide_kernel *tide__step_kernel(const tide_step *step, tide_id op) {
    return step->ops[op] ? step->ops[op]->kernel : NULL;
}

const tide_op_desc *tide_step_op_desc(const tide_step *step, tide_id op) {
    const tide__recipe *recipe = recipe_of(step, op);
    return recipe ? &recipe->desc : NULL;
}

uint64_t tide_step_op_flops(const tide_step *step, tide_id op) {
    const tide__recipe *recipe = recipe_of(step, op);
    return recipe ? recipe->flops : 0;
}

uint64_t tide_step_op_bytes(const tide_step *step, tide_id op) {
    const tide__recipe *recipe = recipe_of(step, op);
    return recipe ? recipe->bytes : 0;
}

tide_id tide_step_input(const tide_step *step, uint32_t micro) {
    return micro < step->n_micros ? step->micros[micro].input : TIDE_NONE;
}

tide_id tide_step_label(const tide_step *step, uint32_t micro) {
    return micro < step->n_micros ? step->micros[micro].label : TIDE_NONE;
}

tide_id tide_step_loss(const tide_step *step) { return step->loss; }

tide_id tide_step_probabilities(const tide_step *step, uint32_t micro) {
    return micro < step->n_micros ? step->micros[micro].prob : TIDE_NONE;
}

tide_id tide_step_scores(const tide_step *step, uint32_t micro) {
    return micro < step->n_micros ? step->micros[micro].score : TIDE_NONE;
}

tide_id tide_step_update_scale(const tide_step *step) { return step->update_scale; }

uint32_t tide_step_state_count(const tide_step *step) { return step->n_states; }

const tide_state *tide_step_state(const tide_step *step, uint32_t i) {
    return i < step->n_states ? &step->states[i] : NULL;
}
