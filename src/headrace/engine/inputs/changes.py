"""Relations that are given by changes: read whole at first, or as a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.algebra.changes import Changes
from headrace.engine.access.policy import Policy
from headrace.engine.access.secrets import conceal
from headrace.engine.inputs.corrections import Said
from headrace.engine.inputs.declared import declared
from headrace.engine.inputs.inputs import Input, TemporaryFolders, in_memory, stream_of_file, warn_of_ties
from headrace.engine.inputs.relations import RelationTable, relation_of
from headrace.errors import NOWHERE, LanguageError, UserError
from headrace.language.catalog import describe_changes
from headrace.language.statements.streams import ByArrival, ChangesClause, CreateRelation, CreateStream
from headrace.language.syntax import Name
from headrace.runtime.intake.streams import BoundedRelation, BoundedStream
from headrace.runtime.sources.files.files import stamps_of
from headrace.schema import Schema


def declared_changes(
    statement: CreateRelation,
    clause: ChangesClause,
    base: Path,
    policy: Policy,
    read_stream: Callable[..., Any],
    *,
    known: Schema | None = None,
) -> Input | RelationTable:
    """The relation that a CREATE RELATION with CHANGES BY names.

    Args:
        statement: the statement.
        clause: what it says of the changes.
        base: the folder that relative paths start from.
        policy: what the statement may reach.
        read_stream: `(format, options, schema)` to a streaming data frame, for Spark's own formats.
        known: as for `declared`.

    Returns:
        A table where the changes can be read whole before any row of a stream, else a stream of changes.

    Raises:
        PolicyError: the policy does not allow it; like every error, it has the statement's position.
        UserError: the input cannot be read, or a column is missing.
    """
    try:
        policy.check_source(statement)
        made = _with_changes(
            statement, clause, declared(clause.stream, base, policy, read_stream, known=known)
        )
    except UserError as error:
        error.position = error.position or statement.position
        conceal(error, dict(statement.options))
        raise
    if isinstance(made, RelationTable) or made.again is None:
        return made

    def again(columns: Schema) -> Input:
        stream = replace(clause.stream, columns=columns)
        wider = replace(statement, columns=columns), replace(clause, stream=stream)
        other = declared_changes(*wider, base, policy, read_stream, known=columns)
        assert isinstance(other, Input)
        return other

    return replace(made, again=again)


def handed_over(
    name: str,
    data: Any,
    key: str | Sequence[str] | None,
    valid: tuple[str, str] | None,
    changes: tuple[str | None, str | ByArrival | None, str | None],
    folders: TemporaryFolders,
    refresh: str | timedelta | None = None,
) -> Input | RelationTable:
    """The relation that `Database.relation` is given.

    Args:
        name: its name.
        data: the path of a file, a table or a data frame.
        key: the columns of its key.
        valid: the columns that begin and end the period of a row, if rows have one.
        changes: of changes the columns with the operation, the instant and the version.
        folders: where a table is kept that was handed over.
        refresh: when it is read again, if it is.

    Raises:
        UserError: the data is not a table, a column is missing, two rows have the same key, or the arguments
            do not fit each other.
    """
    operation, timestamp, version = changes
    if refresh is not None and (valid is not None or operation is not None):
        raise UserError(
            "rows with periods and changes are not refreshed",
            hint="leave out refresh, or valid and changes_by",
        )
    if operation is None:
        if timestamp is not None or version is not None:
            raise UserError(
                "timestamp and version are for changes",
                hint='give changes_by="op", or register events with db.stream',
            )
        return relation_of(name, data, key, valid, folders, refresh)
    if valid is not None or timestamp is None:
        raise UserError(
            "changes have a timestamp and no period", hint='give timestamp="ts", and leave out valid'
        )
    return _changes_of(name, data, key, (operation, version), timestamp, folders)


def _changes_of(
    name: str,
    data: Any,
    key: str | Sequence[str] | None,
    by: tuple[str, str | None],
    timestamp: str | ByArrival,
    folders: TemporaryFolders,
) -> Input | RelationTable:
    """The relation that the changes in a file, a table or a data frame yield.

    Args:
        name: its name.
        data: the path of a file, or what `Database.stream` takes.
        key: the columns of its key.
        by: the column with the operation, and that with the version.
        timestamp: the column with the instant of a change.
        folders: where a table is kept that was handed over.

    Raises:
        UserError: the data is not a table, a column is missing, or no key is given.
    """
    keys = [key] if isinstance(key, str) else list(key or ())
    if not keys:
        raise UserError("changes are by key, and there is none", hint='give key="id", for example')
    if isinstance(data, str | Path):
        stream = stream_of_file(name, data, timestamp)
    else:
        stream = in_memory(name, data, Said(timestamp), None, folders)
    operation, version = by
    of = CreateStream(name, None, "arrow", (), timestamp, stream.clauses, NOWHERE, NOWHERE)
    clause = ChangesClause(Name(operation, NOWHERE), None if version is None else Name(version, NOWHERE), of)
    named = tuple(Name(column, NOWHERE) for column in keys)
    try:
        made = _with_changes(
            CreateRelation(name, None, named, "arrow", (), None, NOWHERE, clause), clause, stream
        )
    except LanguageError as error:
        raise UserError(error.message, hint=error.hint) from None
    if hasattr(data, "isStreaming"):
        warn_of_ties(name, Changes(operation, tuple(keys), version))
    return made


def _with_changes(statement: CreateRelation, clause: ChangesClause, stream: Input) -> Input | RelationTable:
    """The relation that a stream of changes yields.

    A stream that ends, and of whose time nothing is said, is read whole at first, in whatever order it is. Of
    one that never ends its rows are in order if nothing is said, and it follows the streams that it is read
    with.

    Raises:
        LanguageError: a column is missing, or cannot be what it is named for.
    """
    read, timestamp = stream.stream, stream.info.timestamp
    timeless = stream.clauses.is_timeless
    untimed = timeless and not stream.info.by_arrival and stream.max_rows is None
    read_first = untimed and isinstance(read, BoundedStream)
    if read_first and stream.clauses.letters is not None:
        raise LanguageError(
            f"the changes of {statement.name} are read before any row of a stream; their dead "
            "letters are not kept",
            position=statement.position,
            hint="leave out DEAD LETTERS KEEP, or say how they are timed, as with DISORDER 1 DAY",
        )
    info = describe_changes(statement, clause, stream.info, read_first=read_first)
    assert info.changes is not None
    by = info.changes.by
    if read_first and isinstance(read, BoundedStream):
        stamps = stamps_of(read.source.paths)
        return RelationTable(info, BoundedRelation(read.source, (timestamp, None), by, stamps), stream.origin)
    changing = replace(stream, stream=replace(read, changes=by), relation=info)
    return changing.retimed(stream.clauses) if changing.is_live else changing
