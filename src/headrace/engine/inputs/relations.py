"""The relations of a database: what a table is read from, and whether its key is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Int64Array, integers
from headrace.engine.access.policy import Policy
from headrace.engine.access.secrets import conceal, revealed
from headrace.engine.inputs.declared import opened_or_known
from headrace.engine.inputs.inputs import (
    Input,
    TemporaryFolders,
    format_of,
    origin_of,
    sorted_rows,
    stored_table,
)
from headrace.engine.inputs.read_again import files_again, refresh_clause, table_again, table_of
from headrace.engine.inputs.whole_frames import ReadFrame, read_by_spark, spark_origin
from headrace.errors import NOWHERE, LanguageError, UserError
from headrace.language.catalog import Catalog, RelationInfo, describe_relation
from headrace.language.corrections import named_column
from headrace.language.statements.formats import FORMATS
from headrace.language.statements.streams import CreateRelation, PerClause, TimeClauses, ValuesOf
from headrace.language.syntax import Name
from headrace.runtime.intake.streams import BoundedRelation, BoundedStream, ReadAgain, RereadRelation
from headrace.runtime.sources import SplitSource, open_source
from headrace.runtime.sources.composed.later import LaterSource
from headrace.runtime.sources.composed.tables import digest_of_rows, read_table
from headrace.runtime.sources.files.files import stamps_of
from headrace.runtime.writing.texts import row_texts
from headrace.schema import BIGINT, Schema, sql_type
from headrace.suggestions import did_you_mean
from headrace.time import ALWAYS, INFINITY

MAX_VALUES: Final = 100_000
"""Of so many values of a relation a stream may wait for each: they are part of what it declares."""


@dataclass(frozen=True)
class RelationTable:
    """A relation as the engine keeps it.

    Attributes:
        info: its entry in the catalog.
        relation: what a run reads.
        origin: what its rows are read from, as text; empty for a table that was handed over, which is known
            by its rows.
    """

    info: RelationInfo
    relation: BoundedRelation
    origin: str = ""

    def describe(self) -> str:
        """What a durable store remembers of it, to refuse a run over another relation."""
        origin = self.origin or f"table {digest_of_rows(self.relation.source)}"
        valid = "" if self.info.valid is None else f" valid from {' to '.join(self.info.valid)}"
        changes = self.info.changes
        if changes is not None:
            columns, timestamp = changes.stream.schema, changes.stream.timestamp
            return f"relation {origin} {columns} {changes.by.describe()} by {timestamp}"
        refreshed = " refreshed" if self.info.refreshed else ""
        return f"relation {origin} {self.info.schema}{valid}{refreshed}"


def declared_relation(
    statement: CreateRelation,
    base: Path,
    policy: Policy,
    folders: TemporaryFolders,
    read_frame: ReadFrame,
    *,
    known: Schema | None = None,
) -> RelationTable:
    """The relation that a CREATE RELATION names.

    Args:
        statement: the statement.
        base: the folder that relative paths start from.
        policy: what the statement may reach.
        folders: where the rows are kept that Spark has read.
        read_frame: what has Spark read.
        known: its columns, if a store has it, so that its files need not be there just now.

    Raises:
        PolicyError: the policy does not allow it; like every error, it has the statement's position.
        UserError: the input cannot be read, or two rows have the same key.
    """
    options = dict(statement.options)
    try:
        policy.check_source(statement)
        if statement.format not in FORMATS:
            source, again = read_by_spark(statement, base, policy, folders, read_frame)
            # Without REFRESH it is known by its rows: they must not have changed when a run goes on.
            origin = "" if statement.refresh is None else spark_origin(statement)
            return _table(statement, source, origin, again)
        given = revealed(options)
        opened = partial(
            open_source,
            *(statement.format, given, statement.columns, None, statement.name, base, policy.folders),
            columns_above="",
        )
        source = opened_or_known(opened, known, statement.name)
        again = files_again(
            *(statement.format, given, source.schema, statement.name, base), folders=policy.folders
        )
        return _table(statement, source, origin_of(statement.format, options, base), again)
    except UserError as error:
        error.position = error.position or statement.position
        conceal(error, dict(statement.options))
        raise


def columns_read(made: Input | RelationTable) -> tuple[tuple[str, str], ...]:
    """The columns that the rows of a bounded input come with, each with its type as SQL has it."""
    if isinstance(made, RelationTable):
        found = made.relation.source.schema
    elif isinstance(made.stream, BoundedStream):
        found = made.info.sent
    else:
        return ()
    return tuple((field.name, sql_type(field.type)) for field in found)


def relation_of(
    name: str,
    data: Any,
    key: str | Sequence[str] | None,
    valid: tuple[str, str] | None,
    folders: TemporaryFolders,
    refresh: str | timedelta | None = None,
) -> RelationTable:
    """The relation that a file, a table or a data frame is.

    Args:
        name: its name.
        data: the path of a file, or what `Database.relation` takes.
        key: the columns of its key.
        valid: the columns that begin and end the period of a row.
        folders: where a table is kept that was handed over.
        refresh: when it is read again; see `Database.relation`.

    Raises:
        UserError: the data is not a table, a column is missing, or two rows have the same key.
    """
    clause = refresh_clause(refresh)
    keys = [key] if isinstance(key, str) else list(key or ())
    begin, end = (None, None) if valid is None else map(_name, valid)
    periods = None if begin is None or end is None else (begin, end)
    if isinstance(data, str | Path):
        form, options = format_of(data), {"path": str(data)}
        source = open_source(form, options, None, None, name, Path.cwd(), columns_above="")
        origin = origin_of(form, options, Path.cwd())
        again = files_again(form, options, source.schema, name, Path.cwd())
    else:
        form, origin = "arrow", ""
        if getattr(data, "isStreaming", False):
            raise UserError(f"{name} is a stream of Spark's", hint="register it with db.stream")
        table = sorted_rows(data) if hasattr(data, "orderBy") else table_of(data, name)
        source = stored_table(name, table, folders)
        again = table_again(data, source.schema, name)
    named = tuple(map(_name, keys))
    statement = CreateRelation(name, None, named, form, (), periods, NOWHERE, refresh=clause)
    try:
        return _table(statement, source, origin, again)
    except LanguageError as error:
        raise UserError(error.message, hint=error.hint) from None


def with_values(
    clauses: TimeClauses, catalog: Catalog, relations: Mapping[str, RelationTable]
) -> TimeClauses:
    """The clauses with the values of a relation in the place of its name after `PER column OF`.

    Args:
        clauses: the clauses.
        catalog: the streams and relations that may be named.
        relations: by name.

    Raises:
        LanguageError: there is no such relation or column, or it has too many values.
        SourceError: its input is missing or damaged.
    """
    per = clauses.per
    if per is None or not isinstance(per.listed, ValuesOf):
        return clauses
    name = per.listed.relation
    entry = catalog.find(name.text)
    if not isinstance(entry, RelationInfo) or not entry.is_constant:
        known = [
            one.name for one in catalog.entries.values() if isinstance(one, RelationInfo) and one.is_constant
        ]
        raise LanguageError(
            f"the values after OF are those of a relation whose rows are always valid, not of {name.text}",
            position=name.position,
            hint=did_you_mean(name.text, known) or "write CREATE RELATION first, or list them: OF ('a', 'b')",
        )
    column = _column_of_values(per, per.listed, entry)
    source = relations[entry.name].relation.source
    table = read_table(source, source.size, (column,))
    values = pc.unique(table.column(0).drop_null())
    if len(values) > MAX_VALUES:
        raise LanguageError(
            f"{entry.name} has {len(values):,} values of {column}, and at most {MAX_VALUES:,} can be listed",
            position=name.position,
            hint="leave out OF, and say after how long a value is idle: IDLE AFTER 30 SECONDS",
        )
    return replace(clauses, per=replace(per, listed=tuple(values.to_pylist())))


def _column_of_values(per: PerClause, wanted: ValuesOf, info: RelationInfo) -> str:
    """The column that is named, or the key, or the one that is called as the stream's."""
    if wanted.column is not None:
        return named_column(info.name, info.schema, wanted.column).name
    if len(info.key) == 1:
        return info.key[0]
    alike = Name(per.column.text, wanted.relation.position)
    return named_column(info.name, info.schema, alike).name


