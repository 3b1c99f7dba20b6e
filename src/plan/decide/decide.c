/* The table of policies. A new policy is one file and one entry here. */
#include "plan/decide/decide.h"

#include <stdlib.h>
#include <string.h>

#include "plan/decide/policies/policies.h"

static const tide__policy table[] = {
    {.name = "none",
     .summary = "every value stays for the whole step: what no memory management costs",
     .decide = tide__decide_none},
    {.name = "liveness",
     .summary = "a value leaves after its last use; nothing moves, nothing is run twice",
     .decide = tide__decide_liveness},
    {.name = "cache",
     .summary =
         "online: when memory is short, the least recently used value goes to a tier (SuperNeurons' tensor cache)",
     .decide = tide__decide_cache,
     .budgeted = true},
    {.name = "delta",
     .summary = "online: stale and large values leave, by swap or re-run, whichever compute waits for less (DELTA)",
     .decide = tide__decide_delta,
     .budgeted = true},
    {.name = "dtr",
     .summary = "online: drops and re-runs by cost per byte and staleness (DTR); :eq, full, local, msps, lru or delta",
     .decide = tide__decide_dtr,
     .takes_argument = true,
     .budgeted = true,
     .stays = true},
    {.name = "autoswap",
     .summary = "values leave between two uses, by AutoSwap's scores (:doa, :aoa, :wdoa, :swdoa, :search)",
     .decide = tide__decide_autoswap,
     .takes_argument = true,
     .budgeted = true},
    {.name = "capuchin",
     .summary = "swaps what transfers can hide, by free time; recomputes the rest, by bytes saved per second",
     .decide = tide__decide_capuchin,
     .budgeted = true},
    {.name = "manual", .summary = "swaps, re-runs and variants from a decisions file", .decide = tide__decide_manual},
    {.name = "checkpoint",
     .summary = "what people do by hand: keep the values between stretches, re-run a stretch; :sqrt, :block",
     .decide = tide__decide_checkpoint,
     .takes_argument = true,
     .budgeted = true,
     .stays = true},
    {.name = "superneurons",
     .summary = "re-runs cheap layers, moves the least recently used when short; :speed, :memory, :cost ...",
     .decide = tide__decide_superneurons,
     .takes_argument = true,
     .budgeted = true},
    {.name = "hybrid",
     .summary = "keeps, moves or re-runs each value, for the least time inside the budget; :nomove, :norerun",
     .generate = tide__generate_hybrid,
     .takes_argument = true,
     .budgeted = true},
};

const tide__policy *tide__policy_find(const char *name) {
    size_t length = strcspn(name, ":");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].name) == length && strncmp(table[i].name, name, length) == 0)
            return name[length] && (!table[i].takes_argument || !name[length + 1]) ? NULL : &table[i];
    return NULL;
}

bool tide__policy_has(const char *argument, const char *word) {
    for (size_t length; *argument; argument += length + (argument[length] == ',')) {
        length = strcspn(argument, ",");
        if (length == strlen(word) && strncmp(argument, word, length) == 0) return true;
    }
    return false;
}

const char *tide_policy_name(uint32_t i, const char **summary) {
    if (i >= sizeof table / sizeof *table) return NULL;
    if (summary) *summary = table[i].summary;
    return table[i].name;
}

void tide__decisions_free(tide__decisions *d) {
    tide__vec_free(&d->swaps);
    tide__vec_free(&d->reruns);
    tide__vec_free(&d->variants);
    tide__vec_free(&d->sequence);
}

tide_status tide__decisions_copy(const tide__decisions *from, tide__decisions *to) {
    to->keep_everything = from->keep_everything;
    to->swaps.count = to->reruns.count = to->variants.count = to->sequence.count = 0;
    for (size_t i = 0; i < from->swaps.count; i++) TIDE_TRY(tide__vec_push(&to->swaps, from->swaps.data[i]));
    for (size_t i = 0; i < from->reruns.count; i++) TIDE_TRY(tide__vec_push(&to->reruns, from->reruns.data[i]));
    for (size_t i = 0; i < from->variants.count; i++) TIDE_TRY(tide__vec_push(&to->variants, from->variants.data[i]));
    for (size_t i = 0; i < from->sequence.count; i++) TIDE_TRY(tide__vec_push(&to->sequence, from->sequence.data[i]));
    return TIDE_OK;
}
