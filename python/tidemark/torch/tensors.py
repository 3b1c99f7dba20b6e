"""The tensors among what an op takes, returns and writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_STRIDED = torch.strided


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """What a tensor without a storage of its own is made of."""
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    raise TypeError(f"tensors of layout {tensor.layout} cannot be trained inside a budget")


def tensors_in(args: tuple, kwargs: dict) -> list[torch.Tensor]:
    """All tensors among the arguments, also in lists, in a fixed order."""
    found = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, Tensor):
            if value.layout is _STRIDED:
                found.append(value)
            else:
                found += _parts(value)
        elif isinstance(value, (list, tuple)):
            for v in value:
                if isinstance(v, Tensor):
                    found += [v] if v.layout is _STRIDED else _parts(v)
    return found


def tensors_out(result: Any) -> list[torch.Tensor]:
    """All tensors that an op returned."""
    if isinstance(result, torch.Tensor):
        return [result] if result.layout is _STRIDED else _parts(result)
    if type(result) in (list, tuple):
        return [v for r in result for v in tensors_out(r)]
    return []


def tensors_within(value: Any, seen: dict[int, Any] | None = None) -> list[torch.Tensor]:
    """All tensors in what people hand to steps and get from them: lists, mappings, objects with fields. seen: what was looked
    into already, by id; objects may hold one another."""
    if isinstance(value, torch.Tensor):
        return tensors_out(value)
    seen = {} if seen is None else seen
    if id(value) in seen:
        return []
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (list, tuple, set)):
        parts = list(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = dict.fromkeys((*(f.name for f in dataclasses.fields(value)), *getattr(value, "__dict__", ())))
        parts = [getattr(value, name, None) for name in names]
    else:
        return []
    seen[id(value)] = value  # held, so that its id is no other's
    return [t for part in parts for t in tensors_within(part, seen)]


def stays(tensor: torch.Tensor) -> bool:
    """Is this a value that PyTorch's own code may read without an op: lengths, counts, numbers?"""
    size = tensor.untyped_storage().nbytes()
    if tensor.is_floating_point() or tensor.is_complex():
        return size <= 16
    return size <= 512 or (tensor.dim() == 1 and tensor.dtype is torch.int64 and size <= 1 << 16)


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


def generator_of(func: Any, kwargs: dict) -> torch.Generator | None:
    """Where an op draws its random numbers; None: it draws none."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return None
    return kwargs.get("generator") or torch.default_generator


def alias(value: Any) -> Any:
    """The same with tensors that share storages with these and keep nothing else alive."""
    if isinstance(value, torch.Tensor):
        with torch._C._AutoDispatchBelowAutograd():
            return value.detach()
    if type(value) in (list, tuple):
        return type(value)(alias(v) for v in value)
    return value
