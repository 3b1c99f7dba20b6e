/* The rules of the verifier, one line each: name in verdicts, and what it demands. docs/verify.md explains them; the
 * mutation tests demand that none of them is dead. */
#ifndef TIDE_PLAN_VERIFY_RULES_H
#define TIDE_PLAN_VERIFY_RULES_H

#define TIDE__RULE_TABLE(X)                                                                          \
    X(PROGRAM, "program", "the plan was made for this program")                                      \
    X(MACHINE, "machine", "the plan has the queues and tiers of this machine")                       \
    X(TABLE, "table", "kinds, ids, counts and list positions are in range")                          \
    X(QUEUE, "queue", "an action runs on a queue of its kind, direction and tier")                   \
    X(WAIT, "wait", "waits point backwards in issue order and ascend")                               \
    X(BINDING, "binding", "an action uses residencies and copies of the right tensors")              \
    X(VARIANT, "variant", "variants exist, keep the bits class, and are the first run's in re-runs") \
    X(SIZE, "size", "sizes hold the value or workspace, and a move keeps its size")                  \
    X(ALIGN, "align", "offsets and moved sizes are multiples of what device and tier ask for")       \
    X(BUDGET, "budget", "everything lies inside the arena and tiers, and those inside the budgets")  \
    X(LIFETIME, "lifetime", "intervals are sane and every access lies inside its interval")          \
    X(CLIENT, "client", "a client tier is only read, and only CLIENT tensors are in it")             \
    X(START_MAP, "start-map", "each tensor starts exactly where its kind says")                      \
    X(ORDER, "order", "first runs follow the order that the plan says, and every op runs")           \
    X(MESSAGE, "message", "messages go in the order of their numbers, each once")                    \
    X(RERUN, "rerun", "an op that cannot be re-run runs once")                                       \
    X(CREATE, "create", "each residency and copy is created exactly once, where it begins")          \
    X(READY, "ready", "what is read is complete: its creation is ordered before")                    \
    X(OVERLAP, "overlap", "bytes have one owner at a time, but for an in-place hand-over")           \
    X(REUSE, "reuse", "a new owner is ordered after everything that touched its bytes")              \
    X(INPLACE, "inplace", "a kernel that updates in place finds both values at one offset")          \
    X(END_MAP, "end-map", "every kept value has a place at the end")                                 \
    X(CARRY, "carry", "each place at the start is a place of the carried value at the end")

typedef enum tide__rule {
#define TIDE__RULE_MEMBER(id, name, text) TIDE__RULE_##id,
    TIDE__RULE_TABLE(TIDE__RULE_MEMBER)
#undef TIDE__RULE_MEMBER
        TIDE__RULE_COUNT
} tide__rule;

const char *tide__rule_name(tide__rule rule); /* "" outside the table */

#endif
