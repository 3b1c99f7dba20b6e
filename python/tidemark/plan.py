"""Plans: what runs, what moves, where every byte lies (plan.h)."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import NamedTuple, Sequence

from ._abi import NONE, UNLIMITED, ffi, lib
from .errors import FitError, PlanError, check, error_of
from .machine import Machine
from .program import Program

KINDS = ("run", "save", "load", "relocate")
EFFORTS = ("low", "normal", "high")
ORDERS = ("free", "program")


class Action(NamedTuple):
    """One action in issue order; `uses` are residency ids, `waits` issue indices."""

    kind: str
    queue: int
    op: int | None
    copy: int | None
    uses: tuple[int, ...]
    waits: tuple[int, ...]


class Residency(NamedTuple):
    """A stretch of issue indices [begin, end) in which a tensor (None: a workspace) lies in the arena."""

    tensor: int | None
    offset_bytes: int
    size_bytes: int
    begin: int
    end: int
    at_start: bool
    at_end: bool


class Copy(NamedTuple):
    """The same for the bytes of a tier."""

    tensor: int
    tier: int
    offset_bytes: int
    size_bytes: int
    begin: int
    end: int
    at_start: bool
    at_end: bool


@dataclass(frozen=True)
class Prediction:
    """What the simulator says of a plan."""

    step_ns: int
    compute_ns: int
    recomputed_ns: int
    exposed_ns: int
    moved_bytes: int
    transfer_ns: int
    peak_bytes: int
    relocated_bytes: int
    relocated_ns: int


@dataclass(frozen=True)
class Timeline:
    """When each action begins and ends, and the load: load_bytes[i] holds from t_ns[i] on."""

    start_ns: list[int]
    end_ns: list[int]
    t_ns: list[int]
    load_bytes: list[int]
    prediction: Prediction


@dataclass(frozen=True)
class Smallest:
    """The smallest budget: none below bound_bytes works, works_bytes does."""

    bound_bytes: int
    failed_bytes: int
    works_bytes: int


def _prediction(p: object) -> Prediction:
    return Prediction(*(getattr(p, f.name) for f in fields(Prediction)))


class _Options:
    """tide_plan_options, and the strings it points to."""

    def __init__(
        self, machine: Machine, policy: str, budget: int | None, disk_bytes: int | None, effort: str, order: str
    ):
        self.struct = ffi.new("tide_plan_options *")
        lib.tide_plan_options_init(self.struct)
        self._policy = ffi.new("char[]", policy.encode())
        self.struct.policy = self._policy
        self.struct.effort = EFFORTS.index(effort)
        self.struct.order = ORDERS.index(order)
        self.struct.budgets.arena_bytes = UNLIMITED if budget is None else budget
        disk = machine.find_tier("disk")
        if disk is not None and disk_bytes is not None:
            self.struct.budgets.tier_bytes[disk] = disk_bytes


class Plan:
    """A verified plan of a program on a machine."""

    def __init__(self, handle: object, program: Program, machine: Machine):
        self._handle = ffi.gc(handle, lib.tide_plan_destroy)
        self.program = program
        self.machine = machine

    @classmethod
    def create(
        cls,
        program: Program,
        machine: Machine,
        *,
        budget: int | None = None,
        disk_bytes: int | None = None,
        policy: str = "hybrid",
        effort: str = "normal",
        order: str = "program",
    ) -> "Plan":
        """Plans within a budget of arena bytes (None: unconstrained) and of disk bytes. FitError: it does not fit.

        order="free": ops may run in another order than the program's, for whoever computes as the plan says.
        """
        options = _Options(machine, policy, budget, disk_bytes, effort, order)
        fit, out = ffi.new("tide_fit_report *"), ffi.new("tide_plan **")
        status = lib.tide_plan_create(program._handle, machine._struct, options.struct, fit, out)
        if status:
            error = error_of(status)
            if isinstance(error, FitError):
                error.needed_bytes = fit.needed_bytes
            raise error
        return cls(out[0], program, machine)

    @classmethod
    def read(cls, path: str | os.PathLike[str], program: Program, machine: Machine) -> "Plan":
        out = ffi.new("tide_plan **")
        check(lib.tide_plan_read(os.fsencode(path), out))
        return cls(out[0], program, machine)

    def write(self, path: str | os.PathLike[str]) -> None:
        check(lib.tide_plan_write(self._handle, os.fsencode(path)))

    def verify(self, *, budget: int | None = None) -> None:
        """Proves it once more, within a budget if one is given; PlanError names the action and the rule."""
        budgets, verdict = ffi.new("tide_budgets *"), ffi.new("tide_verdict *")
        lib.tide_budgets_init(budgets)
        if budget is not None:
            budgets.arena_bytes = budget
        status = lib.tide_plan_verify(
            self._handle, self.program._handle, self.machine._struct, budgets, verdict
        )
        if status and verdict.rule[0] != b"\0":
            where = "" if verdict.action == NONE else f"action {verdict.action}: "
            raise PlanError(f"{where}{ffi.string(verdict.message).decode()} ({ffi.string(verdict.rule).decode()})")
        check(status)

    def simulate(self) -> Timeline:
        """The step on the machine's virtual clock."""
        out = ffi.new("tide_timeline **")
        check(lib.tide_plan_simulate(self._handle, self.program._handle, self.machine._struct, out))
        t = ffi.gc(out[0], lib.tide_timeline_destroy)
        return Timeline(
            list(t.start_ns[0 : t.n_actions]) if t.n_actions else [],
            list(t.end_ns[0 : t.n_actions]) if t.n_actions else [],
            list(t.t_ns[0 : t.n_points]) if t.n_points else [],
            list(t.load_bytes[0 : t.n_points]) if t.n_points else [],
            _prediction(t.prediction),
        )

    @property
    def arena_bytes(self) -> int:
        return lib.tide_plan_arena_bytes(self._handle)

    def tier_bytes(self, tier: int) -> int:
        return lib.tide_plan_tier_bytes(self._handle, tier)

    @property
    def policy(self) -> str:
        return ffi.string(lib.tide_plan_policy(self._handle)).decode()

    @property
    def prediction(self) -> Prediction:
        return _prediction(lib.tide_plan_prediction(self._handle))

    def actions(self) -> list[Action]:
        actions = []
        for i in range(lib.tide_plan_action_count(self._handle)):
            a = lib.tide_plan_action(self._handle, i)
            actions.append(
                Action(
                    KINDS[a.kind],
                    a.queue,
                    None if a.op == NONE else a.op,
                    None if a.copy == NONE else a.copy,
                    tuple(a.uses[k] for k in range(a.n_uses)),
                    tuple(a.waits[k] for k in range(a.n_waits)),
                )
            )
        return actions

    def residencies(self) -> list[Residency]:
        result = []
        for i in range(lib.tide_plan_residency_count(self._handle)):
            r = lib.tide_plan_residency(self._handle, i)
            tensor = None if r.tensor == NONE else r.tensor
            result.append(Residency(tensor, r.offset_bytes, r.size_bytes, r.begin, r.end, r.at_start, r.at_end))
        return result

    def copies(self) -> list[Copy]:
        result = []
        for i in range(lib.tide_plan_copy_count(self._handle)):
            c = lib.tide_plan_copy(self._handle, i)
            result.append(Copy(c.tensor, c.tier, c.offset_bytes, c.size_bytes, c.begin, c.end, c.at_start, c.at_end))
        return result

    def svg(self, width: int = 960, height: int = 420) -> str:
        """The memory map: time from left to right, addresses from bottom to top, one box per residency."""
        from .svg import memory_map

        return memory_map(self, width, height)

    def _repr_html_(self) -> str:
        p = self.prediction
        return (
            f"<p>{self.policy}: arena {self.arena_bytes / 2**20:.1f} MiB, step {p.step_ns / 1e6:.2f} ms, "
            f"re-runs {p.recomputed_ns / 1e6:.2f} ms, waits {p.exposed_ns / 1e6:.2f} ms, "
            f"moved {p.moved_bytes / 2**20:.1f} MiB</p>{self.svg()}"
        )

    def __repr__(self) -> str:
        return f"<Plan {self.policy}: arena {self.arena_bytes} bytes, step {self.prediction.step_ns} ns>"


