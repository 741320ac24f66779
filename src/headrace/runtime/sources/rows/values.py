"""Columns of text as columns of values, where each text is judged for itself.

Whether a text is a value must not depend on the other texts of its column, or the rows that are rejected
would depend on how the input was cut. So a whole column is cast at once where that succeeds; where it does
not, it is halved until the texts that fail are alone.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray
from headrace.expressions.evaluation.parsing import parse_timestamp
from headrace.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    MOST_DIGITS,
    STRING,
    TIMESTAMP,
    decimal,
)

BLANKS: Final = " \t"
"""What may be around a value."""
_NAIVE: Final = pa.timestamp("us")
ZONED: Final = r"\d[T ]\d.*(Z|UTC|[+-]\d\d?(:?\d\d)?)$"
"""Distinguishes a time with a zone; the hyphens of a bare date are not a zone."""

_SHAPES: Final = {
    BIGINT: r"^[+-]?[0-9]+$",
    DOUBLE: r"^[+-]?([0-9.][0-9.eE+-]*|[iI].*|[nN].*)$",
    BOOLEAN: r"^[0-9a-zA-Z]+$",
    DATE: r"^\d+-\d+-\d+$",
    TIMESTAMP: r"^[ \t]*\d{4}",
}
"""What every text of a type looks like, and few others: it keeps the halving of columns of junk short."""
_MOST_CHARACTERS: Final = 80
"""A text of a DECIMAL is not longer, leading zeros aside: so many digits Arrow judges rightly."""
_DECIMAL_SHAPE: Final = r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$"


def parse_texts(
    texts: pa.StringArray, dtype: pa.DataType, *, trim: bool = False, null: str | None = None
) -> tuple[pa.Array, BoolArray]:
    """Texts as values of a column type.

    A TIMESTAMP is written as in ISO 8601, with `T` or a blank before the time, or as CAST takes it; without
    a zone it is taken as UTC, and digits beyond microseconds are dropped. A BINARY is written in base64.

    Args:
        texts: the texts; NULL stays NULL.
        dtype: the column type. For STRING nothing is done.
        trim: whether blanks around a value are allowed.
        null: the text that stands for NULL, for other types than STRING and BINARY.

    Returns:
        The values, NULL where the text is none, and where that is the case.
    """
    if dtype == STRING:
        return texts, np.zeros(len(texts), dtype=np.bool_)
    if null is not None and dtype != BINARY:
        texts = pc.if_else(pc.equal(texts, null), None, texts)
    if trim:
        texts = pc.utf8_trim(texts, BLANKS)
    if dtype == BINARY:
        return _bytes_of(texts)
    cast = _caster(dtype)
    try:
        return cast(texts), np.zeros(len(texts), dtype=np.bool_)
    except pa.ArrowInvalid:
        shaped = pc.match_substring_regex(texts, _SHAPES.get(dtype, _DECIMAL_SHAPE)).fill_null(True)
        values, bad = _cast_each(pc.if_else(shaped, texts, None), cast)
        if dtype == TIMESTAMP:
            values, bad = _as_in_queries(texts, values, bad)
        return values, bad | ~np.asarray(shaped)


def infer_type(texts: pa.StringArray) -> pa.DataType:
    """The first type that all texts are written as, and that has their values as they are, or STRING.

    BIGINT, DECIMAL(20, 0), DECIMAL(38, 0), DOUBLE, DECIMAL(38, 18), BOOLEAN, DATE and TIMESTAMP are tried. A
    DOUBLE rounds fractions; where it would round a whole number, a DECIMAL takes its place.
    """
    if texts.null_count == len(texts):
        return STRING
    for dtype, shape in _INFERRED:
        if pc.all(pc.match_substring_regex(texts, shape)).as_py() and _holds(texts, dtype):
            return dtype
    return STRING


_WHOLE: Final = r"^-?\d+$"
_INFERRED: Final = (
    (BIGINT, _WHOLE),
    (decimal(20, 0), _WHOLE),
    (decimal(38, 0), _WHOLE),
    (DOUBLE, r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"),
    (decimal(38, 18), r"^-?(\d+\.?\d*|\.\d+)$"),
    (BOOLEAN, r"(?i)^(true|false)$"),
    (DATE, r"^\d"),
    (TIMESTAMP, r"^\d{4}-\d+-\d+"),
)
"""The types that are inferred, and what texts of them look like."""


def _holds(texts: pa.StringArray, dtype: pa.DataType) -> bool:
    """Whether texts that look like a type are values of it, whole numbers the very same."""
    values, bad = parse_texts(texts, dtype)
    if bad.any():
        return False
    if dtype != DOUBLE:
        return True
    whole = pc.match_substring_regex(texts, _WHOLE).fill_null(False)
    # One that is written as a DOUBLE is written is that DOUBLE, though it may stand for a number beside it.
    exact = all(Decimal(repr(float(text))) == Decimal(text) for text in texts.filter(whole).to_pylist())
    return exact and bool(pc.all(pc.is_finite(values)).as_py())


def _caster(dtype: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    if dtype == TIMESTAMP:
        return _timestamps
    if dtype == BIGINT:
        return _whole_numbers
    return partial(_decimals, dtype=dtype) if pa.types.is_decimal(dtype) else lambda texts: texts.cast(dtype)


def _bytes_of(texts: pa.StringArray) -> tuple[pa.Array, BoolArray]:
    """BINARY from base64, and where a text is not such."""
    found, bad = [], np.zeros(len(texts), dtype=np.bool_)
    for place, text in enumerate(texts.to_pylist()):
        try:
            found.append(None if text is None else b64decode(text, validate=True))
        # Of what is not ASCII it is not a binascii.Error, which is one of these.
        except ValueError:
            found.append(None)
            bad[place] = True
    return pa.array(found, BINARY), bad


def _whole_numbers(texts: pa.StringArray) -> pa.Array:
    """The cast to BIGINT as queries have it: Arrow alone takes hexadecimal numbers, and no plus.

    Raises:
        pa.ArrowInvalid: a text is no such number.
    """
    if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        raise pa.ArrowInvalid("a number is hexadecimal")
    if pc.any(pc.starts_with(texts, "+")).as_py():
        texts = pc.replace_substring_regex(texts, r"^\+([0-9])", r"\1")
    return texts.cast(BIGINT)


def _decimals(texts: pa.StringArray, dtype: pa.DataType) -> pa.Array:
    """The cast to DECIMALs, which Arrow makes other numbers of where there are too many digits for its type.

    Raises:
        pa.ArrowInvalid: a text is no such value.
    """
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest <= DIGITS:
        return texts.cast(dtype)
    short = pc.replace_substring_regex(texts, r"^([+-]?)0+(\d)", r"\1\2")
    if pc.max(pc.binary_length(short)).as_py() > _MOST_CHARACTERS:
        raise pa.ArrowInvalid("a number has too many digits")
    return short.cast(pa.decimal256(MOST_DIGITS, dtype.scale)).cast(dtype)


def _timestamps(texts: pa.StringArray) -> pa.Array:
    for dtype in (TIMESTAMP, _NAIVE):
        try:
            found = texts.cast(dtype).cast(TIMESTAMP)
        except pa.ArrowInvalid:
            continue
        _check_as_in_queries(texts, found)
        return found
    short = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
    zoned = pc.match_substring_regex(short, ZONED)
    with_zone = pc.if_else(zoned, short, None).cast(TIMESTAMP)
    without = pc.if_else(zoned, None, short).cast(_NAIVE).cast(TIMESTAMP)
    found = pc.coalesce(with_zone, without)
    _check_as_in_queries(texts, found)
    return found


_SECOND_OF_JANUARY: Final = -62_135_510_400_000_000
"""0001-01-02 (instant)."""
_FAR_OFFSET: Final = r"[Tt ].*[+-](18:?(0[1-9]|[1-5]\d)|19|2\d)"


def _check_as_in_queries(texts: pa.StringArray, found: pa.TimestampArray) -> None:
    """Refuse what Arrow reads and CAST does not: the year 0, and offsets of more than 18 hours.

    Raises:
        pa.ArrowInvalid: a text is of these.
    """
    first = pc.min(found)
    is_early = first.is_valid and first.value < _SECOND_OF_JANUARY
    if is_early and pc.any(pc.starts_with(texts, "0000")).as_py():
        raise pa.ArrowInvalid("a year is 0")
    if pc.all(pc.ends_with(texts, "Z")).as_py() is not False:
        return
    if pc.any(pc.match_substring_regex(texts, _FAR_OFFSET)).as_py():
        raise pa.ArrowInvalid("an offset is more than 18 hours")


def _as_in_queries(texts: pa.StringArray, values: pa.Array, bad: BoolArray) -> tuple[pa.Array, BoolArray]:
    """TIMESTAMPs, with those that Arrow does not read and CAST does."""
    found, lost = parse_timestamp(pc.if_else(pa.array(bad), texts, None), TIMESTAMP)
    return pc.coalesce(values, found), bad & np.asarray(lost)


def _cast_each(texts: pa.StringArray, cast: Callable[[pa.Array], pa.Array]) -> tuple[pa.Array, BoolArray]:
    """The cast of each text for itself: values, NULL where it fails, and where it fails."""
    pieces: list[pa.Array] = []
    bad = np.zeros(len(texts), dtype=np.bool_)
    waiting = [(0, len(texts))]
    while waiting:
        start, end = waiting.pop()
        part = texts.slice(start, end - start)
        try:
            pieces.append(cast(part))
        except pa.ArrowInvalid:
            if end - start > 1:
                middle = (start + end) // 2
                waiting += [(middle, end), (start, middle)]
                continue
            bad[start] = True
            pieces.append(cast(pa.array([None], pa.string())))
    return pa.concat_arrays(pieces), bad
