"""CREATE OR REPLACE QUERY where no rows are kept: operators that both queries have in common go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import UserError

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2"
GROUPS = "SELECT k, COUNT(*) AS n, MIN(v) AS least FROM s [RANGE UNBOUNDED] GROUP BY k"
OFTEN = f"{GROUPS} HAVING COUNT(*) > 3"
ROWS = f"SELECT k, 10 / (n - 3) AS n, least FROM ({GROUPS}) AS g"
KEYS = "SELECT DISTINCT k FROM s [RANGE UNBOUNDED]"
KEPT = "it takes over at once, with what both have in common"


def pushed(db: hr.Database, first: int, last: int) -> None:
    for ts in range(first, last):
        db.push("s", {"k": ts % 3, "v": 100 - ts, "ts": ts})


def begun(query: str, folder: Path | None = None) -> hr.Database:
    db = hr.connect(runner="inline", dialect="pipes", storage=folder)
    db.execute(STREAM)
    db.query(query, "q")
    db.start()
    pushed(db, 0, 12)
    return db


def contents(query: hr.Query, first: int, last: int) -> list[list[Any]]:
    """What holds at each instant."""
    return [sorted(map(str, query.snapshot(at).to_pylist())) for at in range(first, last)]


def told(query: str, first: int, last: int) -> list[list[Any]]:
    """The same of a query that was there from the first row on."""
    with begun(query) as db:
        pushed(db, 12, 24)
        return contents(db["q"], first, last)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (GROUPS, OFTEN, "Aggregate BY k"),
        (f"{GROUPS} HAVING COUNT(*) > 1", OFTEN, "Aggregate BY k"),
        (OFTEN, f"SELECT n + k AS sum, least FROM ({GROUPS}) AS g", "Aggregate BY k"),
        (OFTEN, "SELECT COUNT(*) + 1 AS m, k FROM s [RANGE UNBOUNDED] GROUP BY k", "Aggregate BY k"),
        (
            "SELECT COUNT(*) AS n, MAX(k) AS most, AVG(v) AS mean FROM s [RANGE 10] WHERE v > 2",
            "SELECT AVG(v) AS mean FROM s [RANGE 10] WHERE v > 2",
            "Aggregate: COUNT(*) AS n",
        ),
        (KEYS, f"SELECT COUNT(*) AS keys FROM ({KEYS}) AS d", "Distinct"),
        (
            "SELECT k, MAX(v) AS most FROM s [RANGE 10] GROUP BY k",
            "SELECT most, k FROM (SELECT k, MAX(v) AS most FROM s [RANGE 10] GROUP BY k) AS g WHERE k > 0",
            "Aggregate BY k",
        ),
    ],
)
def test_the_new_answer_is_exact_at_once_and_after_a_restart(
    tmp_path: Path, old: str, new: str, kept: str
) -> None:
    with begun(old, tmp_path / "store") as db:
        lines = str(db.execute(f"EXPLAIN REPLACE q AS {new}")[0]).splitlines()
        assert lines[1:3] == ["the new answer holds from 9 on", KEPT]
        assert lines[3].startswith(f"  keeps its state: {kept}")
        before = db["q"]
        db.execute(f"CREATE OR REPLACE QUERY q AS {new}")
        pushed(db, 12, 16)
        if db["q"] is not before:
            assert contents(before, 0, 9) == told(old, 0, 9)
        db.stop()
    with hr.connect(runner="inline", dialect="pipes", storage=tmp_path / "store") as db:
        db.start()
        assert not db.differences
        pushed(db, 16, 24)
        assert contents(db["q"], 9, 21) == told(new, 9, 21)
        assert not db["q"].gaps().num_rows
        db.stop()


def test_what_is_final_stays_and_followers_get_what_is_other() -> None:
    with begun(GROUPS) as db:
        changes = db["q"].subscribe()
        db.execute(f"CREATE OR REPLACE QUERY q AS {OFTEN}")
        pushed(db, 12, 24)
        assert contents(db["q"], 0, 9) == told(GROUPS, 0, 9)
        assert contents(db["q"], 9, 21) == told(OFTEN, 9, 21)
        db.stop()
        said = [row for change in changes for row in change.rows.to_pylist()]
        assert min(row["valid_from"] for row in said if row["change"] < 0) == 9


def test_a_row_for_which_the_new_query_fails_is_named_and_nothing_changes() -> None:
    with begun(GROUPS) as db:
        epoch = db.status.epoch
        with pytest.raises(UserError, match=r"q cannot be replaced: an expression fails .*zero"):
            db.execute(f"CREATE OR REPLACE QUERY q AS {ROWS}")
        assert db.status.epoch == epoch
        assert db["q"].history().column_names[:3] == ["k", "n", "least"]


def test_rows_that_it_lacked_are_lacking_still() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.execute(STREAM)
        db.query("SELECT k FROM s", "other"), db.query(GROUPS, "q")
        db.start()
        pushed(db, 0, 6)
        db.execute("ALTER QUERY q PAUSE")
        pushed(db, 6, 9)
        db.execute("ALTER QUERY q RESUME")
        pushed(db, 9, 14)
        [gap] = db["q"].gaps().to_pylist()
        db.execute(f"CREATE OR REPLACE QUERY q AS {OFTEN}")
        assert db["q"].gaps().to_pylist() == [gap]
        db.execute(f"CREATE OR REPLACE QUERY q AS SELECT n, least FROM ({GROUPS}) AS g")
        assert [row["exact_from"] for row in db["q"].gaps().to_pylist()] == [gap["exact_from"]]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Rows on which the sum fails are counted by the new query alone.
        ("SELECT COUNT(*) AS n, SUM(10 / v) AS x", "SELECT COUNT(*) AS n"),
        ("SELECT COUNT(*) AS n, SUM(v) AS x", "SELECT COUNT(*) AS n"),
        ("SELECT COUNT(*) AS n", "SELECT COUNT(*) AS n, MIN(v) AS x"),
        ("SELECT COUNT(*) AS n, MIN(v) AS x", "SELECT MIN(k) AS n, MIN(v + 1) AS x"),
        ("SELECT k, COUNT(*) AS n", "SELECT COUNT(*) AS n"),
    ],
)
def test_aggregations_that_do_not_follow_from_those_that_run_start_anew(old: str, new: str) -> None:
    source = "FROM s [RANGE UNBOUNDED]"
    with begun(f"{old} {source}" + " GROUP BY k" * ("k," in old)) as db:
        said = str(db.execute(f"EXPLAIN REPLACE q AS {new} {source}")[0])
        assert "start anew" in said
        assert KEPT not in said


def test_one_that_looks_at_other_instants_starts_anew() -> None:
    with begun(GROUPS) as db:
        windowed = f"SELECT ISTREAM(n) FROM ({GROUPS}) AS g"
        assert "start anew" in str(db.execute(f"EXPLAIN REPLACE q AS {windowed}")[0])


def test_operators_that_are_further_than_the_answer_start_anew() -> None:
    """What they have said below the instant up to which they have come is no longer in their state."""
    both = f"SELECT n FROM ({GROUPS}) AS g UNION ALL SELECT COUNT(*) AS n FROM t [RANGE UNBOUNDED]"
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.execute(f"{STREAM}; {STREAM.replace('STREAM s', 'STREAM t')}")
        db.query(both, "q")
        db.start()
        for at, further in ((4, 4), (4, 9)):
            db.push("t", {"k": 1, "v": 1, "ts": at})
            db.push("s", {"k": 1, "v": 1, "ts": further})
            said = str(db.execute(f"EXPLAIN REPLACE q AS SELECT n FROM ({both}) AS b WHERE n > 1")[0])
            assert (KEPT in said) == (further == at)
