"""Relations that are read again while queries run: what reads them, and which queries may read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.algebra.nodes import Plan, RefreshedRelation
from headrace.algebra.properties import relations_of, sources_of
from headrace.errors import HeadraceError, LanguageError, Position, SourceError, UserError, told
from headrace.language.statements.streams import RefreshClause
from headrace.runtime.intake.streams import ReadAgain, RelationRows
from headrace.runtime.sources import open_source
from headrace.runtime.sources.composed.tables import read_rows, to_arrow_table
from headrace.runtime.sources.rows.rows import typed_rows
from headrace.runtime.sources.rows.widening import check_columns, find_column
from headrace.schema import Schema
from headrace.time import TimeDomain, duration_of, parse_duration


def refresh_clause(refresh: str | timedelta | None) -> RefreshClause | None:
    """When a relation is read again, as `Database.relation` is given it.

    Args:
        refresh: "on demand", a length of time such as "5 minutes" or a timedelta, or None for never.

    Raises:
        UserError: it is nothing of the kind.
    """
    if refresh is None:
        return None
    if isinstance(refresh, str) and refresh.strip().lower() == "on demand":
        return RefreshClause(None)
    every = duration_of(refresh) if isinstance(refresh, timedelta) else parse_duration(refresh)
    if every.unit is None or every.length <= 0:
        hint = 'give refresh="on demand", or a length of time such as "5 minutes"'
        raise UserError(f"{refresh!r} does not say when a relation is read again", hint=hint)
    return RefreshClause(every)


def files_again(
    form: str,
    options: Mapping[str, str],
    schema: Schema,
    name: str,
    base: Path,
    folders: tuple[Path, ...] | None = None,
) -> ReadAgain:
    """What reads all rows of the files that match when it is called.

    Args:
        form, options: as those of CREATE RELATION.
        schema: the relation's columns.
        name: its name.
        base: the folder that relative paths start from.
        folders: the folders that files must be in; None for any file.
    """

    def read() -> RelationRows:
        source = open_source(form, options, schema, None, name, base, folders, columns_above="")
        return read_rows(source, schema)

    return read


def table_again(data: Any, schema: Schema, name: str) -> ReadAgain:
    """What reads all rows of a table, or of what a function returns; a frame of Spark's is computed again.

    Args:
        data: what `Database.relation` takes, or a function that returns it.
        schema: the relation's columns.
        name: its name.
    """
    return partial(_rows_of_table, data, schema, name)


def _rows_of_table(data: Any, schema: Schema, name: str) -> RelationRows:
    table = table_of(data, name)
    check_columns(table.schema, schema, name)
    places = [find_column(table.column_names, field.name, name) for field in schema]
    columns = [pa.concat_arrays(table.column(place).chunks or [_nothing(table, place)]) for place in places]
    read = typed_rows(pa.RecordBatch.from_arrays(columns, list(schema.names)), schema, name, 0)
    return read.rows, read.rejected


def _nothing(table: pa.Table, place: int) -> pa.Array:
    return pa.array([], table.schema.field(place).type)


def table_of(data: Any, name: str) -> pa.Table:
    """The table that was handed over, or that a function returns.

    Raises:
        UserError: it is not a table, or making it fails.
    """
    try:
        return to_arrow_table(data() if callable(data) else data)
    except HeadraceError:
        raise
    except Exception as error:  # a function of a user's, or Spark, which may do anything
        raise SourceError(f"{name} cannot be read: {told(error)}") from error


def check_refreshed(name: str, plan: Plan, others: Iterable[Plan], position: Position | None) -> None:
    """See that a query gives the relations that are refreshed a time, and the same as other queries do.

    Args:
        name: the query's.
        plan: its plan.
        others: those of the other queries.
        position: where it is defined, if that is known.

    Raises:
        LanguageError: it reads such a relation without a stream, or beside streams that count other instants.
    """
    read = [leaf for leaf in relations_of(plan) if isinstance(leaf, RefreshedRelation)]
    if not read:
        return
    if not sources_of(plan):
        raise LanguageError(
            f"{read[0].name} has the time of the streams that it is read with, and {name} reads none",
            position=position,
            hint="join it with a stream, or leave out REFRESH if it does not change",
        )
    domains = {leaf.name: leaf.domain for other in others for leaf in relations_of(other)}
    for leaf in read:
        if domains.get(leaf.name, leaf.domain) is not leaf.domain:
            other = "an integer" if leaf.domain is TimeDomain.TIMESTAMP else "a TIMESTAMP"
            raise LanguageError(
                f"{leaf.name} is refreshed, and another query reads it with streams timed by {other}",
                position=position,
                hint="create another relation from the same input for this query",
            )
