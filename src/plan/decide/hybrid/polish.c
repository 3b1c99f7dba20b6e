/* See polish.h. */
#include "plan/decide/hybrid/polish.h"

#include <stdlib.h>

#include "base/rng.h"
#include "base/size.h"
#include "plan/decide/hybrid/polish_edits.h"

typedef struct polisher {
    tide__generation *g;
    tide__decisions now, next;
    tide__edits edits;
    uint64_t left, spare; /* edits that may be tried, and that may be as well where some are of use */
} polisher;

static void end(polisher *p) {
    tide__decisions_free(&p->now);
    tide__decisions_free(&p->next);
    tide__vec_free(&p->edits);
}

static bool is_editable(const tide__plans *p, const tide__plans_entry *e) {
    bool is_plain = !e->whole && !e->decisions.sequence.count && !e->decisions.keep_everything;
    return is_plain && !e->polished && !(p->is_closed && e->step_ns <= p->closed_ns);
}

/* The decisions of an entry that nobody has edited, and what could change in them; false in *found: there is none. */
static tide_status take_entry(polisher *p, bool *found) {
    tide__plans *plans = p->g->plans;
    size_t i = 0;
    while (i < plans->entries.count && !is_editable(plans, &plans->entries.data[i])) i++;
    *found = i < plans->entries.count;
    if (!*found) return TIDE_OK;
    plans->entries.data[i].polished = true;
    TIDE_TRY(tide__decisions_copy(&plans->entries.data[i].decisions, &p->now));
    while (p->now.variants.count < p->g->model->n_ops) TIDE_TRY(tide__vec_push(&p->now.variants, 0));
    p->edits.count = 0;
    return tide__edits_list(&p->g->in, &p->now, p->g->moves, p->g->reruns, &p->edits);
}

/* What placing an edit near its load is worth, in about microseconds. */
enum { PLACE_WORK = 1000 };

/* Of all edits, those that are tried at first, in any case as many; and how many more for every one that makes an entry. */
enum { FIRST_PART = 5, FEWEST = 100, MORE = 50 };

static void spend(polisher *p, uint64_t n) {
    n = tide__min_u64(n, p->spare);
    p->left += n;
    p->spare -= n;
}

/* Edits that cannot be carried out are passed over. */
static tide_status try_edits(polisher *p, const tide__edit *a, const tide__edit *b) {
    static const tide__evaluate_options low = {.place_work = PLACE_WORK};
    tide__plans_outcome o;
    uint64_t before = p->g->plans->n_kept;
    p->left--;
    TIDE_TRY(tide__decisions_copy(&p->now, &p->next));
    TIDE_TRY(tide__edit_apply(a, &p->next));
    if (b) TIDE_TRY(tide__edit_apply(b, &p->next));
    tide__edits_clean(&p->next);
    tide_status status = tide__plans_offer(p->g->plans, &p->next, &low, &o);
    if (p->g->plans->n_kept > before) spend(p, MORE);
    return status == TIDE_E_ARGUMENT || status == TIDE_E_UNSUPPORTED ? TIDE_OK : status;
}

/* Pairs for every single edit, drawn at random. */
enum { PAIRS = 4 };

/* Every entry has its share of what is left; but what it leaves, others get. */
static size_t share_of(const polisher *p) {
    size_t n = 1;
    for (size_t i = 0; i < p->g->plans->entries.count; i++)
        n += is_editable(p->g->plans, &p->g->plans->entries.data[i]);
    return p->left / n + 1;
}

static tide_status try_all(polisher *p, uint64_t round) {
    size_t n = p->edits.count;
    uint64_t end = p->left - tide__min_u64(p->left, share_of(p));
    uint64_t first = n ? tide__random_u64(round, 2, 0) % n : 0;
    for (size_t i = 0; i < n && p->left > end; i++) TIDE_TRY(try_edits(p, &p->edits.data[(first + i) % n], NULL));
    for (size_t i = 0; i < PAIRS * n && p->left > end; i++) {
        const tide__edit *a = &p->edits.data[tide__random_u64(round, 0, i) % n];
        const tide__edit *b = &p->edits.data[tide__random_u64(round, 1, i) % n];
        if (a != b && !tide__edits_clash(a, b)) TIDE_TRY(try_edits(p, a, b));
    }
    return TIDE_OK;
}

tide_status tide__polish(tide__generation *g, uint64_t *candidates) {
    polisher p = {.g = g, .spare = *candidates};
    spend(&p, tide__max_u64(*candidates / FIRST_PART, FEWEST));
    tide_status status = TIDE_OK;
    bool found = true;
    for (uint64_t round = 0; status == TIDE_OK && found && p.left; round++) {
        status = take_entry(&p, &found);
        if (status == TIDE_OK && found) status = try_all(&p, round);
    }
    *candidates = p.left + p.spare;
    end(&p);
    return status;
}
