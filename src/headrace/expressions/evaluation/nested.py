"""Evaluation of functions of ARRAYs, STRUCTs and MAPs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.conversion import sorted_maps
from headrace.elements import BoolArray, Int64Array
from headrace.expressions.evaluation.values import (
    Datum,
    Kernel,
    KernelResult,
    check_size,
    failing,
    fine,
    rows_of,
    spread,
)
from headrace.expressions.json_paths import follow, steps_of
from headrace.expressions.tree import Call, Literal
from headrace.history import normalise_column, ordered_codes
from headrace.limits import checked
from headrace.nested import fields_of, lists, offsets_of
from headrace.schema import BIGINT, BOOLEAN, STRING
from headrace.value_texts import json_texts

BEYOND_ARRAY: Final = "the place is beyond the ARRAY"
NULL_KEY: Final = "a key of a MAP is NULL"
REPEATED_KEY: Final = "a key of a MAP is there twice"


def _columns(arguments: Sequence[Datum]) -> list[pa.Array]:
    count = rows_of(arguments)
    return [spread(argument, count) for argument in arguments]


def _get_field(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    row = _columns(arguments)[0]
    return fine(fields_of(row)[row.type.get_field_index(_constant(call, 1))])


def _constant(call: Call, place: int) -> str:
    part = call.arguments[place]
    assert isinstance(part, Literal)
    return str(part.value)


def _sizes(column: pa.Array) -> tuple[Int64Array, Int64Array]:
    """Where each ARRAY or MAP begins among all values, and how many it has: none where it is NULL."""
    offsets = offsets_of(column).astype(np.int64)
    return offsets[:-1], np.where(_null(column), 0, np.diff(offsets))


def _null(column: pa.Array) -> BoolArray:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def _taken(values: pa.Array, places: Int64Array, there: BoolArray) -> pa.Array:
    """The values at some places, NULL where there is none."""
    return values.take(pa.array(places, mask=~there))


def _subscript(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    values, wanted = _columns(arguments)
    if pa.types.is_map(values.type):
        places = _located(values, values.keys, wanted)
        return fine(_taken(values.items, places, places >= 0))
    return _at(values, wanted, from_zero=True, fails=True)


def _element_at(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    values, wanted = _columns(arguments)
    return _at(values, wanted, from_zero=False, fails=call.function == "ELEMENT_AT")


def _get(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    values, wanted = _columns(arguments)
    return _at(values, wanted, from_zero=True, fails=False)


def _at(values: pa.Array, wanted: pa.Array, *, from_zero: bool, fails: bool) -> KernelResult:
    """The value at a place of each ARRAY; without `fails` NULL where there is none."""
    begins, sizes = _sizes(values)
    place = wanted.fill_null(0).to_numpy()
    if not from_zero:
        # 1 is the first and -1 the last one; 0 is beyond.
        place = np.where(place > 0, place - 1, np.where(place < 0, np.maximum(place, -sizes - 1) + sizes, -1))
    there = (place >= 0) & (place < sizes)
    asked = ~_null(values) & ~_null(wanted)
    found = _taken(values.values, begins + np.where(there, place, 0), there & asked)
    return failing(found, asked & ~there, BEYOND_ARRAY) if fails else fine(found)


def _located(column: pa.Array, values: pa.Array, wanted: pa.Array) -> Int64Array:
    """The first place, among all values, of each row's wanted value in its ARRAY or MAP; -1 where none is.

    Args:
        column: the ARRAYs or MAPs.
        values: what its offsets count.
        wanted: what is looked for, a value per row.
    """
    begins, sizes = _sizes(column)
    codes = ordered_codes(normalise_column(pa.concat_arrays([values, wanted])))
    row, place = _members(begins, sizes)
    null = _null(wanted)
    hits = np.flatnonzero((codes[place] == codes[len(values) :][row]) & ~null[row])
    result = np.full(len(column), -1, dtype=np.int64)
    # The first hit of each row is written last.
    result[row[hits[::-1]]] = place[hits[::-1]]
    return result


def _members(begins: Int64Array, sizes: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The row, and the place among all values, of each value that is in use."""
    row = np.repeat(np.arange(len(sizes)), sizes)
    first = np.cumsum(sizes) - sizes
    return row, np.arange(len(row)) - np.repeat(first, sizes) + np.repeat(begins, sizes)


