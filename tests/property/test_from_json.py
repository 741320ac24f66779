"""FROM_JSON of random texts, as random types, against the reference row by row."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import from_rows
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Column, Literal
from headrace.nested import is_nested
from headrace.reference.contents import equal_form
from headrace.reference.scalars import value
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema

_TYPES = st.recursive(
    st.sampled_from((STRING, BIGINT, DOUBLE, pa.decimal128(5, 1), BOOLEAN, DATE, TIMESTAMP, BINARY)),
    lambda part: st.one_of(
        part.map(pa.list_),
        part.map(lambda kind: pa.map_(STRING, kind)),
        st.tuples(part, part).map(lambda kinds: pa.struct([("a", kinds[0]), ("b", kinds[1])])),
    ),
    max_leaves=4,
).filter(is_nested)
_SINGLE = st.sampled_from(
    (None, True, 0, -7, 1.5, 2**70, 123456, "", "x", "1", "NaN", "-INF", "1.25", "2024-02-29", "QUI=", "é")
)
_VALUES = st.recursive(
    _SINGLE,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(("a", "b", "A")), part),
    max_leaves=6,
)
_WRONG = st.sampled_from(
    (None, "", " ", "oops", '{"a": 1', '{"a": 1} x', "[1, 2] [3]", "null", "[01]", "{a: 1}")
)


def _fitting(dtype: pa.DataType) -> st.SearchStrategy[Any]:
    """JSON that has the form of a type, with single values of any."""
    if pa.types.is_list(dtype):
        return st.lists(_fitting(dtype.value_type), max_size=3) | st.none()
    if pa.types.is_map(dtype):
        return st.dictionaries(st.sampled_from(("b", "a", "")), _fitting(dtype.item_type)) | st.none()
    if pa.types.is_struct(dtype):
        return st.fixed_dictionaries({}, optional={part.name: _fitting(part.type) for part in dtype})
    return _SINGLE


@given(_TYPES, st.data())
def test_texts_are_read_as_the_reference_reads_them(dtype: pa.DataType, data: st.DataObject) -> None:
    texts = (_VALUES | _fitting(dtype)).map(lambda read: json.dumps(read, ensure_ascii=False)) | _WRONG
    rows = [(text,) for text in data.draw(st.lists(texts, min_size=1, max_size=6))]
    schema = Schema((Field("s", STRING),))
    call = resolve("FROM_JSON", (Column(0, "s", STRING), Literal(None, dtype)))
    outcome = evaluate(call, from_rows(schema, [(row, 0, 1, 1) for row in rows]).payload)
    outcome.values.validate(full=True)
    assert outcome.values.type == dtype
    assert outcome.failed is None
    expected = [equal_form(value(call, row)) for row in rows]
    assert repr(list(map(equal_form, outcome.values.to_pylist()))) == repr(expected)
