"""CREATE OR REPLACE QUERY and EXPLAIN REPLACE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError, ReplacedError, UserError

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2;"
COUNTED = "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k HAVING COUNT(*) > 1"
HIGHER = "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k HAVING COUNT(*) > 3"


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM)
        yield db


def pushed(db: hr.Database, *instants: int) -> None:
    db.push("s", [{"k": ts % 3, "v": ts, "ts": ts} for ts in instants])


def contents(query: hr.Query, until: int) -> list[list[Any]]:
    """What holds at each instant below one."""
    return [sorted(map(str, query.snapshot(at).to_pylist())) for at in range(until)]


def replaced(db: hr.Database, text: str, name: str = "q") -> hr.Query:
    (query,) = db.execute(f"CREATE OR REPLACE QUERY {name} AS {text}")
    assert isinstance(query, hr.Query)
    return query


def explained(db: hr.Database, text: str) -> list[str]:
    (said,) = db.execute(f"EXPLAIN REPLACE q AS {text}")
    return str(said).splitlines()


def test_what_is_the_same_keeps_its_state(db: hr.Database) -> None:
    old, new = db.query(COUNTED, "old"), db.query(HIGHER, "new")
    query = db.query(COUNTED, "q")
    db.start()
    pushed(db, *range(30))
    assert explained(db, HIGHER) == [
        "the old answer holds below 39",
        "the new answer holds from 39 on",
        "until the heartbeat is at 39 both run",
        "  keeps its state: Aggregate BY k: COUNT(*) AS n",
    ]
    assert replaced(db, HIGHER) is db["q"]
    pushed(db, *range(30, 80))
    assert contents(db["q"], 70) == contents(old, 39) + contents(new, 70)[39:]
    assert query.history() == db["q"].history()
    assert "COUNT(*) > 3" in str(db.execute("SHOW CREATE QUERY q")[0])


@pytest.mark.parametrize(
    ("old", "new"), [("[RANGE 5 SLIDE 5]", "[RANGE 3]"), ("[RANGE 3]", "[RANGE 5 SLIDE 5]")]
)
def test_windows_that_hop_are_not_further_than_others(db: hr.Database, old: str, new: str) -> None:
    """A hop is known as soon as it has begun, long before the rows of the other window."""
    before, after = (db.query(f"SELECT v FROM s {one}", name) for one, name in ((old, "old"), (new, "new")))
    db.query(f"SELECT v FROM s {old}", "q")
    db.start()
    pushed(db, *range(12))
    at = int(explained(db, f"SELECT v FROM s {new}")[1].split()[5])
    replaced(db, f"SELECT v FROM s {new}")
    for ts in range(12, 40):
        pushed(db, ts)
    assert contents(db["q"], 30) == contents(before, at) + contents(after, 30)[at:]


def test_what_cannot_be_clipped_starts_anew(db: hr.Database) -> None:
    old = db.query("SELECT v FROM s [ROWS 2]", "old")
    db.query("SELECT v FROM s [ROWS 2]", "q")
    db.start()
    pushed(db, *range(10))
    assert explained(db, "SELECT v FROM s [ROWS 5]") == [
        "the old answer holds below 7",
        "the new answer holds from 7 on",
        "all operators start anew, over the rows that arrive from now on: the plans differ below RowWindow, "
        "which looks at more than one instant",
        "it will lack rows from before, to which its windows reach back",
        "  starts anew: RowWindow ROWS 5",
    ]
    changes = db["q"].subscribe()
    replaced(db, "SELECT v FROM s [ROWS 5]")
    new = db.query("SELECT v FROM s [ROWS 5]", "new")
    pushed(db, *range(10, 30))
    db.stop()
    assert contents(db["q"], 27) == contents(old, 7) + contents(new, 27)[7:]
    assert [change.epoch for change in changes][-1] == db.status.epoch


def test_a_query_is_replaced_before_the_first_row(db: hr.Database) -> None:
    """Nothing was said that would have to be taken back."""
    db.query("SELECT k FROM s [ROWS 2 SLIDE 2]", "q")
    db.start()
    query = replaced(db, "SELECT k + 10 AS k FROM s [ROWS 2 SLIDE 2]")
    pushed(db, *range(9))
    assert {row["k"] for row in query.history().to_pylist()} == {10, 11, 12}


def test_instants_between_both_answers_are_a_gap(tmp_path: Path) -> None:
    ahead = "SELECT COUNT(*) AS n FROM ahead [RANGE 10]"
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(f"{STREAM} CREATE STREAM ahead (ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query("SELECT COUNT(*) AS n FROM s [RANGE 10]", "q")
        db.query("SELECT ts FROM ahead", "other")
        db.start()
        pushed(db, 5, 20)
        db.push("ahead", {"ts": 300})
        said = explained(db, ahead)
        assert said[2] == "nothing is said about the instants from 18 to before 300"
        replaced(db, ahead)
        assert db["q"].gaps().to_pylist() == [{"lacks_from": 18, "lacks_to": 300, "exact_from": 310}]
        # The other way round the answer goes on where it was final, and lacks nothing more.
        replaced(db, "SELECT COUNT(*) AS n FROM s [RANGE 10]")
        db.stop()
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.start()
        assert db["q"].gaps().to_pylist() == [{"lacks_from": 18, "lacks_to": 300, "exact_from": 310}]
        db.stop()


def test_a_query_that_is_not_there_is_created(db: hr.Database) -> None:
    assert explained(db, COUNTED) == [
        "there is no query q; it is created",
        "it is answered from the next run on",
    ]
    replaced(db, COUNTED)
    db.start()
    pushed(db, 1, 2, 4)
    epochs = db.status.epoch
    assert explained(db, COUNTED.lower()) == ["q is the same query; nothing changes"]
    assert replaced(db, COUNTED.lower()) is db["q"]
    assert db.status.epoch == epochs


def test_other_columns_end_what_follows_the_query(db: hr.Database) -> None:
    query = db.query("SELECT MAX(v) AS top FROM s [RANGE 5]", "q")
    db.start()
    pushed(db, *range(10))
    followed = query.follow()
    assert explained(db, "SELECT k, v FROM s [RANGE 5]")[:2] == [
        "q then has other columns, (k BIGINT, v BIGINT): its answer and subscriptions to it end",
        "the new answer holds from 7 on",
    ]
    new = replaced(db, "SELECT k, v FROM s [RANGE 5]")
    pushed(db, *range(10, 20))
    rows = list[dict[str, Any]]()
    with pytest.raises(ReplacedError, match="q was replaced by a query with other columns"):
        rows.extend(row for table in followed for row in table.to_pylist())
    assert rows[-1]["valid_to"] == query.heartbeat == 7
    assert new.history().column_names == ["k", "v", "valid_from", "valid_to"]
    assert new.snapshot(15).num_rows == 5


ANSWERS = {
    "rows that last": "SELECT k, v FROM s [RANGE 5]",
    "rows of an instant each": "SELECT k, v FROM s WHERE v >= 0",
    "rows of every 4 instants, 3 after multiples": "RSTREAM(SELECT k, v FROM s [RANGE 8 SLIDE 4])",
    "rows of every 2 instants": "RSTREAM(SELECT k, v FROM s [RANGE 8] GRANULARITY(2))",
    "other columns, (k BIGINT, w BIGINT)": "SELECT k, v AS w FROM s [RANGE 5]",
    "instants that are TIMESTAMPs": "SELECT k, v FROM z [RANGE 5 SECONDS]",
}
"""Answers none of which can go on in another one, by what the others do not have."""


@pytest.mark.parametrize("new", ANSWERS)
@pytest.mark.parametrize("old", ["rows that last", "rows of an instant each", "rows of every 2 instants"])
def test_what_is_said_of_another_answer_is_what_ends_it(db: hr.Database, old: str, new: str) -> None:
    db.execute("CREATE STREAM z (k BIGINT, v BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts")
    query = db.query(ANSWERS[old], "q")
    db.start()
    pushed(db, *range(10))
    text = ANSWERS[new] if new != old else ANSWERS[new].replace("k, v", "k, 1 * v AS v")
    ends = [line for line in explained(db, text) if line.endswith("its answer and subscriptions to it end")]
    followed = query.follow()
    now = replaced(db, text)
    if not ends:
        assert now is db["q"]
        assert new == old
        return
    (said,) = ends
    what = said.removeprefix("q then has ").removesuffix(": its answer and subscriptions to it end")
    instead = "" if new.startswith("other") else " in place of "
    assert what.startswith(f"{new}{instead}")
    assert what.endswith(old) or not instead or new.startswith("instants")
    with pytest.raises(ReplacedError) as raised:
        list(followed)
    assert raised.value.message == f"q was replaced by a query with {what}"


def test_sinks_that_would_not_fit_are_listed_beforehand(db: hr.Database) -> None:
    query, taken = db.query("SELECT v FROM s [RANGE 5]", "q"), list[int]()
    query.deliver(lambda epoch, heartbeat, table: taken.append(table.num_rows), name="board")
    db.start()
    pushed(db, *range(5))
    for written in ("CREATE OR REPLACE QUERY q AS", "EXPLAIN REPLACE q AS"):
        with pytest.raises(LanguageError, match="is taken by board"):
            db.execute(f"{written} SELECT k FROM s [RANGE 5]")
    replaced(db, "SELECT v FROM s [RANGE 5] WHERE v > 3")
    pushed(db, *range(5, 30))
    db.stop()
    assert sum(taken) == db["q"].changes().num_rows


@pytest.mark.parametrize(
    ("before", "statement", "message"),
    [
        ("ALTER QUERY q PAUSE", f"CREATE OR REPLACE QUERY q AS {COUNTED}", "the query q is paused"),
        ("SHOW QUERIES", f"CREATE OR REPLACE QUERY q WARM AS {COUNTED}", "WARM is for queries that are"),
        ("SHOW QUERIES", f"EXPLAIN REPLACE q FROM BEGINNING AS {COUNTED}", "FROM BEGINNING is for queries"),
        (
            "SHOW QUERIES",
            "CREATE OR REPLACE QUERY fixed AS SELECT 2 AS a FROM r",
            "all of the answer of fixed",
        ),
    ],
)
def test_what_cannot_be_replaced(db: hr.Database, before: str, statement: str, message: str) -> None:
    db.relation("r", pa.table({"id": [1]}))
    db.execute(f"CREATE QUERY q AS {COUNTED.replace('1', '2')}; CREATE QUERY fixed AS SELECT 1 AS a FROM r")
    db.start()
    pushed(db, 1, 2)
    db.execute(before)
    with pytest.raises(UserError, match=message):
        db.execute(statement)


def test_another_consistency_alone_keeps_all_state(db: hr.Database) -> None:
    early = db.query(f"CREATE QUERY early CONSISTENCY MIDDLE AS {COUNTED}")
    query = db.query(COUNTED, "q")
    db.start()
    pushed(db, *range(10))
    (said,) = db.execute(f"EXPLAIN CREATE OR REPLACE QUERY q CONSISTENCY MIDDLE AS {COUNTED}")
    assert str(said) == "q has another CONSISTENCY then; all operators keep their state"
    db.execute(f"CREATE OR REPLACE QUERY q CONSISTENCY MIDDLE AS {COUNTED}")
    pushed(db, *range(10, 20))
    assert query.horizon == early.horizon > query.heartbeat
    assert contents(query, query.horizon) == contents(early, early.horizon)


def test_a_replacement_outlives_a_restart(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(STREAM)
        db.query(COUNTED, "old"), db.query(HIGHER, "new"), db.query(COUNTED, "q")
        db.start()
        pushed(db, *range(30))
        replaced(db, HIGHER)
    for first in (30, 50):
        # Before the new plan has taken over, and after it.
        with hr.connect(runner="inline", storage=tmp_path) as db:
            db.start()
            assert not db.differences
            pushed(db, *range(first, first + 20))
            until = first + 17
            assert contents(db["q"], until) == contents(db["old"], 39) + contents(db["new"], until)[39:]
    assert hr.open(tmp_path)["q"].heartbeat == 67


def test_a_text_replaces_the_query_of_a_store(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(STREAM)
        db.query(COUNTED, "old"), db.query(COUNTED, "q")
        db.start()
        pushed(db, *range(30))
    with hr.connect(runner="inline", storage=tmp_path) as db:
        with pytest.raises(LanguageError, match=r"with other columns, \(.*\) while no run is going on"):
            replaced(db, "SELECT v FROM s [RANGE 10]")
        replaced(db, HIGHER)
        with pytest.raises(UserError, match="q is replaced by a query over the rows that arrive"):
            db.run()
        db.start()
        pushed(db, *range(30, 60))
        assert contents(db["q"], 39) == contents(db["old"], 39)
        assert [row["n"] for row in db["q"].snapshot(50).to_pylist()] == [4]


@pytest.mark.parametrize("clause", ["PAUSE", "PAUSE KEEPING INPUT"])
def test_a_query_is_resumed_and_replaced_before_the_start(tmp_path: Path, clause: str) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(f"{STREAM[:-1]} RETAIN ALL")
        db.query("SELECT MAX(v) AS v FROM s [RANGE 10]", "q")
        db.start()
        pushed(db, 1, 5)
        db.execute(f"ALTER QUERY q {clause}")
        db.stop()
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute("ALTER QUERY q RESUME")
        replaced(db, "SELECT MIN(v) AS v FROM s [RANGE 10]")
        db.start()
        pushed(db, 40, 45, 80)
        held = [(row["v"], row["valid_from"], row["valid_to"]) for row in db["q"].history().to_pylist()]
        assert held[-2:] == [(40, 40, 50), (45, 50, 55)]
        db.stop()
