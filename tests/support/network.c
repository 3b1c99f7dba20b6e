/* See network.h. */
#include "support/network.h"

#include "support/test.h"

network network_make(const char *spec, uint32_t batch, const char *machine) {
    network n;
    tide_model_options mo;
    tide_step_options so;
    tide_model_options_init(&mo);
    mo.batch = batch;
    tide_step_options_init(&so);
    assert_ok(tide_machine_load(machine, &n.machine));
    so.machine = &n.machine;
    assert_ok(tide_model_create(spec, &mo, &n.model));
    assert_ok(tide_step_create(n.model, &so, &n.step));
    n.program = tide_step_program(n.step);
    return n;
}

void network_free(network *n) {
    tide_step_destroy(n->step);
    tide_model_destroy(n->model);
}
