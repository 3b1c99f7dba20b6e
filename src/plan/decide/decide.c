/* The table of policies. A new policy is one file and one line here. */
#include "plan/decide/decide.h"

#include <stdlib.h>
#include <string.h>

#include "plan/decide/policies.h"

static const tide__policy table[] = {
    {"none", "every value stays for the whole step: what no memory management costs", tide__decide_none, false, false,
     NULL, false},
    {"liveness", "a value leaves after its last use; nothing moves, nothing is run twice", tide__decide_liveness, false,
     false, NULL, false},
    {"cache", "online: when memory is short, the least recently used value goes to a tier (SuperNeurons' tensor cache)",
     tide__decide_cache, false, true, NULL, false},
    {"delta", "online: stale and large values leave, by swap or re-run, whichever compute waits for less (DELTA)",
     tide__decide_delta, false, true, NULL, false},
    {"dtr", "online: drops and re-runs by cost per byte and staleness (DTR); :eq, full, local, msps, lru or delta",
     tide__decide_dtr, true, true, NULL, true},
    {"autoswap", "values leave between two uses, by AutoSwap's scores (:doa, :aoa, :wdoa, :swdoa, :search)",
     tide__decide_autoswap, true, true, NULL, false},
    {"capuchin", "swaps what transfers can hide, by free time; recomputes the rest, by bytes saved per second",
     tide__decide_capuchin, false, true, NULL, false},
    {"manual", "swaps, re-runs and variants from a decisions file", tide__decide_manual, false, false, NULL, false},
    {"checkpoint", "what people do by hand: keep the values between stretches, re-run a stretch; :sqrt, :block",
     tide__decide_checkpoint, true, true, NULL, true},
    {"superneurons", "re-runs cheap layers, moves the least recently used when short; :speed, :memory, :cost ...",
     tide__decide_superneurons, true, true, NULL, false},
    {"hybrid", "keeps, moves or re-runs each value, for the least time inside the budget; :nomove, :norerun, :steady",
     tide__decide_hybrid, true, true, tide__plan_hybrid, false},
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
