"""The heap of a process that runs epochs keeps what is freed for the next arrays.

An epoch takes and frees arrays of some megabytes all the time. A general allocator gives such back to the
system and fetches them anew, page by page: of a sliding window over files that was a third of all work.
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
"""The numbers that glibc's `mallopt` has for them."""
_LARGEST: Final = (2**28, 2**25)
"""Bytes from which on an array is not of the heap; older releases of glibc allow the second."""
_KEPT: Final = 2**29
"""So many free bytes at its end are not given back."""


@cache
def keep_freed_memory() -> None:
    """Let this process keep memory that arrays no longer need, up to half a gigabyte, for NumPy and Arrow.

    Only where the C library is glibc, whose settings these are, and none of them was made in the environment:
    `MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_`, `GLIBC_TUNABLES` or, for Arrow's own allocator,
    `ARROW_DEFAULT_MEMORY_POOL`.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    if not {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"} & {*os.environ}:
        set_option = ctypes.CDLL(None).mallopt
        any(set_option(_MMAP_THRESHOLD, size) for size in _LARGEST)
        set_option(_TRIM_THRESHOLD, _KEPT)
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
