/* Text by bytes: a window of a text that the client has, or of sentences made by a small grammar, so that a first run
 * needs no download. Tokens are the bytes of the window, labels the bytes that follow them.
 *
 * The grammar has what makes text learnable in steps: letters of words, words of a phrase, and a verb that agrees with
 * its subject across what stands between. Invariant: a sample depends on (seed, index) and the text only. */
#include <string.h>
#include <tidemark/train.h>

#include "base/error.h"
#include "base/rng.h"

enum { BYTES = 256, MAX_DEPTH = 2 };

/* ---- sentences ---- */

/* Writes bytes [0, end) and drops what comes after; random numbers are drawn one after the other. */
typedef struct writer {
    uint64_t seed, index, drawn;
    float *tokens;   /* bytes [0, context) */
    int32_t *labels; /* bytes [1, context] */
    uint64_t at, end;
} writer;

static void put_byte(writer *w, char c) {
    if (w->at + 1 < w->end) w->tokens[w->at] = (float)(unsigned char)c;
    if (w->at > 0 && w->at < w->end) w->labels[w->at - 1] = (unsigned char)c;
    w->at++;
}

static void put(writer *w, const char *text) {
    for (; *text; text++) put_byte(w, *text);
}

static uint64_t pick(writer *w, uint64_t n) { return tide__random_u64(w->seed, w->index, w->drawn++) % n; }

#define PICK(w, words) ((words)[pick(w, sizeof(words) / sizeof(words)[0])])

static const char *const adjectives[] = {"old", "small", "green", "quiet", "bright", "lazy"};
static const char *const nouns[] = {"dog", "river", "sailor", "tree", "king", "stone", "bird", "lamp"};
static const char *const places[] = {"near", "behind", "under", "above"};
static const char *const actions[] = {"see", "follow", "find", "like", "remember"};
static const char *const states[] = {"sleep", "wait", "sing", "fall"};
static const char *const times[] = {"today", "at night", "in spring", "again"};

/* "the small dogs near the river"; the number of its first noun is what the verb agrees with. */
static bool put_subject(writer *w, int depth) {
    bool plural = pick(w, 2);
    put(w, plural ? "the " : pick(w, 2) ? "the " : "a ");
    if (pick(w, 3) == 0) {
        put(w, PICK(w, adjectives));
        put(w, " ");
    }
    put(w, PICK(w, nouns));
    if (plural) put(w, "s");
    if (depth < MAX_DEPTH && pick(w, 4) == 0) {
        put(w, " ");
        put(w, PICK(w, places));
        put(w, " ");
        (void)put_subject(w, depth + 1);
    }
    return plural;
}

static void put_sentence(writer *w) {
    bool plural = put_subject(w, 0);
    put(w, " ");
    if (pick(w, 3) == 0) {
        put(w, PICK(w, states));
        put(w, plural ? "" : "s");
    } else {
        put(w, PICK(w, actions));
        put(w, plural ? " " : "s ");
        (void)put_subject(w, 1);
    }
    if (pick(w, 4) == 0) {
        put(w, " ");
        put(w, PICK(w, times));
    }
    put(w, ".\n");
}

static tide_status grammar_sample(void *context, uint64_t index, float *tokens, int32_t *labels) {
    const tide_text *t = context;
    writer w = {.seed = t->seed, .index = index, .tokens = tokens, .labels = labels, .end = (uint64_t)t->context + 1};
    while (w.at < w.end) put_sentence(&w);
    return TIDE_OK;
}

/* ---- a text of the client's ---- */

static uint32_t token_at(const tide_text *t, uint64_t i) { return t->tokens ? t->tokens[i] : t->bytes[i]; }

static tide_status window_sample(void *context, uint64_t index, float *tokens, int32_t *labels) {
    const tide_text *t = context;
    uint64_t first = tide__random_u64(t->seed, index, 0) % (t->n_bytes - t->context);
    for (uint64_t i = 0; i < t->context; i++) {
        tokens[i] = (float)token_at(t, first + i);
        labels[i] = (int32_t)token_at(t, first + i + 1);
    }
    return TIDE_OK;
}

tide_status tide_data_text(tide_text *text, uint64_t n_samples, tide_data *out) {
    TIDE_NEED(text, out);
    if (!text->context || !n_samples) return tide__fail(TIDE_E_ARGUMENT, "a text needs a context and a sample");
    bool from_file = text->bytes || text->tokens;
    if (from_file && text->n_bytes <= text->context)
        return tide__fail(TIDE_E_ARGUMENT, "a text of %llu %s has no %u of them and one to follow",
                          (unsigned long long)text->n_bytes, text->tokens ? "tokens" : "bytes", text->context);
    if (text->tokens && (text->vocabulary == 0 || text->vocabulary > UINT32_C(1) << 24)) /* exact as floats */
        return tide__fail(TIDE_E_ARGUMENT, "a vocabulary of %u tokens", text->vocabulary);
    *out = (tide_data){.size = sizeof *out,
                       .name = from_file ? "text" : "grammar",
                       .n_samples = n_samples,
                       .channels = text->context,
                       .height = 1,
                       .width = 1,
                       .classes = text->tokens ? text->vocabulary : BYTES,
                       .labels = text->context,
                       .sample = from_file ? window_sample : grammar_sample,
                       .context = text};
    return TIDE_OK;
}