def _name(text: str) -> Name:
    return Name(text, NOWHERE)


def _table(statement: CreateRelation, source: SplitSource, origin: str, again: ReadAgain) -> RelationTable:
    info = describe_relation(statement, source.schema)
    if info.key and not isinstance(source, LaterSource):
        _check_key(info, source)
    if statement.refresh is not None:
        every = None if statement.refresh.every is None else statement.refresh.every.length
        relation = RereadRelation(source, read_again=again, every=every, key=info.key)
        return RelationTable(info, relation, origin or "handed over")
    return RelationTable(info, BoundedRelation(source, info.valid, stamps=stamps_of(source.paths)), origin)


def _check_key(info: RelationInfo, source: SplitSource) -> None:
    """See that no two rows that are valid together have the same key.

    Raises:
        UserError: two have, or one has NULL in its key.
    """
    rows = read_table(source, source.size, info.key)
    for name, column in zip(info.key, rows.columns, strict=True):
        if column.null_count:
            raise UserError(f"a row of {info.name} has NULL in its key {name}", hint="leave it out, or KEY")
    if info.valid is None:
        begin, end = np.full(len(rows), ALWAYS), np.full(len(rows), INFINITY)
    else:
        first, last = (column.cast(BIGINT) for column in read_table(source, source.size, info.valid).columns)
        begin, end = integers(first.fill_null(ALWAYS)), integers(last.fill_null(INFINITY))
        kept = np.flatnonzero(begin < end)
        rows, begin, end = rows.take(kept), begin[kept], end[kept]
    found = _repeated(rows, begin, end)
    if found is not None:
        batch = rows.slice(found, 1).combine_chunks().to_batches()[0]
        together = "" if info.valid is None else " that are valid together"
        raise UserError(
            f"two rows of {info.name}{together} have the key {next(row_texts(batch))}",
            hint="leave out KEY, or one of the rows",
        )


def _repeated(keys: pa.Table, begin: Int64Array, end: Int64Array) -> int | None:
    """A row whose key another one has that is valid at the same time, or None."""
    numbered = [*map(str, range(keys.num_columns)), "begin"]
    ordered = keys.append_column("begin", pa.array(begin)).rename_columns(numbered)
    order = pc.sort_indices(ordered, [(name, "ascending") for name in numbered]).to_numpy()
    # Periods of one key in the order of their beginnings overlap if one overlaps the next.
    same = begin[order][1:] < end[order][:-1]
    for column in keys.take(order).columns:
        same &= pc.equal(column.slice(1), column.slice(0, len(same))).to_numpy()
    return int(order[np.argmax(same)]) if same.any() else None
