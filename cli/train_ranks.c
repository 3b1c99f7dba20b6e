/* See train_ranks.h. */
#include "train_ranks.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

enum { LAST_WORDS_S = 1, LAST_BYTES = 4096, FINGERPRINT_BYTES = 256 };

/* ---- who speaks ---- */

/* stdout goes nowhere; what is said on stderr is kept, in case this rank fails. */
static void fall_silent(train_ranks *r) {
    fflush(stdout);
    if (!freopen("/dev/null", "w", stdout)) return;
    r->captured_fd = memfd_create("stderr of a rank", MFD_CLOEXEC);
    if (r->captured_fd >= 0) dup2(r->captured_fd, STDERR_FILENO);
}

tide_status ranks_join(train_ranks *r) {
    *r = (train_ranks){.stderr_fd = -1, .captured_fd = -1};
    if (tide_net_job_ranks() == 1) return TIDE_OK;
    tide_status status = tide_net_open(NULL, &r->net);
    if (status != TIDE_OK) return complain(status, "%s", tide_last_error());
    r->stderr_fd = dup(STDERR_FILENO);
    if (tide_net_rank(r->net) > 0) fall_silent(r);
    return TIDE_OK;
}

static const char head[] = "tidemark: ";
static bool is_message(const char *line) { return strncmp(line, head, sizeof head - 1) == 0; }

/* The last message of this rank: remarks go before what made it fail. */
static void own_words(const train_ranks *r, char *out, size_t room) {
    char said[LAST_BYTES + 1] = "";
    struct stat info;
    if (r->captured_fd >= 0 && fstat(r->captured_fd, &info) == 0) {
        off_t first = info.st_size > LAST_BYTES ? info.st_size - LAST_BYTES : 0;
        ssize_t n = pread(r->captured_fd, said, LAST_BYTES, first);
        said[n > 0 ? n : 0] = 0;
    }
    const char *last = said;
    for (const char *end = strchr(said, '\n'); end; end = strchr(end + 1, '\n'))
        if (is_message(end + 1)) last = end + 1;
    snprintf(out, room, "%.*s", (int)strcspn(last, "\n"), last);
    if (!out[0]) snprintf(out, room, "%s", tide_last_error());
}

static void tell_fault(const train_ranks *r, const tide_net_fault_info *fault) {
    const char *why = fault->why + (is_message(fault->why) ? sizeof head - 1 : 0);
    dprintf(r->stderr_fd, "tidemark: rank %" PRIu32 " on %s, last in step %" PRIu64 ": %s\n", fault->rank, fault->host,
            fault->step, why);
}

/* A rank that failed by itself reports that, for others may be busy planning; of one that is lost another speaks. Who does waits for nobody;
 * the others give it time, as launchers end all with the first that ends. untold: this rank has said nothing of a failure of its own. */
static int end_with_fault(const train_ranks *r, bool untold) {
    tide_net_fault_info fault = tide_net_fault(r->net);
    uint32_t speaker = fault.status != TIDE_E_PEER ? fault.rank : fault.rank == 0;
    if (tide_net_rank(r->net) != speaker)
        nanosleep(&(struct timespec){.tv_sec = LAST_WORDS_S}, NULL);
    else if (untold || r->captured_fd >= 0)
        tell_fault(r, &fault);
    return tide_status_exit_code(fault.status);
}

/* A status with this exit code. */
static tide_status status_of(int exit_code) {
#define MATCH(status, number, code, text) \
    if (exit_code == (code)) return status;
    TIDE_STATUS_TABLE(MATCH)
#undef MATCH
    return TIDE_E_INTERNAL;
}

/* What others have here must not be taken away under them. */
static void return_loan(train_ranks *r) {
    if (r->loan.net) (void)tide_loan_return(&r->loan);
    if (r->lender) (void)tide_lender_close(r->lender);
}

