/* plan, fit and compare --cluster: steps of a job on a cluster that need not be there. */
#ifndef TIDE_CLI_PLAN_CLUSTER_H
#define TIDE_CLI_PLAN_CLUSTER_H

#include "cli.h"

typedef struct cluster_args {
    const char *file; /* NULL: not given */
    const char *shard;
    uint32_t ranks; /* 0: as many as the cluster has */
} cluster_args;

/* The rows of cluster_args for a command's table. */
#define CLUSTER_OPTIONS(c)                                                                                  \
    {"--cluster", ARG_TEXT, &(c).file, "FILE",                                                              \
     "plan for one rank of a cluster: a profile or a file (docs/cluster.md)"},                              \
        {"--shard", ARG_TEXT, &(c).shard, "none|optimizer|all", "of a cluster: only this [all of them]"}, { \
        "--ranks", ARG_COUNT, &(c).ranks, "N", "of a cluster: so many, hosts of the same kind [as it says]" \
    }

typedef enum cluster_question {
    CLUSTER_PLAN,   /* every shard, at this batch */
    CLUSTER_FIT,    /* and the largest micro-batch that fits */
    CLUSTER_COMPARE /* and under several policies */
} cluster_question;

/* Complains of an option that was given and means nothing for a cluster. */
tide_status refuse_beside_cluster(const cluster_args *c, const char *option, bool given);
/* --shard and --ranks need --cluster. */
tide_status check_cluster_args(const cluster_args *c);
int plan_cluster(cluster_question question, const char *spec, const model_args *model, const planning_args *planning,
                 const cluster_args *c, bool json);

#endif
