/* A program for jobs of real ranks, which tests/net/test_mpi.sh starts by mpirun and hurts:
 *
 *      ranks exchange          messages of many sizes between all pairs, twice; prints "N ranks agree" once
 *      ranks steps N MS        N steps of MS ms, each with messages to all; says "step 3" when the first three are done
 *      ranks fail              the last rank fails by itself
 *
 * A fault is printed by the lowest rank that is left; every rank ends with the exit code of the fault's status. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tidemark/net.h>

enum { LARGEST = 3 * 1024 * 1024 + 5 };

static void nap_ms(long ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* What `from` sends `to`: its own bytes for each size. */
static void fill(unsigned char *bytes, size_t size, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 31 + i / 251 + from * 7 + to * 13 + size);
}

static bool is_filled(const unsigned char *bytes, size_t size, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (unsigned char)(i * 31 + i / 251 + from * 7 + to * 13 + size)) return false;
    return true;
}

/* One message to every rank, one from every rank, all at once. */
static tide_status exchange(tide_net *net, size_t size, uint64_t tag) {
    uint32_t n = tide_net_count(net), me = tide_net_rank(net);
    unsigned char *out = malloc(n * size + 1), *in = malloc(n * size + 1);
    tide_net_ticket *tickets = malloc(2 * n * sizeof *tickets);
    tide_status status = out && in && tickets ? TIDE_OK : TIDE_E_MEMORY;
    uint32_t posted = 0;
    for (uint32_t r = 0; r < n && status == TIDE_OK; r++) {
        fill(out + r * size, size, me, r);
        status = tide_net_send(net, r, tag, out + r * size, size, NULL, NULL, &tickets[posted]);
        if (status != TIDE_OK) break;
        posted++;
        status = tide_net_receive(net, r, tag, in + r * size, size, NULL, NULL, &tickets[posted]);
        if (status == TIDE_OK) posted++;
    }
    for (uint32_t i = 0; i < posted; i++) {
        tide_status waited = tide_net_wait(net, tickets[i]);
        if (status == TIDE_OK) status = waited;
    }
    for (uint32_t r = 0; r < n && status == TIDE_OK; r++)
        if (!is_filled(in + r * size, size, r, me)) status = TIDE_E_INTERNAL;
    free(out);
    free(in);
    free(tickets);
    return status;
}

static tide_status run_exchange(tide_net *net) {
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000, 1 << 20, LARGEST};
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes && status == TIDE_OK; i++)
        status = exchange(net, sizes[i / 2], i);
    if (status == TIDE_OK) status = tide_net_barrier(net);
    if (status == TIDE_OK && tide_net_rank(net) == 0)
        printf("%u ranks agree, the last on %s\n", tide_net_count(net), tide_net_host(net, tide_net_count(net) - 1));
    return status;
}

static tide_status run_steps(tide_net *net, long n, long ms) {
    tide_status status = TIDE_OK;
    for (long i = 0; i < n && status == TIDE_OK; i++) {
        tide_net_set_step(net, (uint64_t)i);
        status = exchange(net, 100000, (uint64_t)i);
        if (i == 3 && tide_net_rank(net) == 0) puts("step 3"), fflush(stdout);
        nap_ms(ms);
    }
    if (status == TIDE_OK && tide_net_rank(net) == 0) puts("all steps");
    return status;
}

static tide_status run_fail(tide_net *net) {
    tide_status ready = tide_net_barrier(net); /* a rank that is still opening would have its own word */
    if (ready != TIDE_OK) return ready;
    tide_net_set_step(net, 7);
    if (tide_net_rank(net) + 1 == tide_net_count(net)) {
        tide_net_fail(net, TIDE_E_IO, "its disk is full");
        return TIDE_E_IO;
    }
    char byte;
    tide_net_ticket ticket;
    tide_status status = tide_net_receive(net, tide_net_count(net) - 1, 1, &byte, 1, NULL, NULL, &ticket);
    return status == TIDE_OK ? tide_net_wait(net, ticket) : status;
}

static int report_fault(tide_net *net, tide_status status) {
    tide_net_fault_info fault = tide_net_fault(net);
    if (fault.status == TIDE_OK) {
        fprintf(stderr, "ranks: %s\n", tide_last_error());
        return tide_status_exit_code(status);
    }
    uint32_t speaker = fault.rank == 0 && fault.status == TIDE_E_PEER ? 1 : 0;
    if (tide_net_rank(net) == speaker)
        fprintf(stderr, "ranks: rank %u on %s, last in step %llu: %s\n", fault.rank, fault.host,
                (unsigned long long)fault.step, fault.why);
    else
        nap_ms(500); /* mpirun ends all with the first that ends */
    return tide_status_exit_code(fault.status);
}

int main(int argc, char **argv) {
    tide_net *net;
    tide_net_options options;
    if (argc < 2) return 2;
    signal(SIGTERM, SIG_IGN); /* as `tidemark train` does not end by it: mpirun sends it when a rank was killed */
    tide_net_options_init(&options);
    options.silence_ms = 3000;
    tide_status status = tide_net_open(&options, &net);
    if (status != TIDE_OK) {
        fprintf(stderr, "ranks: %s\n", tide_last_error());
        return tide_status_exit_code(status);
    }
    if (strcmp(argv[1], "exchange") == 0) status = run_exchange(net);
    if (strcmp(argv[1], "steps") == 0 && argc == 4) status = run_steps(net, atol(argv[2]), atol(argv[3]));
    if (strcmp(argv[1], "fail") == 0) status = run_fail(net);
    int exit_code = status == TIDE_OK ? 0 : report_fault(net, status);
    tide_net_close(net);
    return exit_code;
}
