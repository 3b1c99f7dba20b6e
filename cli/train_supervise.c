/* See train_supervise.h. The supervisor computes nothing: a job that it starts is `LAUNCHER -n RANKS tidemark train` with the same options, which goes
 * on from the checkpoint if there is one. A lost rank ends a job (exit code 13, or what the launcher makes of it); every other end is the end. */
#include "train_supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, MOST_WORDS = 64 };

/* ---- the command of a job ---- */

typedef struct job_command {
    char **words; /* ends with NULL */
    int n;
    char *launcher; /* cut into words */
    char self[PATH_BYTES], ranks[16];
} job_command;

/* Of the supervisor alone; a job that resumes is told by it from where, and a rank that is left alone shares nothing. All have a value. */
static bool is_ours(const char *word, bool alone, bool *with_value) {
    static const char *const names[] = {"--supervise", "--restarts", "--launcher",
                                        "--resume",    "--shard",    "--peer-budget"};
    const size_t n = sizeof names / sizeof *names - (alone ? 0 : 2);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(word, names[i], length) != 0 || (word[length] && word[length] != '=')) continue;
        *with_value = word[length] == '=';
        return true;
    }
    return false;
}

static void add_own_words(job_command *c, bool alone, int argc, char **argv) {
    bool with_value;
    for (int i = 1; i < argc; i++) {
        if (!is_ours(argv[i], alone, &with_value))
            c->words[c->n++] = argv[i];
        else if (!with_value)
            i++;
    }
}

static tide_status make_command(job_command *c, const train_options *o, uint32_t ranks, const char *resume, int argc,
                                char **argv) {
    static char n[] = "-n", train[] = "train", from[] = "--resume";
    *c = (job_command){.words = calloc((size_t)argc + MOST_WORDS + 8, sizeof *c->words)};
    c->launcher = strdup(o->launcher ? o->launcher : "mpirun");
    ssize_t length = readlink("/proc/self/exe", c->self, sizeof c->self - 1);
    if (!c->words || !c->launcher) return complain(TIDE_E_MEMORY, "out of host memory");
    if (length < 0) return complain(TIDE_E_IO, "cannot tell where this command is: %s", strerror(errno));
    char *rest = NULL;
    for (char *word = strtok_r(c->launcher, " ", &rest); word && c->n < MOST_WORDS; word = strtok_r(NULL, " ", &rest))
        c->words[c->n++] = word;
    snprintf(c->ranks, sizeof c->ranks, "%u", ranks + o->lenders);
    c->words[c->n++] = n;
    c->words[c->n++] = c->ranks;
    c->words[c->n++] = c->self;
    c->words[c->n++] = train;
    add_own_words(c, ranks + o->lenders == 1, argc, argv);
    if (!resume) return TIDE_OK;
    c->words[c->n++] = from;
    c->words[c->n] = strdup(resume);
    return c->words[c->n] ? TIDE_OK : complain(TIDE_E_MEMORY, "out of host memory");
}

static void free_command(job_command *c, bool resumes) {
    if (resumes && c->words) free(c->words[c->n]);
    free(c->words);
    free(c->launcher);
}

/* ---- one job ---- */

static volatile sig_atomic_t job_pid, stopped;

/* What ends the supervisor is for the job, which saves and ends. What a terminal sends has reached the job already. */
static void hand_on(int number, siginfo_t *info, void *context) {
    (void)context;
    stopped = number;
    if (job_pid > 0 && info->si_code <= 0) kill((pid_t)job_pid, number);
}

static sigset_t watched(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

static void watch_signals(void) {
    struct sigaction action = {.sa_sigaction = hand_on, .sa_flags = SA_SIGINFO}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &action, NULL);
}

/* A job takes signals as it finds fit, not as the supervisor does. */
static void unwatch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now, usual = {.sa_handler = SIG_DFL};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_flags & SA_SIGINFO) sigaction(numbers[i], &usual, NULL);
}

