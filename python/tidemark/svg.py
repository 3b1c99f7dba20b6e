"""The memory map of a plan as SVG: what `_repr_html_` shows in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .plan import Plan, Residency

COLOURS = {
    "input": "#9aa5b1",
    "weight": "#2f6db3",
    "gradient": "#c4622d",
    "optimizer": "#6a4fa3",
    "activation": "#3a9c6b",
    "activation-gradient": "#d9a13b",
    "workspace": "#c9c9c9",
    "other": "#7f8c8d",
}


def _label(plan: "Plan", r: "Residency") -> tuple[str, str]:
    """Class and text of a residency."""
    if r.tensor is None:
        return "workspace", f"workspace, {r.size_bytes} bytes"
    t = plan.program.tensor(r.tensor)
    return t.cls, f"{t.name}, {r.size_bytes} bytes at {r.offset_bytes}"


def memory_map(plan: "Plan", width: int, height: int) -> str:
    """One box per residency: issue order to the right, offsets upwards."""
    residencies = plan.residencies()
    last = max((r.end for r in residencies), default=1)
    sx, sy = width / max(last, 1), height / max(plan.arena_bytes, 1)
    boxes = []
    for r in residencies:
        w, h = (r.end - r.begin) * sx, r.size_bytes * sy
        if w * h < 0.05:
            continue  # less than a speck
        cls, text = _label(plan, r)
        y = height - (r.offset_bytes + r.size_bytes) * sy
        boxes.append(
            f'<rect x="{r.begin * sx:.2f}" y="{y:.2f}" width="{w:.2f}" height="{h:.2f}" fill="{COLOURS[cls]}" '
            f'stroke="#fff" stroke-width="0.2"><title>{escape(text)}</title></rect>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="memory map">{"".join(boxes)}</svg>'
    )
