"""Tables in memory as inputs: brought to Arrow, and written to a file that the tasks can map."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.errors import SourceError
from headrace.operators.state.keys import hash_rows, normalise
from headrace.runtime.sources.rows.contract import BATCH_ROWS, Rejected, SplitSource
from headrace.schema import Schema


def to_arrow_table(data: object) -> pa.Table:
    """An Arrow table from one, a record batch, a batch reader, a data frame, or a list of dictionaries.

    Any object with Arrow's C stream interface will do. The index of a pandas data frame is left out. A
    bounded data frame of Spark's, a lazy one of Polars, and an Arrow dataset are collected in this process.

    Raises:
        SourceError: the data is nothing of the kind, or has columns that Arrow cannot hold.
    """
    try:
        maker = type(data).__module__.partition(".")[0]
        if maker == "pandas":
            table = pa.Table.from_pandas(data, preserve_index=False)
        elif maker == "pyspark":
            table = _collected(data)
        elif maker == "polars" and hasattr(data, "collect"):
            table = pa.table(data.collect())
        elif isinstance(data, pa.RecordBatchReader):
            table = data.read_all()
        elif maker == "pyarrow" and hasattr(data, "scanner"):
            table = data.scanner().to_table()
        elif isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
            table = _of_rows(data)
        elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            table = pa.table(data)
        else:
            raise SourceError(
                f"a {type(data).__name__} cannot be used as a table",
                hint="give an Arrow table or dataset, a data frame of pandas, Polars or Spark, or a list of "
                "dictionaries",
            )
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise SourceError(f"the {type(data).__name__} cannot be made an Arrow table: {error}") from error
    return table.replace_schema_metadata(None)


def _of_rows(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows with the columns of all of them; a row that lacks one has NULL there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])


def _collected(frame: Any) -> pa.Table:
    """The rows of a bounded data frame of Spark's.

    PySpark's own C stream interface fails for TIMESTAMPs, which have no zone there.
    """
    names = frame.columns
    # By number, since Spark hands over no table with a dot in a name.
    numbered = frame.toDF(*(f"c{place}" for place in range(len(names))))
    return numbered.toArrow().rename_columns(names)


def filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table in the columns of a schema, with NULL in those that it does not have.

    Rows of a stream may be older than its columns: ALTER STREAM adds further ones.

    Args:
        table: columns of the same types where both have them.
        schema: the columns, in their order.
    """
    if table.schema.names == schema.names:
        return table
    known = {*table.schema.names}
    columns = [
        table.column(one.name)
        if one.name in known
        else pa.chunked_array([pa.nulls(table.num_rows, one.type)])
        for one in schema
    ]
    return pa.table(columns, schema=schema)


def as_one(tables: Sequence[pa.Table]) -> pa.Table:
    """Rows of a stream in one table, with the columns of the last, which are the most."""
    return pa.concat_tables([filled(table, tables[-1].schema) for table in tables])


def read_table(source: SplitSource, end: int, names: Iterable[str]) -> pa.Table:
    """Some columns of the rows of a source's positions `[0, end)`, without those that cannot be read.

    Raises:
        SourceError: the input is missing or damaged.
    """
    names = tuple(names)
    types = {field.name: field.type for field in source.schema}
    batches = [read.rows for read in source.read(0, end, names)]
    return pa.Table.from_batches(batches, pa.schema([(name, types[name]) for name in names])).combine_chunks()


def read_rows(source: SplitSource, schema: Schema) -> tuple[pa.RecordBatch, tuple[Rejected, ...]]:
    """All rows of a source as one batch, and what could not be read.

    Args:
        source: the source, with at least the columns of the schema.
        schema: the columns.

    Raises:
        SourceError: the input is missing or damaged.
    """
    reads = list(source.read(0, source.size, schema.names))
    fields = pa.schema([(one.name, one.type) for one in schema])
    table = pa.Table.from_batches([read.rows for read in reads], fields)
    columns = [pa.concat_arrays(column.chunks or [pa.array([], column.type)]) for column in table.columns]
    rows = pa.RecordBatch.from_arrays(columns, schema=fields)
    return rows, tuple(rejected for read in reads for rejected in read.rejected)


def digest_of_rows(source: SplitSource) -> str:
    """Identifies all rows of a source and their order, whatever batches they come in."""
    digest = hashlib.sha256()
    for read in source.read(0, source.size, source.schema.names):
        columns = [normalise(column) for column in read.rows.columns]
        digest.update(hash_rows(columns, read.rows.num_rows).tobytes())
    return digest.hexdigest()[:16]


def write_arrow(table: pa.Table, path: Path) -> None:
    """Write a table to an Arrow IPC file that the source `arrow` can map; nothing half-written stays.

    Nobody but its owner can read the file.
    """
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.unlink(missing_ok=True)
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        with pa.OSFile(str(unfinished), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=BATCH_ROWS)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
