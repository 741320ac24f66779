"""EXPLAIN COST of windows within bounds: what is kept with the sizes in force, and with the smallest."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import headrace as hr

TEXT = "SELECT v, COUNT(*) AS n FROM s {} GROUP BY v"
BOUNDED = {
    "WINDOW(RANGE MIN 3, MAX 80)": ("WINDOW 20", "RANGE {}", (80, 20, 3)),
    "WINDOW(ROWS MIN 2, MAX 90)": ("WINDOW 40 ROWS", "ROWS {}", (90, 40, 2)),
    "WINDOW(RANGE 60) GRANULARITY(COARSEST 16, FINEST 2)": ("GRANULARITY 8", "", (2, 8, 16)),
}


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", buckets=2) as made:
        made.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        for number, clause in enumerate(BOUNDED):
            made.execute(f"CREATE QUERY q{number} AS {TEXT.format(clause)}")
        made.start()
        made.push("s", [{"v": at % 30, "ts": at} for at in range(300)])
        yield made


def kept(text: str) -> list[str]:
    return re.findall(r"keeps about (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize(("number", "clause"), [*enumerate(BOUNDED)])
def test_each_size_keeps_what_a_query_of_that_size_keeps(db: hr.Database, number: int, clause: str) -> None:
    change, fixed, sizes = BOUNDED[clause]
    db.execute(f"ALTER QUERY q{number} SET ({change})")
    text = str(db.execute(f"EXPLAIN COST {TEXT.format(clause)}")[0])
    expected = []
    for size in sizes:
        other = f"WINDOW({fixed.format(size)})" if fixed else f"WINDOW(RANGE 60) GRANULARITY({size})"
        expected += kept(str(db.execute(f"EXPLAIN COST {TEXT.format(other)}")[0]))
    assert len(set(expected)) == 3
    assert [one.replace(" in all", "") for one in kept(text)] == [
        one.replace(" in all", "") for one in expected
    ]


def test_the_bounds_are_said_and_the_sizes_in_force(db: hr.Database) -> None:
    db.execute("ALTER QUERY q0 SET (WINDOW 20)")
    bounded = TEXT.format("WINDOW(RANGE MIN 3, MAX 80) GRANULARITY(COARSEST 4, FINEST 2)")
    lines = str(db.execute(f"EXPLAIN COST {bounded}")[0]).splitlines()
    assert [line for line in lines if " of s: " in line] == [
        "granule of s: FINEST 2, COARSEST 4, now 2",
        "window of s: MIN 3, MAX 80, now 20 for rows from 300 on",
    ]
    assert any(line.startswith("with the smallest windows and the coarsest granules") for line in lines)
    created = str(db.execute(f"EXPLAIN CREATE QUERY z AS {bounded}")[0])
    assert created.splitlines()[0] == "its window of s begins with 20, as in q0"
    assert " of s: " not in str(db.execute(f"EXPLAIN COST {TEXT.format('[RANGE 5]')}")[0])
