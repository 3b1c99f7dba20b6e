#!/usr/bin/env python3
"""The fastest step by re-runs alone that stays within a budget, proved, for program files of up to some hundred ops.

    bench_plan_graphs --all --seeds 1-16 --ops 50,100 --write DIR
    tools/bench-python build/ortools ortools ortools     # prints PYTHON, which has OR-tools
    PYTHON bench/plan_graphs/optimum.py DIR --tidemark build/release/tidemark > optima.jsonl
    bench_plan_graphs --all --seeds 1-16 --ops 50,100 --variants hybrid:nomove --efforts normal --optima optima.jsonl

DIR/index.jsonl lists programs and budgets (or PROGRAM.jsonl:BYTES is given instead of DIR). One line comes out for each:

    {"program":"graph-1-50","budget_bytes":123,"best_ns":456,"bound_ns":456}

best_ns: of the fastest set of re-runs found; null: none was found. bound_ns: none is faster; null: there is none at all.

The model is of Checkmate's kind (Jain et al., MLSys 2020), solved by OR-tools' CP-SAT. Stage t is slot t and op t: some of the
ops before t run again, in order, then op t runs for the first time; stage n, behind the last op, has re-runs only.

    run[t,i]     op i runs in stage t
    stay[t,v]    value v is in memory between stages t-1 and t
    free[t,v,i]  v leaves memory right after op i has run in stage t, as its last user there

    a run needs its reads:   run[t,i] <= stay[t,v] + run[t,maker of v]
    staying and leaving:     stay[t+1,v] + sum over i of free[t,v,i] = stay[t,v] + run[t,maker of v]
                             free[t,v,i] <= run[t,i], and no later user of v runs in stage t
    the load at a run:       what stays into the stage + what was made so far - what was freed before + workspace <= budget

An op that runs again makes new instances of its values; the old ones end with their last use before. All users of a value come
after its maker in a stage, so a value that stays into a stage in which its maker runs is of no use: stay[t,v] + run[t,maker
of v] <= 1. Plans may also run ops again in another order, or twice in one slot, which the model does not: such a plan can be
faster than its optimum. A weight that is updated in place is in memory all the time, and its readers cannot run after the update.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

from ortools.sat.python import cp_model


class Program:
    """A step as the model needs it: values that can be absent, and a constant for those that cannot."""

    def __init__(self, path):
        self.size, self.kept, self.present = [], [], []
        self.reads, self.writes, self.cost, self.workspace, self.once = [], [], [], [], []
        self.always_bytes = 0
        pairs = []
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    self._take(json.loads(line), pairs)
                except ValueError as error:
                    sys.exit(f"{path}:{number}: {error}")
        self.maker = [None] * len(self.size)
        self.users = [[] for _ in self.size]
        self.last_stage = [len(self.cost)] * len(self.cost)  # the last in which an op can run
        for op, values in enumerate(self.writes):
            for value in values:
                self.maker[value] = op
        for op, values in enumerate(self.reads):
            for value in values:
                self.users[value].append(op)
        for op, old, new in pairs:
            self._update_in_place(path, op, old, new)
        self._limit_stages()

    def _take(self, line, pairs):
        if "tensor" in line:
            if line.get("start") == "client":
                raise ValueError("inputs in a client tier are moves; the model has none")
            self.size.append(line["bytes"])
            self.kept.append(line.get("keep", False))
            self.present.append(line.get("start") == "present")
        elif "op" in line:
            variants = line.get("variants", [line])
            if len(variants) > 1:
                raise ValueError("an op with several variants is not modelled")
            reads, writes = line.get("reads", []), line.get("writes", [])
            for read, write, kind in line.get("inplace", []):
                if kind != "must":
                    raise ValueError("a pair that may be in place is not modelled")
                pairs.append((line["op"], reads[read], writes[write]))
            self.reads.append(reads)
            self.writes.append(writes)
            self.cost.append(variants[0]["cost"])
            self.workspace.append(variants[0].get("workspace", 0))
            self.once.append(not line.get("rerun", True))

    def _update_in_place(self, path, op, old, new):
        if not (self.present[old] and self.kept[new] and self.once[op]) or self.users[new]:
            sys.exit(f"{path}: op {op}: only weights that are updated once, by an op that runs once, are modelled")
        self.always_bytes += self.size[old]
        self.size[old] = self.size[new] = 0
        self.kept[new] = False
        for user in self.users[old]:
            self.last_stage[user] = min(self.last_stage[user], op)

    def _limit_stages(self):
        """An op need not run in a stage after which nobody can use what it makes."""
        n = len(self.cost)
        for op in reversed(range(n)):
            last = op
            for value in self.writes[op]:
                last = max([last, n * self.kept[value]] + [self.last_stage[user] for user in self.users[value]])
            self.last_stage[op] = op if self.once[op] else min(self.last_stage[op], last)

    def last_use(self, value):
        return len(self.cost) + 1 if self.kept[value] else max((self.last_stage[u] for u in self.users[value]), default=-1)


class Model:
    def __init__(self, program, budget_bytes):
        p = self.program = program
        self.unit_ns = math.gcd(*p.cost)
        self.unit = math.gcd(*p.size, *p.workspace) or 1
        self.room = (budget_bytes - p.always_bytes) // self.unit
        self.model = cp_model.CpModel()
        self.run, self.stay, self.free = {}, {}, {}
        self.possible = self.room >= 0
        if not self.possible:
            return
        self._variables()
        n = len(p.cost)
        for t in range(n + 1):
            self._stage(t, [i for i in range(min(t + 1, n)) if (t, i) in self.run])
        self.time = sum(p.cost[i] // self.unit_ns * x for (_, i), x in self.run.items())
        self.model.minimize(self.time)

    def _variables(self):
        p, n = self.program, len(self.program.cost)
        for i in range(n):
            for t in range(i, p.last_stage[i] + 1):
                self.run[t, i] = 1 if t == i else self.model.new_bool_var(f"run {t} {i}")
        for v in range(len(p.size)):
            if p.size[v] == 0:
                continue
            first = 0 if p.present[v] else p.maker[v] + 1
            for t in range(first, min(p.last_use(v), n + 1) + 1):
                fixed = t == n + 1 or (t == 0 and p.present[v])
                self.stay[t, v] = 1 if fixed else self.model.new_bool_var(f"stay {t} {v}")

    def _has(self, t, v):
        """The value is in memory in stage t at some time."""
        return self.stay.get((t, v), 0) + self.run.get((t, self.program.maker[v]), 0)

    def _stage(self, t, ops):
        p, model, room = self.program, self.model, self.room
        frees = {i: [] for i in ops}
        values = [v for v in range(len(p.size)) if p.size[v] and ((t, v) in self.stay or (t, p.maker[v]) in self.run)]
        for v in values:
            self._value(t, v, frees)
        load = sum(self.stay[t, v] * (p.size[v] // self.unit) for v in values if (t, v) in self.stay)
        for i in ops:
            runs = self.run[t, i]
            made = sum(p.size[v] // self.unit for v in p.writes[i])
            level = model.new_int_var(0, room, f"load {t} {i}")
            model.add(level == load + made * runs)
            if p.workspace[i]:
                model.add(level + p.workspace[i] // self.unit * runs <= room)
            for v in p.reads[i]:
                if p.size[v]:
                    model.add(runs <= self._has(t, v))
            load = level - sum(p.size[v] // self.unit * x for v, x in frees[i])

    def _value(self, t, v, frees):
        """What becomes of a value in a stage; what is freed after an op goes to its list."""
        p, model = self.program, self.model
        has, stays_on = self._has(t, v), self.stay.get((t + 1, v), 0)
        model.add(has <= 1)
        users = [i for i in [p.maker[v]] + p.users[v] if i is not None and (t, i) in self.run]
        leaves = []
        for at, i in enumerate(users):
            free = self.free[t, v, i] = model.new_bool_var(f"free {t} {v} {i}")
            model.add(free <= self.run[t, i])
            for later in users[at + 1:]:
                model.add(free + self.run[t, later] <= 1)
            leaves.append(free)
            frees[i].append((v, free))
        model.add(sum(leaves) == has - stays_on)

    def begin_with(self, runs):
        """Where the search starts: the order of runs of a plan that exists."""
        p, n = self.program, len(self.program.cost)
        placed, first_runs = set(), 0
        for i in runs:
            placed.add((first_runs, i))
            first_runs += i == first_runs
        stays, frees = set(), set()
        for v in range(len(p.size)):
            at = (-1, None) if p.present[v] else None
            for t, i in sorted((t, i) for t, i in placed if i == p.maker[v] or i in p.users[v]) + [(n + 1, None)]:
                if at and (i in p.users[v] or i is None and p.kept[v]):
                    stays.update((stage, v) for stage in range(at[0] + 1, t + 1))
                elif at:
                    frees.add((at[0], v, at[1]))
                at = (t, i)
        for chosen, variables in (placed, self.run), (stays, self.stay), (frees, self.free):
            for key, x in variables.items():
                if not isinstance(x, int):
                    self.model.add_hint(x, key in chosen)

    def solve(self, seconds, workers, least_ns):
        """(best, bound) in ns; None: none found, or none at all."""
        if not self.possible:
            return None, None
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = workers
        self.model.add(self.time >= least_ns // self.unit_ns)
        status = solver.solve(self.model)
        if status == cp_model.INFEASIBLE:
            return None, None
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
            sys.exit("CP-SAT: " + solver.status_name(status))
        bound = max(least_ns, math.ceil(solver.best_objective_bound - 1e-6) * self.unit_ns)
        if status == cp_model.UNKNOWN:
            return None, bound
        return round(solver.objective_value) * self.unit_ns, bound


def runs_of_plan(tidemark, path, budget_bytes):
    """The ops in the order in which a plan of hybrid:nomove runs them; none if there is no plan."""
    with tempfile.NamedTemporaryFile() as plan:
        made = subprocess.run([tidemark, "plan", path, "--policy", "hybrid:nomove", "--budget", str(budget_bytes),
                               "-o", plan.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False)
        if made.returncode:
            return []
        with open(plan.name, encoding="utf-8") as lines:
            return [line["run"] for line in map(json.loads, lines) if "run" in line]


def questions(where):
    """Pairs of a program's path and its budgets, descending."""
    if not os.path.isdir(where):
        path, _, budget = where.rpartition(":")
        yield path, [int(budget)]
        return
    with open(os.path.join(where, "index.jsonl"), encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            yield os.path.join(where, line["program"] + ".jsonl"), sorted(line["budgets"], reverse=True)


def best_and_bound(program, path, budget_bytes, least_ns, options):
    """least_ns: no step is faster in this budget."""
    model = Model(program, budget_bytes)
    runs = runs_of_plan(options.tidemark, path, budget_bytes) if options.tidemark and model.possible else []
    if runs:
        model.begin_with(runs)
    best, bound = model.solve(options.seconds, options.workers, least_ns)
    if runs and bound is not None and best is None:  # too little time for even the first
        best = sum(program.cost[i] for i in runs)
    return best, bound


def main():
    arguments = argparse.ArgumentParser(description="proved optima over re-runs, by CP-SAT")
    arguments.add_argument("where", nargs="+", help="a folder by bench_plan_graphs --write, or PROGRAM.jsonl:BYTES")
    arguments.add_argument("--seconds", type=float, default=60, help="at most, for each budget")
    arguments.add_argument("--workers", type=int, default=8, help="CP-SAT's searches side by side")
    arguments.add_argument("--tidemark", help="the command: its plans are where the searches start")
    arguments.add_argument("--most-ops", type=int, default=100, help="leaves larger programs out")
    options = arguments.parse_args()
    for where in options.where:
        for path, budgets in questions(where):
            program = Program(path)
            if len(program.cost) > options.most_ops:
                continue
            least_ns = sum(program.cost)
            for budget in budgets:
                best, bound = best_and_bound(program, path, budget, least_ns, options)
                name = os.path.basename(path).removesuffix(".jsonl")
                answer = {"program": name, "budget_bytes": budget, "best_ns": best, "bound_ns": bound}
                print(json.dumps(answer, separators=(",", ":")), flush=True)
                least_ns = max(least_ns, bound or 0)  # a smaller budget is not faster


if __name__ == "__main__":
    main()
