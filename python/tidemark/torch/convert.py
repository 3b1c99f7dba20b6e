"""A recorded step as a Tidemark program, and how the two map to each other.

A storage is a chain of values: what it holds when the step starts or when an op made it, and a new value each time an op
writes to it in place. Allocations of a call that nothing sees afterwards are its workspace.

Batch norm in training updates its running statistics without being asked; a re-run must not. So it becomes two ops: the
first says that the statistics change (and computes nothing), the second is batch norm itself, which reads the new ones
and may run again, then without statistics.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..program import Program, ProgramBuilder
from .allocator import RELEASED, ROOM
from .capture import Call, Recording

ALIGN_BYTES = 64
SPARE_BYTES = 1024
HELD_PART = 1 / 8  # of all bytes that a step makes, see Converter._held


@dataclass
class Step:
    """One op of the program, as the executor wants it."""

    call: int | None  # index of the aten call; None: nothing is computed
    reads: list[int]  # slots, in the order of the op's reads
    new: list[int]  # slots of the first writes: storages that the call allocates
    # The call's allocations in order: (bytes, with ROOM where there may be fewer, index into `new`, or None for workspace, offset in the workspace, or None for the
    # annex)
    allocations: list[tuple[int, int | None, int | None]] = field(default_factory=list)


@dataclass
class Conversion:
    """A program and its ties to the recording. A slot is a storage of the program."""

    program: Program
    steps: list[Step]
    slot_of: dict[int, int]  # key of the recording -> slot
    slot_of_tensor: list[int]  # per tensor of the program
    state: list[tuple[int, int, int]]  # (slot, tensor at the start, tensor at the end)
    frozen: list[tuple[int, int, int]]  # (slot, tensor, number among the weights in files)
    kept: list[tuple[int, int]]  # (slot, tensor) of what the step leaves beside its state
    op_of_call: list[int | None]  # per aten call: the op that computes it
    pairs: list[tuple[int, int]]  # (op that announces hidden writes, op that does them)
    stay: dict[int, int]  # per slot that may be read where no op shows it: bytes, in whole words
    unplanned: dict[str, int]  # bytes, per op, that survive it unseen: they are in the annex
    annex_bytes: int  # for what no plan can place
    roomy: set[int]  # slots whose storages may be smaller, as their sizes depend on values

    def state_keys(self) -> list[int]:
        """The state, as the recording knows it."""
        slots = {slot for slot, _, _ in self.state}
        return [key for key, slot in self.slot_of.items() if slot in slots]


class _Values:
    """The values of storages, and what each storage holds at the moment."""

    def __init__(self, builder: ProgramBuilder, recording: Recording):
        self.builder, self.recording = builder, recording
        self.slot_of: dict[int, int] = {}
        self.slot_of_tensor: list[int] = []
        self.current: dict[int, int] = {}  # per key: tensor id
        self.start: dict[int, int] = {}  # per key of the state: tensor id
        self.frozen: dict[int, int] = {}  # per key of a weight in a file: tensor id

    def add(self, key: int, cls: str, start: str = "absent") -> int:
        slot = self.slot_of.setdefault(key, len(self.slot_of))
        name = f"s{slot}.{len(self.slot_of_tensor)}"
        tensor = self.builder.tensor(name, self.recording.sizes[key], cls=cls, start=start)
        self.slot_of_tensor.append(slot)
        self.current[key] = tensor
        return tensor

    def read(self, key: int) -> int | None:
        """The value that a call reads; None: bytes of the caller, which the program does not know."""
        if key in self.current:
            return self.current[key]
        if key in self.recording.frozen and self.recording.sizes[key]:
            self.frozen[key] = self.add(key, "weight", "client")
            return self.frozen[key]
        if key in self.recording.before and self.recording.sizes[key]:
            self.start[key] = self.add(key, "weight", "present")
            return self.start[key]
        return None


def _pack(events: list[tuple[int, int]]) -> tuple[dict[int, int], int]:
    """First-fit offsets of these allocations, (key, bytes) or (key, RELEASED), and the bytes they take."""
    offsets: dict[int, int] = {}
    live: list[tuple[int, int, int]] = []  # (offset, end, key), sorted
    peak = 0
    for key, size in events:
        if size == RELEASED:
            live = [b for b in live if b[2] != key]
            continue
        at = 0
        for offset, end, _ in live:
            if offset - at >= size:
                break
            at = max(at, -(-end // ALIGN_BYTES) * ALIGN_BYTES)
        offsets[key] = at
        live = sorted(live + [(at, at + size, key)])
        peak = max(peak, at + size)
    return offsets, peak


def _workspace(call: Call, others: set[int]) -> tuple[dict[int, int], int]:
    """Offsets of the allocations that end within the call, and the bytes they take."""
    events, released = [], sorted(call.releases)
    for n, allocation in enumerate(call.allocations):
        while released and released[0][0] <= n:
            events.append((released.pop(0)[1], RELEASED))
        if allocation[0] not in others:
            events.append(allocation)
    return _pack(events)


def _annex_bytes(recording: Recording) -> int:
    """Two steps in a row, as what one leaves may be there during the next, and a few numbers that come or do not."""
    again = [(~key, size) for key, size in recording.loose]
    return SPARE_BYTES + -(-_pack(recording.loose + again)[1] // ALIGN_BYTES) * ALIGN_BYTES


def _class_of(call: Call) -> str:
    return {"forward": "activation", "backward": "activation-gradient", "update": "optimizer"}[call.phase]


class Converter:
    """Turns a recording into a program, call by call."""

    def __init__(self, recording: Recording, name: str):
        self.recording = recording
        self.builder = ProgramBuilder(name, repeating=True)
        self.values = _Values(self.builder, recording)
        self.steps: list[Step] = []
        self.op_of_call: list[int | None] = []
        self.pairs: list[tuple[int, int]] = []
        self.unplanned: dict[str, int] = {}

    def convert(self) -> Conversion:
        for index, call in enumerate(self.recording.calls):
            self.op_of_call.append(None if call.is_view else self._add_call(index, call))
        state = self._carry_state()
        kept = self._keep_rest()
        return Conversion(
            self.builder.finish(), self.steps, self.values.slot_of, self.values.slot_of_tensor, state,
            self._frozen(), kept, self.op_of_call, self.pairs, self._stay(), self.unplanned, _annex_bytes(self.recording),
            {slot for key, slot in self.values.slot_of.items() if key in self.recording.room},
        )  # fmt: skip

    def _reads(self, call: Call, keys: list[int]) -> tuple[list[int], list[int]]:
        """Ids and slots of what a call reads, each once."""
        tensors: dict[int, int] = {}
        for key in keys:
            tensor = self.values.read(key)
            if tensor is not None:
                tensors[tensor] = self.values.slot_of[key]
        return list(tensors), list(tensors.values())

    def _announce(self, call: Call) -> int | None:
        """The op that stands for a call's hidden writes."""
        keys = [k for k in dict.fromkeys(call.hidden) if self.values.read(k) is not None]
        if not keys:
            return None
        reads, slots = self._reads(call, keys)
        writes = [self.values.add(key, "weight") for key in keys]
        self.steps.append(Step(None, slots, []))
        pairs = [(i, i, True) for i in range(len(keys))]
        return self.builder.op(
            f"{call.func.name()} statistics", reads, writes, inplace=pairs, phase=call.phase, rerunnable=False
        )

    def _add_call(self, index: int, call: Call) -> int:
        announced = self._announce(call)
        reads, slots = self._reads(call, call.inputs)
        mutated = [k for k in dict.fromkeys(call.mutated) if self.values.read(k) is not None and k not in call.hidden]
        foreign = any(self.values.read(k) is None and self.recording.sizes[k] for k in call.mutated)
        old = [self.values.current[k] for k in mutated]
        returned = dict.fromkeys(k for k in (*call.outputs, *call.mutated) if k in dict(call.allocations))
        new = list(returned)
        writes = [self.values.add(k, _class_of(call)) for k in new]
        pairs = [(reads.index(tensor), len(new) + i, True) for i, tensor in enumerate(old)]
        writes += [self.values.add(k, "weight" if k in self.values.start else _class_of(call)) for k in mutated]
        gone = {k for _, k in call.releases}
        for key, size in call.allocations:
            if key not in gone and key not in returned:
                self.unplanned[call.func.name()] = self.unplanned.get(call.func.name(), 0) + size
        unseen = {k for k, _ in call.allocations if k not in gone and k not in returned}
        offsets, workspace = _workspace(call, set(new) | unseen)
        step = Step(index, slots, [self.values.slot_of[k] for k in new])
        for key, size in call.allocations:
            room = ROOM if key in self.recording.room else 0
            step.allocations.append((size | room, new.index(key) if key in returned else None, offsets.get(key)))
        self.steps.append(step)
        op = self.builder.op(
            call.func.name(), reads, writes, inplace=pairs, phase=call.phase, workspace_bytes=workspace,
            cost_ns=call.cost_ns, random=call.random, counter=index if call.random else 0,
            rerunnable=self._may_rerun(call, mutated, foreign, unseen),
        )  # fmt: skip
        if announced is not None:
            self.pairs.append((announced, op))
        return op

    def _may_rerun(self, call: Call, mutated: list[int], foreign: bool, unseen: set[int]) -> bool:
        """Only ops whose whole effect are values of this step."""
        if foreign or unseen or not (call.outputs or mutated):
            return False
        return not any(k in self.values.start for k in mutated)

    def _carry_state(self) -> list[tuple[int, int, int]]:
        state = []
        for key, first in self.values.start.items():
            last = self.values.current[key]
            self.builder.keep(last)
            self.builder.carry(last, first)
            state.append((self.values.slot_of[key], first, last))
        return state

    def _frozen(self) -> list[tuple[int, int, int]]:
        return [(self.values.slot_of[k], t, self.recording.frozen[k]) for k, t in self.values.frozen.items()]

    def _stay(self) -> dict[int, int]:
        """Of those, what no op changes later: running an op again may need the value before."""
        slots, calls = self.values.slot_of, self.recording.calls
        changed = {key for call in calls for key in (*call.mutated, *call.hidden)}
        made = (self.recording.stay & self.recording.made) - changed
        return {slots[key]: -(-self.recording.sizes[key] // 8) * 8 for key in sorted(made) if key in slots}

    def _keep_rest(self) -> list[tuple[int, int]]:
        kept, held = [], self._held()
        for key, tensor in self.values.current.items():
            if key in self.values.start or key in self.values.frozen or key in self.recording.released - held:
                continue
            self.builder.keep(tensor)
            if key not in held:
                kept.append((self.values.slot_of[key], tensor))
        return kept

    def _held(self) -> set[int]:
        """What Python holds and a step that leaves its plan may use, though no op of the recorded one does. The small ones: others
        are not worth the bytes."""
        size_of = {key: self.recording.sizes.get(key, 0) for key in self.recording.made}
        held, left = set(), int(sum(size_of.values()) * HELD_PART)
        for key in sorted(self.recording.held, key=size_of.__getitem__):
            left -= size_of[key]
            if left < 0:
                break
            held.add(key)
        return held


def convert(recording: Recording, name: str) -> Conversion:
    """The program of a recorded step."""
    return Converter(recording, name).convert()
