"""Values and columns from outside as columns of ours: exactly, or not at all.

Arrow takes 2.9 for a BIGINT, and cuts it to 2. Nothing here does: what a column cannot hold unchanged raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Number
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import shown
from headrace.history import normalise_column, ordered_codes
from headrace.nested import fields_of, is_nested, lists, offsets_of
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, sql_type


class MisfitError(ValueError):
    """A value that a column cannot hold.

    Attributes:
        place: the place of the value among its like, from 0.
        reason: what the value is not, as in `not a BIGINT: 2.9`.
        hint: what the column holds.
    """

    def __init__(self, place: int, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return MisfitError, (self.place, self.reason, self.hint)


def as_column(found: Any, dtype: pa.DataType) -> pa.Array:
    """What a user's function gives, an array of any library or a sequence of values, as a column.

    Raises:
        MisfitError: a value is not of the column's type, or cannot be held exactly; the first such value.
        pa.ArrowException: the types do not fit, or a text cannot be read as a value, or is not UTF-8.
        TypeError: it is not a sequence.
    """
    if not isinstance(found, pa.Array | pa.ChunkedArray):
        if str(getattr(found, "dtype", "object")) == "object":
            return column_of(list(found), dtype)
        found = pa.array(found)
    return cast_exactly(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found, dtype)


def column_of(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    """Python values as a column.

    None is NULL. A number may be of any type, if the column can hold it: 2.0 is a BIGINT, 2.9 is not.

    Raises:
        MisfitError: a value is not of the column's type, or cannot be held exactly; the first such value.
    """
    if is_nested(dtype):
        return _nested_column(values, dtype)
    try:
        if set(map(type, values)) <= _exact_in_arrow(dtype):
            return _one_piece(pa.array(values, dtype))
    except Exception:  # the value that raises, whatever it may be, is found below
        pass
    single = [_single(place, value, dtype) for place, value in enumerate(values)]
    return _one_piece(pa.array(single, dtype))


def cast_exactly(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """A column as one of another type.

    Raises:
        MisfitError: a value is not what it was after the cast; the first such value.
        pa.ArrowException: the types do not fit, or a text cannot be read as a value, or is not UTF-8.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_nested(dtype) and _alike(column.type, dtype):
        return _cast_parts(column, dtype)
    if isinstance(column.type, pa.UuidType) and dtype == STRING:
        return uuid_texts(column)
    if column.type == dtype:
        column.validate(full=dtype == STRING)
        return column
    cast = column.cast(dtype)
    if dtype == STRING or not _may_lose(column.type):
        cast.validate(full=True)
        return cast
    lost = pc.invert(_equal(column, cast.cast(column.type, safe=False))).fill_null(False)
    if pc.any(lost).as_py():
        place = pc.index(lost, True).as_py()
        raise _misfit(place, _value(column[place]), dtype)
    return cast


def uuid_texts(column: pa.UuidArray) -> pa.StringArray:
    """UUIDs as texts, such as `00000000-0000-0000-0000-000000000005`."""
    return pa.array([None if one is None else str(one) for one in column.to_pylist()], STRING)


def sorted_maps(offsets: npt.NDArray[Any], keys: pa.Array, items: pa.Array, like: pa.Array) -> pa.MapArray:
    """MAPs with their entries in the order of their keys; of several with one key the last one counts.

    Args:
        offsets: where the entries of each MAP begin, and where the last one's end.
        keys, items: the keys and values of all entries.
        like: a column that says which MAPs are NULL.
    """
    starts = offsets.astype(np.int64)
    sizes = np.where(np.asarray(like.is_null().to_numpy(zero_copy_only=False)), 0, np.diff(starts))
    first = np.cumsum(sizes) - sizes
    row = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(row)) - np.repeat(first, sizes) + np.repeat(starts[:-1], sizes)
    codes = ordered_codes(normalise_column(keys))[place]
    order = np.lexsort((codes, row))
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = (np.diff(row[order]) != 0) | (np.diff(codes[order]) != 0)
    kept = order[last]
    counts = np.bincount(row[kept], minlength=len(sizes))
    ends = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    chosen = pa.array(place[kept])
    return pa.MapArray.from_arrays(ends, keys.take(chosen), items.take(chosen), mask=like.is_null())


