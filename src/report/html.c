/* The page: assets/ with the data of one report in it. Everything that comes from files (names) travels in base64 or
 * escaped, so that no name can become markup.
 *
 * Layout of the data: the columns of the table below, one after the other; the page's meta block says where each
 * begins. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "report/assets.h"
#include "report/meta.h"
#include "report/pack.h"

/* ---- the columns ---- */

static const tide_tensor *tensor_at(const void *r, size_t i) {
    return tide_program_tensor(((const tide_report *)r)->program, (tide_id)i);
}
static const tide_op *op_at(const void *r, size_t i) {
    return tide_program_op(((const tide_report *)r)->program, (tide_id)i);
}
static const tide_residency *stay_at(const void *r, size_t i) {
    return tide_plan_residency(((const tide_report *)r)->plan, (tide_id)i);
}
static const tide_copy *copy_at(const void *r, size_t i) {
    return tide_plan_copy(((const tide_report *)r)->plan, (tide_id)i);
}
static tide_action action_at(const void *r, size_t i) {
    return tide_plan_action(((const tide_report *)r)->plan, (uint32_t)i);
}
static const tide_choice *choice_at(const void *r, size_t i) { return &((const tide_report *)r)->choices.data[i]; }

/* Ids that may be TIDE_NONE travel as id + 1. */
static uint64_t or_zero(tide_id id) { return id == TIDE_NONE ? 0 : (uint64_t)id + 1; }

static uint64_t tensor_bytes(const void *r, size_t i) { return tensor_at(r, i)->size_bytes; }
static uint64_t tensor_class(const void *r, size_t i) { return tensor_at(r, i)->cls; }
static uint64_t tensor_start(const void *r, size_t i) { return tensor_at(r, i)->start; }
static uint64_t tensor_keep(const void *r, size_t i) { return tensor_at(r, i)->keep; }
static uint64_t tensor_producer(const void *r, size_t i) {
    return or_zero(tide_program_producer(((const tide_report *)r)->program, (tide_id)i));
}
static uint64_t op_phase(const void *r, size_t i) { return op_at(r, i)->phase; }
static uint64_t op_load(const void *r, size_t i) { return ((const tide_report *)r)->liveness->load_bytes[i]; }
static uint64_t op_first(const void *r, size_t i) { return or_zero(((const tide_report *)r)->first_run[i]); }

/* 0 RUN, 1 re-run, 2 SAVE, 3 LOAD, 4 RELOCATE */
static uint64_t action_kind(const void *r, size_t i) {
    tide_action_kind kind = action_at(r, i).kind;
    if (kind == TIDE_RUN) return ((const tide_report *)r)->acts[i].rerun;
    return (uint64_t)kind + 1;
}
static uint64_t action_queue(const void *r, size_t i) { return action_at(r, i).queue; }
static uint64_t action_target(const void *r, size_t i) { /* the op, or the tensor that moves */
    tide_action a = action_at(r, i);
    return a.kind == TIDE_RUN ? a.op : stay_at(r, a.uses[0])->tensor;
}
static uint64_t action_start(const void *r, size_t i) { return ((const tide_report *)r)->timeline->start_ns[i]; }
static uint64_t action_time(const void *r, size_t i) {
    const tide_timeline *t = ((const tide_report *)r)->timeline;
    return t->end_ns[i] - t->start_ns[i];
}
static uint64_t action_wait(const void *r, size_t i) { return ((const tide_report *)r)->acts[i].wait_ns; }
static uint64_t action_cause(const void *r, size_t i) { return or_zero(((const tide_report *)r)->acts[i].cause); }

static uint64_t stay_tensor(const void *r, size_t i) { return or_zero(stay_at(r, i)->tensor); }
static uint64_t stay_offset(const void *r, size_t i) { return stay_at(r, i)->offset_bytes; }
static uint64_t stay_bytes(const void *r, size_t i) { return stay_at(r, i)->size_bytes; }
static uint64_t stay_begin(const void *r, size_t i) { return ((const tide_report *)r)->stays[i].begin; }
static uint64_t stay_span(const void *r, size_t i) {
    const tide_stay *s = &((const tide_report *)r)->stays[i];
    return s->end - s->begin;
}
static uint64_t stay_from(const void *r, size_t i) { return ((const tide_report *)r)->stays[i].from_ns; }
static uint64_t stay_time(const void *r, size_t i) {
    const tide_stay *s = &((const tide_report *)r)->stays[i];
    return s->to_ns > s->from_ns ? s->to_ns - s->from_ns : 0;
}
static uint64_t stay_fate(const void *r, size_t i) { return ((const tide_report *)r)->stays[i].fate; }

