"""What Spark reads whole for a relation, such as a table of a database by JDBC."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.engine.access.policy import Policy
from headrace.engine.access.secrets import hidden, open_options, revealed
from headrace.engine.inputs.inputs import TemporaryFolders, sorted_rows, stored_table
from headrace.engine.inputs.read_again import table_again, table_of
from headrace.errors import HeadraceError, SourceError
from headrace.language.statements.streams import CreateRelation
from headrace.runtime.intake.streams import ReadAgain
from headrace.runtime.sources import SplitSource
from headrace.schema import Schema

ReadFrame = Callable[[str, Mapping[str, str]], Any]
"""`(format, options)` to a bounded data frame of Spark's."""


def read_by_spark(
    statement: CreateRelation, base: Path, policy: Policy, folders: TemporaryFolders, read_frame: ReadFrame
) -> tuple[SplitSource, ReadAgain]:
    """The rows that one of Spark's formats has now, in a file, and what reads them again.

    Nothing that is secret among the options is in an error.

    Args:
        statement: the statement.
        base: the folder that a relative path starts from.
        policy: what the statement may reach.
        folders: where the rows are kept.
        read_frame: what has Spark read.

    Raises:
        UserError: Spark cannot read it, or a column is missing.
    """
    options = revealed(policy.spark_options(dict(statement.options), base))
    name = statement.name
    read = partial(_rows, statement.format, options, statement.columns, name, read_frame)
    source = stored_table(name, read(), folders, statement.columns)
    return source, table_again(read, source.schema, name)


def spark_origin(statement: CreateRelation) -> str:
    """What one of Spark's formats reads, as a digest; another password reads the same."""
    told = sorted(open_options(dict(statement.options)).items())
    return f"{statement.format} {hashlib.sha256(repr(told).encode()).hexdigest()[:16]}"


def _rows(
    format: str, options: Mapping[str, str], columns: Schema | None, name: str, read_frame: ReadFrame
) -> pa.Table:
    """The rows ordered by all columns, since a database has them in any order."""

    def read() -> pa.Table:
        wanted = None if columns is None else {column.lower() for column in columns.names}
        return sorted_rows(read_frame(format, options), wanted)

    try:
        return table_of(read, name)
    except HeadraceError as error:
        hint = None if error.hint is None else hidden(error.hint, options)
        message = hidden(error.message, options)
    # Outside of it, so that a traceback does not show what Spark has said.
    raise SourceError(message, hint=hint)
