"""Messages of a topic as columns and as rows: what Kafka says of each beside what is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Int64Array, concat_rows, record_batch
from headrace.errors import HeadraceError
from headrace.runtime.outside.trouble import is_away
from headrace.runtime.sources.messages.memory import NO_TIME
from headrace.runtime.sources.rows.contract import TEXT_LIMIT, Places, Read, Rejected
from headrace.schema import BIGINT, BINARY, STRING, TIMESTAMP, Field, Schema

METADATA: Final[Mapping[str, tuple[pa.DataType, ...]]] = MappingProxyType(
    {
        "_key": (STRING, BINARY),
        "_topic": (STRING,),
        "_partition": (BIGINT,),
        "_offset": (BIGINT,),
        "_timestamp": (TIMESTAMP,),
        "_headers": (pa.map_(STRING, STRING), pa.map_(STRING, BINARY)),
    }
)
"""The columns that Kafka gives beside a message, each with the types that it may be declared with."""

Beside: TypeAlias = Set[str]
"""Names of some of them."""

Header: TypeAlias = tuple[str, bytes | None]

MessageRows: TypeAlias = tuple[Read, Int64Array]
"""Rows, and for each the number of its message."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Values or keys, laid end to end, with a line feed after each.

    Attributes:
        data: uint8[bytes].
        begins: int64[n], where each begins.
        lengths: int64[n], its bytes, -1 where there is none.
    """

    data: npt.NDArray[np.uint8]
    begins: Int64Array
    lengths: Int64Array

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, number: int) -> bytes | None:
        begin, length = int(self.begins[number]), int(self.lengths[number])
        return None if length < 0 else self.data[begin : begin + length].tobytes()

    def take(self, numbers: Int64Array) -> Pieces:
        """Some of them.

        Args:
            numbers: int64[n], which.
        """
        sizes = np.maximum(self.lengths[numbers], 0) + 1
        ends = np.cumsum(sizes)
        begins = ends - sizes
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.begins[numbers] - begins, sizes)
        return Pieces(self.data[places], begins, self.lengths[numbers])

    def column(self) -> pa.BinaryArray:
        """Them as a column."""
        # Each and the line feed behind it are two values, of which the second one is left out.
        bounds = np.empty(2 * len(self) + 1, np.int32)
        bounds[:-1:2], bounds[1::2] = self.begins, self.begins + np.maximum(self.lengths, 0)
        bounds[-1] = len(self.data)
        both = pa.Array.from_buffers(BINARY, 2 * len(self), [None, *map(pa.py_buffer, (bounds, self.data))])
        there = pa.array(self.lengths >= 0)
        return pc.if_else(there, both.take(pa.array(np.arange(0, 2 * len(self), 2))), pa.scalar(None, BINARY))


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages of a partition.

    Attributes:
        topic: its name.
        partition: the partition's number.
        offsets: int64[n].
        values: theirs.
        keys: theirs, if they are wanted.
        times: int64[n], when they were made, microseconds since 1970-01-01 UTC or `NO_TIME`; if wanted.
        headers: those of each, if wanted.
    """

    topic: str
    partition: int
    offsets: Int64Array
    values: Pieces
    keys: Pieces | None = None
    times: Int64Array | None = None
    headers: Sequence[Sequence[Header]] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, first: int, last: int) -> Messages:
        """The messages `[first, last)`."""
        chosen = np.arange(first, last)
        return Messages(
            self.topic,
            self.partition,
            self.offsets[first:last],
            self.values.take(chosen),
            None if self.keys is None else self.keys.take(chosen),
            None if self.times is None else self.times[first:last],
            None if self.headers is None else self.headers[first:last],
        )


