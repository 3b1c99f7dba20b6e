"""Where a step leaves its plan: every value that is still wanted comes to ordinary memory, from the arena, from a tier, or
by computing it again."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch

from ..errors import FitError
from .tensors import tensors_out

if TYPE_CHECKING:
    from .execute import Executor, _Saved


class _Rescue:
    def __init__(self, executor: "Executor", n_ops: int):
        self.e = executor
        self.program = executor.plan.program
        self.slot_of = executor.conversion.slot_of_tensor
        self.producer: dict[int, int] = {}
        self.current: dict[int, int] = {slot: first for _, slot, first, _ in executor._state}
        n_done = 0
        for op, step in enumerate(executor.conversion.steps):
            if n_done == n_ops:
                break
            n_done += step.call is not None
            for tensor in self.program.op(op).writes:
                self.producer[tensor] = op
                self.current[self.slot_of[tensor]] = tensor
        # Per slot: the tensor whose bytes its storage has by now, or has when it is read
        self.held: dict[int, int] = {slot: tensor for slot, tensor, _ in executor.conversion.frozen}

    def is_wanted(self, storage: torch.UntypedStorage) -> bool:
        """Does anybody beside the executor hold it?"""
        return torch._C._storage_Use_Count(storage._cdata) > 1

    def take(self, slot: int) -> bool:
        """From the arena or a tier, unless the storage has bytes of its own."""
        storage, tensor = self.e._storage[slot], self.current[slot]
        address = self.e._lib.tidemark_torch_address(storage._cdata)
        in_arena = self.e.is_in_arena(address)
        if address and not in_arena and slot not in self.e.conversion.stay:
            self.held[slot] = tensor
            return True
        home = self.e.adopt(storage)
        if address and not in_arena:  # a small one, where it was kept
            ctypes.memmove(home, address, storage.nbytes())
        elif not self.e.copy_value(self.e._run.rescue, slot, tensor, storage):
            return False
        if in_arena:
            self.e._run.discard(address - self.e._base, storage.nbytes())
        self.e.settle()
        self.held[slot] = tensor
        return True

    def can_compute(self, tensor: int) -> bool:
        """Is what made a value known, and all it needs? A value that the rest of the planned step does not need may not
        be."""
        if self.held.get(self.slot_of[tensor]) == tensor:
            return True
        op = self.producer.get(tensor)
        return op in self.e._saved and all(self.can_compute(read) for read in self.program.op(op).reads)

    def _run(self, saved: "_Saved") -> list[torch.Tensor]:
        """In ordinary memory if it does not fit, to be refused when everything is there."""
        try:
            return tensors_out(saved.run(self.e.call))
        except (FitError, torch.OutOfMemoryError) as error:
            overrun = str(error)
        self.e.leave_heap(overrun)  # only now: the error held what was allocated there
        return tensors_out(saved.run(self.e.call))

    def compute(self, tensor: int) -> None:
        """Runs again what made a value, and before it what that needs."""
        op = self.producer[tensor]
        saved = self.e._saved[op]
        for read in self.program.op(op).reads:
            if self.held.get(self.slot_of[read]) != read:
                self.compute(read)
        made = self.e.conversion.steps[op].new
        results = self._run(saved)
        self.e.settle(results)
        for result, slot in zip(results, self.e._outputs[self.e.conversion.steps[op].call]):
            storage = self.e._storage[slot] if slot in made else None
            if storage is not None:
                self.e.adopt(storage)
                source = self.e.fetch(result.untyped_storage())
                ctypes.memmove(self.e._lib.tidemark_torch_address(storage._cdata), source, storage.nbytes())
        del results
        self.e.settle()
        for write in self.program.op(op).writes:
            self.held[self.slot_of[write]] = write


def rescue_values(executor: "Executor", n_ops: int) -> None:
    """After the first n_ops ops: all storages that somebody holds get ordinary memory with their values. Those that the rest
    of the planned step did not need and that are gone are left without bytes: PyTorch refuses to use them."""
    rescue = _Rescue(executor, n_ops)
    wanted = [
        slot for slot, storage in enumerate(executor._storage)
        if storage is not None and slot in rescue.current and rescue.is_wanted(storage)
    ]  # fmt: skip
    missing = [slot for slot in wanted if not rescue.take(slot)]
    for storage, slot, *_ in executor._state:  # nobody's any more: a plan that knows it is outlived
        if not rescue.is_wanted(storage):
            executor.bind([(storage._cdata, 0)])
    for slot in missing:
        tensor = rescue.current[slot]
        if rescue.held.get(slot) == tensor:
            continue
        if rescue.can_compute(tensor):
            rescue.compute(tensor)
        else:
            executor.bind([(executor._cdata[slot], 0)])