def frontier(
    program: Program,
    machine: Machine,
    budgets: Sequence[int],
    *,
    disk_bytes: int | None = None,
    policy: str = "hybrid",
    effort: str = "normal",
    order: str = "program",
) -> list[Plan | None]:
    """Plans for several budgets at once; None where one does not fit."""
    options = _Options(machine, policy, None, disk_bytes, effort, order)
    out = ffi.new("tide_plan *[]", max(len(budgets), 1))
    check(
        lib.tide_plan_frontier(
            program._handle, machine._struct, options.struct, ffi.new("uint64_t[]", list(budgets)), len(budgets),
            ffi.NULL, out,
        )
    )
    return [Plan(out[i], program, machine) if out[i] else None for i in range(len(budgets))]


def smallest(
    program: Program,
    machine: Machine,
    *,
    tolerance: float = 0.01,
    disk_bytes: int | None = None,
    policy: str = "hybrid",
    effort: str = "normal",
    order: str = "program",
) -> Smallest:
    """The smallest budget in which a policy has a plan."""
    options = _Options(machine, policy, None, disk_bytes, effort, order)
    out = ffi.new("tide_smallest *")
    check(lib.tide_plan_smallest(program._handle, machine._struct, options.struct, tolerance, out))
    return Smallest(out.bound_bytes, out.failed_bytes, out.works_bytes)
