"""Streams that are timed by the clock: what is refused, what is read, and what the clock alone moves."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import LanguageError, UserError
from headrace.runtime.driver.endless import live
from headrace.time import ManualClock
from watched_clock import Clock

BEGIN = datetime(2027, 1, 15, 8, tzinfo=UTC)
"""What `Clock` shows at first."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(live, "_LOOK", 0.005)
    return Clock()


@pytest.mark.parametrize(
    ("clause", "named", "hint"),
    [
        ("DISORDER 5 SECONDS", "DISORDER", "are in order"),
        ("DISORDER 5 ROWS", "DISORDER", "are in order"),
        ("DISORDER FOR 99 PERCENT", "DISORDER", "are in order"),
        ("ESTIMATED", "ESTIMATED", "are in order"),
        ("STRICT", "STRICT", "have one instant"),
        ("PER a IDLE AFTER 5 SECONDS", "PER", "are in order"),
        ("LATENCY 5 SECONDS", "LATENCY", "under way"),
        ("IDLE AFTER 5 SECONDS", "IDLE AFTER", "whether rows come or not"),
        ("TIMEOUT 5 SECONDS", "TIMEOUT", "whether rows come or not"),
        ("AT MOST 5 SECONDS AHEAD", "AT MOST", "ahead of the clock"),
        ("HEARTBEATS FROM a", "HEARTBEATS FROM", "whether rows come or not"),
    ],
)
def test_no_other_clause_goes_with_arrival(clause: str, named: str, hint: str) -> None:
    with hr.connect(runner="inline") as db:
        created = "CREATE STREAM s (a BIGINT) FROM push TIMESTAMP BY ARRIVAL"
        with pytest.raises(LanguageError, match=f"^1:\\d+: {named} does not go with ARRIVAL") as raised:
            db.execute(f"{created} {clause}")
        assert hint in (raised.value.hint or "")
        db.execute(created)
        with pytest.raises(LanguageError, match=f"{named} does not go with ARRIVAL"):
            db.execute(f"ALTER STREAM s {clause}")


def test_a_quoted_name_is_a_column() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (arrival BIGINT) FROM push TIMESTAMP BY `arrival` DISORDER 5")
        assert str(db.streams["s"].schema) == "(arrival BIGINT)"  # type: ignore[union-attr]


def test_rows_of_a_table_come_without_the_column() -> None:
    with hr.connect(runner="inline") as db:
        rows = pa.table({"arrival": [1]})
        with pytest.raises(LanguageError, match="has a column arrival") as raised:
            db.stream("s", rows, timestamp=hr.ByArrival())
        assert 'ByArrival("another_name")' in (raised.value.hint or "")
        db.stream("s", rows, timestamp=hr.ByArrival("another_name"))
        with pytest.raises(LanguageError, match="DISORDER does not go with ARRIVAL"):
            db.stream("r", rows, timestamp=hr.ByArrival("at"), disorder="5 seconds")


def test_a_store_knows_that_a_stream_is_timed_by_arrival(tmp_path: Path) -> None:
    query = "CREATE QUERY q AS SELECT v FROM s"
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(f"CREATE STREAM s (v BIGINT) FROM push TIMESTAMP BY ARRIVAL; {query}")
        db.start()
        db.push("s", {"v": 1})
    with hr.connect(runner="inline", storage=tmp_path) as db:
        message = r"1:1: the store has another stream s: .* BY ARRIVAL; here it is"
        with pytest.raises(LanguageError, match=message):
            db.execute(f"CREATE STREAM s (v BIGINT) FROM push TIMESTAMP BY v; {query}")


def test_what_would_move_its_heartbeat_from_outside_is_refused(clock: Clock) -> None:
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("""
            CREATE STREAM s (a BIGINT) FROM push TIMESTAMP BY ARRIVAL;
            CREATE STREAM r (ts TIMESTAMP) FROM push TIMESTAMP BY ts;
            CREATE SKEW FROM s TO r (0 SECONDS, 5 SECONDS);
            SELECT a FROM s;
        """)
        for skew in ("FROM r TO s", "BETWEEN r AND s", "BETWEEN s AND r"):
            with pytest.raises(LanguageError, match="the clock alone moves its heartbeat"):
                db.execute(f"CREATE SKEW {skew} (0 SECONDS, 5 SECONDS)")
        db.start()
        with pytest.raises(UserError, match="the clock alone moves its heartbeat"):
            db.heartbeat("s", BEGIN)


ROWS = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


def write(folder: Path, format: str) -> Path:
    path = folder / f"rows.{format}"
    match format:
        case "parquet":
            pq.write_table(ROWS, path)
        case "csv":
            pa.csv.write_csv(ROWS, path)
        case "json":
            path.write_text("".join(json.dumps(row) + "\n" for row in ROWS.to_pylist()))
        case _:
            pa.feather.write_feather(ROWS, path)
    return path