def _contains(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """TRUE; FALSE; NULL where it is not there but a NULL is."""
    values, wanted = _columns(arguments)
    is_map = pa.types.is_map(values.type)
    within = values.keys if is_map else values.values
    found = _located(values, within, wanted) >= 0
    row, place = _members(*_sizes(values))
    unsure = np.zeros(len(values), dtype=np.bool_)
    unsure[row[_null(within)[place]]] = True
    return fine(pa.array(found, BOOLEAN, mask=_null(values) | _null(wanted) | (unsure & ~found)))


def _position(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    values, wanted = _columns(arguments)
    place = _located(values, values.values, wanted)
    from_one = np.where(place < 0, 0, place - _sizes(values)[0] + 1)
    return fine(pa.array(from_one, BIGINT, mask=_null(values) | _null(wanted)))


def _make_array(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    columns = _columns(arguments)
    count = len(columns[0])
    # The first values of all rows, then the second ones: those of a row lie `count` apart.
    places = np.arange(count)[:, None] + np.arange(len(columns)) * count
    values = pa.concat_arrays(columns).take(pa.array(places.ravel()))
    offsets = pa.array(np.arange(count + 1) * len(columns), pa.int32())
    return fine(pa.ListArray.from_arrays(offsets, values))


def _named_struct(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    names = [field.name for field in call.type]
    return fine(pa.StructArray.from_arrays(_columns(arguments)[1::2], names=names))


def _make_map(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    columns = _columns(arguments)
    count, width = len(columns[0]), len(columns) // 2
    places = pa.array((np.arange(count)[:, None] + np.arange(width) * count).ravel())
    keys, items = (pa.concat_arrays(part).take(places) for part in (columns[::2], columns[1::2]))
    no_key = np.logical_or.reduce([_null(column) for column in columns[::2]])
    keyed = pa.array(no_key, BOOLEAN, mask=no_key)
    found = sorted_maps(np.arange(count + 1) * width, keys, items, keyed)
    repeated = (_sizes(found)[1] < width) & ~no_key
    values, missing = failing(found, no_key, NULL_KEY)
    values, twice = failing(values, repeated, REPEATED_KEY)
    return values, (*missing, *twice)


def _map_part(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    (entries,) = _columns(arguments)
    part = entries.keys if call.function == "MAP_KEYS" else entries.items
    return fine(lists(offsets_of(entries), part, entries))


def _size(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    (values,) = _columns(arguments)
    return fine(pa.array(_sizes(values)[1], BIGINT, mask=_null(values)))


def _array_join(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """NULLs among the values are passed over."""
    (values, _), separator = _columns(arguments), _constant(call, 1)
    row, place = _members(*_sizes(values))
    kept = ~_null(values.values)[place]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=len(values)))])
    parts = values.values.take(pa.array(place[kept]))
    check_size((pc.sum(pc.binary_length(parts)).as_py() or 0) + len(parts) * len(str(separator).encode()))
    return fine(pc.binary_join(lists(offsets, parts, values), separator))


def _rearranged(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """ARRAY_DISTINCT and SORT_ARRAY: some of the values, in another order."""
    values, *flags = _columns(arguments)
    row, place = _members(*_sizes(values))
    codes = ordered_codes(normalise_column(values.values))[place]
    if call.function == "SORT_ARRAY":
        down = np.array([bool(flag is False) for flag in flags[0].to_pylist()])[row] if flags else False
        order = np.lexsort((np.where(down, -codes, codes), row))
    else:
        by_value = np.lexsort((np.arange(len(row)), codes, row))
        fresh = np.ones(len(row), dtype=np.bool_)
        fresh[1:] = (np.diff(codes[by_value]) != 0) | (np.diff(row[by_value]) != 0)
        order = np.sort(by_value[fresh])
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row[order], minlength=len(values)))])
    found = lists(offsets, values.values.take(pa.array(place[order])), values)
    missing = _null(flags[0]) if flags else np.zeros(len(values), dtype=np.bool_)
    return fine(
        pc.if_else(pa.array(missing), pa.scalar(None, values.type), found) if missing.any() else found
    )


def _extreme(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """The smallest or largest value that is not NULL."""
    (values,) = _columns(arguments)
    row, place = _members(*_sizes(values))
    kept = ~_null(values.values)[place]
    row, place = row[kept], place[kept]
    codes = ordered_codes(normalise_column(values.values))[place]
    order = np.lexsort((codes if call.function == "ARRAY_MAX" else -codes, row))
    result = np.full(len(values), -1, dtype=np.int64)
    # The one that is wanted is the last of its row.
    result[row[order]] = place[order]
    return fine(_taken(values.values, result, result >= 0))


def _split(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    (text, _) = _columns(arguments)
    pattern = call.arguments[1]
    assert isinstance(pattern, Literal)
    if pattern.value is None:
        return fine(pa.nulls(len(text), call.type))
    return fine(pc.split_pattern_regex(text, str(pattern.value)))


def _json_object(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    text = _columns(arguments)[0].dictionary_encode()
    steps = steps_of(_constant(call, 1))
    found = pa.array([follow(one, steps) for one in checked(text.dictionary.to_pylist())], STRING)
    return fine(found.take(text.indices))


def _to_json(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    (values,) = _columns(arguments)
    return fine(pc.if_else(values.is_null(), pa.scalar(None, STRING), json_texts(values)))


KERNELS: Final[dict[str, Kernel]] = {
    "GET_FIELD": _get_field,
    "[]": _subscript,
    "ELEMENT_AT": _element_at,
    "TRY_ELEMENT_AT": _element_at,
    "GET": _get,
    "ARRAY": _make_array,
    "NAMED_STRUCT": _named_struct,
    "MAP": _make_map,
    "MAP_KEYS": _map_part,
    "MAP_VALUES": _map_part,
    "MAP_CONTAINS_KEY": _contains,
    "SIZE": _size,
    "ARRAY_JOIN": _array_join,
    "ARRAY_CONTAINS": _contains,
    "ARRAY_POSITION": _position,
    "ARRAY_DISTINCT": _rearranged,
    "SORT_ARRAY": _rearranged,
    "ARRAY_MIN": _extreme,
    "ARRAY_MAX": _extreme,
    "SPLIT": _split,
    "GET_JSON_OBJECT": _json_object,
    "TO_JSON": _to_json,
}
