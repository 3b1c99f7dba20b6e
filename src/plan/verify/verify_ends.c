/* The two ends of a step: where values are when it starts, where they must be when it ends, and, in a repeating
 * program, that the end of one step is the start of the next. */
#include <stdlib.h>

#include "plan/verify/verify_state.h"

/* ---- start map ---- */

/* PRESENT: somewhere. CLIENT: its one copy in a client tier (the shape rules keep anything else out of there).
 * ABSENT: nowhere. Workspaces: nowhere, they hold no value. */
static tide_status check_start_place(tide__verifier *v, uint32_t h, uint32_t *n_places) {
    const tide__holding *holding = &v->holding[h];
    const tide_tensor *tensor = tide_program_tensor(v->program, holding->tensor);
    bool client = tide__in_client_tier(v, holding);
    bool right = tensor && (client ? tensor->start == TIDE_START_CLIENT : tensor->start == TIDE_START_PRESENT);
    TIDE__DEMAND(right, START_MAP, TIDE_NONE, "%s cannot be there at the start", tide__label_holding(v, h).text);
    TIDE__DEMAND(!client || n_places[holding->tensor] == 0, START_MAP, TIDE_NONE, "%s is in the client tier twice",
                 tide__label_tensor(v, holding->tensor).text);
    n_places[holding->tensor]++;
    return TIDE_OK;
}

static tide_status check_start_map(tide__verifier *v, uint32_t *n_places) {
    for (uint32_t h = 0; h < v->n_holdings; h++)
        if (v->holding[h].at_start) TIDE_TRY(check_start_place(v, h, n_places));
    for (uint32_t t = 0; t < v->n_tensors; t++)
        TIDE__DEMAND(tide_program_tensor(v->program, t)->start == TIDE_START_ABSENT || n_places[t] > 0, START_MAP,
                     TIDE_NONE, "%s has no place at the start", tide__label_tensor(v, t).text);
    return TIDE_OK;
}

tide_status tide__verify_start(tide__verifier *v) {
    uint32_t *n_places = calloc((size_t)v->n_tensors + 1, sizeof *n_places);
    if (!n_places) return tide__fail_memory();
    tide_status status = check_start_map(v, n_places);
    free(n_places);
    return status;
}

/* ---- end map ----
 * That a holding of the end map still has its value needs no check here: its interval reaches the end, and the walk
 * lets nobody take bytes of a holding inside its interval, nor hand over one that is in the end map. */
static tide_status check_end_map(tide__verifier *v, bool *has_place) {
    for (uint32_t h = 0; h < v->n_holdings; h++) {
        if (!v->holding[h].at_end) continue;
        TIDE__DEMAND(v->holding[h].tensor != TIDE_NONE, END_MAP, TIDE_NONE, "%s holds no value to keep",
                     tide__label_holding(v, h).text);
        has_place[v->holding[h].tensor] = true;
    }
    for (uint32_t t = 0; t < v->n_tensors; t++)
        TIDE__DEMAND(!tide_program_tensor(v->program, t)->keep || has_place[t], END_MAP, TIDE_NONE,
                     "%s is needed at the end and has no place there", tide__label_tensor(v, t).text);
    return TIDE_OK;
}

/* ---- carries ---- */

/* One line of the end map, in an order that can be searched. */
typedef struct end_place {
    tide_id tensor;
    uint32_t space;
    uint64_t offset, size;
} end_place;

static int compare_places(const void *a, const void *b) {
    const end_place *x = a, *y = b;
    if (x->tensor != y->tensor) return x->tensor < y->tensor ? -1 : 1;
    if (x->space != y->space) return x->space < y->space ? -1 : 1;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

static size_t list_end_places(const tide__verifier *v, end_place *places) {
    size_t n = 0;
    for (uint32_t h = 0; h < v->n_holdings; h++) {
        const tide__holding *holding = &v->holding[h];
        if (holding->at_end) places[n++] = (end_place){holding->tensor, holding->space, holding->offset, holding->size};
    }
    qsort(places, n, sizeof *places, compare_places);
    return n;
}

/* from[t]: the value of this step that is value t of the next one. */
static void list_carries(const tide__verifier *v, tide_id *from) {
    for (uint32_t t = 0; t < v->n_tensors; t++) from[t] = TIDE_NONE;
    for (uint32_t i = 0; i < tide_program_carry_count(v->program); i++) {
        const tide_carry *carry = tide_program_carry(v->program, i);
        from[carry->to] = carry->from;
    }
}

static tide_status check_carries(tide__verifier *v, tide_id *from, end_place *places) {
    list_carries(v, from);
    size_t n = list_end_places(v, places);
    for (uint32_t h = 0; h < v->n_holdings; h++) {
        const tide__holding *holding = &v->holding[h];
        if (!holding->at_start || tide__in_client_tier(v, holding)) continue;
        end_place want = {from[holding->tensor], holding->space, holding->offset, holding->size};
        TIDE__DEMAND(bsearch(&want, places, n, sizeof *places, compare_places), CARRY, TIDE_NONE,
                     "%s starts where no place of %s ended", tide__label_holding(v, h).text,
                     tide__label_tensor(v, want.tensor).text);
    }
    return TIDE_OK;
}

tide_status tide__verify_end(tide__verifier *v) {
    bool *has_place = calloc((size_t)v->n_tensors + 1, sizeof *has_place);
    tide_id *from = malloc(((size_t)v->n_tensors + 1) * sizeof *from);
    end_place *places = malloc(((size_t)v->n_holdings + 1) * sizeof *places);
    tide_status status = has_place && from && places ? check_end_map(v, has_place) : tide__fail_memory();
    if (status == TIDE_OK && tide_program_is_repeating(v->program)) status = check_carries(v, from, places);
    free(has_place);
    free(from);
    free(places);
    return status;
}
