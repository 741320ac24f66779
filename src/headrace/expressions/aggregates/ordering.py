"""How the values are sorted that aggregates choose from: MIN, MAX, FIRST, LAST, ARRAY_AGG and others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from headrace.expressions.aggregates.aggregates import masked
from headrace.expressions.aggregates.pairs import READ
from headrace.expressions.coercion import literal
from headrace.expressions.evaluation.times import AS_PYTHON
from headrace.expressions.tree import AggregateCall, Call, Expression, SortKey, arguments_of
from headrace.schema import BOOLEAN, DATE, TIMESTAMP


@dataclass(frozen=True)
class Ordering:
    """The live values that some aggregates share: which rows count, and how they are sorted.

    Attributes:
        keys: what the rows are sorted by; the last one is the value itself.
        needed: an expression that is NULL in the rows that do not count, or None where all do.
    """

    keys: tuple[SortKey, ...]
    needed: Expression | None

    @classmethod
    def of(cls, call: AggregateCall) -> Ordering:
        """What an aggregate needs; FIRST and LAST do not pass over NULLs."""
        assert call.argument is not None
        if call.function == "CORRELATED_PAIRS" and call.user is None:
            read = tuple(masked(part, call.condition) for part in arguments_of(call)[:READ])
            return cls(tuple(map(SortKey, read)), _complete(call, READ))
        if call.user is not None:
            taken = [masked(_as_python(part), call.condition) for part in arguments_of(call)]
            return cls(tuple(map(SortKey, taken)), _complete(call))
        keys = [
            SortKey(masked(key.expression, call.condition), key.descending, key.nulls_first)
            for key in call.order
        ]
        value = masked(call.argument, call.condition)
        if not call.order:
            return cls((SortKey(value),), value)
        if call.function not in ("FIRST", "LAST"):
            return cls((*keys, SortKey(value)), value)
        counts = None if call.condition is None else masked(literal(True), call.condition)
        return cls((*keys, SortKey(value)), counts)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All that has to be known of a row."""
        return (*(key.expression for key in self.keys), *(() if self.needed is None else (self.needed,)))


def _as_python(argument: Expression) -> Expression:
    """What users' code gets; a row whose date or time Python cannot express fails."""
    if argument.type not in (DATE, TIMESTAMP):
        return argument
    return Call(AS_PYTHON, (argument,), argument.type)


def _complete(call: AggregateCall, first: int | None = None) -> Expression:
    """NULL in the rows that an aggregate passes over: with a NULL among its arguments, or the first ones."""
    tests = [Call("IS NOT NULL", (part,), BOOLEAN) for part in arguments_of(call)[:first]]
    complete = reduce(lambda left, right: Call("AND", (left, right), BOOLEAN), tests)
    return masked(masked(literal(True), complete), call.condition)
