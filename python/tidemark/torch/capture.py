"""Records one step of a PyTorch program: every aten call, the storages it reads and writes, and what it allocates.

Values are storages: views vanish, because they have no bytes of their own. A storage is known by the block that the
recording allocator gave it, or, if it was there before, by its address, which holds as long as the recording keeps the
storage alive.
"""

from __future__ import annotations

import bisect
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import allocator
from .frozen import Reader
from .tensors import generator_of, mutated_by, stays, tensors_in, tensors_out

if TYPE_CHECKING:
    from .frozen import Frozen
    from .online import OnlineHeap

aten = torch.ops.aten

# Arguments that an op changes without saying so in its schema, and whether it does so for these arguments.
HIDDEN_WRITES: dict[Any, tuple[tuple[int, ...], Callable[[tuple], bool]]] = {
    aten.native_batch_norm.default: ((3, 4), lambda args: bool(args[5])),
    aten.cudnn_batch_norm.default: ((3, 4), lambda args: bool(args[5])),
}


def _sizes_vary(func: Any, args: tuple) -> bool:
    """Do the sizes of what this call returns depend on values?"""
    if func is aten.index.Tensor:  # of which masks choose rows
        return any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])
    return torch.Tag.dynamic_output_shape in func.tags


VALUE_TAGS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}  # of ops that tell Python something


@dataclass
class Call:
    """One aten call of the step. Storages are keys of Recording.storages."""

    func: Any
    inputs: list[int]  # per tensor argument
    outputs: list[int]  # per tensor returned
    mutated: list[int] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)  # written though the schema does not say so
    allocations: list[tuple[int, int]] = field(default_factory=list)  # (key, bytes), in order
    releases: list[tuple[int, int]] = field(default_factory=list)  # (after so many allocations, key): within the call
    cost_ns: int = 0
    phase: str = "forward"
    random: bool = False

    def placed(self) -> set[int]:
        """What a plan has addresses for: what the call returns, and what ends within it."""
        return {key for key, _ in self.allocations} & {*self.outputs, *self.mutated, *(key for _, key in self.releases)}

    @property
    def is_view(self) -> bool:
        """Nothing was computed: what comes out are bytes that went in."""
        if self.mutated or self.hidden or self.allocations or not self.outputs:
            return not self.inputs and not self.allocations and not self.outputs
        return all(key in self.inputs for key in self.outputs)


