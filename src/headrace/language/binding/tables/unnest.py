"""UNNEST in FROM: a row for each value of an ARRAY, or entry of a MAP."""

from __future__ import annotations

import pyarrow as pa

from headrace.algebra.nodes import Unnest, column
from headrace.errors import LanguageError
from headrace.language.binding.scalars.context import Context, located
from headrace.language.binding.scalars.scalars import bind_scalar
from headrace.language.binding.scope import BoundTable, Outer, Scope, ScopeTable
from headrace.language.syntax import UnnestedTable
from headrace.nested import KEY, VALUE, is_sequence, part_types
from headrace.schema import quote, sql_type, unique_names

_PLACE = "ordinality"


def unnest(item: UnnestedTable, left: BoundTable, outer: Outer | None) -> BoundTable:
    """The rows of a table, once for each value that is computed of them, with that as a table beside.

    Args:
        item: what is written.
        left: the table.
        outer: what is around a subquery whose FROM this is.

    Raises:
        LanguageError: it is no ARRAY or MAP, or the columns are not as many as are named.
    """
    scope = Scope(left.scope.tables, left.scope.merged, left.scope.order, outer, left.scope.functions)
    values = bind_scalar(item.values, Context(scope, "UNNEST"))
    if not is_sequence(values.type):
        raise LanguageError(
            f"UNNEST takes an ARRAY or a MAP, not {sql_type(values.type)}",
            position=item.position,
            hint="SPLIT(text, ',') makes an ARRAY of a text",
        )
    names, place = _names(item, values.type)
    taken = (*left.plan.schema.names, *names, *(() if place is None else (place,)))
    unique = unique_names(list(taken))[len(left.plan.schema) :]
    kept = tuple(range(len(left.plan.schema)))
    with located(item.position):
        plan = Unnest(
            left.plan,
            values,
            kept,
            tuple(unique[: len(names)]),
            None if place is None else unique[-1],
            item.outer,
        )
    called = (*names, *(() if place is None else (place,)))
    first = len(left.plan.schema)
    columns = tuple((name, column(plan, first + index)) for index, name in enumerate(called))
    alias = "unnest" if item.alias is None else item.alias.text
    if any(table.alias and table.alias.lower() == alias.lower() for table in left.scope.tables):
        raise LanguageError(
            f"{alias} is in FROM twice", position=item.position, hint="give one of them another alias"
        )
    tables = (*left.scope.tables, ScopeTable(alias, None, columns))
    order = left.scope.order and (*left.scope.order, *(place.index for _, place in columns))
    return BoundTable(plan, Scope(tables, left.scope.merged, order, functions=left.scope.functions))


def _names(item: UnnestedTable, dtype: pa.DataType) -> tuple[tuple[str, ...], str | None]:
    """The names of the columns of the values, and of the one with the places."""
    parts = tuple(part_types(dtype))
    named = [name.text for name in item.columns]
    given = named[: len(named) - 1] if item.ordinality and named else named
    place = (named[-1] if named else _PLACE) if item.ordinality else None
    names: tuple[str, ...]
    wanted: tuple[int, ...]
    if pa.types.is_map(dtype):
        names, wanted = (KEY, VALUE), (2,)
    elif pa.types.is_struct(parts[0]) and len(parts[0]) > 1:
        # As many names as fields give the fields, one gives the STRUCT, none all fields by their own names.
        names, wanted = tuple(field.name for field in parts[0]), (1, len(parts[0]))
    else:
        names, wanted = (VALUE,), (1,)
    if not named:
        return names if item.alias is None or len(names) != 1 else (item.alias.text,), place
    if len(given) not in wanted:
        counts = " or ".join(str(count + item.ordinality) for count in sorted(set(wanted)))
        plural = "" if counts == "1" else "s"
        raise LanguageError(
            f"UNNEST gives {counts} column{plural} here, not {len(named)}",
            position=item.columns[0].position,
            hint=f"the values are {sql_type(dtype)}, with the columns {', '.join(map(quote, names))}",
        )
    return tuple(given), place
