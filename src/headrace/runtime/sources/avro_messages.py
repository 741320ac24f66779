"""Messages of Avro whose schemas are in a registry: a zero, the schema's number in four bytes, and the value.

The form is that of *Confluent Schema Registry*, section *Wire format*. What has a number
never changes.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, concat_rows, record_batch
from headrace.errors import SourceError
from headrace.runtime.sources.avro import fastavro, schema_of
from headrace.runtime.sources.contract import Read, Rejected
from headrace.runtime.sources.messages import Messages, Rows, rejected
from headrace.runtime.sources.rows import typed_rows
from headrace.runtime.sources.widening import converts
from headrace.schema import BIGINT, Field, Schema, sql_type

USER: Final = "FROM kafka with the format avro"
_SECONDS: Final = 10.0
"""How long a registry has for an answer."""
_HEAD: Final = 5
"""So many bytes are before the value."""
_NUMBER: Final = "#"
"""The column with the number of a row's message, while rows are made."""
_DAMAGED: Final = (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error)
"""What fastavro raises for bytes that are not of a schema."""


class _UnusableError(Exception):
    """Messages of a schema cannot be read."""


@dataclass(frozen=True)
class AvroMessages:
    """Each message is a record of Avro, and a row.

    Attributes:
        registry: the address of the schemas; there may be a password in it.
    """

    registry: str = field(repr=False)

    def read(self, label: str, messages: Messages, wanted: Schema) -> Rows:
        """The rows of some messages; columns that a message's schema does not have are NULL."""
        refused: dict[int, Rejected] = {}
        found: list[tuple[int, int, dict[str, Any]]] = []
        for number in range(len(messages)):
            try:
                schema, value = _head_of(messages.values[number])
                found.append((schema, number, self._record(schema, value)))
            except _UnusableError as error:
                refused[number] = rejected(label, messages, number, str(error))
        parts = []
        for schema, some in groupby(found, lambda one: one[0]):
            numbers, records = zip(*((number, record) for _, number, record in some), strict=True)
            try:
                read = self._rows(schema, numbers, records, wanted)
            except _UnusableError as error:
                refused |= {number: rejected(label, messages, number, str(error)) for number in numbers}
                continue
            kept = read.rows.column(len(wanted)).to_numpy()
            parts.append(read.rows)
            for number, one in zip(sorted({*numbers} - {*kept.tolist()}), read.rejected, strict=True):
                refused[number] = Rejected(one.text, one.reason, f"{label}:{messages.offsets[number]}")
        return _whole(parts, wanted, tuple(refused[number] for number in sorted(refused)))

    def _record(self, schema: int, value: bytes) -> dict[str, Any]:
        parsed, _ = _schema(self.registry, schema)
        try:
            record: dict[str, Any] = fastavro(USER).schemaless_reader(io.BytesIO(value), parsed, None)
        except _DAMAGED:
            raise _UnusableError(f"the message is not what its schema {schema} says") from None
        return record

    def _rows(
        self, schema: int, numbers: Sequence[int], records: Sequence[dict[str, Any]], wanted: Schema
    ) -> Read:
        """The rows of records of one schema, with their numbers as last column."""
        _, available = _schema(self.registry, schema)
        columns = [_column(records, one, available, schema) for one in wanted]
        numbered = Schema((*wanted, Field(_NUMBER, BIGINT)))
        batch = pa.RecordBatch.from_arrays([*columns, pa.array(numbers, BIGINT)], names=list(numbered.names))
        return typed_rows(batch, numbered, "", 0)


def _whole(parts: list[pa.RecordBatch], wanted: Schema, refused: tuple[Rejected, ...]) -> Rows:
    if not parts:
        return Read(record_batch([pa.array([], one.type) for one in wanted], wanted, 0), refused), _NONE
    rows = concat_rows(parts)
    numbers: Int64Array = rows.column(len(wanted)).to_numpy()
    return Read(record_batch(rows.columns[: len(wanted)], wanted, len(rows)), refused), numbers


_NONE: Final = np.empty(0, np.int64)


def _head_of(value: bytes | None) -> tuple[int, bytes]:
    """The number of a message's schema, and what is behind it."""
    if value is None:
        raise _UnusableError("the message has no value")
    if len(value) < _HEAD or value[0]:
        raise _UnusableError("the message does not begin with the number of a schema of a registry")
    return int.from_bytes(value[1:_HEAD], "big"), value[_HEAD:]


def _column(records: Sequence[dict[str, Any]], wish: Field, available: pa.Schema, schema: int) -> pa.Array:
    names = available.names if wish.name in available.names else [name.lower() for name in available.names]
    name = wish.name if wish.name in available.names else wish.name.lower()
    if names.count(name) != 1:
        return pa.nulls(len(records), wish.type)
    known = available.field(names.index(name))
    if not converts(known.type, wish.type):
        raise _UnusableError(
            f"{known.name} is {known.type} in schema {schema}, and not {sql_type(wish.type)}"
        )
    return pa.array([record[known.name] for record in records], known.type)


@lru_cache(maxsize=1_000)
def _schema(registry: str, number: int) -> tuple[Any, pa.Schema]:
    """A schema as fastavro has it, and its columns.

    Raises:
        SourceError: the registry does not answer.
        _UnusableError: it has no such schema, or that is not one of records.
    """
    found = _answer(registry, number)
    avro = fastavro(USER)
    try:
        answer = json.loads(found)
        if answer.get("schemaType", "AVRO") != "AVRO":
            raise _UnusableError(f"schema {number} is not one of Avro")
        parsed = json.loads(answer["schema"])
        return avro.parse_schema(parsed), schema_of(parsed, f"schema {number}")
    except SourceError as error:
        raise _UnusableError(error.message) from None
    except (*_DAMAGED, avro.schema.SchemaParseException) as error:
        raise _UnusableError(f"schema {number} cannot be read: {error}") from None


_AWAY: Final = "check the option schema_registry"


def _answer(registry: str, number: int) -> bytes:
    """What the registry says of a schema."""
    parts = urlsplit(registry)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(
        f"{parts.scheme}://{host}{parts.path.rstrip('/')}/schemas/ids/{number}",
        headers={"Accept": "application/vnd.schemaregistry.v1+json, application/json"},
    )
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            found: bytes = answer.read()
            return found
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise _UnusableError(f"the registry has no schema {number}") from None
        raise SourceError(f"the schema registry at {host} answers {error.code}", hint=_AWAY) from None
    except OSError as error:
        raise SourceError(f"the schema registry at {host} cannot be reached: {error}", hint=_AWAY) from None
