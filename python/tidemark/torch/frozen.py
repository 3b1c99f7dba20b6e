"""Frozen weights stay where they lie: in the safetensors files of a checkpoint.

Their tensors are ordinary ones of float32 whose storages have no bytes. Steps inside a budget bring the bytes to the arena
when an op needs them and let them go afterwards; they are never written and have no copy anywhere. Half precision is widened
on the way, which is exact.
"""

from __future__ import annotations

import json
import math
import os
import struct
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import FormatError
from ..run import Source
from . import allocator
from .tensors import tensors_in

# Per dtype of the format: how its values are stored, and what they are read as.
_DTYPES = {
    "F32": ("as is", torch.float32, 4),
    "BF16": ("bf16", torch.float32, 2),
    "F16": ("f16", torch.float32, 2),
    "F64": ("as is", torch.float64, 8),
    "I64": ("as is", torch.int64, 8),
    "I32": ("as is", torch.int32, 4),
    "I16": ("as is", torch.int16, 2),
    "I8": ("as is", torch.int8, 1),
    "U8": ("as is", torch.uint8, 1),
    "BOOL": ("as is", torch.bool, 1),
}
_MAX_HEADER_BYTES = 64 << 20


@dataclass(frozen=True)
class Stored:
    """Where a tensor lies."""

    path: str
    offset: int
    stored_bytes: int
    stored: str
    dtype: torch.dtype  # as it is read
    shape: tuple[int, ...]


# ---- the files ----