static uint64_t copy_tensor(const void *r, size_t i) { return copy_at(r, i)->tensor; }
static uint64_t copy_tier(const void *r, size_t i) { return copy_at(r, i)->tier; }
static uint64_t copy_bytes(const void *r, size_t i) { return copy_at(r, i)->size_bytes; }
static uint64_t copy_begin(const void *r, size_t i) { return copy_at(r, i)->begin; }
static uint64_t copy_span(const void *r, size_t i) { return copy_at(r, i)->end - copy_at(r, i)->begin; }
static uint64_t copy_from(const void *r, size_t i) { return ((const tide_report *)r)->slots[i].from_ns; }
static uint64_t copy_time(const void *r, size_t i) {
    const tide__report_slot *s = &((const tide_report *)r)->slots[i];
    return s->to_ns > s->from_ns ? s->to_ns - s->from_ns : 0;
}

static uint64_t choice_kind(const void *r, size_t i) { return choice_at(r, i)->kind; }
static uint64_t choice_tensor(const void *r, size_t i) { return choice_at(r, i)->tensor; }
static uint64_t choice_before(const void *r, size_t i) { return or_zero(choice_at(r, i)->before); }
static uint64_t choice_after(const void *r, size_t i) { return or_zero(choice_at(r, i)->after); }
static uint64_t choice_tier(const void *r, size_t i) { return or_zero(choice_at(r, i)->tier); }
static uint64_t choice_out(const void *r, size_t i) { return or_zero(choice_at(r, i)->out); }
static uint64_t choice_in(const void *r, size_t i) { return or_zero(choice_at(r, i)->in); }
static uint64_t choice_last(const void *r, size_t i) { return or_zero(choice_at(r, i)->last_run); }
static uint64_t choice_next(const void *r, size_t i) { return or_zero(choice_at(r, i)->next_run); }
static uint64_t choice_from(const void *r, size_t i) { return choice_at(r, i)->from_ns; }
static uint64_t choice_away(const void *r, size_t i) { return choice_at(r, i)->to_ns - choice_at(r, i)->from_ns; }
static uint64_t choice_cost(const void *r, size_t i) { return choice_at(r, i)->cost_ns; }
static uint64_t choice_wait(const void *r, size_t i) { return choice_at(r, i)->wait_ns; }
static uint64_t choice_peak(const void *r, size_t i) { return choice_at(r, i)->at_peak; }

static uint64_t load_at(const void *r, size_t i) { return ((const tide_report *)r)->timeline->t_ns[i]; }
static uint64_t load_bytes(const void *r, size_t i) { return ((const tide_report *)r)->timeline->load_bytes[i]; }

static const tide__rank_act *rank_act_at(const void *r, size_t i) {
    return &((const tide_report *)r)->rank_acts.data[i];
}
static uint64_t rank_of(const void *r, size_t i) { return rank_act_at(r, i)->rank; }
static uint64_t rank_queue(const void *r, size_t i) { return rank_act_at(r, i)->queue; }
static uint64_t rank_kind(const void *r, size_t i) { return rank_act_at(r, i)->kind; }
static uint64_t rank_phase(const void *r, size_t i) { return rank_act_at(r, i)->phase; }
static uint64_t rank_start(const void *r, size_t i) { return rank_act_at(r, i)->start_ns; }
static uint64_t rank_time(const void *r, size_t i) { return rank_act_at(r, i)->time_ns; }
static uint64_t rank_wait(const void *r, size_t i) { return rank_act_at(r, i)->wait_ns; }
static uint64_t rank_cause(const void *r, size_t i) { return or_zero(rank_act_at(r, i)->cause); }
static uint64_t rank_peer(const void *r, size_t i) { return or_zero(rank_act_at(r, i)->peer); }

static uint64_t shape_n(const void *r, size_t i) { return (uint64_t)((const tide_report *)r)->shapes[i].n; }
static uint64_t shape_c(const void *r, size_t i) { return (uint64_t)((const tide_report *)r)->shapes[i].c; }
static uint64_t shape_h(const void *r, size_t i) { return (uint64_t)((const tide_report *)r)->shapes[i].h; }
static uint64_t shape_w(const void *r, size_t i) { return (uint64_t)((const tide_report *)r)->shapes[i].w; }

typedef enum rows { TENSORS, OPS, ACTIONS, STAYS, COPIES, CHOICES, POINTS, SHAPES, RANK_ACTS } rows;

static size_t row_count(const tide_report *r, rows of) {
    switch (of) {
    case TENSORS: return tide_program_tensor_count(r->program);
    case OPS: return tide_program_op_count(r->program);
    case ACTIONS: return r->timeline->n_actions;
    case STAYS: return tide_plan_residency_count(r->plan);
    case COPIES: return tide_plan_copy_count(r->plan);
    case CHOICES: return r->choices.count;
    case POINTS: return r->timeline->n_points;
    case RANK_ACTS: return r->rank_acts.count;
    case SHAPES: return r->shapes ? tide_program_tensor_count(r->program) : 0;
    }
    return 0;
}

