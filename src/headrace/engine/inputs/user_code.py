"""Users' functions and aggregates, from what a program hands over."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar, overload

import pyarrow as pa

from headrace.errors import Position, UserError
from headrace.expressions.user import UserAggregate, UserFunction, version_of
from headrace.language.types import column_type
from headrace.schema import widen

TypeLike: TypeAlias = "str | pa.DataType"
"""A column type: its SQL name, such as "BIGINT" or "DECIMAL(10, 2)", or an Arrow type."""


_TYPES: Final = "give a type such as BIGINT, DOUBLE, STRING or TIMESTAMP"

FunctionBody = TypeVar("FunctionBody")


class UserCode(ABC):
    """The part of a database that takes in functions and aggregates."""

    @abstractmethod
    def _define_function(self, user: UserFunction | UserAggregate) -> None:
        """Take it into the catalog."""

    @overload
    def function(
        self, name: str, body: None = None, *, arguments: Sequence[TypeLike], returns: TypeLike,
        version: str | None = None,
    ) -> Callable[[FunctionBody], FunctionBody]: ...  # fmt: skip

    @overload
    def function(
        self, name: str, body: FunctionBody, *, arguments: Sequence[TypeLike], returns: TypeLike,
        version: str | None = None,
    ) -> FunctionBody: ...  # fmt: skip

    def function(
        self, name: str, body: Any = None, *, arguments: Sequence[TypeLike], returns: TypeLike,
        version: str | None = None,
    ) -> Any:  # fmt: skip
        """Define a scalar function over Arrow arrays; without a body this is a decorator.

        The body gets one Arrow array per argument and gives an array of as many values. It must depend on
        these alone. Rows on which it raises go to the dead letters; the others are computed.

        Args:
            name: its name in queries, whatever its case.
            body: the function.
            arguments: the types of its arguments, by their SQL names or as Arrow types.
            returns: the type of its result.
            version: distinguishes it from other code of the same name in a stored run; a digest if None.

        Returns:
            The body.

        Raises:
            UserError: the name is taken, a type is none, or the body cannot be called.

        Example:
            >>> import headrace, pyarrow.compute as pc
            >>> db = headrace.connect(runner="inline")
            >>> @db.function("shout", arguments=["STRING"], returns="STRING")
            ... def shout(text):
            ...     return pc.binary_join_element_wise(pc.utf8_upper(text), "!", "")
        """
        if body is None:
            return lambda body: self.function(
                name, body, arguments=arguments, returns=returns, version=version
            )
        self._define_function(user_function(name, body, arguments, returns, version))
        return body

    @overload
    def aggregate(
        self, name: str, body: None = None, *, arguments: Sequence[TypeLike], returns: TypeLike,
        version: str | None = None,
    ) -> Callable[[FunctionBody], FunctionBody]: ...  # fmt: skip

    @overload
    def aggregate(
        self, name: str, body: FunctionBody, *, arguments: Sequence[TypeLike], returns: TypeLike,
        version: str | None = None,
    ) -> FunctionBody: ...  # fmt: skip

    def aggregate(
        self, name: str, body: Any = None, *, arguments: Sequence[TypeLike], returns: TypeLike,
        version: str | None = None,
    ) -> Any:  # fmt: skip
        """Define an aggregate by a class; without one this is a decorator.

        The class has `initialize()`, `accumulate(state, *values)`, `evaluate(state)`, and if it likes
        `retract(state, *values)` or `merge(state, other)`, which make it faster. Rows with a NULL among the
        arguments are passed over. The answer must not depend on the order of the values. When it raises, the
        queries that use it end; others go on.

        Args:
            name, arguments, returns, version: as for a function.
            body: the class, or an object with these methods.

        Returns:
            The body.

        Raises:
            UserError: the name is taken, a type is none, or a method is missing.
        """
        if body is None:
            return lambda body: self.aggregate(
                name, body, arguments=arguments, returns=returns, version=version
            )
        self._define_function(user_aggregate(name, body, arguments, returns, version))
        return body


def user_function(
    name: str, body: Callable[..., Any], arguments: Sequence[TypeLike], returns: TypeLike, version: str | None
) -> UserFunction:
    """A scalar function; see `Database.function`.

    Raises:
        UserError: the body cannot be called, a type is not valid, or there are no arguments.
    """
    if not callable(body):
        raise UserError(
            f"the body of {name} cannot be called", hint="give a Python function over Arrow arrays"
        )
    types = _types(name, arguments)
    return UserFunction(name, types, _type(name, returns), version or version_of(body), body)


def user_aggregate(
    name: str, body: Any, arguments: Sequence[TypeLike], returns: TypeLike, version: str | None
) -> UserAggregate:
    """An aggregate; see `Database.aggregate`.

    Raises:
        UserError: the class lacks a method, a type is not valid, or there are no arguments.
    """
    version = version or version_of(body)
    instance = body() if isinstance(body, type) else body
    for method in ("initialize", "accumulate", "evaluate"):
        if not callable(getattr(instance, method, None)):
            raise UserError(
                f"the aggregate {name} has no method {method}",
                hint="it needs initialize, accumulate and evaluate; retract and merge make it faster",
            )
    return UserAggregate(name, _types(name, arguments), _type(name, returns), version, instance)


def _types(name: str, arguments: Sequence[TypeLike]) -> tuple[pa.DataType, ...]:
    if isinstance(arguments, str) or not arguments:
        raise UserError(f"{name} needs a list of argument types", hint='such as ["BIGINT", "STRING"]')
    return tuple(_type(name, argument) for argument in arguments)


def _type(name: str, dtype: TypeLike) -> pa.DataType:
    if isinstance(dtype, pa.DataType):
        found = widen(dtype)
        if found is None or pa.types.is_null(found):
            raise UserError(f"{name}: columns cannot have the type {dtype}", hint=_TYPES)
        return found
    parts = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*", dtype)
    if parts is None:
        raise UserError(f"{name}: there is no type {dtype}", hint=_TYPES)
    sizes = tuple(int(size) for size in parts.groups()[1:] if size is not None)
    return column_type(parts[1], sizes, Position(1, 1))
