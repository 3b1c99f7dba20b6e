"""Placement by itself: offsets for buffers with lifetimes, in as few bytes as their load allows (place.h)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Iterable, NamedTuple

from ._abi import UNLIMITED, ffi, lib
from .errors import check
from .machine import Machine
from .program import Program
from .svg import Box, draw

ALGORITHMS = ("auto", "smartpool", "first-fit", "skyline", "exact")


class Buffer(NamedTuple):
    """Bytes that are wanted in [begin, end), in any unit of time."""

    name: str
    size_bytes: int
    begin: int
    end: int
    align_bytes: int = 1
    fixed_offset: int | None = None  # where it must lie
    second: tuple[int, int] | None = None  # another lifetime at the same offset, after the first


@dataclass(frozen=True)
class Placement:
    """Offsets, one per buffer: buffers whose lifetimes meet do not overlap. A notebook shows it as a picture."""

    buffers: list[Buffer]
    offsets: list[int]
    height_bytes: int  # most of offset + size
    lower_bound_bytes: int  # proved: no placement is lower
    optimal: bool  # the two are equal
    algorithm: str  # which one found it

    def svg(self, width: int = 960, height: int = 420) -> str:
        """Time from left to right, offsets from bottom to top, one box per lifetime."""
        boxes = []
        for buffer, offset in zip(self.buffers, self.offsets):
            text = f"{buffer.name}, {buffer.size_bytes} bytes at {offset}"
            for begin, end in ((buffer.begin, buffer.end), buffer.second or (0, 0)):
                boxes.append(Box(begin, end, offset, buffer.size_bytes, "activation", text))
        return draw(boxes, self.height_bytes, width, height)

    def _repr_html_(self) -> str:
        share = 100 * self.lower_bound_bytes / max(self.height_bytes, 1)
        return (
            f"<p>{self.algorithm}: {len(self.buffers)} buffers in {self.height_bytes / 2**20:.1f} MiB, "
            f"the bound is {share:.2f} % of it</p>{self.svg()}"
        )


def _take(out: object) -> list[Buffer]:
    """The library's buffers as ours."""
    handle = ffi.gc(out[0], lib.tide_buffers_destroy)
    found = []
    for i in range(lib.tide_buffers_count(handle)):
        b = lib.tide_buffers_get(handle, i)
        found.append(
            Buffer(
                ffi.string(b.name).decode(errors="replace"), b.size_bytes, b.begin, b.end, b.align_bytes,
                None if b.fixed_offset == UNLIMITED else b.fixed_offset,
                (b.begin2, b.end2) if b.begin2 < b.end2 else None,
            )
        )  # fmt: skip
    return found


def read_buffers(path: str | os.PathLike[str]) -> list[Buffer]:
    """Those of a CSV file (docs/formats.md)."""
    out = ffi.new("tide_buffers **")
    check(lib.tide_buffers_read_csv(os.fsencode(path), out))
    return _take(out)


def buffers_of(program: Program, machine: Machine) -> list[Buffer]:
    """What a program has to place if nothing moves and nothing is run again."""
    out = ffi.new("tide_buffers **")
    check(lib.tide_buffers_of_program(program._handle, machine._struct, out))
    return _take(out)


def place(
    buffers: Iterable[Buffer], *, capacity: int | None = None, seconds: float = 1.0, algorithm: str = "auto", seed: int = 0
) -> Placement:
    """Places buffers as low as possible, or within a capacity: then the first placement that fits is the answer.

    seconds: for the exact search, if the quick heuristics miss the bound. algorithm: one of ALGORITHMS.
    """
    buffers = [Buffer(*b) for b in buffers]
    names = [ffi.new("char[]", b.name.encode()) for b in buffers]
    given = ffi.new("tide_buffer[]", max(len(buffers), 1))
    for name, b, g in zip(names, buffers, given):
        g.name, g.size_bytes, g.align_bytes, g.begin, g.end = name, b.size_bytes, b.align_bytes, b.begin, b.end
        g.fixed_offset = UNLIMITED if b.fixed_offset is None else b.fixed_offset
        g.begin2, g.end2 = b.second or (0, 0)
    out = ffi.new("tide_buffers **")
    check(lib.tide_buffers_create(given, len(buffers), out))
    handle = ffi.gc(out[0], lib.tide_buffers_destroy)
    options, c_algorithm = ffi.new("tide_place_options *"), ffi.new("char[]", algorithm.encode())
    lib.tide_place_options_init(options)
    options.capacity_bytes, options.seed, options.seconds = capacity or 0, seed, seconds
    options.algorithm = c_algorithm
    offsets = ffi.new("uint64_t[]", max(len(buffers), 1))
    result = ffi.new("tide_place_result *", {"size": ffi.sizeof("tide_place_result")})
    check(lib.tide_buffers_place(handle, options, offsets, result))
    return Placement(
        buffers, list(offsets[0 : len(buffers)]), result.height_bytes, result.lower_bound_bytes, result.optimal,
        ffi.string(result.algorithm).decode(),
    )  # fmt: skip
