"""A plan as a flat list of what the executor does: which op, where its operands lie, what it may allocate.

All of it is known before a step, so that a step only reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import PlanError
from ..plan import Plan, Residency
from .convert import Conversion


@dataclass
class Turn:
    """One RUN of the plan."""

    op: int
    action: int
    rerun: bool
    bind: list[tuple[int, int]]  # (slot, address) of what was relocated since the turn before, then of what it reads
    new: list[tuple[int, int]]  # (slot, address) of the storages it makes
    sizes: list[int]  # of its allocations, in order
    addresses: list[int]  # 0: in the annex
    gone: list[int]  # slots whose bytes are no longer there by now


@dataclass
class Schedule:
    """The turns of a step, and where values are at its start and its end."""

    turns: list[Turn]
    reruns: set[int]  # ops that run again
    at_start: dict[int, int]  # tensor -> address
    at_end: dict[int, int]


def _check_pairs(plan: Plan, conversion: Conversion) -> None:
    """What an op changes without saying so must lie where the op before it announced the change, or where that was
    relocated to, unsaved between."""
    actions, residencies = plan.actions(), plan.residencies()
    first = {}
    for i, a in enumerate(actions):
        if a.kind == "run":
            first.setdefault(a.op, i)
    for announced, op in conversion.pairs:
        a, b = first[announced], first[op]
        n_reads = len(conversion.steps[announced].reads)
        written = set(actions[a].uses[n_reads:])
        held = set(actions[b].uses)
        saved = False
        for i in range(a + 1, b):
            kind, uses = actions[i].kind, actions[i].uses
            if kind == "run" or uses[0] not in written:
                continue
            saved |= kind == "save"
            if kind == "relocate" and residencies[uses[0]].end == i + 1:  # nothing is left behind
                written = written - {uses[0]} | {uses[1]}
        if not written <= held or saved:
            raise PlanError(f"action {b}: running statistics move while they change")


def _turn(
    base: int, conversion: Conversion, residencies: list[Residency], index: int, op: int, rerun: bool, uses: tuple
) -> Turn:
    step = conversion.steps[op]
    address = [base + residencies[u].offset_bytes for u in uses]
    n_reads = len(step.reads)
    workspace = address[-1] if address else 0
    new = list(zip(step.new, address[n_reads:]))
    return Turn(
        op,
        index,
        rerun,
        list(zip(step.reads, address)),
        new,
        [size for size, _, _ in step.allocations],
        [new[which][1] if which is not None else 0 if offset is None else workspace + offset for _, which, offset in step.allocations],
        [],
    )


def _note_gone(turns: list[Turn], conversion: Conversion, residencies: list[Residency]) -> None:
    """At each turn: the storages whose last residency ended since the turn before."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for r in residencies:
        if r.tensor is not None:
            spans.setdefault(conversion.slot_of_tensor[r.tensor], []).append((r.begin, r.end))
    ends: list[tuple[int, int]] = sorted((end, slot) for slot, list_ in spans.items() for _, end in list_)
    at = 0
    for turn in turns:
        while at < len(ends) and ends[at][0] <= turn.action:
            slot = ends[at][1]
            if not any(begin <= turn.action < end for begin, end in spans[slot]):
                turn.gone.append(slot)
            at += 1


def make_schedule(plan: Plan, conversion: Conversion, base: int) -> Schedule:
    """The schedule of a plan whose arena begins at this address."""
    _check_pairs(plan, conversion)
    residencies, turns, ran = plan.residencies(), [], set()
    relocated: list[Residency] = []  # since the turn before
    for i, a in enumerate(plan.actions()):
        if a.kind == "relocate":
            relocated.append(residencies[a.uses[1]])
        if a.kind != "run":
            continue
        turn = _turn(base, conversion, residencies, i, a.op, a.op in ran, a.uses)
        moved = {conversion.slot_of_tensor[r.tensor]: base + r.offset_bytes for r in relocated if r.end > i}
        turn.bind = list({**moved, **dict(turn.bind)}.items())
        turns.append(turn)
        ran.add(a.op)
        relocated = []
    firsts = [t.op for t in turns if not t.rerun]
    if firsts != sorted(firsts):
        raise PlanError("the plan runs ops in another order than PyTorch does")
    _note_gone(turns, conversion, residencies)
    places = [(r, base + r.offset_bytes) for r in residencies if r.tensor is not None]
    return Schedule(
        turns,
        {t.op for t in turns if t.rerun},
        {r.tensor: address for r, address in places if r.at_start},
        {r.tensor: address for r, address in places if r.at_end},
    )
