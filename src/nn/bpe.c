/* Merging pairs (Sennrich et al. 2016) over bytes, as GPT-2 does it. See tokens.h.
 *
 * Files write a byte as a printable character: those of Latin-1 that are printable stand for themselves, the others for the code points
 * from 256 on. Pairs are merged in the order of merges.txt. A part of n bytes takes n log n: pairs wait in a heap, and what has been
 * merged away is skipped when it comes up.
 *
 * Invariant: every single byte has a token, so that any text can be encoded. */
#include "nn/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "nn/bpe_split.h"

#define MAX_TOKENS (UINT32_C(1) << 20)
#define NONE UINT32_MAX

typedef struct span {
    size_t at; /* in the tokenizer's bytes */
    uint32_t size;
    bool known;
} span;

typedef struct merge {
    uint32_t left, right, rank, whole;
} merge;

struct tide_tokenizer {
    TIDE_VEC(char) bytes;
    TIDE_VEC(span) tokens;        /* by number */
    TIDE_VEC(merge) merges;       /* by rank */
    uint32_t *by_bytes, *by_pair; /* open addressing over tokens and merges; index + 1, 0 = empty */
    size_t n_by_bytes, n_by_pair; /* powers of two */
    uint32_t of_byte[256];
};

/* ---- the alphabet ---- */

