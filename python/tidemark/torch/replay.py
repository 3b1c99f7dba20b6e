"""Replays: steps that were seen to repeat run as a flat list of ops, without the model's Python.

Two steps in a row are noted while Python drives. If they differ in nothing but the numbers of the optimizer, the third is
replayed: each op of the plan gets the arguments that were noted. Numbers of the optimizer (rates, bias corrections) come
from a shadow of it, the same class with one parameter of one element per group, which steps along; the noted steps must have
had exactly its numbers. Values that Python reads (`.item()`) before anything is changed must be what they were when the step was
noted; else the step begins anew, driven by Python. What is looked at before each replay: modes and hooks of modules, parameters, the batch. If
anything is different, Python drives, and so it does now and then to see that the step still is what it was.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from ..errors import check
from . import allocator
from .capture import HIDDEN_WRITES
from .shadow import Shadow
from .tape import Noted, Tape, with_numbers
from .tensors import generator_of, tensors_in

if TYPE_CHECKING:
    from .execute import Executor

aten = torch.ops.aten
CHECK_EVERY = 100  # replays between two steps that Python drives
CHANGED = object()  # instead of a result: the step has to be done by Python
MAX_DIFFERENCES = 8  # between steps in a row, until nobody hopes for replays any more


class _Changed(Exception):
    """Python would have read another value."""


class _Entry:
    """One turn of a replay."""

    __slots__ = ("func", "args", "kwargs", "grad", "call", "turn", "before", "after", "look", "next_call", "value")

    def __init__(self, turn: Any, call: int | None, next_call: int):
        self.func, self.args, self.kwargs, self.grad = None, (), {}, False
        self.turn, self.call, self.next_call = turn, call, next_call
        self.before = self.after = self.value = None
        self.look = False


class _Random:
    """The state of the generator before an op that will run again."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator
        self._state = self._now = None

    def save(self) -> None:
        with allocator.paused():
            self._state = self._generator.get_state()

    def enter(self) -> None:
        with allocator.paused():
            self._now = self._generator.get_state()
            self._generator.set_state(self._state)

    def leave(self) -> None:
        with allocator.paused():
            self._generator.set_state(self._now)


