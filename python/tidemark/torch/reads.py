"""Bytes that Python reads without an op: `tensor.tolist()`, `tensor.numpy()`.

No op shows that they are wanted, so a plan might have moved them away; and an array that shares the bytes of a step would see
others' bytes later. Inside steps both therefore read a clone, which is an op, and an array has memory of its own.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator

import torch

_NAMES = ("tolist", "numpy", "__array__")


def _reading(name: str, plain: Any) -> Any:
    thread = threading.get_ident()

    def read(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        refused = self.requires_grad and name != "tolist"  # as ever
        if refused or threading.get_ident() != thread or self.device.type != "cpu" or self.layout is not torch.strided:
            return plain(self, *args, **kwargs)
        found = plain(torch.clone(self.detach()), *args, **kwargs)
        return found if name == "tolist" else found.copy()

    return read


@contextlib.contextmanager
def visible_reads() -> Iterator[None]:
    """While a step runs."""
    plain = {name: getattr(torch.Tensor, name) for name in _NAMES}
    own = {name for name in _NAMES if name in vars(torch.Tensor)}
    for name in _NAMES:
        setattr(torch.Tensor, name, _reading(name, plain[name]))
    try:
        yield
    finally:
        for name in _NAMES:
            if name in own:
                setattr(torch.Tensor, name, plain[name])
            else:
                delattr(torch.Tensor, name)
