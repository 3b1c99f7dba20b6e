"""What a step may be given, may do beside its ops, and what it keeps: small matters around plans."""

import dataclasses
import importlib
import threading

import numpy
import pytest
import torch
from torch import nn

import tidemark
import tidemark.torch as tide
from tidemark.torch import execute
from tidemark.torch.online import OnlineHeap
from tidemark.torch.reads import visible_reads
from tidemark.torch.tensors import tensors_within


steps = importlib.import_module("tidemark.torch.step")  # the package has a function of that name


def test_arrays_of_a_step_are_read_only_and_its_own():
    x = torch.arange(4.0, requires_grad=True)
    with visible_reads():
        arrays = x.detach().numpy(), x.numpy(force=True), numpy.asarray(x.detach())
        x.data.zero_()
        for array in arrays:
            assert array.tolist() == [0, 1, 2, 3]
            with pytest.raises(ValueError):
                array[0] = 1
        with pytest.raises(RuntimeError):
            x.numpy()
        numpy.asarray(x.detach(), numpy.float64)[0] = 1  # a copy as ever


def test_reads_of_two_threads():
    """The first step ends while the second runs: nothing is left of either."""
    before, entered, leave = torch.Tensor.numpy, threading.Event(), threading.Event()

    def second():
        with visible_reads():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=second)
    with visible_reads():
        thread.start()
        assert entered.wait(10)
    x = torch.zeros(2)
    x.numpy()[0] = 1  # no step runs on this thread
    assert x[0] == 1
    leave.set()
    thread.join()
    assert torch.Tensor.numpy is before and "tolist" not in vars(torch.Tensor)


def test_tensors_in_objects():
    @dataclasses.dataclass(slots=True)
    class Slotted:
        x: torch.Tensor
        unset: torch.Tensor = dataclasses.field(init=False)

    @dataclasses.dataclass
    class Linked:
        x: torch.Tensor
        other: object = None

    x, y = torch.zeros(1), torch.ones(1)
    node = Linked(x)
    node.other = [node, Slotted(y), Linked]
    node.more = y
    found = tensors_within(node)
    assert len(found) == 3 and found[0] is x and found[1] is y and found[2] is y


def small_step(**options):
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @tide.step(budget="100%", modules=[model], optimizers=[optimizer], **options)
    def step(x, name=""):
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def test_strings_that_are_always_others(monkeypatch):
    monkeypatch.setattr(steps, "MAX_WORDS", 2)
    step = small_step()
    for i in range(8):
        step(torch.ones(2, 4), f"batch {i}")
    assert len(step._plans) == 3 and step.report.planned_steps == 4 and not step.report.deviations
    step.close()


def test_plans_are_bounded(monkeypatch):
    monkeypatch.setattr(steps, "MAX_PLANS", 2)
    step = small_step()
    for rows in 1, 1, 2, 1, 3, 1, 2:  # the plan for 2 rows makes way for that of 3
        step(torch.ones(rows, 4))
    assert len(step._plans) == 2 and step.report.planned_steps == 2 and not step.report.deviations
    step.close()


def test_bytes_that_change_places():
    a = torch.arange(8, dtype=torch.uint8)
    at = a.data_ptr()
    execute.move_bytes([(at, at + 4, 4), (at + 4, at, 4)])
    assert a.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]


order = [1, 2]  # in which the op below allocates what it returns


@torch.library.custom_op("tidemark_tests::two", mutates_args=())
def two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    made = {i: x + i for i in order}
    return made[1], made[2]


@pytest.mark.parametrize("n", [4, 4096])
def test_results_at_each_others_places(n):
    """Small ones are also kept where no op shows that they are read."""

    @tide.step(budget="100%")
    def step(x):
        a, b = two(x * 1)
        return a, b, a - b

    for i in range(4):
        order[:] = [2, 1] if i == 3 else [1, 2]
        a, b, difference = step(torch.full((n,), i))
        assert (a == i + 1).all() and (b == i + 2).all() and (difference == -1).all()
    assert step.report.planned_steps == 2
    step.close()


def test_a_rescue_that_does_not_fit_leaves_its_values_whole(monkeypatch):
    """A step leaves its plan, and what must be computed again for that does not fit beside it: refused, with all values."""
    drop = nn.Dropout(1e-12)  # random numbers, of which none matters
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(8)))
    seen, n_refused, other = [], 0, False

    @tide.step(budget="60%", disk_budget=4096, modules=[model])
    def step(x):
        for layer in model:
            x = drop(torch.tanh(layer(x)))
            seen[:] = [*seen * other, x.detach()]
        seen[:] = seen * other
        if other:
            x = x.exp()
        x.sum().backward()
        model.zero_grad()

    def refuse(*_):
        nonlocal n_refused
        n_refused += 1
        raise tidemark.FitError("no room")

    for _ in range(4):
        step(torch.ones(512, 16))
    assert step.report.planned_steps == 2 and step.report.reruns > 0
    other, step._disk_budget = True, 1 << 24  # the values that are there fit
    monkeypatch.setattr(OnlineHeap, "run_op", refuse)
    with pytest.raises(tidemark.FitError, match="no room"):
        step(torch.ones(512, 16))
    x = torch.ones(512, 16)
    for layer, value in zip(model, seen, strict=True):
        x = torch.tanh(layer(x)).detach()
        assert torch.equal(x, value)
    assert n_refused == 1
    step.close()
