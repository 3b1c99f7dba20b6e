"""A plan's decisions for those who cannot take the runtime: which results of the forward pass stay and which are computed again,
as PyTorch's own selective checkpointing, on any device that PyTorch has.

The step is recorded on fake tensors and planned without moves. PyTorch computes a checkpointed block again as a whole, just
before its backward pass, so the peak is another than the plan's: it is found out by recording the step once more with the
decisions in place, and the plan is made for fewer bytes until that peak is within the budget.

Checkpointing as it is counts running statistics twice; here what runs again leaves buffers alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections import defaultdict
from typing import Any, Callable, Iterable, Iterator, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from ..errors import FitError
from ..machine import Machine
from ..plan import Plan
from ..units import parse_bytes, show_bytes
from .capture import HIDDEN_WRITES, Recording
from .estimate import FakeStep, record_fake
from .tensors import mutated_by

_TRIES = 6


class Result(NamedTuple):
    """One op of the forward pass: the n-th call of a function in the n-th visit to a block."""

    block: str
    visit: int
    func: Any
    number: int


class Decisions(NamedTuple):
    """What selective checkpointing is to do."""

    blocks: frozenset[tuple[str, int]]  # visits to blocks that are checkpointed; others run as ever
    saved: frozenset[Result]  # of these: what stays; all else is computed again


def find_blocks(model: torch.nn.Module) -> list[str]:
    """The elements of lists and sequences that are made of modules themselves: layers, residual blocks, short sequences."""
    found: list[str] = []
    lists = (torch.nn.ModuleList, torch.nn.Sequential)

    def walk(prefix: str, module: torch.nn.Module) -> None:
        for name, child in module.named_children():
            full = f"{prefix}{name}"
            parts = list(child.children())
            is_list_of_blocks = isinstance(child, lists) and any(list(part.children()) for part in parts)
            if isinstance(module, lists) and parts and not is_list_of_blocks:
                found.append(full)
            else:
                walk(f"{full}.", child)

    walk("", model)
    return found


# ---- the contexts ----


class _KeepBuffers(TorchDispatchMode):
    """What runs again does not change buffers of the model a second time."""

    def __init__(self, buffers: set[int]):
        super().__init__()
        self._buffers = buffers

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        hidden, applies = HIDDEN_WRITES.get(func, ((), None))
        if applies and applies(args):
            return func(*(None if i in hidden else a for i, a in enumerate(args)), **kwargs)
        written = mutated_by(func, args, kwargs)
        if written and all(t.untyped_storage()._cdata in self._buffers for t in written):
            return args[0]
        return func(*args, **kwargs)


def _contexts(model: torch.nn.Module, saved: frozenset[Result], block: str, visit: int) -> tuple:
    """What torch.utils.checkpoint wants: a context for the first run and one for the second."""
    calls: dict[Any, int] = defaultdict(int)

    def decide(context: Any, func: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        calls[func] += 1
        is_saved = Result(block, visit, func, calls[func] - 1) in saved
        return CheckpointPolicy.MUST_SAVE if is_saved else CheckpointPolicy.PREFER_RECOMPUTE

    first, again = create_selective_checkpoint_contexts(decide)

    @contextlib.contextmanager
    def second() -> Iterator[None]:
        with _KeepBuffers({b.untyped_storage()._cdata for b in model.buffers()}), again:
            yield

    return first, second()


class _Applied:
    """The forward passes of a model's blocks, with something around them."""

    def __init__(self, model: torch.nn.Module, blocks: Iterable[str], around: Callable[..., Any]):
        self._visits: dict[str, int] = defaultdict(int)
        self._blocks = [model.get_submodule(name) for name in blocks]
        self._hook = model.register_forward_pre_hook(lambda *_: self._visits.clear())
        for name, block in zip(blocks, self._blocks):
            block.forward = functools.partial(self._forward, around, name, block.forward)

    def _forward(self, around: Callable[..., Any], name: str, forward: Callable, *args: Any, **kwargs: Any) -> Any:
        visit = self._visits[name]
        self._visits[name] += 1
        return around(name, visit, forward, args, kwargs)

    def remove(self) -> None:
        self._hook.remove()
        for block in self._blocks:
            del block.forward


def _apply(model: torch.nn.Module, blocks: list[str], decisions: Decisions, fake: bool = False) -> _Applied:
    def around(name: str, visit: int, forward: Callable, args: tuple, kwargs: dict) -> Any:
        if (name, visit) not in decisions.blocks or not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        contexts = functools.partial(_contexts, model, decisions.saved, name, visit)
        return checkpoint(
            forward, *args, use_reentrant=False, context_fn=contexts, preserve_rng_state=not fake, **kwargs
        )

    return _Applied(model, blocks, around)


# ---- decisions ----


class _Marks:
    """Which calls of a recording are which results."""

    def __init__(self, blocks: list[str]):
        self._blocks = blocks
        self.results: dict[int, Result] = {}  # per call
        self.visits: set[tuple[str, int]] = set()

    def prepare(self, model: torch.nn.Module, recording: Recording) -> None:
        def around(name: str, visit: int, forward: Callable, args: tuple, kwargs: dict) -> Any:
            begin, numbers = len(recording.calls), defaultdict(int)
            out = forward(*args, **kwargs)
            self.visits.add((name, visit))
            for i in range(begin, len(recording.calls)):
                func = recording.calls[i].func
                self.results[i] = Result(name, visit, func, numbers[func])
                numbers[func] += 1
            return out

        _Applied(model, self._blocks, around)


