/* See train_record.h. */
#include "train_record.h"

#include <stdlib.h>

#include <tidemark/report.h>

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

tide_status record_write(const train_record *r, const char *path, const char *model, const outcome *runs, int n,
                         uint64_t steps) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return complain(TIDE_E_MEMORY, "out of host memory");
    print_runs_json(stream, model, runs, n, steps);
    tide_status status = fclose(stream) == 0 ? tide_record_write(r->begun, r->begun_size, text, size, path)
                                             : complain(TIDE_E_MEMORY, "out of host memory");
    free(text);
    return status;
}

void record_free(train_record *r) {
    tide_timeline_destroy(r->timeline);
    free(r->begun);
    *r = (train_record){0};
}
