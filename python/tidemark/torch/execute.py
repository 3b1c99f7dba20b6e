"""Runs steps from a plan while Python drives: PyTorch calls op after op as ever, and each finds its operands where the
plan wants them, its results at the planned addresses, and what must run again runs just before.

Tensors stay ordinary tensors all the time; only the bytes under their storages come and go. A step that does something
else than the recorded one leaves the plan: every value comes back to ordinary memory and the step goes on without it.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import FitError, TideError, check, last_error
from ..plan import Plan
from ..run import PulledRun
from . import allocator
from .capture import HIDDEN_WRITES, Recording
from .convert import Conversion
from .frozen import Frozen, Reader
from .online import OnlineHeap
from .rescue import rescue_values
from .schedule import Turn, make_schedule
from .tape import Tape
from .tensors import alias, generator_of, tensors_in, tensors_out


PRESUMED_BYTES = 1 << 16  # gradients of modules that nobody has named: what outlives a step and is larger


class Deviation(Exception):
    """The step is not the one that was planned."""


def move_bytes(moves: list[tuple[int, int, int]]) -> None:
    """(from, to, bytes) each, all at once: one may lie where another goes."""
    crossed = any(a is not b and a[1] < b[0] + b[2] and b[0] < a[1] + a[2] for a in moves for b in moves)
    copies = [ctypes.string_at(source, size) if crossed else source for source, _, size in moves]
    for copy, (_, to, size) in zip(copies, moves):
        ctypes.memmove(to, copy, size)


class _Saved:
    """What running an op again takes. Its tensors share storages with the first run's and keep nothing else alive."""

    __slots__ = ("func", "args", "kwargs", "generator", "numbers", "grad")

    def __init__(self, func: Any, args: tuple, kwargs: dict):
        positions, applies = HIDDEN_WRITES.get(func, ((), None))
        hidden = positions if applies and applies(args) else ()
        self.func = func
        self.args = tuple(None if i in hidden else alias(a) for i, a in enumerate(args))
        self.kwargs = {name: alias(value) for name, value in kwargs.items()}
        self.generator = generator_of(func, kwargs)
        self.numbers = None if self.generator is None else self.generator.get_state()
        self.grad = torch.is_grad_enabled()

    def run(self, call: Callable[..., Any] = lambda func, args, kwargs: func(*args, **kwargs)) -> Any:
        """With the random numbers and in the grad mode of the first time."""
        if self.generator is not None:
            with allocator.paused():
                now = self.generator.get_state()
                self.generator.set_state(self.numbers)
        try:
            with torch._C._AutoDispatchBelowAutograd(), torch.set_grad_enabled(self.grad):
                return call(self.func, self.args, self.kwargs)
        finally:
            if self.generator is not None:
                with allocator.paused():
                    self.generator.set_state(now)


