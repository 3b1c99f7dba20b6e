"""Steps inside a byte budget: learn a step, plan it, follow the plan."""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable

import torch

from ..machine import Machine
from ..plan import Plan
from ..units import parse_bytes
from . import allocator
from .capture import Recorder, Recording, tensors_in, tensors_out
from .convert import Conversion, convert
from .execute import Executor
from .report import Report


def host_machine() -> Machine:
    """The machine that steps are planned for: the host, whose only way to more bytes is its disk."""
    return Machine("cpu").without("ram").without("client")


class BudgetedStep:
    """A training step whose bytes stay within a budget. Call it like the function it wraps.

    The first call runs as ever, which gives optimizers the chance to make their state; the second is recorded and
    planned; from then on steps follow the plan. One that does something else leaves the plan, goes on in ordinary
    memory, and the next call is recorded anew. The results are those of the function itself, bit for bit.
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
    ):
        functools.update_wrapper(self, function)
        parse_bytes(budget, 1)  # says so now if it makes no sense
        self._function, self._budget = function, budget
        self._disk_budget = None if disk_budget is None else parse_bytes(disk_budget)
        self._disk_path, self._effort = disk_path, effort
        self._executor: Executor | None = None
        self._warm = self._stepping = self._closed = False
        self._report = Report()
        self._hooks = [m.register_forward_pre_hook(self._before_forward) for m in modules]
        self._hooks += [m.register_state_dict_pre_hook(self._before_use) for m in modules]
        self._hooks += [o.register_state_dict_pre_hook(self._before_use) for o in optimizers]

    # ---- steps ----

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._closed:
            return self._function(*args, **kwargs)
        if self._stepping:
            raise RuntimeError("a budgeted step cannot run inside itself")
        self._stepping = True
        try:
            if self._executor is not None:
                return self._follow(args, kwargs)
            return self._learn(args, kwargs) if self._warm else self._warm_up(args, kwargs)
        finally:
            self._stepping = False

    def _warm_up(self, args: tuple, kwargs: dict) -> Any:
        result = self._function(*args, **kwargs)
        self._warm = True
        self._report.steps += 1
        self._report.learning_steps += 1
        return result

    def _learn(self, args: tuple, kwargs: dict) -> Any:
        recorder = Recorder(tensors_in(args, kwargs))
        with recorder:
            result = self._function(*args, **kwargs)
            recorder.note_result(tensors_out(result))
        self._report.steps += 1
        self._report.learning_steps += 1
        self._plan(recorder.recording)
        return result

    def _plan(self, recording: Recording) -> None:
        conversion = convert(recording, getattr(self._function, "__name__", "step"))
        machine = host_machine()
        whole = Plan.create(conversion.program, machine, policy="liveness").arena_bytes
        budget = parse_bytes(self._budget, whole)
        plan = Plan.create(
            conversion.program, machine, budget=budget, disk_bytes=self._disk_budget, effort=self._effort
        )
        self._note_plan(conversion, plan, budget, whole)
        self._executor = Executor(recording, conversion, plan, self._disk_path)

    def _note_plan(self, conversion: Conversion, plan: Plan, budget: int, whole: int) -> None:
        r, disk = self._report, plan.machine.find_tier("disk")
        r.plan, r.budget_bytes, r.unconstrained_bytes, r.arena_bytes = plan, budget, whole, plan.arena_bytes
        r.disk_bytes = 0 if disk is None else plan.tier_bytes(disk)
        r.predicted_ns, r.exposed_ns = plan.prediction.step_ns, plan.prediction.exposed_ns
        r.unplanned = dict(conversion.unplanned)
        r.reruns = sum(a.kind == "run" for a in plan.actions()) - conversion.program.n_ops
        allocator.outside(reset=True)

    def _follow(self, args: tuple, kwargs: dict) -> Any:
        executor = self._executor
        try:
            with executor:
                result = self._function(*args, **kwargs)
        finally:
            self._note_step(executor)
        return result

    def _note_step(self, executor: Executor) -> None:
        r = self._report
        r.outside_count, r.outside_peak_bytes = allocator.outside()
        r.steps += 1
        if executor.deviation is None:
            r.planned_steps += 1
            r.saved_bytes, r.loaded_bytes = executor.figures.saved_bytes, executor.figures.loaded_bytes
            r.step_ns = executor.figures.step_ns
            return
        r.deviations.append(executor.deviation)
        executor.close()
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
        if self._executor is not None:
            self._executor.close()
            self._executor = None
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
) -> BudgetedStep:
    """The usual step: loss_fn(model, *batch), backward, optimizer.step(), zero_grad(); returns the detached loss."""

    def training_step(*batch: Any) -> torch.Tensor:
        loss = loss_fn(model, *batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return BudgetedStep(
        training_step, budget=budget, disk_budget=disk_budget, disk_path=disk_path, effort=effort, modules=[model],
        optimizers=[optimizer],
    )  # fmt: skip
