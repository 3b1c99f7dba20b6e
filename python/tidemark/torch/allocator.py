"""Builds allocator.cpp against the PyTorch that is there, once per version of both, and loads it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Iterator

import cffi
import torch

_SOURCE = Path(__file__).with_name("allocator.cpp")
_PARTS = [_SOURCE, *sorted(_SOURCE.parent.glob("allocator_*.h"))]

_ffi = cffi.FFI()
_ffi.cdef("""
void tidemark_torch_install(void);
void tidemark_torch_mode(int wanted);
void tidemark_torch_pause(int wanted);
uint64_t tidemark_torch_event_count(void);
void tidemark_torch_events(uint64_t first, uint64_t n, uint64_t *out);
uint64_t tidemark_torch_next_id(void);
uint64_t tidemark_torch_block(uint64_t cdata);
void tidemark_torch_arena(uint64_t begin, uint64_t bytes);
void tidemark_torch_disarm(void);
void *tidemark_torch_follower(void *run, void *pull, void *call, uint64_t n_slots, uint64_t annex_bytes);
void tidemark_torch_follower_end(void *follower);
void tidemark_torch_follow(void *follower);
void tidemark_torch_add_turn(void *follower, uint64_t n_places, const uint64_t *places, uint64_t n_answers,
                             const uint64_t *answers, uint64_t n_made, const uint64_t *made);
void tidemark_torch_let_stay(void *follower, uint64_t n, const uint64_t *slots);
int tidemark_torch_set_slot(void *follower, uint64_t slot, uint64_t cdata, uint64_t address);
void tidemark_torch_put(void *follower, uint64_t slot, uint64_t cdata, uint64_t address);
void tidemark_torch_forget_slots(void *follower, uint64_t n, const uint64_t *slots);
int tidemark_torch_begin_turn(void *follower, uint64_t index);
int tidemark_torch_next_turn(void *follower, uint64_t index);
void tidemark_torch_bind(uint64_t n, const uint64_t *cdatas, const uint64_t *addresses);
uint64_t tidemark_torch_adopt(uint64_t cdata);
uint64_t tidemark_torch_address(uint64_t cdata);
void tidemark_torch_heap(void *self, void *allocate, void *pin, void *unpin, void *release, void *borrow, void *last_error);
void *tidemark_torch_moved(void);
int tidemark_torch_begin_op(uint64_t n, const uint64_t *cdatas, const uint64_t *import);
void tidemark_torch_end_op(uint64_t n, const uint64_t *cdatas, const uint64_t *stay);
int tidemark_torch_fetch(uint64_t cdata);
void tidemark_torch_trim(void);
int tidemark_torch_leave_heap(void);
void tidemark_torch_outside(uint64_t *count, uint64_t *peak_bytes, int reset);
""")

OFF, RECORD, PLANNED, ONLINE, EMPTY = 0, 1, 2, 3, 4
RELEASED = 0xFFFFFFFFFFFFFFFF
ROOM = 1 << 63  # with the bytes of an answer: fewer will do


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "tidemark" / "torch-allocator"


def _build(target: Path) -> None:
    """Compiles into a file of its own first, so that nobody ever loads half of one."""
    root = Path(torch.__file__).parent
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, half = tempfile.mkstemp(dir=target.parent, suffix=".so")
    os.close(handle)
    abi = int(torch.compiled_with_cxx11_abi())
    command = [
        os.environ.get("CXX", "c++"), "-O2", "-std=c++20", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
        f"-I{root / 'include'}", str(_SOURCE), f"-L{root / 'lib'}", "-lc10", f"-Wl,-rpath,{root / 'lib'}", "-o", half,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        os.unlink(half)
        raise RuntimeError(f"the allocator for PyTorch cannot be built:\n{' '.join(command)}\n{done.stderr}")
    os.replace(half, target)


@functools.cache
def load() -> Any:
    """The library, with its allocator installed in front of PyTorch's own."""
    key = hashlib.sha256(b"".join(p.read_bytes() for p in _PARTS) + torch.__version__.encode()).hexdigest()[:16]
    target = _cache_folder() / f"allocator-{torch.__version__}-{key}.so"
    if not target.exists():
        _build(target)
    lib = _ffi.dlopen(str(target))
    lib.tidemark_torch_install()
    return lib


def new_u64(values: list[int]) -> Any:
    """An array of uint64_t for the calls above."""
    return _ffi.new("uint64_t[]", values)


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """What is allocated meanwhile is Tidemark's own, and no part of a step."""
    lib = load()
    lib.tidemark_torch_pause(1)
    try:
        yield
    finally:
        lib.tidemark_torch_pause(0)


def read_events(first: int, n: int) -> list[tuple[int, int]]:
    """(block, bytes) per allocation, (block, RELEASED) per release."""
    out = _ffi.new("uint64_t[]", max(2 * n, 1))
    load().tidemark_torch_events(first, n, out)
    return [(out[2 * i], out[2 * i + 1]) for i in range(n)]


def outside(reset: bool = False) -> tuple[int, int]:
    """Allocations of planned steps that no plan had an address for, and the most bytes of them at a time."""
    out = _ffi.new("uint64_t[2]")
    load().tidemark_torch_outside(out, out + 1, reset)
    return out[0], out[1]


def cast_pointer(value: int) -> Any:
    """A pointer of another cffi library, for the calls above."""
    return _ffi.cast("void *", value)


def pointer_value(pointer: Any) -> int:
    return int(_ffi.cast("uintptr_t", pointer))
