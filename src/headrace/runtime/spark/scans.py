"""File streams that our own tasks read: Spark lists the files of a batch, and no row passes through the JVM.

Only where the rows are known to be the same both ways (decision 0022): the frame is a bare scan of Parquet
files, with or without a selection of columns, with options and settings that change no value; and every file
has the columns with the very types that Spark was given for them. All else is left to Spark, file by file
looked at before: whatever is wrong with a file, Spark says it, or makes of it what it always did.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import SourceError
from headrace.runtime.sources.columnar.parquet import ParquetSource, open_file, part_of
from headrace.runtime.sources.composed.partitions import Partitions
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.spark.checksums import has_its_checksums
from headrace.runtime.spark.file_log import files_of_batch
from headrace.schema import Schema

_MOST_FILES: Final = 1_000
"""A batch of more files is left to Spark: the driver looks at every file before the epoch."""

_OPTIONS: Final = frozenset(
    (
        "discardcachedinputratio",
        "filenameonly",
        "latestfirst",
        "maxbytespertrigger",
        "maxcachedfiles",
        "maxfileage",
        "maxfilespertrigger",
        "mergeschema",
        "path",
        "pathglobfilter",
        "recursivefilelookup",
    )
)
"""Options that say which files there are and when they are read, and not what is in them."""

_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.extensions": "",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
}
"""Settings under which Spark gives the values that are in a file, and the values that they must have."""

_TYPES: Final[Mapping[str, tuple[pa.DataType, str]]] = {
    "boolean": (pa.bool_(), "BOOLEAN"),
    "tinyint": (pa.int8(), "INT32"),
    "smallint": (pa.int16(), "INT32"),
    "int": (pa.int32(), "INT32"),
    "bigint": (pa.int64(), "INT64"),
    "float": (pa.float32(), "FLOAT"),
    "double": (pa.float64(), "DOUBLE"),
    "date": (pa.date32(), "INT32"),
}
"""Spark's types by name: as Arrow and as Parquet have them."""

_WHOLE: Final = re.compile(r"0|-?[1-9]\d*", re.ASCII)
_OF_FOLDERS: Final[Mapping[str, re.Pattern[str]]] = {
    "string": re.compile(".+", re.DOTALL),
    "tinyint": _WHOLE,
    "smallint": _WHOLE,
    "int": _WHOLE,
    "bigint": _WHOLE,
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
}
"""The types that columns of folders may have, and the texts of which everybody makes the same values."""

