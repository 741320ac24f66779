"""Where an expression is, and how an error in it gets its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import LanguageError, PlanError, Position
from headrace.expressions.tree import AggregateCall, Expression
from headrace.language.binding.scalars.collected import Collected
from headrace.language.binding.scope import Scope
from headrace.language.binding.subqueries.questions import Nesting


@dataclass(frozen=True)
class Context:
    """Where an expression is.

    Attributes:
        scope: what its names stand for.
        clause: the clause it is in, for messages.
        width: the number of columns of the row; the aggregates found are columns after them.
        aggregates: collects the aggregates; None where there may be none.
        groups: collects the aggregates of a group that FILTER compares its rows with; None where it may not.
        aliases: what the aliases of the SELECT list stand for, by lower-case name, where they can be used.
        keys: what the query groups by; an alias hides a column of the same name that is not among them.
        listed: aliases of the SELECT list that cannot be used here, in lower case, for a hint.
        nesting: collects the subqueries found; None where there may be none.
        over: what `function OVER (...)` means here; None where it is not allowed.
        now: what NOW() means here; None where it is not allowed.
    """

    scope: Scope
    clause: str
    width: int = 0
    aggregates: Collected[AggregateCall] | None = None
    groups: Collected[AggregateCall] | None = None
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    keys: tuple[Expression, ...] | None = None
    listed: frozenset[str] = frozenset()
    nesting: Nesting | None = None
    over: Callable[[Any], Expression] | None = None
    now: Expression | None = None


@contextmanager
def located(position: Position) -> Iterator[None]:
    """Give the position to errors that know none, from the function table or from the algebra."""
    try:
        yield
    except (LanguageError, PlanError) as error:
        if isinstance(error, LanguageError) and error.position is not None:
            raise
        raise LanguageError(error.message, position=position, hint=error.hint) from None