@dataclass
class Recording:
    """A step, call by call."""

    calls: list[Call] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)  # bytes per storage
    given: set[int] = field(default_factory=set)  # arguments of the step: the caller's
    before: dict[int, torch.UntypedStorage] = field(default_factory=dict)  # was there before the step: its state
    frozen: dict[int, int] = field(default_factory=dict)  # of those before: their numbers among the weights in files
    made: set[int] = field(default_factory=set)  # by ops of the step
    released: set[int] = field(default_factory=set)  # of those: gone before the step ended
    returned: set[int] = field(default_factory=set)  # of those: the caller has them now
    stay: set[int] = field(default_factory=set)  # of those: may be read where no op shows it
    held: list[int] = field(default_factory=list)  # of those, see Recorder._find_held
    loose: list[tuple[int, int]] = field(default_factory=list)  # (key, bytes or RELEASED), in order, of what no plan can place
    sizes_vary: bool = False  # some op's results may have other sizes in the next step
    room: dict[int, int] = field(default_factory=dict)  # of those made whose sizes depend on values: the bytes they may have
    began_with_gradients: bool = False  # those of the step before were there when the first op ran

    def outlived(self, keys: Iterable[int]) -> set[int]:
        """Those of this state that have ended since, so that nobody but the recording holds them."""
        return {key for key in keys if torch._C._storage_Use_Count(self.before[key]._cdata) <= 1}

    def take_room(self, before: "Recording") -> None:
        """What had another size in an earlier recording of the same calls gets room for both and a quarter more."""
        if [call.func for call in self.calls] != [call.func for call in before.calls]:
            return
        for mine, theirs in zip(self.calls, before.calls):
            for i, ((key, size), (other, other_size)) in enumerate(zip(mine.allocations, theirs.allocations)):
                had = before.room.get(other)
                if had is None and size == other_size:
                    continue
                enough = had is not None and size <= had
                self.room[key] = had if enough else -(-max(size, other_size) * 5 // 256) * 64
                mine.allocations[i] = key, self.room[key]
        self.sizes.update((key, size) for key, size in self.room.items() if key in self.sizes)
        self.loose = [(key, size if size == allocator.RELEASED else self.room.get(key, size)) for key, size in self.loose]

    def places_of(self, keys: set[int]) -> set[tuple[int, int]]:
        """Where these are read: calls, and positions among their tensors."""
        return {(i, j) for i, call in enumerate(self.calls) for j, key in enumerate(call.inputs) if key in keys}


class Recorder(TorchDispatchMode):
    """The mode under which a step is recorded. The step itself runs as it would without. replaced: where it reads what it made
    anew the step before, so that it is the caller's rather than state."""

    def __init__(
        self, arguments: list[torch.Tensor], frozen: "Frozen", heap: "OnlineHeap | None", gradients: Callable[[], set[int] | None],
        replaced: set[tuple[int, int]],
    ):  # fmt: skip
        super().__init__()
        self.recording = Recording()
        self._frozen, self._heap, self._gradients = frozen, heap, gradients
        self._reader = None if heap else Reader(frozen)
        self._lib = allocator.load()
        self._held: list[torch.UntypedStorage] = []  # so that no address comes up twice
        self._replaced = replaced
        self._first_id = 0
        self._first_event = 0  # of the call at hand
        self._ends: list[int] = []  # per call: events up to its end
        self._failed: list[tuple[int, int]] = []  # events of attempts that began again
        self._backward_began = False
        for tensor in arguments:
            self.recording.given.add(-tensor.untyped_storage()._cdata)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # see Executor

    def __enter__(self) -> "Recorder":
        self._lib.tidemark_torch_mode(allocator.ONLINE if self._heap else allocator.RECORD)
        self._first_id = self._lib.tidemark_torch_next_id()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._finish()
        self._lib.tidemark_torch_mode(allocator.OFF)

    def note_result(self, tensors: list[torch.Tensor]) -> None:
        """What the step hands to its caller."""
        self.recording.returned.update(self._key(t) for t in tensors)

    def _key(self, tensor: torch.Tensor, replaced: bool = False) -> int:
        storage = tensor.untyped_storage()
        block = self._lib.tidemark_torch_block(storage._cdata)
        key = block if block >= self._first_id and block else -storage._cdata
        if key not in self.recording.sizes:
            if replaced and key < 0:
                self.recording.given.add(key)
            number = self._frozen.number.get(-key)
            has_bytes = key > 0 or number is not None or self._lib.tidemark_torch_address(storage._cdata)
            self.recording.sizes[key] = storage.nbytes() if has_bytes else 0  # autograd has zeros without bytes
            if key < 0:
                self._held.append(storage)
                if key not in self.recording.given:
                    self.recording.before[key] = storage
                if number is not None:
                    self.recording.frozen[key] = number
        return key

    def _import(self, key: int) -> int:
        """What the heap does with a storage first: nothing, take it in, or borrow it from its file."""
        if key in self.recording.frozen:
            return 2 + self.recording.frozen[key]
        return int(key in self.recording.before)

    def _check_writes(self, func: Any, keys: list[int]) -> None:
        if any(key in self.recording.frozen for key in keys):
            raise RuntimeError(
                f"{func.name()} changes a weight that lies in a file: name its module (`modules=`) before the first step"
            )

    def _phase(self) -> str:
        if torch._C._current_graph_task_id() != -1:
            self._backward_began = True
            return "backward"
        return "update" if self._backward_began and not torch.is_grad_enabled() else "forward"

    def _compute(self, func: Any, args: tuple, kwargs: dict, tensors: list[torch.Tensor], inputs: list[int]) -> Any:
        if self._heap is None:
            return self._reader.call(func, args, kwargs)
        operands = [(t.untyped_storage(), self._import(key)) for t, key in zip(tensors, inputs)]
        return self._heap.run_op(func, args, kwargs, operands, self._begin_again)

    def _begin_events(self) -> None:
        """What is allocated and released from now on is that of the call at hand."""
        self._first_event = self._lib.tidemark_torch_event_count()

    def _begin_again(self) -> None:
        """And not of an attempt before."""
        first = self._first_event
        self._begin_events()
        self._failed.append((first, self._first_event))

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if not self.recording.calls:
            gradients = self._gradients()
            self.recording.began_with_gradients = gradients is None or bool(gradients)
        tensors = tensors_in(args, kwargs)
        at = len(self.recording.calls)
        inputs = [self._key(t, (at, i) in self._replaced) for i, t in enumerate(tensors)]
        self._begin_events()
        begin = time.perf_counter_ns()
        result = self._compute(func, args, kwargs, tensors, inputs)
        cost = time.perf_counter_ns() - begin
        first, end = self._first_event, self._lib.tidemark_torch_event_count()
        results = tensors_out(result)
        call = Call(func, inputs, [self._key(t) for t in results], cost_ns=cost, phase=self._phase())
        self.recording.stay.update(key for t, key in zip(results, call.outputs) if stays(t))
        call.mutated = [self._key(t) for t in mutated_by(func, args, kwargs)]
        self._check_writes(func, call.mutated)
        call.random = generator_of(func, kwargs) is not None
        self.recording.sizes_vary |= _sizes_vary(func, args)
        positions, applies = HIDDEN_WRITES.get(func, ((), None))
        if applies and applies(args):
            call.hidden = [self._key(args[i]) for i in positions if args[i] is not None]
        for key, size in allocator.read_events(first, end - first):
            if size == allocator.RELEASED:
                call.releases.append((len(call.allocations), key))
            else:
                call.allocations.append((key, size))
        self._ends.append(end)
        self.recording.calls.append(call)
        if self._heap:
            self._heap.end_op(results)
        return result

    def _finish(self) -> None:
        """Which of the step's storages outlive it, and what no plan can place."""
        recording = self.recording
        placed: set[int] = set()
        for call in recording.calls:
            recording.made.update(key for key, _ in call.allocations)
            placed |= call.placed()
        events = allocator.read_events(0, self._lib.tidemark_torch_event_count())
        for first, end in self._failed:
            placed.update(key for key, size in events[first:end] if size != allocator.RELEASED)
        for key, size in events:
            if size == allocator.RELEASED:
                recording.released.add(key)
            if key not in placed:
                recording.loose.append((key, size))
        self._find_held({key: i for i, (key, size) in enumerate(events) if size == allocator.RELEASED})

    def _find_held(self, released_at: dict[int, int]) -> None:
        """What Python holds though no op needs it any more: up to the end of the step, or, of what optimizers make, while they read
        a value, by which the next step may take another way. Gradients wait for the next step without being used."""
        calls = self.recording.calls
        last_use: dict[int, int] = {}
        phase: dict[int, str] = {}
        for i, call in enumerate(calls):
            last_use.update(dict.fromkeys((*call.inputs, *call.outputs), i))
            phase.update((key, call.phase) for key, _ in call.allocations)
        reads = [i for i, call in enumerate(calls) if VALUE_TAGS & set(call.func.tags)]
        n_computed = max((i + 1 for i, call in enumerate(calls) if not call.is_view), default=0)
        for key, used in last_use.items():
            if key not in released_at or phase.get(key, "backward") == "backward":
                continue
            n_calls = bisect.bisect_right(self._ends, released_at[key])  # that came before its release
            over_read = phase[key] == "update" and any(used < i < n_calls for i in reads)
            if n_calls >= n_computed or over_read:
                self.recording.held.append(key)
