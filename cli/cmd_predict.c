/* tidemark predict: a model with the weights of a file says what it sees, or how a text goes on. */
#include <stdlib.h>
#include <string.h>

#include "predict.h"

/* ---- the command line ---- */

/* positional has room for every argument. */
static bool read_options(int argc, char **argv, const char **positional, predict_options *o, int *exit_code) {
    *o = (predict_options){.machine = "cpu", .device = "cpu", .top = 5, .tokens = 100, .temperature = 1};
    o->data.seed = 1;
    const arg_option options[] = {
        WEIGHTS_OPTIONS(o->weights),
        {"--input", ARG_TEXT, &o->model.input, "CxHxW", "size of one sample [the family's own, or the data's]"},
        {"--classes", ARG_COUNT, &o->model.classes, "N", "classes, or tokens [the family's own, the data's, or bytes]"},
        {"--labels", ARG_TEXT, &o->labels, "FILE", "names of the classes, one per line"},
        {"--top", ARG_COUNT, &o->top, "N", "how many classes are shown [5]"},
        {"--data", ARG_TEXT, &o->data.data, "NAME|PATH",
         "instead of images: samples to test with, as `train` has them"},
        {"--samples", ARG_COUNT, &o->data.test_samples, "N", "how many of them [10]"},
        {"--prompt", ARG_TEXT, &o->prompt, "TEXT", "what the text of a language model begins with"},
        {"--ids", ARG_TEXT, &o->ids, "LIST", "or its first tokens as numbers: 15496,11,995"},
        {"--tokenizer", ARG_TEXT, &o->data.tokenizer, "FOLDER",
         "GPT-2's vocab.json and merges.txt: its tokens [bytes]"},
        {"--tokens", ARG_COUNT, &o->tokens, "N", "tokens that follow [100]"},
        {"--temperature", ARG_NUMBER, &o->temperature, "X", "0: always the likeliest token; 1: as likely as it is [1]"},
        {"--seed", ARG_U64, &o->data.seed, "N", "of the tokens drawn, and of samples [1]"},
        BUDGET_OPTIONS(o->budgets),
        {"--disk-path", ARG_TEXT, &o->disk_path, "FOLDER", "where spilled bytes go [$TMPDIR, else /tmp]"},
        {"--machine", ARG_TEXT, &o->machine, "NAME", "profile of tiers and channels: a name or a file [cpu]"},
        {"--device", ARG_TEXT, &o->device, "NAME", "cpu, opencl or opencl:N, see `tidemark devices` [cpu]"},
        {"--threads", ARG_COUNT, &o->threads, "N", "compute threads of cpu [all cores]"},
        {"--json", ARG_FLAG, &o->json, NULL, "for programs"},
    };
    const arg_command command = {.usage = "predict MODEL [IMAGE...] --weights FILE [options]",
                                 .summary = "Says which classes images belong to, or how a text goes on.",
                                 .options = options,
                                 .n_options = sizeof options / sizeof *options,
                                 .positional = positional,
                                 .min_positional = 1,
                                 .max_positional = (uint32_t)argc};
    bool read = args_parse(&command, argc, argv, exit_code);
    o->spec = positional[0];
    o->images = positional + 1;
    while (read && o->images[o->n_images]) o->n_images++;
    return read;
}

static tide_status check_options(const predict_options *o) {
    if (!o->weights.file) return complain(TIDE_E_ARGUMENT, "predict needs --weights");
    if (o->n_images && o->data.data) return complain(TIDE_E_ARGUMENT, "--data is instead of images");
    if (o->prompt && o->ids) return complain(TIDE_E_ARGUMENT, "--prompt and --ids both say how the text begins");
    tide_status status = check_weights_args(&o->weights);
    return status == TIDE_OK ? check_data_args(&o->data) : status;
}

/* ---- names of classes ---- */

/* The file's text with its lines cut, and where each begins. */
typedef struct label_list {
    char *text;
    const char **lines;
    uint32_t n;
} label_list;

static void cut_lines(label_list *l) {
    for (char *at = l->text, *next; at && *at; at = next) {
        next = strchr(at, '\n');
        if (next) *next++ = '\0';
        l->lines[l->n++] = at;
    }
}