/* No signal comes between a job's start and its being known. One from before is for it as well. */
static pid_t start_job(const job_command *c) {
    const sigset_t set = watched();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &set, &before);
    const pid_t pid = fork();
    if (pid != 0) {
        if (pid > 0) job_pid = pid;
        if (pid > 0 && stopped) kill(pid, stopped);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return pid;
    }
    unwatch_signals();
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(c->words[0], c->words);
    fprintf(stderr, "tidemark: cannot start %s: %s\n", c->words[0], strerror(errno));
    _exit(127);
}

/* The exit code, as shells have it. */
static tide_status run_job(const job_command *c, int *code) {
    int state = 0;
    const pid_t pid = start_job(c);
    if (pid < 0) return complain(TIDE_E_IO, "cannot start a job: %s", strerror(errno));
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
    }
    job_pid = 0;
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return TIDE_OK;
}

/* ---- several ---- */

/* A rank was lost, or killed with its launcher: launchers have codes of their own, above 128. */
static bool is_loss(int code) { return code == tide_status_exit_code(TIDE_E_PEER) || code > 128; }

/* Ranks are a power of two: without the lost one, the next below; one that is alone is started again. */
static uint32_t ranks_left(uint32_t ranks) { return ranks > 1 ? ranks / 2 : 1; }

/* Which file is at the path; one that is replaced is another. */
static struct stat look_at(const char *path) {
    struct stat file = {0};
    if (stat(path, &file) != 0) file = (struct stat){0};
    return file;
}

/* Has a job saved since the file was as `before`? An older checkpoint may be another training's. */
static bool has_saved(const char *path, const struct stat *before) {
    const struct stat now = look_at(path);
    return now.st_ino != 0 && (now.st_ino != before->st_ino || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
                               now.st_mtim.tv_nsec != before->st_mtim.tv_nsec);
}

static tide_status start(const train_options *o, uint32_t ranks, const struct stat *before, int argc, char **argv,
                         int *code) {
    job_command c;
    const char *resume = has_saved(o->save.checkpoint, before) ? o->save.checkpoint : o->resume;
    tide_status status = make_command(&c, o, ranks, resume, argc, argv);
    if (status == TIDE_OK) status = run_job(&c, code);
    free_command(&c, resume != NULL);
    return status;
}

static tide_status check(const train_options *o) {
    if (tide_net_job_ranks() > 1)
        return complain(TIDE_E_ARGUMENT, "--supervise starts the ranks by itself; leave mpirun out");
    if (o->supervise & (o->supervise - 1))
        return complain(TIDE_E_ARGUMENT, "--supervise %u: the number of ranks has to be a power of two", o->supervise);
    if (!o->save.checkpoint)
        return complain(TIDE_E_ARGUMENT, "--supervise needs --checkpoint, and --every: a lost job goes on from there");
    return TIDE_OK;
}

int supervise(int argc, char **argv, const train_options *o) {
    uint32_t ranks = o->supervise, most = o->restarts ? o->restarts : 10;
    int code = 0;
    tide_status status = check(o);
    const struct stat before = status == TIDE_OK ? look_at(o->save.checkpoint) : (struct stat){0};
    watch_signals();
    for (uint32_t done = 0; status == TIDE_OK; done++) {
        status = start(o, ranks, &before, argc, argv, &code);
        if (status != TIDE_OK || !is_loss(code) || stopped) break;
        if (done == most)
            status = complain(TIDE_E_PEER, "a rank was lost again after %u restarts; the last checkpoint is %s", most,
                              o->save.checkpoint);
        ranks = ranks_left(ranks);
        if (status == TIDE_OK)
            fprintf(stderr, "tidemark: restart %u of at most %u, with %u rank%s\n", done + 1, most, ranks,
                    ranks == 1 ? "" : "s");
    }
    if (status != TIDE_OK) return report_failure(status);
    return stopped && is_loss(code) ? tide_status_exit_code(TIDE_E_CANCELLED) : code;
}
