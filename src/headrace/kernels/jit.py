"""How kernels are compiled: for given types, cached on disk, and happy with read-only Arrow memory.

Numba is loaded when a kernel is first called. A process that calls none, such as one that explains a plan, is
spared the half second.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from types import FunctionType
from typing import Any, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np

from headrace.kernels.kept import Compiling
from headrace.limits import untimed

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Argument:
    """The type of an argument of a kernel.

    Attributes:
        text: the type as Numba writes it in a signature.
        together: the named tuple whose fields are all of this type, or None.
    """

    text: str
    together: type[NamedTuple] | None = None


INT: Final = Argument("int64")
TRUTH: Final = Argument("boolean")
INT1: Final = Argument("Array(int64, 1, 'C', True)")
"""A vector of int64 that the kernel only reads."""
INT2: Final = Argument("Array(int64, 2, 'C', True)")
"""A matrix of int64, rows first, that the kernel only reads."""
FLOAT1: Final = Argument("Array(float64, 1, 'C', True)")
"""A vector of float64 that the kernel only reads."""
FLOAT2: Final = Argument("Array(float64, 2, 'C', True)")
"""A matrix of float64, rows first, that the kernel only reads."""
SINGLE2: Final = Argument("Array(float32, 2, 'C', True)")
"""A matrix of float32, rows first, that the kernel only reads."""
FLOAT: Final = Argument("float64")
BYTES2: Final = Argument("Array(uint8, 2, 'C', True)")
"""A matrix of raw bytes, rows first, that the kernel only reads."""
BYTES: Final = Argument("Array(uint8, 1, 'C', True)")
"""Raw bytes that the kernel only reads."""
OFFSETS: Final = Argument("Array(int32, 1, 'C', True)")
"""Offsets of an Arrow string column, or numbers of rows, that the kernel only reads."""
INT1_OUT: Final = Argument("int64[::1]")
"""A vector of int64 that the kernel writes."""
INT2_OUT: Final = Argument("int64[:, ::1]")
"""A matrix of int64, rows first, that the kernel writes."""
BYTES_OUT: Final = Argument("uint8[::1]")
"""Raw bytes that the kernel writes."""
TRUTHS_OUT: Final = Argument("boolean[::1]")
"""A vector of booleans that the kernel writes."""

Number: TypeAlias = int | np.int64
"""A whole number in a kernel."""


@cache
def loaded(module: str) -> Any:
    """A module of Numba's or LLVM's, loaded when a kernel is compiled."""
    # The package first, as `import` does: two threads that load parts of it would wait for each other.
    importlib.import_module(module.partition(".")[0])
    return importlib.import_module(module)


@cache
def compiling() -> Compiling:
    """The compiler of kernels, which knows where they are kept."""
    return Compiling(loaded("numba"))


def int_arrays(together: type[NamedTuple]) -> Argument:
    """The type of a named tuple of vectors of int64 that the kernel only reads."""
    return Argument(INT1.text, together)


def kernel(*signature: Argument) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function for exactly these argument types, once per machine, at its first call."""
    # Numba takes a writable array where it expects one that is only read, but not inside a tuple.
    has_tuples = any(argument.together is not None for argument in signature)

    def compiled_later(function: Callable[P, R]) -> Callable[P, R]:
        @lru_cache(maxsize=1)
        def compiled() -> Callable[P, R]:
            types = tuple(map(_type_of, signature))
            with untimed():
                return cast(Callable[P, R], compiling().compiled(_linked(function), types))

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if not has_tuples:
                return compiled()(*args, **kwargs)
            given: Any = tuple(_only_read(arg) if isinstance(arg, tuple) else arg for arg in args)
            return compiled()(*given, **kwargs)

        KERNELS.append(KernelEntry(function, signature, compiled))
        return call

    return compiled_later


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that kernels call, with them and for the types that they call it with."""
    return _inside(function, {})


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """The same for a function that is so small that its text goes into those of its callers."""
    return _inside(function, {"inline": "always"})


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Define an operation by the instructions of LLVM that are made for it (`numba.extending.intrinsic`)."""

    def call(*_: object) -> object:
        raise TypeError(f"{function.__name__} exists in kernels alone")

    _INNER[call] = lambda: cast(Callable[..., Any], loaded("numba.extending").intrinsic(function))
    return call


def carray(pointer: object, shape: tuple[int, ...], type: object) -> np.ndarray:
    """The memory at a pointer as an array, in kernels alone (`numba.carray`)."""
    raise TypeError("carray exists in kernels alone")


class KernelEntry(NamedTuple):
    """A kernel of a module that is loaded.

    Attributes:
        function: as it is written.
        signature: the types of its arguments.
        compiled: compiles it, or loads what was compiled.
    """

    function: Callable[..., Any]
    signature: tuple[Argument, ...]
    compiled: Callable[[], Any]


KERNELS: Final[list[KernelEntry]] = []
"""The kernels of the modules that are loaded."""


def inner_functions() -> list[Callable[..., Any]]:
    """The functions that kernels call, in the modules that are loaded, as they are written."""
    return [call.__wrapped__ for call in _INNER if hasattr(call, "__wrapped__")]


_INNER: Final[dict[object, Callable[[], Callable[..., Any]]]] = {carray: lambda: loaded("numba").carray}
"""What makes each function that kernels call, as Numba has to see it."""


def _inside(function: Callable[P, R], options: dict[str, str]) -> Callable[P, R]:
    @lru_cache(maxsize=1)
    def compiled() -> Callable[P, R]:
        # What is compiled of it lies with the kernels that call it: processes that compile several of these
        # at the same time would mix up files of its own.
        made = loaded("numba").njit(nogil=True, **options)(_linked(function))
        return cast(Callable[P, R], made)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return compiled()(*args, **kwargs)

    _INNER[call] = compiled
    return call


def _linked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with those that it calls as Numba has to see them in its module."""
    assert isinstance(function, FunctionType)
    for name in function.__code__.co_names:
        found = function.__globals__.get(name)
        if isinstance(found, FunctionType) and found in _INNER:
            function.__globals__[name] = _INNER[found]()
    return cast(Callable[P, R], function)


def _type_of(argument: Argument) -> object:
    types = loaded("numba.types")
    # The texts are those above, in Numba's own words.
    single = eval(argument.text, {}, vars(types))
    if argument.together is None:
        return single
    return types.NamedUniTuple(single, len(argument.together._fields), argument.together)


def _only_read(arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return type(arrays)(*views)
