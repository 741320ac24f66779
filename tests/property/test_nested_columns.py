"""Columns of ARRAYs, STRUCTs and MAPs: equality, order and hashes against their meaning row by row."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.conversion import cast_exactly, column_of
from headrace.elements import from_rows, to_rows
from headrace.expressions.tree import Column, SortKey
from headrace.history import canonical, normalise_column, ordered_codes
from headrace.nested import is_nested, part_types
from headrace.operators.state.keys import encode_keys, hash_rows, key_values
from headrace.operators.state.order import rank_rows
from headrace.optimizer.cost.growth import codes_of
from headrace.reference.contents import Element, content_at, equal_form, history_of, payload
from headrace.reference.sampling import _hash
from headrace.schema import Field, Schema, sql_type, type_named
from headrace.time import INFINITY
from headrace.value_texts import json_texts
from how_many import examples
from property.strategies import nested_types, signed_histories, values


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, list[Any]]:
    """A column of few values that are often equal, perhaps a slice of a longer one, and its values."""
    dtype = draw(nested_types())
    some = draw(st.lists(values(dtype), min_size=1, max_size=4))
    rows = draw(st.lists(st.sampled_from(some), max_size=8))
    start = draw(st.integers(0, len(rows)))
    return pa.array(rows, dtype).slice(start), rows[start:]


def compared(left: Any, right: Any, dtype: pa.DataType) -> int:
    """-1, 0 or 1: NULL comes first, NaN last, a STRUCT goes field by field, a shorter ARRAY first."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if is_nested(dtype):
        kinds = tuple(part_types(dtype))
        if pa.types.is_map(dtype):
            kinds = (pa.struct(list(zip("kv", kinds, strict=True))),)
        spread = kinds if pa.types.is_struct(dtype) else kinds * max(len(left), len(right))
        found = (compared(one, other, kind) for one, other, kind in zip(left, right, spread, strict=False))
        return next(filter(None, found), (len(left) > len(right)) - (len(left) < len(right)))
    if isinstance(left, float):
        left, right = (left != left, left), (right != right, right)
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return int(left > right) - int(left < right)


@examples(17)
@given(columns())
def test_codes_are_in_the_order_of_the_values(case: tuple[pa.Array, list[Any]]) -> None:
    column, rows = case
    forms = list(map(equal_form, rows))
    found = ordered_codes(normalise_column(column)).tolist()
    ranks = rank_rows([column], [SortKey(Column(0, "x", column.type))]).tolist()
    for one, left in enumerate(forms):
        for other, right in enumerate(forms):
            expected = compared(left, right, column.type)
            assert np.sign(found[one] - found[other]) == expected
            assert np.sign(ranks[one] - ranks[other]) == expected


@given(columns())
def test_keys_are_equal_where_the_values_are(case: tuple[pa.Array, list[Any]]) -> None:
    column, rows = case
    normal = normalise_column(column)
    hashes = hash_rows([normal], len(normal))
    assert hashes.view(np.uint64).tolist() == [_hash((equal_form(row),), (column.type,)) for row in rows]
    for found in (encode_keys([normal], hashes), encode_keys([normal], np.zeros_like(hashes))):
        # With all hashes equal, equality alone separates the keys.
        keys = [equal_form(rows[place]) for place in found.first.tolist()]
        assert [keys[code] for code in found.codes.tolist()] == list(map(equal_form, rows))
        assert len(set(keys)) == len(keys)
    assert len(set(key_values(normal))) == len(set(map(equal_form, rows)))


@given(
    nested_types().flatmap(
        lambda kind: signed_histories(Schema((Field("x", kind),)), disorder=2).map(
            lambda found: (kind, found)
        )
    )
)
def test_histories_of_nested_rows_are_canonical(case: tuple[pa.DataType, list[Element]]) -> None:
    kind, elements = case
    schema = Schema((Field("x", kind),))
    ends = sorted({end for _, ts, te, _ in elements for end in (ts, te)} - {INFINITY})
    forms = [(payload(row), ts, te, w) for row, ts, te, w in elements]
    history = history_of({instant: content_at(forms, instant) for instant in ends})
    found = to_rows(canonical(from_rows(schema, elements)))
    assert Counter((payload(row), ts, te) for row, ts, te, _ in found) == Counter(history)


@given(nested_types())
def test_names_of_types_are_read_back(kind: pa.DataType) -> None:
    assert type_named(sql_type(kind)) == kind


def test_fields_may_have_any_name() -> None:
    kind = pa.struct([("a b", pa.int64()), ("x`: y, <", pa.list_(pa.string())), ("ü", pa.decimal128(3, 2))])
    assert type_named(sql_type(kind)) == kind


@given(columns())
def test_python_values_are_taken_as_they_are(case: tuple[pa.Array, list[Any]]) -> None:
    column, rows = case
    assert list(map(equal_form, column_of(rows, column.type).to_pylist())) == list(map(equal_form, rows))
    assert cast_exactly(column, column.type).equals(column_of(rows, column.type)) or "nan" in str(column)


@given(columns())
def test_texts_are_json(case: tuple[pa.Array, list[Any]]) -> None:
    column, rows = case
    for text, row in zip(json_texts(column).to_pylist(), rows, strict=True):
        assert as_read(json.loads(text)) == as_read(row)


def as_read(value: Any) -> Any:
    """A value as JSON has it: NaN and infinities, bytes and instants as texts, MAPs as objects."""
    match value:
        case dict():
            return {str(key): as_read(part) for key, part in value.items()}
        case [(_, _), *_] if all(isinstance(entry, tuple) for entry in value):
            return {str(key): as_read(part) for key, part in value}
        case list():
            return [as_read(part) for part in value] or {}
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case bytes():
            return b64encode(value).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | Decimal():
            return value.isoformat() if isinstance(value, date) else float(value)
        case _:
            return value


@given(columns())
def test_equal_values_of_samples_are_counted_once(case: tuple[pa.Array, list[Any]]) -> None:
    column, _ = case
    codes = codes_of([column], len(column)).tolist()
    forms = list(map(equal_form, column.to_pylist()))
    # Of single DOUBLEs the sign of 0 counts here, which no estimate depends on.
    for one, left in enumerate(forms if is_nested(column.type) else []):
        assert [(left,) == (other,) for other in forms] == [codes[one] == code for code in codes]
