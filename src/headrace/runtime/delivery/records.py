"""Rows as the keys and values of a topic's records, in JSON or Avro."""

from __future__ import annotations

import io
import json
import re
from typing import Any, Final, Literal, Protocol

import pyarrow as pa

from headrace.errors import UserError
from headrace.runtime.sources.columnar.avro import fastavro
from headrace.runtime.sources.messages.registry import register
from headrace.runtime.writing.tables import write_table
from headrace.schema import sql_type

RecordPart = Literal["key", "value"]


class Encoder(Protocol):
    """How rows are written."""

    def check(self, schema: pa.Schema) -> None:
        """See that such rows can be written.

        Raises:
            UserError: they cannot.
        """
        ...

    def encode(self, part: RecordPart, rows: pa.Table) -> list[bytes]:
        """Each row as a key or a value.

        Raises:
            UserError: a row cannot be written.
        """
        ...


class JsonRecords:
    """A row is a JSON object."""

    def check(self, schema: pa.Schema) -> None:
        """Every row can be written."""

    def encode(self, part: RecordPart, rows: pa.Table) -> list[bytes]:
        """Each row as an object."""
        text = io.BytesIO()
        write_table(rows, "jsonl", text)
        return text.getvalue().split(b"\n")[:-1]


class AvroRecords:
    """A row is a record of Avro behind the number of its schema, which is registered for the topic.

    The subjects are `<topic>-key` and `<topic>-value`. Each field may be null.

    Args:
        registry: the address of the schema registry; there may be a password in it.
        topic: where the records go.

    Raises:
        UserError: fastavro is not installed.
    """

    def __init__(self, registry: str, topic: str) -> None:
        self._registry = registry
        self._topic = topic
        self._fastavro = fastavro("a TopicSink in Avro")
        self._numbers: dict[tuple[RecordPart, str], tuple[Any, bytes]] = {}

    def check(self, schema: pa.Schema) -> None:
        """See that Avro has the columns' names and types.

        Raises:
            UserError: it has not.
        """
        _schema_of("value", schema)

    def encode(self, part: RecordPart, rows: pa.Table) -> list[bytes]:
        """Each row as a record; the schema is registered when it is first used."""
        parsed, head = self._number(part, rows.schema)
        found = []
        for record in _plain(rows).to_pylist(maps_as_pydicts="strict"):
            data = io.BytesIO()
            data.write(head)
            self._fastavro.schemaless_writer(data, parsed, record)
            found.append(data.getvalue())
        return found

    def _number(self, part: RecordPart, schema: pa.Schema) -> tuple[Any, bytes]:
        text = json.dumps(_schema_of(part, schema))
        if (part, text) not in self._numbers:
            number = register(self._registry, f"{self._topic}-{part}", text)
            parsed = self._fastavro.parse_schema(json.loads(text))
            self._numbers[part, text] = parsed, b"\0" + number.to_bytes(4, "big")
        return self._numbers[part, text]


_SIMPLE: Final[dict[pa.DataType, Any]] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
}


def _schema_of(part: RecordPart, schema: pa.Schema) -> dict[str, Any]:
    """The schema of rows.

    Raises:
        UserError: Avro does not have a column's name or type.
    """
    return _record(f"headrace.{part.capitalize()}", list(schema))


def _record(name: str, fields: list[pa.Field]) -> dict[str, Any]:
    found = []
    for field in fields:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", field.name):
            raise UserError(
                f"Avro has no field with the name '{field.name}'", hint="give the column another one with AS"
            )
        of = _type(f"{name}_{field.name}", field)
        found.append({"name": field.name, "type": ["null", of], "default": None})
    return {"type": "record", "name": name, "fields": found}


def _type(name: str, field: pa.Field) -> Any:
    kind = field.type
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_struct(kind):
        return _record(name, list(kind))
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _type(name, kind.value_field)]}
    if pa.types.is_map(kind) and kind.key_type == pa.string():
        return {"type": "map", "values": ["null", _type(name, kind.item_field)]}
    raise UserError(
        f"Avro has no type for the column {field.name}, {sql_type(kind)}", hint="cast it, or write JSON"
    )


def _plain(rows: pa.Table) -> pa.Table:
    """The same rows; instants as integers, since Python has none after the year 9999."""
    columns = [one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one for one in rows.columns]
    return pa.Table.from_arrays(columns, names=rows.column_names)
