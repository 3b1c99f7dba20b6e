"""Runs steps from a plan while Python drives: PyTorch calls op after op as ever, and each finds its operands where the
plan wants them, its results at the planned addresses, and what must run again runs just before.

Tensors stay ordinary tensors all the time; only the bytes under their storages come and go. A step that does something
else than the recorded one leaves the plan: every value comes back to ordinary memory and the step goes on without it.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import TideError
from ..plan import Plan
from ..run import PulledRun
from . import allocator
from .capture import HIDDEN_WRITES, Recording
from .convert import Conversion
from .frozen import Frozen, Reader
from .rescue import rescue_values
from .schedule import Turn, make_schedule
from .tensors import tensors_in, tensors_out


class Deviation(Exception):
    """The step is not the one that was planned."""


class _Saved:
    """What running an op again takes. Its tensors share storages with the first run's and keep nothing else alive."""

    __slots__ = ("func", "args", "kwargs", "rng", "grad")

    def __init__(self, func: Any, args: tuple, kwargs: dict, rng: torch.Tensor | None):
        positions, applies = HIDDEN_WRITES.get(func, ((), None))
        hidden = positions if applies and applies(args) else ()
        self.func = func
        self.args = tuple(None if i in hidden else _alias(a) for i, a in enumerate(args))
        self.kwargs = {name: _alias(value) for name, value in kwargs.items()}
        self.rng = rng
        self.grad = torch.is_grad_enabled()

    def run(self, call: Callable[..., Any] = lambda func, args, kwargs: func(*args, **kwargs)) -> Any:
        """With the random numbers and in the grad mode of the first time."""
        now = torch.get_rng_state() if self.rng is not None else None
        if now is not None:
            torch.set_rng_state(self.rng)
        try:
            with torch._C._AutoDispatchBelowAutograd(), torch.set_grad_enabled(self.grad):
                return call(self.func, self.args, self.kwargs)
        finally:
            if now is not None:
                torch.set_rng_state(now)


