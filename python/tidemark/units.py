"""Sizes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def parse_bytes(text: int | str, whole: int | None = None) -> int:
    """1234, "2GiB", "1.5 GB"; "40%" of `whole`, where there is one."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*|%)\s*", text)
    if match and match[2] == "%" and whole is not None:
        return int(whole * float(match[1]) / 100)
    if not match or match[2].lower() not in _UNITS:
        raise ValueError(f"{text!r} is no size: write 1234, \"512MiB\" or \"2GiB\"")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def show_bytes(size: int) -> str:
    """In MiB."""
    return f"{size / 2**20:.1f} MiB"
