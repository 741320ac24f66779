"""Change records of Debezium in Avro, whose schemas are in a registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from headrace.algebra.debezium import OPERATION, path_in_record
from headrace.language.statements.formats import ChangeRecords
from headrace.runtime.sources.messages.avro import decoded
from headrace.runtime.sources.messages.messages import MessageRows, Messages
from headrace.runtime.sources.messages.registry import UnusableError, head_of, registered
from headrace.runtime.sources.messages.typed import Written, rows_of_records
from headrace.runtime.sources.text.connect_types import arrow_type_of, text_of_time
from headrace.runtime.sources.text.debezium import WITHIN, rows_of_record
from headrace.runtime.sources.text.json_values import Object
from headrace.schema import TIMESTAMP, Field, Schema


@dataclass(frozen=True)
class AvroChanges:
    """Each message is a change record of Debezium, and up to two rows.

    Attributes:
        registry: the address of the schemas; there may be a password in it.
        records: how records are read.
    """

    registry: str = field(repr=False)
    records: ChangeRecords

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages; columns that a table does not have are NULL."""
        return rows_of_records(label, messages, wanted, partial(self._decode, wanted))

    def _decode(self, wanted: Schema, message: bytes | None) -> tuple[Written, list[dict[str, Any]]]:
        if message is None:
            # What follows a deletion, for Kafka alone.
            return Written("nothing", pa.schema([])), []
        of_record, record = decoded(self.registry, message)
        kinds = _kinds(self.registry, head_of(message)[0])
        try:
            rows = rows_of_record(_object(record), wanted, self.records)
        except ValueError as error:
            raise UnusableError(f"the message is not a change record: {error}") from None
        columns = [found for one in wanted if (found := _column(one, of_record.columns, kinds)) is not None]
        made = []
        for row in rows:
            values = dict(zip(wanted.names, row, strict=True))
            made.append(
                {
                    one.name: text_of_time(values[one.name], kinds.get(one.name.lower()), one.type)
                    for one in columns
                }
            )
        return Written(of_record.name, pa.schema(columns)), made


def _object(record: dict[str, Any]) -> Object:
    """A record as JSON's are, as deep as parts of it are looked up."""
    return Object(
        (key, Object(value.items()) if isinstance(value, dict) else value) for key, value in record.items()
    )


def _column(wish: Field, record: pa.Schema, kinds: dict[str, str]) -> pa.Field | None:
    """The column of a row as the record has it, by the name that is wanted; None if it has none."""
    path = path_in_record(wish.name)
    if wish.name == OPERATION:
        return pa.field(wish.name, pa.string())
    if path is None:
        row = next((record.field(side) for side in ("after", "before") if side in record.names), None)
        found = None if row is None else _found(row.type, wish.name)
        if found is None:
            return None
        return pa.field(wish.name, arrow_type_of(found.type, wish.type, kinds.get(wish.name.lower())))
    part: Any = pa.struct(list(record))
    for name in path:
        of = _found(part, name)
        if of is None:
            return None
        part = of.type
    unit = wish.name.rpartition("_")[2].lower()
    is_counted = wish.type == TIMESTAMP and pa.types.is_integer(part) and unit in WITHIN
    return pa.field(wish.name, pa.timestamp(unit, "UTC") if is_counted else part)


def _found(struct: pa.DataType, name: str) -> pa.Field | None:
    if not pa.types.is_struct(struct):
        return None
    exact = [one for one in struct if one.name == name]
    close = exact or [one for one in struct if one.name.lower() == name.lower()]
    return close[0] if len(close) == 1 else None


@lru_cache(maxsize=1_000)
def _kinds(registry: str, number: int) -> dict[str, str]:
    """What Kafka Connect calls the types of a table's columns, by their names in lower case."""
    schema = json.loads(registered(registry, number, "AVRO"))
    return {name.lower(): kind for name, kind in _named(schema)}


def _named(schema: Any) -> Iterator[tuple[str, str]]:
    rows = [one for one in schema.get("fields", ()) if one["name"] in ("before", "after")]
    for row in rows:
        for struct in _alternatives(row["type"]):
            for one in struct.get("fields", ()):
                for kind in _alternatives(one["type"]):
                    if "connect.name" in kind:
                        yield one["name"], str(kind["connect.name"])


def _alternatives(schema: Any) -> list[dict[str, Any]]:
    return [one for one in (schema if isinstance(schema, list) else [schema]) if isinstance(one, dict)]
