"""Pulled runs: the library keeps bytes and order, the caller computes (run.h)."""

from __future__ import annotations

import os
from typing import Callable

from ._abi import ffi, lib
from .errors import check
from .plan import Plan


class Source:
    """Values that lie in files and are only ever read (source.h), by numbers of the caller's."""

    STORED = ("as is", "bf16", "f16")

    def __init__(self) -> None:
        out = ffi.new("tide_source **")
        check(lib.tide_source_create(out))
        self._handle = ffi.gc(out[0], lib.tide_source_destroy)

    def add(self, value: int, path: str | os.PathLike[str], offset: int, stored_bytes: int, stored: str) -> None:
        """Bytes of a file are this value; "bf16" and "f16" are read as float32."""
        how = self.STORED.index(stored)
        check(lib.tide_source_add(self._handle, value, os.fsencode(path), offset, stored_bytes, how))

    def read(self, value: int, address: int, size_bytes: int) -> None:
        check(lib.tide_source_read(self._handle, value, 0, ffi.cast("void *", address), size_bytes))

    @property
    def function(self) -> object:
        """tide_source_read, for options that take it with `context`."""
        return ffi.cast("void *", ffi.addressof(lib, "tide_source_read"))

    @property
    def context(self) -> object:
        return ffi.cast("void *", self._handle)


class PulledRun:
    """A run on the device "host" that follows a plan and hands every op over to the caller."""

    def __init__(self, plan: Plan, *, disk_path: str | os.PathLike[str] | None = None, source: Source | None = None):
        self.plan, self._source = plan, source  # borrowed by the run, as are its program and machine
        out = ffi.new("tide_device **")
        check(lib.tide_device_open(b"host", ffi.NULL, out))
        self._device = out[0]
        options = ffi.new("tide_run_options *")
        lib.tide_run_options_init(options)
        options.device, options.program = self._device, plan.program._handle
        options.machine, options.plan = plan.machine._struct, plan._handle
        self._path = ffi.new("char[]", os.fsencode(disk_path)) if disk_path else ffi.NULL
        options.disk_path = self._path
        if source is not None:
            options.input, options.input_context = source.function, source.context
        run = ffi.new("tide_run **")
        status = lib.tide_run_create(options, run)
        if status:
            lib.tide_device_close(self._device)
        check(status)
        self._run = run[0]
        self._call = ffi.new("tide_call *")
        self.report = ffi.new("tide_step_report *")

    @property
    def address(self) -> int:
        """Where the arena's offset 0 is."""
        return int(ffi.cast("uintptr_t", lib.tide_arena_host(lib.tide_run_arena(self._run))))

    def write(self, tensor: int, address: int, size_bytes: int) -> None:
        """Between steps: gives a carried value its bytes."""
        check(lib.tide_run_write(self._run, tensor, ffi.cast("void *", address), size_bytes))

    def read(self, tensor: int, address: int, size_bytes: int) -> None:
        """Between steps: the bytes of a value."""
        check(lib.tide_run_read(self._run, tensor, ffi.cast("void *", address), size_bytes))

    def begin(self) -> None:
        check(lib.tide_run_pull_begin(self._run))

    def pull(self) -> int:
        """The op before is computed; begins and awaits transfers up to the next one, and returns that op's id."""
        status = lib.tide_run_pull(self._run, self._call)
        if status:
            check(status)
        return self._call.op

    def pull_call(self, cast: Callable[[int], object]) -> tuple[object, object, object]:
        """The run, tide_run_pull and its second argument, for those who call it from C; cast makes pointers of addresses."""
        function = ffi.addressof(lib, "tide_run_pull")
        return tuple(cast(int(ffi.cast("uintptr_t", p))) for p in (self._run, function, self._call))

    def end(self) -> None:
        """Waits for all that moves; self.report has the figures."""
        check(lib.tide_run_pull_end(self._run, self.report))

    def stop(self, computed: bool) -> None:
        """Gives the step up; from then on only rescue() and close() work."""
        check(lib.tide_run_pull_stop(self._run, computed))

    def rescue(self, tensor: int, address: int, size_bytes: int) -> bool:
        """After stop(): the bytes of a value, if it is anywhere."""
        return lib.tide_run_rescue(self._run, tensor, ffi.cast("void *", address), size_bytes) == 0

    def discard(self, offset: int, size_bytes: int) -> None:
        """The memory of bytes of the arena that nobody wants goes back to the system."""
        lib.tide_arena_discard(lib.tide_run_arena(self._run), offset, size_bytes)

    def close(self) -> None:
        if self._run:
            lib.tide_run_destroy(self._run)
            lib.tide_device_close(self._device)
            self._run = None

    def __del__(self) -> None:
        if getattr(self, "_run", None):
            self.close()
