/* See effort.h. */
#include "plan/decide/hybrid/effort.h"

#include "base/size.h"

/* Events to look at in one search, some 10 ns each. At normal effort programs of some hundred ops get the most: tiny ones
 * have been searched through before that, and the drafts of large ones take their time, too. */
uint64_t tide__effort_work(tide_effort effort, uint64_t n_ops) {
    const uint64_t million = 1000 * 1000, thousand = 1000, n = n_ops + 1;
    switch (effort) {
    case TIDE_EFFORT_LOW: return million;
    case TIDE_EFFORT_HIGH: return tide__min_u64(500 * million, 2 * million * n);
    case TIDE_EFFORT_NORMAL: break;
    }
    uint64_t most = tide__min_u64(24 * million, 80 * thousand * n);
    return tide__min_u64(tide__max_u64(12 * thousand * million / n, 6 * million), most);
}

uint64_t tide__effort_alone_work(uint64_t n_ops) {
    const uint64_t million = 1000 * 1000, thousand = 1000;
    return tide__min_u64(80 * million, 240 * thousand * (n_ops + 1));
}

/* Low effort ends some 0.3 s after it began; sooner on small programs, on large ones after some drafts. */
uint64_t tide__effort_limit(tide_effort effort, uint64_t n_ops) {
    const uint64_t thousand = 1000, most = 28 * thousand * thousand;
    if (effort != TIDE_EFFORT_LOW) return UINT64_MAX;
    return tide__max_u64(tide__min_u64(300 * thousand * n_ops, most), 5 * TIDE__DRAFT_WORK * n_ops);
}

/* Where there is no plan to be found a refusal takes some plans' time, not more. */
enum { MOST_SEARCHES = 8 };

uint64_t tide__effort_most(tide_effort effort, uint64_t n_ops) {
    const uint64_t least = 28 * 1000 * 1000;
    if (effort == TIDE_EFFORT_LOW) return tide__max_u64(tide__effort_limit(effort, n_ops), least);
    return MOST_SEARCHES * tide__effort_work(effort, n_ops);
}

uint64_t tide__effort_more(uint64_t n_ops) {
    const uint64_t thousand = 1000;
    return tide__min_u64(80 * thousand * n_ops, 24 * thousand * thousand);
}

/* One search of low effort, off the ladder: so much that greedy repair comes to an end, whose builds take n^2; large
 * programs are repaired by batches, some ten of them. */
uint64_t tide__effort_low_work(uint64_t n_ops) {
    const uint64_t million = 1000 * 1000;
    return tide__max_u64(n_ops > 2000 ? 8 * million : 2 * n_ops * n_ops, tide__max_u64(million, 1500 * n_ops));
}

/* High effort would take minutes with all its work at each rung; small programs are searched through with less. */
enum { HIGH_PARTS = 12, SMALL_PARTS = 8 };

uint64_t tide__effort_rung_work(tide_effort effort, uint64_t n_ops) {
    uint64_t work = tide__effort_work(effort, n_ops) / (n_ops <= TIDE__SMALL_OPS ? SMALL_PARTS : 1);
    return effort == TIDE_EFFORT_HIGH ? work / HIGH_PARTS : work;
}
