/* Budgets as people give them (bytes, a share, the smallest) become bytes here and nowhere else. */
#ifndef TIDE_PLAN_BUDGET_H
#define TIDE_PLAN_BUDGET_H

#include <tidemark/plan.h>

/* The caller's options, checked, with every budget in out->budgets. A smallest arena is looked for. The program may be NULL
 * where nothing is relative; *out may be *given. *plan: what tide_plan_create would answer for *out, where looking for the smallest
 * has made that; else NULL. plan may be NULL. */
tide_status tide__budget_settle(const tide_program *program, const tide_machine *machine,
                                const tide_plan_options *given, tide_plan_options *out, tide_plan **plan);
/* tide_plan_smallest with such a plan; options are without relative budgets. */
tide_status tide__budget_smallest(const tide_program *program, const tide_machine *machine,
                                  const tide_plan_options *options, double tolerance, tide_smallest *out,
                                  tide_plan **plan);
/* The same but for a smallest arena, which stays without a limit: for those that try arenas themselves. */
tide_status tide__budget_limit(const tide_program *program, const tide_machine *machine, const tide_plan_options *given,
                               tide_plan_options *out);
/* Something is left to settle, for which the program has to be there. */
bool tide__budget_is_relative(const tide_plan_options *options);
/* The arena of the caller's options is to be the smallest. */
bool tide__budget_wants_smallest(const tide_plan_options *given);
/* How closely the smallest arena is looked for: the share of it that may be left to gain. */
double tide__budget_tolerance(tide_effort effort);

#endif
