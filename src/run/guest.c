/* Guests: a second run inside the arena of a first one that rests between two steps, so that an evaluation needs no
 * memory of its own.
 *
 *      arena   |w w w|....... free between steps .......|m m m|      w, m: values that the host keeps
 *                    |---------- guest ---------|                    it fits beside them: nothing moves
 *
 *      arena   |w w w|...free...|m m m m m m m m m m m m|
 *              |---------- guest ---------|                          it does not: what it covers is parked on disk
 *
 * Invariant: while a guest lives the host does not step and is not written to; its values are read from wherever they
 * are. When the guest leaves, every byte is back, or the host is poisoned. No tier has ever more than its budget for the
 * two and what is parked together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "plan/plan_data.h"
#include "run/guest.h"
#include "run/online.h"
#include "run/run_data.h"

#define GUEST_ALIGN UINT64_C(4096) /* of a guest's first byte: what devices and tiers ask for at most */

/* ---- what is free between steps ---- */

typedef struct span {
    uint64_t begin, end;
} span;

static int by_begin(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static bool is_held(const tide_run *run, const tide_residency *r) {
    return (run->stepped ? r->at_end : r->at_start) && r->size_bytes > 0;
}

/* What the run holds between steps, and its guest's part, as spans of the arena, ascending. */
static tide_status list_held(const tide_run *run, span **out, size_t *n) {
    uint32_t count = tide_plan_residency_count(run->options.plan);
    span *spans = malloc(((size_t)count + 1) * sizeof *spans);
    if (!spans) return tide__fail_memory();
    *n = 0;
    for (tide_id i = 0; i < count; i++) {
        const tide_residency *r = tide_plan_residency(run->options.plan, i);
        uint64_t begin = run->base + r->offset_bytes;
        if (is_held(run, r)) spans[(*n)++] = (span){begin, begin + r->size_bytes};
    }
    if (run->guest) spans[(*n)++] = (span){run->guest->base, run->guest->base + run->guest->arena_bytes};
    qsort(spans, *n, sizeof *spans, by_begin);
    *out = spans;
    return TIDE_OK;
}

/* The first stretch of `size` bytes, on a multiple of GUEST_ALIGN, that nothing holds; UINT64_MAX: there is none. */
static uint64_t find_gap(const tide_run *run, const span *spans, size_t n, uint64_t size) {
    uint64_t begin = (run->base + GUEST_ALIGN - 1) & ~(GUEST_ALIGN - 1), limit = run->base + run->arena_bytes, end;
    for (size_t i = 0; i < n; i++) {
        if (tide__add(begin, size, &end) && end <= spans[i].begin) return begin;
        begin = tide__max_u64(begin, (spans[i].end + GUEST_ALIGN - 1) & ~(GUEST_ALIGN - 1));
    }
    return tide__add(begin, size, &end) && end <= limit ? begin : UINT64_MAX;
}

/* Values may have to go to tiers for it. */
static tide_status find_free_online(tide_run *run, uint64_t size, uint64_t *offset) {
    tide__range top;
    TIDE_TRY(tide__run_online_rest(run, size, &top));
    *offset = top.size >= size ? top.offset : UINT64_MAX;
    return TIDE_OK;
}

static tide_status find_free(tide_run *run, uint64_t size, uint64_t *offset) {
    if (run->online) return find_free_online(run, size, offset);
    span *spans;
    size_t n;
    TIDE_TRY(list_held(run, &spans, &n));
    *offset = find_gap(run, spans, n, size);
    free(spans);
    return TIDE_OK;
}

static void rest_online(tide_run *run) {
    const tide__ranges *r = &run->online->arena;
    for (size_t i = 0; i < r->free.count; i++)
        tide_arena_discard(run->arena, r->free.data[i].offset, r->free.data[i].size);
}

static void rest_between(tide_run *run, const span *held, size_t n) {
    uint64_t begin = run->base;
    for (size_t i = 0; i < n; i++) {
        if (held[i].begin > begin) tide_arena_discard(run->arena, begin, held[i].begin - begin);
        begin = tide__max_u64(begin, held[i].end);
    }
    tide_arena_discard(run->arena, begin, run->base + run->arena_bytes - begin);
}

tide_status tide_run_rest(tide_run *run) {
    TIDE_NEED(run);
    span *held;
    size_t n;
    if (run->host || run->guest) return tide__fail(TIDE_E_ARGUMENT, "a run cannot rest while two are in its arena");
    TIDE_TRY(tide__run_check_rests(run));
    if (run->online) return rest_online(run), TIDE_OK;
    TIDE_TRY(list_held(run, &held, &n));
    rest_between(run, held, n);
    free(held);
    return TIDE_OK;
}

uint64_t tide__run_guest_bytes(const tide_run *run) { return run->arena_bytes; }

void tide__run_guest_tiers(const tide_run *run, tide_budgets *budgets) {
    const tide_machine *m = run->options.machine;
    for (uint32_t t = 0; t < m->n_tiers; t++) {
        uint64_t held = tide__run_tier_bytes(run, t), *bytes = &budgets->tier_bytes[t];
        uint64_t most = tide__tier_limit(m, budgets, t);
        if (held) *bytes = most > held ? most - held : 0;
    }
}

/* ---- parking ---- */

static bool overlaps(const tide_run *host, const tide_residency *r, uint64_t begin, uint64_t size) {
    uint64_t first = host->base + r->offset_bytes;
    return is_held(host, r) && first < begin + size && begin < first + r->size_bytes;
}

/* Lists what lies in [begin, begin + size), with a slot for each. */
static tide_status list_parked(tide_run *host, uint64_t begin, uint64_t size, uint64_t *park_bytes) {
    uint64_t at = 0;
    for (tide_id i = 0; i < tide_plan_residency_count(host->options.plan); i++) {
        const tide_residency *r = tide_plan_residency(host->options.plan, i);
        if (!overlaps(host, r, begin, size)) continue;
        tide__parked p = {.residency = i, .offset_bytes = at};
        TIDE_TRY(tide__vec_push(&host->parked, p));
        at = (at + r->size_bytes + GUEST_ALIGN - 1) & ~(GUEST_ALIGN - 1);
    }
    *park_bytes = at;
    return TIDE_OK;
}

/* A tier's budget holds for the host, the guest and the parked values together. */
static uint64_t beside(const tide_run *host, const tide_run *guest, uint32_t t, uint64_t parked) {
    return tide__add_capped(tide__add_capped(parked, tide_plan_tier_bytes(guest->options.plan, t)),
                            tide__run_tier_bytes(host, t));
}

/* The disk, or what another rank lends if only that has room. */
static uint32_t find_park(const tide_run *host, const tide_run *guest, uint64_t park_bytes) {
    static const tide_tier_kind kinds[] = {TIDE_TIER_DISK, TIDE_TIER_LENT};
    const tide_machine *m = host->options.machine;
    uint32_t last = TIDE_NONE;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint32_t t = tide_machine_find_tier(m, kinds[k]);
        if (t == TIDE_NONE) continue;
        if (beside(host, guest, t, park_bytes) <= tide__tier_limit(m, &host->options.budgets, t)) return t;
        if (last == TIDE_NONE) last = t;
    }
    return last;
}

