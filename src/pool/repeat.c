/* See repeat.h. */
#include "pool/repeat.h"

#include <stdlib.h>

enum {
    MAX_LINKS = 16,      /* earlier places compared when a run breaks */
    MAX_COMPARED = 64,   /* symbols compared per place */
    EXTEND_FRACTION = 4, /* of the period */
};

tide_status tide__repeat_init(tide__repeat *repeat, const tide__history *history, uint64_t max_period) {
    uint64_t places = history->mask + 1;
    *repeat = (tide__repeat){.max_period = max_period, .n_buckets = places / 4};
    repeat->head = calloc(repeat->n_buckets, sizeof *repeat->head);
    repeat->before = calloc(places, sizeof *repeat->before);
    if (repeat->head && repeat->before) return TIDE_OK;
    tide__repeat_deinit(repeat);
    return tide__fail_memory();
}

void tide__repeat_deinit(tide__repeat *repeat) {
    free(repeat->head);
    free(repeat->before);
}

/* How far the events up to a and those up to b agree, going backwards; a > b, at most `max`. */
static uint64_t agreement(const tide__history *history, uint64_t a, uint64_t b, uint64_t max) {
    uint64_t most = b - tide__history_oldest(history) + 1, n = 0;
    if (most > max) most = max;
    while (n < most && tide__history_at(history, a - n)->symbol == tide__history_at(history, b - n)->symbol) n++;
    return n;
}

/* Events in both stretches together, at least: an eighth of what is not explained, so that a loop inside an iteration is
 * rarely taken for one, but never so many that a small iteration after a long start goes unnoticed. */
static uint64_t least_repeated(const tide__repeat *repeat) {
    uint64_t least = repeat->fed > repeat->begin ? (repeat->fed - repeat->begin) / 8 : 0;
    return least < 64 ? 64 : least < 512 ? least : 512;
}

static void choose_candidate(tide__repeat *repeat, const tide__history *history, uint64_t event, uint64_t head) {
    uint64_t oldest = tide__history_oldest(history), best = 0;
    repeat->period = 0;
    for (int links = 0; head > oldest && links < MAX_LINKS; links++) {
        uint64_t at = head - 1, step = repeat->before[at & history->mask];
        if (event - at > repeat->max_period) break;
        uint64_t run = agreement(history, event, at, MAX_COMPARED);
        if (run > best) {
            best = run;
            repeat->period = event - at;
        }
        if (step == 0) break;
        head -= step;
    }
    repeat->run = best;
    repeat->extended = false;
    uint64_t least = least_repeated(repeat);
    repeat->due = 2 * repeat->period > least ? repeat->period : least - repeat->period;
}

/* Links the event into its bucket; returns what was the head before. */
static uint64_t link_event(tide__repeat *repeat, const tide__history *history, uint64_t event) {
    uint64_t *head = &repeat->head[tide__mix(repeat->gram) & (repeat->n_buckets - 1)], old = *head;
    uint64_t step = old ? event + 1 - old : 0;
    repeat->before[event & history->mask] = step <= history->mask ? (uint32_t)step : 0;
    *head = event + 1;
    return old;
}

static void extend_backwards(tide__repeat *repeat, const tide__history *history, uint64_t event) {
    uint64_t reach = repeat->run + repeat->period, oldest = tide__history_oldest(history);
    repeat->extended = true;
    if (event < reach || event - reach < oldest || repeat->run >= repeat->period) return;
    repeat->run += agreement(history, event - repeat->run, event - reach, repeat->period - repeat->run);
}

bool tide__repeat_feed(tide__repeat *repeat, const tide__history *history) {
    uint64_t event = repeat->fed++;
    tide__symbol symbol = tide__history_at(history, event)->symbol;
    repeat->gram = tide__gram_push(repeat->gram, symbol);
    uint64_t head = link_event(repeat, history, event);
    if (repeat->period && symbol == tide__history_at(history, event - repeat->period)->symbol)
        repeat->run++;
    else
        choose_candidate(repeat, history, event, head);
    if (!repeat->period) return false;
    if (!repeat->extended && repeat->run >= repeat->period / EXTEND_FRACTION) extend_backwards(repeat, history, event);
    if (repeat->run < repeat->due) return false;
    while (repeat->due <= repeat->run) repeat->due *= 2;
    return true;
}

void tide__repeat_resume(tide__repeat *repeat, uint64_t from, uint64_t begin) {
    repeat->begin = begin;
    if (from <= repeat->fed) return;
    repeat->fed = from;
    repeat->gram = 0;
    repeat->period = repeat->run = 0;
}
