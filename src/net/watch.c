/* Ranks of this host whose processes end without a word: the system says so long before silence does, and before mpirun
 * ends the others. A rank on another host, or in another pid namespace, is known by its silence alone. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/net_data.h"

/* What the last frames of a rank say comes before what its end says: they may be on their way for so long. */
static const uint64_t grace_ns = 200000000;

void tide__net_hello_fill(tide__net_hello *hello) {
    struct stat space;
    memset(hello, 0, sizeof *hello);
    if (gethostname(hello->host, sizeof hello->host - 1)) memcpy(hello->host, "?", 2);
    hello->pid = (uint64_t)getpid();
    if (stat("/proc/self/ns/pid", &space) == 0) hello->pid_space = (uint64_t)space.st_ino;
}

static int open_process(uint64_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

tide_status tide__net_watch_start(tide_net *net, const tide__net_hello *hellos) {
    const tide__net_hello *mine = &hellos[net->rank];
    tide__net_watched *watched = calloc(net->count, sizeof *watched);
    if (!watched) return tide__fail_memory();
    for (uint32_t r = 0; r < net->count; r++) {
        const tide__net_hello *h = &hellos[r];
        bool here = h->pid_space && h->pid_space == mine->pid_space && strcmp(h->host, mine->host) == 0;
        watched[r].fd = here && h->pid != mine->pid ? open_process(h->pid) : -1;
    }
    pthread_mutex_lock(&net->lock);
    for (uint32_t r = 0; r < net->count; r++) memcpy(net->hosts[r], hellos[r].host, TIDE_NET_HOST);
    pthread_mutex_unlock(&net->lock);
    atomic_store(&net->watched, watched);
    return TIDE_OK;
}

void tide__net_watch_end(tide_net *net) {
    tide__net_watched *watched = atomic_load(&net->watched);
    for (uint32_t r = 0; watched && r < net->count; r++)
        if (watched[r].fd >= 0) close(watched[r].fd);
    free(watched);
}

void tide__net_watch_look(tide_net *net, uint64_t now) {
    tide__net_watched *watched = atomic_load(&net->watched);
    for (uint32_t r = 0; watched && r < net->count; r++) {
        struct pollfd ended = {.fd = watched[r].fd, .events = POLLIN};
        if (ended.fd < 0 || net->peers[r].left || poll(&ended, 1, 0) != 1) continue;
        if (!watched[r].ended_ns) watched[r].ended_ns = now;
        if (now - watched[r].ended_ns >= grace_ns) tide__net_blame(net, r, "its process has ended");
    }
}
