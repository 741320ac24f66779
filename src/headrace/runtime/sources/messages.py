"""Messages of a topic as rows: what is in them by format, and what Kafka says of each beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, record_batch
from headrace.runtime.sources.blocks import Block, TextPart
from headrace.runtime.sources.contract import TEXT_LIMIT, Read, Rejected
from headrace.runtime.sources.debezium import RecordSource
from headrace.runtime.sources.json import parse_placed
from headrace.schema import BIGINT, BINARY, STRING, TIMESTAMP, Field, Schema

METADATA: Final[Mapping[str, tuple[pa.DataType, ...]]] = MappingProxyType(
    {
        "_key": (STRING, BINARY),
        "_partition": (BIGINT,),
        "_offset": (BIGINT,),
        "_timestamp": (TIMESTAMP,),
        "_headers": (pa.map_(STRING, STRING),),
    }
)
"""The columns that Kafka gives beside a message, each with the types that it may be declared with."""

Message: TypeAlias = Any
"""One of confluent-kafka's."""

Rows: TypeAlias = tuple[Read, Int64Array]
"""Rows, and for each the number of its message."""


class MessageFormat(Protocol):
    """How messages are read; a frozen dataclass that can be pickled."""

    def read(self, label: str, messages: Sequence[Message], wanted: Schema) -> Rows:
        """The rows of some messages.

        Args:
            label: what the messages are of, for dead letters.
            messages: they, without errors.
            wanted: the columns, without those of `METADATA`.
        """
        ...


@dataclass(frozen=True)
class JsonMessages:
    """Each message is a JSON object, and a row."""

    def read(self, label: str, messages: Sequence[Message], wanted: Schema) -> Rows:
        """The rows of some messages; columns are named as the objects' keys are."""
        lines, refused = _as_lines(label, messages)
        read, starts = parse_placed(lines, list(wanted.names), wanted)
        return Read(read.rows, (*refused, *read.rejected)), lines.numbers(starts)


@dataclass(frozen=True)
class ChangeMessages:
    """Each message is a change record of Debezium, and up to two rows.

    Attributes:
        source: reads them.
    """

    source: RecordSource

    def read(self, label: str, messages: Sequence[Message], wanted: Schema) -> Rows:
        """The rows of some messages; which message a row is of is not known."""
        # Without a value is what follows a deletion for Kafka alone.
        lines, refused = _as_lines(label, [one for one in messages if one.value() is not None])
        read = self.source.parse(lines, list(wanted.names), wanted)
        return Read(read.rows, (*refused, *read.rejected)), np.empty(0, np.int64)


@dataclass(frozen=True)
class RawMessages:
    """Each message is a row as it is: the value of one column, NULL where it has none."""

    def read(self, label: str, messages: Sequence[Message], wanted: Schema) -> Rows:
        """The rows of some messages."""
        numbers = np.arange(len(messages))
        if not len(wanted):
            return Read(record_batch([], wanted, len(messages))), numbers
        (field,) = wanted
        column, wrong = _decoded([one.value() for one in messages], field)
        rows = record_batch([column], wanted, len(messages))
        return _without(wrong, f"{field.name} is not UTF-8 text", Read(rows), numbers, label, messages)


def rows_of(
    form: MessageFormat, topic: str, partition: int, messages: Sequence[Message], wanted: Schema
) -> Read:
    """The rows of some messages of a partition.

    Args:
        form: how they are read.
        topic: its name, for dead letters.
        partition: its number.
        messages: they, without errors.
        wanted: the columns, those of `METADATA` among them.
    """
    label = f"{topic}/{partition}"
    plain = Schema(tuple(field for field in wanted if field.name not in METADATA))
    read, numbers = form.read(label, messages, plain)
    if len(plain) == len(wanted):
        return read
    given = dict(zip(plain.names, read.rows.columns, strict=True))
    chosen = [messages[number] for number in numbers.tolist()]
    wrong: set[int] = set()
    for field in wanted:
        if field.name not in given:
            given[field.name], bad = _metadata(chosen, field)
            wrong |= bad
    rows = record_batch([given[name] for name in wanted.names], wanted, len(chosen))
    reason = "the key or a header is not UTF-8 text"
    return _without(wrong, reason, Read(rows, read.rejected), numbers, label, messages)[0]


