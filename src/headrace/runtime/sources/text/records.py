"""Kernels that find the rows of a text and say which are complete on their own.

Arrow's readers take a whole text at once: an unclosed quote makes the CSV reader swallow the lines below, and
the JSON reader reads objects across lines (and ends the process on a bare `null`). What one bad line does to
others would then depend on where the text was cut. These kernels look at each line alone, so that bad lines
can be taken out before.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from headrace.elements import BytesArray, Int64Array
from headrace.kernels.jit import BYTES, INT1, TRUTH, inner, kernel

GOOD: Final = 0
UNCLOSED: Final = 1
"""A quote (CSV), string, list or object (JSON) that is still open where the line ends."""
STRAY_RETURN: Final = 2
"""A carriage return inside a CSV row."""
NO_OBJECT: Final = 3
"""A JSON line that is anything else than one object."""
TOO_DEEP: Final = 4
"""A JSON value nested more than `MAX_DEPTH` levels deep."""

ESCAPED_END: Final = 6
"""A CSV row whose last character makes the line end a part of it."""
AFTER_QUOTE: Final = 7
"""A CSV row with text between the closing quote of a field and the next delimiter."""
UNUSUAL: Final = 5
"""A JSON object with a number that JSON libraries judge differently: NaN, infinite or nearly so."""

MAX_DEPTH: Final = 100

_NEWLINE: Final = ord("\n")
_RETURN: Final = ord("\r")
_BLANK: Final = ord(" ")
_TAB: Final = ord("\t")
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_OBJECT: Final = ord("{")
_EXPONENT: Final = (ord("e"), ord("E"))
_SIGNS: Final = (ord("+"), ord("-"))
_NOT_FINITE: Final = (ord("I"), ord("N"))
_ZERO: Final = ord("0")
_NINE: Final = ord("9")

_SPACE: Final = 1
_DIGIT: Final = 2
_STRING: Final = 3
_OPENING: Final = 4
_CLOSING: Final = 5
_NUMBER_MARK: Final = 6
_KINDS: Final = np.zeros(256, np.uint8)
"""What a byte of JSON outside strings is; 0 for all that does not matter here."""
for _kind, _bytes in enumerate((b" \t\r", b"0123456789", b'"', b"{[", b"}]", b"eEIN"), start=_SPACE):
    _KINDS[list(_bytes)] = _kind

_LONG_NUMBER: Final = 300
_LONG_EXPONENT: Final = 3


@inner
def _is_blank(byte: int) -> bool:
    return byte in (_BLANK, _TAB, _RETURN)


@inner
def _is_unusual(data: BytesArray, at: int) -> bool:
    """Whether a byte outside strings begins a NaN, an Infinity or an exponent of three digits."""
    byte = data[at]
    if byte in _NOT_FINITE:
        return True
    if byte not in _EXPONENT or not _ZERO <= data[at - 1] <= _NINE:
        return False
    at += 1
    if at < len(data) and data[at] in _SIGNS:
        at += 1
    digits = 0
    while at < len(data) and _ZERO <= data[at] <= _NINE:
        digits += 1
        at += 1
    return digits >= _LONG_EXPONENT


@inner
def _count_lines(data: BytesArray) -> int:
    """How many lines there are at most."""
    lines = 1
    for byte in data:
        lines += byte == _NEWLINE
    return lines


@inner
def _line_end(data: BytesArray, at: int) -> int:
    """The next line feed, or the text's end."""
    while at < len(data) and data[at] != _NEWLINE:
        at += 1
    return min(at, len(data))


@inner
def _csv_row(data: BytesArray, at: int, marks: Int64Array, multiline: bool) -> tuple[int, int, int]:
    """Where the row that starts at a byte ends (its line feed, or the text's end), its fields and state."""
    size = len(data)
    delimiter, quote, escape = marks[0], marks[1], marks[2]
    fields, state = 1, GOOD
    at_field, quoted, closed = True, False, False
    while at < size and (data[at] != _NEWLINE or (quoted and multiline)):
        byte = data[at]
        if byte == escape:
            state = AFTER_QUOTE if closed else state
            at += 1
            if at >= size or data[at] == _NEWLINE or data[at] == _RETURN:
                return _line_end(data, at), fields, ESCAPED_END
        elif quoted:
            if byte == quote and at + 1 < size and data[at + 1] == quote:
                at += 1
            elif byte == quote:
                quoted, closed = False, True
        elif byte == delimiter:
            fields += 1
            closed = False
        elif closed and not _is_blank(byte):
            state = AFTER_QUOTE
        elif byte == quote and at_field:
            quoted = True
        elif byte == _RETURN and at + 1 < size and data[at + 1] != _NEWLINE:
            state = STRAY_RETURN
        at_field = byte == delimiter and not quoted
        at += 1
    return at, fields, UNCLOSED if quoted else state


