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