static tide_status read_labels(const char *path, label_list *l) {
    enum { MOST_BYTES = 1 << 20 };
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!path) return TIDE_OK;
    if (!f) return complain(TIDE_E_IO, "--labels: cannot open %s", path);
    l->text = calloc(MOST_BYTES + 1, 1);
    l->lines = calloc(MOST_BYTES + 1, sizeof *l->lines);
    bool whole = l->text && l->lines && fread(l->text, 1, MOST_BYTES, f) < MOST_BYTES && !ferror(f);
    fclose(f);
    if (!whole) return complain(TIDE_E_IO, "--labels: cannot read %s, or it is longer than 1 MiB", path);
    cut_lines(l);
    return TIDE_OK;
}

/* ---- setting up ---- */

typedef struct setting {
    tide_machine machine;
    tide_device *device;
    tide_model *model;
    tide_predictor *predictor;
    train_data data;
    label_list labels;
} setting;

/* Of files, the model's shape is its own or the command line's; else the data's, as in training. */
static tide_status open_model(predict_options *o, setting *s) {
    model_args args = o->model;
    tide_status status = TIDE_OK;
    args.batch = 1;
    if (!o->data.test_samples) o->data.test_samples = 10;
    if (!o->n_images) status = prepare_data(&o->data, o->spec, &args, &s->data);
    if (status == TIDE_OK) status = load_model(o->spec, &args, &s->model);
    if (status != TIDE_OK) return status;
    bool tokens = tide_model_takes_tokens(s->model);
    if (tokens && (o->n_images || o->data.data))
        return complain(TIDE_E_ARGUMENT, "%s takes a text: --prompt or --ids", o->spec);
    if (!tokens && (o->prompt || o->ids)) return complain(TIDE_E_ARGUMENT, "%s takes images, not a text", o->spec);
    if (!tokens && tide_model_labels(s->model) != 1)
        return complain(TIDE_E_ARGUMENT, "%s has a class per pixel, which is not shown", o->spec);
    return tokens || o->n_images ? TIDE_OK : open_data(&o->data, s->model, &s->data);
}

static tide_status open_predictor(predict_options *o, setting *s, tide_fit_report *fit) {
    tide_predictor_options p;
    tide_weights_options w;
    tide_predictor_options_init(&p);
    p.model = s->model;
    p.device = s->device;
    p.machine = &s->machine;
    p.disk_path = o->disk_path;
    p.plan.policy = default_policy(NULL, &o->budgets);
    fill_budgets(&o->budgets, &p.plan);
    tide_status status = tide_predictor_create(&p, fit, &s->predictor);
    if (status != TIDE_OK) return status;
    fill_weights_options(&o->weights, &w);
    return tide_predictor_load(s->predictor, o->weights.file, &w);
}

static tide_status open_setting(predict_options *o, setting *s, tide_fit_report *fit) {
    tide_device_options d;
    tide_device_options_init(&d);
    d.threads = o->threads;
    tide_status status = check_options(o);
    if (status == TIDE_OK) status = read_labels(o->labels, &s->labels);
    if (status == TIDE_OK) status = open_model(o, s);
    if (status == TIDE_OK) status = tide_machine_load(o->machine, &s->machine);
    if (status == TIDE_OK) status = tide_device_open(o->device, &d, &s->device);
    if (status == TIDE_OK) status = drop_ram(&o->budgets, s->device, &s->machine);
    return status == TIDE_OK ? open_predictor(o, s, fit) : status;
}

static void close_setting(setting *s) {
    tide_predictor_destroy(s->predictor);
    close_data(&s->data);
    tide_model_destroy(s->model);
    tide_device_close(s->device);
    free(s->labels.text);
    free(s->labels.lines);
}

static int predict(predict_options *o) {
    setting s = {0};
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_status status = open_setting(o, &s, &fit);
    prediction p = {.options = o, .predictor = s.predictor, .model = s.model, .data = &s.data};
    p.labels = s.labels.lines;
    p.n_labels = s.labels.n;
    if (status == TIDE_OK) status = tide_model_takes_tokens(s.model) ? predict_text(&p) : predict_classes(&p);
    int exit_code = status == TIDE_OK ? 0 : report_misfit(status, &fit, NULL, &s.machine, false);
    close_setting(&s);
    return exit_code;
}

int cmd_predict(int argc, char **argv) {
    predict_options o;
    int exit_code;
    const char **positional = calloc((size_t)argc + 1, sizeof *positional);
    if (!positional) return report_failure(complain(TIDE_E_MEMORY, "out of host memory"));
    if (read_options(argc, argv, positional, &o, &exit_code)) exit_code = predict(&o);
    free(positional);
    return exit_code;
}
