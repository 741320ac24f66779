"""EXPLAIN ANALYZE: how a query has run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError

ROWS = pa.table({"ts": range(100), "v": [number % 7 for number in range(100)]})


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", buckets=1) as made:
        made.stream("t", ROWS, timestamp="ts")
        made.execute("CREATE STREAM a (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
        yield made


def shown(db: hr.Database, text: str) -> str:
    """What a statement shows, without what differs from run to run."""
    (found,) = db.execute(text)
    return re.sub(r"[\d,]+ B; [\d.]+ s, \d+ %|; [\d.]+ s, \d+ %", "", str(found))


def test_a_text_is_run_alone_to_its_end(db: hr.Database) -> None:
    db.query("SELECT v FROM a", name="other")
    text = "EXPLAIN ANALYZE SELECT v, COUNT(*) AS n FROM t [RANGE 10] WHERE v < 5 GROUP BY v"
    few = sum(number % 7 < 5 for number in range(100))
    assert shown(db, text).split("\n")[:-3] == [
        "level 0",
        "  #0 Source t (v) by ts",
        "       100 rows",
        "  #1 Filter v < 5  <- #0",
        f"       100 rows in, {few} out",
        "  #2 TimeWindow RANGE 10  <- #1",
        f"       {few} rows in, {few} out",
        "level 1",
        "  #3 Aggregate BY v: COUNT(*) AS n  <- #2 by hash of v  [state]",
    ]
    assert shown(db, text).split("\n")[-1].endswith(" elements, all final")
    assert [query.name for query in db.queries] == ["other"]
    with pytest.raises(hr.UserError, match="nothing has been run yet"):
        _ = db.status


def test_a_query_that_runs_is_shown_without_the_others(db: hr.Database) -> None:
    db.query("SELECT v FROM a WHERE v > 5", name="big")
    db.query("SELECT SUM(v) AS s FROM t [RANGE 10]", name="other")
    db.start()
    db.push("a", [{"ts": 1, "v": 1}, {"ts": 9, "v": 9}])
    assert shown(db, "EXPLAIN ANALYZE BIG").split("\n") == [
        "level 0",
        "  #0 Source a (v) by ts",
        "       2 rows",
        "  #1 Filter v > 5  <- #0",
        "       2 rows in, 1 out",
        "big <- #1",
        "1 element, final below 9, 0 behind the newest row read; held back by a",
    ]


def test_windows_that_are_added_up_in_panes_count_nothing_of_their_own(db: hr.Database) -> None:
    for slide in (10, 20):
        db.query(f"SELECT v, SUM(v) AS s FROM t [RANGE 20 SLIDE {slide}] GROUP BY v", name=f"q{slide}")
    db.run()
    assert "carried out where its rows are added up" in shown(db, "EXPLAIN ANALYZE q10")


def test_a_query_that_failed(db: hr.Database) -> None:
    db.query("SELECT SUM(v + 9223372036854775800) AS s FROM t [RANGE UNBOUNDED]", name="q")
    db.run()
    assert shown(db, "EXPLAIN ANALYZE q").startswith("q failed: ")


def test_what_cannot_be_analyzed(db: hr.Database) -> None:
    with pytest.raises(
        LanguageError, match=r"1:1: .*the stream a never ends .*EXPLAIN ANALYZE with its name"
    ):
        db.execute("EXPLAIN ANALYZE SELECT v FROM a")
    with pytest.raises(LanguageError, match=r"1:17: there is no query other"):
        db.execute("EXPLAIN ANALYZE other")
    db.query("SELECT v FROM a", name="q")
    with pytest.raises(hr.UserError, match="nothing has been run yet"):
        db.execute("EXPLAIN ANALYZE q")
    db.start()
    with pytest.raises(LanguageError, match=r"1:1: .* a run is going on"):
        db.execute("EXPLAIN ANALYZE SELECT v FROM t")


def test_show_has_heartbeats_while_a_run_goes_on(db: hr.Database) -> None:
    db.query("SELECT a.v FROM a [RANGE 10] JOIN t [RANGE 10] ON a.v = t.v", name="q")
    assert "heartbeat" not in str(db.execute("SHOW STREAMS")[0])
    db.start()
    db.push("a", [{"ts": 30, "v": 1}])
    db.push("a", [{"ts": 3, "v": 1}])
    db.stop()
    streams, queries = (
        [re.split(" {2,}", line.strip()) for line in str(text).split("\n")]
        for text in db.execute("SHOW STREAMS; SHOW QUERIES")
    )
    assert streams[0] == [
        *("name", "reads", "timed_by", "disorder", "heartbeat", "lag", "late", "held_by", "columns")
    ]
    assert streams[3] == ["a", "its source", "ts", "0", "30", "0", "1", "ts BIGINT, v BIGINT"]
    assert queries[0] == [
        *("name", "reads", "timed_by", "state", "heartbeat", "lag", "late", "held_by", "columns")
    ]
    assert queries[2] == ["q", "a, t", "BIGINT", "bounded", "30", "69", "1", "a", "v BIGINT"]
