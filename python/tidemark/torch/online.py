"""Steps that have no plan yet, inside the budget all the same: their memory is a heap of the library, and what no op uses
leaves to disk, least recently used first, whenever room is short."""

from __future__ import annotations

import os
import shutil

from .. import _abi
from ..errors import FitError, TideError, check
from . import allocator
from .frozen import Frozen

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
        calls = ("tide_heap_allocate", "tide_heap_pin", "tide_heap_unpin", "tide_heap_release", "tide_heap_borrow",
                 "tide_last_error")  # fmt: skip
        self._allocator.tidemark_torch_heap(
            allocator.cast_pointer(int(_ffi.cast("uintptr_t", self._heap))), *(_function(name) for name in calls)
        )

    def begin_op(self, cdatas: list[int], imports: list[int]) -> None:
        """The op's storages are in memory; FitError if the budget does not hold them. imports: as the allocator wants it."""
        if self._begin(cdatas, imports):
            return
        self.make_way()
        if not self._begin(cdatas, imports):
            raise FitError(_ffi.string(_lib.tide_last_error()).decode())

    def _begin(self, cdatas: list[int], imports: list[int]) -> int:
        n = len(cdatas)
        return self._allocator.tidemark_torch_begin_op(n, allocator.new_u64(cdatas), allocator.new_u64(imports))

    def make_way(self) -> None:
        """Everything leaves, so that the operands of the op at hand come back side by side."""
        self.end_op([])
        self.rest()

    def end_op(self, cdatas: list[int]) -> None:
        self._allocator.tidemark_torch_end_op(len(cdatas), allocator.new_u64(cdatas))

    def rest(self) -> None:
        """Between steps: takes as little memory as it can."""
        check(_lib.tide_heap_rest(self._heap))

    @property
    def peak_bytes(self) -> int:
        return _lib.tide_heap_get_stats(self._heap).peak_bytes

    def close(self) -> None:
        """What is still in the heap comes to ordinary memory."""
        if self._heap is None:
            return
        if not self._allocator.tidemark_torch_leave_heap():
            raise TideError(_ffi.string(_lib.tide_last_error()).decode())
        _lib.tide_heap_destroy(self._heap)
        self._heap = None
