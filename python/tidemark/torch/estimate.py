"""What a step would take, found out with fake tensors: shapes without bytes, also of models that do not fit here.

The same conversion as for a recorded step; what ops use as workspace is not known without running them, so it is not
counted. Costs come from the machine: floating-point operations where PyTorch can count them, bytes elsewhere.
"""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from ..errors import FitError
from ..machine import Machine
from ..plan import Plan
from ..program import Program
from ..units import parse_bytes, show_bytes
from .capture import Call, Recording
from .convert import Conversion, convert
from .frozen import Frozen
from .tensors import mutated_by, tensors_in, tensors_out


@dataclass
class Estimate:
    """The step as a program on a machine."""

    program: Program
    machine: Machine
    unconstrained_bytes: int
    state_bytes: int

    def plan(self, budget: int | str | None = None, *, effort: str = "normal") -> Plan:
        """A plan within a budget; FitError if there is none."""
        size = None if budget is None else parse_bytes(budget, self.unconstrained_bytes)
        return Plan.create(self.program, self.machine, budget=size, effort=effort)

    def fits(self, budget: int | str) -> bool:
        """Is there a plan within this budget, whatever moves and runs again?"""
        try:
            self.plan(budget, effort="low")
        except FitError:
            return False
        return True

    def __str__(self) -> str:
        return (
            f"{self.program.n_ops} ops; {show_bytes(self.unconstrained_bytes)} without a budget, "
            f"{show_bytes(self.state_bytes)} of it state; {self.program.cost_ns / 1e6:.1f} ms on {self.machine.name}"
        )


class _FakeRecorder(TorchDispatchMode):
    """Records calls on fake tensors. Their storages have sizes and no bytes, so all are held and none comes up twice."""

    def __init__(self, arguments: list[torch.Tensor], machine: Machine):
        super().__init__()
        self.recording = Recording()
        self._machine = machine._struct
        self._held: dict[int, torch.UntypedStorage] = {}
        self._backward_began = False
        for tensor in arguments:
            self.recording.given.add(self._key(tensor))

    def _key(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._held:
            self._held[key] = storage
            self.recording.sizes[key] = storage.nbytes()
        return key

    def _cost_ns(self, func: Any, args: tuple, kwargs: dict, result: Any, tensors: list[torch.Tensor]) -> int:
        m = self._machine
        size = sum(t.numel() * t.element_size() for t in tensors)
        seconds = size / (m.bytes_per_s * m.vector_efficiency)
        count = flop_registry.get(func._overloadpacket)
        if count is not None:
            flops = count(*args, **kwargs, out_val=result)
            seconds = max(seconds, flops / (m.flops_per_s * m.matrix_efficiency))
        return m.launch_ns + int(seconds * 1e9)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        into = tensors_in(args, kwargs)
        inputs = [self._key(t) for t in into]
        for key in inputs:
            if key not in self.recording.made and key not in self.recording.given:
                self.recording.before[key] = self._held[key]
        result = func(*args, **kwargs)
        outof = tensors_out(result)
        call = Call(func, inputs, [self._key(t) for t in outof])
        call.mutated = [self._key(t) for t in mutated_by(func, args, kwargs)]
        call.random = torch.Tag.nondeterministic_seeded in func.tags
        known = self.recording.made | self.recording.before.keys() | self.recording.given
        for key in dict.fromkeys(call.outputs):
            if key not in known:
                call.allocations.append((key, self.recording.sizes[key]))
                self.recording.made.add(key)
        call.cost_ns = self._cost_ns(func, args, kwargs, result, into + outof)
        if torch._C._current_graph_task_id() != -1:
            self._backward_began, call.phase = True, "backward"
        elif self._backward_began:
            call.phase = "update"
        self.recording.calls.append(call)
        return result

    def finish(self) -> Recording:
        """Storages that nobody but the recording holds are gone by now."""
        for key in self.recording.made:
            if torch._C._storage_Use_Count(key) <= 1:
                self.recording.released.add(key)
        return self.recording


def _fake_copies(mode: FakeTensorMode, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> tuple:
    """Model and optimizer with fake tensors in the place of all of theirs, and which of their storages are weights in files;
    the bytes are never copied."""
    memo: dict[int, Any] = {}
    frozen, in_files = Frozen(), {}
    for p in model.parameters():
        with torch.no_grad():
            memo[id(p)] = torch.nn.Parameter(mode.from_tensor(p.detach()), requires_grad=p.requires_grad)
        number = frozen.number.get(p.untyped_storage()._cdata)
        if number is not None and not p.requires_grad:
            in_files[memo[id(p)].untyped_storage()._cdata] = number
    for b in model.buffers():
        memo[id(b)] = mode.from_tensor(b)
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, torch.Tensor):
                memo[id(value)] = mode.from_tensor(value)
    return *copy.deepcopy((model, optimizer), memo), in_files


@dataclass
class FakeStep:
    """The usual step of `fit` on fake tensors, recorded."""

    recording: Recording
    conversion: Conversion
    machine: Machine
    unconstrained_bytes: int


def record_fake(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[..., torch.Tensor],
    batch: tuple,
    machine: Machine,
    prepare: Callable[[torch.nn.Module, Recording], None] = lambda model, recording: None,
) -> FakeStep:
    """Records a step without computing anything. prepare: what is done to the copy of the model before."""
    mode = FakeTensorMode(allow_non_fake_inputs=False)
    fake_model, fake_optimizer, in_files = _fake_copies(mode, model, optimizer)
    fake_batch = tuple(mode.from_tensor(b) if isinstance(b, torch.Tensor) else b for b in batch)

    def run() -> torch.Tensor:
        loss = loss_fn(fake_model, *fake_batch)
        loss.backward()
        fake_optimizer.step()
        fake_optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    with mode:
        run()  # makes the optimizer's state
        machine = machine if in_files else machine.without("client")
        recorder = _FakeRecorder(tensors_in(fake_batch, {}), machine)
        prepare(fake_model, recorder.recording)
        with recorder:
            loss = run()
        recording = recorder.finish()
    recording.frozen = {key: in_files[key] for key in recording.before if key in in_files}
    recording.returned.add(loss.untyped_storage()._cdata)
    conversion = convert(recording, type(model).__name__)
    whole = Plan.create(conversion.program, machine, policy="liveness").arena_bytes
    return FakeStep(recording, conversion, machine, whole)


def estimate(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[..., torch.Tensor],
    batch: tuple,
    *,
    machine: str | os.PathLike[str] = "cpu",
) -> Estimate:
    """The usual step of `fit`, without computing anything. The model may be on the meta device."""
    target = Machine(machine)
    if machine == "cpu":
        target = target.without("ram")
    fake = record_fake(model, optimizer, loss_fn, batch, target)
    program = fake.conversion.program
    state = sum(program.tensor(first).size_bytes for _, first, _ in fake.conversion.state)
    return Estimate(program, fake.machine, fake.unconstrained_bytes, state)
