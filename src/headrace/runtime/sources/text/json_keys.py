"""The keys of JSON objects beside the names of columns, which match them whatever their case.

Arrow's reader knows a key by its very bytes. Objects with a key that differs by case alone, or may do so, are
read line by line instead; this finds them, and those that have no column at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, BytesArray, Int64Array
from headrace.kernels.jit import BYTES, INT1, inner, kernel
from headrace.nested import is_nested, part_types
from headrace.schema import Schema

_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_COLON: Final = ord(":")
_OPENING: Final = (ord("{"), ord("["))
_CLOSING: Final = (ord("}"), ord("]"))
_BLANKS: Final = (ord(" "), ord("\t"), ord("\r"))
_CASE: Final = ord("a") - ord("A")
_UPPER: Final = (ord("A"), ord("Z"))
_ASCII: Final = 128


def judge_keys(
    data: bytes, starts: Int64Array, ends: Int64Array, names: Sequence[str], wanted: Schema
) -> tuple[BoolArray, BoolArray]:
    """The lines that have a column, and those that only Python may read for their keys' sake.

    Args:
        data: lines with one object each.
        starts, ends: int64[n], the bytes between which each is.
        names: those of all columns.
        wanted: the columns that are read, whose STRUCTs have names of their own.
    """
    inside = dict.fromkeys(name for field in wanted for name in _names_in(field.type))
    known = [name.encode() for name in (*names, *inside)]
    bounds = np.cumsum([len(names), *map(len, known)])
    # Of two spellings of one name, for a column and for a part of a STRUCT, each is exact in its place only.
    spelled: dict[str, str] = {}
    clashes = [spelled.setdefault(name.lower(), name) != name for name in (*names, *inside)]
    text = np.frombuffer(b"".join(known), np.uint8)
    found, unsure = _judged(np.frombuffer(data, np.uint8), starts, ends, text, bounds)
    if any(clashes) or not text.size or (text >= _ASCII).any():
        unsure = np.ones(len(starts), np.int64)
    return found.astype(np.bool_), unsure.astype(np.bool_)


def _names_in(dtype: pa.DataType) -> list[str]:
    """The names of fields of STRUCTs in a type, however deep."""
    if pa.types.is_struct(dtype):
        return [name for part in dtype for name in (part.name, *_names_in(part.type))]
    return [name for part in part_types(dtype) for name in _names_in(part)] if is_nested(dtype) else []


@inner
def _lower(byte: int) -> int:
    return byte + _CASE if _UPPER[0] <= byte <= _UPPER[1] else byte


@inner
def _match(data: BytesArray, at: int, names: BytesArray, begin: int, length: int) -> int:
    """2 for the very name at a byte, 1 for one that differs by case, 0 for another one."""
    found = 2
    for place in range(length):
        byte, wanted = data[at + place], names[begin + place]
        if byte != wanted:
            if _lower(byte) != _lower(wanted):
                return 0
            found = 1
    return found


@inner
def _best(data: BytesArray, at: int, length: int, names: BytesArray, bounds: Int64Array, count: int) -> int:
    """The best match of a key with the first names, so many of them."""
    best, begin = 0, 0
    for place in range(count):
        end = bounds[place + 1] - bounds[0]
        if end - begin == length:
            best = max(best, _match(data, at, names, begin, length))
        begin = end
    return best


@inner
def _string(data: BytesArray, at: int, end: int) -> tuple[int, bool, bool]:
    """Of the string after a quote: where it ends, whether an escape is in it, whether it is a key."""
    escaped = False
    while at < end and data[at] != _QUOTE:
        if data[at] == _BACKSLASH:
            escaped = True
            at += 1
        at += 1
    after = at + 1
    while after < end and data[after] in _BLANKS:
        after += 1
    return at, escaped, after < end and data[after] == _COLON


@kernel(BYTES, INT1, INT1, BYTES, INT1)
def _judged(
    data: BytesArray, starts: Int64Array, ends: Int64Array, names: BytesArray, bounds: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Per line, whether a key of the outer object is a column, and whether a key may be one but for its case.

    Args:
        data: the lines.
        starts, ends: int64[n], the bytes between which each is.
        names: those of columns, then those of parts of STRUCTs, end to end.
        bounds: how many are columns, and from there where each name ends.
    """
    found, unsure = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    columns, total = bounds[0], len(bounds) - 1
    for row in range(len(starts)):
        at, depth = starts[row], 0
        while at < ends[row]:
            byte = data[at]
            if byte in _OPENING:
                depth += 1
            elif byte in _CLOSING:
                depth -= 1
            elif byte == _QUOTE:
                begin = at + 1
                at, escaped, is_key = _string(data, begin, ends[row])
                # Columns are keys of the outer object; parts of STRUCTs are deeper, how deep does not matter.
                some = columns if depth == 1 else total if total > columns else 0
                if is_key and some:
                    best = _best(data, begin, at - begin, names, bounds, some)
                    found[row] |= best > 0 and depth == 1
                    unsure[row] |= best == 1 or escaped
            at += 1
    return found, unsure