static tide_status check_tiers(const tide_run *host, const tide_run *guest, uint32_t park, uint64_t park_bytes) {
    const tide_machine *m = host->options.machine;
    for (uint32_t t = 0; t < m->n_tiers; t++) {
        uint64_t budget = tide__tier_limit(m, &host->options.budgets, t), parked = t == park ? park_bytes : 0;
        uint64_t wanted = tide_plan_tier_bytes(guest->options.plan, t), all = beside(host, guest, t, parked);
        if (m->tier[t].kind == TIDE_TIER_CLIENT || parked + wanted == 0 || all <= budget) continue;
        return tide__fail(TIDE_E_FIT, "%s the resting run takes the %s tier to %llu bytes; its budget is %llu",
                          parked ? "parking" : "a guest beside", m->tier[t].name, (unsigned long long)all,
                          (unsigned long long)budget);
    }
    return TIDE_OK;
}

static tide_status open_park(tide_run *host, uint32_t park, uint64_t park_bytes) {
    if (park == TIDE_NONE)
        return tide__fail(TIDE_E_FIT,
                          "%llu bytes of the resting run are in the way, and there is no disk tier for them",
                          (unsigned long long)park_bytes);
    const tide__tier_options options = {.kind = host->options.machine->tier[park].kind,
                                        .capacity_bytes = park_bytes,
                                        .block_bytes = (uint32_t)GUEST_ALIGN,
                                        .path = host->options.disk_path,
                                        .checksums = host->options.disk_checksums,
                                        .packs = host->options.disk_packing,
                                        .loan = host->options.loan};
    return tide__tier_open(&options, &host->park);
}

