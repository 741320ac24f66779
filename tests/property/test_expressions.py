"""Columns at once give what the reference gives row by row, failures included."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.nodes import Project
from headrace.elements import from_rows
from headrace.expressions.evaluation.evaluate import evaluate, predicate_mask
from headrace.expressions.render import render
from headrace.expressions.tree import Expression
from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.statements import Select
from headrace.reference.contents import equal_form
from headrace.schema import BIGINT, BOOLEAN, Field, Schema, sql_type
from headrace.time import TimeDomain
from how_many import examples
from property.expression_strategies import KINDS, Row, expected, expressions
from property.strategies import ALL_TYPES, BATTERY, payloads, schemas


def batch_of(schema: Schema, rows: Sequence[Row]) -> pa.RecordBatch:
    """The rows as a view that does not begin at the start of its buffers."""
    padded = from_rows(schema, [(row, 0, 1, 1) for row in [*rows[:1], *rows]])
    return padded.payload.slice(min(len(rows), 1))


WIDE = Schema(tuple(Field(f"c{place}", dtype) for place, dtype in enumerate((*ALL_TYPES, *ALL_TYPES))))
"""Two columns of each type, so that calls take columns more often than constants."""


@st.composite
def cases(
    draw: st.DrawFn, kind: pa.DataType, *, depth: int, rough: bool
) -> tuple[Schema, Expression, list[Row]]:
    schema = draw(st.just(WIDE) | schemas(ALL_TYPES, max_columns=4))
    expression = draw(expressions(schema, kind, depth=depth, rough=rough))
    pools = BATTERY if rough else None
    return schema, expression, draw(st.lists(payloads(schema, pools=pools), max_size=5))


def check(case: tuple[Schema, Expression, list[Row]]) -> None:
    schema, expression, rows = case
    outcome = evaluate(expression, batch_of(schema, rows))
    results, reasons = expected(expression, rows)
    assert outcome.reasons().to_pylist() == reasons
    assert outcome.values.type == expression.type
    assert plain(outcome.values) == plain(pa.array(results, expression.type))
    if any(reasons):
        assert outcome.failed is not None
        assert outcome.failed.tolist() == [reason is not None for reason in reasons]
        assert outcome.reason in reasons
    else:
        assert outcome.failed is None
    if expression.type == BOOLEAN:
        assert predicate_mask(outcome).tolist() == [one is True for one in results]


def plain(column: pa.Array) -> list[str]:
    """The values as texts that are equal where the values are equal in grouping."""
    return [repr(equal_form(one)) for one in column.to_pylist()]


@pytest.mark.parametrize("kind", KINDS, ids=sql_type)
@examples(17)
@given(st.data())
def test_single_calls(kind: pa.DataType, data: st.DataObject) -> None:
    check(data.draw(cases(kind, depth=1, rough=True)))


@pytest.mark.parametrize("kind", KINDS, ids=sql_type)
@examples(17)
@given(st.data())
def test_gentle_expressions(kind: pa.DataType, data: st.DataObject) -> None:
    check(data.draw(cases(kind, depth=3, rough=False)))


@pytest.mark.parametrize("kind", KINDS, ids=sql_type)
@examples(17)
@given(st.data())
def test_rough_expressions(kind: pa.DataType, data: st.DataObject) -> None:
    check(data.draw(cases(kind, depth=3, rough=True)))


@examples(17)
@given(st.sampled_from(KINDS).flatmap(lambda kind: cases(kind, depth=3, rough=True)))
def test_text_reads_back_as_the_same_tree(case: tuple[Schema, Expression, list[Row]]) -> None:
    schema, expression, _ = case
    columns = Schema((*schema, Field("ts", BIGINT)))
    catalog = Catalog().define(StreamInfo("s", columns, "ts", TimeDomain.INTEGER))
    statement = parse_one(f"SELECT {render(expression)} AS x FROM s")
    assert isinstance(statement, Select)
    plan = bind(statement.query, catalog)
    assert isinstance(plan, Project)
    assert plan.items[0][1] == expression
