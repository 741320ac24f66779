"""How kernels are compiled: for given types, cached on disk, and happy with read-only Arrow memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numba
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

INT1 = numba.types.Array(numba.int64, 1, "C", readonly=True)
"""A vector of int64 that the kernel only reads."""
INT2 = numba.types.Array(numba.int64, 2, "C", readonly=True)
"""A matrix of int64, rows first, that the kernel only reads."""
FLOAT1 = numba.types.Array(numba.float64, 1, "C", readonly=True)
"""A vector of float64 that the kernel only reads."""
FLOAT2 = numba.types.Array(numba.float64, 2, "C", readonly=True)
"""A matrix of float64, rows first, that the kernel only reads."""
BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)
"""Raw bytes that the kernel only reads."""
OFFSETS = numba.types.Array(numba.int32, 1, "C", readonly=True)
"""Offsets of an Arrow string column, or numbers of rows, that the kernel only reads."""
INT1_OUT = numba.int64[::1]
"""A vector of int64 that the kernel writes."""
INT2_OUT = numba.int64[:, ::1]
"""A matrix of int64, rows first, that the kernel writes."""


def int_arrays(together: type[NamedTuple]) -> object:
    """The type of a named tuple of vectors of int64 that the kernel only reads."""
    return numba.types.NamedUniTuple(INT1, len(together._fields), together)


def kernel(*signature: object) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function for exactly these argument types, once per machine, at its first call.

    A process that calls no kernel, such as one that explains a plan, does not even load what was compiled.
    """

    # Numba takes a writable array where it expects one that is only read, but not inside a tuple.
    has_tuples = any(isinstance(part, numba.types.BaseTuple) for part in signature)

    def compiled_later(function: Callable[P, R]) -> Callable[P, R]:
        @lru_cache(maxsize=1)
        def compiled() -> Callable[P, R]:
            return cast(Callable[P, R], numba.njit(signature, cache=True, nogil=True)(function))

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if not has_tuples:
                return compiled()(*args, **kwargs)
            given: Any = tuple(_only_read(arg) if isinstance(arg, tuple) else arg for arg in args)
            return compiled()(*given, **kwargs)

        return call

    return compiled_later


def _only_read(arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return type(arrays)(*views)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that kernels call, with them and for the types that they call it with."""
    return cast(Callable[P, R], numba.njit(cache=True, nogil=True)(function))
