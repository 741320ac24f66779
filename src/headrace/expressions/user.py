"""Functions and aggregates that users write in Python.

Both must depend on their arguments alone, and an aggregate's answer not on the order of its values: answers
are exact, state is shared and computed again, and a run that goes on elsewhere must come to the same result.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headrace.conversion import MisfitError, as_column
from headrace.elements import BoolArray
from headrace.errors import is_of_code, named
from headrace.limits import check, turn
from headrace.schema import sql_type


class Aggregator(Protocol):
    """What an instance of a user's aggregate class must have.

    `retract(state, *values)` and `merge(state, other)` are optional: with `retract`, values that leave are
    taken out; else with `merge`, partial aggregates are kept in a tree; else the state is made anew from the
    live values whenever one of them comes or leaves. All but `evaluate` return the new state, which may be
    the old object; `evaluate` leaves the state unchanged.
    """

    def initialize(self) -> Any:
        """The state of no values."""
        ...

    def accumulate(self, state: Any, *values: Any) -> Any:
        """The state with one row more; no value is None."""
        ...

    def evaluate(self, state: Any) -> Any:
        """The result, or None for NULL."""
        ...


@dataclass(frozen=True)
class UserFunction:
    """A scalar function over Arrow arrays.

    Attributes:
        name: its name in queries.
        arguments: the types of its arguments, at least one.
        returns: the type of its result.
        version: distinguishes it from other code of that name; part of the identity of plans and their state.
        body: takes an Arrow array per argument and gives one of as many values.
    """

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    version: str
    body: Callable[..., Any] = field(compare=False, repr=False)


@dataclass(frozen=True)
class UserAggregate:
    """An aggregate over the rows in which none of its arguments is NULL.

    Attributes:
        name, arguments, returns, version: as those of a function.
        body: an object with the methods of `Aggregator`.
    """

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    version: str
    body: Aggregator = field(compare=False, repr=False)


def signature(user: UserFunction | UserAggregate) -> str:
    """`name(TYPE, TYPE)`, for messages."""
    return f"{user.name}({', '.join(map(sql_type, user.arguments))})"


def call_user(
    function: UserFunction, columns: Sequence[pa.Array]
) -> tuple[pa.Array, tuple[tuple[str, BoolArray], ...]]:
    """The function's values, NULL in the rows that it fails on; and these, by reason.

    Where it raises, or gives something else than asked for, the rows are halved until those that it fails on
    are alone: one bad row among n costs about 2 log n calls.
    """
    reasons: dict[str, list[int]] = {}

    def over(start: int, count: int) -> list[pa.Array]:
        check()
        try:
            return [_called(function, [column.slice(start, count) for column in columns])]
        except BaseException as error:  # whatever a user's code raises is about its rows
            if not is_of_code(error):
                raise
            if count > 1:
                return [*over(start, count // 2), *over(start + count // 2, count - count // 2)]
            reasons.setdefault(failure(function.name, error), []).append(start)
            return [pa.nulls(1, function.returns)]

    count = len(columns[0])
    with turn():
        values = pa.concat_arrays(over(0, count)) if count else pa.nulls(0, function.returns)
    failures = []
    for reason, rows in reasons.items():
        mask = np.zeros(count, dtype=np.bool_)
        mask[rows] = True
        failures.append((reason, mask))
    return values, tuple(failures)


def failure(name: str, error: BaseException) -> str:
    """The reason for which a row fails, or a query ends."""
    if isinstance(error, MisfitError):
        return f"{name} gave a value that is {error.reason}"
    return f"{name} raised {named(error)}"


def _called(function: UserFunction, columns: list[pa.Array]) -> pa.Array:
    values = as_column(function.body(*columns), function.returns)
    if len(values) != len(columns[0]):
        raise ValueError(f"{len(values)} values for {len(columns[0])} rows")
    return values


def version_of(body: Any) -> str:
    """A digest of code: that of a function with its defaults, of what it refers to, or of a class's methods.

    It is the same in every process under one version of Python. Code of other modules that is called counts
    by its name alone.
    """
    return sha256(repr(_described(body, set())).encode()).hexdigest()[:16]


def _described(value: Any, seen: set[int]) -> object:
    if id(value) in seen:
        return "again"
    match value:
        case FunctionType():
            seen.add(id(value))
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            used = [value.__globals__.get(name) for name in value.__code__.co_names]
            parts = [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *used]
            near = [part for part in parts if part is not None and not _far(part, value.__module__)]
            return _described(value.__code__, seen), [_described(part, seen) for part in near]
        case MethodType():
            return _described(value.__func__, seen), _described(value.__self__, seen)
        case CodeType():
            return value.co_code.hex(), value.co_names, [_described(part, seen) for part in value.co_consts]
        case type():
            seen.add(id(value))
            members = sorted((name, part) for name, part in vars(value).items() if callable(part))
            return value.__qualname__, [(name, _described(part, seen)) for name, part in members]
        case None | bool() | int() | float() | str() | bytes():
            return value
        case tuple() | list():
            return [_described(part, seen) for part in value]
        case _:
            return _pickled(value, seen)


def _far(value: Any, module: str) -> bool:
    """Whether it is another module, or code of one."""
    if isinstance(value, FunctionType | BuiltinFunctionType | type):
        return value.__module__ != module
    return isinstance(value, ModuleType)


def _pickled(value: Any, seen: set[int]) -> object:
    kind = type(value)
    state = vars(value) if hasattr(value, "__dict__") else {}
    if state or not kind.__module__.startswith(("builtins", "pyarrow", "numpy")):
        return _described(kind, seen), [
            (name, _described(part, seen)) for name, part in sorted(state.items())
        ]
    try:
        return pickle.dumps(value)
    except Exception:  # what cannot be pickled counts by its name
        return f"{kind.__module__}.{kind.__qualname__} {getattr(value, '__name__', '')}"
