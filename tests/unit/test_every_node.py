"""Every node of the closed union `Plan` has a text, a definition, operators and a golden file.

mypy's `assert_never` sees to the functions that match on a plan; it does not see a table of types, a class
that raises, or a golden file that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import get_args

import pytest

from auctions import CATALOG, define
from golden.case import CASES, load
from headrace.algebra.explain import explain
from headrace.algebra.horizon import Horizon
from headrace.algebra.kinds import BloomKind, JoinKind, Ranking, SetKind
from headrace.algebra.memory import Memory
from headrace.algebra.nodes import (
    BloomFilter,
    BoundedRowWindow,
    Clip,
    Coalesce,
    Draw,
    Early,
    Join,
    LargestWeight,
    Leaf,
    Match,
    NestedAggregate,
    OuterJoin,
    Plan,
    Remember,
    SemanticDrop,
    SemiJoin,
    SessionAggregate,
    SetOperation,
    Shed,
    TimeWindow,
    TopK,
    Weighing,
    WindowEvents,
    column,
)
from headrace.algebra.properties import is_stateful, is_stateless, walk
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Expression
from headrace.language.printer import to_sql
from headrace.lowering.lower import lower
from headrace.lowering.memory import remembering
from headrace.optimizer import optimize
from headrace.optimizer.cost.machine import MACHINE
from headrace.optimizer.cost.work import NodeCounts, reading, work_of
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.steps import Step
from headrace.time import ALWAYS, INFINITY, Duration
from headrace.value_graph import ValueGraph
from worked.tables import equivalent

TEXTS = {
    "Source": "SELECT * FROM tick",
    "EventSource": "SELECT id FROM fix",
    "Relation": "SELECT id, text FROM tick t JOIN label l ON l.kind = t.kind",
    "Filter": "SELECT * FROM tick WHERE id > 1",
    "Project": "SELECT id + 1 AS next FROM tick",
    "TimeWindow": "SELECT * FROM tick [RANGE 3]",
    "Lifetime": "SELECT * FROM tick [LIFETIME (FLOOR(at TO 2) - 1, id % 4)]",
    "WindowBounds": "SELECT * FROM HOP(tick, DESCRIPTOR(at), 2, 4)",
    "RowWindow": "SELECT * FROM tick [PARTITION BY kind ROWS 2]",
    "SessionWindow": "SELECT * FROM SESSION(tick, DESCRIPTOR(at), DESCRIPTOR(kind), 2)",
    "GapFill": "SELECT * FROM GAP_FILL(TABLE tick PARTITION BY kind, DESCRIPTOR(at), 2, 6, 'NULL')",
    "Unnest": "SELECT id, v, p FROM tick LEFT JOIN UNNEST(ARRAY(id, at)) WITH ORDINALITY AS t (v, p) ON TRUE",
    "Sample": "SELECT * FROM tick SAMPLE(50)",
    "Granularity": "SELECT * FROM tick [RANGE 3] GRANULARITY(2)",
    "Split": "SELECT id FROM (SELECT id FROM tick [RANGE 2]) [RANGE 2]",
    "Over": "SELECT id, COUNT(*) OVER (PARTITION BY kind ORDER BY at RANGE 2 PRECEDING) FROM tick",
    "Union": "SELECT id FROM tick UNION ALL SELECT at FROM tick",
    "SetOperation": "SELECT id FROM tick [RANGE 3] EXCEPT ALL SELECT at FROM tick",
    "Join": "SELECT a.id, b.kind FROM tick [RANGE 3] a JOIN tick [RANGE 2] b ON a.id = b.id",
    "OuterJoin": "SELECT a.id, b.kind FROM tick [RANGE 3] a LEFT JOIN tick b ON a.id = b.id",
    "SemiJoin": "SELECT * FROM tick [RANGE 3] a SEMI JOIN tick b ON a.id = b.id",
    "Aggregate": "SELECT kind, COUNT(*) AS n, MAX(id) AS most FROM tick [RANGE 3] GROUP BY kind",
    "ApproximateAggregate": "SELECT kind, COUNT(*) WITHIN 20 PERCENT AS n FROM tick [RANGE 3] GROUP BY kind",
    "TopK": "SELECT id, kind FROM tick [RANGE 3] ORDER BY id DESC LIMIT 2",
    "Distinct": "SELECT DISTINCT kind FROM tick [RANGE 3]",
    "Finalize": "SELECT id FROM fix",
    "Istream": "ISTREAM(SELECT kind FROM tick [RANGE 3])",
    "Dstream": "DSTREAM(SELECT kind FROM tick [RANGE 3])",
    "Rstream": "RSTREAM(SELECT kind FROM tick [RANGE 3])",
}
"""A query for each node that has a syntax, or that the binder puts where the syntax asks for it."""

LOSS = ("tick",), "LOSS TOLERANT"
GRAPH = ValueGraph("id", ((Decimal(0), Decimal(0)), (Decimal(10), Decimal(1))))
HALF = (Step(3, 500_000),)
BY_VALUE = ("tick",), f"LOSS TOLERANT BY id {GRAPH.text}"

WITHOUT_TEXT: dict[str, Callable[[Plan], Plan]] = {
    "Coalesce": Coalesce,
    "Clip": lambda below: Clip(below, 2, 6),
    "Early": lambda below: Early(below, Horizon(("tick",), 0)),
    "Shed": lambda below: Shed(_chronons(below), *LOSS),
    "Draw": lambda below: Draw(_chronons(below), *LOSS),
    "BloomFilter": lambda below: _known(_chronons(below)),
    "SemanticDrop": lambda below: SemanticDrop(_chronons(below), *BY_VALUE, HALF, place=0, graph=GRAPH),
    "LargestWeight": lambda below: LargestWeight(below, *LOSS, size=Duration(3)),
    "Remember": lambda below: remembering(below, [Memory("tick", 2)]),
    "Match": lambda below: Match(below, ((0, _over(below, 1)), (1, _over(below, 2))), "query"),
    "NestedAggregate": lambda below: _nested(
        next(part for part in walk(below) if isinstance(part, TimeWindow))
    ),
    "SessionAggregate": lambda below: _of_sessions(next(part for part in walk(below) if part.is_chronon)),
}
"""Nodes that only the optimizer, sharing and levels of consistency make; the first ones print as their input.

