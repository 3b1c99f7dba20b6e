"""Reports: what a plan does to memory, and why (report.h)."""

from __future__ import annotations

import os
from typing import NamedTuple

from ._abi import NONE, UNLIMITED, ffi, lib
from .errors import check
from .plan import Plan

KINDS = ("input", "swap", "recompute")


class Absence(NamedTuple):
    """One absence of a tensor from the arena that the plan decided on."""

    kind: str  # one of KINDS
    tensor: int
    tier: int | None  # where it is meanwhile; None: nowhere, it is computed again
    from_ns: int
    to_ns: int
    cost_ns: int  # busy time of the transfers, or of the re-run
    wait_ns: int  # how long compute stood still for them
    at_peak: bool  # away when the op at the unconstrained peak runs


class PlanReport:
    """What a plan does: its absences, and pages about it. The plan must be valid; Plan.create makes no other."""

    def __init__(self, plan: Plan, *, budget: int | None = None):
        self.plan = plan  # borrowed by the report
        options = ffi.new("tide_report_options *")
        lib.tide_report_options_init(options)
        options.budget_bytes = UNLIMITED if budget is None else budget
        out = ffi.new("tide_report **")
        check(lib.tide_report_create(plan.program._handle, plan.machine._struct, plan._handle, options, out))
        self._handle = ffi.gc(out[0], lib.tide_report_destroy)

    def absences(self) -> list[Absence]:
        """By tensor, then by time."""
        n = ffi.new("size_t *")
        choices = lib.tide_report_choices(self._handle, n)
        return [
            Absence(
                KINDS[c.kind], c.tensor, None if c.tier == NONE else c.tier, c.from_ns, c.to_ns, c.cost_ns, c.wait_ns,
                c.at_peak,
            )
            for c in (choices[i] for i in range(n[0]))
        ]  # fmt: skip

    @property
    def peak_action(self) -> int | None:
        """The action at which the load is highest."""
        action = lib.tide_report_peak_action(self._handle)
        return None if action == NONE else action

    def write_html(self, path: str | os.PathLike[str]) -> None:
        """A page to click through, which needs no other file."""
        check(lib.tide_report_write_html(self._handle, os.fsencode(path)))

    def write_perfetto(self, path: str | os.PathLike[str]) -> None:
        """For ui.perfetto.dev."""
        check(lib.tide_report_write_perfetto(self._handle, os.fsencode(path)))

    def write_memory_viz(self, path: str | os.PathLike[str]) -> None:
        """For pytorch.org/memory_viz."""
        check(lib.tide_report_write_memory_viz(self._handle, os.fsencode(path)))