static bool is_itself(uint32_t byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

/* The byte that a code point stands for; -1: none. */
static int byte_of(uint32_t code) {
    if (code < 256) return is_itself(code) ? (int)code : -1;
    uint32_t left = code - 256;
    for (uint32_t byte = 0; byte < 256; byte++)
        if (!is_itself(byte) && left-- == 0) return (int)byte;
    return -1;
}

/* Characters of a file, which are of one or two bytes, become bytes; false: one stands for none. */
static bool read_bytes(const char *text, size_t size, char *out, size_t *n) {
    const unsigned char *b = (const unsigned char *)text;
    *n = 0;
    for (size_t i = 0; i < size; i++) {
        uint32_t code = b[i];
        if (code >= 0x80) {
            if (b[i] >> 5 != 6 || i + 1 == size || b[i + 1] >> 6 != 2) return false;
            code = (uint32_t)(b[i] & 0x1f) << 6 | (b[i + 1] & 0x3f);
            if (code < 0x80) return false; /* in more bytes than it takes */
            i++;
        }
        int byte = byte_of(code);
        if (byte < 0) return false;
        out[(*n)++] = (char)byte;
    }
    return true;
}

/* ---- tables ---- */

static uint64_t hash_bytes(const char *bytes, size_t size) {
    uint64_t hash = size;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return tide__hash_word(0, hash);
}

static uint32_t *slot_of_bytes(const tide_tokenizer *t, const char *bytes, size_t size) {
    size_t mask = t->n_by_bytes - 1, at = hash_bytes(bytes, size) & mask;
    for (; t->by_bytes[at]; at = (at + 1) & mask) {
        const span *s = &t->tokens.data[t->by_bytes[at] - 1];
        if (s->size == size && t->bytes.data && memcmp(t->bytes.data + s->at, bytes, size) == 0) break;
    }
    return &t->by_bytes[at];
}

static uint32_t find_token(const tide_tokenizer *t, const char *bytes, size_t size) {
    return *slot_of_bytes(t, bytes, size) - 1; /* NONE where there is none */
}

static uint32_t *slot_of_pair(const tide_tokenizer *t, uint32_t left, uint32_t right) {
    size_t mask = t->n_by_pair - 1, at = tide__hash_word(left, right) & mask;
    for (; t->by_pair[at]; at = (at + 1) & mask) {
        const merge *m = &t->merges.data[t->by_pair[at] - 1];
        if (m->left == left && m->right == right) break;
    }
    return &t->by_pair[at];
}

static tide_status make_table(size_t n, uint32_t **table, size_t *size) {
    *size = 64;
    while (*size < 2 * n) *size *= 2;
    *table = calloc(*size, sizeof **table);
    return *table ? TIDE_OK : tide__fail_memory();
}

/* ---- vocab.json ---- */

static tide_status add_token(tide_tokenizer *t, const tide__json_node *name, uint64_t id) {
    size_t n;
    while (t->tokens.count <= id) TIDE_TRY(tide__vec_push(&t->tokens, ((span){0})));
    if (t->tokens.data[id].known) return tide__fail(TIDE_E_FORMAT, "two tokens have the number %u", (unsigned)id);
    TIDE_TRY(tide__vec_reserve(&t->bytes, (size_t)name->length));
    if (name->length == 0 || !read_bytes(name->text, name->length, t->bytes.data + t->bytes.count, &n))
        return tide__fail(TIDE_E_FORMAT, "token %u is not written in GPT-2's characters for bytes", (unsigned)id);
    t->tokens.data[id] = (span){.at = t->bytes.count, .size = (uint32_t)n, .known = true};
    t->bytes.count += n;
    return TIDE_OK;
}

static tide_status index_tokens(tide_tokenizer *t) {
    TIDE_TRY(make_table(t->tokens.count, &t->by_bytes, &t->n_by_bytes));
    for (size_t i = 0; i < t->tokens.count; i++) {
        const span *s = &t->tokens.data[i];
        if (s->known) *slot_of_bytes(t, t->bytes.data + s->at, s->size) = (uint32_t)i + 1;
    }
    for (int byte = 0; byte < 256; byte++) {
        char one = (char)byte;
        t->of_byte[byte] = find_token(t, &one, 1);
        if (t->of_byte[byte] == NONE) return tide__fail(TIDE_E_FORMAT, "byte %d has no token", byte);
    }
    return TIDE_OK;
}

static tide_status read_vocabulary(tide_tokenizer *t, const char *text, size_t size) {
    tide__json doc = {0};
    tide_status status = tide__json_parse(&doc, text, size);
    if (status == TIDE_OK && doc.nodes.data[0].type != TIDE__JSON_OBJECT)
        status = tide__fail(TIDE_E_FORMAT, "expected an object of tokens and their numbers");
    uint32_t n = status == TIDE_OK ? doc.nodes.data[0].count : 0, at = 1;
    for (uint32_t i = 0; i < n && status == TIDE_OK; i++) {
        uint64_t id;
        status = tide__json_u64(&doc, at + 1, "the number of a token", MAX_TOKENS - 1, &id);
        if (status == TIDE_OK) status = add_token(t, &doc.nodes.data[at], id);
        at = doc.nodes.data[at + 1].next;
    }
    tide__json_free(&doc);
    return status == TIDE_OK ? index_tokens(t) : status;
}

/* ---- merges.txt ---- */

/* "Ġt h": the tokens "Ġt" and "h" become "Ġth". */
static tide_status add_merge(tide_tokenizer *t, const char *line, size_t length, char *bytes) {
    const char *space = memchr(line, ' ', length);
    size_t left, right;
    if (!space || !read_bytes(line, (size_t)(space - line), bytes, &left) ||
        !read_bytes(space + 1, length - (size_t)(space - line) - 1, bytes + left, &right))
        return tide__fail(TIDE_E_FORMAT, "not two tokens in GPT-2's characters for bytes");
    merge m = {find_token(t, bytes, left), find_token(t, bytes + left, right), (uint32_t)t->merges.count,
               find_token(t, bytes, left + right)};
    if (m.left == NONE || m.right == NONE || m.whole == NONE)
        return tide__fail(TIDE_E_FORMAT, "the two, or what they make, are not in vocab.json");
    return tide__vec_push(&t->merges, m);
}

static tide_status index_merges(tide_tokenizer *t) {
    TIDE_TRY(make_table(t->merges.count, &t->by_pair, &t->n_by_pair));
    for (size_t i = 0; i < t->merges.count; i++) {
        uint32_t *slot = slot_of_pair(t, t->merges.data[i].left, t->merges.data[i].right);
        if (!*slot) *slot = (uint32_t)i + 1; /* of a pair that comes twice the first counts */
    }
    return TIDE_OK;
}

static tide_status read_merges(tide_tokenizer *t, const char *text, size_t size) {
    char *bytes = malloc(size + 1);
    tide_status status = bytes ? TIDE_OK : tide__fail_memory();
    size_t line = 1;
    for (size_t at = 0; at < size && status == TIDE_OK; line++) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        bool comment = line == 1 && length > 0 && text[at] == '#';
        size_t trimmed = length > 0 && text[at + length - 1] == '\r' ? length - 1 : length;
        if (trimmed > 0 && !comment) status = add_merge(t, text + at, trimmed, bytes);
        if (status == TIDE_E_FORMAT) status = tide__fail_in(status, "line %zu", line);
        at += length + 1;
    }
    free(bytes);
    return status == TIDE_OK ? index_merges(t) : status;
}

