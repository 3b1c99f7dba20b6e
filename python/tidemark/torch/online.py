"""Steps that have no plan yet, inside the budget all the same: their memory is a heap of the library, and what no op uses
leaves to disk, least recently used first, whenever room is short."""

from __future__ import annotations

import os
import shutil
from typing import Any, Callable

import torch

from .. import _abi
from ..errors import FitError, TideError, check, last_error
from . import allocator
from .frozen import Frozen
from .tensors import generator_of, stays

_lib, _ffi = _abi.lib, _abi.ffi


def _function(name: str) -> object:
    """The address of a call of the library, as the allocator wants it."""
    return allocator.cast_pointer(int(_ffi.cast("uintptr_t", _ffi.addressof(_lib, name))))


def _default_disk_bytes(budget: int, disk_path: str | os.PathLike[str] | None) -> int:
    """Nobody knows yet what the step takes: all that may be wanted, as far as it is there."""
    free = shutil.disk_usage(disk_path or os.environ.get("TMPDIR") or "/tmp").free
    return max(4 * budget, min(8 << 30, free // 4))


class OnlineHeap:
    """The heap of online steps. One at a time is in use."""

    def __init__(self, budget: int, disk_bytes: int | None, disk_path: str | os.PathLike[str] | None, frozen: Frozen):
        self._allocator = allocator.load()
        options = _ffi.new("tide_heap_options *")
        _lib.tide_heap_options_init(options)
        options.arena_bytes = budget
        options.disk_bytes = _default_disk_bytes(budget, disk_path) if disk_bytes is None else disk_bytes
        path = _ffi.new("char[]", os.fsencode(disk_path)) if disk_path else _ffi.NULL
        options.disk_path = path
        options.moved = _ffi.cast("void *", allocator.pointer_value(self._allocator.tidemark_torch_moved()))
        self._source = frozen.source()  # its numbers are those of `frozen`
        options.read, options.read_context = self._source.function, self._source.context
        out = _ffi.new("tide_heap **")
        check(_lib.tide_heap_create(options, out))
        self._heap = out[0]
        self.peak_bytes = 0  # when it is closed
        calls = ("tide_heap_allocate", "tide_heap_pin", "tide_heap_unpin", "tide_heap_release", "tide_heap_borrow",
                 "tide_last_error")  # fmt: skip
        self._allocator.tidemark_torch_heap(
            allocator.cast_pointer(int(_ffi.cast("uintptr_t", self._heap))), *(_function(name) for name in calls)
        )

    def run_op(
        self, func: Any, args: tuple, kwargs: dict, operands: list[tuple[torch.UntypedStorage, int]],
        again: Callable[[], None] = lambda: None,
    ) -> Any:  # fmt: skip
        """An op, inside the budget; FitError if that does not hold it. operands: storages with what becomes of each first, as
        the allocator wants it; again: called if the op begins a second time. end_op() comes after it."""
        # The large ones come first, while room is in one piece.
        operands = sorted(operands, key=lambda operand: -operand[0].nbytes())
        cdatas, imports = [s._cdata for s, _ in operands], [how for _, how in operands]
        generator = generator_of(func, kwargs)
        if generator is not None:
            with allocator.paused():
                numbers = generator.get_state()
        self._begin_op(cdatas, imports)
        try:
            return func(*args, **kwargs)
        except torch.OutOfMemoryError as error:
            if func._schema.is_mutable:
                raise FitError(f"{func.name()}: {error}") from error
        self._make_way()  # it has changed nothing yet, so it may begin once more
        if generator is not None:
            with allocator.paused():
                generator.set_state(numbers)
        self._begin_op(cdatas, imports)
        again()
        try:
            return func(*args, **kwargs)
        except torch.OutOfMemoryError as error:
            raise FitError(f"{func.name()}: {error}") from error

    def take_in(self, storage: torch.UntypedStorage) -> bool:
        """A storage of ordinary memory moves here, if there is room."""
        taken = self._begin([storage._cdata], [1])
        self.end_op([])
        return bool(taken)

    def _begin_op(self, cdatas: list[int], imports: list[int]) -> None:
        if self._begin(cdatas, imports):
            return
        self._make_way()
        if not self._begin(cdatas, imports):
            raise FitError(last_error())

    def _begin(self, cdatas: list[int], imports: list[int]) -> int:
        n = len(cdatas)
        return self._allocator.tidemark_torch_begin_op(n, allocator.new_u64(cdatas), allocator.new_u64(imports))

    def _make_way(self) -> None:
        """Everything leaves, so that the operands of the op at hand come back side by side."""
        self.end_op([])
        self.rest()

    def end_op(self, results: list[torch.Tensor]) -> None:
        """What the op returned may leave from now on, unless it is read where no op shows it."""
        cdatas = [t.untyped_storage()._cdata for t in results]
        stay = [stays(t) for t in results]
        self._allocator.tidemark_torch_end_op(len(cdatas), allocator.new_u64(cdatas), allocator.new_u64(stay))

    def rest(self) -> None:
        """Between steps: takes as little memory as it can."""
        check(_lib.tide_heap_rest(self._heap))

    def close(self) -> None:
        """What is still in the heap comes to ordinary memory."""
        if self._heap is None:
            return
        self.peak_bytes = _lib.tide_heap_get_stats(self._heap).peak_bytes
        if not self._allocator.tidemark_torch_leave_heap():
            raise TideError(last_error())
        _lib.tide_heap_destroy(self._heap)
        self._heap = None
