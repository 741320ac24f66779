"""The sizes of rows: of what a query adds up, as far as its rows' streams tell before rows are left out.

Rows whose values are large make up most of a sum, so they are to be kept more often (`Shed`). What is summed
is computed of a stream's columns as a DOUBLE, so that no row fails by it that may not be asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Join, Plan, Project, Shed, Source, column, project
from headrace.errors import LanguageError
from headrace.expressions.coercion import is_numeric
from headrace.expressions.functions.functions import make_cast, resolve
from headrace.expressions.render import render
from headrace.expressions.tree import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    columns_of,
    transform_columns,
)
from headrace.schema import DOUBLE, quote, unique_names

Sizes = tuple[Expression, ...]
"""The amounts that are added up of rows, over their columns (DOUBLEs)."""


def sizes_in(calls: Iterable[AggregateCall]) -> Sizes:
    """The sizes of what some aggregates add up, each once: of SUM and AVG."""
    values = (
        call.argument for call in calls if call.function in ("SUM", "AVG") and call.argument is not None
    )
    found = (as_double(value) for value in values if columns_of(value))
    return tuple(dict.fromkeys(size for size in found if size is not None))


def as_double(value: Expression) -> Expression | None:
    """A number computed as a DOUBLE, so that it does not fail; None where it may fail in other ways."""
    match value:
        case Call(function="+" | "-" | "*" | "NEGATE", arguments=arguments, type=dtype) if is_numeric(dtype):
            parts = [as_double(part) for part in arguments]
            known = [part for part in parts if part is not None]
            return resolve(value.function, tuple(known)) if len(known) == len(parts) else None
        case Cast(argument=argument, type=dtype) if is_numeric(dtype) and is_numeric(argument.type):
            return as_double(argument)
        case _ if is_numeric(value.type):
            try:
                double = make_cast(value, DOUBLE)
            except LanguageError:
                return None
            return None if can_fail(double) else double
        case _:
            return None


def sizes_below(plan: Project, sizes: Sizes) -> Sizes:
    """Sizes over the columns of a projection, over those of its input; those that may fail there are left."""
    moved = (transform_columns(size, lambda part: plan.items[part.index][1]) for size in sizes)
    found = (as_double(size) for size in moved if columns_of(size))
    return tuple(dict.fromkeys(size for size in found if size is not None))


def sizes_of_side(plan: Join, port: int, sizes: Sizes) -> Sizes:
    """Those over the columns of a join that are computed of one side, over its columns."""
    width = len(plan.left.schema)
    places = range(width) if port == 0 else range(width, len(plan.schema))
    side = plan.right if port else plan.left
    return tuple(
        transform_columns(size, lambda part: column(side, part.index - places.start))
        for size in sizes
        if columns_of(size) <= {*places}
    )


def sizes_of_rows(whole: Source, narrow: Source, sizes: Sizes) -> Iterator[tuple[str, Expression]]:
    """Sizes over some columns of a stream, with their names, over all of its columns.

    Args:
        whole: the stream with all columns.
        narrow: with those that the sizes are over.
        sizes: the sizes.
    """
    names = narrow.schema.names

    def moved(part: Column) -> Expression:
        return column(whole, whole.schema.names.index(names[part.index]))

    for size in sizes:
        text = render(size, lambda part: quote(names[part.index]))
        yield f"{whole.name}: {text}", transform_columns(size, moved)


def with_columns(rows: Plan, added: Iterable[Expression]) -> Plan:
    """Rows with more columns behind theirs; the rows themselves where there are none to add."""
    more = tuple(added)
    if not more:
        return rows
    width = len(rows.schema)
    names = unique_names([*rows.schema.names, *(f"by{place}" for place in range(len(more)))])
    kept = [column(rows, place) for place in range(width)]
    return Project(rows, tuple(zip(names, (*kept, *more), strict=True)))


def columns_drawn(shed: Shed, narrow: Source) -> Plan:
    """The columns of a stream that are asked for, with the draw and the weight behind them."""
    names, width = shed.schema.names, len(shed.schema)
    places: Sequence[int] = [*(names.index(name) for name in narrow.schema.names), width - 2, width - 1]
    return project(shed, tuple((shed.schema[at].name, column(shed, at)) for at in places))