static tide_status copy_parked(tide_run *host, const tide__parked *p, bool out) {
    const tide_residency *r = tide_plan_residency(host->options.plan, p->residency);
    tide__tier_slot slot = {.tier = host->park, .offset = p->offset_bytes};
    tide_io io = {.fn = out ? tide__tier_save : tide__tier_load, .context = &slot, .channel = TIDE_NONE};
    uint64_t offset = host->base + r->offset_bytes;
    TIDE_TRY(out ? tide_copy_out(host->queue[0], host->arena, offset, r->size_bytes, io)
                 : tide_copy_in(host->queue[0], host->arena, offset, r->size_bytes, io));
    return tide_queue_sync(host->queue[0]);
}

/* Of an online host all that the guest covers is out of its way already. */
static tide_status park(tide_run *host, const tide_run *guest) {
    uint64_t park_bytes = 0;
    if (!host->online) TIDE_TRY(list_parked(host, guest->base, guest->arena_bytes, &park_bytes));
    uint32_t tier = find_park(host, guest, park_bytes);
    TIDE_TRY(check_tiers(host, guest, tier, park_bytes));
    if (park_bytes == 0) return TIDE_OK;
    TIDE_TRY(open_park(host, tier, park_bytes));
    for (size_t i = 0; i < host->parked.count; i++) TIDE_TRY(copy_parked(host, &host->parked.data[i], true));
    return TIDE_OK;
}

static void forget_park(tide_run *host) {
    tide__tier_destroy(host->park);
    host->park = NULL;
    host->parked.count = 0;
}

const tide__parked *tide__run_find_parked(const tide_run *run, tide_id residency) {
    for (size_t i = 0; i < run->parked.count; i++)
        if (run->parked.data[i].residency == residency) return &run->parked.data[i];
    return NULL;
}

/* ---- coming and going ---- */

static tide_status check_host(tide_run *host, const tide_run *guest) {
    TIDE_TRY(tide__run_check_rests(host));
    if (host->guest) return tide__fail(TIDE_E_ARGUMENT, "the resting run has a guest already");
    if (host->options.device != guest->options.device)
        return tide__fail(TIDE_E_ARGUMENT, "a guest is on the device of its host");
    if (guest->arena_bytes > host->arena_bytes)
        return tide__fail(TIDE_E_FIT, "the plan needs %llu bytes, the arena of the resting run has %llu",
                          (unsigned long long)guest->arena_bytes, (unsigned long long)host->arena_bytes);
    return TIDE_OK;
}

/* Failures stick to a queue: the host gets another one, unless there is none to be had. Keeps the text. */
static void renew_queue(tide_run *host) {
    char text[sizeof host->lost_text];
    tide_queue *fresh;
    snprintf(text, sizeof text, "%s", tide_last_error());
    if (tide_queue_create(host->options.device, TIDE_QUEUE_COMPUTE, &fresh) == TIDE_OK) {
        tide_queue_destroy(host->queue[0]);
        host->queue[0] = fresh;
    }
    tide__error_set("%s", text);
}

tide_status tide__run_enter(tide_run *guest, tide_run *host) {
    uint64_t offset;
    TIDE_TRY(check_host(host, guest));
    TIDE_TRY(find_free(host, guest->arena_bytes, &offset));
    if (host->online && offset == UINT64_MAX)
        return tide__fail(TIDE_E_FIT, "the plan needs %llu bytes, and the resting run leaves less",
                          (unsigned long long)guest->arena_bytes);
    guest->arena = host->arena;
    guest->base = offset != UINT64_MAX ? offset : host->base;
    tide_status status = park(host, guest);
    if (status != TIDE_OK) {
        if (host->park) renew_queue(host);
        forget_park(host); /* saving changes nothing in the arena */
        guest->arena = NULL;
        return status;
    }
    guest->host = host;
    host->guest = guest;
    return TIDE_OK;
}

/* Nobody hears of it now: whoever uses the host next does. */
static void note_lost(tide_run *host, tide_status status) {
    host->poisoned = true;
    host->lost = status;
    snprintf(host->lost_text, sizeof host->lost_text, "%s", tide_last_error());
}

void tide__run_leave(tide_run *guest) {
    tide_run *host = guest->host;
    tide_status status = TIDE_OK;
    host->guest = NULL;
    for (size_t i = 0; i < host->parked.count && status == TIDE_OK; i++)
        status = copy_parked(host, &host->parked.data[i], false);
    if (status != TIDE_OK) note_lost(host, status);
    forget_park(host);
}

tide_status tide__run_left_by_guest(const tide_run *host) {
    return host->lost == TIDE_OK ? TIDE_OK : tide__fail(host->lost, "%s", host->lost_text);
}