class Replay:
    """Decides for one `fit` which steps are replayed, and replays them."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer):
        self._model, self._optimizer = model, optimizer
        self.off: str | None = None  # why there are no replays any more
        self.n_replayed = 0
        self._shadow: Shadow | None = None
        self._numbers: list[list[tuple[Any, dict]]] = []  # of the step at hand
        self._executor: Executor | None = None  # whose plan the tapes are of
        self._last: Tape | None = None
        self._guard: tuple = ()
        self._entries: list[_Entry] | None = None
        self._updates: list[tuple[_Entry, Noted, int, int]] = []  # (entry, call, group, position in its list)
        self._result: torch.Tensor | None = None
        self._since_check = self._n_differences = 0
        self._used: list[list[tuple[Any, dict]]] = []  # those that the entries have
        self._noting: Tape | None = None
        self._n_stepped: list[int] = []  # parameters per group that had gradients
        self._hooks = [
            optimizer.register_step_pre_hook(self._before_update),
            optimizer.register_step_post_hook(self._after_update),
            optimizer.register_load_state_dict_post_hook(lambda *_: self.turn_off("the optimizer's state was loaded")),
        ]

    def close(self) -> None:
        self.drop()
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def turn_off(self, reason: str) -> None:
        self.off = self.off or reason
        self.drop()

    def drop(self) -> None:
        """Forgets what was noted."""
        if self._executor is not None and self._entries is not None and self._executor.is_open:
            self._executor.forget()
        self._last = self._entries = self._result = self._executor = None
        self._updates = []

    def _before_update(self, *_: Any) -> None:
        if self._noting is not None:
            self._n_stepped = [sum(p.grad is not None for p in g["params"]) for g in self._optimizer.param_groups]
            self._noting.begin_update()

    def _after_update(self, *_: Any) -> None:
        if self._noting is not None:
            self._noting.end_update()

    def begin_step(self) -> None:
        """Before every step, whoever drives it."""
        if self.off:
            return
        try:
            self._shadow = self._shadow or Shadow(self._optimizer)
            self._numbers = self._shadow.advance()
        except Exception as error:  # whatever an optimizer that is not made for it may raise
            self.turn_off(f"the optimizer has no shadow: {error}")

    # ---- steps that Python drives ----

    def note(self, executor: "Executor", batch: tuple) -> None:
        """Before such a step: its arguments are noted."""
        executor.tape = self._noting = None if self.off else Tape(tensors_in(batch, {}))
        self._entries = None  # the step's storages are others

    def noted(self, executor: "Executor", batch: tuple, result: Any) -> Any:
        """After it. Returns what the step returns: a copy, if the tape holds the original."""
        tape, executor.tape, self._noting = self._noting, None, None
        if tape is None or executor.deviation is not None:
            self.drop()
            return result
        if self._executor is not executor:
            self.drop()
            self._executor = executor
        reason = self._find_difference(executor, tape, result)
        if reason is not None:
            self.turn_off(reason)
            return result
        guard, last = self._look(batch), self._last
        difference = last.difference(tape) if last is not None else None
        if difference is not None:
            self._note_difference(difference, guard)
        if self.off:
            return result
        if last is not None and difference is None:
            self._prepare(executor, tape, result)
            result = result.clone()
        self._last, self._guard, self._since_check = tape, guard, 0
        return result

    def _note_difference(self, difference: str, guard: tuple) -> None:
        self._n_differences += 1
        if self._since_check and guard == self._guard:
            warnings.warn(
                f"tidemark: the last {self._since_check} steps were replayed, but the step has changed meanwhile without any sign "
                f"of it: {difference}. Train without replay=True.",
                RuntimeWarning,
                stacklevel=6,
            )
            self.turn_off(difference)
        elif self._n_differences == MAX_DIFFERENCES:
            self.turn_off(difference)

    def _find_difference(self, executor: "Executor", tape: Tape, result: Any) -> str | None:
        """What is wrong with one step by itself."""
        if not isinstance(result, torch.Tensor) or result.requires_grad:
            return "the step returns something else than a tensor"
        if len(executor._returned) != 1 or any(slot not in executor._returned for slot, _ in executor.conversion.kept):
            return "values of a step are held after it"
        if tape.refusal or tape.update is None or tape.update[1] < 0:
            return tape.refusal or "the optimizer did not step once"
        if tape.values and any(executor.changes_state(i) for i in range(max(tape.values))):
            return "Python reads a value after the state has changed"
        return self._match_update(tape)

    def _update_pairs(self, tape: Tape) -> list[tuple[int, int, int]] | None:
        """(call, group, position in its list) of the optimizer's calls; None: the shadow does something else."""
        index, end = tape.update
        pairs = []
        for group, calls in enumerate(self._numbers):
            for _ in range(self._n_stepped[group]):
                for position, (func, _) in enumerate(calls):
                    if index >= end or tape.calls[index].func is not func:
                        return None
                    pairs.append((index, group, position))
                    index += 1
        return pairs if index == end else None

    def _match_update(self, tape: Tape) -> str | None:
        pairs = self._update_pairs(tape)
        if pairs is None:
            return "the optimizer treats its parameters in different ways"
        for index, group, position in pairs:
            if tape.calls[index].numbers != self._numbers[group][position][1]:
                return f"{tape.calls[index].func.name()} of the optimizer has numbers of its own"
        return None

    # ---- making the list ----

    def _prepare(self, executor: "Executor", tape: Tape, result: torch.Tensor) -> None:
        storages = {}
        for index, noted in tape.calls.items():
            for tensor, slot in zip(tensors_in(noted.args, noted.kwargs), executor._inputs[index]):
                if slot is not None:
                    storages[slot] = tensor.untyped_storage()
        turns, steps = executor._schedule.turns, executor.conversion.steps
        self._result = result.detach()
        storages[next(iter(executor._returned))] = self._result.untyped_storage()
        for slot in executor._passing:  # results that nobody reads have storages, too
            storage = storages.get(slot)
            if storage is None:
                storage = torch.UntypedStorage(0)
                storages[slot] = storage
            executor._storage[slot], executor._cdata[slot] = storage, storage._cdata
            executor._lib.tidemark_torch_set_slot(executor._follower, slot, storage._cdata, 0)
        entries, next_call = [], len(executor._calls)
        for turn in reversed(turns):
            call = steps[turn.op].call
            if not turn.rerun and call is not None:
                next_call = call
            entries.append(self._entry(executor, tape, turn, call, next_call))
        entries.reverse()
        self._pair_random(executor, entries)
        self._entries, self._used = entries, self._numbers
        first = {e.call: e for e in entries if e.call is not None and not e.turn.rerun}
        self._updates = [
            (first[index], tape.calls[index], group, position)
            for index, group, position in self._update_pairs(tape)
            if index in first and tape.calls[index].numbers
        ]

    @staticmethod
    def _entry(executor: "Executor", tape: Tape, turn: Any, call: int | None, next_call: int) -> _Entry:
        entry = _Entry(turn, call, next_call)
        noted = None if call is None else tape.calls[call]
        entry.value = tape.values.get(call)
        if noted is None or noted.func is aten._local_scalar_dense.default and entry.value is None:
            return entry
        positions, applies = HIDDEN_WRITES.get(noted.func, ((), None))
        hidden = positions if turn.rerun and applies and applies(noted.args) else ()
        entry.func, entry.kwargs, entry.grad = noted.func._op, noted.kwargs, noted.grad
        entry.args = tuple(None if i in hidden else a for i, a in enumerate(noted.args))
        entry.look = call in tape.moved or min(turn.sizes, default=1 << 20) <= 16
        return entry

    @staticmethod
    def _pair_random(executor: "Executor", entries: list[_Entry]) -> None:
        states: dict[int, _Random] = {}
        for i, entry in enumerate(entries):
            op = entry.turn.op
            if entry.call is None or not executor._calls[entry.call].random or op not in executor._schedule.reruns:
                continue
            random = states.setdefault(op, _Random(generator_of(executor._calls[entry.call].func, entry.kwargs)))
            if entry.turn.rerun:
                entry.before, entry.after = random.enter, random.leave
            else:
                entry.before = random.save

    # ---- replays ----

    def _look(self, batch: tuple) -> tuple:
        """What must be as it was when the step was noted."""
        modules = tuple(
            (m.training, len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in self._model.modules()
        )
        parameters = tuple((p.requires_grad, p.grad is None, p.untyped_storage()._cdata) for p in self._model.parameters())
        groups = tuple(
            (len(g["params"]), *((k, v) for k, v in g.items() if isinstance(v, (bool, str, type(None)))))
            for g in self._optimizer.param_groups
        )
        others = tuple(b for b in batch if not isinstance(b, torch.Tensor))
        hooks = len(self._optimizer._optimizer_step_pre_hooks), len(self._optimizer._optimizer_step_post_hooks)
        settings = (
            torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled(),
            torch._C._len_torch_dispatch_stack(), torch.get_num_threads(), torch.get_default_dtype(),
        )  # fmt: skip
        return modules, parameters, groups, others, hooks, settings

    def can(self, executor: "Executor", batch: tuple) -> bool:
        """Is the next step to be replayed?"""
        if self.off or self._entries is None or executor is not self._executor:
            return False
        tensors = tensors_in(batch, {})
        if self._since_check >= CHECK_EVERY or any(t.requires_grad for t in tensors):
            return False
        if not self._last.takes(tensors) or torch.is_autocast_enabled("cpu") or self._look(batch) != self._guard:
            return False
        return self._update_pairs(self._last) is not None

    def run(self, executor: "Executor", batch: tuple) -> torch.Tensor:
        """The step, or CHANGED: then the executor has left its plan, and nothing has happened yet."""
        changed = [[mine[1] != theirs[1] for mine, theirs in zip(a, b)] for a, b in zip(self._numbers, self._used)]
        for entry, noted, group, position in self._updates:
            if changed[group][position]:
                entry.args, entry.kwargs = with_numbers(noted, self._numbers[group][position][1])
        self._used = self._numbers
        given = [t.untyped_storage() for t in tensors_in(batch, {})]
        executor.bind([(mine._cdata, s.data_ptr()) for mine, s in zip(self._last.storages, given)])
        grad, rng = torch.is_grad_enabled(), torch.get_rng_state() if self._last.values else None
        executor.begin(replayed=True)
        at = [0]
        try:
            with torch._C._AutoDispatchBelowAutograd():
                self._run_entries(executor, at)
            allocator.load().tidemark_torch_mode(allocator.OFF)
            executor.end(replayed=True)
        except _Changed:
            call = self._entries[at[0]].next_call
            self.drop()
            executor.stop_replay(call, "a value that Python reads is another")
            torch.set_rng_state(rng)
            return CHANGED
        except BaseException:
            call = self._entries[at[0]].next_call
            self.turn_off("a step ended with an exception")
            executor.stop_replay(call, "an exception in a replay")
            raise
        finally:
            torch._C._set_grad_enabled(grad)
        executor.bind([(mine._cdata, 0) for mine in self._last.storages])
        self.n_replayed += 1
        self._since_check += 1
        return self._result.clone()

    def _run_entries(self, executor: "Executor", at: list[int]) -> None:
        next_turn, follower = executor._lib.tidemark_torch_next_turn, executor._follower
        set_grad, grad, i = torch._C._set_grad_enabled, None, 0
        result = entry = None
        for i, entry in enumerate(self._entries):
            at[0] = i
            if entry.before is not None:
                entry.before()
            status = next_turn(follower, i)
            if status:
                self._put_results(executor, self._entries[i - 1], result, status)
                check(next_turn(follower, i))
            if entry.func is None:
                continue
            if entry.grad is not grad:
                grad = entry.grad
                set_grad(grad)
            result = entry.func(*entry.args, **entry.kwargs)
            if entry.value is not None and result != entry.value:
                raise _Changed
            if entry.look:
                self._put_results(executor, entry, result, -1)
            if entry.after is not None:
                entry.after()
        if next_turn(follower, i + 1):
            self._put_results(executor, entry, result, -1)
            check(next_turn(follower, i + 1))

    @staticmethod
    def _put_results(executor: "Executor", entry: _Entry, result: Any, status: int) -> None:
        """The op did not allocate as it was planned: what it made is brought to where the plan wants it."""
        if status > 0:
            check(status)
        executor.put_results(entry.turn, entry.call, result)
        executor._lib.tidemark_torch_disarm()
