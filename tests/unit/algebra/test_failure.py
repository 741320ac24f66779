from __future__ import annotations

import pytest

from auctions import plan_of
from headrace.algebra.failure import aggregate_can_fail, can_fail
from headrace.algebra.nodes import Aggregate, Project
from headrace.algebra.predicates import conjunction, conjuncts, split_equalities
from headrace.expressions.tree import Expression, columns_of


def expression_of(text: str) -> Expression:
    plan = plan_of(f"SELECT {text} AS x, 1 AS y FROM tick")
    assert isinstance(plan, Project)
    return plan.items[0][1]


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("id", False),
        ("id + 1", True),
        ("id * 2e0", False),
        ("id / 2", True),
        ("-id", True),
        ("-(id * 2e0)", False),
        ("id > 1 AND kind LIKE 'a%' OR price IS NULL", False),
        ("UPPER(kind) || id", False),
        ("CAST(kind AS BIGINT)", True),
        ("CAST(id AS STRING)", False),
        ("CAST(id AS DOUBLE)", False),
        ("CAST(price AS DOUBLE)", False),
        ("CAST(price AS BIGINT)", True),
        ("CAST(id AS DECIMAL(21, 2))", False),
        ("CAST(id AS DECIMAL(20, 2))", True),
        ("CAST(price AS DECIMAL(12, 3))", False),
        ("CAST(price AS DECIMAL(12, 1))", True),
        ("CAST(price AS DECIMAL(10, 3))", True),
        ("CAST(id > 1 AS BIGINT)", False),
        ("CASE WHEN id > 1 THEN 'a' ELSE kind END", False),
        ("CASE WHEN id > 1 THEN 1 ELSE id DIV 0 END", True),
        ("COALESCE(kind, CAST(id AS STRING))", False),
        ("SQRT(id)", True),
    ],
)
def test_which_expressions_can_fail(text: str, fails: bool) -> None:
    assert can_fail(expression_of(text)) is fails


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("COUNT(*)", False),
        ("COUNT(id)", False),
        ("COUNT(id + 1)", True),
        ("SUM(id)", True),
        ("SUM(price)", True),
        ("SUM(id * 2e0)", False),
        ("MIN(price)", False),
        ("AVG(id)", False),
    ],
)
def test_which_aggregates_can_fail(text: str, fails: bool) -> None:
    plan = plan_of(f"SELECT {text} FROM tick")
    assert isinstance(plan, Aggregate)
    assert aggregate_can_fail(plan.aggregates[0][1]) is fails


def test_conjuncts_and_their_equalities() -> None:
    predicate = expression_of("id = at AND (id > 1 AND at = 5) AND (at = 1 OR id = 2) AND at = id")
    parts = conjuncts(predicate)
    assert len(parts) == 5
    assert conjuncts(conjunction(parts) or predicate) == parts
    assert conjunction(()) is None
    equalities, rest = split_equalities(parts, left_width=3)
    first = frozenset({0})
    assert [(columns_of(left), columns_of(right)) for left, right in equalities] == [(first, first)] * 2
    assert rest == parts[1:4]
