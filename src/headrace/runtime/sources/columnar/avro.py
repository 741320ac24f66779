"""Avro files as a source; positions are rows."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from datetime import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from headrace.elements import empty_columns
from headrace.errors import SourceError
from headrace.nested import innermost
from headrace.runtime.sources.columnar.typed import TypedPart, TypedSource, open_parts
from headrace.runtime.sources.files.files import overlaps
from headrace.runtime.sources.files.remote import Place, opened_anywhere
from headrace.runtime.sources.rows.contract import BATCH_ROWS
from headrace.runtime.sources.rows.rows import changed
from headrace.runtime.sources.rows.widening import check_columns, find_column
from headrace.schema import MOST_DIGITS, Schema, decimal

_SIMPLE: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
    "time-millis": pa.string(),
    "time-micros": pa.string(),
}


class AvroSource(TypedSource[TypedPart]):
    """Avro files laid end to end; a block of a file is one of ours."""

    kind = "Avro file"

    def batches(self, part: TypedPart, first: int, last: int, wanted: Schema) -> Iterator[pa.RecordBatch]:
        """The rows `[first, last)` of a file, with the file's own types; blocks before them are skipped."""
        chosen = {index: (low, high) for index, low, high in overlaps(part.blocks, first, last)}
        with opened_anywhere(part.path) as file:
            reader = fastavro(part.label).block_reader(file)
            available = schema_of(reader.writer_schema, part.label)
            check_columns(available, wanted, part.label)
            places = [find_column(available.names, field.name, part.label) for field in wanted]
            fields = [available.field(place) for place in places]
            count = -1
            for count, block in enumerate(reader):
                if count >= len(part.blocks) or block.num_records != part.blocks[count]:
                    raise changed(part.label)
                if count in chosen:
                    yield from _batches(block, *chosen[count], fields)
                if count == max(chosen, default=-1):
                    return
            if count + 1 != len(part.blocks):
                raise changed(part.label)


def open_avro(
    options: Mapping[str, str], declared: Schema | None, base: Path, allowed: tuple[Path, ...] | None
) -> AvroSource:
    """Open the Avro files of the option `path`.

    Raises:
        SourceError: a file is missing or damaged, or lacks a declared column; or there is no fastavro.
    """
    return AvroSource(*open_parts("avro", AvroSource.kind, options, declared, base, allowed, _probe))


def fastavro(user: str) -> Any:
    """The package fastavro.

    Args:
        user: what needs it, for the error.

    Raises:
        SourceError: it is not installed.
    """
    try:
        return importlib.import_module("fastavro")
    except ImportError:
        raise SourceError(
            f"{user}: Avro needs the package fastavro", hint="pip install 'headrace[avro]'"
        ) from None


def _probe(path: Place, label: str) -> tuple[pa.Schema, TypedPart]:
    size = path.stat().st_size
    with opened_anywhere(path) as file:
        try:
            reader = fastavro(label).block_reader(file)
            rows = tuple(block.num_records for block in reader)
        except (ValueError, EOFError, KeyError) as error:
            raise OSError(str(error) or type(error).__name__) from error
    total = max(sum(rows), 1)
    return schema_of(reader.writer_schema, label), TypedPart(
        path, label, rows, tuple(size * count // total for count in rows)
    )


def _batches(block: Any, low: int, high: int, fields: list[pa.Field]) -> Iterator[pa.RecordBatch]:
    """The rows `[low, high)` of a block."""
    records = islice(block, low, high)
    while some := list(islice(records, BATCH_ROWS)):
        if not fields:
            yield empty_columns(len(some))
            continue
        columns = [column_of_avro([record[field.name] for record in some], field.type) for field in fields]
        yield pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields])


def column_of_avro(values: list[Any], dtype: pa.DataType) -> pa.Array:
    """Values as fastavro gives them as a column; UUIDs and times of day are texts."""
    if pa.string() in innermost(dtype):
        values = [_as_text(value, dtype) for value in values]
    return pa.array(values, dtype)


def _as_text(value: Any, dtype: pa.DataType) -> Any:
    """A value of a type, with texts in the place of UUIDs and times of day, however deep they are."""
    match value:
        case UUID():
            return str(value)
        case time():
            return value.isoformat()
        case bytes() if dtype == pa.string():
            return str(UUID(bytes=value))
        case list() if pa.types.is_list(dtype):
            return [_as_text(one, dtype.value_type) for one in value]
        case dict() if pa.types.is_map(dtype):
            return {key: _as_text(one, dtype.item_type) for key, one in value.items()}
        case dict() if pa.types.is_struct(dtype):
            return {part.name: _as_text(value[part.name], part.type) for part in dtype}
        case _:
            return value


def schema_of(schema: Any, label: str) -> pa.Schema:
    """The columns that records of a schema have.

    Args:
        schema: as Avro has it.
        label: what it is of, for errors.

    Raises:
        SourceError: it has no records, or is recursive.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise SourceError(f"{label}: its values are not records", hint="write records: fields are columns")
    return pa.schema(list(_type_of(schema, {}, label)))


def _type_of(schema: Any, named: dict[str, pa.DataType | None], label: str) -> pa.DataType:
    """The type of Arrow's for one of Avro's.

    Args:
        schema: the type, as Avro has it.
        named: the types that were named before; None for those that are being read.
        label: the file's name to show.
    """
    typed = partial(_type_of, named=named, label=label)
    match schema:
        case str() if schema in _SIMPLE:
            return _SIMPLE[schema]
        case str() if named.get(schema) is not None:
            return named[schema]
        case list():
            kinds = [one for one in schema if one != "null"]
            if len(kinds) == 1:
                return typed(kinds[0])
        case {"logicalType": "decimal", "precision": int(digits), **more} if digits <= MOST_DIGITS:
            return decimal(digits, int(str(more.get("scale", 0))))
        case {"logicalType": str(logical)} if logical in _LOGICAL:
            return _LOGICAL[logical]
        case {"type": "record", "name": str(name), "fields": list(fields)}:
            named[name] = None
            named[name] = pa.struct([pa.field(one["name"], typed(one["type"])) for one in fields])
            return named[name]
        case {"type": "array", "items": items}:
            return pa.list_(typed(items))
        case {"type": "map", "values": values}:
            return pa.map_(pa.string(), typed(values))
        case {"type": "enum" | "fixed" as kind, "name": str(name)}:
            named[name] = _SIMPLE[kind]
            return _SIMPLE[kind]
        case {"type": inner}:
            return typed(inner)
    raise SourceError(
        f"{label}: a stream cannot have a column of Avro's type {str(schema)[:80]}",
        hint="write one type, or one and null",
    )
