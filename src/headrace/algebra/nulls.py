"""What NULLs do to predicates, and to the keys of joins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import (
    Aggregate,
    ApproximateAggregate,
    Distinct,
    Filter,
    Join,
    OuterJoin,
    Plan,
    Project,
    SemiJoin,
    TopK,
    Union,
    column,
)
from headrace.algebra.predicates import Equality, conjuncts
from headrace.expressions.functions import functions
from headrace.expressions.tree import Call, Cast, Column, Expression
from headrace.nested import is_nested
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, UNKNOWN

_NAMES = """
    = <> < <= > >= + - * / % DIV NEGATE || LIKE REGEXP_LIKE NOT
"""
_NULL_OF_NULL: Final = frozenset(_NAMES.split())
"""Functions that are NULL where an argument is."""


def null_rejected(conjunct: Expression) -> frozenset[int]:
    """The columns whose NULL makes a condition NULL, or fail; the row is then taken out."""
    match conjunct:
        case Call(function="IS NOT NULL", arguments=(argument,)):
            return _null_of_null(argument)
        case _:
            return _null_of_null(conjunct)


def _null_of_null(part: Expression) -> frozenset[int]:
    match part:
        case Column(index=index):
            return frozenset([index])
        case Cast(argument=argument):
            return _null_of_null(argument)
        case Call(function=function, arguments=arguments) if function in _NULL_OF_NULL:
            return frozenset[int]().union(*map(_null_of_null, arguments))
        case _:
            return frozenset()


def never_null(plan: Plan) -> frozenset[int]:
    """The columns that are NULL in no row, as far as filters and keys of joins show."""
    match plan:
        case Filter(input=below, predicate=predicate):
            return never_null(below) | _rejected_by(predicate)
        case Project(input=below, items=items):
            filled = never_null(below)
            return frozenset(place for place, (_, part) in enumerate(items) if _reads(part, filled))
        case Aggregate(input=below, keys=keys) | ApproximateAggregate(input=below, keys=keys):
            filled = never_null(below)
            return frozenset(place for place, (_, key) in enumerate(keys) if _reads(key, filled))
        case Join(left=left, right=right):
            width = len(left.schema)
            sides = never_null(left) | {place + width for place in never_null(right)}
            return sides | _matched(plan)
        case SemiJoin(left=below, anti=False):
            return never_null(below) | {place for place in _matched(plan) if place < len(below.schema)}
        case SemiJoin(left=below) | OuterJoin(left=below, kind=JoinKind.LEFT):
            return never_null(below)
        case TopK(input=below) | Distinct(input=below):
            return never_null(below)
        case Union(inputs=inputs):
            return frozenset.intersection(*map(never_null, inputs))
        case _:
            return frozenset()


def _matched(join: Join | SemiJoin) -> frozenset[int]:
    """The columns of a pair that are not NULL where its rows match."""
    width = len(join.left.schema)
    columns = frozenset[int]() if join.residual is None else _rejected_by(join.residual)
    for left, right in join.equalities:
        columns |= _null_of_null(left) | {place + width for place in _null_of_null(right)}
    return columns


def _rejected_by(predicate: Expression) -> frozenset[int]:
    return frozenset[int]().union(*map(null_rejected, conjuncts(predicate)))


def _reads(part: Expression, columns: frozenset[int]) -> bool:
    return isinstance(part, Column) and part.index in columns


def null_safe_key(key: Expression) -> tuple[Expression, Expression]:
    """A key as two that are never NULL, and equal for equal keys only: a value, and whether it is NULL.

    A join takes NULL as equal to nothing; grouping takes it as equal to NULL.
    """
    return _filled(key), functions.resolve("IS NULL", (key,))


def null_safe_equalities(others: Iterable[Expression], plan: Plan) -> Iterator[Equality]:
    """Others paired with the first columns of a plan, so that a join takes NULL as equal to NULL."""
    filled = never_null(plan)
    for place, other in enumerate(others):
        one = column(plan, place)
        if one.type == UNKNOWN:
            # It is NULL in every row.
            continue
        if place in filled:
            yield other, one
        else:
            yield from zip(null_safe_key(other), null_safe_key(one), strict=True)


def _filled(key: Expression) -> Expression:
    if is_nested(key.type):
        # A STRUCT of one field is not NULL, whatever is in it.
        return functions.resolve("NAMED_STRUCT", (functions.literal("key"), key))
    if key.type == UNKNOWN:
        key = functions.make_cast(key, BOOLEAN)
    fillers = {BOOLEAN: False, BIGINT: 0, DOUBLE: 0.0, STRING: ""}
    if key.type == BINARY:
        filler = functions.make_cast(functions.literal(""), BINARY)
    elif key.type in (DATE, TIMESTAMP) or key.type not in fillers:
        filler = functions.make_cast(
            functions.literal("1970-01-01" if key.type in (DATE, TIMESTAMP) else 0), key.type
        )
    else:
        filler = functions.literal(fillers[key.type])
    return functions.resolve("COALESCE", (key, filler))
