"""The numbers that an optimizer will use in its next step, without asking it: a shadow of it with one element per group steps
along, and what it does is listened to."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .tape import numbers_of


class _Listener(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, dict]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace != "profiler":
            self.calls.append((func, numbers_of(args, kwargs)))
        return func(*args, **kwargs)


class Shadow:
    """An optimizer of the same class and step count that has one element per group."""

    def __init__(self, optimizer: torch.optim.Optimizer):
        self._real = optimizer
        parameters = [torch.nn.Parameter(torch.ones(1)) for _ in optimizer.param_groups]
        groups = [{**self._options(g), "params": [p]} for g, p in zip(optimizer.param_groups, parameters)]
        self._optimizer = type(optimizer)(groups)
        for group, p in zip(optimizer.param_groups, parameters):
            p.grad = torch.ones(1)
            for real in group["params"]:
                if real in optimizer.state:
                    self._optimizer.state[p] = {k: self._shrink(v) for k, v in optimizer.state[real].items()}
                    break

    @staticmethod
    def _options(group: dict) -> dict:
        return {name: value for name, value in group.items() if name != "params"}

    @staticmethod
    def _shrink(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.clone() if value.dim() == 0 else torch.ones(1)

    def advance(self) -> list[list[tuple[Any, dict]]]:
        """What the optimizer's next step does to each parameter of each group: functions and their numbers."""
        result = []
        for real, mine in zip(self._real.param_groups, self._optimizer.param_groups):
            mine.update(self._options(real))
        groups = self._optimizer.param_groups
        for group in groups:
            self._optimizer.param_groups = [group]
            with _Listener() as heard:
                self._optimizer.step()
            result.append(heard.calls)
        self._optimizer.param_groups = groups
        return result
