/* See train_save.h. Invariant: the file at the path is a whole checkpoint at any time; those before it move on by links and
 * renames, never by copies. */
#include "train_save.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"

enum { PATH_BYTES = 4096, MOST_KEPT = 1000 };

/* ---- the command line ---- */

static bool read_every(const char *text, save_every *out) {
    *out = (save_every){0};
    if (u64_arg_parse(text, UINT64_MAX, &out->steps)) return out->steps > 0;
    return duration_arg_parse(text, &out->ns) && out->ns > 0;
}

tide_status check_save_args(save_args *a) {
    if (a->every && !read_every(a->every, &a->when))
        return complain(TIDE_E_ARGUMENT, "--every: \"%s\" is not a number of steps or a time such as 10min", a->every);
    if (a->every && !a->checkpoint) return complain(TIDE_E_ARGUMENT, "--every needs --checkpoint");
    if (a->keep && !a->checkpoint) return complain(TIDE_E_ARGUMENT, "--keep needs --checkpoint");
    if (a->keep > MOST_KEPT) return complain(TIDE_E_ARGUMENT, "--keep: at most %d", MOST_KEPT);
    if (wants_stdout(a->checkpoint)) return complain(TIDE_E_ARGUMENT, "--checkpoint needs a file of its own");
    if (a->checkpoint && strlen(a->checkpoint) + sizeof ".before" > PATH_BYTES)
        return complain(TIDE_E_ARGUMENT, "--checkpoint: the name is too long");
    return TIDE_OK;
}

/* ---- signals ---- */

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_WATCHED = sizeof watched / sizeof *watched };

static volatile sig_atomic_t interrupted;

/* SIGHUP stays ignored under nohup. (SIGINT is not looked at: shells ignore it for whatever runs in the background.) */
static void set_handlers(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler}, old;
    for (int i = 0; i < N_WATCHED; i++) {
        bool ignored = sigaction(watched[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN;
        if (!ignored || watched[i] != SIGHUP) sigaction(watched[i], &action, NULL);
    }
}

static void on_signal(int number) {
    interrupted = number;
    set_handlers(SIG_DFL);
}

void save_begin(saver *s, const save_args *args) {
    *s = (saver){.args = args, .saved_ns = now_ns()};
    set_handlers(on_signal);
}

void save_end(bool ignore) { set_handlers(ignore ? SIG_IGN : SIG_DFL); }

/* ---- the checkpoints before the last ---- */

/* Gives the file at the path a second name, under which it outlives the next save. */
static tide_status hold(const char *path, const char *held) {
    if (unlink(held) != 0 && errno != ENOENT)
        return complain(TIDE_E_IO, "--keep: cannot replace %s: %s", held, strerror(errno));
    if (linkat(AT_FDCWD, path, AT_FDCWD, held, AT_SYMLINK_FOLLOW) == 0 || errno == ENOENT) return TIDE_OK;
    return complain(TIDE_E_IO, "--keep: cannot link %s: %s", held, strerror(errno));
}

/* FILE.1 becomes FILE.2 and so on, the oldest goes, and what was held becomes FILE.1. */
static tide_status move_on(const char *path, uint32_t keep, const char *held) {
    char from[PATH_BYTES], to[PATH_BYTES];
    if (access(held, F_OK) != 0) return TIDE_OK; /* this is the first */
    for (uint32_t age = keep - 1; age >= 1; age--) {
        snprintf(to, sizeof to, "%s.%" PRIu32, path, age);
        snprintf(from, sizeof from, "%s.%" PRIu32, path, age - 1);
        if (rename(age == 1 ? held : from, to) != 0 && errno != ENOENT)
            return complain(TIDE_E_IO, "--keep: cannot write %s: %s", to, strerror(errno));
    }
    return TIDE_OK;
}

static tide_status save(const save_args *a, tide_trainer *trainer) {
    char held[PATH_BYTES];
    if (a->keep < 2) return tide_trainer_save(trainer, a->checkpoint);
    snprintf(held, sizeof held, "%s.before", a->checkpoint);
    tide_status status = hold(a->checkpoint, held);
    if (status == TIDE_OK) status = tide_trainer_save(trainer, a->checkpoint);
    if (status == TIDE_OK) return move_on(a->checkpoint, a->keep, held);
    unlink(held);
    return status;
}

/* ---- between steps ---- */

static bool is_due(const saver *s, uint64_t done) {
    const save_every *when = &s->args->when;
    return (when->steps && done % when->steps == 0) || (when->ns && now_ns() - s->saved_ns >= when->ns);
}

bool save_interrupted(void) { return interrupted != 0; }

bool save_is_due(const saver *s, const tide_trainer *trainer, bool last, bool stop) {
    return s->args->checkpoint && (last || stop || is_due(s, tide_trainer_steps_done(trainer)));
}

tide_status save_after_step(saver *s, tide_trainer *trainer, bool due, bool stop, bool shared) {
    const char *path = s->args->checkpoint;
    uint64_t done = tide_trainer_steps_done(trainer);
    tide_status status = TIDE_OK;
    if (due && (path || shared)) status = path ? save(s->args, trainer) : tide_trainer_save(trainer, NULL);
    if (status != TIDE_OK) return status;
    if (due) s->saved_ns = now_ns();
    if (!stop) return TIDE_OK;
    return complain(TIDE_E_CANCELLED, "interrupted after step %" PRIu64 "%s%s", done, path ? "; saved to " : "",
                    path ? path : "");
}
