"""SmartPool: malloc and free that learn an iteration and answer the next from a placement (pool.h)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ._abi import ffi, lib
from .errors import check


@dataclass(frozen=True)
class PoolStats:
    """Counts since the pool was made; watched blocks are those of at least min_block_bytes."""

    n_mallocs: int
    n_frees: int
    n_watched: int  # mallocs of watched blocks: planned + fallbacks
    n_planned: int  # answered from a plan
    n_fallbacks: int  # while learning, off the plan, or in conflict
    n_conflicts: int  # fallbacks because a live block lay in the planned bytes
    n_iterations: int  # that ended while a plan was being followed
    n_deviations: int
    n_returns: int
    longest_off_events: int  # in a row that had no place in a plan, once there was one
    n_plans_made: int
    n_plans_dropped: int
    first_plan_event: int  # events before the first plan; 0: no plan yet
    plan_ns: int
    live_bytes: int  # what was asked for
    peak_live_bytes: int
    held_bytes: int  # what the system was asked for
    peak_held_bytes: int
    region_bytes: int  # of these: what plans use
    n_plans: int
    period_events: int  # of the plan at hand; 0: no plan yet, likewise below
    plan_bytes: int
    plan_load_bytes: int  # no placement is lower
    plan_algorithm: str | None


class Pool:
    """Memory of the host behind a SmartPool. Addresses are numbers; blocks that are not freed end with the pool."""

    def __init__(
        self,
        *,
        min_block_bytes: int = 0,
        alignment: int = 256,
        max_plans: int = 8,
        max_period_events: int = 65536,
        plan_seconds: float = 0.5,
    ):
        options = ffi.new("tide_pool_options *")
        lib.tide_pool_options_init(options)
        options.min_block_bytes, options.alignment = min_block_bytes, alignment
        options.max_plans, options.max_period_events, options.plan_seconds = max_plans, max_period_events, plan_seconds
        out = ffi.new("tide_pool **")
        check(lib.tide_pool_create(options, out))
        self._handle = ffi.gc(out[0], lib.tide_pool_destroy)

    def malloc(self, size_bytes: int) -> int:
        """The address of a new block; 0 for no bytes."""
        out = ffi.new("void **")
        check(lib.tide_pool_malloc(self._open(), size_bytes, out))
        return int(ffi.cast("uintptr_t", out[0]))

    def free(self, address: int) -> None:
        """ArgumentError: no live block of this pool is there."""
        check(lib.tide_pool_free(self._open(), ffi.cast("void *", address)))

    @property
    def stats(self) -> PoolStats:
        s = ffi.new("tide_pool_stats *")
        lib.tide_pool_get_stats(self._open(), s)
        numbers = [getattr(s, f.name) for f in fields(PoolStats)[:-1]]
        return PoolStats(*numbers, ffi.string(s.plan_algorithm).decode() if s.plan_algorithm else None)

    def reset_peaks(self) -> None:
        """The peaks start anew from what is live and held now."""
        lib.tide_pool_reset_peaks(self._open())

    def close(self) -> None:
        """Gives all memory back, that of live blocks too."""
        if self._handle is not None:
            ffi.release(self._handle)
            self._handle = None

    def _open(self) -> object:
        if self._handle is None:
            raise ValueError("the pool is closed")
        return self._handle

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