typedef struct column {
    const char *name;
    rows of;
    int delta;
    tide__pack_number get;
} column;

static const column columns[] = {
    {"tensor.bytes", TENSORS, 0, tensor_bytes},
    {"tensor.class", TENSORS, 0, tensor_class},
    {"tensor.start", TENSORS, 0, tensor_start},
    {"tensor.keep", TENSORS, 0, tensor_keep},
    {"tensor.producer", TENSORS, 1, tensor_producer},
    {"tensor.n", SHAPES, 0, shape_n},
    {"tensor.c", SHAPES, 0, shape_c},
    {"tensor.h", SHAPES, 0, shape_h},
    {"tensor.w", SHAPES, 0, shape_w},
    {"op.phase", OPS, 0, op_phase},
    {"op.load", OPS, 1, op_load},
    {"op.first", OPS, 1, op_first},
    {"action.kind", ACTIONS, 0, action_kind},
    {"action.queue", ACTIONS, 0, action_queue},
    {"action.target", ACTIONS, 1, action_target},
    {"action.start", ACTIONS, 1, action_start},
    {"action.time", ACTIONS, 0, action_time},
    {"action.wait", ACTIONS, 0, action_wait},
    {"action.cause", ACTIONS, 0, action_cause},
    {"stay.tensor", STAYS, 1, stay_tensor},
    {"stay.offset", STAYS, 1, stay_offset},
    {"stay.bytes", STAYS, 0, stay_bytes},
    {"stay.begin", STAYS, 1, stay_begin},
    {"stay.span", STAYS, 0, stay_span},
    {"stay.from", STAYS, 1, stay_from},
    {"stay.time", STAYS, 0, stay_time},
    {"stay.fate", STAYS, 0, stay_fate},
    {"copy.tensor", COPIES, 1, copy_tensor},
    {"copy.tier", COPIES, 0, copy_tier},
    {"copy.bytes", COPIES, 0, copy_bytes},
    {"copy.begin", COPIES, 1, copy_begin},
    {"copy.span", COPIES, 0, copy_span},
    {"copy.from", COPIES, 1, copy_from},
    {"copy.time", COPIES, 0, copy_time},
    {"choice.kind", CHOICES, 0, choice_kind},
    {"choice.tensor", CHOICES, 1, choice_tensor},
    {"choice.before", CHOICES, 0, choice_before},
    {"choice.after", CHOICES, 0, choice_after},
    {"choice.tier", CHOICES, 0, choice_tier},
    {"choice.out", CHOICES, 0, choice_out},
    {"choice.in", CHOICES, 0, choice_in},
    {"choice.last", CHOICES, 0, choice_last},
    {"choice.next", CHOICES, 0, choice_next},
    {"choice.from", CHOICES, 0, choice_from},
    {"choice.away", CHOICES, 0, choice_away},
    {"choice.cost", CHOICES, 0, choice_cost},
    {"choice.wait", CHOICES, 0, choice_wait},
    {"choice.peak", CHOICES, 0, choice_peak},
    {"load.at", POINTS, 1, load_at},
    {"load.bytes", POINTS, 1, load_bytes},
    {"rank.of", RANK_ACTS, 1, rank_of},
    {"rank.queue", RANK_ACTS, 0, rank_queue},
    {"rank.kind", RANK_ACTS, 0, rank_kind},
    {"rank.phase", RANK_ACTS, 0, rank_phase},
    {"rank.start", RANK_ACTS, 1, rank_start},
    {"rank.time", RANK_ACTS, 0, rank_time},
    {"rank.wait", RANK_ACTS, 0, rank_wait},
    {"rank.cause", RANK_ACTS, 1, rank_cause},
    {"rank.peer", RANK_ACTS, 0, rank_peer},
};

/* What a run that was measured has of its own; absent without one. */
static const column ran_columns[] = {
    {"ran.start", ACTIONS, 1, action_start}, {"ran.time", ACTIONS, 0, action_time},
    {"ran.wait", ACTIONS, 0, action_wait},   {"ran.cause", ACTIONS, 0, action_cause},
    {"ran.from", STAYS, 1, stay_from},       {"ran.stayed", STAYS, 0, stay_time},
    {"ran.copied", COPIES, 1, copy_from},    {"ran.kept", COPIES, 0, copy_time},
    {"ran.at", POINTS, 1, load_at},          {"ran.bytes", POINTS, 1, load_bytes},
};

static const char *tensor_name(const void *r, size_t i) { return tensor_at(r, i)->name; }
static const char *op_name(const void *r, size_t i) { return op_at(r, i)->name; }
static const char *rank_name(const void *r, size_t i) { return rank_act_at(r, i)->name; }