/* ---- life ---- */

tide_status tide__bpe_read(const char *vocabulary, size_t vocabulary_bytes, const char *merges, size_t merges_bytes,
                           tide_tokenizer **out) {
    tide_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return tide__fail_memory();
    tide_status status = read_vocabulary(t, vocabulary, vocabulary_bytes);
    if (status == TIDE_E_FORMAT) status = tide__fail_in(status, "vocab.json");
    if (status == TIDE_OK) {
        status = read_merges(t, merges, merges_bytes);
        if (status == TIDE_E_FORMAT) status = tide__fail_in(status, "merges.txt");
    }
    if (status == TIDE_OK)
        *out = t;
    else
        tide_tokenizer_close(t);
    return status;
}

static tide_status open_file(const char *folder, const char *name, tide__file *out) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path) return tide__fail(TIDE_E_ARGUMENT, "%s: too long a path", folder);
    return tide__file_open_regular(path, out);
}

tide_status tide_tokenizer_open(const char *folder, tide_tokenizer **out) {
    tide__file vocabulary, merges;
    TIDE_NEED(folder, out);
    TIDE_TRY(open_file(folder, "vocab.json", &vocabulary));
    tide_status status = open_file(folder, "merges.txt", &merges);
    if (status == TIDE_OK) {
        status = tide__bpe_read(vocabulary.text, vocabulary.size, merges.text, merges.size, out);
        if (status != TIDE_OK) status = tide__fail_in(status, "%s", folder);
        tide__file_close(&merges);
    }
    tide__file_close(&vocabulary);
    return status;
}

void tide_tokenizer_close(tide_tokenizer *t) {
    if (!t) return;
    tide__vec_free(&t->bytes);
    tide__vec_free(&t->tokens);
    tide__vec_free(&t->merges);
    free(t->by_bytes);
    free(t->by_pair);
    free(t);
}

uint32_t tide_tokenizer_size(const tide_tokenizer *t) { return (uint32_t)t->tokens.count; }

const char *tide_tokenizer_bytes(const tide_tokenizer *t, uint32_t token, size_t *size) {
    bool known = token < t->tokens.count && t->tokens.data[token].known;
    *size = known ? t->tokens.data[token].size : 0;
    return known ? t->bytes.data + t->tokens.data[token].at : NULL;
}

/* ---- encoding ---- */

/* A token of the part, and its neighbours that are left. */
typedef struct node {
    uint32_t token, before, after;
} node;

/* A pair that could be merged; out of date when one of the two is another token by now. */
typedef struct wish {
    uint32_t rank, at, left, right;
} wish;

typedef struct encoder {
    const tide_tokenizer *tokenizer;
    TIDE_VEC(node) links;
    TIDE_VEC(wish) heap; /* the lowest rank first; of equal ones the first place */
    TIDE_VEC(uint32_t) tokens;
} encoder;

static bool is_before(const wish *a, const wish *b) { return a->rank != b->rank ? a->rank < b->rank : a->at < b->at; }

static tide_status push_wish(encoder *e, uint32_t at) {
    const node *l = &e->links.data[at];
    if (l->after == NONE) return TIDE_OK;
    uint32_t right = e->links.data[l->after].token, which = *slot_of_pair(e->tokenizer, l->token, right);
    if (!which) return TIDE_OK;
    wish w = {e->tokenizer->merges.data[which - 1].rank, at, l->token, right};
    TIDE_TRY(tide__vec_push(&e->heap, w));
    size_t i = e->heap.count - 1;
    for (; i > 0 && is_before(&w, &e->heap.data[(i - 1) / 2]); i = (i - 1) / 2)
        e->heap.data[i] = e->heap.data[(i - 1) / 2];
    e->heap.data[i] = w;
    return TIDE_OK;
}