/* A training that was interrupted has ended on all ranks: that is no fault. */
int ranks_leave(train_ranks *r, int exit_code) {
    if (!r->net) return exit_code;
    if (exit_code && exit_code != tide_status_exit_code(TIDE_E_CANCELLED)) {
        char words[TIDE_NET_WHY];
        own_words(r, words, sizeof words);
        tide_net_fail(r->net, status_of(exit_code), words);
        exit_code = end_with_fault(r, exit_code == tide_status_exit_code(TIDE_E_PEER));
    }
    return_loan(r);
    tide_net_close(r->net);
    if (r->captured_fd >= 0) close(r->captured_fd);
    close(r->stderr_fd);
    return exit_code;
}

/* ---- options ---- */

static uint32_t ranks_here(const train_ranks *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_trainers; i++)
        n += strcmp(tide_net_host(r->net, i), tide_net_host(r->net, tide_net_rank(r->net))) == 0;
    return n;
}

/* Without a word about micro-batches each rank has one. */
static tide_status cut_batch(uint32_t count, model_args *m) {
    uint32_t batch = m->batch ? m->batch : 32, micros;
    if (count & (count - 1)) return complain(TIDE_E_ARGUMENT, "%u ranks: their number has to be a power of two", count);
    if (!m->micro && !m->accumulate) {
        if (batch % count)
            return complain(TIDE_E_ARGUMENT, "a batch of %u cannot be shared among %u ranks; give --micro", batch,
                            count);
        m->batch = batch;
        m->micro = batch / count;
        fprintf(stderr,
                "tidemark: micro-batches of %u samples, as --micro %u says: with it any number of ranks gets "
                "the same bits\n",
                m->micro, m->micro);
    }
    tide_status status = count_micros(m, &micros);
    if (status == TIDE_OK && (micros % count || (micros & (micros - 1))))
        status = complain(TIDE_E_ARGUMENT,
                          "%u micro-batches cannot be shared among %u ranks: a power of two can, from %u on", micros,
                          count, count);
    return status;
}

tide_status ranks_fit_options(train_ranks *r, train_options *o) {
    if (!r->net && o->least_shard != TIDE_SHARD_NONE)
        return complain(TIDE_E_ARGUMENT, "--shard %s is for several ranks", o->shard);
    if (!r->net && o->lent.given) return complain(TIDE_E_ARGUMENT, "--peer-budget is for several ranks");
    if (!r->net) return TIDE_OK;
    if (o->lenders >= tide_net_count(r->net))
        return complain(TIDE_E_ARGUMENT, "of %u ranks %u cannot lend only: none would train", tide_net_count(r->net),
                        o->lenders);
    r->n_trainers = tide_net_count(r->net) - o->lenders;
    if (!is_mode(o, "planned") || varies(&o->vary))
        return complain(TIDE_E_ARGUMENT, "several ranks train from plans only: no --mode, --min-length or --drop-path");
    if (o->total.given) return complain(TIDE_E_ARGUMENT, "--total-budget is for one rank; give --budget");
    if (!o->threads && strcmp(o->device, "cpu") == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN), here = (long)ranks_here(r);
        o->threads = here > 0 && cores > here ? (uint32_t)(cores / here) : 1;
        fprintf(stderr, "tidemark: %u thread%s per rank, as --threads %u says: another number gets other bits\n",
                o->threads, o->threads == 1 ? "" : "s", o->threads);
    }
    r->saves_weights = o->save_weights != NULL;
    r->records = o->record != NULL;
    if (tide_net_rank(r->net) > 0) {
        o->save = (save_args){0};
        o->log = o->record = o->save_weights = NULL;
        o->quiet = true;
    }
    return cut_batch(r->n_trainers, &o->model);
}

static uint64_t hash_of_command(int argc, char **argv) {
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (int i = 1; i < argc; i++)
        for (const char *c = argv[i];; c++) {
            hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
            if (!*c) break;
        }
    return hash;
}

