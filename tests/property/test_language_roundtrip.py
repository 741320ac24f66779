"""Text to plan to text to plan is the identity, for any expression and any query shape."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auctions import CATALOG, define
from golden.case import CASES, load
from headrace.algebra.nodes import Filter, Plan, Project, Source
from headrace.expressions.tree import Expression
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.defaults import Defaults
from headrace.language.printer import to_sql
from headrace.optimizer import optimize
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema
from headrace.time import TimeDomain
from how_many import examples
from property.expression_strategies import KINDS, expressions
from property.plan_strategies import Case, cases

SCHEMA = Schema(
    tuple(
        Field(name, dtype)
        for name, dtype in (
            ("id", BIGINT),
            ("x", DOUBLE),
            ("order", STRING),
            ("flag", BOOLEAN),
            ("price", pa.decimal128(7, 2)),
            ("date", DATE),
            ("timestamp", TIMESTAMP),
            ("other id", BIGINT),
        )
    )
)
EVENTS = CATALOG.define(StreamInfo("events", SCHEMA, "id", TimeDomain.INTEGER))
SOURCE = Source("events", SCHEMA, "id", TimeDomain.INTEGER)


def bound(text: str, catalog: Catalog = EVENTS) -> Plan:
    return define(text, catalog)[1][0]


@given(st.sampled_from(KINDS).flatmap(lambda kind: expressions(SCHEMA, kind, rough=True)))
def test_any_expression(expression: Expression) -> None:
    plan = Project(SOURCE, (("result", expression),))
    assert bound(to_sql(plan)) == plan


@given(expressions(SCHEMA, BOOLEAN, rough=True))
def test_any_condition(expression: Expression) -> None:
    plan = Filter(SOURCE, expression)
    assert bound(to_sql(plan)) == plan


@pytest.mark.parametrize("name", [path.stem for path in sorted(CASES.glob("*.txt"))])
def test_every_golden_query(name: str) -> None:
    case = load(CASES / f"{name}.txt")
    catalog = replace(case.catalog, defaults=Defaults.PIPES)
    assert bound(to_sql(case.plan), catalog) == case.plan
    # Columns inside an optimized plan may get other names.
    again = optimize(bound(to_sql(optimize(case.plan)), catalog))
    assert again.schema == case.plan.schema
    assert optimize(bound(to_sql(again), catalog)) == again


@examples(17)
@given(cases(depth=4))
def test_any_plan(case: Case) -> None:
    catalog = Catalog(defaults=Defaults.PIPES)
    for stream in case.streams:
        catalog = catalog.define(StreamInfo(stream.name, stream.schema, "ts", TimeDomain.INTEGER))
    plan = bound(to_sql(case.plan), catalog)
    assert plan.schema == case.plan.schema
    assert bound(to_sql(plan), catalog) == plan
    assert evaluate(plan, case.reference_streams()) == evaluate(case.plan, case.reference_streams())


@examples(17)
@given(cases(depth=4))
def test_any_optimized_plan(case: Case) -> None:
    catalog = Catalog(defaults=Defaults.PIPES)
    for stream in case.streams:
        catalog = catalog.define(StreamInfo(stream.name, stream.schema, "ts", TimeDomain.INTEGER))
    plan = bound(to_sql(optimize(case.plan)), catalog)
    assert evaluate(plan, case.reference_streams()) == evaluate(case.plan, case.reference_streams())


def test_a_window_with_an_offset_of_which_no_column_is_read() -> None:
    hop = "TABLE(HOP(TABLE events, DESCRIPTOR(id), 2, 4, 1))"
    plan = optimize(bound(f"SELECT x FROM events LEFT SEMI JOIN {hop} AS h ON TRUE"))
    assert "NULL AS nothing" in to_sql(plan)
    assert bound(to_sql(plan)).schema == plan.schema
