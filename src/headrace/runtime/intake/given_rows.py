"""Rows that are handed over in Python, as tables with a stream's columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.algebra.changes import Changes
from headrace.conversion import MisfitError, cast_exactly, column_of
from headrace.errors import SourceError, UserError, message_of, shown
from headrace.nested import innermost
from headrace.runtime.intake.further_columns import note_left_out, statement_for
from headrace.runtime.intake.streams import LiveStream
from headrace.runtime.intake.times import read_texts, with_times
from headrace.runtime.sources.composed.tables import to_arrow_table
from headrace.runtime.sources.rows.rows import typed_rows
from headrace.runtime.sources.rows.widening import check_columns, find_column
from headrace.schema import STRING, TIMESTAMP, Field, Schema
from headrace.suggestions import did_you_mean


@dataclass(frozen=True)
class Omissible:
    """The columns that rows need; the others may be left out, and are NULL.

    Attributes:
        needed: the columns without which there is no row.
        refuses_unknown: whether rows with columns that the stream does not have are refused.
        computed: the columns that rows do not come with, by arrival among them; values in them are left out.
    """

    needed: tuple[str, ...]
    refuses_unknown: bool = False
    computed: tuple[str, ...] = ()

    @classmethod
    def of(cls, stream: LiveStream) -> Omissible:
        """Those of a stream."""
        changes, needed = stream.changes, (stream.timestamp,)
        if isinstance(changes, Changes):
            version = () if changes.version is None else (changes.version,)
            needed = (*changes.columns, *needed, *version)
        given = stream.columns.given
        computed = (name for name in (*stream.schema.names, stream.timestamp) if given.find(name) is None)
        return cls(needed, stream.refuses_unknown, tuple(dict.fromkeys(computed)))

    def check_unknown(self, names: Iterable[str], schema: Schema, label: str) -> None:
        """Refuse columns that the stream does not have, or note once that their values are left out.

        Args:
            names: the columns that are there.
            schema: the columns of the stream.
            label: its name.

        Raises:
            SourceError: there is one, and the stream refuses it.
        """
        for name in names:
            if schema.find(name) is not None or name.lower() in {one.lower() for one in self.computed}:
                continue
            if self.refuses_unknown:
                hint = f"leave it out, or write {statement_for(label, name)}"
                raise SourceError(f"{label} has no column {name}", hint=hint)
            note_left_out(label, name)

    def unneeded(self, names: Iterable[str], schema: Schema) -> list[Field]:
        """The columns that are not there and need not be; none where no column is there.

        Args:
            names: the columns that are there.
            schema: the columns of the stream.
        """
        given, needed = {name.lower() for name in names}, {name.lower() for name in self.needed}
        missing = [field for field in schema if field.name.lower() not in given | needed]
        return missing if len(missing) + len(needed) < len(schema) or given & needed else []

    def completed(self, table: pa.Table, schema: Schema) -> pa.Table:
        """A table with NULL in the columns that it does not need."""
        for field in self.unneeded(table.column_names, schema):
            table = table.append_column(field.name, pa.nulls(len(table), field.type))
        return table


def table_of(rows: Any, schema: Schema, name: str, omissible: Omissible | None = None) -> pa.Table:
    """Rows as a table with a stream's columns.

    Args:
        rows: a table or data frame, a list of dictionaries, or one dictionary.
        schema: the columns.
        name: the stream, for errors.
        omissible: which columns may be left out; None for none.

    Raises:
        UserError: the rows do not fit the columns.
    """
    if isinstance(rows, Mapping):
        rows = [rows]
    if isinstance(rows, Sequence):
        return table_of_dictionaries(rows, schema, name, omissible)
    try:
        table = to_arrow_table(rows)
        _refuse_misspelt(table.column_names, schema, name)
        if omissible is not None:
            omissible.check_unknown(table.column_names, schema, name)
        table = table if omissible is None else omissible.completed(table, schema)
        table = with_times(table, schema, name)
        check_columns(table.schema, schema, name)
        places = [find_column(table.column_names, column, name) for column in schema.names]
        batches = table.select(places).combine_chunks().to_batches()
        reads = [typed_rows(_exact(part, name), schema, name, 0) for part in batches]
    except pa.ArrowException as error:
        raise UserError(f"these rows do not fit {name} {schema}: {message_of(error)}") from error
    for read in reads:
        if read.rejected:
            raise UserError(
                f"these rows do not fit {name}: {read.rejected[0].reason}: {read.rejected[0].text}"
            )
    return pa.Table.from_batches([read.rows for read in reads], schema.arrow())


def _exact(rows: pa.RecordBatch, label: str) -> pa.RecordBatch:
    """The rows with times in microseconds, where they are in nanoseconds.

    Raises:
        UserError: a time is between two microseconds.
    """
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            try:
                rows = rows.set_column(place, field.name, cast_exactly(rows.column(place), TIMESTAMP))
            except pa.ArrowInvalid as error:
                raise UserError(
                    f"these rows do not fit {label}: {field.name} has nanoseconds: {message_of(error)}",
                    hint="round it to microseconds",
                ) from error
    return rows


def table_of_dictionaries(
    rows: Sequence[Any], schema: Schema, label: str, omissible: Omissible | None = None
) -> pa.Table:
    """A table of rows given as dictionaries; where only some rows name a column, it is NULL in the others.

    Args:
        rows: the dictionaries.
        schema: the columns of the stream.
        label: its name, for errors.
        omissible: as for `table_of`.

    Raises:
        UserError: a row is not a dictionary, or has a value that its column cannot hold.
        SourceError: no row names a column, as when its name is misspelt.
    """
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise UserError(
                f"these rows do not fit {label}: row {number} is not a dictionary: {shown(row)}",
                hint=f"give a dictionary, a list of them, or a table, with the columns {schema}",
            )
    names = list(dict.fromkeys(name for row in rows for name in row)) or list(schema.names)
    for name in names:
        if not isinstance(name, str):
            raise UserError(f"these rows do not fit {label}: the name of a column is not text: {shown(name)}")
    for given in dict.fromkeys(frozenset(row) for row in rows):
        _refuse_misspelt(sorted(given), schema, label)
    if omissible is not None:
        omissible.check_unknown(names, schema, label)
        names += [field.name for field in omissible.unneeded(names, schema)]
    found = [names[find_column(names, field.name, label)] for field in schema]
    columns = []
    for name, field in zip(found, schema, strict=True):
        try:
            values = _with_json([row.get(name) for row in rows], field.type)
            columns.append(column_of(read_texts(values, field.type), field.type))
        except MisfitError as error:
            raise UserError(
                f"these rows do not fit {label}: row {error.place + 1}: {field.name} is {error.reason}",
                hint=error.hint,
            ) from error
        except pa.ArrowException as error:
            raise UserError(f"these rows do not fit {label}: {field.name}: {message_of(error)}") from error
    return pa.Table.from_arrays(columns, schema=schema.arrow())


def _with_json(values: list[Any], dtype: pa.DataType) -> list[Any]:
    """The values of a column; what is no text where a STRING is wanted is its JSON, as in files of JSON."""
    if STRING not in innermost(dtype) or {*map(type, values)} <= {str, type(None)}:
        return values
    return [_texts_in(value, dtype) for value in values]


def _texts_in(value: Any, dtype: pa.DataType) -> Any:
    """A value with JSON wherever a STRING is wanted; what has no JSON stays as it is."""
    if dtype == STRING and isinstance(value, bool | int | float | list | dict):
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            return value
    if pa.types.is_list(dtype) and isinstance(value, list):
        return [_texts_in(one, dtype.value_type) for one in value]
    if pa.types.is_map(dtype) and isinstance(value, dict):
        return {key: _texts_in(one, dtype.item_type) for key, one in value.items()}
    if pa.types.is_struct(dtype) and isinstance(value, dict):
        types = {part.name.lower(): part.type for part in dtype}
        return {
            key: _texts_in(one, types.get(key.lower(), pa.null())) if isinstance(key, str) else one
            for key, one in value.items()
        }
    return value


def _refuse_misspelt(names: Sequence[str], schema: Schema, label: str) -> None:
    """Refuse rows that lack a column of the stream and have another one of nearly its name.

    Raises:
        SourceError: a name is misspelt, as far as one can tell.
    """
    given = {name.lower() for name in names}
    missing = [field.name for field in schema if field.name.lower() not in given]
    for name in names:
        hint = did_you_mean(name, missing) if schema.find(name) is None else None
        if hint is not None:
            raise SourceError(f"{label} has no column {name}", hint=hint)
