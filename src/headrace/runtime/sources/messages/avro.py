"""Messages of Avro whose schemas are in a registry."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from headrace.errors import SourceError
from headrace.runtime.sources.columnar.avro import fastavro, schema_of
from headrace.runtime.sources.messages.messages import MessageRows, Messages
from headrace.runtime.sources.messages.registry import UnusableError, head_of, registered
from headrace.runtime.sources.messages.typed import Written, rows_of_records
from headrace.schema import Schema

USER: Final = "FROM kafka with the format avro"
_DAMAGED: Final = (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error)
"""What fastavro raises for bytes that are not of a schema."""


@dataclass(frozen=True)
class AvroMessages:
    """Each message is a record of Avro, and a row.

    Attributes:
        registry: the address of the schemas; there may be a password in it.
    """

    registry: str = field(repr=False)

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages; columns that a message's schema does not have are NULL."""
        return rows_of_records(label, messages, wanted, self._decode)

    def _decode(self, message: bytes | None) -> tuple[Written, list[dict[str, Any]]]:
        written, record = decoded(self.registry, message)
        return written, [record]


def decoded(registry: str, message: bytes | None) -> tuple[Written, dict[str, Any]]:
    """The schema of a message, and its record.

    Args:
        registry: the address of the schemas.
        message: with the number of its schema before it.

    Raises:
        SourceError: the registry does not answer.
        UnusableError: it has no such schema, or the message is not of it.
    """
    number, value = head_of(message)
    parsed, written = _schema(registry, number)
    try:
        record: dict[str, Any] = fastavro(USER).schemaless_reader(io.BytesIO(value), parsed, None)
    except _DAMAGED:
        raise UnusableError(f"the message is not what its {written.name} says") from None
    return written, record


@lru_cache(maxsize=1_000)
def _schema(registry: str, number: int) -> tuple[Any, Written]:
    """A schema as fastavro has it, and its columns.

    Raises:
        SourceError: the registry does not answer.
        UnusableError: it has no such schema, or that is not one of records.
    """
    text, avro, name = registered(registry, number, "AVRO"), fastavro(USER), f"schema {number}"
    try:
        parsed = json.loads(text)
        return avro.parse_schema(parsed), Written(name, schema_of(parsed, name))
    except SourceError as error:
        raise UnusableError(error.message) from None
    except (*_DAMAGED, avro.schema.SchemaParseException) as error:
        raise UnusableError(f"{name} cannot be read: {error}") from None
