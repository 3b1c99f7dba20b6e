"""Exceptions, one per status of the library that a caller may want to tell from others."""

from __future__ import annotations

from ._abi import ffi, lib


class TideError(Exception):
    """A call of the library failed; the text says what, where and why."""

    status = "TIDE_E_INTERNAL"


class ArgumentError(TideError, ValueError):
    """An argument makes no sense."""


class FormatError(TideError, ValueError):
    """A file is malformed."""


class FitError(TideError):
    """It does not fit the budget. `needed_bytes`: the smallest arena known to work, 0 if none is known."""

    needed_bytes = 0


class PlanError(TideError):
    """The verifier rejected a plan."""


class StorageError(TideError, OSError):
    """Input or output failed."""


class OutOfMemory(TideError, MemoryError):
    """The host has no such memory."""


_CLASSES = {
    "TIDE_E_ARGUMENT": ArgumentError,
    "TIDE_E_FORMAT": FormatError,
    "TIDE_E_FIT": FitError,
    "TIDE_E_TIER_FULL": FitError,
    "TIDE_E_PLAN": PlanError,
    "TIDE_E_IO": StorageError,
    "TIDE_E_MEMORY": OutOfMemory,
}


def last_error() -> str:
    """The library's text about what failed last on this thread."""
    return ffi.string(lib.tide_last_error()).decode(errors="replace")


def error_of(status: int) -> TideError:
    """The exception of a status that is not TIDE_OK, with the library's text."""
    name = ffi.string(lib.tide_status_name(status)).decode()
    error = _CLASSES.get(name, TideError)(last_error())
    error.status = name
    return error


def check(status: int) -> None:
    """Raises unless the status is TIDE_OK."""
    if status:
        raise error_of(status)