def _alias(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        with torch._C._AutoDispatchBelowAutograd():
            return value.detach()
    if type(value) in (list, tuple):
        return type(value)(_alias(v) for v in value)
    return value


class Executor(TorchDispatchMode):
    """Follows one plan, step after step. Between steps the state lies where the plan ends, or at home."""

    def __init__(self, recording: Recording, conversion: Conversion, plan: Plan, frozen: Frozen, disk_path: str | None):
        super().__init__()
        self.conversion, self.plan = conversion, plan
        self._calls = recording.calls
        self._lib = allocator.load()
        self._frozen = [(frozen.storages[number], slot) for slot, _, number in conversion.frozen]
        self.reader = Reader(frozen)
        source = frozen.source((tensor, number) for _, tensor, number in conversion.frozen) if self._frozen else None
        self._run = PulledRun(plan, disk_path=disk_path, source=source)
        base = self._run.address
        self._lib.tidemark_torch_arena(base, max(plan.arena_bytes, 1))
        self._base = base
        self._schedule = make_schedule(plan, conversion, base)
        self._armed = [
            (len(t.sizes), allocator.new_u64(t.sizes), allocator.new_u64(t.addresses)) for t in self._schedule.turns
        ]
        slots = conversion.slot_of
        self._inputs = [[slots.get(k) if k in slots else None for k in c.inputs] for c in self._calls]
        self._outputs = [[slots.get(k) for k in c.outputs] for c in self._calls]
        self._returned = {slots[k] for k in recording.returned if k in slots}
        keys = {slot: key for key, slot in slots.items()}
        self._state = [(recording.before[keys[slot]], slot, first, last) for slot, first, last in conversion.state]
        self._storage: list[torch.UntypedStorage | None] = [None] * len(slots)
        self._cdata: list[int] = [0] * len(slots)
        self._at: list[int] = [0] * len(slots)  # in a step: the address of the slot's storage, 0: none
        for storage, slot in self._frozen:
            self._storage[slot], self._cdata[slot] = storage, storage._cdata
        self._saved: dict[int, _Saved] = {}
        self._leftover: list[torch.UntypedStorage] = []
        self._size = {slot: recording.sizes[key] for key, slot in slots.items()}
        self._next_call = self._next_turn = 0
        self._following = False
        self._handed = False  # the run waits for an op to be computed
        self._computing = False  # that of the call at hand
        self._stepped = False
        self.deviation: str | None = None
        self.is_home = True
        self.enter_plan()

    @property
    def figures(self) -> Any:
        """tide_step_report of the last step that came to its end."""
        return self._run.report

    @property
    def has_absent_state(self) -> bool:
        """Does some state lie in a tier alone?"""
        return not self.is_home and any(not self._lib.tidemark_torch_address(s._cdata) for s, _, _, _ in self._state)

    # ---- between steps ----

    def bind(self, pairs: list[tuple[int, int]]) -> None:
        """(cdata, address) each."""
        if pairs:
            cdatas, addresses = zip(*pairs)
            self._lib.tidemark_torch_bind(
                len(pairs), allocator.new_u64(list(cdatas)), allocator.new_u64(list(addresses))
            )

    def enter_plan(self) -> None:
        """Brings the state from ordinary memory to where the plan starts with it."""
        for storage, slot, first, last in self._state:
            tensor = last if self._stepped else first
            if not self._lib.tidemark_torch_fetch(storage._cdata):
                raise TideError("the state cannot be read from where it waited")
            self._run.write(tensor, self._lib.tidemark_torch_address(storage._cdata), storage.nbytes())
            address = (self._schedule.at_end if self._stepped else self._schedule.at_start).get(tensor, 0)
            self.bind([(storage._cdata, address)])
            self._storage[slot], self._cdata[slot], self._at[slot] = storage, storage._cdata, address
        self.is_home = False

    def go_home(self) -> None:
        """Brings the state back to ordinary memory; between steps."""
        if self.is_home:
            return
        for storage, _, first, last in self._state:
            tensor = last if self._stepped else first
            self._run.read(tensor, self._lib.tidemark_torch_adopt(storage._cdata), storage.nbytes())
        self._drop_leftover()
        self.is_home = True

    def close(self) -> None:
        """Everything is back in ordinary memory and the arena is given back."""
        if self._run is None:
            return
        if self.deviation is None:
            self.go_home()
        self._run.close()
        self._lib.tidemark_torch_arena(self._base, 0)
        self._run = None

    def _drop_leftover(self) -> None:
        """What the step before left beside its state ends here."""
        self.bind([(s._cdata, 0) for s in self._leftover])
        self._leftover = []

    # ---- a step ----

    def __enter__(self) -> "Executor":
        if self.is_home:
            self.enter_plan()
        self._drop_leftover()
        self._run.begin()
        self._next_call = self._next_turn = 0
        self._following = True
        self._handed = self._computing = False
        self._lib.tidemark_torch_mode(allocator.PLANNED)
        return super().__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        try:
            if self._following and (error is not None or self._next_call < len(self._calls)):
                self._leave("an exception" if error is not None else "the step ended early")
        finally:
            self._lib.tidemark_torch_mode(allocator.OFF)
        if self._following:
            self._end()
        self._saved.clear()

    def _end(self) -> None:
        self._run.pull()
        self._run.end()
        self._following = False
        self._stepped = True
        at_end = self._schedule.at_end
        for storage, slot, _, last in self._state:
            self._at[slot] = at_end.get(last, 0)
            self.bind([(storage._cdata, self._at[slot])])
        for slot, tensor in self.conversion.kept:
            storage = self._storage[slot]
            if slot in self._returned or tensor not in at_end:
                self._run.read(tensor, self._lib.tidemark_torch_adopt(storage._cdata), storage.nbytes())
            else:
                self.bind([(storage._cdata, at_end[tensor])])
                self._leftover.append(storage)
        self._release_frozen()
        lasting = {slot for _, slot, *_ in (*self._state, *self._frozen)}
        for slot in range(len(self._storage)):
            if slot not in lasting:
                self._storage[slot], self._at[slot] = None, 0

    def _release_frozen(self) -> None:
        """Weights in files have no bytes between steps."""
        self.bind([(storage._cdata, 0) for storage, _ in self._frozen])
        for _, slot in self._frozen:
            self._at[slot] = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if not self._following:
            return self.reader.call(func, args, kwargs)
        try:
            op = self._match(func, args, kwargs)
        except Deviation as deviation:
            self._leave(str(deviation))
            return self.reader.call(func, args, kwargs)
        if op is None:
            return func(*args, **kwargs)
        return self._compute(op, func, args, kwargs)

    def _match(self, func: Any, args: tuple, kwargs: dict) -> int | None:
        """The op that this call is; None: a view."""
        i = self._next_call
        if i == len(self._calls):
            raise Deviation(f"{func.name()} comes after the last op of the planned step")
        if self._calls[i].func is not func:
            raise Deviation(f"{func.name()} instead of {self._calls[i].func.name()}")
        inputs = self._inputs[i]
        tensors = tensors_in(args, kwargs)
        if len(tensors) != len(inputs):
            raise Deviation(f"{func.name()} has other arguments")
        cdata = self._cdata
        for tensor, slot in zip(tensors, inputs):
            if slot is not None and tensor.untyped_storage()._cdata != cdata[slot]:
                raise Deviation(f"{func.name()} reads another tensor")
        self._next_call = i + 1
        return self.conversion.op_of_call[i]

    def _compute(self, op: int, func: Any, args: tuple, kwargs: dict) -> Any:
        """Everything up to this op, and the op."""
        turns, at = self._schedule.turns, self._next_turn
        self._computing = True
        while True:
            turn = turns[at]
            self._run.pull()
            self._handed = True
            self._prepare(turn)
            if turn.op == op and not turn.rerun:
                break
            if turn.rerun:
                self._run_again(turn, at)
            self._handed = False
            at += 1
        if op in self._schedule.reruns:
            self._save(op, func, args, kwargs)
        self._lib.tidemark_torch_arm(*self._armed[at])
        result = func(*args, **kwargs)
        self._lib.tidemark_torch_disarm()
        self._handed = self._computing = False
        self._next_turn = at + 1
        self._take_results(turn, result)
        return result

    def _save(self, op: int, func: Any, args: tuple, kwargs: dict) -> None:
        """Notes what running this op again will take."""
        self._lib.tidemark_torch_mode(allocator.OFF)
        rng = torch.get_rng_state() if self._calls[self._next_call - 1].random else None
        self._saved[op] = _Saved(func, args, kwargs, rng)
        self._lib.tidemark_torch_mode(allocator.PLANNED)

    def _prepare(self, turn: Turn) -> None:
        at = self._at
        pairs = [(self._cdata[slot], 0) for slot in turn.gone if at[slot]]
        for slot in turn.gone:
            at[slot] = 0
        for slot, address in turn.bind:
            if at[slot] != address:
                at[slot] = address
                pairs.append((self._cdata[slot], address))
        self.bind(pairs)

    def _run_again(self, turn: Turn, at: int) -> None:
        self._lib.tidemark_torch_arm(*self._armed[at])
        self._saved[turn.op].run()
        self._lib.tidemark_torch_disarm()
        self.bind([(self._cdata[slot], address) for slot, address in turn.new])
        for slot, address in turn.new:
            self._at[slot] = address

    def _take_results(self, turn: Turn, result: Any) -> None:
        """Notes the storages that the op made, and sees to it that they lie where the plan says."""
        if not turn.new:
            return
        address_of = dict(turn.new)
        for tensor, slot in zip(tensors_out(result), self._outputs[self._next_call - 1]):
            address = address_of.get(slot)
            if address is None:
                continue
            storage = tensor.untyped_storage()
            self._storage[slot], self._cdata[slot], self._at[slot] = storage, storage._cdata, address
            if self._lib.tidemark_torch_address(storage._cdata) == address:
                continue
            if storage.nbytes() != self._size[slot]:
                self._leave(f"{self._calls[self._next_call - 1].func.name()} made a storage of another size")
                return
            ctypes.memmove(address, self._lib.tidemark_torch_address(storage._cdata), storage.nbytes())
            self.bind([(storage._cdata, address)])

    # ---- leaving the plan in mid-step ----

    def _leave(self, reason: str) -> None:
        """Every value comes back to ordinary memory; the step goes on there, and this executor is done."""
        self.deviation, self._following = reason, False
        self._lib.tidemark_torch_mode(allocator.OFF)
        self._run.stop(not self._handed)
        n_ops = sum(op is not None for op in self.conversion.op_of_call[: self._next_call]) - self._computing
        self._release_frozen()
        rescue_values(self, n_ops)
        self._saved.clear()
        self.is_home = True
