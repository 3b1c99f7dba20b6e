/* tidemark predict for language models: a prompt, and what follows it, token by token. See predict.h.
 *
 * The model sees a window of its context's length. Tokens after the last one are blanks that nothing before them sees. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict.h"

enum { BYTES = 256, STREAM = 0x70726564 };

/* All tokens so far, of the prompt and after it. */
typedef struct tokens {
    uint32_t *data;
    uint64_t n, room;
} tokens;

/* ---- the prompt ---- */

static tide_status read_ids(const char *text, uint32_t vocabulary, tokens *t) {
    for (;;) {
        char *end;
        unsigned long id = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || id >= vocabulary || (*end && *end != ','))
            return complain(TIDE_E_ARGUMENT, "--ids: \"%s\" does not begin with a number below %" PRIu32, text,
                            vocabulary);
        t->data[t->n++] = (uint32_t)id;
        if (!*end) return TIDE_OK;
        text = end + 1;
    }
}

static tide_status encode_prompt(const tide_tokenizer *tokenizer, const char *prompt, uint32_t vocabulary, tokens *t) {
    uint32_t *ids;
    size_t n;
    if (tide_tokenizer_size(tokenizer) > vocabulary)
        return complain(TIDE_E_ARGUMENT, "the tokenizer has %" PRIu32 " tokens, the model %" PRIu32,
                        tide_tokenizer_size(tokenizer), vocabulary);
    tide_status status = tide_tokenizer_encode(tokenizer, prompt, strlen(prompt), &ids, &n);
    if (status != TIDE_OK) return status;
    memcpy(t->data, ids, n * sizeof *ids); /* never more than bytes */
    t->n = n;
    free(ids);
    return TIDE_OK;
}

/* A newline begins a text that nobody began. */
static tide_status read_prompt(const prediction *p, uint32_t vocabulary, tokens *t) {
    const predict_options *o = p->options;
    const char *prompt = o->prompt && *o->prompt ? o->prompt : "\n", *source = o->ids ? o->ids : prompt;
    t->room = strlen(source) + o->tokens + 1;
    t->data = malloc(t->room * sizeof *t->data);
    if (!t->data) return complain(TIDE_E_MEMORY, "out of host memory");
    if (o->ids) return read_ids(o->ids, vocabulary, t);
    if (p->data->tokenizer) return encode_prompt(p->data->tokenizer, prompt, vocabulary, t);
    if (vocabulary != BYTES)
        return complain(TIDE_E_ARGUMENT,
                        "a vocabulary of %" PRIu32 " is no bytes: give its --tokenizer, or tokens by --ids",
                        vocabulary);
    for (; *prompt; prompt++) t->data[t->n++] = (unsigned char)*prompt;
    return TIDE_OK;
}

/* ---- the next token ---- */

static tide_status look(const prediction *p, const tokens *t, uint64_t context, float *window, float *probabilities) {
    uint64_t n = t->n < context ? t->n : context;
    for (uint64_t i = 0; i < context; i++) window[i] = i < n ? (float)t->data[t->n - n + i] : 0;
    tide_status status = tide_predictor_run(p->predictor, window);
    return status == TIDE_OK ? tide_predictor_read(p->predictor, n - 1, probabilities) : status;
}

/* Probabilities to the power of 1 / temperature, and one of them drawn. */
static uint32_t draw(const prediction *p, float *probabilities, uint32_t vocabulary, uint64_t at) {
    double sum = 0, target, power = 1 / p->options->temperature;
    choice best;
    if (likeliest(probabilities, vocabulary, 1, &best) && p->options->temperature < 1e-3) return best.which;
    for (uint32_t i = 0; i < vocabulary; i++) sum += pow((double)probabilities[i] / (double)best.probability, power);
    target = sum * (double)tide_random_unit(p->options->data.seed, STREAM, at);
    for (uint32_t i = 0; i < vocabulary; i++) {
        target -= pow((double)probabilities[i] / (double)best.probability, power);
        if (target < 0) return i;
    }
    return best.which;
}

/* ---- output ---- */

/* The bytes of a token; in `own` where the token is its byte. */
static const char *token_bytes(const prediction *p, uint32_t token, char *own, size_t *size) {
    if (p->data->tokenizer) return tide_tokenizer_bytes(p->data->tokenizer, token, size);
    *own = (char)token;
    *size = 1;
    return own;
}

/* What a terminal could take for a command becomes a question mark. */
static char plain(char c) {
    unsigned char byte = (unsigned char)c;
    return (byte >= 32 && byte != 127) || byte == '\n' || byte == '\t' ? c : '?';
}

static char *as_text(const prediction *p, const tokens *t) {
    size_t room = 1, n = 0, size;
    char own;
    for (uint64_t i = 0; i < t->n; i++) {
        (void)token_bytes(p, t->data[i], &own, &size);
        room += size;
    }
    char *text = malloc(room);
    for (uint64_t i = 0; text && i < t->n; i++) {
        const char *bytes = token_bytes(p, t->data[i], &own, &size);
        for (size_t k = 0; k < size; k++) text[n++] = plain(bytes[k]);
    }
    if (text) text[n] = '\0';
    return text;
}

static tide_status print_tokens(const prediction *p, const tokens *t, const choice *next, uint32_t n_next) {
    json_out j;
    bool as_ids = p->options->ids && !p->data->tokenizer;
    char *text = as_ids ? NULL : as_text(p, t);
    if (!text && !as_ids) return complain(TIDE_E_MEMORY, "out of host memory");
    if (p->options->json) {
        json_begin(&j, stdout);
        json_text(&j, "model", tide_model_name(p->model));
        json_choices(&j, p, "next", next, n_next);
        if (text) json_text(&j, "text", text);
        json_open(&j, "ids", '[');
        for (uint64_t i = 0; i < t->n; i++) json_u64(&j, NULL, t->data[i]);
        json_close(&j, '[');
        json_end(&j);
    } else if (text) {
        puts(text);
    } else {
        for (uint64_t i = 0; i < t->n; i++) printf("%s%" PRIu32, i ? "," : "", t->data[i]);
        putchar('\n');
    }
    free(text);
    return TIDE_OK;
}

/* Also what could follow the prompt. */
static tide_status go_on(const prediction *p, tokens *t, float *window, float *probabilities, choice *next,
                         uint32_t *n_next) {
    uint64_t context = (uint64_t)tide_model_input(p->model).c;
    uint32_t vocabulary = tide_model_classes(p->model);
    for (uint32_t i = 0; i < p->options->tokens; i++) {
        tide_status status = look(p, t, context, window, probabilities);
        if (status != TIDE_OK) return status;
        if (i == 0) *n_next = likeliest(probabilities, vocabulary, p->options->top, next);
        t->data[t->n++] = draw(p, probabilities, vocabulary, i);
    }
    return TIDE_OK;
}

tide_status predict_text(const prediction *p) {
    uint32_t vocabulary = tide_model_classes(p->model), n_next = 0;
    float *window = malloc((size_t)tide_model_input(p->model).c * sizeof *window);
    float *probabilities = malloc(vocabulary * sizeof *probabilities);
    choice *next = malloc((size_t)p->options->top * sizeof *next);
    tokens t = {0};
    bool room = window && probabilities && next;
    tide_status status = room ? read_prompt(p, vocabulary, &t) : complain(TIDE_E_MEMORY, "out of host memory");
    if (room && status == TIDE_OK) status = go_on(p, &t, window, probabilities, next, &n_next);
    if (status == TIDE_OK) status = print_tokens(p, &t, next, n_next);
    free(t.data);
    free(next);
    free(probabilities);
    free(window);
    return status;
}
