"""PyTorch inside budgets beside PyTorch alone and its checkpointing: time, bytes and whether the bits are the same.

    bench_torch.py [--steps N] [MODEL [BUDGET...]]      budgets: 100% 60% 40% min, and "policy:60%" for tide.policy

Models: resnet50 and vit (torchvision), gpt2 (transformers, with dropout), lstm, unet, depth (torchvision's ConvNeXt, stochastic
depth), and resnet18 and transformer, which are quick. Times are of the processor (all threads), the median of the steps, so that
other work on the machine matters less; they are ratios to PyTorch alone. Bytes of PyTorch alone are those of the planned arena
without a budget. "checkpoint" is torch.utils.checkpoint around every block, "replayed" is replay=True.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Callable

import torch
import torchvision
from torch import nn
from torch.utils.checkpoint import checkpoint

import tidemark
import tidemark.torch as tide
from tidemark.torch.policy import find_blocks

Made = tuple[nn.Module, tuple, Callable[..., torch.Tensor]]


def classify(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(x), y)


def images(model: nn.Module, batch: int, size: int, classes: int = 1000) -> Made:
    return model, (torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))), classify


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(2000, 256), nn.LSTM(256, 256, 2, batch_first=True)
        self.head = nn.Linear(256, 2000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embed(x))[0]).flatten(0, 1)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.1, batch_first=True)
        self.embed, self.layers = nn.Embedding(2000, 256), nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.head = nn.Linear(256, 2000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embed(x))).flatten(0, 1)


class Unet(nn.Module):
    """Four levels with skip connections."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        widths = [width << i for i in range(4)]
        self.down = nn.ModuleList(self._pair(a, b) for a, b in zip([3, *widths], widths))
        self.up = nn.ModuleList(self._pair(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1]))
        self.head = nn.Conv2d(width, 10, 1)

    @staticmethod
    def _pair(n_in: int, n_out: int) -> nn.Module:
        layers = []
        for a in (n_in, n_out):
            layers += [nn.Conv2d(a, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for i, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for block, skip in zip(self.up, reversed(kept[:-1])):
            x = block(torch.cat([nn.functional.interpolate(x, scale_factor=2), skip], 1))
        return self.head(x)


def tokens(model: nn.Module, batch: int, length: int) -> Made:
    return model, (torch.randint(0, 2000, (batch, length)), torch.randint(0, 2000, (batch * length,))), classify


def unet() -> Made:
    return Unet(), (torch.randn(4, 3, 128, 128), torch.randint(0, 10, (4, 128, 128))), classify


def gpt2() -> Made:
    from transformers import GPT2Config, GPT2LMHeadModel

    ids = torch.randint(0, 50257, (2, 256))
    return GPT2LMHeadModel(GPT2Config()), (ids,), lambda m, ids: m(input_ids=ids, labels=ids, use_cache=False).loss


MODELS: dict[str, Callable[[], Made]] = {
    "resnet18": lambda: images(torchvision.models.resnet18(), 16, 128),
    "transformer": lambda: tokens(Transformer(), 8, 128),
    "lstm": lambda: tokens(Lstm(), 16, 64),
    "unet": unet,
    "depth": lambda: images(torchvision.models.convnext_tiny(stochastic_depth_prob=0.2), 4, 128),
    "resnet50": lambda: images(torchvision.models.resnet50(), 16, 224),
    "vit": lambda: images(torchvision.models.vit_b_16(), 4, 224),
    "gpt2": gpt2,
}


def left(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Parameters, buffers and optimizer state."""
    state = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    return [t.clone() for t in [*model.state_dict().values(), *state]]


class Training:
    """One training of a model: seconds of processor time per step, what it leaves, and the report."""

    def __init__(self, name: str, steps: int, kind: str = "eager", budget: int | str = "100%"):
        torch.manual_seed(0)
        model, batch, loss_fn = MODELS[name]()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        self.policy = None
        if kind == "checkpoint":
            for block in find_blocks(model):
                module = model.get_submodule(block)
                module.forward = lambda *a, f=module.forward, **k: checkpoint(f, *a, use_reentrant=False, **k)
        if kind == "policy":
            self.policy = tide.policy(model, optimizer, loss_fn, batch, budget=budget).apply()
        step = tide.fit(model, optimizer, loss_fn, budget=budget, replay=kind == "replayed")
        if kind not in ("planned", "replayed"):
            step.close()  # the same function, without a budget
        torch.manual_seed(1)
        times = []
        for _ in range(steps):
            begin = time.process_time()
            step(*batch)
            times.append(time.process_time() - begin)
        step.close()
        # A step to warm up and one to learn; replays begin after two more.
        self.seconds = statistics.median(times[4:])
        self.learning = times[1]
        self.left, self.report = left(model, optimizer), step.report


def differing(a: Training, b: Training) -> int:
    return sum(not torch.equal(x, y) for x, y in zip(a.left, b.left, strict=True))


def train_smallest(name: str, steps: int) -> Training:
    """In the smallest budget that works: an estimate does not know workspaces, so it goes up from there."""
    model, batch, loss_fn = MODELS[name]()
    guess = tide.estimate(model, torch.optim.AdamW(model.parameters()), loss_fn, batch)
    size = tidemark.smallest(guess.program, guess.machine, effort="low").works_bytes
    while True:
        try:
            return Training(name, steps, "planned", size)
        except tidemark.FitError as error:
            size = max(error.needed_bytes, size * 9 // 8)


def show(label: str, got: Training, eager: Training, extra: str) -> None:
    print(f"  {label:<14} {got.seconds / eager.seconds:5.2f} x, {differing(eager, got)} tensors differ{extra}", flush=True)


def bench(name: str, budgets: list[str], steps: int) -> None:
    eager = Training(name, steps)
    print(f"{name}: eager {eager.seconds:.2f} s of processor time a step", flush=True)
    if name != "lstm":
        show("checkpoint", Training(name, steps, "checkpoint"), eager, "")
    for budget in budgets:
        kinds = ["policy"] if budget.startswith("policy:") else ["planned", *(["replayed"] if budget == "100%" else [])]
        for kind in kinds:
            try:
                size = budget.removeprefix("policy:")
                got = train_smallest(name, steps) if budget == "min" else Training(name, steps, kind, size)
            except (tidemark.FitError, ValueError) as error:
                print(f"  {budget:<14} no: {error}", flush=True)
                continue
            r = got.report
            extra = f", {got.policy}" if got.policy else (
                f", arena {r.arena_bytes / 2**20:.1f} of {r.unconstrained_bytes / 2**20:.1f} MiB, {r.reruns} re-runs, "
                f"{(r.saved_bytes + r.loaded_bytes) / 2**20:.1f} MiB moved, {r.outside_peak_bytes} bytes outside, "
                f"learning took {got.learning / eager.seconds:.1f} steps"
            )  # fmt: skip
            if kind == "replayed":
                extra += f", {r.replayed_steps} steps replayed{' (' + r.not_replayed + ')' if r.not_replayed else ''}"
            show(budget if kind == "planned" else f"{budget} {kind}".replace("policy:", ""), got, eager, extra)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("model", nargs="?", choices=MODELS)
    parser.add_argument("budgets", nargs="*", default=["100%", "60%", "40%", "min", "policy:60%"])
    args = parser.parse_args()
    for name in [args.model] if args.model else MODELS:
        bench(name, args.budgets or ["100%", "60%", "40%"], max(args.steps, 6))


if __name__ == "__main__":
    main()
