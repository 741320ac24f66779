"""EMIT EMPTY: an aggregation that has a row where there is nothing to aggregate."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import (
    EVERY_INSTANT,
    Aggregate,
    Distinct,
    EventSource,
    Finalize,
    Istream,
    Plan,
    Project,
    Source,
    TimeWindow,
    Union,
    column,
)
from headrace.algebra.properties import relations_of, sources_of
from headrace.errors import LanguageError, Position
from headrace.expressions.aggregates.functions import function_of
from headrace.expressions.evaluation.evaluate import computed
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import (
    AggregateCall,
    Column,
    Expression,
    Literal,
    columns_of,
    transform_columns,
)
from headrace.schema import BOOLEAN, unique_names
from headrace.time import INFINITY, Duration


def emit_empty(plan: Aggregate, position: Position, ties: int) -> Plan:
    """The aggregation with SQL's row where there is nothing to aggregate.

    Raises:
        LanguageError: there are keys, so that it is not known which rows there would be.
    """
    if ties:
        hint = "leave it out; where there is nothing a count is 0 and other values are NULL"
        what = "a subquery that reads the rows around it"
        raise LanguageError(f"EMIT EMPTY cannot be used in {what}", position=position, hint=hint)
    if plan.keys:
        hint = "leave one of them out; a group without rows is not known to be there"
        raise LanguageError("EMIT EMPTY cannot be used with GROUP BY", position=position, hint=hint)
    return with_empty_row(plan)


def with_empty_row(plan: Aggregate) -> Plan:
    """An aggregation without keys that has a row from the first row of any of its sources on.

    Before: `SELECT COUNT(*) AS n, MAX(price) FROM bid WINDOW(RANGE 3) WHERE price > 9`
    After: `SELECT COUNT(*) - 1 AS n, MAX(price) FILTER (WHERE counts) FROM (
        SELECT price, TRUE AS counts FROM bid WINDOW(RANGE 3) WHERE price > 9 UNION ALL
        SELECT CAST(NULL AS DOUBLE) AS price, FALSE AS counts
        FROM (SELECT DISTINCT TRUE AS begun FROM bid WINDOW(RANGE UNBOUNDED)))`

    So its group is never empty from then on, and where only the added row is in it, every aggregate has its
    value for no rows. A COUNT of all rows counts the added one and takes it off again: that needs no sum of
    its own, where a condition would.
    """
    below = plan.input
    columns = [column(below, place) for place in range(len(below.schema))]
    *names, counts = unique_names([*below.schema.names, "counts"])
    nulls = (Literal(None, field.type) for field in below.schema)
    rows = Project(below, (*zip(names, columns, strict=True), (counts, Literal(True, BOOLEAN))))
    more = Project(_begun(below), (*zip(names, nulls, strict=True), (counts, Literal(False, BOOLEAN))))
    both = Union((rows, more))
    counted = column(both, len(columns))
    calls = [
        (name, call if _is_of_all(call) else _only_where(counted, call)) for name, call in plan.aggregates
    ]
    groups = Aggregate(both, (), tuple(calls))
    values = (_value(groups, place, call) for place, (_, call) in enumerate(plan.aggregates))
    return Project(groups, tuple(zip(plan.schema.names, values, strict=True)))


def holds_of_nothing(groups: Aggregate, condition: Expression) -> bool:
    """Whether a condition on groups without keys is true where there is nothing to aggregate.

    It is not known, and so not said, of one that reads more than these groups, or an ARRAY.
    """
    values = [function_of(call).of_nothing for _, call in groups.aggregates]
    read = columns_of(condition)
    if any(place >= len(values) or values[place] == () for place in read):
        return False

    def of_nothing(part: Column) -> Expression:
        return Literal(values[part.index], part.type)

    return computed(transform_columns(condition, of_nothing)) == Literal(True, BOOLEAN)


def is_never_empty(plan: Plan) -> bool:
    """Whether there are rows from the first row of the only source on: all of them so far."""
    match plan:
        case TimeWindow(size=size, input=below):
            return size.length == INFINITY and _is_source(below)
        case Project(input=below) | Aggregate(input=below) | Distinct(input=below):
            return is_never_empty(below)
        case _:
            return False


def _is_source(plan: Plan) -> bool:
    return _is_source(plan.input) if isinstance(plan, Project) else isinstance(plan, Source)


def _is_of_all(call: AggregateCall) -> bool:
    """Whether it is COUNT(*), the one aggregate without an argument, with no condition."""
    return call.argument is None and call.condition is None


def _value(groups: Aggregate, place: int, call: AggregateCall) -> Expression:
    """What an aggregate of the rows is, read from the one that has the added row among them."""
    found = column(groups, place)
    return resolve("-", (found, literal(1))) if _is_of_all(call) else found


def _only_where(condition: Expression, call: AggregateCall) -> AggregateCall:
    both = condition if call.condition is None else resolve("AND", (condition, call.condition))
    return replace(call, condition=both)


def _begun(plan: Plan) -> Plan:
    """One row from the first row of any stream of the plan on; of relations alone while they have one."""
    windows: list[Plan] = [
        TimeWindow(_instants(source), Duration(INFINITY), EVERY_INSTANT) for source in sources_of(plan)
    ]
    leaves = windows or relations_of(plan)
    rows = tuple(Project(leaf, (("begun", Literal(True, BOOLEAN)),)) for leaf in leaves)
    return Distinct(rows[0] if len(rows) == 1 else Union(rows))


def _instants(source: Source) -> Plan:
    """The rows of a source for the instants at which they begin, less those that are taken back."""
    signed = isinstance(source, EventSource) and source.signed
    rows: Plan = Finalize(source) if signed else source
    return rows if rows.is_chronon else Istream(rows)
