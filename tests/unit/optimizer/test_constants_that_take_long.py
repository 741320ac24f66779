"""Constants that take long, or much memory, are not computed where a plan is asked for."""

from __future__ import annotations

import pytest

import headrace as hr

HEAVY = [
    "LEVENSHTEIN(REPEAT('a', 100000), REPEAT('b', 100000))",
    "LENGTH(REPEAT('a', 2000000000))",
    "LENGTH(RPAD('a', 2000000000, 'b'))",
    "LENGTH(LPAD('a', 2000000000))",
    "CARDINALITY(SEQUENCE(1, 2000000000))",
    "LENGTH(REPLACE('" + "a" * 6_000 + "', 'a', '" + "b" * 6_000 + "'))",
    "LENGTH(REPEAT(REPEAT(REPEAT('a', 9999), 9999), 9999))",
]


@pytest.mark.parametrize("text", HEAVY)
def test_a_plan_keeps_what_takes_long(text: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
        plan = str(db.execute(f"EXPLAIN SELECT {text} AS x, v FROM s WHERE v > {text}")[0])
    optimized = plan.partition("== optimized ==")[2]
    assert text.partition("(")[0].replace("CARDINALITY", "SIZE") + "(" in optimized


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("LENGTH(REPEAT('ab', 500))", 1_000),
        ("LEVENSHTEIN(REPEAT('a', 50), 'aa')", 48),
        ("LENGTH(LPAD('a', 9))", 9),
    ],
)
def test_what_is_computed_soon_is_a_value(text: str, value: int) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
        plan = str(db.execute(f"EXPLAIN SELECT {text} AS x FROM s")[0])
    optimized = plan.partition("== optimized ==")[2]
    assert str(value) in optimized
    assert text.partition("(")[0] not in optimized
