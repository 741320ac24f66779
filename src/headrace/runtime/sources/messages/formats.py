"""Messages as rows, by the formats that need nothing but the message: JSON, changes, CSV and raw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace.elements import BoolArray, Int64Array, record_batch
from headrace.kernels.jit import BYTES, INT1, TRUTHS_OUT, kernel
from headrace.runtime.sources.messages.messages import (
    MessageRows,
    Messages,
    Pieces,
    decoded,
    rejected,
    without,
)
from headrace.runtime.sources.messages.registry import HEAD
from headrace.runtime.sources.rows.contract import Read, Rejected
from headrace.runtime.sources.rows.written_times import ISO, WrittenTimes
from headrace.runtime.sources.text.blocks import Block, TextPart
from headrace.runtime.sources.text.csv import CsvFormat, parse_block
from headrace.runtime.sources.text.debezium import RecordSource
from headrace.runtime.sources.text.json import parse_placed
from headrace.schema import Schema

_LINE_FEED = ord("\n")
_SPACE = ord(" ")


@dataclass(frozen=True)
class JsonMessages:
    """Each message is a JSON object, and a row.

    Attributes:
        times: how times are written.
        needed: columns of which an object has one at least, or is rejected; none if it may lack all.
    """

    times: WrittenTimes = ISO
    needed: tuple[str, ...] = ()

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages."""
        lines, refused = _as_lines(label, messages)
        read, starts = parse_placed(lines, wanted, self.times, self.needed)
        return Read(read.rows, (*refused, *read.rejected)), lines.numbers(starts)


@dataclass(frozen=True)
class ChangeMessages:
    """Each message is a change record of Debezium, and up to two rows.

    Attributes:
        source: reads them.
    """

    source: RecordSource

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages."""
        # Without a value is what follows a deletion for Kafka alone.
        lines, refused = _as_lines(label, messages, passes_nulls=True)
        read, starts = self.source.parse_placed(lines, wanted)
        return Read(read.rows, (*refused, *read.rejected)), lines.numbers(starts)


@dataclass(frozen=True)
class CsvMessages:
    """Each message is a line of CSV, and a row.

    Attributes:
        names: of its fields, in order.
        form: how they are written.
    """

    names: tuple[str, ...]
    form: CsvFormat

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages."""
        lines, refused = _as_lines(label, messages, one_line=True)
        read = parse_block(lines, self.names, wanted, self.form)
        refused = (*refused, *read.rejected)
        # Each message is one row or one dead letter.
        wrong = [int(one.place.rpartition(":")[2]) for one in refused]
        return Read(read.rows, refused), np.flatnonzero(~np.isin(messages.offsets, wrong))


@dataclass(frozen=True)
class RawMessages:
    """Each message is a row as it is: the value of one column, NULL where it has none."""

    def read(self, label: str, messages: Messages, wanted: Schema) -> MessageRows:
        """The rows of some messages."""
        numbers = np.arange(len(messages))
        if not len(wanted):
            return Read(record_batch([], wanted, len(messages))), numbers
        (field,) = wanted
        column, wrong = decoded(messages.values.column(), field)
        rows = Read(record_batch([column], wanted, len(messages)))
        return without(wrong, f"{field.name} is not UTF-8 text", rows, numbers, label, messages)


@dataclass(frozen=True, eq=False)
class _Lines(Block):
    """Messages as lines, so that what is wrong with one is known by its offset.

    Attributes:
        messages: they.
    """

    messages: Messages

    def numbers(self, starts: Int64Array) -> Int64Array:
        """The messages of which some bytes are."""
        found: Int64Array = np.searchsorted(self.messages.values.begins, starts, side="right") - 1
        return found

    def _place(self, start: int) -> str:
        return str(self.messages.offsets[self.numbers(np.array([start]))[0]])


def _as_lines(
    label: str, messages: Messages, *, passes_nulls: bool = False, one_line: bool = False
) -> tuple[_Lines, tuple[Rejected, ...]]:
    """Messages as lines, blank ones for those that are rejected.

    Args:
        label: what they are of.
        messages: they.
        passes_nulls: whether a message without a value is passed over.
        one_line: whether a message of several lines is rejected; otherwise they are put together.
    """
    values, wrong = messages.values if one_line else _without_heads(messages.values), dict[int, str]()
    for number in np.flatnonzero(blank(values.data, values.begins, values.lengths)).tolist():
        is_null = values.lengths[number] < 0
        if not (is_null and passes_nulls):
            wrong[number] = "the message has no value" if is_null else "the message is empty"
    text = values.data.tobytes()
    if text.count(b"\n") > len(values) or wrong:
        data, ends = values.data.copy(), values.begins + np.maximum(values.lengths, 0)
        inside = np.setdiff1d(np.flatnonzero(data == _LINE_FEED), ends)
        if one_line:
            owners = np.searchsorted(values.begins, inside, side="right") - 1
            for number in owners[inside < ends[owners] - 1].tolist():
                wrong[number] = "the message has more than one line"
        else:
            # Between the parts of a value a line feed means as much as a space; within a text there is none.
            data[inside] = _SPACE
        for number in wrong:
            # Lines without anything are passed over.
            data[values.begins[number] : ends[number]] = _LINE_FEED
        text = data.tobytes()
    part = TextPart(Path(label), label, len(text), 0)
    refused = tuple(rejected(label, messages, number, wrong[number]) for number in sorted(wrong))
    return _Lines(part, 0, text, messages), refused


def _without_heads(values: Pieces) -> Pieces:
    """Values with blanks in the place of the number that a schema registry puts before a text of JSON."""
    begins = values.begins[values.lengths >= HEAD]
    begins = begins[values.data[begins] == 0]
    if not len(begins):
        return values
    data = values.data.copy()
    data[(begins[:, None] + np.arange(HEAD)).ravel()] = _SPACE
    return replace(values, data=data)


def blank(data: npt.NDArray[np.uint8], begins: Int64Array, lengths: Int64Array) -> BoolArray:
    """Which pieces have nothing but spaces, or nothing at all; bool[n]."""
    found = np.empty(len(begins), np.bool_)
    _find_blank(data, begins, lengths, found)
    return found


@kernel(BYTES, INT1, INT1, TRUTHS_OUT)
def _find_blank(
    data: npt.NDArray[np.uint8], begins: Int64Array, lengths: Int64Array, found: BoolArray
) -> None:
    for piece in range(len(begins)):
        found[piece] = True
        for place in range(begins[piece], begins[piece] + lengths[piece]):
            # The bytes of a tab, of line ends and the like follow one another.
            if data[place] != _SPACE and not 9 <= data[place] <= 13:
                found[piece] = False
                break
