"""docs/pytorch.svg: the memory of one training step of torchvision's ResNet-18, without a budget and in 40 % of it.

    draw_maps.py OUTPUT

The step is recorded on fake tensors, so nothing is computed and the picture is the same on every machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torchvision

import tidemark
import tidemark.torch as tide
from tidemark.svg import COLOURS

WIDTH, HEIGHT, LEFT, TOP = 900, 260, 10, 40
SHOWN = {"weight": "weights and momentum", "activation": "activations", "activation-gradient": "gradients"}


def estimate() -> tide.Estimate:
    with torch.device("meta"):
        model = torchvision.models.resnet18()
        batch = torch.empty(32, 3, 224, 224), torch.empty(32, dtype=torch.long)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return tide.estimate(model, optimizer, lambda m, x, y: torch.nn.functional.cross_entropy(m(x), y), batch)


def boxes(plan: tidemark.Plan, whole: int, bottom: float) -> list[str]:
    """One per residency, over time as it is predicted."""
    times = plan.simulate()
    end, n = max(times.end_ns), len(times.start_ns)
    found = []
    for r in plan.residencies():
        begin_ns = times.start_ns[min(r.begin, n - 1)]
        end_ns = end if r.end >= n else times.start_ns[r.end]
        w, h = (end_ns - begin_ns) / end * WIDTH, r.size_bytes / whole * HEIGHT
        if w * h < 2:
            continue
        cls = "workspace" if r.tensor is None else plan.program.tensor(r.tensor).cls
        x, y = LEFT + begin_ns / end * WIDTH, bottom - (r.offset_bytes + r.size_bytes) / whole * HEIGHT
        found.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{COLOURS[cls]}"/>')
    return found


def main() -> None:
    guess = estimate()
    whole = guess.unconstrained_bytes
    plans = [tidemark.Plan.create(guess.program, guess.machine, policy="liveness"), guess.plan("40%")]
    parts, y = [], TOP
    for name, plan in zip(("without a budget", "budget: 40 %"), plans):
        height = plan.arena_bytes / whole * HEIGHT
        moved = f", {plan.prediction.moved_bytes / 2**20:.0f} MiB moved" if plan.prediction.moved_bytes else ""
        parts.append(f'<text x="{LEFT}" y="{y - 8}">{name}: {plan.arena_bytes / 2**20:.0f} MiB{moved}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{height:.1f}" fill="#f2f2f2"/>')
        parts += boxes(plan, whole, y + height)
        y += height + 44
    x = LEFT
    for cls, name in SHOWN.items():
        parts.append(f'<rect x="{x}" y="{y - 22:.0f}" width="12" height="12" fill="{COLOURS[cls]}"/>')
        parts.append(f'<text x="{x + 18}" y="{y - 11:.0f}">{name}</text>')
        x += 210
    size = f'viewBox="0 0 {WIDTH + 2 * LEFT} {y:.0f}" font-family="sans-serif" font-size="14" fill="#222"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>Memory of a training step of ResNet-18</title>'
    back = f'<rect width="{WIDTH + 2 * LEFT}" height="{y:.0f}" fill="#fff"/>'
    Path(sys.argv[1]).write_text("\n".join([head, back, *parts, "</svg>"]) + "\n")


if __name__ == "__main__":
    main()
