"""Streams whose rows are pulled from an iterator, or from a function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import chain
from typing import Any, TypeGuard

import pyarrow as pa

from headrace.engine.inputs.corrections import Said
from headrace.engine.inputs.inputs import Input
from headrace.engine.inputs.times import Length, disorder_of, timing_of
from headrace.errors import LanguageError, UserError
from headrace.language.binding.computed import bind_computed
from headrace.language.parsing.parser import parse
from headrace.language.statements.streams import CreateStream, TimeClauses
from headrace.runtime.intake.pulling import FunctionPull, IteratorPull, Pull
from headrace.runtime.intake.streams import LiveStream
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.composed.tables import to_arrow_table
from headrace.runtime.sources.rows.widening import readable_schema
from headrace.schema import Schema
from headrace.time import parse_duration


def is_pulled(data: object) -> TypeGuard[Iterator[Any] | Callable[..., Any]]:
    """Whether it gives rows again and again, and is not a table itself."""
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return False
    return isinstance(data, Iterator) or callable(data)


def pulled(
    name: str,
    source: Iterator[Any] | Callable[..., Any],
    said: Said,
    disorder: Length | None,
    columns: pa.Schema | str | None,
    every: str | timedelta,
) -> Input:
    """The input that an iterator is, or a function that is called again and again.

    Args:
        name: the stream's.
        source: it.
        said: how its rows say when they are valid.
        disorder: how much older than the newest row a row may be.
        columns: the columns; None for those of the first rows of an iterator.
        every: how long to wait after a call of a function that brought nothing.

    Raises:
        UserError: the columns are not known, or the timestamp is missing.
    """
    if columns is None:
        if not isinstance(source, Iterator):
            raise UserError(
                f"the columns of {name} are not known before its function returns rows",
                hint='give columns="a BIGINT, ts TIMESTAMP"',
            )
        source, schema = _looked_into(name, source)
        found = ComputedColumns(schema)
    elif isinstance(columns, str):
        found = _declared(columns)
    else:
        found = ComputedColumns(readable_schema(columns, name))
    info = said.info(name, found.schema)
    clauses = TimeClauses(disorder_of(disorder, info.domain))
    timing = timing_of(clauses, info, comes_now=False)
    live = LiveStream(found.schema, info.timestamp, timing, info.changes, computed=found)
    pull: Pull
    if isinstance(source, Iterator):
        pull = IteratorPull(name, found, source)
    else:
        pull = FunctionPull(name, found, source, _seconds(every))
    return Input(info, live, clauses=clauses, origin="rows that are pulled", followed=pull)


def _looked_into(name: str, rows: Iterator[Any]) -> tuple[Iterator[Any], Schema]:
    """The same rows, and their columns, which are those of the first ones."""
    try:
        first = next(rows)
    except StopIteration:
        raise UserError(
            f"the iterator of {name} has no rows", hint='give columns="a BIGINT, ts TIMESTAMP" beside it'
        ) from None
    given = first[0] if isinstance(first, tuple) else first
    if isinstance(given, dict):
        given = [given]
    table = pa.Table.from_pylist(given) if isinstance(given, list) else to_arrow_table(given)
    return chain([first], rows), readable_schema(table.schema, name)


def _declared(columns: str) -> ComputedColumns:
    """Columns as CREATE STREAM has them.

    Raises:
        UserError: the text is malformed.
    """
    try:
        (statement,) = parse(f"CREATE STREAM s ({columns}) FROM push TIMESTAMP BY ARRIVAL AS ` `")
    except LanguageError as error:
        raise UserError(f"columns are '{columns}': {error.message}", hint=error.hint) from None
    assert isinstance(statement, CreateStream)
    if statement.columns is None:
        raise UserError(
            "the columns that rows come with are missing", hint='give columns="a BIGINT, ts TIMESTAMP"'
        )
    try:
        items = bind_computed(statement.computed, statement.columns)
    except LanguageError as error:
        raise UserError(f"columns are '{columns}': {error.message}", hint=error.hint) from None
    return ComputedColumns(statement.columns, items)


def _seconds(every: str | timedelta) -> float:
    """A length of time in seconds.

    Raises:
        UserError: it is not one, or less than a millisecond.
    """
    found = every.total_seconds() if isinstance(every, timedelta) else parse_duration(every).length / 1e6
    if found < 0.001:
        raise UserError(f"every is {every}", hint='give a length of time such as "1 second"')
    return found
