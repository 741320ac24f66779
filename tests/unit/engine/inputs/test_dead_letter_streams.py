"""Dead letters as a stream: typed, queryable, input of the next epoch, each exactly once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import headrace as hr
from headrace.cli.app import app
from headrace.errors import LanguageError
from headrace.language.binding.binder import bind
from headrace.language.parsing.parser import parse_one
from headrace.language.printer import to_sql
from headrace.language.statements.statements import Select
from headrace.runtime.driver.epoch import committed as driver
from headrace.runtime.driver.kept import results
from headrace.runtime.driver.kept.letters import MOST_FILES
from headrace.time import MICROSECONDS, ManualClock
from how_many import examples
from inside import core_of, run_of

TABLE = pa.table({"ts": [1, 2, 10, 3, 11, 12, 5, 20], "v": [1, 0, 3, 4, 5, 6, 7, 0], "k": list("abcdefgh")})
"""The rows d and g are late; b and h divide by zero."""


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", epoch_rows=3) as made:
        made.stream("s", TABLE, timestamp="ts")
        yield made


def letters_of(query: hr.Query, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in query.stream().to_pylist()]


def test_late_rows_have_the_columns_of_their_stream(db: hr.Database) -> None:
    db.query("SELECT v FROM s")
    found = db.query("SELECT reason, query, place, epoch, v, k, ts FROM DEAD LETTERS OF s")
    db.run()
    assert letters_of(found, "reason", "query", "place", "epoch", "v", "k", "ts") == [
        ("late: older than the heartbeat 10", None, "s:4", 2, 4, "d", 3),
        ("late: older than the heartbeat 12", None, "s:7", 3, 7, "g", 5),
    ]


def test_rows_are_set_apart_though_no_other_query_reads_the_stream(db: hr.Database) -> None:
    found = db.query("SELECT k FROM DEAD LETTERS OF s")
    db.run()
    assert letters_of(found, "k") == [("d",), ("g",)]


def test_rows_whose_expression_fails_name_the_query_and_have_columns_that_it_does_not_read(
    db: hr.Database,
) -> None:
    db.query("SELECT x + 1 AS y FROM (SELECT 1 / v AS x FROM s WHERE v < 100) AS a", name="inverse")
    db.query("SELECT SUM(1 / v) AS x FROM s [RANGE 100]", name="sums")
    found = db.query("SELECT query, reason, k, v FROM DEAD LETTERS OF s WHERE query IS NOT NULL")
    db.query("SELECT CAST(k AS BIGINT) AS x FROM s WHERE v = 0 AND k = 'b'", name="cast")
    db.run()
    first, second = sorted(letters_of(found, "k", "v", "query", "reason"))
    assert second == ("h", 0, "inverse, sums", "division by zero")
    assert (first[:2], sorted(first[2].split(", "))) == (("b", 0), ["cast", "inverse", "sums"])
    assert sorted(first[3].split("; ")) == ["division by zero", "invalid cast from STRING to BIGINT"]


def test_rows_that_do_not_parse_have_nulls_and_their_text(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("ts,v\n1,10\n2,ten\n3,30\n")
    with hr.connect(runner="inline") as db:
        db.execute(
            f"""CREATE STREAM s (ts BIGINT, v BIGINT) FROM csv OPTIONS (path '{tmp_path}/s.csv')
            TIMESTAMP BY ts"""
        )
        found = db.query("SELECT ts, v, place, row_text, reason FROM DEAD LETTERS OF s")
        db.run()
        ((ts, v, place, text, reason),) = letters_of(found, "ts", "v", "place", "row_text", "reason")
    assert (ts, v, Path(place).name, text) == (None, None, "s.csv:3", "2,ten")
    assert "BIGINT" in reason


def test_letters_are_timed_by_the_clocks_of_epochs() -> None:
    clock = ManualClock(1_000_000)
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts")
        found = db.query("SELECT ts, set_apart_at, noted_at FROM DEAD LETTERS OF s")
        db.start()
        db.push("s", [{"ts": 5}, {"ts": 3}])
        for change in found.subscribe():
            if len(change.elements):
                break
        db.stop()
        ((ts, apart, noted),) = [
            tuple(row[name] for name in ("ts", "set_apart_at", "noted_at"))
            for row in found.changes().to_pylist()
        ]
    assert ts == 3
    assert (apart.timestamp(), noted.timestamp()) == (1.0, pytest.approx(1.0, abs=1e-5))


def test_a_query_over_dead_letters_that_fails_on_them_ends(db: hr.Database) -> None:
    """Its own dead letters are listed, and are not those of the stream: that would go on for ever."""
    found = db.query("SELECT 1 / (v - 4) AS x, k FROM DEAD LETTERS OF s", name="failing")
    db.run()
    assert letters_of(found, "k", "x") == [("g", pytest.approx(1 / 3))]
    assert [row["query"] for row in db.dead_letters().to_pylist()] == [None, None, "failing"]


def test_names_that_the_stream_has_get_a_number() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": [5, 3], "reason": ["mine", "yours"]}), timestamp="ts")
        found = db.query("SELECT reason, reason_2 FROM DEAD LETTERS OF s")
        db.run()
        assert letters_of(found, "reason", "reason_2") == [("yours", "late: older than the heartbeat 5")]


def test_a_query_that_begins_later_sees_the_letters_from_then_on() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts DEAD LETTERS KEEP ALL")
        db.query("SELECT ts FROM s")
        db.start()
        db.push("s", [{"ts": 5}, {"ts": 3}])
        found = db.query("SELECT ts FROM DEAD LETTERS OF s")
        db.push("s", [{"ts": 4}])
        for change in found.subscribe():
            if len(change.elements):
                break
        db.stop()
        assert found.changes()["ts"].to_pylist() == [4]


def test_the_stream_is_in_use_by_queries_over_its_dead_letters(db: hr.Database) -> None:
    db.query("SELECT k FROM DEAD LETTERS OF s", name="bad")
    with pytest.raises(LanguageError, match="it is used by the query bad"):
        db.drop("s")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM DEAD LETTERS OF t", "there is no stream t"),
        ("SELECT * FROM DEAD LETTERS OF derived", "derived is not read from outside as a stream"),
        ("SELECT * FROM `dead letters of dead letters of s`", "dead letters of s is not read from outside"),
        ("CREATE STREAM `dead letters of x` (ts BIGINT) FROM push TIMESTAMP BY ts", "the dead letters of a"),
        ("ALTER STREAM s DEAD LETTERS KEEP 3", "needs a unit"),
    ],
)
def test_what_has_no_dead_letters(db: hr.Database, text: str, message: str) -> None:
    db.execute("CREATE STREAM derived AS SELECT v FROM s")
    with pytest.raises(LanguageError, match=message):
        db.execute(text)


def test_the_text_of_a_plan_over_dead_letters(db: hr.Database) -> None:
    query = db.query("SELECT reason, COUNT(*) AS n FROM DEAD LETTERS OF s [RANGE 1 HOUR] GROUP BY reason")
    text = to_sql(query.plan)
    assert "FROM DEAD LETTERS OF s WINDOW" in text
    statement = parse_one(text)
    assert isinstance(statement, Select)
    assert bind(statement.query, core_of(db).definitions.catalog) == query.plan


def test_what_is_said_of_a_query_over_dead_letters(db: hr.Database, tmp_path: Path) -> None:
    """The command line as well: an endless stream of dead letters is timed by the clock."""
    with pytest.raises(LanguageError, match="dead letters of s come while it is read"):
        db.execute("EXPLAIN COST SELECT k FROM DEAD LETTERS OF s")
    assert "2 elements, all final" in str(db.execute("EXPLAIN ANALYZE SELECT k FROM DEAD LETTERS OF s")[0])
    db.query("SELECT k FROM DEAD LETTERS OF s")
    assert db.run().rows == len(TABLE), "a row is counted where it came"
    with hr.connect(runner="inline", storage=tmp_path / "store", clock=ManualClock(0)) as live:
        live.execute("CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts")
        live.query("SELECT ts FROM DEAD LETTERS OF s", name="q")
        with pytest.raises(LanguageError, match="the stream s never ends"):
            live.execute("EXPLAIN ANALYZE SELECT ts FROM DEAD LETTERS OF s")
        live.start()
        live.push("s", {"ts": 1})
        assert "no row of s has been set apart" in str(live.why("q"))
        live.stop()
    shown = CliRunner().invoke(app, ["store", str(tmp_path / "store")]).stdout
    assert re.search(r"dead letters of s +0 +1970-01-01T00:00:00", shown), shown


rows = st.lists(st.tuples(st.integers(0, 12), st.integers(-1, 2)), min_size=1, max_size=25)


@examples(17)
@given(rows, st.integers(1, 7), st.integers(0, 4))
def test_every_row_is_in_exactly_one_place(found: list[tuple[int, int]], cut: int, disorder: int) -> None:
    """In the input of a query or in the dead letters, whatever the cut; as the definition of late says."""
    table = pa.table({"ts": [ts for ts, _ in found], "n": range(len(found)), "v": [v for _, v in found]})
    with hr.connect(runner="inline", epoch_rows=cut) as db:
        db.stream("s", table, timestamp="ts", disorder=disorder)
        taken = db.query("SELECT n FROM s")
        part = db.query("SELECT n, 1 / v AS x FROM s", name="part")
        apart = db.query("SELECT n, query FROM DEAD LETTERS OF s")
        db.run()
        letters = letters_of(apart, "n", "query")
        in_part = part.stream()["n"].to_pylist()
        in_all = taken.stream()["n"].to_pylist()
    newest = [max((ts for ts, _ in found[:place]), default=-1) for place in range(len(found))]
    late = [place for place, (ts, _) in enumerate(found) if ts < newest[place] - disorder]
    assert sorted(n for n, query in letters if query is None) == late
    everywhere = Counter(range(len(found)))
    assert Counter(in_all + late) == everywhere
    assert Counter(in_part + [n for n, _ in letters]) == everywhere
    assert {query for _, query in letters} <= {None, "part"}


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("epoch", [2, 3, 4])
@pytest.mark.parametrize(("module", "point"), [(driver, "epoch.reported"), (results, "sweep.begun")])
def test_each_letter_comes_once_after_a_kill(
    epoch: int, module: ModuleType, point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before an epoch counts, or just after; files that were written for nothing are swept."""

    def connect() -> hr.Database:
        db = hr.connect(runner="inline", epoch_rows=3, storage=tmp_path / "store", buckets=1)
        db.stream("s", TABLE, timestamp="ts")
        db.query("SELECT 1 / v AS x FROM s", name="inverse")
        db.query("SELECT k, epoch, reason FROM DEAD LETTERS OF s", name="letters")
        return db

    seen: list[str] = []

    def reach(reached: str) -> None:
        seen.append(reached)
        # The sweep when a store is opened is the first one.
        if reached == point and seen.count(point) == epoch:
            raise _Killed

    monkeypatch.setattr(module, "reach", reach)
    with pytest.raises(_Killed), connect() as first:
        first.run()
    monkeypatch.undo()
    with connect() as second:
        second.run()
        letters = letters_of(second["letters"], "k", "epoch")
    assert sorted(letters) == [("b", 1), ("d", 2), ("g", 3), ("h", 3)]
    assert not list((tmp_path / "store" / "segments").glob("*letters*")), "all have become input"


def test_many_files_of_letters_become_one(tmp_path: Path) -> None:
    clock = ManualClock(0)
    with hr.connect(runner="inline", storage=tmp_path / "store", clock=clock) as db:
        db.execute("CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts DEAD LETTERS KEEP 1 HOUR")
        db.query("SELECT ts FROM s")
        db.start()
        db.push("s", {"ts": 1_000})
        for number in range(MOST_FILES + 1):
            db.push("s", {"ts": number})
        files = [(file.rows, file.tier) for file in letter_files(db)]
        assert files == [(MOST_FILES, 1), (1, 0)]
        clock.advance(2 * MICROSECONDS["HOUR"])
        db.push("s", {"ts": 999})
        assert [file.rows for file in letter_files(db)] == [1]
        db.stop()
    assert len(list((tmp_path / "store" / "segments").iterdir())) == 1


def letter_files(db: hr.Database) -> tuple[Any, ...]:
    return run_of(db).point("s").letters
