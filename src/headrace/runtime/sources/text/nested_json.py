"""ARRAYs, STRUCTs, MAPs and BINARY from the values of JSON lines.

An ARRAY is a list, a STRUCT an object with the names of its fields as keys, a MAP an object, a BINARY a
string in base64. Other keys of a STRUCT's object are ignored, and what it lacks is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.conversion import sorted_maps
from headrace.elements import BoolArray
from headrace.nested import fields_of, innermost, is_nested, lists, offsets_of
from headrace.runtime.sources.rows.values import parse_texts
from headrace.runtime.sources.text.json_values import READ_AS_TEXT, Object, pick, shown, texts_of
from headrace.schema import BINARY, BOOLEAN, STRING, Field, sql_type

Reasons = dict[int, str]
"""What is wrong with a row, by its place."""


def column_of_json(values: Sequence[object], field: Field) -> tuple[pa.Array, Reasons]:
    """Decoded values as a column; those that are no such values are NULL there, with the reason.

    Args:
        values: as `json_values.decode` gives them.
        field: the column; its name is for the reasons.
    """
    if pa.types.is_struct(field.type):
        return _structs(values, field)
    if is_nested(field.type):
        return _sequences(values, field)
    texts, wrong = texts_of(list(values), field)
    found, bad = parse_texts(texts, field.type)
    for row in np.flatnonzero(bad).tolist():
        wrong[row] = _reason(field, texts[row].as_py())
    return found, wrong


def arrow_type(dtype: pa.DataType) -> pa.DataType | None:
    """The type that Arrow's reader of JSON is to give, for `finished`; None where it cannot read such."""
    if any(map(pa.types.is_map, _nested_in(dtype))):
        return None
    if pa.types.is_struct(dtype):
        return pa.struct([(part.name, arrow_type(part.type)) for part in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(arrow_type(dtype.value_type))
    return STRING if dtype in (*READ_AS_TEXT, BINARY) else dtype


def finished(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """A column that Arrow has read as `arrow_type` says, with its texts as what they are.

    Raises:
        pa.ArrowInvalid: a text is not such a value; `column_of_json` says which.
    """
    found, bad = _parsed(column, dtype)
    if bad is not None and bad.any():
        raise pa.ArrowInvalid("a text is not a value")
    return found


def _nested_in(dtype: pa.DataType) -> list[pa.DataType]:
    """The type and the nested types in it."""
    if pa.types.is_struct(dtype):
        return [dtype, *(inner for part in dtype for inner in _nested_in(part.type))]
    if pa.types.is_list(dtype):
        return [dtype, *_nested_in(dtype.value_type)]
    return [dtype]


def _parsed(column: pa.Array, dtype: pa.DataType) -> tuple[pa.Array, BoolArray | None]:
    """The column as the type, and the rows that hold a text which is no value; None if no row can."""
    if not any(kind in (*READ_AS_TEXT, BINARY) for kind in innermost(dtype)):
        return column, None
    if pa.types.is_struct(dtype):
        parts = [_parsed(part, field.type) for part, field in zip(fields_of(column), dtype, strict=True)]
        names = [field.name for field in dtype]
        found = pa.StructArray.from_arrays([part for part, _ in parts], names=names, mask=column.is_null())
        return found, np.logical_or.reduce([bad for _, bad in parts if bad is not None])
    if pa.types.is_list(dtype):
        values, bad = _parsed(column.values, dtype.value_type)
        offsets = offsets_of(column)
        assert bad is not None, "a type that is parsed has a part that is"
        counts = np.concatenate([[0], np.cumsum(bad)])
        return lists(offsets, values, column), counts[offsets[1:]] > counts[offsets[:-1]]
    return parse_texts(column, dtype)


def _structs(values: Sequence[object], field: Field) -> tuple[pa.Array, Reasons]:
    names = [part.name for part in field.type]
    rows: list[list[object] | None] = []
    wrong: Reasons = {}
    for place, value in enumerate(values):
        rows.append(None)
        if isinstance(value, Object):
            try:
                rows[place] = pick(value, names)
            except ValueError as error:
                wrong[place] = f"{field.name}: {error}"
        elif value is not None:
            wrong[place] = _reason(field, value)
    parts = []
    for index, part in enumerate(field.type):
        inner = Field(f"{field.name}.{part.name}", part.type)
        found, bad = column_of_json([None if row is None else row[index] for row in rows], inner)
        parts.append(found)
        wrong = bad | wrong
    mask = pa.array([row is None for row in rows], BOOLEAN)
    return pa.StructArray.from_arrays(parts, names=names, mask=mask), wrong


def _sequences(values: Sequence[object], field: Field) -> tuple[pa.Array, Reasons]:
    """ARRAYs and MAPs."""
    is_map = pa.types.is_map(field.type)
    kind = Object if is_map else list
    wrong = {
        place: _reason(field, value)
        for place, value in enumerate(values)
        if not (value is None or isinstance(value, kind))
    }
    rows = [value if isinstance(value, kind) else () for value in values]
    places = np.repeat(np.arange(len(rows)), list(map(len, rows))).tolist()
    offsets = np.cumsum([0, *map(len, rows)])
    there = pa.array([True if isinstance(value, kind) else None for value in values], BOOLEAN)
    flat: list[object] = [value for row in rows for value in row]
    if not is_map:
        found, bad = column_of_json(flat, Field(field.name, field.type.value_type))
        return lists(offsets, found, there), _by_row(bad, places) | wrong
    entries = [entry for entry in flat if isinstance(entry, tuple)]
    keys, bad_keys = _keys([str(key) for key, _ in entries], field)
    items, bad_items = column_of_json([item for _, item in entries], Field(field.name, field.type.item_type))
    wrong = _by_row(bad_keys | bad_items, places) | wrong
    good = pa.array(
        [None if place in wrong else value for place, value in enumerate(there.to_pylist())], BOOLEAN
    )
    return sorted_maps(offsets, keys, items, good), wrong


def _keys(texts: list[str], field: Field) -> tuple[pa.Array, Reasons]:
    """The keys of MAPs, which are texts in JSON."""
    kind = field.type.key_type
    if is_nested(kind) or kind == BINARY:
        return pa.nulls(len(texts), kind), {place: _reason(field, text) for place, text in enumerate(texts)}
    found, bad = parse_texts(pa.array(texts, STRING), kind)
    return found, {place: _reason(field, texts[place]) for place in np.flatnonzero(bad).tolist()}


def _by_row(wrong: Reasons, places: Sequence[int]) -> Reasons:
    """The first reason of each row, where values are at those places."""
    return {places[value]: wrong[value] for value in sorted(wrong, reverse=True)}


def _reason(field: Field, value: object) -> str:
    text = f"'{value}'" if type(value) is str else shown(value)
    return f"{field.name} is not a valid {sql_type(field.type)}: {text}"