Coalesce changes no content; neither do the Clips of a migration, together. NestedAggregate, SessionAggregate
and Match print as what they are short for.
"""

UNWRITTEN = {
    BloomFilter,
    Clip,
    Draw,
    Early,
    LargestWeight,
    Match,
    NestedAggregate,
    Remember,
    SemanticDrop,
    Shed,
}
"""Nodes that no plan has as written, and so no golden file.

`test_migrations.py` has Clip, `test_early_answers.py` Early, `test_selected_rows.py` Match,
`test_shared_operators.py` NestedAggregate, `test_remember.py` Remember, `test_shedding.py` Shed and
LargestWeight, `test_limited_joins.py` Draw, `test_bloom_filters.py` BloomFilter, and
`test_value_drops.py` SemanticDrop.
"""

REWRITTEN = (OuterJoin, SemiJoin)
"""Nodes that have no operator: lowering writes them with others (`headrace.lowering.outer_joins`)."""


def _chronons(below: Plan) -> Plan:
    return next(part for part in walk(below) if part.is_chronon)


def _over(below: Plan, least: int) -> Expression:
    return resolve(">", (column(below, 0), literal(least)))


def _known(rows: Plan) -> Plan:
    return BloomFilter(rows, Duration(3), BloomKind.NEW, 9, "WITHIN MEMORY '50 kB'")


def _nested(window: TimeWindow) -> Plan:
    kind = column(window, window.schema.names.index("kind"))
    count = resolve_aggregate("COUNT", None)
    return NestedAggregate(window, (Duration(2),), (("kind", kind),), (("n", count),), "window")


def _of_sessions(rows: Plan) -> Plan:
    kind = column(rows, rows.schema.names.index("kind"))
    most = resolve_aggregate("MAX", column(rows, 0))
    lengths = Duration(2), (kind,), Duration(4)
    return SessionAggregate(rows, *lengths, _over(rows, 1), (("kind", kind),), (("most", most),))


NAMES = [node.__name__ for node in get_args(Plan)]
ROWS = [(1, "a", 1), (2, "b", 1), (1, None, 2), (5, "a", 4), (2, "a", 4), (9, "b", 9)]
TICK = Stream(
    ("id", "kind", "price", "at"),
    [((id_, kind, Decimal("1.50"), at), at, at + 1, 1) for id_, kind, at in ROWS],
)
LABEL = Stream(("kind", "text"), [(row, ALWAYS, INFINITY, 1) for row in (("a", "one"), ("b", "two"))])
FIX = Stream(("id", "w", "at"), [((id_, w, at), at, at + 1, w) for id_, w, at in ((1, 1, 2), (2, -1, 3))])
STREAMS = {"tick": TICK, "label": LABEL, "fix": FIX}


def plan_of(text: str) -> Plan:
    """The plan of a query over the auction streams, the relation `label`, and the corrected `fix`."""
    relation = "CREATE RELATION label (kind STRING, text STRING) KEY (kind) FROM csv OPTIONS (path 'label')"
    stream = "CREATE STREAM fix (id BIGINT, w BIGINT, at BIGINT) FROM push CHANGES BY w TIMESTAMP BY at"
    return define(f"{relation}; {stream}; {text}", CATALOG)[1][-1]


def example(name: str) -> Plan:
    """A plan with the node in it."""
    plan = plan_of(TEXTS[name]) if name in TEXTS else WITHOUT_TEXT[name](plan_of(TEXTS["TimeWindow"]))
    assert name in {type(node).__name__ for node in walk(plan)}
    return plan


def test_every_node_has_an_example() -> None:
    assert set(NAMES) == TEXTS.keys() | WITHOUT_TEXT.keys()


@pytest.mark.parametrize("name", NAMES)
def test_text_to_plan_to_text(name: str) -> None:
    plan = example(name)
    again = plan_of(to_sql(plan))
    match plan:
        case Coalesce() | Clip() | Early() | Weighing() | BloomFilter():
            assert again == plan.input
        case TimeWindow(input=Remember(input=below)):
            assert again == replace(plan, input=below)
        case NestedAggregate() | SessionAggregate() | Match():
            assert again == plan.written_out
        case _:
            assert again == plan
    assert to_sql(again) == to_sql(plan)
    assert len(explain(plan).splitlines()) == len(list(walk(plan)))


@pytest.mark.parametrize("name", NAMES)
def test_every_node_has_a_definition_and_operators_that_keep_it(name: str) -> None:
    plan = example(name)
    assert evaluate(plan, STREAMS), "an answer that shows something"
    for cuts in (1, 3):
        equivalent(plan, plan, STREAMS, cuts)
    lowered = [node.plan for node in lower({"q": plan}).nodes]
    assert not any(isinstance(node, REWRITTEN) for node in lowered)
    assert all(isinstance(node, Leaf) or is_stateless(node) != is_stateful(node) for node in lowered)
    if not any(isinstance(node, REWRITTEN) for node in walk(plan)):
        assert {type(node) for node in lowered} == {type(node) for node in walk(plan)}


@pytest.mark.parametrize("name", NAMES)
def test_the_work_of_every_node_takes_time(name: str) -> None:
    counts = NodeCounts(taken=1e6, given=1e6, kept=1e6, epochs=2)
    for node in lower({"q": example(name)}).nodes:
        works = work_of(node.plan, counts) if node.inputs else reading(node.plan.schema, counts)
        assert MACHINE.seconds(works) > 0


@cache
def golden_nodes() -> tuple[Plan, ...]:
    """The nodes of all golden files' plans, as written and optimized."""
    plans = [load(path).plan for path in sorted(CASES.glob("*.txt"))]
    return tuple(node for plan in plans for whole in (plan, optimize(plan)) for node in walk(whole))


def test_every_node_is_in_a_golden_file() -> None:
    # A window of rows within bounds is a kind of window of rows, and events of windows one of their bounds.
    kinds = {BoundedRowWindow, WindowEvents}
    assert {type(node) for node in golden_nodes()} - kinds == set(get_args(Plan)) - UNWRITTEN


def test_every_kind_is_in_a_golden_file() -> None:
    nodes = golden_nodes()
    assert {node.kind for node in nodes if isinstance(node, SetOperation)} == set(SetKind)
    assert {node.kept for node in nodes if isinstance(node, Join | OuterJoin | SemiJoin)} == set(JoinKind)
    assert {node.ranking for node in nodes if isinstance(node, TopK)} == set(Ranking)