@pytest.mark.parametrize("format", ["parquet", "csv", "json", "arrow", "nexmark", "table"])
@pytest.mark.parametrize("whole", [True, False])
def test_sources(format: str, whole: bool, tmp_path: Path) -> None:
    """Also where no column of the rows is read."""
    clock = ManualClock(1_800_000_000_000_000)
    with hr.connect(runner="inline", clock=clock) as db:
        rows = 3
        if format == "table":
            db.stream("bid", ROWS, timestamp=hr.ByArrival("received"))
        elif format == "nexmark":
            db.execute("CREATE STREAM bid FROM nexmark OPTIONS (events=50) TIMESTAMP BY ARRIVAL AS received")
            rows = 46
        else:
            path = write(tmp_path, format)
            db.execute(
                f"CREATE STREAM bid FROM {format} OPTIONS (path '{path}') TIMESTAMP BY ARRIVAL AS received"
            )
        counted = db.query("SELECT COUNT(*) AS n, MAX(received) AS newest FROM bid [NOW]")
        if whole:
            db.query("SELECT * FROM bid", name="whole")
        db.run()
        assert counted.stream().to_pylist() == [{"n": rows, "newest": BEGIN, "ts": BEGIN}]
        if whole:
            found = db["whole"].stream()
            assert (found.num_rows, found.column_names[-2]) == (rows, "received")
            assert found.column("received").unique().to_pylist() == [BEGIN]


def seconds(heartbeat: int) -> float:
    return (heartbeat - 1_800_000_000_000_000) / 1e6


def test_the_clock_alone_closes_windows_and_then_nothing_is_done(clock: Clock) -> None:
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("""
            CREATE STREAM s (a BIGINT) FROM push TIMESTAMP BY ARRIVAL;
            CREATE QUERY sliding AS SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS];
            CREATE QUERY tumbling AS SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS];
            CREATE QUERY ever AS SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED];
        """)
        db.start()
        clock.let_pass(20)
        assert db["sliding"].heartbeat == hr.BEGINNING
        db.push("s", [{"a": 1}, {"a": 2}])
        assert db["tumbling"].changes().num_rows == 0
        clock.let_pass(11)
        assert db["tumbling"].changes()["n"].to_pylist() == [2]
        (row,) = db["sliding"].history().to_pylist()
        assert (row["n"], row["valid_to"] - row["valid_from"]) == (2, timedelta(seconds=10))
        clock.let_pass(30)
        (row,) = db["tumbling"].history().to_pylist()
        assert row["valid_to"] - row["valid_from"] == timedelta(seconds=10)
        assert 20 <= seconds(db["sliding"].heartbeat) - 20 <= 22, "which is enough for all of them"
        epochs = db.status.epoch
        assert epochs < 30
        clock.let_pass(30)
        clock.jump(3600)
        assert db.status.epoch == epochs
        # Rows come at the clock's reading all the same.
        db.push("s", {"a": 3})
        assert seconds(db["sliding"].heartbeat) == 20 + 41 + 30 + 3600 + 1e-6
        assert db.stop().late == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS SLIDE 4 SECONDS]",
        "SELECT a FROM s [RANGE 5 SECONDS SLIDE 9 SECONDS]",
        """SELECT SUM(a) AS n FROM SESSION(TABLE s, DESCRIPTOR(arrival), INTERVAL '3' SECONDS)
           GROUP BY window_end""",
        """SELECT a, COUNT(*) AS n
           FROM SESSION(TABLE s PARTITION BY a, DESCRIPTOR(arrival), INTERVAL '3' SECONDS)
           GROUP BY a, window_end""",
    ],
)
def test_windows_that_slide_and_sessions_follow_the_clock(query: str, clock: Clock) -> None:
    """What the clock alone makes of them is what they are in a file of the same rows, whose end is known."""
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("CREATE STREAM s (a BIGINT) FROM push TIMESTAMP BY ARRIVAL")
        answer, all_rows = db.query(query), db.query("SELECT a, arrival FROM s")
        db.start()
        for a, pause in ((1, 1), (2, 1), (1, 4), (3, 7), (4, 40)):
            db.push("s", {"a": a})
            clock.let_pass(pause)
        found, epochs = answer.history(), db.status.epoch
        rows = all_rows.stream().select(["a", "arrival"])
        clock.let_pass(20)
        assert db.status.epoch == epochs, "an idle system makes no epochs"
    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="arrival")
        known = db.query(query)
        db.run()
        assert len(found) > 1
        assert found.to_pylist() == known.history().to_pylist()


