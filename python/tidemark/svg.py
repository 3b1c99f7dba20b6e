"""Memory maps as SVG: what `_repr_html_` shows in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

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


class Box(NamedTuple):
    """Bytes that are taken for a while."""

    begin: int
    end: int
    offset_bytes: int
    size_bytes: int
    cls: str
    text: str


def draw(boxes: list[Box], height_bytes: int, width: int, height: int) -> str:
    """Time to the right, offsets upwards."""
    last = max((b.end for b in boxes), default=1)
    sx, sy = width / max(last, 1), height / max(height_bytes, 1)
    rects = []
    for b in boxes:
        w, h = (b.end - b.begin) * sx, b.size_bytes * sy
        if w * h < 0.05:
            continue  # less than a speck
        y = height - (b.offset_bytes + b.size_bytes) * sy
        rects.append(
            f'<rect x="{b.begin * sx:.2f}" y="{y:.2f}" width="{w:.2f}" height="{h:.2f}" fill="{COLOURS[b.cls]}" '
            f'stroke="#fff" stroke-width="0.2"><title>{escape(b.text)}</title></rect>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="memory map">{"".join(rects)}</svg>'
    )


def _box(plan: "Plan", r: "Residency") -> Box:
    if r.tensor is None:
        cls, text = "workspace", f"workspace, {r.size_bytes} bytes"
    else:
        t = plan.program.tensor(r.tensor)
        cls, text = t.cls, f"{t.name}, {r.size_bytes} bytes at {r.offset_bytes}"
    return Box(r.begin, r.end, r.offset_bytes, r.size_bytes, cls, text)


def memory_map(plan: "Plan", width: int, height: int) -> str:
    """One box per residency, in issue order."""
    return draw([_box(plan, r) for r in plan.residencies()], plan.arena_bytes, width, height)
