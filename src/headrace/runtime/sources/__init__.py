"""Split sources: bounded inputs, any task can read any part of them, straight into Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.errors import SourceError
from headrace.language.statements.formats import FILE_FORMATS, SPLIT_FORMATS, ChangeRecords
from headrace.runtime.sources.columnar.arrow import open_arrow
from headrace.runtime.sources.columnar.avro import open_avro
from headrace.runtime.sources.columnar.orc import open_orc
from headrace.runtime.sources.columnar.parquet import open_parquet
from headrace.runtime.sources.composed.nexmark import open_nexmark
from headrace.runtime.sources.composed.partitions import FileSource, Partitions
from headrace.runtime.sources.composed.tables import to_arrow_table, write_arrow
from headrace.runtime.sources.files.files import list_files
from headrace.runtime.sources.files.remote import account_of
from headrace.runtime.sources.rows.contract import Read, Rejected, SplitSource
from headrace.runtime.sources.text.csv import open_csv
from headrace.runtime.sources.text.debezium import open_records
from headrace.runtime.sources.text.json import open_json
from headrace.runtime.sources.text.plain import open_text
from headrace.runtime.sources.text.samples import other_delimiter
from headrace.schema import Schema
from headrace.suggestions import did_you_mean

__all__ = ["Read", "Rejected", "SplitSource", "open_source", "to_arrow_table", "write_arrow"]


def open_source(
    format: str,
    options: Mapping[str, str],
    declared: Schema | None,
    timestamp: str | None,
    stream_name: str,
    base: Path,
    allowed: tuple[Path, ...] | None = None,
    *,
    records: ChangeRecords | None = None,
    columns_above: str | None = None,
) -> SplitSource:
    """Open the input of a stream.

    Args:
        format: one of `SPLIT_FORMATS`, in lower case.
        options: the options by name in lower case, as text.
        declared: the columns as declared, or None to take those of the input.
        timestamp: the column that the stream is timed by; None where that need not be looked at.
        stream_name: the stream's name.
        base: the folder at which relative paths start.
        allowed: the folders that files must be in; None for any file.
        records: how change records of Debezium are read; None where the input has rows.
        columns_above: folders with names such as `day=2026-01-01` give files a column `day`; what the files'
            names to show begin with that nobody has written as a path. None where no folder does so.

    Raises:
        SourceError: the input is missing, damaged, or has not the columns, or an option is wrong.
        PolicyError: a file is not in an allowed folder.
    """
    if columns_above is not None and format in FILE_FORMATS and records is None and "path" in options:
        source: SplitSource = _with_folders(format, options, declared, base, allowed, columns_above)
    elif format == "json" and records is not None and timestamp is not None:
        source = open_records(options, declared, base, allowed, records, timestamp)
    elif format == "nexmark":
        source = open_nexmark(options, declared, stream_name)
    else:
        source = _open_files(format, options, declared, base, allowed)
    if timestamp is not None:
        _check_timestamp(source.schema, timestamp)
    return source


def _with_folders(
    format: str,
    options: Mapping[str, str],
    declared: Schema | None,
    base: Path,
    allowed: tuple[Path, ...] | None,
    above: str,
) -> SplitSource:
    """Files, and the columns that the names of their folders have."""
    listed = list_files(options["path"], base, allowed, account_of(options))
    partitions = Partitions.of([label for _, label in listed], above)
    if not partitions.names:
        return _open_files(format, options, declared, base, allowed)
    source = _open_files(format, options, partitions.without(declared), base, allowed)
    if source.paths != tuple(path for path, _ in listed):
        raise SourceError(f"{options['path']}: files have changed while they were listed", hint="run again")
    return partitions.added(source, declared)


def _open_files(
    format: str,
    options: Mapping[str, str],
    declared: Schema | None,
    base: Path,
    allowed: tuple[Path, ...] | None,
) -> FileSource:
    """The files of the option `path`."""
    match format:
        case "parquet":
            return open_parquet(options, declared, base, allowed)
        case "csv":
            return open_csv(options, declared, base, allowed)
        case "json":
            return open_json(options, declared, base, allowed)
        case "text":
            return open_text(options, declared, base, allowed)
        case "arrow":
            return open_arrow(options, declared, base, allowed)
        case "orc":
            return open_orc(options, declared, base, allowed)
        case "avro":
            return open_avro(options, declared, base, allowed)
        case _:
            hint = f"the formats are {', '.join(SPLIT_FORMATS)}"
            raise SourceError(f"there is no format {format}", hint=hint)


def _check_timestamp(schema: Schema, timestamp: str) -> None:
    place = schema.find(timestamp)
    if place is None:
        listed = f"the columns are {', '.join(schema.names)}"
        hint = other_delimiter(schema.names) or did_you_mean(timestamp, schema.names) or listed
        raise SourceError(f"there is no column {timestamp} to time the stream by", hint=hint)
