/* See train_record.h. */
#include "train_record.h"

#include <stdlib.h>

#include "progress.h"

tide_status record_begin(train_record *r, const tide_trainer *trainer) {
    tide_shape *shapes;
    tide_status status = find_shapes(tide_trainer_step_program(trainer), &shapes);
    if (status != TIDE_OK) return status;
    const tide_record_parts record = {.size = sizeof record,
                                      .machine = tide_trainer_machine(trainer),
                                      .program = tide_step_program(tide_trainer_step_program(trainer)),
                                      .plan = tide_trainer_plan(trainer),
                                      .timeline = r->timeline,
                                      .shapes = shapes,
                                      .budget_bytes = tide_trainer_budgets(trainer)->arena_bytes};
    status = tide_record_begin(&record, &r->begun, &r->begun_size);
    free(shapes);
    return status;
}

/* ---- several ranks ---- */

enum { CLOCK_ROUNDS = 9 };
static const uint64_t record_tag = UINT64_C(1) << 56; /* messages of steps have smaller ones */

/* What rank 0 needs to know of a rank. */
typedef struct rank_head {
    uint64_t begun_size, begin_ns;
} rank_head;

static tide_status pass(const train_ranks *r, bool sends, uint32_t peer, void *data, uint64_t size_bytes) {
    tide_net_ticket ticket;
    tide_status status = sends ? tide_net_send(r->net, peer, record_tag, data, size_bytes, NULL, NULL, &ticket)
                               : tide_net_receive(r->net, peer, record_tag, data, size_bytes, NULL, NULL, &ticket);
    return status == TIDE_OK ? tide_net_wait(r->net, ticket) : status;
}

/* How far the clock of a rank is ahead of that of rank 0: half of the way there and back is taken off, of the quickest of a few.
 * What lies within that half is no difference, as between ranks of one host. */
static tide_status measure_clock(const train_ranks *r, uint32_t peer, int64_t *ahead_ns) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < CLOCK_ROUNDS; i++) {
        uint64_t begin = now_ns(), there = 0;
        tide_status status = pass(r, true, peer, &begin, sizeof begin);
        if (status == TIDE_OK) status = pass(r, false, peer, &there, sizeof there);
        if (status != TIDE_OK) return status;
        uint64_t way = now_ns() - begin;
        int64_t ahead = (int64_t)(there - begin - way / 2);
        if (way >= least) continue;
        least = way;
        *ahead_ns = (uint64_t)(ahead < 0 ? -ahead : ahead) <= way / 2 ? 0 : ahead;
    }
    return TIDE_OK;
}

static tide_status tell_clock(const train_ranks *r) {
    tide_status status = TIDE_OK;
    for (int i = 0; i < CLOCK_ROUNDS && status == TIDE_OK; i++) {
        uint64_t now;
        status = pass(r, false, 0, &now, sizeof now);
        now = now_ns();
        if (status == TIDE_OK) status = pass(r, true, 0, &now, sizeof now);
    }
    return status;
}

static tide_status receive_rank(const train_ranks *r, uint32_t peer, const rank_head *head, char **kept,
                                tide_record_rank *out) {
    int64_t ahead = 0;
    char *text = *kept = malloc(head->begun_size + 1);
    out->begun = text;
    out->begun_size = head->begun_size;
    if (!text) return complain(TIDE_E_MEMORY, "out of host memory");
    tide_status status = pass(r, false, peer, text, head->begun_size);
    if (status == TIDE_OK) status = measure_clock(r, peer, &ahead);
    out->begin_ns = head->begin_ns - (uint64_t)ahead;
    return status;
}

/* The earliest is at 0. */
static void align_ranks(train_record *record) {
    uint64_t least = record->ranks[0].begin_ns;
    for (uint32_t i = 1; i < record->n_ranks; i++)
        if ((int64_t)(record->ranks[i].begin_ns - least) < 0) least = record->ranks[i].begin_ns;
    for (uint32_t i = 0; i < record->n_ranks; i++) record->ranks[i].begin_ns -= least;
}

static tide_status receive_ranks(train_record *record, const train_ranks *r, const rank_head *heads) {
    uint32_t n = r->n_trainers;
    record->ranks = calloc(n, sizeof *record->ranks);
    record->texts = calloc(n, sizeof *record->texts);
    record->hosts = calloc(n, sizeof *record->hosts);
    record->n_ranks = record->texts ? n : 0;
    if (!record->ranks || !record->texts || !record->hosts) return complain(TIDE_E_MEMORY, "out of host memory");
    record->ranks[0] =
        (tide_record_rank){.begun = record->begun, .begun_size = record->begun_size, .begin_ns = record->begin_ns};
    for (uint32_t i = 0; i < n; i++) {
        snprintf(record->hosts[i], sizeof record->hosts[i], "%s", tide_net_host(r->net, i));
        record->ranks[i].host = record->hosts[i];
        tide_status status = i ? receive_rank(r, i, &heads[i], &record->texts[i], &record->ranks[i]) : TIDE_OK;
        if (status != TIDE_OK) return status;
    }
    align_ranks(record);
    return TIDE_OK;
}

tide_status record_gather(train_record *record, const train_ranks *r) {
    if (!r->net || r->n_trainers == 1) return TIDE_OK;
    const rank_head mine = {record->begun_size, record->begin_ns};
    rank_head *heads = calloc(r->n_trainers, sizeof *heads);
    if (!heads) return complain(TIDE_E_MEMORY, "out of host memory");
    tide_status status = tide_net_allgather(r->net, &mine, sizeof mine, heads);
    if (status == TIDE_OK && tide_net_rank(r->net) == 0) {
        status = receive_ranks(record, r, heads);
    } else if (status == TIDE_OK) {
        status = pass(r, true, 0, record->begun, record->begun_size);
        if (status == TIDE_OK) status = tell_clock(r);
    }
    free(heads);
    return status;
}

/* ---- the file ---- */

static tide_status write_file(const train_record *r, const char *measured, size_t size, const char *path) {
    return r->ranks ? tide_record_write_ranks(r->ranks, r->n_ranks, measured, size, path)
                    : tide_record_write(r->begun, r->begun_size, measured, size, path);
}

tide_status record_write(const train_record *r, const char *path, const char *model, const outcome *runs, int n,
                         uint64_t steps) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return complain(TIDE_E_MEMORY, "out of host memory");
    print_runs_json(stream, model, runs, n, steps);
    tide_status status =
        fclose(stream) == 0 ? write_file(r, text, size, path) : complain(TIDE_E_MEMORY, "out of host memory");
    free(text);
    return status;
}

void record_free(train_record *r) {
    tide_timeline_destroy(r->timeline);
    for (uint32_t i = 1; i < r->n_ranks; i++) free(r->texts[i]);
    free(r->texts);
    free(r->ranks);
    free(r->hosts);
    free(r->begun);
    *r = (train_record){0};
}
