"""Bytes that Python reads without an op: `tensor.tolist()`, `tensor.numpy()`, which `numpy.asarray(tensor)` calls.

No op shows that they are wanted, so a plan might have moved them away; and an array that shares the bytes of a step would see
others' bytes later. Inside steps both therefore read a clone, which is an op, and an array has memory of its own. It is
read-only, because what is written to it would not reach the tensor.
"""

from __future__ import annotations

import collections
import contextlib
import threading
from typing import Any, Callable, Iterator

import torch

_NAMES = ("tolist", "numpy")
_lock = threading.Lock()
_plain: dict[str, Any] = {}  # PyTorch's own while some step runs; None: inherited
_n_steps: collections.Counter[int] = collections.Counter()  # that run, per thread


def _reading(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        refused = self.requires_grad and name == "numpy" and not kwargs.get("force")  # as ever
        is_ours = threading.get_ident() in _n_steps and self.device.type == "cpu" and self.layout is torch.strided
        if refused or not is_ours:
            return plain(self, *args, **kwargs)
        found = plain(torch.clone(self.detach()), *args, **kwargs)
        if name == "numpy":
            found = found.copy()
            found.flags.writeable = False
        return found

    return read


@contextlib.contextmanager
def visible_reads() -> Iterator[None]:
    """While a step runs; there may be others at the same time on other threads."""
    thread = threading.get_ident()
    with _lock:
        if not _n_steps:
            for name in _NAMES:
                _plain[name] = vars(torch.Tensor).get(name)
                setattr(torch.Tensor, name, _reading(name, getattr(torch.Tensor, name)))
        _n_steps[thread] += 1
    try:
        yield
    finally:
        with _lock:
            _n_steps[thread] -= 1
            if not _n_steps[thread]:
                del _n_steps[thread]
            if not _n_steps:
                _restore()


def _restore() -> None:
    for name in _NAMES:
        if _plain[name] is None:
            delattr(torch.Tensor, name)
        else:
            setattr(torch.Tensor, name, _plain[name])
