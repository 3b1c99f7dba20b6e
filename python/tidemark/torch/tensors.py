"""The tensors among what an op takes, returns and writes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def tensors_in(args: tuple, kwargs: dict) -> list[torch.Tensor]:
    """All tensors among the arguments, also in lists, in a fixed order."""
    found = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [v for v in value if isinstance(v, Tensor)]
    return found


def tensors_out(result: Any) -> list[torch.Tensor]:
    """All tensors that an op returned."""
    if isinstance(result, torch.Tensor):
        return [result]
    if type(result) in (list, tuple):
        return [v for r in result for v in tensors_out(r)]
    return []


def mutated_by(func: Any, args: tuple, kwargs: dict) -> list[torch.Tensor]:
    """The tensors that the schema says are written."""
    found: list[torch.Tensor] = []
    if not func._schema.is_mutable:
        return found
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = args[i] if i < len(args) else kwargs.get(argument.name)
        found.extend(tensors_in((value,), {}))
    return found


def alias(value: Any) -> Any:
    """The same with tensors that share storages with these and keep nothing else alive."""
    if isinstance(value, torch.Tensor):
        with torch._C._AutoDispatchBelowAutograd():
            return value.detach()
    if type(value) in (list, tuple):
        return type(value)(alias(v) for v in value)
    return value
