"""Machines: what things cost (machine.h)."""

from __future__ import annotations

import os

from ._abi import NONE, ffi, lib
from .errors import check

TIER_KINDS = ("ram", "disk", "client", "peer", "lent")


class Machine:
    """A machine of a shipped profile ("cpu", "a100" ...) or of a JSON file."""

    def __init__(self, name: str | os.PathLike[str] = "cpu"):
        self._struct = ffi.new("tide_machine *")
        check(lib.tide_machine_load(os.fsencode(name), self._struct))

    def without(self, kind: str) -> "Machine":
        """The same machine without its tiers of a kind."""
        other = Machine.__new__(Machine)
        other._struct = ffi.new("tide_machine *")
        lib.tide_machine_without(self._struct, TIER_KINDS.index(kind), other._struct)
        return other

    def with_reading(self, kind: str, *, bytes_per_s: int, latency_ns: int, drag_percent: int) -> "Machine":
        """The same machine with other figures for reading from its first tier of a kind."""
        other, tier = Machine.__new__(Machine), self.find_tier(kind)
        other._struct = ffi.new("tide_machine *", self._struct[0])
        for i in range(other._struct.n_channels):
            channel = other._struct.channel[i]
            if channel.tier == tier and not channel.out:
                channel.bytes_per_s, channel.latency_ns = bytes_per_s, latency_ns
                channel.drag_percent = drag_percent
        return other

    def find_tier(self, kind: str) -> int | None:
        """The index of its first tier of a kind."""
        tier = lib.tide_machine_find_tier(self._struct, TIER_KINDS.index(kind))
        return None if tier == NONE else tier

    def write(self, path: str | os.PathLike[str]) -> None:
        check(lib.tide_machine_write(self._struct, os.fsencode(path)))

    @property
    def name(self) -> str:
        return ffi.string(self._struct.name).decode()

    @property
    def memory_bytes(self) -> int:
        return self._struct.memory_bytes

    @property
    def tiers(self) -> list[str]:
        return [ffi.string(self._struct.tier[i].name).decode() for i in range(self._struct.n_tiers)]

    @property
    def align_bytes(self) -> int:
        return self._struct.align_bytes

    def __repr__(self) -> str:
        return f"<Machine {self.name!r}: tiers {', '.join(self.tiers) or 'none'}>"
