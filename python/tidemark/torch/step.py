"""Steps inside a byte budget: learn a step, plan it, follow the plan."""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, Iterator

import torch

from ..errors import FitError
from ..machine import Machine
from ..plan import Plan
from ..units import parse_bytes
from . import allocator
from .capture import Recorder, Recording
from .convert import Conversion, convert
from .execute import Executor
from .frozen import Frozen, bring_trained, reading
from .online import OnlineHeap
from .replay import CHANGED, Replay
from .reads import visible_reads
from .report import Report
from .tensors import tensors_within


def host_machine(*, files: bool = False) -> Machine:
    """The machine that steps are planned for: the host, whose only way to more bytes is its disk. files: weights in files are
    read on their way into the arena."""
    machine = Machine("cpu").without("ram")
    if not files:
        return machine.without("client")
    # Measured: from the page cache, widened; a core is busy with it.
    return machine.with_reading("client", bytes_per_s=3_500_000_000, latency_ns=20_000, drag_percent=50)


def _check_devices(modules: list[torch.nn.Module], tensors: list[torch.Tensor]) -> None:
    """Steps inside a budget run on the CPU."""
    for tensor in (*(p for m in modules for p in m.parameters()), *tensors):
        if tensor.device.type != "cpu":
            raise ValueError(
                f"steps inside a budget run on the CPU so far, this one has tensors on {tensor.device.type!r}; "
                "tidemark.torch.policy plans recomputation for any device, libtidemark-preload.so pools its memory"
            )


def _key_of(args: tuple, kwargs: dict) -> tuple:
    """Steps with the same key have the same plan, as far as their arguments say."""
    flags = (v for v in (*args, *kwargs.values()) if isinstance(v, bool))
    return *((tuple(t.shape), t.dtype) for t in tensors_within((args, kwargs))), *flags, *sorted(kwargs)


MAX_PLANS = 64  # the one that was used the longest ago makes way
MAX_WORDS = 8  # different strings among the arguments: with more, strings do not tell steps apart
MAX_DEVIATIONS = 6  # of steps of one key since one followed its plan to the end: then they are not planned any more