class MessageFormat(Protocol):
    """How messages are read; a frozen dataclass that can be pickled."""

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages.

        Args:
            label: what the messages are of, for dead letters.
            messages: they.
            wanted: the columns, without those of `METADATA`.
        """
        ...


def rows_of(form: MessageFormat, messages: Messages, wanted: Schema) -> Read:
    """The rows of some messages.

    Args:
        form: how they are read.
        messages: they, with what is wanted beside.
        wanted: the columns, those of `METADATA` among them.
    """
    label = f"{messages.topic}/{messages.partition}"
    plain = Schema(tuple(field for field in wanted if field.name not in METADATA))
    read, numbers = _read(form, label, messages, plain)
    if len(plain) == len(wanted):
        return _placed(read, label, messages.offsets[numbers])
    given = dict(zip(plain.names, read.rows.columns, strict=True))
    wrong = np.zeros(len(numbers), np.bool_)
    for field in wanted:
        if field.name not in given:
            given[field.name], bad = _metadata(messages, field, numbers)
            wrong |= bad
    rows = record_batch([given[name] for name in wanted.names], wanted, len(numbers))
    reason = "the key is not UTF-8 text"
    read, numbers = without(wrong, reason, Read(rows, read.rejected), numbers, label, messages)
    return _placed(read, label, messages.offsets[numbers])


def _placed(read: Read, label: str, offsets: Int64Array) -> Read:
    """Rows with the places of their messages.

    Args:
        read: the rows.
        label: what the messages are of.
        offsets: int64[rows], theirs.
    """
    places = Places(lambda rows: [f"{label}:{offset}" for offset in offsets[rows].tolist()])
    return Read(read.rows, read.rejected, places)


def _read(form: MessageFormat, label: str, messages: Messages, wanted: Schema) -> MessageRows:
    """What a format reads; a message for which it raises whatever it may is rejected alone.

    Libraries raise much for bytes that they were not made for, and the other messages have nothing to do with
    it. The half with such a message is halved again.
    """
    try:
        return form.read(label, messages, wanted)
    except (HeadraceError, MemoryError):
        raise
    except Exception as error:
        if is_away(error):
            raise
        if len(messages) == 1:
            reason = f"the message cannot be read: {type(error).__name__}: {error}"
            empty = record_batch([pa.array([], field.type) for field in wanted], wanted, 0)
            return Read(empty, (rejected(label, messages, 0, reason),)), np.empty(0, np.int64)
    middle = len(messages) // 2
    first, first_numbers = _read(form, label, messages.slice(0, middle), wanted)
    second, second_numbers = _read(form, label, messages.slice(middle, len(messages)), wanted)
    rows = concat_rows([first.rows, second.rows])
    read = Read(rows, (*first.rejected, *second.rejected))
    return read, np.concatenate([first_numbers, second_numbers + middle])


def without(
    wrong: BoolArray, reason: str, read: Read, numbers: Int64Array, label: str, messages: Messages
) -> MessageRows:
    """Rows without those that are wrong, whose messages are rejected.

    Args:
        wrong: bool[rows].
        reason: what is wrong with them.
        read, numbers: the rows, and for each the number of its message.
        label: what the messages are of.
        messages: they.
    """
    if not wrong.any():
        return read, numbers
    refused = tuple(rejected(label, messages, number, reason) for number in numbers[wrong].tolist())
    good = np.flatnonzero(~wrong)
    return Read(read.rows.take(pa.array(good)), (*read.rejected, *refused)), numbers[good]


def rejected(label: str, messages: Messages, number: int, reason: str) -> Rejected:
    """A message as a dead letter.

    Args:
        label: what it is of.
        messages: those that it is of.
        number: which it is.
        reason: what is wrong with it.
    """
    data = messages.values[number] or b""
    text = data[: 4 * TEXT_LIMIT].decode("utf-8", "replace")[:TEXT_LIMIT]
    if len(data) > 4 * TEXT_LIMIT:
        text = f"{text}... ({len(data)} bytes in all)"
    return Rejected(text, reason, f"{label}:{messages.offsets[number]}")


def decoded(values: pa.BinaryArray, field: Field) -> tuple[pa.Array, BoolArray]:
    """Bytes as a column of BINARY, or of STRING; and which of them are not text, bool[n]."""
    fine = np.zeros(len(values), np.bool_)
    if field.type == BINARY:
        return values, fine
    try:
        return values.cast(STRING), fine
    except pa.ArrowInvalid:
        wrong = np.array([not _is_text(value) for value in values.to_pylist()])
    return pc.if_else(pa.array(wrong), pa.scalar(None, BINARY), values).cast(STRING), wrong


def _metadata(messages: Messages, field: Field, numbers: Int64Array) -> tuple[pa.Array, BoolArray]:
    """A column of what Kafka says of messages, and which of them it cannot hold."""
    fine = np.zeros(len(numbers), np.bool_)
    match field.name:
        case "_key":
            assert messages.keys is not None
            return decoded(messages.keys.column().take(pa.array(numbers)), field)
        case "_topic":
            return pa.repeat(pa.scalar(messages.topic), len(numbers)), fine
        case "_partition":
            return pa.array(np.full(len(numbers), messages.partition, np.int64), field.type), fine
        case "_offset":
            return pa.array(messages.offsets[numbers], field.type), fine
        case "_timestamp":
            assert messages.times is not None
            times = messages.times[numbers]
            return pa.array(times, pa.int64(), mask=times == NO_TIME).cast(field.type), fine
        case _:
            assert messages.headers is not None
            return _headers([messages.headers[number] for number in numbers.tolist()], field), fine


def _headers(headers: Sequence[Sequence[Header]], field: Field) -> pa.Array:
    """Headers as MAPs; what is no text has the form `\\xff` where texts are wanted.

    A MAP has its keys in order, and of headers of one name the last one counts.
    """
    if field.type.item_type == BINARY:
        return pa.array([sorted(dict(one).items()) for one in headers], field.type)
    texts = (
        {key: None if value is None else value.decode("utf-8", "backslashreplace") for key, value in one}
        for one in headers
    )
    return pa.array([sorted(one.items()) for one in texts], field.type)


def _is_text(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
