"""A query LOSS TOLERANT BY a column: rows whose values matter least are left out where they are read.

Aurora inserts a drop box with a predicate as low in the network as possible (Carney and others, VLDB 2002,
section 7.1). Here that is right above the stream that has the column. All nodes above it keep the value of
each row, so it makes no difference to the answer whether rows are left out there or in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from headrace.algebra.nodes import (
    Coalesce,
    Distinct,
    Dstream,
    EventSource,
    Filter,
    Granularity,
    Istream,
    Join,
    Lifetime,
    LimitedJoin,
    Plan,
    Project,
    Relation,
    Rstream,
    Sample,
    SemanticDrop,
    SemiJoin,
    Source,
    TimeWindow,
    Union,
    Unnest,
    WindowBounds,
    inputs_of,
    with_inputs,
)
from headrace.algebra.tunings.loss import Loss
from headrace.errors import LanguageError
from headrace.expressions.coercion import is_numeric
from headrace.expressions.tree import Column
from headrace.optimizer.estimates.monotone import GROUPED, named
from headrace.schema import quote, sql_type
from headrace.suggestions import did_you_mean

_ROW_BY_ROW: Final = (
    *(
        Filter,
        Project,
        Sample,
        Unnest,
        TimeWindow,
        Lifetime,
        WindowBounds,
        Granularity,
        Union,
        Join,
        SemiJoin,
    ),
    *(Distinct, Coalesce, Istream, Dstream, Rstream),
)
"""The nodes of which rows with some value are made of rows with that value alone."""


def by_value(plan: Plan, loss: Loss) -> Plan:
    """The plan of a query that leaves out rows by the values of a column; none at first.

    Args:
        plan: the query's, optimized.
        loss: what it says of the values.

    Raises:
        LanguageError: it has no such column, that is no number or is computed, or rows of the answer are not
            made of rows with the same value alone.
    """
    assert loss.values is not None
    names = plan.schema.names
    place = next((at for at, name in enumerate(names) if name.lower() == loss.values.column.lower()), None)
    if place is None:
        raise LanguageError(
            f"the answer has no column {loss.values.column}",
            position=loss.position,
            hint=did_you_mean(loss.values.column, names) or f"it has {', '.join(map(quote, names))}",
        )
    column = plan.schema.fields[place]
    if not is_numeric(column.type):
        raise LanguageError(
            f"{quote(column.name)} is of {sql_type(column.type)}, and a value graph is of numbers",
            position=loss.position,
            hint="name a column of BIGINT, DOUBLE or DECIMAL",
        )
    known = replace(loss, values=replace(loss.values, column=column.name))
    dropping = _Dropping(known, tuple(sorted(set(_streams(plan, place, known)))))
    return dropping.of(plan, place)


@dataclass(frozen=True)
class _Dropping:
    """Puts what leaves out rows above the streams that a column is of.

    Attributes:
        loss: what the query says of the values.
        streams: the streams, in order.
    """

    loss: Loss
    streams: tuple[str, ...]

    def of(self, plan: Plan, place: int) -> Plan:
        """A plan of whose rows those are left out that have some values in a column."""
        if isinstance(plan, Source):
            assert self.loss.values is not None
            return SemanticDrop(plan, self.streams, self.loss.text, place=place, graph=self.loss.values)
        below = dict(_below(plan, place, self.loss))
        return with_inputs(
            plan,
            tuple(
                self.of(part, below[number]) if number in below else part
                for number, part in enumerate(inputs_of(plan))
            ),
        )


def _streams(plan: Plan, place: int, loss: Loss) -> Iterator[str]:
    """The names of the streams that a column is of."""
    if isinstance(plan, Source) and not isinstance(plan, EventSource):
        yield plan.name
        return
    inputs = inputs_of(plan)
    for number, below in _below(plan, place, loss):
        yield from _streams(inputs[number], below, loss)


def _below(plan: Plan, place: int, loss: Loss) -> list[tuple[int, int]]:
    """The inputs that a column comes from: their numbers, and its places there.

    Raises:
        LanguageError: it comes from no stream, is computed, or rows are not made of single rows here.
    """
    if not isinstance(plan, _ROW_BY_ROW) or isinstance(plan, LimitedJoin):
        raise _refused_node(plan, loss)
    match plan:
        case Project():
            expression = plan.items[place][1]
            if isinstance(expression, Column):
                return [(0, expression.index)]
        case Unnest():
            if place < len(plan.kept):
                return [(0, plan.kept[place])]
        case Union():
            return [(number, place) for number in range(len(plan.inputs))]
        case Join():
            width = len(plan.left.schema)
            return [(0, place)] if place < width else [(1, place - width)]
        case SemiJoin():
            return [(0, place)]
        case _:
            if place < len(inputs_of(plan)[0].schema):
                return [(0, place)]
    raise _refused(
        f"{quote(plan.schema.names[place])}, which is computed",
        "rows are left out where they are read, by values that they come with",
        loss,
        "name a column that comes from a stream as it is, and is among the columns of the answer",
    )


def _refused_node(plan: Plan, loss: Loss) -> LanguageError:
    hint = "leave out LOSS TOLERANT BY; what it is for are queries whose answer is rows of streams"
    if type(plan).__name__ in GROUPED:
        why = "a row that is missing changes them"
        return _refused("aggregates", why, loss, "write LOSS TOLERANT without BY, which estimates them")
    if isinstance(plan, Relation):
        why = "rows of relations are not left out"
        return _refused(f"a column of {plan.name}", why, loss, "name a column of a stream")
    return _refused(named(plan), "rows there depend on others, or are taken back", loss, hint)


def _refused(what: str, why: str, loss: Loss, hint: str) -> LanguageError:
    return LanguageError(f"no row is left out by values of {what}: {why}", position=loss.position, hint=hint)