def _decide(fake: FakeStep, plan: Plan, marks: _Marks) -> Decisions:
    """The plan's decisions: what it runs again, and what it holds for the backward pass."""
    program, conversion, calls = fake.conversion.program, fake.conversion, fake.recording.calls
    residencies, ran, again, wanted = plan.residencies(), set(), set(), set()
    backward = False
    for action in plan.actions():
        if action.kind != "run":
            continue
        if action.op in ran:
            again.add(action.op)
        ran.add(action.op)
        op = program.op(action.op)
        backward |= op.phase == "backward"
        if backward:
            wanted.update(residencies[use].tensor for use in action.uses[: len(op.reads)])
    written_later: set[int] = set()
    blocks, saved, drawn = set(), set(), defaultdict(list)
    for i in reversed(range(len(calls))):
        result, call, op = marks.results.get(i), calls[i], conversion.op_of_call[i]
        changed = any(key in written_later for key in call.outputs)
        written_later.update(call.mutated)
        if result is None or op is None:
            continue
        if op in again:
            blocks.add((result.block, result.visit))
        elif not call.mutated and not changed and any(t in wanted for t in program.op(op).writes):
            saved.add(result)
        if call.random:
            drawn[result.block, result.visit].append(result)
    for results in drawn.values():  # the numbers of a block are drawn again from its start, or not at all
        if not saved.issuperset(results):
            saved.difference_update(results)
    return Decisions(frozenset(blocks), frozenset(r for r in saved if (r.block, r.visit) in blocks))


class Policy:
    """Selective checkpointing by a plan, for `with policy:` around the training, or `apply()` and `remove()`."""

    def __init__(self, model: torch.nn.Module, blocks: list[str], decisions: Decisions, bytes_: int, whole: int, slower: float):
        self._model, self._blocks, self.decisions = model, blocks, decisions
        self._applied: _Applied | None = None
        self.predicted_bytes = bytes_  # of the step, with the policy; workspaces of ops are not counted
        self.unconstrained_bytes = whole  # without it
        self.predicted_slowdown = slower  # time of the step with the policy, by the time without

    def context_fn(self, block: str, visit: int = 0) -> Callable[[], tuple]:
        """For those who call torch.utils.checkpoint.checkpoint(..., use_reentrant=False, context_fn=...) themselves."""
        return functools.partial(_contexts, self._model, self.decisions.saved, block, visit)

    def apply(self) -> "Policy":
        if self._applied is None:
            self._applied = _apply(self._model, self._blocks, self.decisions)
        return self

    def remove(self) -> None:
        """The model is as it was."""
        if self._applied is not None:
            self._applied.remove()
            self._applied = None

    def __enter__(self) -> "Policy":
        return self.apply()

    def __exit__(self, *error: Any) -> None:
        self.remove()

    def __str__(self) -> str:
        return (
            f"{len(self.decisions.blocks)} of {len(self._blocks)} blocks are computed again, "
            f"{len(self.decisions.saved)} results in them stay; {show_bytes(self.predicted_bytes)} instead of "
            f"{show_bytes(self.unconstrained_bytes)}, {self.predicted_slowdown:.2f} times the time"
        )


def policy(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[..., torch.Tensor],
    batch: tuple,
    *,
    budget: int | str,
    machine: str | os.PathLike[str] = "cpu",
    blocks: Iterable[str] | None = None,
    effort: str = "low",
) -> Policy:
    """Selective checkpointing of the usual step within a budget; FitError if recomputation alone does not get there.

    blocks: names of the submodules that may be computed again; by default those that lists and sequences are made of.
    """
    names = find_blocks(model) if blocks is None else list(blocks)
    if not names:
        raise ValueError("the model has no list of blocks: name submodules (`blocks=`)")
    target = Machine(machine).without("ram").without("disk")
    marks = _Marks(names)
    fake = record_fake(model, optimizer, loss_fn, batch, target, marks.prepare)
    whole = fake.unconstrained_bytes
    size = parse_bytes(budget, whole)

    def tried(decisions: Decisions) -> Policy:
        step = record_fake(
            model, optimizer, loss_fn, batch, target, lambda fake_model, _: _apply(fake_model, names, decisions, fake=True)
        )
        slower = step.conversion.program.cost_ns / max(fake.conversion.program.cost_ns, 1)
        return Policy(model, names, decisions, step.unconstrained_bytes, whole, slower)

    if size >= whole:
        return Policy(model, names, Decisions(frozenset(), frozenset()), whole, whole, 1.0)
    aim = size
    for _ in range(_TRIES):
        try:
            plan = Plan.create(fake.conversion.program, fake.machine, budget=aim, effort=effort)
        except FitError:
            break
        found = tried(_decide(fake, plan, marks))
        if found.predicted_bytes <= size:
            return found
        aim = min(aim - (found.predicted_bytes - size), aim * 97 // 100)
    found = tried(Decisions(frozenset(marks.visits), frozenset()))
    if found.predicted_bytes <= size:
        return found
    error = FitError(
        f"computing blocks again takes {found.predicted_bytes} bytes at least, the budget is {size}; `fit` can do with less"
    )
    error.needed_bytes = found.predicted_bytes
    raise error
