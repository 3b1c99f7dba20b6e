"""Tidemark: plans and runs training steps inside a byte budget.

The bindings follow the public headers: a `Program` is what one step does, a `Machine` what things cost, a `Plan` what
runs, what moves and where every byte lies. `tidemark.torch` trains PyTorch models from such plans.
"""

from ._abi import ffi as _ffi, lib as _lib
from .errors import ArgumentError, FitError, FormatError, OutOfMemory, PlanError, StorageError, TideError
from .machine import Machine
from .placement import Buffer, Placement, buffers_of, place, read_buffers
from .plan import Action, Copy, Plan, Prediction, Residency, Smallest, Timeline, frontier, smallest
from .pool import Pool, PoolStats
from .program import Liveness, Op, Program, ProgramBuilder, Tensor
from .report import Absence, PlanReport
from .run import PulledRun

__version__ = _ffi.string(_lib.tide_version()).decode()

__all__ = [
    "Absence", "Action", "ArgumentError", "Buffer", "Copy", "FitError", "FormatError", "Liveness", "Machine", "Op",
    "OutOfMemory", "Placement", "Plan", "PlanError", "PlanReport", "Pool", "PoolStats", "Prediction", "Program",
    "ProgramBuilder", "PulledRun", "Residency", "Smallest", "StorageError", "Tensor", "TideError", "Timeline",
    "buffers_of", "frontier", "place", "read_buffers", "smallest",
]  # fmt: skip