static tide_status compare_commands(const train_ranks *r, int argc, char **argv) {
    uint32_t n = tide_net_count(r->net);
    uint64_t mine = hash_of_command(argc, argv), *all = calloc(n, sizeof *all);
    if (!all) return complain(TIDE_E_MEMORY, "out of host memory");
    tide_status status = tide_net_allgather(r->net, &mine, sizeof mine, all);
    for (uint32_t i = 1; i < n && status == TIDE_OK; i++)
        if (all[i] != all[0])
            status = complain(TIDE_E_ARGUMENT, "rank %u on %s has another command line than rank 0", i,
                              tide_net_host(r->net, i));
    free(all);
    return status;
}

/* ---- memory of other ranks ---- */

/* Who lends to a rank that trains. Without ranks for that, partners lend to each other: as far apart as they can be, since
 * neighbours are on one host. */
static uint32_t lender_of(const train_ranks *r, uint32_t rank) {
    uint32_t n = r->n_trainers, n_lenders = tide_net_count(r->net) - n;
    return n_lenders ? n + rank % n_lenders : rank ^ n / 2;
}

/* What one of them gets; those of one lender get the same. */
static uint64_t bytes_for(const train_ranks *r, const train_options *o, uint32_t rank) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < r->n_trainers; i++) n += i != rank && lender_of(r, i) == lender_of(r, rank);
    return o->lent.budget.bytes / n;
}

static tide_status open_lender(train_ranks *r, const train_options *o) {
    uint32_t me = tide_net_rank(r->net);
    uint64_t *bytes = calloc(tide_net_count(r->net), sizeof *bytes);
    if (!bytes) return complain(TIDE_E_MEMORY, "out of host memory");
    for (uint32_t i = 0; i < r->n_trainers; i++)
        if (lender_of(r, i) == me && i != me) bytes[i] = bytes_for(r, o, i);
    tide_status status = tide_lender_open(r->net, bytes, &r->lender);
    free(bytes);
    return status;
}

tide_status ranks_lend(train_ranks *r, const train_options *o, int argc, char **argv, tide_machine *machine) {
    if (!r->net) return TIDE_OK;
    uint32_t me = tide_net_rank(r->net);
    tide_status status = compare_commands(r, argc, argv);
    if (status == TIDE_OK) status = tide_net_among(r->net, r->n_trainers);
    if (status == TIDE_OK && r->n_trainers > 1 && !ranks_only_lends(r))
        status = tide_machine_measure_peers(r->net, r->n_trainers, machine);
    if (status != TIDE_OK || !o->lent.given) return status;
    status = open_lender(r, o);
    if (status != TIDE_OK || ranks_only_lends(r) || lender_of(r, me) == me) return status;
    r->loan = (tide_loan){r->net, lender_of(r, me)};
    return tide_machine_measure_loan(&r->loan, bytes_for(r, o, me), machine);
}

bool ranks_only_lends(const train_ranks *r) { return r->net && tide_net_rank(r->net) >= r->n_trainers; }

/* A signal that ends the job is for those that train: they save first. */
tide_status ranks_wait(train_ranks *r) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGTERM, &ignore, NULL);
    tide_status status = tide_lender_close(r->lender);
    r->lender = NULL;
    return status;
}

/* ---- one kind of bits ---- */

static tide_status compare(const train_ranks *r, const char (*all)[FINGERPRINT_BYTES]) {
    for (uint32_t i = 1; i < r->n_trainers; i++)
        if (strcmp(all[i], all[0]) != 0)
            return complain(TIDE_E_UNSUPPORTED,
                            "rank 0 on %s has %s, rank %u on %s has %s: their bits may differ; --bits any accepts that",
                            tide_net_host(r->net, 0), all[0], i, tide_net_host(r->net, i), all[i]);
    return TIDE_OK;
}

