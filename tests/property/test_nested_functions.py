"""Functions of ARRAYs, STRUCTs and MAPs over random columns, against the reference row by row."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import from_rows
from headrace.errors import LanguageError, UserError
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import literal, make_cast, resolve
from headrace.expressions.tree import Column, Expression
from headrace.reference.contents import equal_form
from headrace.reference.scalars import RowError, value
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Field, Schema
from property.strategies import nested_types, payloads

_PLACES = st.sampled_from((None, 0, 1, -1, 2, 3, -3, -4, 2**62, -(2**63)))


@st.composite
def calls(draw: st.DrawFn) -> tuple[Expression, Schema, list[tuple[Any, ...]]]:
    """A call over columns, with rows for it."""
    part = draw(nested_types(1))
    kind = draw(st.sampled_from(("ARRAY", "STRUCT", "MAP")))
    key = draw(st.sampled_from((STRING, BIGINT)))
    nested = {
        "ARRAY": pa.list_(part),
        "STRUCT": pa.struct([("a", part), ("b", key)]),
        "MAP": pa.map_(key, part),
    }
    other = {"ARRAY": part, "STRUCT": part, "MAP": key}[kind]
    schema = Schema((Field("x", nested[kind]), Field("y", other), Field("i", BIGINT), Field("p", BOOLEAN)))
    rows = draw(st.lists(st.tuples(payloads(schema), _PLACES), min_size=1, max_size=6))
    listed = [(x, y, place, p) for (x, y, _, p), place in rows]
    x, y, i, p = (Column(place, field.name, field.type) for place, field in enumerate(schema))
    name, arguments = draw(
        st.sampled_from(
            {
                "ARRAY": (
                    *(("[]", (x, i)), ("ELEMENT_AT", (x, i)), ("TRY_ELEMENT_AT", (x, i)), ("GET", (x, i))),
                    *(("SIZE", (x,)), ("ARRAY_CONTAINS", (x, y)), ("ARRAY_POSITION", (x, y))),
                    *(("ARRAY_DISTINCT", (x,)), ("SORT_ARRAY", (x,)), ("SORT_ARRAY", (x, p))),
                    *(("ARRAY_MIN", (x,)), ("ARRAY_MAX", (x,)), ("TO_JSON", (x,)), ("ARRAY", (y, y, y))),
                ),
                "STRUCT": (
                    *(("GET_FIELD", (x, literal("A"))), ("GET_FIELD", (x, literal("b"))), ("TO_JSON", (x,))),
                    *(("NAMED_STRUCT", (literal("f"), x, literal("g"), y)), ("ARRAY", (x,))),
                ),
                "MAP": (
                    *(("[]", (x, y)), ("MAP_CONTAINS_KEY", (x, y)), ("MAP_KEYS", (x,)), ("MAP_VALUES", (x,))),
                    *(("SIZE", (x,)), ("TO_JSON", (x,)), ("MAP", (y, x)), ("MAP", (i, y, literal(1), y))),
                ),
            }[kind]
        )
    )
    try:
        return resolve(name, arguments), schema, listed
    except UserError:
        # ARRAYs of what is not compared.
        return resolve("SIZE", (x,)), schema, listed


@given(calls())
def test_calls_give_what_the_reference_says(case: tuple[Expression, Schema, list[tuple[Any, ...]]]) -> None:
    call, schema, rows = case
    outcome = evaluate(call, from_rows(schema, [(row, 0, 1, 1) for row in rows]).payload)
    assert outcome.values.type == call.type
    reasons = outcome.reasons().to_pylist()
    for row, found, reason in zip(rows, outcome.values.to_pylist(), reasons, strict=True):
        try:
            expected, failure = value(call, row), None
        except RowError as error:
            expected, failure = None, str(error)
        assert reason == failure
        assert repr(equal_form(found)) == repr(equal_form(expected))


_CASTS = (
    (pa.list_(STRING), pa.list_(BIGINT)),
    (pa.list_(pa.list_(DOUBLE)), pa.list_(pa.list_(BIGINT))),
    (pa.struct([("a", STRING), ("b", BIGINT)]), pa.struct([("x", BIGINT), ("y", STRING)])),
    (pa.list_(pa.struct([("a", BIGINT)])), pa.list_(pa.struct([("b", BOOLEAN)]))),
    (pa.struct([("a", pa.list_(BOOLEAN))]), pa.struct([("a", pa.list_(STRING))])),
)


@given(st.sampled_from(_CASTS), st.data())
def test_what_arrays_and_structs_are_made_of_is_cast(
    types: tuple[pa.DataType, pa.DataType], data: st.DataObject
) -> None:
    schema = Schema((Field("x", types[0]),))
    rows = data.draw(st.lists(payloads(schema), min_size=1, max_size=6))
    call = make_cast(Column(0, "x", types[0]), types[1])
    payload = from_rows(schema, [(row, 0, 1, 1) for row in rows]).payload
    start = data.draw(st.integers(0, len(rows) - 1))
    outcome = evaluate(call, payload.slice(start))
    assert outcome.values.type == types[1]
    reasons = outcome.reasons().to_pylist()
    for row, found, reason in zip(rows[start:], outcome.values.to_pylist(), reasons, strict=True):
        try:
            expected, failure = value(call, row), None
        except RowError as error:
            expected, failure = None, str(error)
        assert (repr(equal_form(found)), reason) == (repr(equal_form(expected)), failure)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.struct([("a", BIGINT)]), STRING),
        (STRING, pa.struct([("a", BIGINT)])),
        (pa.map_(STRING, BIGINT), STRING),
        (pa.map_(STRING, BIGINT), pa.map_(STRING, STRING)),
        (pa.struct([("a", BIGINT)]), pa.struct([("a", BIGINT), ("b", BIGINT)])),
        (pa.list_(BIGINT), pa.struct([("a", BIGINT)])),
        (pa.list_(TIMESTAMP), pa.list_(BIGINT)),
    ],
)
def test_others_are_not_cast(source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(LanguageError, match="cannot be cast to"):
        make_cast(Column(0, "x", source), target)


_ENDS = st.none() | st.integers(-6, 6) | st.sampled_from((2**62, 2**63 - 1, -(2**63)))


@given(
    st.sampled_from(("SEQUENCE", "GENERATE_SERIES")),
    st.integers(2, 3),
    st.lists(st.tuples(_ENDS, _ENDS, _ENDS), min_size=1, max_size=6),
)
def test_numbers_from_one_to_another(name: str, count: int, rows: list[tuple[int | None, ...]]) -> None:
    call = resolve(name, tuple(Column(place, "x", BIGINT) for place in range(count)))
    columns = [pa.array(list(part), BIGINT) for part in zip(*rows, strict=True)]
    outcome = evaluate(call, pa.record_batch(columns, list("abc")))
    reasons = outcome.reasons().to_pylist()
    for row, found, reason in zip(rows, outcome.values.to_pylist(), reasons, strict=True):
        try:
            expected, failure = value(call, row), None
        except RowError as error:
            expected, failure = None, str(error)
        assert (found, reason) == (expected, failure)


@given(st.text("ab,;", max_size=8), st.sampled_from((",", "[,;]", "a+", "(a|b),")))
def test_texts_are_split(text: str, pattern: str) -> None:
    call = resolve("SPLIT", (Column(0, "x", STRING), literal(pattern)))
    found = evaluate(call, pa.record_batch([pa.array([text, None])], ["x"])).values.to_pylist()
    assert found == [value(call, (text,)), None]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text('a"é\\', max_size=3),
        lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(("a", "b c")), part),
        max_leaves=6,
    ),
    st.sampled_from(("$", "$.a", "$.a.a", "$[0]", "$.a[1]", "$['b c'].a", "$.a['b c']")),
)
def test_paths_lead_into_json(read: Any, path: str) -> None:
    call = resolve("GET_JSON_OBJECT", (Column(0, "x", STRING), literal(path)))
    texts = [json.dumps(read), json.dumps(read)[:-1] + "!", None]
    found = evaluate(call, pa.record_batch([pa.array(texts, STRING)], ["x"])).values.to_pylist()
    assert found == [value(call, (texts[0],)), None, None]


_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM", "IN", "BETWEEN", "GREATEST", "LEAST")


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[Expression, Schema, list[tuple[Any, ...]]]:
    """A comparison of ARRAYs or STRUCTs, those of a column with others of it."""
    part = draw(nested_types(1))
    dtype = draw(st.sampled_from((pa.list_(part), pa.struct([("a", part), ("b", BIGINT)]))))
    schema = Schema((Field("x", dtype),))
    pool = draw(st.lists(payloads(schema), min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*[st.sampled_from(pool)] * 3), min_size=1, max_size=6))
    wide = Schema(tuple(Field(name, dtype) for name in "xyz"))
    name = draw(st.sampled_from(_COMPARED))
    x, y, z = (Column(place, field.name, field.type) for place, field in enumerate(wide))
    arguments = (x, y, z) if name in ("IN", "BETWEEN", "GREATEST", "LEAST") else (x, y)
    try:
        call = resolve(name, arguments)
    except UserError:
        # There are MAPs in it.
        call = resolve("IS NULL", (x,))
    return call, wide, [tuple(value for (value,) in row) for row in rows]


@given(comparisons())
def test_values_are_compared_as_the_reference_does(
    case: tuple[Expression, Schema, list[tuple[Any, ...]]],
) -> None:
    call, schema, rows = case
    found = evaluate(call, from_rows(schema, [(row, 0, 1, 1) for row in rows]).payload)
    expected = [value(call, row) for row in rows]
    assert list(map(equal_form, found.values.to_pylist())) == list(map(equal_form, expected))
    assert found.failed is None
