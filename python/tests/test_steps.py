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
