"""The memory and the cores of the machine."""

from __future__ import annotations

import os

from headrace.byte_sizes import format_bytes
from headrace.core_counts import format_cores
from headrace.errors import UserError


def machine_memory() -> int | None:
    """The bytes of memory that the machine has; None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def check_machine(limit: int, memory: int | None) -> None:
    """Refuse a limit of memory that is above what there is.

    Args:
        limit: how many bytes of state there may be.
        memory: how many bytes there are; any number if None.

    Raises:
        UserError: it is.
    """
    if memory is not None and limit > memory:
        raise UserError(
            f"memory_limit is {format_bytes(limit)}, and the machine has {format_bytes(memory)}",
            hint=f"write at most '{memory // 10**6} MB'; what an epoch reads needs a part of that as well",
        )


def check_cores(limit: float, cores: int | None) -> None:
    """Refuse a limit of processor time that is above what there is.

    Args:
        limit: how much a run may need (cores).
        cores: on how many cores it works; any number if None.

    Raises:
        UserError: it is.
    """
    if cores is not None and limit > cores:
        raise UserError(
            f"processing_limit is {format_cores(limit)}, and runs work on {format_cores(cores)}",
            hint=f"write at most {cores}: the cores of the machine, or the threads that connect was given",
        )


def machine_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