_LEGACY: Final = frozenset((b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"))
"""Notes in a file that was written with the calendar of before."""

_PATTERN: Final = frozenset("*?[]{}\\")
"""Characters that make a path a pattern."""

_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True)
class FileBatches:
    """The batches of a streaming query over Parquet files, as sources for our own tasks.

    Attributes:
        checkpoint: the query's.
        schema: the columns that are read, as the stream has them.
        types: Spark's types of these columns, by name.
        root: the folder below which folders such as `k=1` are columns; None where Spark takes none from them.
        names: all columns of the scan.
    """

    checkpoint: Path
    schema: Schema
    types: Mapping[str, str]
    root: Path | None = None
    names: frozenset[str] = frozenset()

    def source(self, number: int) -> SplitSource | None:
        """What reads a batch that Spark has planned; None where Spark must read it."""
        # Whatever is wrong with the log or a file, Spark finds it as well.
        with suppress(OSError, ValueError, KeyError, TypeError, pa.ArrowException, SourceError):
            files = files_of_batch(self.checkpoint, number)
            if len(files) > _MOST_FILES or len(set(files)) < len(files):
                return None
            folders = Partitions.of([str(path) for path in files], f"{self.root}/")
            if not self._are_columns(files, folders):
                return None
            named = folders.names
            parts = []
            for path in files:
                with open_file(path) as file:
                    if not _is_plain(path) or not self._is_alike(file, named):
                        return None
                    parts.append(part_of(file, path, str(path)))
            plain = Schema(tuple(field for field in self.schema if field.name not in named))
            return folders.added(ParquetSource(plain, tuple(parts)), self.schema)
        return None

    def _are_columns(self, files: Sequence[Path], folders: Partitions) -> bool:
        """Whether folders name no columns, or all of them the same ones, which the scan has."""
        named = folders.columns[0] if folders.columns else {}
        if not named:
            return not any("=" in folder for path in files for folder in path.parts[:-1])
        if self.root is None or not self.names.issuperset(named):
            return False
        return all(
            # No folder between them is anything else.
            list(columns) == list(named)
            and path.is_relative_to(self.root)
            and len(path.relative_to(self.root).parts) == len(named) + 1
            and all(_is_value(text, self.types.get(name)) for name, text in columns.items())
            for path, columns in zip(files, folders.columns, strict=True)
        ) and not any("=" in folder for folder in self.root.parts)

    def _is_alike(self, file: pq.ParquetFile, named: Container[str]) -> bool:
        """Whether our reader and Spark's give the same rows of a file, in folders that name some columns."""
        types = {name: kind for name, kind in self.types.items() if name not in named}
        return not _is_rebased(file, types) and all(_has(file, name, kind) for name, kind in types.items())


def file_batches(frame: Any, schema: Schema, columns: Sequence[str], checkpoint: Path) -> FileBatches | None:
    """What reads the batches of a streaming frame as files; None where Spark must read them.

    Args:
        frame: the streaming data frame.
        schema: the stream's columns.
        columns: those that are read.
        checkpoint: the folder of Spark's own log.
    """
    relation = _scanned(frame._jdf.queryExecution().analyzed())
    if relation is None or not _is_plain_parquet(relation.dataSource()):
        return None
    settings = frame.sparkSession.conf
    if any(settings.get(name, value) != value for name, value in _SETTINGS.items()):
        return None
    wanted = schema.select(tuple(map(schema.names.index, columns)))
    types = {name: frame.schema[name].dataType.simpleString() for name in wanted.names}
    names = frozenset(column.name() for column in _each(relation.output()))
    return FileBatches(checkpoint, wanted, types, _root(relation.dataSource()), names)


def _scanned(plan: Any) -> Any:
    """The file stream of which a plan gives every row and some columns; None if it does anything else."""
    match plan.nodeName():
        case "StreamingRelation":
            return plan
        case "EventTimeWatermark" | "SubqueryAlias":
            return _scanned(plan.child())
        case "Project" if all(_class(value) == "AttributeReference" for value in _each(plan.projectList())):
            return _scanned(plan.child())
        case _:
            return None


def _is_plain_parquet(source: Any) -> bool:
    names = source.options().keySet().toSeq()
    return (
        source.className() == "parquet"
        and source.partitionColumns().size() == 0
        and all(name.lower() in _OPTIONS for name in _each(names))
    )


def _root(source: Any) -> Path | None:
    """The folder of a source, below which Spark takes columns from folders; None where it takes none.

    Below a pattern it takes none, and neither does it where it looks into folders of any name.
    """
    options = source.options()
    given = {name.lower(): options.apply(name) for name in _each(options.keySet().toSeq())}
    path = given.get("path", "")
    if "recursivefilelookup" in given or not path.startswith("/") or _PATTERN.intersection(path):
        return None
    return Path(os.path.normpath(path)) if ".." not in path else None


def _is_value(text: str | None, kind: str | None) -> bool:
    """Whether a text in the name of a folder is the same value for Spark and for us, or is not read."""
    return text is None or kind is None or (kind in _OF_FOLDERS and bool(_OF_FOLDERS[kind].fullmatch(text)))


def _each(sequence: Any) -> Iterator[Any]:
    """The items of a Scala sequence."""
    for number in range(sequence.size()):
        yield sequence.apply(number)


def _class(value: Any) -> str:
    name: str = value.getClass().getSimpleName()
    return name


def _is_plain(path: Path) -> bool:
    """Whether Spark makes nothing of where a file is.

    It leaves out names with certain beginnings, and compares a file with Hadoop's checksums where they are
    beside it; so do we.
    """
    return not path.name.startswith(("_", ".")) and has_its_checksums(path)


def _is_rebased(file: pq.ParquetFile, names: Container[str]) -> bool:
    """Whether Spark takes a file's dates for those of the calendar before 1582, as old Sparks wrote them.

    Those of INT96 were written so for one version longer. Versions are compared as texts, as Spark does it.

    Args:
        file: the file.
        names: the columns that are read.
    """
    notes = file.metadata.metadata or {}
    version = notes.get(b"org.apache.spark.version")
    leaves = map(file.schema.column, range(len(file.schema)))
    has_int96 = any(leaf.physical_type == "INT96" and leaf.path in names for leaf in leaves)
    first = b"3.1.0" if has_int96 else b"3.0.0"
    return version is not None and (version < first or not _LEGACY.isdisjoint(notes))


def _has(file: pq.ParquetFile, name: str, kind: str) -> bool:
    """Whether a file has a column of which both readers make the same values.

    Args:
        file: the file.
        name: the column's.
        kind: Spark's name of the type that the frame has.
    """
    names = file.schema_arrow.names
    leaves = [leaf for leaf in map(file.schema.column, range(len(file.schema))) if leaf.path == name]
    if len(leaves) != 1 or [other for other in names if other.lower() == name.lower()] != [name]:
        return False
    (leaf,), found = leaves, file.schema_arrow.field(name).type
    if kind == "string":
        return found in (pa.string(), pa.large_string()) and leaf.logical_type.type == "STRING"
    if kind in ("timestamp", "timestamp_ntz"):
        return pa.types.is_timestamp(found) and _is_time(found, leaf.physical_type, kind == "timestamp")
    if decimal := _DECIMAL.fullmatch(kind):
        return bool(found == pa.decimal128(int(decimal[1]), int(decimal[2])))
    return (found, leaf.physical_type) == _TYPES.get(kind)


def _is_time(found: pa.DataType, physical: str, zoned: bool) -> bool:
    """Whether a column of times has the instants that Spark makes of them, whole microseconds.

    Args:
        found: its type as Arrow has it.
        physical: its type in the file. INT96, which Spark writes itself unless it is told otherwise, has
            no zone, and is of UTC.
        zoned: whether the frame has a TIMESTAMP, and not a TIMESTAMP_NTZ.
    """
    if physical == "INT96":
        return zoned
    return physical == "INT64" and found.unit in ("us", "ms") and (found.tz is not None) == zoned