static wish pop_wish(encoder *e) {
    wish *h = e->heap.data, top = h[0], last = h[--e->heap.count];
    size_t i = 0, n = e->heap.count;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < n && is_before(&h[child + 1], &h[child])) child++;
        if (child >= n || !is_before(&h[child], &last)) break;
        h[i] = h[child];
        i = child;
    }
    if (n > 0) h[i] = last;
    return top;
}

static tide_status merge_at(encoder *e, const wish *w) {
    node *l = &e->links.data[w->at];
    if (l->token != w->left || l->after == NONE || e->links.data[l->after].token != w->right) return TIDE_OK;
    uint32_t gone = l->after;
    l->token = e->tokenizer->merges.data[w->rank].whole;
    l->after = e->links.data[gone].after;
    e->links.data[gone].token = NONE;
    if (l->after != NONE) e->links.data[l->after].before = w->at;
    if (l->before != NONE) TIDE_TRY(push_wish(e, l->before));
    return push_wish(e, w->at);
}

static tide_status encode_part(encoder *e, const char *text, size_t size) {
    e->heap.count = e->tokens.count = 0;
    if (size == 0) return TIDE_OK;
    TIDE_TRY(tide__vec_reserve(&e->links, size));
    TIDE_TRY(tide__vec_reserve(&e->tokens, size));
    for (uint32_t i = 0; i < size; i++)
        e->links.data[i] =
            (node){e->tokenizer->of_byte[(unsigned char)text[i]], i ? i - 1 : NONE, i + 1 < size ? i + 1 : NONE};
    for (uint32_t i = 0; i + 1 < size; i++) TIDE_TRY(push_wish(e, i));
    while (e->heap.count > 0) {
        wish w = pop_wish(e);
        TIDE_TRY(merge_at(e, &w));
    }
    for (uint32_t i = 0; i != NONE; i = e->links.data[i].after)
        e->tokens.data[e->tokens.count++] = e->links.data[i].token;
    return TIDE_OK;
}

tide_status tide__bpe_encode(const tide_tokenizer *t, const char *text, size_t size, tide__tokens_fn fn,
                             void *context) {
    encoder e = {.tokenizer = t};
    tide_status status = TIDE_OK;
    while (size > 0 && status == TIDE_OK) {
        size_t part = tide__bpe_split(text, size);
        if (part >= NONE) status = tide__fail(TIDE_E_UNSUPPORTED, "one word of %zu bytes", part);
        if (status == TIDE_OK) status = encode_part(&e, text, part);
        if (status == TIDE_OK) status = fn(context, e.tokens.data, e.tokens.count);
        text += part;
        size -= part;
    }
    tide__vec_free(&e.links);
    tide__vec_free(&e.heap);
    tide__vec_free(&e.tokens);
    return status;
}

typedef struct collected {
    TIDE_VEC(uint32_t) tokens;
} collected;

static tide_status collect(void *context, const uint32_t *tokens, size_t n) {
    collected *c = context;
    TIDE_TRY(tide__vec_reserve(&c->tokens, n));
    if (n) memcpy(c->tokens.data + c->tokens.count, tokens, n * sizeof *tokens);
    c->tokens.count += n;
    return TIDE_OK;
}

tide_status tide_tokenizer_encode(const tide_tokenizer *t, const char *text, size_t size, uint32_t **out, size_t *n) {
    collected c = {0};
    TIDE_NEED(t, out, n);
    if (!text && size) return tide__fail(TIDE_E_ARGUMENT, "no text to encode");
    tide_status status = tide__vec_reserve(&c.tokens, 1); /* something to free */
    if (status == TIDE_OK) status = tide__bpe_encode(t, text, size, collect, &c);
    if (status != TIDE_OK) {
        tide__vec_free(&c.tokens);
        return status;
    }
    *out = c.tokens.data;
    *n = c.tokens.count;
    return TIDE_OK;
}
