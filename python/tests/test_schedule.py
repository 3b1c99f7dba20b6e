"""Schedules of plans that relocate, which small models hardly ever need."""

from types import SimpleNamespace

import pytest

import tidemark
from tidemark.plan import Action, Residency
from tidemark.torch.convert import Step
from tidemark.torch.schedule import make_schedule

BASE = 1 << 20


def run(op, *uses):
    return Action("run", 0, op, None, uses, ())


def schedule(between, left_at, pairs=()):
    """Ops 0 and 1 make a value each, op 2 reads that of 1 and op 3 that of 0, which moves in between, from residency 0 to
    residency 2; the old place is given up before action left_at."""
    actions = [run(0, 0), run(1, 1), *between, run(2, 1, 3), run(3, 2, 4)]
    n = len(actions)
    residencies = [
        Residency(0, 0, 64, 0, left_at, False, False),
        Residency(1, 128, 64, 1, n - 1, False, False),
        Residency(0, 256, 64, n - 3, n, False, False),
        Residency(2, 64, 64, n - 2, n, False, False),
        Residency(3, 128, 64, n - 1, n, False, False),
    ]
    steps = [Step(0, [], [0]), Step(1, [], [1]), Step(2, [1], [2]), Step(3, [0], [3])]
    plan = SimpleNamespace(actions=lambda: actions, residencies=lambda: residencies)
    return make_schedule(plan, SimpleNamespace(steps=steps, slot_of_tensor=[0, 1, 2, 3], pairs=pairs), BASE)


RELOCATE = Action("relocate", 0, None, None, (0, 2), ())
SAVE = Action("save", 1, None, 0, (0,), ())


def test_a_storage_follows_before_the_next_op():
    turns = schedule([RELOCATE], 3).turns
    assert dict(turns[2].bind) == {0: BASE + 256, 1: BASE + 128}
    assert dict(turns[3].bind) == {0: BASE + 256}
    assert not any(0 in turn.gone for turn in turns)


def test_statistics_may_be_relocated_but_not_copied_while_they_change():
    schedule([RELOCATE], 3, [(0, 3)])
    with pytest.raises(tidemark.PlanError, match="while they change"):
        schedule([RELOCATE], 5, [(0, 3)])
    with pytest.raises(tidemark.PlanError, match="while they change"):
        schedule([SAVE, RELOCATE], 4, [(0, 3)])
