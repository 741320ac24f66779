"""Approximate aggregates in whole runs: the same answer at every level, in every cut, and after restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import ExecutionError, UserError
from how_many import examples

STREAM = "CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 4;"
TEXT = (
    "SELECT k, COUNT(*) WITHIN 50 PERCENT AS (n, n_low, n_high), SUM(v) WITHIN 34 PERCENT AS total, "
    "AVG(v) WITHIN 50 PERCENT AS mean FROM s [RANGE 12] GROUP BY k"
)
SAMPLES = (
    "SELECT k, APPROX_COUNT_DISTINCT(v * ts) WITHIN 50 PERCENT AS n, APPROX_PERCENTILE(v + ts, 0.5) "
    "WITHIN 50 PERCENT AS middle, APPROX_PERCENTILE(k, 0.9) FILTER (WHERE v > 1) AS most "
    "FROM s [RANGE 30] GROUP BY k"
)
TEXTS = {"blocks": TEXT, "samples": SAMPLES}
LEVELS = ("STRONG", "MIDDLE", "(BLOCK 2)", "(OUTPUT MAXIMAL)")
ROWS = st.tuples(st.sampled_from("ab"), st.sampled_from([0, 1, 3, 40]), st.integers(0, 4))


def as_pushed(rows: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
    """Rows that go on in time, with some disorder, which none of them exceeds."""
    return [{"k": k, "v": v, "ts": 2 * at + back} for at, (k, v, back) in enumerate(rows)]


def answer(text: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history of a query over rows that are there before it starts."""
    with hr.connect(runner="inline") as db:
        db.stream("s", pa.Table.from_pylist(rows), timestamp="ts", disorder=4)
        query = db.query(text, name="q")
        db.run()
        return history(query)


def history(query: hr.Query) -> list[dict[str, Any]]:
    found = query.history().to_pylist()
    return sorted(found, key=lambda row: (row["valid_from"], row["k"]))


def assert_same_below(heartbeat: object, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Histories have the same rows at every instant below a heartbeat."""
    assert isinstance(heartbeat, int)
    for instant in range(heartbeat):
        found, expected = (
            [
                [value for name, value in row.items() if not name.startswith("valid_")]
                for row in rows
                if row["valid_from"] <= instant and (row["valid_to"] is None or instant < row["valid_to"])
            ]
            for rows in (ours, theirs)
        )
        assert sorted(found, key=str) == sorted(expected, key=str), instant


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@examples(4, 20)
@given(rows=st.lists(ROWS, min_size=20, max_size=50), every=st.integers(1, 20))
def test_every_level_and_every_cut_has_the_same_answer(
    text: str, level: str, rows: list[tuple[str, int, int]], every: int
) -> None:
    pushed = as_pushed(rows)
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM} CREATE QUERY q CONSISTENCY {level} AS {text}")
        db.start()
        for at in range(0, len(pushed), every):
            db.push("s", pushed[at : at + every])
        db.stop()
        heartbeat = db["q"].heartbeat
        found = history(db["q"])
    assert_same_below(heartbeat, found, answer(text, pushed))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_it_goes_on_after_a_restart(text: str, tmp_path: Path) -> None:
    pushed = as_pushed([("ab"[at % 2], at % 5, at % 4) for at in range(60)])
    for part in range(3):
        with hr.connect(runner="inline", storage=tmp_path) as db:
            if not part:
                db.execute(f"{STREAM} CREATE QUERY q AS {text}")
            db.start()
            for row in pushed[20 * part : 20 * part + 20]:
                db.push("s", [row])
            db.stop()
            found, heartbeat = history(db["q"]), db["q"].heartbeat
    assert len(found) > 40
    assert_same_below(heartbeat, found, answer(text, pushed))


def test_a_negative_number_ends_the_query_and_no_other() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            f"{STREAM} CREATE QUERY q AS {TEXT}; CREATE QUERY r AS SELECT SUM(v) AS v FROM s [RANGE 9]"
        )
        db.start()
        db.push(
            "s", [{"k": "a", "v": 1, "ts": 1}, {"k": "a", "v": -2, "ts": 9}, {"k": "a", "v": 5, "ts": 30}]
        )
        with pytest.raises((ExecutionError, UserError), match="no negative numbers, such as -2"):
            db["q"].history()
        assert db["r"].history().num_rows > 1
