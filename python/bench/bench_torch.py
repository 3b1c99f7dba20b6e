"""PyTorch inside budgets beside PyTorch alone: time, bytes and whether the bits are the same.

    bench_torch.py [MODEL [BUDGET...]]      models: resnet18 transformer lstm; budgets: 100% 60% 40%

Times are of the process (all threads), the median of the steps, so that other work on the machine matters less. Bytes of
PyTorch alone are those of the planned arena without a budget. "checkpoint" is torch.utils.checkpoint around every block.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import tidemark
import tidemark.torch as tide

STEPS = 8


class Block(nn.Module):
    """ResNet's basic block."""

    def __init__(self, n_in: int, n_out: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.short = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.short = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.short(x))


class Stack(nn.Module):
    """A head, blocks that can be checkpointed, and a tail."""

    def __init__(self, head: nn.Module, blocks: list[nn.Module], tail: nn.Module):
        super().__init__()
        self.head, self.blocks, self.tail = head, nn.ModuleList(blocks), tail
        self.checkpointed = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.head(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.tail(x)


def resnet18() -> tuple[nn.Module, tuple]:
    head = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
    )
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in zip(widths, widths[1:])]
    tail = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    return Stack(head, blocks, tail), (torch.randn(16, 3, 128, 128), torch.randint(0, 1000, (16,)))


def transformer() -> tuple[nn.Module, tuple]:
    blocks = [nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.1, batch_first=True) for _ in range(6)]
    model = Stack(nn.Embedding(2000, 256), blocks, nn.Sequential(nn.Linear(256, 2000), nn.Flatten(0, 1)))
    return model, (torch.randint(0, 2000, (8, 128)), torch.randint(0, 2000, (8 * 128,)))


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(2000, 256), nn.LSTM(256, 256, 2, batch_first=True)
        self.head = nn.Linear(256, 2000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embed(x))[0]).flatten(0, 1)


def lstm() -> tuple[nn.Module, tuple]:
    return Lstm(), (torch.randint(0, 2000, (16, 64)), torch.randint(0, 2000, (16 * 64,)))


MODELS = {"resnet18": resnet18, "transformer": transformer, "lstm": lstm}


def loss_fn(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(x), y)


def left(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Parameters, buffers and optimizer state."""
    state = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    return [t.clone() for t in [*model.state_dict().values(), *state]]


def train(name: str, budget: str | None, checkpointed: bool = False) -> tuple[float, list, tide.Report | None]:
    """Seconds of processor time per step, what training leaves, and the report."""
    torch.manual_seed(0)
    model, batch = MODELS[name]()
    if checkpointed:
        model.checkpointed = True
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    step = tide.fit(model, optimizer, loss_fn, budget=budget or "100%")
    if budget is None:
        step.close()  # the same function, without a budget
    times = []
    for _ in range(STEPS):
        begin = time.process_time()
        step(*batch)
        times.append(time.process_time() - begin)
    step.close()
    return statistics.median(times[3:]), left(model, optimizer), step.report if budget else None


def differing(a: list[torch.Tensor], b: list[torch.Tensor]) -> int:
    return sum(not torch.equal(x, y) for x, y in zip(a, b, strict=True))


def bench(name: str, budgets: list[str]) -> None:
    eager, want, _ = train(name, None)
    print(f"{name}: eager {eager:.2f} s of processor time a step")
    if name != "lstm":
        seconds, got, _ = train(name, None, checkpointed=True)
        print(f"  checkpoint        {seconds / eager:5.2f} x, {differing(want, got)} tensors differ")
    for budget in budgets:
        try:
            seconds, got, r = train(name, budget)
        except tidemark.FitError as error:
            print(f"  {budget:<6} does not fit: {error}")
            continue
        print(
            f"  {budget:<6} arena {r.arena_bytes / 2**20:7.1f} of {r.unconstrained_bytes / 2**20:7.1f} MiB  "
            f"{seconds / eager:5.2f} x, {differing(want, got)} tensors differ, {r.reruns} re-runs, "
            f"{(r.saved_bytes + r.loaded_bytes) / 2**20:.1f} MiB moved, {r.outside_peak_bytes} bytes outside"
        )


def main() -> None:
    names = sys.argv[1:2] or list(MODELS)
    for name in names:
        bench(name, sys.argv[2:] or ["100%", "60%", "40%"])


if __name__ == "__main__":
    main()