static void pack_columns(const tide_report *r, const column *list, size_t n_columns, tide__pack *p, FILE *directory) {
    for (size_t i = 0; i < n_columns; i++) {
        size_t n = row_count(r, list[i].of);
        fprintf(directory, "%s\"%s\":[%zu,%zu,%d]", i ? "," : "", list[i].name, p->bytes.count, n, list[i].delta);
        tide__pack_column(p, r, list[i].get, n, list[i].delta);
    }
}

/* The data, and its directory as members of a JSON object. */
static void pack_all(const tide_report *r, tide__pack *p, FILE *directory) {
    fprintf(directory, "\"names\":{\"tensor\":[%zu,%zu]", p->bytes.count, row_count(r, TENSORS));
    tide__pack_names(p, r, tensor_name, row_count(r, TENSORS));
    fprintf(directory, ",\"op\":[%zu,%zu]", p->bytes.count, row_count(r, OPS));
    tide__pack_names(p, r, op_name, row_count(r, OPS));
    fprintf(directory, ",\"rank\":[%zu,%zu]},\"columns\":{", p->bytes.count, row_count(r, RANK_ACTS));
    tide__pack_names(p, r, rank_name, row_count(r, RANK_ACTS));
    pack_columns(r, columns, sizeof columns / sizeof *columns, p, directory);
    if (r->ran) {
        fputc(',', directory);
        pack_columns(r->ran, ran_columns, sizeof ran_columns / sizeof *ran_columns, p, directory);
    }
    fputc('}', directory);
}

/* ---- the page ---- */

static void write_escaped(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
            fprintf(f, "&#%d;", *text);
        else
            fputc((unsigned char)*text < 0x20 ? '?' : *text, f);
    }
}

static void write_asset(FILE *f, const tide__asset *asset) { fwrite(asset->bytes, 1, asset->size, f); }

typedef struct page {
    const tide_report *report;
    const char *meta;
    size_t meta_size;
    const tide__pack *data;
} page;

/* What stands for @name@ in the template. */
static void write_part(FILE *f, const page *p, const char *name, size_t length) {
    static const char *const scripts[] = {TIDE__REPORT_SCRIPTS};
    if (length == 5 && memcmp(name, "title", 5) == 0) write_escaped(f, tide_program_name(p->report->program));
    if (length == 5 && memcmp(name, "style", 5) == 0) write_asset(f, tide__asset_find("report.css"));
    if (length == 6 && memcmp(name, "script", 6) == 0)
        for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) write_asset(f, tide__asset_find(scripts[i]));
    if (length == 4 && memcmp(name, "meta", 4) == 0) tide__base64_write(f, (const uint8_t *)p->meta, p->meta_size);
    if (length == 4 && memcmp(name, "data", 4) == 0) tide__base64_write(f, p->data->bytes.data, p->data->bytes.count);
}

/* The template holds its parts as lines of their own: @title@ and so on. */
static void write_page(FILE *f, const page *p) {
    const tide__asset *html = tide__asset_find("report.html");
    const char *at = (const char *)html->bytes, *end = at + html->size;
    while (at < end) {
        const char *open = memchr(at, '@', (size_t)(end - at));
        const char *close = open ? memchr(open + 1, '@', (size_t)(end - open - 1)) : NULL;
        if (!close) break;
        fwrite(at, 1, (size_t)(open - at), f);
        write_part(f, p, open + 1, (size_t)(close - open - 1));
        at = close + 1;
    }
    fwrite(at, 1, (size_t)(end - at), f);
}

static tide_status gather(const tide_report *r, tide__pack *data, char **meta, size_t *meta_size) {
    FILE *stream = open_memstream(meta, meta_size);
    if (!stream) return tide__fail_memory();
    fputc('{', stream);
    tide_status status = tide__report_write_meta(r, stream);
    fputc(',', stream);
    pack_all(r, data, stream);
    fputc('}', stream);
    int failed = ferror(stream);
    if (fclose(stream) != 0 || failed || status != TIDE_OK || data->status != TIDE_OK) return tide__fail_memory();
    return TIDE_OK;
}

tide_status tide_report_write_html(const tide_report *r, const char *path) {
    TIDE_NEED(r, path);
    tide__pack data = {0};
    page p = {.report = r, .data = &data};
    char *meta = NULL;
    tide__writer w;
    tide_status status = gather(r, &data, &meta, &p.meta_size);
    p.meta = meta;
    if (status == TIDE_OK) status = tide__writer_open(&w, path);
    if (status == TIDE_OK) {
        write_page(w.stream, &p);
        status = tide__writer_commit(&w);
    }
    free(meta);
    tide__pack_free(&data);
    return status;
}
