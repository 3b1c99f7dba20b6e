"""What became of a budgeted step so far: planned and measured."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape

from ..plan import Plan
from ..units import show_bytes


@dataclass
class Report:
    """Bytes are of the step: state, gradients, activations and workspaces; the batch is the caller's."""

    budget_bytes: int | None = None
    unconstrained_bytes: int = 0  # the arena without a budget
    arena_bytes: int = 0  # what the plan takes
    disk_bytes: int = 0
    steps: int = 0
    planned_steps: int = 0  # of these, from a plan to the end
    replayed_steps: int = 0  # of these, without Python
    not_replayed: str | None = None  # why none is any more
    learning_steps: int = 0  # had no plan yet: online inside the budget, or in ordinary memory if it is a share
    online_peak_bytes: int = 0  # the most bytes in memory of online steps
    deviations: list[str] = field(default_factory=list)  # why steps left their plans
    homecomings: int = 0  # times that the state came back to ordinary memory between steps
    reruns: int = 0  # ops per step that run again
    saved_bytes: int = 0  # per step, to disk
    loaded_bytes: int = 0
    read_bytes: int = 0  # per step, of weights in files, as they are in the arena
    predicted_ns: int = 0  # a step, by the simulator
    step_ns: int = 0  # the last planned step
    exposed_ns: int = 0  # predicted waits for transfers
    outside_count: int = 0  # allocations in planned steps that no plan had an address for
    outside_peak_bytes: int = 0  # the most bytes of them at a time
    unplanned: dict[str, int] = field(default_factory=dict)  # per op: bytes that outlive it unseen
    plan: Plan | None = None

    def _rows(self) -> list[tuple[str, str]]:
        budget = "none" if self.budget_bytes is None else show_bytes(self.budget_bytes)
        rows = [
            ("budget", budget),
            ("without a budget", show_bytes(self.unconstrained_bytes)),
            ("arena", show_bytes(self.arena_bytes)),
            ("disk", show_bytes(self.disk_bytes)),
            ("steps", f"{self.steps}: {self.planned_steps} planned, {self.learning_steps} learning, "
                      f"{len(self.deviations)} left their plan"),
            ("re-runs per step", str(self.reruns)),
            ("moved per step", f"{show_bytes(self.saved_bytes)} out, {show_bytes(self.loaded_bytes)} in"),
            ("read per step", f"{show_bytes(self.read_bytes)} of weights in files"),
            ("step", f"{self.step_ns / 1e6:.1f} ms, predicted {self.predicted_ns / 1e6:.1f} ms, "
                     f"{self.exposed_ns / 1e6:.1f} ms of it waiting"),
            ("outside the arena", f"{self.outside_peak_bytes} bytes at most"),
        ]  # fmt: skip
        if self.replayed_steps or self.not_replayed:
            rows.append(("replayed", f"{self.replayed_steps} steps" + (f", then {self.not_replayed}" if self.not_replayed else "")))
        rows += [("left the plan", reason) for reason in self.deviations[-3:]]
        return rows + [("not planned", f"{name}: {size} bytes") for name, size in self.unplanned.items()]

    def __str__(self) -> str:
        return "\n".join(f"{name:<18} {value}" for name, value in self._rows())

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(n)}</th><td>{escape(v)}</td></tr>" for n, v in self._rows())
        return f"<table>{rows}</table>{self.plan.svg() if self.plan else ''}"

    def html(self, path: str | os.PathLike[str]) -> None:
        """Writes the figures and the memory map as a page."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"<!doctype html><meta charset=utf-8><title>tidemark</title>{self._repr_html_()}")
