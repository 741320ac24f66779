"""Constants of every type in queries that have rows for them in some epochs, or in none."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headrace as hr
from waiting import wait_until

CONSTANTS = (
    "NULL",
    "CAST(NULL AS ARRAY<BIGINT>)",
    "X'00'",
    "1.50",
    "ARRAY(1)",
    "ARRAY(NULL)",
    "ARRAY(ARRAY('x'), NULL)",
    "MAP('a', 1)",
    "MAP('a', ARRAY(STRUCT(NULL AS x)))",
    "STRUCT(1 AS a, ARRAY(2) AS b)",
    "SPLIT('a b', ' ')",
    "SEQUENCE(1, 3)",
    "FROM_JSON('[1]', 'ARRAY<BIGINT>')",
    "FROM_JSON('{}', 'a BIGINT, b MAP<STRING, DOUBLE>')",
    "COALESCE(SPLIT(NULL, ','), ARRAY('z'))",
    "CASE WHEN k > 1 THEN ARRAY(1) END",
)
SHAPES = (
    "SELECT {0} AS c FROM g WHERE k > 1",
    "SELECT {0} AS c FROM g [RANGE 2] JOIN r USING (k)",
    "SELECT k, MAX(k) AS m, {0} AS c FROM g [RANGE UNBOUNDED] GROUP BY k",
    "SELECT k FROM g [RANGE 3] GROUP BY k HAVING {0} IS NOT NULL",
    "SELECT DISTINCT {0} AS c FROM g [RANGE 3] WHERE k > 1",
    "SELECT k, c FROM (SELECT k, {0} AS c FROM g WHERE k > 1) AS t",
)


@pytest.mark.parametrize("shape", SHAPES)
def test_constants_in_epochs_of_one_row(shape: str) -> None:
    """Each answer is that of one epoch, and none has ended the run."""
    answers = []
    for epoch_rows in (1, 100):
        with hr.connect(runner="inline", epoch_rows=epoch_rows) as db:
            db.stream("g", pa.table({"ts": [0, 1, 2, 3], "k": [1, 2, 1, 3]}), timestamp="ts")
            db.relation("r", pa.table({"k": [2, 7]}))
            queries = [db.query(shape.format(constant)) for constant in CONSTANTS]
            db.run()
            answers.append([query.history().to_pylist() for query in queries])
    assert answers[0] == answers[1]
    assert any(answers[0])


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_join_that_finds_nothing(constant: str) -> None:
    with hr.connect(runner="inline") as db:
        db.stream("g", pa.table({"ts": [0], "k": [1]}), timestamp="ts")
        db.relation("r", pa.table({"k": [2]}))
        query = db.query(f"SELECT {constant} AS c FROM g JOIN r USING (k)")
        db.run()
        assert query.history().to_pylist() == []


def test_a_run_without_end_goes_on() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM p (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT k, MAX(k) AS m, ARRAY('x', 'y') AS c FROM p [RANGE UNBOUNDED] GROUP BY k")
        db.start()
        for ts in (1, 1, 2, 3):
            db.push("p", {"ts": ts, "k": ts})
        wait_until(lambda: len(query.latest()), 2)
        assert db.running
        assert query.latest()["c"].to_pylist() == [["x", "y"]] * 2