def _without(
    wrong: set[int], reason: str, read: Read, numbers: Int64Array, label: str, messages: Sequence[Message]
) -> Rows:
    """Rows without those that are wrong, whose messages are rejected."""
    if not wrong:
        return read, numbers
    places = sorted(wrong)
    good = np.delete(np.arange(len(numbers)), places)
    refused = tuple(rejected(label, messages[numbers[place]], reason) for place in places)
    return Read(read.rows.take(pa.array(good)), (*read.rejected, *refused)), numbers[good]


def rejected(label: str, message: Message, reason: str) -> Rejected:
    """A message as a dead letter.

    Args:
        label: what it is of.
        message: it.
        reason: what is wrong with it.
    """
    data: bytes = message.value() or b""
    text = data[: 4 * TEXT_LIMIT].decode("utf-8", "replace")[:TEXT_LIMIT]
    if len(data) > 4 * TEXT_LIMIT:
        text = f"{text}... ({len(data)} bytes in all)"
    return Rejected(text, reason, f"{label}:{message.offset()}")


@dataclass(frozen=True, eq=False)
class _Lines(Block):
    """Messages as lines, so that what is wrong with one is known by its offset.

    Attributes:
        messages: they.
        taken: int64[n], the number of each line's message.
        begins: int64[n], the byte at which each line begins.
    """

    messages: Sequence[Message]
    taken: Int64Array
    begins: Int64Array

    def numbers(self, starts: Int64Array) -> Int64Array:
        """The messages of which some bytes are."""
        found: Int64Array = self.taken[np.searchsorted(self.begins, starts, side="right") - 1]
        return found

    def _place(self, start: int) -> str:
        return str(self.messages[self.numbers(np.array([start]))[0]].offset())


def _as_lines(label: str, messages: Sequence[Message]) -> tuple[_Lines, tuple[Rejected, ...]]:
    """Messages as lines; those are rejected in which nothing is."""
    values = [one.value() for one in messages]
    taken, refused = np.arange(len(values)), list[Rejected]()
    if not all(values) or any(map(bytes.isspace, values)):
        kept = []
        for number, value in enumerate(values):
            if value is not None and value.strip():
                kept.append(number)
                continue
            reason = "the message has no value" if value is None else "the message is empty"
            refused.append(rejected(label, messages[number], reason))
        taken, values = np.array(kept, np.int64), [values[number] for number in kept]
    data = b"\n".join(values)
    if data.count(b"\n") >= max(len(values), 1):
        # Between the parts of a value a line feed means as much as a space, and within a text there is none.
        values = [value.replace(b"\n", b" ") for value in values]
        data = b"\n".join(values)
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    begins = np.cumsum(lengths + 1) - lengths - 1
    part = TextPart(Path(label), label, len(data), 0)
    return _Lines(part, 0, data, messages, taken, begins), tuple(refused)


def _metadata(messages: Sequence[Message], field: Field) -> tuple[pa.Array, set[int]]:
    """A column of what Kafka says of messages, and which of them it cannot hold."""
    match field.name:
        case "_key":
            return _decoded([one.key() for one in messages], field)
        case "_partition":
            values: list[object] = [one.partition() for one in messages]
        case "_offset":
            values = [one.offset() for one in messages]
        case "_timestamp":
            times = (one.timestamp() for one in messages)
            values = [1_000 * at if kind else None for kind, at in times]
            return pa.array(values, pa.int64()).cast(field.type), set()
        case _:
            return _headers(messages, field)
    return pa.array(values, field.type), set()


def _headers(messages: Sequence[Message], field: Field) -> tuple[pa.Array, set[int]]:
    found: list[list[tuple[str, str | None]]] = []
    wrong: set[int] = set()
    for number, one in enumerate(messages):
        try:
            # A MAP has its keys in order; of headers of one name the last one counts.
            named = {key: None if value is None else value.decode() for key, value in one.headers() or ()}
        except UnicodeDecodeError:
            named = {}
            wrong.add(number)
        found.append(sorted(named.items()))
    return pa.array(found, field.type), wrong


def _decoded(values: Sequence[bytes | None], field: Field) -> tuple[pa.Array, set[int]]:
    """Bytes as a column of BINARY, or of STRING; and which of them are not text."""
    if field.type == BINARY:
        return pa.array(values, BINARY), set()
    try:
        return pa.array(values, BINARY).cast(STRING), set()
    except pa.ArrowInvalid:
        wrong = {number for number, value in enumerate(values) if value is not None and not _is_text(value)}
    kept = [None if number in wrong else value for number, value in enumerate(values)]
    return pa.array(kept, BINARY).cast(STRING), wrong


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
