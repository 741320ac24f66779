"""Columns of ARRAYs, STRUCTs and MAPs as the columns they are made of.

A MAP is an ARRAY of STRUCTs of a key and a value, sorted by the keys, none of which is there twice. So two
MAPs with the same entries are the same row of STRUCTs, whatever the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

KEY: Final = "key"
"""The name of the first field of a MAP's entries."""
VALUE: Final = "value"
"""The name of the second field of a MAP's entries."""


def is_nested(dtype: pa.DataType) -> bool:
    """Whether it is a type of ARRAYs, STRUCTs or MAPs."""
    return is_sequence(dtype) or bool(pa.types.is_struct(dtype))


def is_sequence(dtype: pa.DataType) -> bool:
    """Whether it is a type of ARRAYs or MAPs."""
    return bool(pa.types.is_list(dtype) or pa.types.is_map(dtype))


def part_types(dtype: pa.DataType) -> Iterator[pa.DataType]:
    """The types that a type is made of: those of the values, the fields, or the keys and the values."""
    if pa.types.is_list(dtype):
        yield dtype.value_type
    elif pa.types.is_map(dtype):
        yield from (dtype.key_type, dtype.item_type)
    elif pa.types.is_struct(dtype):
        yield from (field.type for field in dtype)


def innermost(dtype: pa.DataType) -> Iterator[pa.DataType]:
    """The types of single values in a type; that type itself where it is not nested."""
    if not is_nested(dtype):
        yield dtype
    for part in part_types(dtype):
        yield from innermost(part)


def fields_of(column: pa.StructArray) -> list[pa.Array]:
    """The fields of a column of STRUCTs, NULL where the STRUCT is."""
    return list(column.flatten())


def offsets_of(column: pa.Array) -> npt.NDArray[np.int32]:
    """Where the values of each ARRAY or MAP begin among all, and where the last one's end; int32[n + 1]."""
    return np.asarray(column.offsets.to_numpy())


def values_of(column: pa.Array) -> pa.Array:
    """All values that `offsets_of` counts: of the ARRAYs, or the entries of the MAPs as STRUCTs."""
    if pa.types.is_map(column.type):
        return pa.StructArray.from_arrays([column.keys, column.items], names=[KEY, VALUE])
    return column.values


def lists(offsets: npt.NDArray[Any], values: pa.Array, like: pa.Array) -> pa.ListArray:
    """ARRAYs of values, NULL where another column is.

    Args:
        offsets: where each of them begins, and where the last one ends.
        values: the values.
        like: the column that says where NULL is.
    """
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=like.is_null())


def map_parts(column: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """A nested column with its parts changed, each to as many values; a MAP's keys keep their order.

    The parts of ARRAYs and MAPs may have more values than are in use.
    """
    if pa.types.is_struct(column.type):
        names = [field.name for field in column.type]
        parts = [change(part) for part in fields_of(column)]
        return pa.StructArray.from_arrays(parts, names=names, mask=column.is_null())
    offsets = pa.array(offsets_of(column), pa.int32())
    if pa.types.is_list(column.type):
        return pa.ListArray.from_arrays(offsets, change(column.values), mask=column.is_null())
    keys, items = change(column.keys), change(column.items)
    return pa.MapArray.from_arrays(offsets, keys, items, mask=column.is_null())


def arrow_value(value: Any, dtype: pa.DataType) -> Any:
    """A Python value as Arrow takes it: a STRUCT may be a tuple of its fields' values, a MAP a dict."""
    if value is None or not is_nested(dtype):
        return value
    parts = tuple(part_types(dtype))
    if pa.types.is_struct(dtype):
        names = [field.name for field in dtype]
        values = [value.get(name) for name in names] if isinstance(value, dict) else value
        pairs = zip(names, values, parts, strict=True)
        return {name: arrow_value(part, kind) for name, part, kind in pairs}
    if pa.types.is_map(dtype):
        entries = value.items() if isinstance(value, dict) else value
        return [(arrow_value(key, parts[0]), arrow_value(part, parts[1])) for key, part in entries]
    return [arrow_value(part, parts[0]) for part in value]