class BudgetedStep:
    """A training step whose bytes stay within a budget. Call it like the function it wraps.

    The first call runs as ever, which gives optimizers the chance to make their state; the second is recorded and
    planned; from then on steps follow the plan. Arguments of other shapes have a plan of their own. A step that does
    something else than the planned one leaves the plan and goes on in ordinary memory; after two in a row the next is
    recorded anew. The results are those of the function itself, bit for bit.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        budget: int | str,
        disk_budget: int | str | None = None,
        disk_path: str | None = None,
        effort: str = "low",
        modules: Iterable[torch.nn.Module] = (),
        optimizers: Iterable[torch.optim.Optimizer] = (),
        replay: Replay | None = None,
    ):
        functools.update_wrapper(self, function)
        parse_bytes(budget, 1)  # says so now if it makes no sense
        is_share = isinstance(budget, str) and budget.strip().endswith("%")
        self._budget_bytes = None if is_share else parse_bytes(budget)
        self._heap: OnlineHeap | None = None
        self._function, self._budget = function, budget
        self._disk_budget = None if disk_budget is None else parse_bytes(disk_budget)
        self._disk_path, self._effort = disk_path, effort
        self._executor: Executor | None = None
        self._key: tuple = ()  # what the executor's plan is for
        self._plans: dict[tuple, tuple[Recording, Conversion, Plan]] = {}
        self._words: set[tuple] = set()  # see MAX_WORDS
        self._left: tuple | None = None  # the key of the step before, if it left its plan
        self._warm = self._stepping = self._closed = False
        self._report = Report()
        self._replay = replay
        self._modules, self._optimizers = list(modules), list(optimizers)
        self._n_deviations: dict[tuple, int] = {}  # per key, see MAX_DEVIATIONS
        self._replaced: dict[tuple, tuple[set[tuple[int, int]], int]] = {}  # per key: where a step reads what it replaces, bytes
        self._outgrown: dict[tuple, Recording] = {}  # per key: one in which something may have another size than in the next
        self._sized: set[tuple] = set()  # keys of steps whose sizes may vary, recorded at least once
        self._frozen: Frozen | None = None  # from the first step on
        seen = [m for m in self._modules if not isinstance(m, torch.jit.RecursiveScriptModule)]
        self._has_unseen = len(seen) < len(self._modules)  # scripted: nothing tells that somebody is about to look at them
        self._hooks = [m.register_forward_pre_hook(self._before_forward) for m in seen]
        self._hooks += [m.register_state_dict_pre_hook(self._before_use) for m in seen]
        self._hooks += [o.register_state_dict_pre_hook(self._before_use) for o in self._optimizers]

    # ---- steps ----

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._closed:
            return self._function(*args, **kwargs)
        if self._stepping:
            raise RuntimeError("a budgeted step cannot run inside itself")
        self._stepping = True
        try:
            if self._replay is not None:
                self._replay.begin_step()
            if not self._warm:
                return self._warm_up(args, kwargs)
            key = _key_of(args, kwargs) + self._key_of_words(args, kwargs) + self._key_of_modules()
            self._choose(key)
            return self._learn(key, args, kwargs) if self._executor is None else self._follow(args, kwargs)
        except BaseException:
            if self._replay is not None:
                self._replay.turn_off("a step ended with an exception")
            raise
        finally:
            self._stepping = False
            if self._has_unseen:
                self._before_use()

    def _parameters(self) -> Iterator[torch.nn.Parameter]:
        for owner in self._modules:
            yield from owner.parameters()
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                yield from group["params"]

    def _key_of_words(self, args: tuple, kwargs: dict) -> tuple:
        """A few strings may say which of a few steps it is. Many are names and the like; a step that they do steer leaves its
        plan."""
        words = tuple(v for v in (*args, *kwargs.values()) if isinstance(v, str))
        if len(self._words) <= MAX_WORDS:
            self._words.add(words)
        return words if len(self._words) <= MAX_WORDS else ()

    def _key_of_modules(self) -> tuple:
        """What else says that a step is another one: modes, and which gradients there are."""
        marks = bytes(2 * p.requires_grad + (p.grad is None) for p in self._parameters())
        return *(m.training for m in self._modules), marks

    def _gradients(self) -> set[int] | None:
        """The storages of gradients at the moment; None: nobody has said whose."""
        if not (self._modules or self._optimizers):
            return None
        grads = (p.grad for p in self._parameters() if p.grad is not None)
        return {g.untyped_storage()._cdata for g in grads if g.layout is torch.strided}

    def _choose(self, key: tuple) -> None:
        """The executor for these arguments, if their step has a plan."""
        if key in self._plans:
            self._check_outlived(key)
        if self._executor is not None and (self._key != key or key not in self._plans):
            self._close_executor()
        if self._executor is None and key in self._plans:
            self._use(key)

    def _check_outlived(self, key: tuple) -> None:
        """State that the step has replaced (hidden states, averages) is no state: the step is recorded anew, with that as the
        caller's, but in the budget."""
        recording, conversion, _ = self._plans[key]
        gone = recording.outlived(conversion.state_keys())
        if not gone:
            return
        places, size = self._replaced.get(key, (set(), 0))
        self._replaced[key] = places | recording.places_of(gone), size + sum(recording.sizes[k] for k in gone)
        del self._plans[key]

    def _use(self, key: tuple) -> None:
        recording, conversion, plan = self._plans[key] = self._plans.pop(key)  # the last one now
        self._note_plan(conversion, plan)
        self._executor, self._key = Executor(
            recording, conversion, plan, self._frozen, self._disk_path, self._gradients, self._heap_beside_plan
        ), key  # fmt: skip

    def _open_heap(self) -> None:
        if self._heap is None and self._budget_bytes is not None:
            self._heap = OnlineHeap(self._left_bytes(), self._disk_budget, self._disk_path, self._frozen)

    def _left_bytes(self) -> int:
        """What the budget leaves beside what the step at hand replaces, and beside its plan."""
        annex = self._plans[self._key][1].annex_bytes if self._key in self._plans else 0
        return max(self._budget_bytes - self._replaced.get(self._key, (set(), 0))[1] - annex, 0)

    def _heap_beside_plan(self) -> OnlineHeap | None:
        """Where a step goes on that leaves its plan. Without a disk nothing can leave the heap: then it is ordinary memory."""
        if self._disk_budget != 0:
            self._open_heap()
        return self._heap

    def _record(self, args: tuple, kwargs: dict) -> tuple[Any, Recording]:
        """A step without a plan: in the budget by a heap, unless the budget is a share of what only the recording tells."""
        if self._frozen is None:
            _check_devices(self._modules, tensors_within((args, kwargs)))
            bring_trained(self._modules)
            self._frozen = Frozen()
        self._open_heap()
        replaced = self._replaced.get(self._key, (set(), 0))[0]
        recorder = Recorder(tensors_within((args, kwargs)), self._frozen, self._heap, self._gradients, replaced)
        try:
            with recorder, visible_reads():
                result = self._function(*args, **kwargs)
                recorder.note_result(tensors_within(result))
        except BaseException:
            self._leave_heap()
            raise
        self._report.steps += 1
        self._report.learning_steps += 1
        return result, recorder.recording

    def _warm_up(self, args: tuple, kwargs: dict) -> Any:
        result, _ = self._record(args, kwargs)
        self._leave_heap()
        self._warm = True
        return result

    def _learn(self, key: tuple, args: tuple, kwargs: dict) -> Any:
        self._key = key
        result, recording = self._record(args, kwargs)
        once = recording.sizes_vary and key not in self._sized  # a second recording shows what varies
        if once:
            self._sized.add(key)
            self._note_sizes(key, recording)
        if once or self._n_deviations.get(key, 0) >= MAX_DEVIATIONS:
            self._leave_heap()
            return result
        try:
            if self._heap is not None:
                self._heap.rest()
            if key in self._outgrown:
                recording.take_room(self._outgrown.pop(key))
            self._plans[key] = self._plan(recording)
            while len(self._plans) > MAX_PLANS:
                del self._plans[next(iter(self._plans))]
            self._use(key)
        except FitError:
            if not recording.room:
                raise
            self._n_deviations[key] = MAX_DEVIATIONS  # with all the sizes that it may have the step does not fit
        finally:
            self._leave_heap()
        return result

    def _note_sizes(self, key: tuple, recording: Recording) -> None:
        """For the next recording of this key. As many as there may be plans; state that the step replaces must not live on in them."""
        recording.before.clear()
        self._outgrown[key] = recording
        while len(self._outgrown) > MAX_PLANS:
            self._sized.discard(oldest := next(iter(self._outgrown)))
            del self._outgrown[oldest]

    def _leave_heap(self) -> None:
        """What is still in the heap of steps without a plan comes to ordinary memory."""
        if self._heap is not None:
            self._heap.close()
            self._report.online_peak_bytes = max(self._report.online_peak_bytes, self._heap.peak_bytes)
            self._heap = None

    def _plan(self, recording: Recording) -> tuple[Recording, Conversion, Plan]:
        conversion = convert(recording, getattr(self._function, "__name__", "step"))
        machine = host_machine(files=bool(conversion.frozen))
        annex = conversion.annex_bytes
        whole = Plan.create(conversion.program, machine, policy="liveness").arena_bytes + annex
        budget = parse_bytes(self._budget, whole) if self._budget_bytes is None else self._left_bytes()
        try:
            plan = Plan.create(
                conversion.program, machine, budget=max(budget - annex, 0), disk_bytes=self._disk_budget, effort=self._effort
            )
        except FitError as error:
            if recording.room:  # then such steps go on without a plan, within the budget all the same
                self._note_budget(budget, whole)
            raise self._with_bytes_beside(error, annex) from error
        self._note_budget(budget, whole)
        return recording, conversion, plan

    def _note_budget(self, budget: int, whole: int) -> None:
        """What a share comes to, as the first recording to be planned tells."""
        if self._budget_bytes is None or not self._report.unconstrained_bytes:
            self._budget_bytes = self._report.budget_bytes = budget
            self._report.unconstrained_bytes = whole
            allocator.outside(reset=True)

    def _with_bytes_beside(self, error: FitError, annex: int) -> FitError:
        """The same, of the whole budget rather than of a plan's part of it."""
        beside = annex + self._replaced.get(self._key, (set(), 0))[1]
        if not beside:
            return error
        whole = FitError(f"{error} ({beside} bytes of the budget are for what no plan can place)")
        whole.status, whole.needed_bytes = error.status, error.needed_bytes and error.needed_bytes + beside
        return whole

    def _note_plan(self, conversion: Conversion, plan: Plan) -> None:
        r, disk = self._report, plan.machine.find_tier("disk")
        r.plan, r.arena_bytes = plan, plan.arena_bytes + conversion.annex_bytes
        r.disk_bytes = 0 if disk is None else plan.tier_bytes(disk)
        r.predicted_ns, r.exposed_ns = plan.prediction.step_ns, plan.prediction.exposed_ns
        r.unplanned = dict(conversion.unplanned)
        actions, residencies, in_files = plan.actions(), plan.residencies(), {t for _, t, _ in conversion.frozen}
        r.reruns = sum(a.kind == "run" for a in actions) - conversion.program.n_ops
        loaded = [residencies[a.uses[0]] for a in actions if a.kind == "load"]
        r.read_bytes = sum(l.size_bytes for l in loaded if l.tensor in in_files)

    def _follow(self, args: tuple, kwargs: dict) -> Any:
        executor, replay = self._executor, self._replay
        try:
            if replay is not None and replay.can(executor, args):
                result = replay.run(executor, args)
                if result is not CHANGED:
                    return result
                with reading():
                    return self._function(*args, **kwargs)
            if replay is not None:
                replay.note(executor, args)
            with executor, visible_reads():
                result = self._function(*args, **kwargs)
            return result if replay is None else replay.noted(executor, args, result)
        finally:
            self._note_step(executor)

    def _note_step(self, executor: Executor) -> None:
        r = self._report
        r.outside_count, r.outside_peak_bytes = allocator.outside()
        r.steps += 1
        if self._replay is not None:
            r.replayed_steps, r.not_replayed = self._replay.n_replayed, self._replay.off
        if executor.deviation is None:
            r.planned_steps += 1
            r.saved_bytes, r.loaded_bytes = executor.figures.saved_bytes, executor.figures.loaded_bytes
            r.step_ns = executor.figures.step_ns
            self._left = None
            self._n_deviations.pop(self._key, None)
            return
        r.deviations.append(executor.deviation)
        self._close_executor()
        self._leave_heap()
        self._n_deviations[self._key] = self._n_deviations.get(self._key, 0) + 1
        if executor.is_outgrown:
            self._note_sizes(self._key, self._plans.pop(self._key)[0])
        elif self._left == self._key:
            del self._plans[self._key]
        self._left = self._key

    def _close_executor(self) -> None:
        if self._executor is not None:
            if self._replay is not None:
                self._replay.drop()
            self._executor.close()
            self._executor = None

    # ---- between steps ----

    def home(self) -> None:
        """Brings all state back to ordinary memory, outside the budget, until the next step."""
        if self._executor is not None and not self._executor.is_home:
            self._executor.go_home()
            self._report.homecomings += 1

    def _before_use(self, *_: Any) -> None:
        """Somebody is about to look at the state: it must be somewhere to be seen."""
        if not self._stepping and self._executor is not None and self._executor.has_absent_state:
            self.home()

    def _before_forward(self, module: torch.nn.Module, args: Any) -> None:
        self._before_use()

    @property
    def report(self) -> Report:
        """What became of the steps so far."""
        return self._report

    def close(self) -> None:
        """Everything is back in ordinary tensors and all memory is given back; calls run the plain function."""
        self._close_executor()
        if self._replay is not None:
            self._replay.close()
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self._closed = True

    def __enter__(self) -> "BudgetedStep":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def step(
    *,
    budget: int | str,
    disk_budget: int | str | None = None,
    disk_path: str | None = None,
    effort: str = "low",
    modules: Iterable[torch.nn.Module] = (),
    optimizers: Iterable[torch.optim.Optimizer] = (),
) -> Callable[[Callable[..., Any]], BudgetedStep]:
    """Decorates a function that does one whole training step. `budget`: bytes, "2GiB", or "40%" of what the step takes
    without. Modules and optimizers that are named can be used between steps, wherever their bytes are then."""
    return functools.partial(
        BudgetedStep, budget=budget, disk_budget=disk_budget, disk_path=disk_path, effort=effort, modules=modules,
        optimizers=optimizers,
    )  # fmt: skip


def fit(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[..., torch.Tensor],
    *,
    budget: int | str,
    disk_budget: int | str | None = None,
    disk_path: str | None = None,
    effort: str = "low",
    replay: bool = False,
) -> BudgetedStep:
    """The usual step: loss_fn(model, *batch), backward, optimizer.step(), zero_grad(); returns the detached loss.

    replay: steps that were seen to repeat run without the Python of loss_fn and the model, which must have no effects but
    the loss.
    """

    def training_step(*batch: Any) -> torch.Tensor:
        loss = loss_fn(model, *batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return BudgetedStep(
        training_step, budget=budget, disk_budget=disk_budget, disk_path=disk_path, effort=effort, modules=[model],
        optimizers=[optimizer], replay=Replay(model, optimizer) if replay else None,
    )  # fmt: skip
