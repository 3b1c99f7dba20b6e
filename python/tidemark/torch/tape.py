"""The arguments of a step, call by call, for replays: what each call is given, and how two steps differ in it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from . import allocator
from .tensors import alias

aten = torch.ops.aten


class Noted(NamedTuple):
    """One call. Its tensors share storages with the step's; those of the batch have storages of the tape's own."""

    func: Any
    args: tuple
    kwargs: dict
    grad: bool
    signature: tuple  # what must be the same in each step, numbers left out
    numbers: dict[tuple[str, Any], Any]  # by place: ("a", position) or ("k", name)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def numbers_of(args: tuple, kwargs: dict) -> dict[tuple[str, Any], Any]:
    """Numbers among the arguments, by place."""
    found = {("a", i): value for i, value in enumerate(args) if _is_number(value)}
    found.update({("k", name): value for name, value in kwargs.items() if _is_number(value)})
    return found


def with_numbers(noted: Noted, numbers: dict[tuple[str, Any], Any]) -> tuple[tuple, dict]:
    """Its arguments with other numbers."""
    args = tuple(numbers.get(("a", i), value) for i, value in enumerate(noted.args))
    return args, {name: numbers.get(("k", name), value) for name, value in noted.kwargs.items()}


def _geometry(tensor: torch.Tensor) -> tuple:
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype


class Tape:
    """Notes a step while Python drives it."""

    def __init__(self, batch: list[torch.Tensor]):
        self.calls: dict[int, Noted] = {}  # by index of the call
        self.update: tuple[int, int] | None = None  # calls of the optimizer
        self.values: dict[int, Any] = {}  # what Python read, by index of the call
        self.moved: set[int] = set()  # calls whose results did not lie where they were planned
        self.refusal: str | None = None  # why such a step cannot be replayed
        self.batch = [_geometry(t) for t in batch]
        self._given = {t.untyped_storage()._cdata: i for i, t in enumerate(batch)}
        self._sizes = [t.untyped_storage().nbytes() for t in batch]
        lib = allocator.load()
        lib.tidemark_torch_mode(allocator.EMPTY)
        try:
            self.storages = [torch.empty(n, dtype=torch.uint8).untyped_storage() for n in self._sizes]
        finally:
            lib.tidemark_torch_mode(allocator.OFF)

    def takes(self, batch: list[torch.Tensor]) -> bool:
        """Do these tensors lie as those of the noted step?"""
        return [_geometry(t) for t in batch] == self.batch and self._sizes == [t.untyped_storage().nbytes() for t in batch]

    def _refuse(self, reason: str) -> None:
        self.refusal = self.refusal or reason

    def _template(self, tensor: torch.Tensor, slot: int | None) -> tuple[torch.Tensor, Any]:
        """A tensor for later steps, and what it is."""
        given = self._given.get(tensor.untyped_storage()._cdata)
        if given is not None:
            shape, stride, offset, dtype = _geometry(tensor)
            with torch._C._AutoDispatchBelowAutograd():
                return torch.empty(0, dtype=dtype).set_(self.storages[given], offset, shape, stride), ("batch", given)
        if slot is None:  # made outside of ops, by Python: it must not change
            copy = alias(tensor).clone()
            return copy, tuple(copy.flatten().tolist()) if copy.numel() <= 64 else copy
        return alias(tensor), slot

    def note(self, index: int, func: Any, args: tuple, kwargs: dict, slots: list[int | None]) -> None:
        """The call with this index; slots: of its tensors, in their order."""
        if func.namespace == "profiler":
            self.calls[index] = Noted(func, (), {}, False, (func,), {})
            return
        lib = allocator.load()
        lib.tidemark_torch_mode(allocator.OFF)
        left, signature = iter(slots), [func]

        def walk(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                template, what = self._template(value, next(left))
                if isinstance(what, torch.Tensor):
                    self._refuse(f"{func.name()} takes a tensor that Python made")
                signature.append((what if not isinstance(what, torch.Tensor) else None, _geometry(value)))
                return template
            if type(value) in (list, tuple):
                signature.append(len(value))
                return type(value)(walk(v) for v in value)
            signature.append(None if _is_number(value) else value)
            return value

        noted_args = tuple(walk(value) for value in args)
        noted_kwargs = {name: walk(value) for name, value in kwargs.items()}
        grad = torch.is_grad_enabled()
        signature.append(grad)
        in_update = self.update is not None and self.update[1] < 0
        if func is aten._local_scalar_dense.default and not in_update:
            self.values[index] = None  # until it is read
        elif torch.Tag.dynamic_output_shape in func.tags or torch.Tag.data_dependent_output in func.tags and not in_update:
            self._refuse(f"{func.name()} depends on values")
        if func._schema.name in ("aten::set_", "aten::resize_"):
            self._refuse(f"{func.name()} changes storages")
        numbers = numbers_of(args, kwargs)
        self.calls[index] = Noted(func, noted_args, noted_kwargs, grad, tuple(signature), numbers)
        lib.tidemark_torch_mode(allocator.PLANNED)

    def note_value(self, index: int, value: Any) -> None:
        """What the call gave to Python."""
        if index in self.values:
            self.values[index] = value

    def begin_update(self) -> None:
        self.update = (len(self.calls), -1) if self.update is None else (-1, -1)

    def end_update(self) -> None:
        if self.update is not None:
            self.update = self.update[0], len(self.calls)

    def difference(self, other: "Tape") -> str | None:
        """Why steps like these two cannot be replayed, numbers of the optimizer apart."""
        for tape in (self, other):
            if tape.refusal:
                return tape.refusal
            if tape.update is None or tape.update[0] < 0 or tape.update[1] < 0:
                return "the optimizer did not step once"
        if self.update != other.update or self.calls.keys() != other.calls.keys():
            return "the steps differ in length"
        begin, end = self.update
        for index, mine in self.calls.items():
            theirs = other.calls[index]
            if mine.signature != theirs.signature:
                return f"{mine.func.name()} has other arguments from step to step"
            if self.values.get(index) != other.values.get(index):
                return f"{mine.func.name()} reads other values from step to step"
            if not begin <= index < end and mine.numbers != theirs.numbers:
                return f"{mine.func.name()} has other numbers from step to step"
        return None
