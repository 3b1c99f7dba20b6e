"""Programs: what one training step does to memory (program.h)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Iterable, Sequence

from ._abi import ffi, lib
from .errors import check

DTYPES = ("f32", "u8", "i32", "bytes", "bf16", "f16")
CLASSES = ("input", "weight", "gradient", "optimizer", "activation", "activation-gradient", "workspace", "other")
PHASES = ("forward", "backward", "update")
STARTS = ("absent", "present", "client")


@dataclass(frozen=True)
class Tensor:
    """One value of a program."""

    name: str
    size_bytes: int
    cls: str
    start: str
    keep: bool


@dataclass(frozen=True)
class Op:
    """One op of a program; reads and writes are tensor ids."""

    name: str
    phase: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    rerunnable: bool
    random: bool
    workspace_bytes: int
    cost_ns: int


@dataclass(frozen=True)
class Liveness:
    """Lower bounds and the peak when nothing moves and nothing is run again."""

    peak_bytes: int
    peak_op: int
    largest_op_bytes: int
    resident_bytes: int
    floor_bytes: int
    total_bytes: int


class Program:
    """An immutable program. Made by a ProgramBuilder or read from a file."""

    def __init__(self, handle: object):
        self._handle = ffi.gc(handle, lib.tide_program_destroy)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Program":
        """Reads a program file (docs/formats.md)."""
        out = ffi.new("tide_program **")
        check(lib.tide_program_read(os.fsencode(path), out))
        return cls(out[0])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes it as JSON Lines, for the command `tidemark` and for people."""
        check(lib.tide_program_write(self._handle, os.fsencode(path)))

    @property
    def name(self) -> str:
        return ffi.string(lib.tide_program_name(self._handle)).decode()

    @property
    def n_tensors(self) -> int:
        return lib.tide_program_tensor_count(self._handle)

    @property
    def n_ops(self) -> int:
        return lib.tide_program_op_count(self._handle)

    @property
    def cost_ns(self) -> int:
        """What the ops take together, in their default variants."""
        return lib.tide_program_cost_ns(self._handle)

    def tensor(self, i: int) -> Tensor:
        t = lib.tide_program_tensor(self._handle, i)
        if not t:
            raise IndexError(i)
        return Tensor(ffi.string(t.name).decode(), t.size_bytes, CLASSES[t.cls], STARTS[t.start], t.keep)

    def op(self, i: int) -> Op:
        o = lib.tide_program_op(self._handle, i)
        if not o:
            raise IndexError(i)
        return Op(
            ffi.string(o.name).decode(),
            PHASES[o.phase],
            tuple(o.reads[k] for k in range(o.n_reads)),
            tuple(o.writes[k] for k in range(o.n_writes)),
            o.rerunnable,
            o.random,
            o.variants[0].workspace_bytes,
            o.variants[0].cost_ns,
        )

    def liveness(self) -> Liveness:
        out = ffi.new("tide_liveness **")
        check(lib.tide_liveness_create(self._handle, out))
        live = ffi.gc(out[0], lib.tide_liveness_destroy)
        return Liveness(
            live.peak_bytes, live.peak_op, live.largest_op_bytes, live.resident_bytes, live.floor_bytes, live.total_bytes
        )

    def __repr__(self) -> str:
        return f"<Program {self.name!r}: {self.n_ops} ops, {self.n_tensors} tensors>"


class ProgramBuilder:
    """Builds a program call by call; what makes no sense is refused at the call that says it."""

    def __init__(self, name: str = "", *, repeating: bool = True):
        out = ffi.new("tide_program_builder **")
        check(lib.tide_program_builder_create(name.encode(), repeating, out))
        self._handle = ffi.gc(out[0], lib.tide_program_builder_destroy)

    def tensor(
        self, name: str, size_bytes: int, *, cls: str = "other", start: str = "absent", keep: bool = False
    ) -> int:
        """Declares a value and returns its id."""
        c_name = ffi.new("char[]", name.encode())
        t = ffi.new(
            "tide_tensor *",
            {
                "name": c_name,
                "size_bytes": size_bytes,
                "dtype": DTYPES.index("bytes"),
                "cls": CLASSES.index(cls),
                "start": STARTS.index(start),
                "keep": keep,
            },
        )
        out = ffi.new("tide_id *")
        check(lib.tide_program_builder_tensor(self._handle, t, out))
        return out[0]

    def op(
        self,
        name: str,
        reads: Sequence[int],
        writes: Sequence[int],
        *,
        inplace: Iterable[tuple[int, int, bool]] = (),
        phase: str = "forward",
        workspace_bytes: int = 0,
        cost_ns: int = 0,
        rerunnable: bool = True,
        random: bool = False,
        counter: int = 0,
    ) -> int:
        """Appends an op. inplace: (position in reads, position in writes, must) as in program.h."""
        pairs = list(inplace)
        c_name = ffi.new("char[]", name.encode())
        c_reads, c_writes = ffi.new("tide_id[]", list(reads)), ffi.new("tide_id[]", list(writes))
        c_pairs = ffi.new("tide_inplace[]", pairs)
        variant = ffi.new("tide_variant *", (workspace_bytes, cost_ns, 0))
        o = ffi.new("tide_op *")
        o.name, o.phase, o.rerunnable, o.random, o.counter = c_name, PHASES.index(phase), rerunnable, random, counter
        o.n_reads, o.n_writes, o.n_inplace, o.n_variants = len(reads), len(writes), len(pairs), 1
        o.reads, o.writes, o.inplace, o.variants = c_reads, c_writes, c_pairs, variant
        out = ffi.new("tide_id *")
        check(lib.tide_program_builder_op(self._handle, o, out))
        return out[0]

    def carry(self, source: int, to: int) -> None:
        """`source` at the end of a step is `to` at the start of the next."""
        check(lib.tide_program_builder_carry(self._handle, (source, to)))

    def keep(self, tensor: int) -> None:
        """Marks a value as needed at the end of the step."""
        check(lib.tide_program_builder_keep(self._handle, tensor))

    def finish(self) -> Program:
        """Validates the whole; the builder is used up."""
        out = ffi.new("tide_program **")
        check(lib.tide_program_builder_finish(self._handle, out))
        ffi.gc(self._handle, None)
        del self._handle
        return Program(out[0])
