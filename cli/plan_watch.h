/* Watching a plan being made: a terminal sees how far it is; Ctrl-C, or a number of seconds, takes the best so far. */
#ifndef TIDEMARK_CLI_PLAN_WATCH_H
#define TIDEMARK_CLI_PLAN_WATCH_H

#include <tidemark/plan.h>

typedef struct plan_watch {
    double seconds;    /* after which the best so far is taken; 0: no limit */
    uint64_t whole_ns; /* the unconstrained step: what times are shown against */
    uint64_t begun_ns, shown_ns;
    bool is_terminal, is_shown;
} plan_watch;

/* `watch` must outlive the planning. A second Ctrl-C ends the command. */
void plan_watch_begin(plan_watch *watch, tide_plan_options *options);
void plan_watch_end(plan_watch *watch, tide_plan_options *options);

#endif