def _nested_column(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    """As `column_of`, for a type of ARRAYs, STRUCTs or MAPs: part by part."""
    rows = [None if value is None else _parts(place, value, dtype) for place, value in enumerate(values)]
    missing = pa.array([None if row is None else True for row in rows], BOOLEAN)
    if pa.types.is_struct(dtype):
        return _struct_column(rows, dtype)
    sizes = [0 if row is None else len(row) for row in rows]
    offsets = np.cumsum([0, *sizes])
    flat = [part for row in rows if row is not None for part in row]
    places = np.repeat(np.arange(len(rows)), sizes).tolist()
    if pa.types.is_list(dtype):
        return lists(offsets, _part(flat, dtype.value_type, places), missing)
    keys = _part([key for key, _ in flat], dtype.key_type, places)
    return sorted_maps(offsets, keys, _part([item for _, item in flat], dtype.item_type, places), missing)


def _struct_column(rows: Sequence[list[Any] | None], dtype: pa.StructType) -> pa.StructArray:
    """STRUCTs from the values of their fields, NULL where a row is None."""
    parts = [
        _part([None if row is None else row[place] for row in rows], field.type, range(len(rows)))
        for place, field in enumerate(dtype)
    ]
    mask = pa.array([row is None for row in rows], BOOLEAN)
    return pa.StructArray.from_arrays(parts, names=[field.name for field in dtype], mask=mask)


def _part(values: Sequence[object], dtype: pa.DataType, rows: Sequence[int]) -> pa.Array:
    """A part of nested values as a column; what does not fit is named by its row."""
    try:
        return column_of(values, dtype)
    except MisfitError as error:
        raise MisfitError(rows[error.place], error.reason, error.hint) from None


def _parts(place: int, value: Any, dtype: pa.DataType) -> list[Any]:
    """The values of an ARRAY, the fields of a STRUCT, the entries of a MAP."""
    if pa.types.is_struct(dtype) and isinstance(value, Mapping):
        names = [field.name for field in dtype]
        if set(value) <= set(names):
            return [value.get(name) for name in names]
    elif pa.types.is_map(dtype) and (isinstance(value, Mapping) or _is_sequence(value)):
        entries = list(value.items() if isinstance(value, Mapping) else value)
        if all(_is_sequence(entry) and len(entry) == 2 and entry[0] is not None for entry in entries):
            return entries
    elif pa.types.is_list(dtype) and _is_sequence(value):
        return list(value)
    raise _misfit(place, value, dtype)


def _is_sequence(value: object) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _alike(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type of Arrow's has the shape of a nested column type."""
    if pa.types.is_struct(wanted):
        names = [field.name for field in wanted]
        return bool(pa.types.is_struct(found)) and [field.name for field in found] == names
    return bool(pa.types.is_list(wanted) and pa.types.is_list(found)) or bool(
        pa.types.is_map(wanted) and pa.types.is_map(found)
    )


def _cast_parts(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """As `cast_exactly`, part by part; what does not fit is named by its row."""
    if pa.types.is_struct(dtype):
        pairs = zip(fields_of(column), dtype, strict=True)
        names = [field.name for field in dtype]
        parts = [cast_exactly(part, field.type) for part, field in pairs]
        return pa.StructArray.from_arrays(parts, names=names, mask=column.is_null())
    offsets = offsets_of(column)
    try:
        if pa.types.is_list(dtype):
            return lists(offsets, cast_exactly(column.values, dtype.value_type), column)
        keys, items = (
            cast_exactly(part, kind)
            for part, kind in ((column.keys, dtype.key_type), (column.items, dtype.item_type))
        )
    except MisfitError as error:
        row = int(np.searchsorted(offsets, error.place, side="right")) - 1
        raise MisfitError(row, error.reason, error.hint) from None
    return sorted_maps(offsets, keys, items, column)


_EXACT_IN_ARROW: Final[dict[pa.DataType, set[type]]] = {
    BOOLEAN: {bool},
    BIGINT: {int},
    DOUBLE: {float, int},
    STRING: {str},
    TIMESTAMP: {datetime},
    DATE: {date},
    BINARY: {bytes},
}


def _exact_in_arrow(dtype: pa.DataType) -> set[type]:
    """Python's types whose values Arrow takes unchanged, or raises; others are checked one by one."""
    kinds = {Decimal, int} if pa.types.is_decimal(dtype) else _EXACT_IN_ARROW[dtype]
    return {*kinds, type(None)}


def _single(place: int, value: object, dtype: pa.DataType) -> object:
    """The value as Arrow takes it without a loss."""
    try:
        exact = _EXACT.get(dtype, _unchanged)(value)
        pa.array([exact], dtype)
    except Exception as error:  # a user's object may do anything when it is looked at
        raise _misfit(place, value, dtype) from error
    return exact


def _unchanged(value: object) -> object:
    return value


def _text(value: object) -> object:
    """A text, also one that is given as a UUID."""
    return str(value) if isinstance(value, UUID) else value


def _whole(value: Any) -> object:
    """A number as an int of the same value.

    Raises:
        ValueError: it has a fraction.
    """
    if isinstance(value, Number) and not isinstance(value, int):
        whole = int(value)  # type: ignore[call-overload]
        if whole != value:
            raise ValueError("a fraction would be lost")
        return whole
    return value


def _day(value: Any) -> object:
    """A date, also one that is given as the beginning of its day.

    Raises:
        ValueError: a time of day would be lost.
    """
    if isinstance(value, datetime):
        if value.tzinfo is not None or value != datetime(value.year, value.month, value.day):
            raise ValueError("a time of day would be lost")
        return value.date()
    return _whole(value)


def _instant(value: Any) -> object:
    """A time or a number of microseconds.

    Raises:
        ValueError: nanoseconds would be lost, or a fraction.
    """
    if getattr(value, "nanosecond", 0):
        raise ValueError("nanoseconds would be lost")
    return _whole(value)


_EXACT: Final[dict[pa.DataType, Callable[[Any], object]]] = {
    STRING: _text,
    BIGINT: _whole,
    DATE: _day,
    TIMESTAMP: _instant,
}
"""How values are looked at that Arrow would cut, whatever has an integer part, or would not take."""


def _misfit(place: int, value: object, dtype: pa.DataType) -> MisfitError:
    return MisfitError(place, f"not a {sql_type(dtype)}: {shown(value)}", _hint(dtype))


def _hint(dtype: pa.DataType) -> str:
    if dtype == BIGINT:
        return "a BIGINT is a whole number from -2^63 to 2^63 - 1; a DOUBLE or a DECIMAL holds others"
    if dtype == STRING:
        return "a STRING is Unicode text, without halves of surrogate pairs"
    if dtype == DATE:
        return "a DATE is a datetime.date; a TIMESTAMP has a time of day"
    if dtype == TIMESTAMP:
        return "a TIMESTAMP is a datetime.datetime, or a whole number of microseconds since 1970"
    if dtype == DOUBLE:
        return "a DOUBLE holds whole numbers up to 2^53 exactly; a BIGINT or a DECIMAL holds larger ones"
    if pa.types.is_decimal(dtype):
        return (
            f"it has {dtype.precision} digits, {dtype.scale} of them after the point; give a Decimal or int"
        )
    if dtype == BINARY:
        return "a BINARY is bytes"
    if pa.types.is_list(dtype):
        return "an ARRAY is a list"
    if pa.types.is_map(dtype):
        return "a MAP is a dict, or a list of pairs; no key is None"
    if pa.types.is_struct(dtype):
        return f"a STRUCT is a dict with the keys {', '.join(field.name for field in dtype)}"
    return "None is NULL"


def _may_lose(source: pa.DataType) -> bool:
    """Whether Arrow's cast may change a value without saying so; texts are read whole or not at all."""
    types = pa.types
    return bool(
        types.is_integer(source)
        or types.is_floating(source)
        or types.is_decimal(source)
        or types.is_temporal(source)
    )


def _equal(left: pa.Array, right: pa.Array) -> pa.Array:
    equal = pc.equal(left, right)
    if not pa.types.is_floating(left.type):
        return equal
    return pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _value(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return scalar.cast(STRING).as_py()


def _one_piece(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column; texts of more than two gigabytes come in several pieces, which no column of ours can.

    Raises:
        pa.ArrowCapacityError: it comes in several pieces.
    """
    if isinstance(column, pa.ChunkedArray):
        raise pa.ArrowCapacityError("the texts have more than two gigabytes together")
    return column