@inner
def _string_end(data: BytesArray, at: int) -> int:
    """The closing quote of the JSON string whose first byte this is, or the line's end if it has none."""
    size = len(data)
    while at < size and data[at] != _QUOTE and data[at] != _NEWLINE:
        if data[at] == _BACKSLASH and at + 1 < size and data[at + 1] != _NEWLINE:
            at += 1
        at += 1
    return min(at, size)


@inner
def _json_line(data: BytesArray, at: int) -> tuple[int, int]:
    """Where the line that starts at a byte ends, and its state."""
    start, size = at, len(data)
    state = GOOD if data[at] == _OBJECT else NO_OBJECT
    depth, digits = 0, 0
    while at < size and data[at] != _NEWLINE:
        kind = _KINDS[data[at]]
        digits = digits + 1 if kind == _DIGIT else 0
        if depth == 0 and at > start and kind != _SPACE:
            state = NO_OBJECT
        if kind == _STRING:
            at = _string_end(data, at + 1)
            if at == size or data[at] == _NEWLINE:
                depth += 1
                break
        elif kind == _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                state = TOO_DEEP
        elif kind == _CLOSING:
            depth -= 1
        elif state == GOOD and (digits >= _LONG_NUMBER or (kind == _NUMBER_MARK and _is_unusual(data, at))):
            state = UNUSUAL
        at += 1
    if state in (GOOD, UNUSUAL) and depth != 0:
        state = UNCLOSED
    return at, state


@kernel(BYTES, INT1, TRUTH)
def csv_records(
    data: BytesArray, marks: Int64Array, multiline: bool
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """The rows of a CSV text, with Arrow's rules for quotes; empty rows and comments are skipped.

    A field is quoted if it begins with a quote, and a doubled quote stands for one. After the closing quote
    there is nothing but blanks, which belong to the field. What follows an escape is a character like any
    other.

    Args:
        data: the text.
        marks: int64[4], the bytes between fields, around quoted ones, before a character that stands for
            itself, and at the start of a comment; -1 for none.
        multiline: whether a quoted field may hold line ends.

    Returns:
        For each row, int64[n]: its first byte, the byte after its last (without the line end), its number of
        fields, and GOOD, UNCLOSED, ESCAPED_END, AFTER_QUOTE or STRAY_RETURN.
    """
    lines = _count_lines(data)
    starts, ends = np.empty(lines, np.int64), np.empty(lines, np.int64)
    fields, states = np.empty(lines, np.int64), np.empty(lines, np.int64)
    count, at, size = 0, 0, len(data)
    while at < size:
        start = at
        if data[at] == marks[3]:
            at = _line_end(data, at) + 1
            continue
        at, number, state = _csv_row(data, start, marks, multiline)
        end = at - 1 if at > start and data[at - 1] == _RETURN else at
        at += 1
        if end > start:
            starts[count], ends[count] = start, end
            fields[count], states[count] = number, state
            count += 1
    return starts[:count], ends[:count], fields[:count], states[:count]


@kernel(BYTES)
def json_records(data: BytesArray) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The lines of a JSON text, one object each; blank lines are skipped.

    Only the nesting is checked, not the syntax in between.

    Returns:
        For each line, int64[n]: its first byte, the byte after its last (both without blanks around it), and
        GOOD, UNCLOSED, NO_OBJECT, TOO_DEEP or UNUSUAL.
    """
    lines = _count_lines(data)
    starts, ends = np.empty(lines, np.int64), np.empty(lines, np.int64)
    states = np.empty(lines, np.int64)
    count, at, size = 0, 0, len(data)
    while at < size:
        while at < size and _is_blank(data[at]):
            at += 1
        if at < size and data[at] != _NEWLINE:
            starts[count] = at
            at, states[count] = _json_line(data, at)
            end = at
            while _is_blank(data[end - 1]):
                end -= 1
            ends[count] = end
            count += 1
        at += 1
    return starts[:count], ends[:count], states[:count]
