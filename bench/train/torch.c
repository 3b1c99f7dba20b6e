/* PyTorch in a process of its own, which takes a step when it is told to: so its steps and ours can take turns. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/train.h"

static void run_child(const char *python, const char *arguments, bool trimmed, int in, int out) {
    char command[1024];
    snprintf(command, sizeof command, "exec '%s' '%s/bench/train/torch_step.py' %s", python, TIDE_SOURCE_DIR,
             arguments);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    if (trimmed) {
        setenv("MALLOC_MMAP_THRESHOLD_", "1048576", 1);
        setenv("MALLOC_TRIM_THRESHOLD_", "1048576", 1);
    }
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static bool start(const char *python, const char *arguments, bool trimmed, torch *t) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC)) return false;
    if (pipe2(from, O_CLOEXEC)) return false;
    t->pid = fork();
    if (t->pid == 0) run_child(python, arguments, trimmed, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    t->to = fdopen(to[1], "w");
    t->from = fdopen(from[0], "r");
    return t->pid > 0 && t->to && t->from;
}

bool torch_open(const char *python, const char *arguments, bool trimmed, torch *t) {
    *t = (torch){.pid = 0};
    if (!python) return false;
    signal(SIGPIPE, SIG_IGN);
    if (start(python, arguments, trimmed, t) && fscanf(t->from, "ready %63s", t->version) == 1) return true;
    torch_close(t);
    return false;
}

void torch_step(torch *t) {
    double seconds, cpu, kib;
    if (!t->pid) return;
    fprintf(t->to, "step\n");
    fflush(t->to);
    if (fscanf(t->from, "%lf %lf %lf", &seconds, &cpu, &kib) != 3) {
        fprintf(stderr, "torch_step.py has ended\n");
        exit(1);
    }
    sample_add(&t->seconds, seconds);
    sample_add(&t->cpu, cpu);
    t->peak_bytes = kib * 1024;
}

void torch_close(torch *t) {
    if (t->to) fclose(t->to);
    if (t->from) fclose(t->from);
    if (t->pid > 0) waitpid(t->pid, NULL, 0);
    *t = (torch){.pid = 0};
}