def test_an_answer_over_several_streams_needs_no_further_epoch(clock: Clock) -> None:
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("""
            CREATE STREAM s (a BIGINT) FROM push TIMESTAMP BY ARRIVAL;
            CREATE STREAM r (a BIGINT) FROM push TIMESTAMP BY ARRIVAL;
            CREATE QUERY rows AS SELECT a FROM s UNION ALL SELECT a FROM r;
            CREATE QUERY pairs AS
              SELECT s.a FROM s [RANGE UNBOUNDED] s, r [RANGE UNBOUNDED] r WHERE s.a = r.a;
        """)
        db.start()
        for epoch, name in enumerate(("s", "r", "s"), start=1):
            db.push(name, {"a": 1})
            assert (db["rows"].stream().num_rows, db.status.epoch) == (epoch, epoch)
            clock.let_pass(30)
            assert db.status.epoch == epoch
        assert db["pairs"].changes()["change"].to_pylist() == [1, 1]


def test_a_window_closes_after_a_restart(clock: Clock, tmp_path: Path) -> None:
    """Also time counts in which the program was stopped."""
    for part in ("push", "wait"):
        with hr.connect(runner="inline", clock=clock, storage=tmp_path) as db:
            db.execute("""
                CREATE STREAM s (a BIGINT) FROM push TIMESTAMP BY ARRIVAL;
                CREATE QUERY tumbling AS SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS];
            """)
            db.start()
            if part == "push":
                db.push("s", {"a": 1})
                clock.let_pass(5)
                assert db["tumbling"].changes().num_rows == 0
            else:
                clock.wait_for_looks()
                assert db["tumbling"].changes()["n"].to_pylist() == [1]
            db.stop()
        clock.advance(5_000_000)


def test_it_does_not_hold_back_what_it_is_read_with(clock: Clock) -> None:
    """Rows of the other stream are final when both the clock and that stream have passed them."""
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("""
            CREATE STREAM s (a BIGINT) FROM push TIMESTAMP BY ARRIVAL;
            CREATE STREAM r (a BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts;
            CREATE QUERY both AS SELECT r.a FROM r [RANGE 1 MINUTE] r, s [RANGE 1 MINUTE] s WHERE r.a = s.a;
        """)
        db.start()
        db.push("s", {"a": 1})
        clock.let_pass(5)
        db.push("r", {"a": 1, "ts": BEGIN + timedelta(seconds=2)})
        assert db["both"].changes()["valid_from"].to_pylist() == []
        assert seconds(db["both"].heartbeat) == 2
        db.push("r", {"a": 2, "ts": BEGIN + timedelta(seconds=20)})
        assert db["both"].changes()["valid_from"].to_pylist() == [BEGIN + timedelta(seconds=2)]
        assert seconds(db["both"].heartbeat) == pytest.approx(5, abs=1e-4)
        assert "wait until the clock has passed 2027-01-15T08:00:05" in str(db.why("both"))
        clock.let_pass(20)
        assert seconds(db["both"].heartbeat) == 20
        assert "send a row of r at 2027-01-15T08:00:20" in str(db.why("both"))


def test_what_follows_it_comes_to_rest_as_well(clock: Clock) -> None:
    """A stream that is idle follows the clock, and so do the answers over it alone."""
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("""
            CREATE STREAM s (a BIGINT) FROM push TIMESTAMP BY ARRIVAL;
            CREATE STREAM r (a BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts IDLE AFTER 3 SECONDS;
            CREATE QUERY alone AS SELECT COUNT(*) AS n FROM r [RANGE 10 SECONDS];
            CREATE QUERY both AS SELECT a FROM s UNION ALL SELECT a FROM r;
        """)
        db.start()
        db.push("r", {"a": 1, "ts": BEGIN})
        db.push("s", {"a": 1})
        assert seconds(db["alone"].heartbeat) == 0
        clock.let_pass(30)
        (row,) = db["alone"].history().to_pylist()
        assert row["valid_to"] - row["valid_from"] == timedelta(seconds=10)
        assert db["both"].stream().num_rows == 2
        epochs = db.status.epoch
        clock.let_pass(30)
        assert db.status.epoch == epochs < 30


def test_show_streams_and_status(clock: Clock) -> None:
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("CREATE STREAM s (a BIGINT) FROM push TIMESTAMP BY ARRIVAL AS at; SELECT a FROM s")
        shown = db.execute("SHOW STREAMS")[0]
        assert isinstance(shown, str)
        assert re.split("  +", shown.splitlines()[2]) == [
            "s", "its source", "ARRIVAL AS at", "none", "a BIGINT, at TIMESTAMP"
        ]  # fmt: skip
        db.start()
        assert db.status.stream("s").by_arrival
        assert "send a row of s" in str(db.why(db.queries[0].name))