def _entry(path: Path, name: str, entry: Any, data_at: int, data_bytes: int) -> Stored:
    try:
        stored, dtype, item_bytes = _DTYPES[entry["dtype"]]
        shape = tuple(int(n) for n in entry["shape"])
        begin, end = (int(n) for n in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: tensor {name!r} has an entry that makes no sense") from error
    if not 0 <= begin <= end <= data_bytes or end - begin != math.prod(shape) * item_bytes or min(shape, default=0) < 0:
        raise FormatError(f"{path}: tensor {name!r} does not lie where its entry says")
    return Stored(str(path), data_at + begin, end - begin, stored, dtype, shape)


def read_header(path: Path) -> dict[str, Stored]:
    """The tensors of one file, by name."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > min(size - 8, _MAX_HEADER_BYTES):
            raise FormatError(f"{path}: not a safetensors file")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise FormatError(f"{path}: its header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise FormatError(f"{path}: its header is not an object")
    header.pop("__metadata__", None)
    return {name: _entry(path, name, entry, 8 + length, size - 8 - length) for name, entry in header.items()}


def read_folder(folder: str | os.PathLike[str]) -> dict[str, Stored]:
    """The tensors of a checkpoint: those of the shards that its index names, or of all its safetensors files."""
    folder = Path(folder)
    index = folder / "model.safetensors.index.json"
    if index.exists():
        try:
            names = set(json.loads(index.read_text())["weight_map"].values())
            files = sorted(folder / name for name in names if Path(name).name == name)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"{index}: not an index of shards") from error
    else:
        files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{folder}: no safetensors files")
    found: dict[str, Stored] = {}
    for path in files:
        found.update(read_header(path))
    return found


# ---- the weights of models ----


class _Weights:
    """Of one model, which holds it: where the bytes of its storages lie, by the storages' addresses."""

    def __init__(self) -> None:
        self.stored: dict[int, tuple[torch.UntypedStorage, Stored]] = {}

    def __deepcopy__(self, memo: dict) -> "_Weights":
        return self  # copies of the model have no storages here


_models: weakref.WeakSet[_Weights] = weakref.WeakSet()


class Frozen:
    """All frozen storages that there are at the moment, with numbers."""

    def __init__(self) -> None:
        found = [item for weights in _models for item in weights.stored.items()]
        self.number = {cdata: i for i, (cdata, _) in enumerate(found)}
        self.storages = [storage for _, (storage, _) in found]
        self.places = [stored for _, (_, stored) in found]

    def source(self, numbers: Iterable[tuple[int, int]] | None = None) -> Source:
        """The files, by these (value, number) or by numbers alone."""
        source = Source()
        for value, number in ((n, n) for n in range(len(self.places))) if numbers is None else numbers:
            place = self.places[number]
            source.add(value, place.path, place.offset, place.stored_bytes, place.stored)
        return source


class Reader:
    """Brings frozen weights to ordinary memory for one op at a time: where there is no plan."""

    def __init__(self, frozen: Frozen):
        self._number, self._source, self._lib = frozen.number, frozen.source(), allocator.load()

    def call(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """The op, with the bytes of its operands there."""
        fetched = []
        try:
            for tensor in tensors_in(args, kwargs):
                storage = tensor.untyped_storage()
                number = self._number.get(storage._cdata)
                if number is not None and not self._lib.tidemark_torch_address(storage._cdata):
                    fetched.append(storage._cdata)
                    self._source.read(number, self._lib.tidemark_torch_adopt(storage._cdata), storage.nbytes())
            return func(*args, **kwargs)
        finally:
            n = len(fetched)
            self._lib.tidemark_torch_bind(n, allocator.new_u64(fetched), allocator.new_u64([0] * n))


class reading(TorchDispatchMode):
    """`with tide.reading(): model.generate(...)`: frozen weights are read for each op that needs them, outside steps."""

    def __init__(self) -> None:
        super().__init__()
        self._reader = Reader(Frozen())

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self._reader.call(func, args, kwargs or {})


# ---- loading ----


def _without_bytes(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    lib = allocator.load()
    lib.tidemark_torch_mode(allocator.EMPTY)
    try:
        tensor = torch.empty(shape, dtype=dtype, device="cpu")
    finally:
        lib.tidemark_torch_mode(allocator.OFF)
    lib.tidemark_torch_bind(1, allocator.new_u64([tensor.untyped_storage()._cdata]), allocator.new_u64([0]))
    return tensor


def _fill(storage: torch.UntypedStorage, stored: Stored) -> None:
    """The storage gets ordinary memory with the bytes of the file."""
    source = Source()
    source.add(0, stored.path, stored.offset, stored.stored_bytes, stored.stored)
    if storage.nbytes():
        source.read(0, allocator.load().tidemark_torch_adopt(storage._cdata), storage.nbytes())


def _read(stored: Stored) -> torch.Tensor:
    tensor = _without_bytes(stored.shape, stored.dtype)
    _fill(tensor.untyped_storage(), stored)
    return tensor


def _names(name: str) -> Iterator[str]:
    """What a checkpoint may call a parameter: PEFT puts things around the names."""
    yield name
    plain = name.removeprefix("base_model.model.").replace(".base_layer.", ".")
    if plain != name:
        yield plain


def _find(found: dict[str, Stored], name: str, like: torch.Tensor) -> Stored | None:
    for key in _names(name):
        stored = found.get(key)
        if stored is None:
            continue
        if stored.shape != tuple(like.shape):
            raise FormatError(f"{stored.path}: {key!r} has shape {list(stored.shape)}, the model's {list(like.shape)}")
        return stored
    return None


def _load_parameters(model: torch.nn.Module, found: dict[str, Stored], weights: _Weights) -> list[str]:
    """Parameters that share a tensor go on sharing it. Returns the names of those that have no bytes anywhere."""
    made: dict[int, torch.nn.Parameter] = {}
    missing = []
    for prefix, module in model.named_modules():
        for name, old in module._parameters.items():
            if old is None:
                continue
            full = f"{prefix}.{name}" if prefix else name
            stored = None if id(old) in made else _find(found, full, old)
            if stored is not None:
                made[id(old)] = torch.nn.Parameter(_without_bytes(stored.shape, stored.dtype), old.requires_grad)
                storage = made[id(old)].untyped_storage()
                weights.stored[storage._cdata] = storage, stored
            if id(old) not in made:
                missing += [full] if old.is_meta else []
                continue
            module._parameters[name] = made[id(old)]
    return [name for name in missing if model.get_parameter(name).is_meta]


def _load_buffers(model: torch.nn.Module, found: dict[str, Stored]) -> list[str]:
    """Buffers are ordinary memory. Those that are in no file are made as the model makes them, if it says how."""
    missing = []
    for prefix, module in model.named_modules():
        lost = []
        for name, old in module._buffers.items():
            full = f"{prefix}.{name}" if prefix else name
            stored = None if old is None else _find(found, full, old)
            if stored is not None:
                module._buffers[name] = _read(stored)
            elif old is not None and old.is_meta:
                module._buffers[name] = torch.empty_like(old, device="cpu")
                lost.append(full)
        if lost and hasattr(model, "_init_weights") and not list(module.parameters(recurse=False)):
            model._init_weights(module)
        else:
            missing += lost
    return missing


def load(model: torch.nn.Module, folder: str | os.PathLike[str]) -> torch.nn.Module:
    """Gives a model, which may be on the meta device, the weights of a checkpoint of safetensors files, without reading them.

    Steps inside a budget read them op by op; `reading` does so outside steps. Those with gradients come to ordinary memory
    when the first such step begins. Weights of half precision are float32 in the model. Returns the model.
    """
    found, weights = read_folder(folder), _Weights()
    missing = _load_parameters(model, found, weights) + _load_buffers(model, found)
    if missing:
        raise ValueError(f"{folder}: has no {missing[0]!r}, nor {len(missing) - 1} others of the model")
    _models.add(weights)
    model.__dict__.setdefault("_tidemark_weights", []).append(weights)
    return model


def bring_trained(modules: Iterable[torch.nn.Module]) -> None:
    """Parameters that get gradients leave their files for ordinary memory."""
    for module in modules:
        for parameter in module.parameters():
            cdata = parameter.untyped_storage()._cdata
            for weights in _models if parameter.requires_grad else ():
                if cdata in weights.stored:
                    _fill(*weights.stored.pop(cdata))
