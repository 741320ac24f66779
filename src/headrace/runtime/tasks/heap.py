"""The heap of a process of ours that runs epochs keeps what is freed for the next arrays.

An epoch takes and frees arrays of some megabytes all the time. A general allocator gives such back to the
system and fetches them anew, page by page: of a sliding window over files that was a quarter of all work.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache
from typing import Final

import pyarrow as pa

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""The numbers that glibc's `mallopt` has for them."""
_LARGEST: Final = (2**28, 2**25)
"""Bytes from which on an array is not of the heap; older releases of glibc allow the second."""
_KEPT: Final = 2**29
"""So many free bytes at its end are not given back."""
_VARIABLES: Final = {
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "GLIBC_TUNABLES",
}
"""By which a user may have set the same."""


@cache
def keep_freed_memory() -> None:
    """Let this process keep memory that arrays no longer need for the next ones, of NumPy and of Arrow.

    Only where the C library is glibc, whose settings these are, and none of them was made in the environment,
    also not that of Arrow's own allocator, `ARROW_DEFAULT_MEMORY_POOL`. It is for processes that are ours,
    workers of Spark's and commands: in others it would hold memory that has nothing to do with epochs.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    if not _VARIABLES & {*os.environ}:
        set_option = ctypes.CDLL(None).mallopt
        if any(set_option(_MMAP_THRESHOLD, size) for size in _LARGEST):
            set_option(_TRIM_THRESHOLD, _KEPT)
            # Those of other threads are parts of 64 MB, which are given back.
            set_option(_ARENA_MAX, 1)
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