class Executor(TorchDispatchMode):
    """Follows one plan, step after step. Between steps the state lies where the plan ends, or at home.

    gradients: the storages that are somebody's gradients at the moment; open_heap: where a step goes on that leaves the
    plan, None: in ordinary memory.
    """

    def __init__(
        self, recording: Recording, conversion: Conversion, plan: Plan, frozen: Frozen, disk_path: str | None,
        gradients: Callable[[], set[int] | None], open_heap: Callable[[], OnlineHeap | None],
    ):  # fmt: skip
        super().__init__()
        self.conversion, self.plan = conversion, plan
        self._gradients, self._open_heap = gradients, open_heap
        self._heap: OnlineHeap | None = None  # of a step that left the plan
        self._began_with_gradients = recording.began_with_gradients
        self._number = frozen.number
        self._calls = recording.calls
        self._lib = allocator.load()
        self._frozen = [(frozen.storages[number], slot) for slot, _, number in conversion.frozen]
        self.reader = Reader(frozen)
        source = frozen.source((tensor, number) for _, tensor, number in conversion.frozen) if self._frozen else None
        self._run = PulledRun(plan, disk_path=disk_path, source=source)
        base = self._run.address
        self._lib.tidemark_torch_arena(base, max(plan.arena_bytes, 1))
        self._base = base
        self._schedule = make_schedule(plan, conversion, base)
        slots = conversion.slot_of
        self._stay_bytes = ctypes.create_string_buffer(max(sum(conversion.stay.values()), 1))
        self._stay: dict[int, int] = {}  # where the slots lie that PyTorch may read without an op, at any time
        for slot, size in conversion.stay.items():
            before = sum(conversion.stay[s] for s in self._stay)
            self._stay[slot] = ctypes.addressof(self._stay_bytes) + before
        self._follower = self._make_follower(len(slots))
        self._inputs = [[slots.get(k) for k in c.inputs] for c in self._calls]
        self._outputs = [[slots.get(k) for k in c.outputs] for c in self._calls]
        self._returned = {slots[k] for k in recording.returned if k in slots}
        keys = {slot: key for key, slot in slots.items()}
        self._state = [(recording.before[keys[slot]], slot, first, last) for slot, first, last in conversion.state]
        self._storage: list[torch.UntypedStorage | None] = [None] * len(slots)
        self._cdata: list[int] = [0] * len(slots)
        for storage, slot in self._frozen:
            self._put(slot, storage, 0)
        lasting = {slot for _, slot, *_ in (*self._state, *self._frozen)}
        self._passing = [slot for slot in range(len(slots)) if slot not in lasting]  # made by the step
        kept = {slot for slot, _ in conversion.kept}
        self._staying = [slot for slot in conversion.stay if slot not in kept]
        # Those that end with the step come first as they are, the others plus the number of slots.
        self._passing_slots = allocator.new_u64([s + len(slots) * (s in kept) for s in self._passing])
        self._saved: dict[int, _Saved] = {}
        self._leftover: list[torch.UntypedStorage] = []
        self._size = {slot: recording.sizes[key] for key, slot in slots.items()}
        self._next_call = self._next_turn = 0
        self._following = False
        self._handed = False  # the run waits for an op to be computed
        self._computing = False  # that of the call at hand
        self._stepped = False
        self.deviation: str | None = None
        self.is_outgrown = False  # it left its plan because something had another size
        self.tape: Tape | None = None  # notes the arguments of the step at hand
        self.is_home = True
        self.enter_plan()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch need not step around this class: nothing here is ever compiled, and each op would pay for it."""
        return False

    def _make_follower(self, n_slots: int) -> Any:
        """What the allocator does at each turn, told beforehand."""
        follower = self._lib.tidemark_torch_follower(
            *self._run.pull_call(allocator.cast_pointer), n_slots, self.conversion.annex_bytes
        )
        for turn in self._schedule.turns:
            places = [*((slot, 0) for slot in turn.gone), *turn.bind]
            flat = [number for pair in places for number in pair]
            answers = [number for pair in zip(turn.sizes, turn.addresses) for number in pair]
            made = [number for pair in turn.new for number in pair]
            self._lib.tidemark_torch_add_turn(
                follower, len(places), allocator.new_u64(flat), len(turn.sizes), allocator.new_u64(answers),
                len(turn.new), allocator.new_u64(made),
            )  # fmt: skip
        self._lib.tidemark_torch_let_stay(follower, len(self._stay), allocator.new_u64(list(self._stay)))
        return follower

    def _hold(self, slot: int, storage: torch.UntypedStorage, address: int) -> bool:
        """The storage of a slot, which is to have its bytes at this address. Has it?"""
        cdata = storage._cdata
        self._storage[slot], self._cdata[slot] = storage, cdata
        return bool(self._lib.tidemark_torch_set_slot(self._follower, slot, cdata, address))

    def _put(self, slot: int, storage: torch.UntypedStorage, address: int) -> None:
        """The storage of a slot gets its bytes at this address, 0: nowhere."""
        self._storage[slot], self._cdata[slot] = storage, storage._cdata
        self._lib.tidemark_torch_put(self._follower, slot, self._cdata[slot], address)

    @property
    def is_open(self) -> bool:
        return self._run is not None

    @property
    def figures(self) -> Any:
        """tide_step_report of the last step that came to its end."""
        return self._run.report

    @property
    def has_absent_state(self) -> bool:
        """Does some state lie in a tier alone?"""
        return not self.is_home and any(not self._lib.tidemark_torch_address(s._cdata) for s, _, _, _ in self._state)

    # ---- between steps ----

    def bind(self, pairs: list[tuple[int, int]]) -> None:
        """(cdata, address) each."""
        if pairs:
            cdatas, addresses = zip(*pairs)
            self._lib.tidemark_torch_bind(
                len(pairs), allocator.new_u64(list(cdatas)), allocator.new_u64(list(addresses))
            )

    def enter_plan(self) -> None:
        """Brings the state from ordinary memory to where the plan starts with it."""
        for storage, slot, first, last in self._state:
            tensor = last if self._stepped else first
            if not self._lib.tidemark_torch_fetch(storage._cdata):
                raise TideError("the state cannot be read from where it waited")
            self._run.write(tensor, self._lib.tidemark_torch_address(storage._cdata), storage.nbytes())
            address = (self._schedule.at_end if self._stepped else self._schedule.at_start).get(tensor, 0)
            self._put(slot, storage, address)
        self._lib.tidemark_torch_trim()
        self.is_home = False

    def go_home(self) -> None:
        """Brings the state back to ordinary memory; between steps."""
        if self.is_home:
            return
        for storage, _, first, last in self._state:
            tensor = last if self._stepped else first
            self._run.read(tensor, self._lib.tidemark_torch_adopt(storage._cdata), storage.nbytes())
        self._save_leftover()
        self.is_home = True

    def close(self) -> None:
        """Everything is back in ordinary memory and the arena is given back."""
        if self._run is None:
            return
        if self.deviation is None:
            self.go_home()
        self._give_back()

    def _give_back(self) -> None:
        self._run.close()
        self._lib.tidemark_torch_follower_end(self._follower)
        self._lib.tidemark_torch_arena(self._base, 0)
        self._run = None

    def _drop_leftover(self) -> None:
        """What the step before left beside its state ends here."""
        self.bind([(s._cdata, 0) for s in self._leftover])
        self._leftover = []

    def _save_leftover(self) -> None:
        """What the step before left beside its state, and somebody still holds, goes to ordinary memory."""
        for storage in self._leftover:
            if torch._C._storage_Use_Count(storage._cdata) > 1:
                self._copy_home(storage)
        self._leftover = []

    def _copy_home(self, storage: torch.UntypedStorage) -> None:
        """A storage that lies in the arena gets ordinary memory with its bytes."""
        address = self._lib.tidemark_torch_address(storage._cdata)
        if address:
            ctypes.memmove(self.adopt(storage), address, storage.nbytes())
            self.settle()

    # ---- a step ----

    def begin(self, replayed: bool = False) -> None:
        if self.is_home:
            self.enter_plan()
        if replayed:
            self._drop_leftover()
        self._run.begin()
        self._next_call = self._next_turn = 0
        self._following = True
        self._handed = self._computing = False
        self._lib.tidemark_torch_follow(self._follower)

    def __enter__(self) -> "Executor":
        self.begin()
        return super().__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        try:
            if self._following and (error is not None or self._next_call < len(self._calls)):
                self._leave("an exception" if error is not None else "the step ended early")
            elif self._following:
                self._reach(None)  # what the step leaves may have been dropped meanwhile
        except BaseException:
            if self._following:
                self._leave("an exception")
            raise
        finally:
            self._lib.tidemark_torch_mode(allocator.OFF)
        if self._following:
            self.end()
        self._saved.clear()

    def end(self, replayed: bool = False) -> None:
        """replayed: the storages are those of the next step as well."""
        for slot in () if replayed else self._staying:
            storage = self._storage[slot]
            if storage is not None and torch._C._storage_Use_Count(storage._cdata) > 1:
                self._copy_home(storage)
        self._run.pull()
        self._run.end()
        self._following = False
        self._stepped = True
        at_end = self._schedule.at_end
        for storage, slot, _, last in self._state:
            self._put(slot, storage, at_end.get(last, 0))
        gradients = self._gradients() if self.conversion.kept else set()
        for slot, tensor in self.conversion.kept:
            storage = self._storage[slot]
            passing = storage.nbytes() > PRESUMED_BYTES if gradients is None else storage._cdata in gradients
            if slot in self._returned or tensor not in at_end or not passing:
                self._lib.tidemark_torch_adopt(storage._cdata)
                self.copy_value(self._run.read, slot, tensor, storage)
                self._lib.tidemark_torch_set_slot(self._follower, slot, storage._cdata, 0)
            else:
                self.bind([(storage._cdata, at_end[tensor])])
                self._leftover.append(storage)
        self._release_frozen()
        if not replayed:
            self.forget()

    def forget(self) -> None:
        """What the step made has no storages until the next one makes it again."""
        self._lib.tidemark_torch_forget_slots(self._follower, len(self._passing), self._passing_slots)
        for slot in self._passing:
            self._storage[slot] = None

    def _release_frozen(self) -> None:
        """Weights in files have no bytes between steps."""
        for storage, slot in self._frozen:
            self._put(slot, storage, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if kwargs is None:
            kwargs = {}
        if not self._following:
            return self._go_on(func, args, kwargs)
        try:
            op = self._match(func, args, kwargs)
        except Deviation as deviation:
            self._leave(str(deviation), self._open_heap())
            return self._go_on(func, args, kwargs)
        if self.tape is not None:
            self.tape.note(self._next_call - 1, func, args, kwargs, self._inputs[self._next_call - 1])
        if op is None:
            return func._op(*args, **kwargs)  # what calling func comes to, a third of the time
        result = self._compute(op, func, args, kwargs)
        if self.tape is not None:
            self.tape.note_value(self._next_call - 1, result)
        return result

    def _match(self, func: Any, args: tuple, kwargs: dict) -> int | None:
        """The op that this call is; None: a view."""
        i = self._next_call
        if i == 0:
            self._end_leftover()
        if i == len(self._calls):
            raise Deviation(f"{func.name()} comes after the last op of the planned step")
        if self._calls[i].func is not func:
            raise Deviation(f"{func.name()} instead of {self._calls[i].func.name()}")
        cdata = self._cdata
        tensors, slots = tensors_in(args, kwargs), self._inputs[i]
        if len(tensors) != len(slots):
            raise Deviation(f"{func.name()} has other arguments")
        for tensor, slot in zip(tensors, slots):
            here = tensor.untyped_storage()._cdata
            if here != cdata[slot] if slot is not None else self.is_in_arena(self._lib.tidemark_torch_address(here)):
                raise Deviation(f"{func.name()} reads another tensor")
        self._next_call = i + 1
        return self.conversion.op_of_call[i]

    def _end_leftover(self) -> None:
        """The first op: gradients of the step before have ended by now, or will as in the recorded step."""
        held = any(torch._C._storage_Use_Count(s._cdata) > 1 for s in self._leftover)
        if held and not self._began_with_gradients:
            raise Deviation("gradients of the step before are still there")
        self._drop_leftover()

    def _compute(self, op: int, func: Any, args: tuple, kwargs: dict) -> Any:
        """Everything up to this op, and the op."""
        self._computing = True
        if op in self._schedule.reruns:
            self._save(op, func, args, kwargs)
        turn = self._reach(op)
        result = func._op(*args, **kwargs)
        self._lib.tidemark_torch_disarm()
        self._handed = self._computing = False
        self._next_turn += 1
        if turn.new:
            self._take_results(turn, result)
        return result

    def _reach(self, op: int | None) -> Turn | None:
        """Carries the plan out up to an op's first run, which is next then; None: to its end."""
        turns, at, begin_turn = self._schedule.turns, self._next_turn, self._lib.tidemark_torch_begin_turn
        while at < len(turns):
            turn = turns[at]
            status = begin_turn(self._follower, at)
            if status:
                check(status)
            self._handed = True
            if turn.op == op and not turn.rerun:
                self._next_turn = at
                return turn
            if turn.rerun:
                self._run_again(turn)
            self._handed = False
            at += 1
        return None

    def _save(self, op: int, func: Any, args: tuple, kwargs: dict) -> None:
        """Notes what running this op again will take."""
        with allocator.paused():
            self._saved[op] = _Saved(func, args, kwargs)

    def _run_again(self, turn: Turn) -> None:
        self.put_results(turn, self.conversion.steps[turn.op].call, self._saved[turn.op].run())
        self._lib.tidemark_torch_disarm()
        for slot, address in turn.new:
            if slot in self._stay:
                continue
            self._lib.tidemark_torch_put(self._follower, slot, self._cdata[slot], address)

    def put_results(self, turn: Turn, call: int, result: Any) -> None:
        """Brings the bytes of what an op made again to where the plan wants them, if they are not there."""
        moves = []
        for tensor, slot in zip(tensors_out(result), self._outputs[call]):
            for made, address in turn.new:
                storage = tensor.untyped_storage()
                if made != slot or storage.data_ptr() == address:
                    continue
                if not self.fits(slot, storage):
                    raise RuntimeError("an op that ran again made a tensor of another size")
                moves.append((storage.data_ptr(), address, storage.nbytes()))
        move_bytes(moves)

    def _take_results(self, turn: Turn, result: Any) -> None:
        """Notes the storages that the op made, and sees to it that they lie where the plan says; those that stay have a copy
        there."""
        misplaced, staying = {}, []
        for tensor, slot in zip(tensors_out(result), self._outputs[self._next_call - 1]):
            for made, address in turn.new:
                if made != slot:
                    continue
                storage = tensor.untyped_storage()
                if not self._hold(slot, storage, address) or not self.fits(slot, storage):
                    misplaced[slot] = storage, address
                if slot in self._stay and self.fits(slot, storage):
                    staying.append((slot, storage, address))
        if misplaced:
            self._move_results(misplaced)
        for slot, storage, address in staying if self._following else ():
            ctypes.memmove(self._stay[slot], address, storage.nbytes())
            self._put(slot, storage, self._stay[slot])

    def _move_results(self, misplaced: dict[int, tuple[torch.UntypedStorage, int]]) -> None:
        """The op did not allocate what it returned, or not in the order of the recording, or something else."""
        if self.tape is not None:
            self.tape.moved.add(self._next_call - 1)
        others, moves, places = [], [], []
        for slot, (storage, address) in misplaced.items():
            if not self.fits(slot, storage):
                others.append(storage)
                self._storage[slot] = None  # no value of the plan
            else:
                moves.append((self._lib.tidemark_torch_address(storage._cdata), address, storage.nbytes()))
                places.append((storage._cdata, address))
        for storage in others if moves else ():  # which may lie where the others go
            if self.is_in_arena(self._lib.tidemark_torch_address(storage._cdata)):
                self._copy_home(storage)
        move_bytes(moves)
        self.bind(places)
        if others:
            self.is_outgrown = True
            name = self._calls[self._next_call - 1].func.name()
            self._leave(f"{name} made a storage of another size", self._open_heap(), others)

    def fits(self, slot: int, storage: torch.UntypedStorage) -> bool:
        """Has a slot's storage the size that the plan has for it?"""
        size = self._size[slot]
        return storage.nbytes() == size or slot in self.conversion.roomy and storage.nbytes() < size

    def copy_value(self, read: Callable[[int, int, int], Any], slot: int, tensor: int, storage: torch.UntypedStorage) -> Any:
        """The bytes of a value go where its storage has memory; read: of the run. Returns what that returns."""
        home, size = self._lib.tidemark_torch_address(storage._cdata), self._size[slot]
        if storage.nbytes() == size:
            return read(tensor, home, size)
        whole = ctypes.create_string_buffer(size)
        found = read(tensor, ctypes.addressof(whole), size)
        ctypes.memmove(home, whole, storage.nbytes())
        return found

    # ---- leaving the plan in mid-step ----

    def stop_replay(self, call: int, reason: str) -> None:
        """A replay ends before the call with this index was computed."""
        self._next_call, self._computing, self._handed = call + 1, True, True
        self._leave(reason)

    def changes_state(self, call: int) -> bool:
        """Does the call with this index change what is carried from step to step?"""
        slots = {slot for _, slot, *_ in self._state}
        noted = self._calls[call]
        return any(self.conversion.slot_of.get(key) in slots for key in (*noted.mutated, *noted.hidden))

    def _leave(
        self, reason: str, heap: OnlineHeap | None = None, others: Iterable[torch.UntypedStorage] = ()
    ) -> None:  # fmt: skip
        """Every value comes to the heap, or to ordinary memory; the step goes on there, and this executor is done. others:
        what the op at hand made that the plan does not know."""
        self.deviation, self._following, self._heap = reason, False, heap
        self._lib.tidemark_torch_mode(allocator.OFF if heap is None else allocator.ONLINE)
        self._run.stop(not self._handed)
        n_ops = sum(op is not None for op in self.conversion.op_of_call[: self._next_call]) - self._computing
        self._release_frozen()
        for storage in others:
            self._take_in(storage)
        rescue_values(self, n_ops)
        self._save_leftover()
        self._saved.clear()
        self.is_home = True
        self._give_back()
        if heap is not None and self._heap is None:
            raise FitError(f"{reason}, and beside the plan the step does not fit the budget: {self._overrun}")

    def adopt(self, storage: torch.UntypedStorage) -> int:
        """Where the bytes of a storage go that leaves the plan. What the budget cannot hold goes to ordinary memory, to be
        refused when everything is there."""
        address = self._lib.tidemark_torch_adopt(storage._cdata)
        if not address and storage.nbytes():
            self.leave_heap(last_error())
            address = self._lib.tidemark_torch_adopt(storage._cdata)
        return address

    def fetch(self, storage: torch.UntypedStorage) -> int:
        """Where its bytes are, which stay there until the storage ends."""
        if self._heap is not None and not self._lib.tidemark_torch_fetch(storage._cdata):
            self.leave_heap(last_error())
        return self._lib.tidemark_torch_address(storage._cdata)

    def leave_heap(self, overrun: str) -> None:
        """All that is in the heap comes to ordinary memory, and so does what follows."""
        self._overrun = overrun
        self._heap.close()
        self._heap = None
        self._lib.tidemark_torch_mode(allocator.OFF)

    def _take_in(self, storage: torch.UntypedStorage) -> None:
        """What the plan has no place for, wherever the op at hand allocated it, goes where all the others go."""
        if self.is_in_arena(self._lib.tidemark_torch_address(storage._cdata)):
            self._copy_home(storage)
        elif self._heap is not None and not self._heap.take_in(storage):
            self.leave_heap(last_error())

    def is_in_arena(self, address: int) -> bool:
        return self._base <= address < self._base + max(self.plan.arena_bytes, 1)

    def settle(self, results: Iterable[torch.Tensor] = ()) -> None:
        """What was adopted has its bytes and may leave, and so may what an op returned."""
        if self._heap is not None:
            self._heap.end_op(list(results))

    def _go_on(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """An op of a step that has left the plan."""
        result = self.call(func, args, kwargs)
        self.settle(tensors_out(result))
        return result

    def call(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """An op outside the plan, with its operands in memory; settle() comes after it. FitError: the heap cannot hold it."""
        if self._heap is None:
            return self.reader.call(func, args, kwargs)
        storages = [t.untyped_storage() for t in tensors_in(args, kwargs)]
        operands = [(s, 2 + self._number[s._cdata] if s._cdata in self._number else 0) for s in storages]
        return self._heap.run_op(func, args, kwargs, operands)
