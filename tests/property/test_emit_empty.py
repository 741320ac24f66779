"""EMIT EMPTY against its definition: a row from the first row of any source on, where there is none else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.nodes import Aggregate, Plan, Union
from headrace.algebra.properties import walk
from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.defaults import Defaults
from headrace.language.parsing.parser import parse
from headrace.language.statements.statements import Select
from headrace.optimizer import optimize
from headrace.reference.aggregates import aggregate
from headrace.reference.contents import Stream, content_at, payload
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, Field, Schema
from headrace.time import INFINITY, TimeDomain
from how_many import examples

COLUMNS = ("v", "ts")
SCHEMA = Schema(tuple(Field(name, BIGINT) for name in COLUMNS))
CATALOG = Catalog()
for _name in "ab":
    CATALOG = CATALOG.define(StreamInfo(_name, SCHEMA, "ts", TimeDomain.INTEGER))

VALUES = """COUNT(*) AS n, MAX(a.v) AS most, COUNT(COALESCE(a.v, 0)) AS given,
ARRAY_AGG(COALESCE(a.v, 7)) AS vs, FIRST(COALESCE(a.v, 0) ORDER BY a.v) AS least,
COUNT(*) FILTER (WHERE COALESCE(a.v, 9) > 1) AS high, COUNT(DISTINCT COALESCE(a.v, 0)) AS different,
MEDIAN(a.v) AS middle"""
"""Most of these would count a row of NULLs."""

FROM = {
    "a filter": "a [RANGE 3] WHERE v > 2",
    "a filter that lets nothing through": "a [NOW] WHERE v > 9",
    "a window that slides": "a [RANGE 4 SLIDE 4]",
    "a granularity": "a [RANGE 4] GRANULARITY(3)",
    "a join": "a [RANGE 3], b [RANGE 3] WHERE a.v = b.v",
    "an outer join": "a [RANGE 3] LEFT JOIN b [RANGE 3] ON a.v = b.v",
    "a subquery": "a [RANGE 3] WHERE v IN (SELECT v FROM b [RANGE 2])",
    "a derived stream": "ISTREAM(SELECT v, COUNT(*) FROM a [RANGE 2] WHERE v > 1 GROUP BY v) [RANGE 2] a",
}


def plan_of(text: str) -> Plan:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return bind(statement.query, CATALOG)


def rows() -> st.SearchStrategy[Stream]:
    pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 15)), max_size=5)
    return pairs.map(lambda found: Stream(COLUMNS, [((v, ts), ts, ts + 1, 1) for v, ts in found]))


@pytest.mark.parametrize("name", FROM)
@examples(17)
@given(rows(), rows(), st.booleans())
def test_the_definition(name: str, a: Stream, b: Stream, optimized: bool) -> None:
    text, streams = f"SELECT {VALUES} FROM {FROM[name]}", {"a": a, "b": b}
    plain, plan = plan_of(text), plan_of(f"{text} EMIT EMPTY")
    assert isinstance(plain, Aggregate)
    nothing = payload(aggregate(call, ()) for _, call in plain.aggregates)
    read = [*a.elements, *(b.elements if "b [" in FROM[name] else ())]
    begun = min((ts for _, ts, _, _ in read), default=INFINITY)
    without = [(row, ts, te, 1) for row, ts, te in evaluate(plain, streams)]
    history = evaluate(optimize(plan) if optimized else plan, streams)
    found = [(row, ts, te, 1) for row, ts, te in history]
    for instant in range(-1, 30):
        empty = Counter({nothing: 1} if instant >= begun else {})
        assert content_at(found, instant) == (content_at(without, instant) or empty)


HAVING = {
    "COUNT(*) = 0": True,
    "COUNT(*) < 2 AND NOT COUNT(a.v) > 0": True,
    "MAX(a.v) IS NULL": True,
    "COALESCE(SUM(a.v), 0) < 5": True,
    "COUNT(*) FILTER (WHERE v > 7) = 0 OR MIN(a.v) > 1": True,
    "TRUE": True,
    "COUNT(*) > 0": False,
    "MAX(a.v) < 5": False,
    "NOT MAX(a.v) < 5": False,
    "1 / COUNT(*) > 0": False,
    "CARDINALITY(ARRAY_AGG(a.v)) = 0": False,
}
"""Conditions, with whether they are true of no rows."""


@pytest.mark.parametrize("condition", HAVING)
@pytest.mark.parametrize("window", ["[RANGE 3]", "[RANGE 4 SLIDE 4]", "[RANGE UNBOUNDED]"])
def test_a_condition_that_holds_of_nothing_asks_for_its_row(condition: str, window: str) -> None:
    """An alarm such as HAVING COUNT(*) = 0 would never ring else."""
    text = f"SELECT COUNT(*) AS n, SUM(a.v) AS total FROM a {window} WHERE v > 2 HAVING {condition}"
    assert (plan_of(text) == plan_of(f"{text} EMIT EMPTY")) == HAVING[condition]


@pytest.mark.parametrize("condition", HAVING)
def test_groups_and_the_readings_of_the_papers_have_no_row_of_nothing(condition: str) -> None:
    groups = f"SELECT COUNT(*) AS n FROM a [RANGE 3] GROUP BY v HAVING {condition}"
    assert not any(isinstance(node, Union) for node in walk(plan_of(groups)))
    (statement,) = parse(f"SELECT COUNT(*) AS n FROM a [RANGE 3] HAVING {condition}")
    assert isinstance(statement, Select)
    for defaults in (Defaults.PIPES, Defaults.CQL):
        plan = bind(statement.query, replace(CATALOG, defaults=defaults))
        assert not any(isinstance(node, Union) for node in walk(plan))