tide_status ranks_compare(const train_ranks *r, const tide_device *device, bool any_bits) {
    char mine[FINGERPRINT_BYTES] = "", (*all)[FINGERPRINT_BYTES];
    tide_device_info info;
    if (!r->net || any_bits) return TIDE_OK;
    tide_status status = tide_device_get_info(device, &info);
    if (status != TIDE_OK) return status;
    snprintf(mine, sizeof mine, "%s, tidemark %s", info.description, tide_version());
    all = calloc(r->n_trainers, sizeof *all);
    if (!all) return complain(TIDE_E_MEMORY, "out of host memory");
    status = tide_net_allgather(r->net, mine, sizeof mine, all);
    if (status == TIDE_OK) status = compare(r, (const char(*)[FINGERPRINT_BYTES])all);
    free(all);
    return status;
}

/* ---- steps ---- */

/* A message of a step: its number is its tag, so it meets its other side; steps and pieces of it come in order. */
static tide_status pass_message(void *context, const tide_message *m, uint64_t position, void *data,
                                uint64_t size_bytes) {
    train_ranks *r = context;
    tide_net *net = r->net;
    tide_net_ticket ticket;
    uint64_t begin_ns = now_ns();
    (void)position;
    tide_status status = m->receives ? tide_net_receive(net, m->peer, m->number, data, size_bytes, NULL, NULL, &ticket)
                                     : tide_net_send(net, m->peer, m->number, data, size_bytes, NULL, NULL, &ticket);
    if (status == TIDE_OK) status = tide_net_wait(net, ticket);
    if (!m->receives) atomic_fetch_add(&r->sent_bytes, size_bytes);
    atomic_fetch_add(&r->messages_ns, now_ns() - begin_ns);
    return status;
}

const tide_peers *ranks_peers(train_ranks *r) {
    if (!r->net || r->n_trainers == 1) return NULL;
    r->peers = (tide_peers){tide_net_rank(r->net), r->n_trainers, pass_message, r};
    return &r->peers;
}

tide_status ranks_agree(const train_ranks *r, uint64_t steps_done, bool *stop, bool *save) {
    unsigned char all[2] = {*stop, *save};
    if (!r->net) return TIDE_OK;
    tide_net_set_step(r->net, steps_done);
    tide_status status = tide_net_broadcast(r->net, 0, all, sizeof all);
    if (status == TIDE_OK) *stop = all[0], *save = all[1];
    return status;
}

tide_status ranks_all(const train_ranks *r, bool *is) {
    if (!r->net) return TIDE_OK;
    unsigned char mine = *is, *all = calloc(r->n_trainers, 1);
    if (!all) return complain(TIDE_E_MEMORY, "out of host memory");
    tide_status status = tide_net_allgather(r->net, &mine, 1, all);
    for (uint32_t i = 0; i < r->n_trainers && status == TIDE_OK; i++) *is = *is && all[i];
    free(all);
    return status;
}

void ranks_note(const train_ranks *r, outcome *out) {
    uint64_t steps = out->n_steps ? out->n_steps : 1;
    out->sent_bytes = r->sent_bytes / steps;
    out->messages_ns = r->messages_ns / steps;
}

tide_status ranks_gather(const train_ranks *r, outcome *out) {
    if (!r->net) return TIDE_OK;
    uint32_t n = r->n_trainers;
    rank_use mine = {.arena_bytes = out->arena_bytes, .tier_bytes = out->tier_bytes, .step_ns = out->step_ns};
    mine.sent_bytes = out->sent_bytes;
    mine.messages_ns = out->messages_ns;
    snprintf(mine.host, sizeof mine.host, "%s", tide_net_host(r->net, tide_net_rank(r->net)));
    out->ranks = calloc(n, sizeof *out->ranks);
    if (!out->ranks) return complain(TIDE_E_MEMORY, "out of host memory");
    out->n_ranks = n;
    return tide_net_allgather(r->net, &mine, sizeof mine, out->ranks);
}
