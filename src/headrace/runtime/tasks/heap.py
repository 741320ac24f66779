"""The heap of a process of ours that runs epochs keeps what is freed for the next arrays.

An epoch takes and frees arrays of some megabytes all the time. A general allocator gives such back to the
system and fetches them anew, page by page: of a sliding window over files that was a quarter of all work.
Nothing here is slow to import, since one setting has to be made before other libraries start threads.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache
from typing import TYPE_CHECKING, Final

from headrace.later import later

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = later("pyarrow")

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
def keep_one_arena() -> None:
    """Let all threads of this process, and of those that it forks, take memory from one heap.

    An arena of glibc's that another thread has had, as one that PyArrow starts when it is loaded, stays: the
    next thread takes it, and gives back what it frees in it. So this has to be called before PyArrow is
    loaded. Where users have set anything of the kind, it does nothing.
    """
    if _is_ours():
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _is_ours() -> bool:
    """Whether the heap is glibc's, and users have said nothing of it."""
    return platform.libc_ver()[0] == "glibc" and not _VARIABLES & {*os.environ}


@cache
def keep_freed_memory() -> None:
    """Let this process keep memory that arrays no longer need for the next ones, of NumPy and of Arrow.

    Only where the C library is glibc, whose settings these are, and none of them was made in the environment,
    also not that of Arrow's own allocator, `ARROW_DEFAULT_MEMORY_POOL`. It is for processes that are ours,
    workers of Spark's and commands: in others it would hold memory that has nothing to do with epochs.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    if _is_ours():
        keep_one_arena()
        set_option = ctypes.CDLL(None).mallopt
        if any(set_option(_MMAP_THRESHOLD, size) for size in _LARGEST):
            set_option(_TRIM_THRESHOLD, _KEPT)
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
